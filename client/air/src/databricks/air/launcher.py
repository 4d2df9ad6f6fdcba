# SPDX-License-Identifier: Apache-2.0
"""`databricks.air.launcher`: the module with the decorator."""

from __future__ import annotations

from serverless_gpu.air import distributed
from serverless_gpu.launcher import DistributedFunction

__all__ = ["DistributedFunction", "distributed"]
