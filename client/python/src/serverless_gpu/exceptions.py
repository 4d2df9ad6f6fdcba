# SPDX-License-Identifier: Apache-2.0
"""The exceptions of `databricks.air`, by its names.

Those of errors.py derive from them, so that `except` with a name of either kind catches what this package raises. The classes that
nothing here raises and nothing derives from are there to be named. Whoever gives a wrong argument gets one class for a wrong type and a
wrong value there, so it is a TypeError and a ValueError here.
"""

from __future__ import annotations


class ServerlessGpuException(Exception):
    """The base of all errors of this package, and of most wrong arguments."""


# --- what the caller can change ---


class ServerlessGpuCustomerError(ServerlessGpuException):
    """The base of errors that the caller can do something about."""


class GPUValidationError(ServerlessGpuCustomerError, TypeError, ValueError):
    """So many GPUs cannot be asked for, or no node can serve them."""


class GPUTypeError(ServerlessGpuCustomerError, TypeError, ValueError):
    """There is no such type of GPUs."""


class RuntimeConfigurationError(ServerlessGpuCustomerError, RuntimeError, TypeError, ValueError):
    """Options, or what the environment of a rank says, contradict each other or cannot be understood."""


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
    """The base of errors of the job and of what runs it."""


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
    """No controller can be found, or what names it cannot be understood."""


class WorkloadTerminationError(ServerlessGpuInternalError):
    """Never raised here: an order to end is kept until it is carried out."""


class RayInitializationError(ServerlessGpuInternalError):
    """Never raised here: a cluster that does not come up fails the job."""


class RayConnectionError(ServerlessGpuInternalError):
    """Never raised here, as above."""


class EnvironmentUploadError(ServerlessGpuInternalError):
    """Never raised here: what cannot be sent is an APIError."""


class EnvironmentDownloadError(ServerlessGpuInternalError):
    """Never raised here: an environment that cannot be made fails the job."""


class CurlDownloadTimeoutError(EnvironmentDownloadError):
    """Never raised here, as above."""
