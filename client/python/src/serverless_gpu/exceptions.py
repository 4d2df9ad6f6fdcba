# SPDX-License-Identifier: Apache-2.0
"""The exceptions of `databricks.air`, under its names.

The exceptions of errors.py derive from them, so that `except` with either name catches the errors of this package. Some classes are never
raised and have no subclass: they exist so that code can name them. Databricks has one class for wrong types and wrong values of an
argument, so that class is both a TypeError and a ValueError here.
"""

from __future__ import annotations


class ServerlessGpuException(Exception):
    """The base of all errors of this package, and of most wrong arguments."""


# --- what the caller can change ---


class ServerlessGpuCustomerError(ServerlessGpuException):
    """The base of errors that the caller can correct."""


class GPUValidationError(ServerlessGpuCustomerError, TypeError, ValueError):
    """The number of GPUs is invalid, or no node can serve it."""


class GPUTypeError(ServerlessGpuCustomerError, TypeError, ValueError):
    """There is no such GPU type."""


class RuntimeConfigurationError(ServerlessGpuCustomerError, RuntimeError, TypeError, ValueError):
    """Options, or the environment variables of a rank, contradict each other or are invalid."""


class SerializationError(ServerlessGpuCustomerError, TypeError):
    """The function, or one of its arguments, cannot be pickled."""


class LocalExecutionTimeoutError(ServerlessGpuCustomerError):
    """The job ran longer than its `timeout`."""


class WorkloadRateLimitExceededError(ServerlessGpuCustomerError):
    """Never raised here: jobs wait for their turn."""


class NotebookGPULimitExceededError(ServerlessGpuCustomerError):
    """Never raised here: jobs wait for their turn."""


class WorkspaceFileError(ServerlessGpuCustomerError):
    """Never raised here: there is no workspace."""


# --- what the caller cannot change ---


class ServerlessGpuInternalError(ServerlessGpuException):
    """The base of errors of the job and of the system that runs it."""


class WorkloadCreationError(ServerlessGpuInternalError):
    """The controller refused the job."""


class WorkloadFailureException(ServerlessGpuInternalError):
    """The job did not succeed."""


class OutputCollectionError(ServerlessGpuInternalError):
    """A rank's value cannot be read."""


class APIError(ServerlessGpuInternalError):
    """The controller refused a request, or does not answer."""


class MissingEnvironmentError(ServerlessGpuInternalError):
    """Never raised here: variables that are missing have defaults."""


class CredentialError(ServerlessGpuInternalError):
    """No controller can be found, or the settings that name it are invalid."""


class WorkloadTerminationError(ServerlessGpuInternalError):
    """Never raised here: a request to end a job is kept until it is carried out."""


class RayInitializationError(ServerlessGpuInternalError):
    """Never raised here: if a cluster does not start, the job fails."""


class RayConnectionError(ServerlessGpuInternalError):
    """Never raised here, as above."""


class EnvironmentUploadError(ServerlessGpuInternalError):
    """Never raised here: if an environment cannot be sent, an APIError is raised."""


class EnvironmentDownloadError(ServerlessGpuInternalError):
    """Never raised here: if an environment cannot be made, the job fails."""


class CurlDownloadTimeoutError(EnvironmentDownloadError):
    """Never raised here, as above."""
