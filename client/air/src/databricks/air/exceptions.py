# SPDX-License-Identifier: Apache-2.0
"""`databricks.air.exceptions`: the module serverless_gpu.exceptions itself, so that ranks, too, find it under the name in a function."""

from __future__ import annotations

import sys

from serverless_gpu import exceptions

sys.modules[__name__] = exceptions
