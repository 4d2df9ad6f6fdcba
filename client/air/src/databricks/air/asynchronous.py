# SPDX-License-Identifier: Apache-2.0
"""`databricks.air.asynchronous`: serverless_gpu.asynchronous itself, so that a function that names it finds it on the ranks, too."""

from __future__ import annotations

import sys

from serverless_gpu import asynchronous

sys.modules[__name__] = asynchronous
