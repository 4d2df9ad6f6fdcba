# SPDX-License-Identifier: Apache-2.0
"""`databricks.air.data`: serverless_gpu.data itself, so that a function that names it finds it on the ranks, too."""

from __future__ import annotations

import sys

from serverless_gpu import data

sys.modules[__name__] = data
