# SPDX-License-Identifier: Apache-2.0
"""Runs Ray on GPU machines of your own: `@ray_launch(gpus=16, gpu_type="A10", remote=True)` runs a function as the driver of a Ray cluster
that lives as long as the call. Only the nodes import Ray itself.
"""

from __future__ import annotations

from serverless_gpu.ray.launch import RayFunction, ray_launch
from serverless_gpu.ray.monitor import RayMetricsMonitor

__all__ = ["RayFunction", "RayMetricsMonitor", "ray_launch"]
