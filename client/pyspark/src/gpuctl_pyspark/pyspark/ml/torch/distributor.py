# SPDX-License-Identifier: Apache-2.0
"""`pyspark.ml.torch.distributor` where there is no PySpark: TorchDistributor on the nodes of gpuctl."""

from __future__ import annotations

from serverless_gpu.torch_distributor import TorchDistributor

__all__ = ["TorchDistributor"]
