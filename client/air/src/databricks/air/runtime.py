# SPDX-License-Identifier: Apache-2.0
"""`databricks.air.runtime`: serverless_gpu.runtime itself, so that a function that names it finds it on the ranks, too."""

from __future__ import annotations

import sys

from serverless_gpu import runtime

sys.modules[__name__] = runtime
