# SPDX-License-Identifier: Apache-2.0
"""`databricks.air.compute`: the module serverless_gpu.compute itself, so that ranks, too, find it under the name in a function."""

from __future__ import annotations

import sys

from serverless_gpu import compute

sys.modules[__name__] = compute
