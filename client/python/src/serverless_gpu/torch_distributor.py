# SPDX-License-Identifier: Apache-2.0
"""Offers TorchDistributor with the interface of PySpark's, on the nodes of gpuctl: no Spark is needed.

The distribution in client/pyspark makes it importable as `pyspark.ml.torch.distributor.TorchDistributor` if PySpark is not installed. The
differences: ranks share a node that has several GPUs, so LOCAL_RANK says which GPU is a rank's own. A failure is a JobFailed, which is a
RuntimeError, with the rank's exception as its cause. GPUs are looked for at each run, not when the object is made.
"""

from __future__ import annotations

import functools
import os
import re
import warnings
from typing import TYPE_CHECKING, Any, Callable

from serverless_gpu.launcher import DistributedFunction, distributed

if TYPE_CHECKING:
    from serverless_gpu._internal.api.controller import Controller

__all__ = ["TorchDistributor"]

ELSEWHERE = "local_mode=True runs on one node of this host: use local_mode=False for any nodes"


class _OfRank0:
    """A function whose value counts on rank 0 only. With use_gpu=False it hides the GPUs of the node."""

    def __init__(self, function: Callable[..., Any], use_gpu: bool):
        functools.update_wrapper(self, function)
        self._function = function
        self._use_gpu = use_gpu

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._use_gpu:
            os.environ["CUDA_VISIBLE_DEVICES"] = ""
        value = self._function(*args, **kwargs)
        return value if os.environ.get("RANK", "0") == "0" else None


class TorchDistributor:
    """Runs PyTorch training in several processes: `TorchDistributor(num_processes=2, local_mode=False, use_gpu=True).run(train, 1e-3)`.

    num_processes  how many, in total over all nodes
    local_mode     True: on this machine; False: on any nodes
    use_gpu        True: each process has a GPU; False: CPU slots if there are any, else nodes whose GPUs are hidden
    num_workers    another name of num_processes, used in published examples

    `options` are further ones of `serverless_gpu.distributed`, such as gpu_type, env, requirements, working_dir, retries or timeout. With
    local_mode=False the environment of this Python and the working folder are sent, as with remote=True there.
    """

    def __init__(
        self,
        num_processes: int = 1,
        local_mode: bool = True,
        use_gpu: bool = True,
        _ssl_conf: str = "pytorch.spark.distributor.ignoreSsl",
        *,
        num_workers: int | None = None,
        **options: Any,
    ):
        num_processes = num_processes if num_workers is None else num_workers
        if isinstance(num_processes, bool) or not hasattr(num_processes, "__index__"):
            raise TypeError(f"num_processes must be a whole number, not {num_processes!r}")
        if num_processes <= 0:
            raise ValueError("num_proccesses has to be a positive integer")
        self.num_processes = num_processes.__index__()
        self.local_mode = local_mode
        self.use_gpu = use_gpu
        self._options = options
        if "run_async" in options:
            raise TypeError("run returns a value, so run_async is none of its options: take serverless_gpu.distributed")
        distributed(gpus=self.num_processes, remote=not local_mode, **options)  # checks the options now

    def run(self, train_object: Callable[..., Any] | str | os.PathLike[str], *args: Any, **kwargs: Any) -> Any:
        """Run a function in each process and return the value of rank 0; or run a Python file in each process and return None.

        A function's arguments go to each process. The arguments of a file become its sys.argv as texts; a file takes no keywords. The
        output of all processes is shown while they run. Raises RuntimeError if a GPU is wanted and there is none, TypeError or ValueError
        for wrong arguments, and the errors of `serverless_gpu.distributed`.
        """
        if isinstance(train_object, (str, os.PathLike)):
            if kwargs:
                raise ValueError("Running pytorch file does not support key-word type arguments.")
            return self._run_file(os.fspath(train_object), [str(argument) for argument in args])
        if not callable(train_object):
            raise TypeError(f"run takes a function or the path of a Python file, not {train_object!r}")
        function = getattr(train_object, "__wrapped__", train_object) if isinstance(train_object, DistributedFunction) else train_object
        decorate: Callable[..., DistributedFunction[..., Any]] = distributed(**self._wanted())
        of_rank_0 = decorate(_OfRank0(function, self.use_gpu))
        of_rank_0._options.elsewhere = ELSEWHERE
        return of_rank_0.distributed(*args, **kwargs)[0]

    def _run_file(self, file: str, arguments: list[str]) -> None:
        from serverless_gpu._internal.calls.command import ProgramCall

        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.splitext(os.path.basename(file))[0]).lstrip("._-")[:63]
        wanted = self._wanted()
        wanted.setdefault("name", stem or "program")
        decorate: Callable[..., DistributedFunction[..., Any]] = distributed(**wanted)
        options = decorate(ProgramCall)._options
        options.elsewhere = ELSEWHERE
        ProgramCall.of_file(file, arguments, options, hide_gpus=not self.use_gpu).run()

    # --- where ---

    def _wanted(self) -> dict[str, Any]:
        """Return the arguments of `distributed`. Raises RuntimeError if a GPU is wanted and there is none."""
        from serverless_gpu._internal.api.controller import connect
        from serverless_gpu._internal.calls import defaults
        from serverless_gpu._internal.messages import Messages

        controller = connect(Messages(bool(self._options.get("quiet"))))
        remote = not self.local_mode
        wanted = {"gpus": self.num_processes, "remote": remote, **self._options}
        if not self.use_gpu:
            wanted.setdefault("gpu_type", defaults.slot_type(controller, remote))
        elif wanted.get("gpu_type") is None:
            wanted["gpus"] = self._gpus(controller, remote)
        return wanted

    def _gpus(self, controller: Controller, remote: bool) -> int:
        """Return the number of processes; in local mode at most the number of this machine's GPUs, as with PySpark."""
        from serverless_gpu._internal.calls import defaults

        most = defaults.most_gpus(controller, remote)
        if most == 0:
            place = "any node" if remote else "the driver"
            raise RuntimeError(f"GPUs were unable to be found on {place}.")
        if self.local_mode and self.num_processes > most:
            warnings.warn(f"{self.num_processes} processes are wanted, and this machine has {most} GPUs: {most} are started", stacklevel=4)
            return most
        return self.num_processes
