# SPDX-License-Identifier: Apache-2.0
"""`databricks.air.exceptions`: its names for what serverless_gpu.errors has."""

from __future__ import annotations

from serverless_gpu.errors import GpuctlError as ServerlessGpuException
from serverless_gpu.errors import InvalidJob as WorkloadCreationError
from serverless_gpu.errors import JobFailed as WorkloadFailureException

__all__ = ["ServerlessGpuException", "WorkloadCreationError", "WorkloadFailureException"]
