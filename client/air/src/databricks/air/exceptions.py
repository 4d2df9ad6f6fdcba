# SPDX-License-Identifier: Apache-2.0
"""`databricks.air.exceptions`: serverless_gpu.exceptions itself, so that a function that names it finds it on the ranks, too."""

from __future__ import annotations

import sys

from serverless_gpu import exceptions

sys.modules[__name__] = exceptions
