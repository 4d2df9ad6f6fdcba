# SPDX-License-Identifier: Apache-2.0
"""The errors of this package. Every message is one line that says what is wrong and what to do about it."""

from __future__ import annotations

import builtins

from serverless_gpu import exceptions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class GpuctlError(exceptions.ServerlessGpuException, RuntimeError):
    """The base of all errors of this package except wrong arguments, which are TypeError and ValueError.

    exceptions.py has Databricks' names for both.
    """


class SettingsError(GpuctlError, exceptions.CredentialError):
    """No controller can be found, or the settings that name it are invalid."""


class ControllerError(GpuctlError, exceptions.APIError):
    """The controller refused a request.

    `detail` is the problem without the remedy, `status` the HTTP status, `code` the controller's name for the problem ("not_enough_gpus"),
    `field` the field with the problem, and `hint` the remedy. `again_s`: the
    controller wants the request again after so many seconds, because its sender has sent too many; 0: it does not say.
    """

    def __init__(
        self,
        message: str,
        *,
        detail: str = "",
        status: int = 0,
        code: str = "",
        field: str | None = None,
        hint: str | None = None,
        again_s: float = 0,
    ):
        super().__init__(message)
        self.detail = detail or message
        self.status = status
        self.code = code
        self.field = field
        self.hint = hint
        self.again_s = again_s


class ControllerUnreachable(ControllerError):
    """The controller does not answer, or says that the same request may succeed later."""

    def with_hint(self) -> ControllerUnreachable:
        """Return the same error with the remedy in its message. While a retry may succeed, the problem alone is shown."""
        text = str(self)
        whole = f"{text}; {self.hint}" if self.hint and self.hint not in text else text
        return ControllerUnreachable(whole, detail=self.detail, status=self.status, code=self.code, field=self.field, hint=self.hint)


class InvalidJob(ControllerError, exceptions.WorkloadCreationError, exceptions.GPUValidationError, exceptions.GPUTypeError):
    """The controller refused the job: an option has a value that is not allowed or that no node can serve."""


class JobFailed(GpuctlError, exceptions.WorkloadFailureException):
    """The job did not succeed.

    `state` is FAILED, CANCELED or TIMED_OUT. `rank` (global) and `node` name the first rank that failed; they are None if no rank did. The
    exception of the rank is `__cause__`, and the rank's traceback is the `__cause__` of that. The error is also an instance of the rank's
    exception type and has its attributes: `except ValueError` around a call catches a ValueError of a rank.
    """

    def __init__(self, message: str, *, job_id: str = "", state: str = "FAILED", rank: int | None = None, node: str | None = None):
        super().__init__(message)
        self.job_id = job_id
        self.state = state
        self.rank = rank
        self.node = node

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return job_failed, (str(self), self.job_id, self.state, self.rank, self.node)

    def of_kind(self, raised: BaseException) -> JobFailed:
        """Return the same error as an exception of the rank's type; itself if no exception can be both."""
        kind = type(raised)
        if not isinstance(raised, Exception) or isinstance(raised, (GpuctlError, StopIteration, StopAsyncIteration)):
            return self
        try:
            both: Any = type("JobFailed", (JobFailed, kind), {"__module__": JobFailed.__module__, "__doc__": JobFailed.__doc__})
            group = getattr(builtins, "BaseExceptionGroup", ())  # from Python 3.11 on; it is made with its exceptions
            made: JobFailed = kind.__new__(both, str(self), *([getattr(raised, "exceptions", ())] if isinstance(raised, group) else []))
            if isinstance(raised, OSError) and isinstance(made, OSError):
                made.errno, made.strerror, made.filename = raised.errno, raised.strerror, raised.filename
            made.__dict__.update({**raised.__dict__, **self.__dict__})
            made.args = self.args
        except Exception:  # a type may refuse to be a base, or to be built this way
            return self
        return made

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows for the error."""
        from serverless_gpu._internal.calls import readable

        return readable.lines(self)


class JobTimedOut(JobFailed, exceptions.LocalExecutionTimeoutError):
    """The job ran longer than its timeout and was stopped."""


def job_failed(message: str, job_id: str, state: str, rank: int | None, node: str | None) -> JobFailed:
    """Return the exception for a job that ended in this state."""
    kind = JobTimedOut if state == "TIMED_OUT" else JobFailed
    return kind(message, job_id=job_id, state=state, rank=rank, node=node)


class ResultUnreadable(GpuctlError, exceptions.OutputCollectionError):
    """A rank's value arrived whole but cannot be unpickled in this Python."""

    def __init__(self, message: str, *, job_id: str = "", rank: int = 0):
        super().__init__(message)
        self.job_id = job_id
        self.rank = rank


class RemoteError(GpuctlError):
    """Stands for a rank's exception that cannot be rebuilt here; the message is its type and its text."""


class RemoteTraceback(Exception):
    """Shows the traceback of a rank, as the cause of the rank's exception."""

    def __init__(self, text: str):
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text.rstrip()}\n"""'
