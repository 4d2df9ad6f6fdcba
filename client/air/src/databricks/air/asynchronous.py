# SPDX-License-Identifier: Apache-2.0
"""`databricks.air.asynchronous`: the module serverless_gpu.asynchronous itself, so ranks, too, find it under the name in a function."""

from __future__ import annotations

import sys

from serverless_gpu import asynchronous

sys.modules[__name__] = asynchronous
