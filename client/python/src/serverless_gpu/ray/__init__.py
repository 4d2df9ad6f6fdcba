# SPDX-License-Identifier: Apache-2.0
"""Ray on GPU machines that you own: `@ray_launch(gpus=16, gpu_type="A10", remote=True)` runs a function as the driver of a Ray cluster
that lives as long as the call. Ray itself is imported on the nodes alone.
"""

from __future__ import annotations

from serverless_gpu.ray.launch import RayFunction, ray_launch
from serverless_gpu.ray.monitor import RayMetricsMonitor

__all__ = ["RayFunction", "RayMetricsMonitor", "ray_launch"]
