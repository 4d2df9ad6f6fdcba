# SPDX-License-Identifier: Apache-2.0
"""Run Python functions on GPU machines that you own.

`@distributed(gpus=8, gpu_type="H100", remote=True)` decorates a function; `.distributed(...)` on it runs one copy per GPU and returns the
list of their values by global rank. Importing this package does no work: modules that need the network or pickles are imported on first
use.
"""

from __future__ import annotations

from serverless_gpu.launcher import distributed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType
    from typing import Any

    from serverless_gpu._internal.calls.attached import JobList
    from serverless_gpu._internal.calls.call import DistributedFunctionCall

__all__ = ["attach", "distributed", "jobs"]
__version__ = "0.1.0"

_SUBMODULES = (
    "accelerate", "air", "asynchronous", "compute", "data", "errors", "exceptions", "launcher", "planner", "ray", "runtime",
    "torch_distributor",
)  # fmt: skip


def attach(job_id: str) -> DistributedFunctionCall:
    """Return the handle of a job by its id, in any process with the token of its owner: `result`, `wait`, `cancel`, `logs` and so on.

    Of a command (`gpuctl submit`) the results are the exit codes of the ranks. The handle of an array is a MapCall. On the host that
    submitted the call all values and exceptions are rebuilt. On other hosts they are if the call had more than 32 KiB; of smaller calls,
    values that JSON can express are known, and exceptions by their text. Raises TypeError if job_id is no text, ControllerError if there is
    no such job.
    """
    from serverless_gpu._internal.calls import attached

    return attached.attach(job_id)


def jobs(state: str | Iterable[str] | None = None, name: str | None = None, limit: int = 50) -> JobList:
    """Return handles of your own jobs, the newest first, as a list that shows itself as a table.

    state  one state or several, such as "RUNNING"; None: all
    name   exactly this name; None: any
    limit  at most so many

    Raises TypeError and ValueError for wrong arguments.
    """
    from serverless_gpu._internal.calls import attached

    return attached.jobs(state, name, limit)


def load_ipython_extension(shell: Any) -> None:
    """Add the cell magic `%%distributed`: `%load_ext serverless_gpu` calls this."""
    from serverless_gpu._internal import magic

    magic.load(shell)


def __getattr__(name: str) -> ModuleType:
    """Import the public submodules on first use."""
    if name in _SUBMODULES:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
