# SPDX-License-Identifier: Apache-2.0
"""`databricks.air.ray`: the functions that run Ray on the nodes."""

from __future__ import annotations

from serverless_gpu.air import ray_init, ray_launch

__all__ = ["ray_init", "ray_launch"]
