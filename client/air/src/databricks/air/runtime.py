# SPDX-License-Identifier: Apache-2.0
"""`databricks.air.runtime`: the module serverless_gpu.runtime itself, so that ranks, too, find it under the name in a function."""

from __future__ import annotations

import sys

from serverless_gpu import runtime

sys.modules[__name__] = runtime
