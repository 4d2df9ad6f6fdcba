# SPDX-License-Identifier: Apache-2.0
"""`databricks.air` on the nodes of gpuctl: an alias of serverless_gpu.air.

`databricks` has no __init__.py here, so that other distributions can add modules to it, too.
"""

from __future__ import annotations

from databricks.air import asynchronous, compute, data, exceptions, runtime

from serverless_gpu import __version__
from serverless_gpu.air import distributed, ray_init, ray_launch

__all__ = ["__version__", "asynchronous", "compute", "data", "distributed", "exceptions", "ray_init", "ray_launch", "runtime"]
