# SPDX-License-Identifier: Apache-2.0
"""Provides the names of `databricks.air`, which the distribution in client/air makes importable under that name.

`@distributed(num_accelerators=8, accelerator_type="GPU_8xH100")` is `serverless_gpu.distributed` with other names and defaults: the
parentheses may be empty, and without a number the function gets all GPUs of one node.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from serverless_gpu import data, launcher
from serverless_gpu.compute import GPUType
from serverless_gpu.exceptions import GPUTypeError, GPUValidationError, RuntimeConfigurationError

if TYPE_CHECKING:
    from serverless_gpu.launcher import DistributedFunction, P, R

__all__ = ["data", "distributed", "ray_init", "ray_launch"]

_ACCELERATOR = re.compile(r"GPU_(?P<count>[1-9][0-9]{0,2})x(?P<type>[A-Za-z0-9][A-Za-z0-9._-]*)", re.IGNORECASE)


class _Accelerators(NamedTuple):
    """The wanted GPUs: how many, 0 for all of one node, and of which type."""

    gpus: int
    gpu_type: str | None


def _parse(num_accelerators: Any, accelerator_type: Any) -> _Accelerators:
    if callable(num_accelerators):
        raise GPUValidationError("distributed takes options: write @distributed() over the function, with parentheses even when empty")
    count = 0 if num_accelerators is None else launcher._whole("num_accelerators", num_accelerators, GPUValidationError)
    if num_accelerators is not None and count < 1:
        raise GPUValidationError(f"num_accelerators must be at least 1, it is {count}; None takes all GPUs of one node")
    if accelerator_type is None:
        return _Accelerators(count, None)
    word = getattr(accelerator_type, "value", accelerator_type)
    match = _ACCELERATOR.fullmatch(word) if isinstance(word, str) else None
    if match is not None:
        return _Accelerators(count or int(match["count"]), match["type"])
    try:  # the earlier form: the type alone
        GPUType(word)
        return _Accelerators(count, launcher._types(word))
    except GPUTypeError:
        raise GPUTypeError(f"accelerator_type must read like GPU_1xA10 or GPU_8xH100, not {accelerator_type!r}") from None


def wanted(num_accelerators: Any, accelerator_type: Any, gpus: Any, gpu_type: Any) -> _Accelerators:
    """Return the wanted GPUs, also from the earlier names of these arguments."""
    if gpus is not None and num_accelerators is not None:
        raise RuntimeConfigurationError("gpus is the earlier name of num_accelerators: give one of them")
    if gpu_type is not None and accelerator_type is not None:
        raise RuntimeConfigurationError("gpu_type is the earlier form of accelerator_type: give one of them")
    count = gpus if num_accelerators is None else num_accelerators
    word = getattr(gpu_type, "value", gpu_type)
    if gpu_type is None or (isinstance(word, str) and _ACCELERATOR.fullmatch(word)):
        return _parse(count, accelerator_type or gpu_type)
    return _parse(count, None)._replace(gpu_type=launcher._types(gpu_type))


def distributed(
    num_accelerators: int | None = None,
    accelerator_type: str | None = None,
    remote: bool | None = None,
    timeout: Any = None,
    *,
    gpus: int | None = None,
    gpu_type: Any = None,
    **options: Any,
) -> Callable[[Callable[P, R]], DistributedFunction[P, R]]:
    """Make a function that runs once per GPU by `.distributed(...)`: `@distributed(num_accelerators=8, accelerator_type="GPU_8xH100")`.

    num_accelerators  how many GPUs; None takes all of one node: the number in accelerator_type, else that of the largest node
    accelerator_type  "GPU_1xA10", "GPU_8xH100": how many GPUs such a node has, and of which type; letter case does not matter
    remote            True: any nodes; False: this machine's; None: this machine's with the user's own instance, else any nodes
    timeout           seconds or a timedelta; None, the default, sets no limit
    gpus, gpu_type    the earlier names: the total, and the type alone

    All other options are those of `serverless_gpu.distributed`, such as requirements and working_dir. Raises GPUValidationError for the
    number, GPUTypeError for the type, and RuntimeConfigurationError if one of them is given under both of its names.
    """
    asked = wanted(num_accelerators, accelerator_type, gpus, gpu_type)
    decorate: Callable[[Callable[P, R]], Any] = launcher.distributed(asked.gpus or 1, asked.gpu_type, timeout=timeout, **options)

    def decorate_and_leave_open(function: Callable[P, R]) -> DistributedFunction[P, R]:
        decorated: DistributedFunction[P, R] = decorate(function)
        decorated._options.gpus = asked.gpus or None
        decorated._options.remote = None if remote is None else launcher._flag("remote", remote)
        return decorated

    return decorate_and_leave_open


def ray_launch(
    num_accelerators: int | None = None,
    accelerator_type: str | None = None,
    remote: bool | None = None,
    timeout: Any = None,
    *,
    gpus: int | None = None,
    gpu_type: Any = None,
    **options: Any,
) -> Any:
    """Call `serverless_gpu.ray.ray_launch` with the arguments of `distributed` above. Asks the controller for open values at once."""
    from serverless_gpu import ray
    from serverless_gpu._internal.api.controller import connect
    from serverless_gpu._internal.calls import defaults
    from serverless_gpu._internal.messages import Messages

    asked = wanted(num_accelerators, accelerator_type, gpus, gpu_type)
    if asked.gpus == 0 or remote is None:
        open_options = launcher.Options()
        open_options.gpus, open_options.gpu_type, open_options.remote = asked.gpus or None, asked.gpu_type, remote
        closed = defaults.resolve(connect(Messages()), open_options)
        asked, remote = asked._replace(gpus=closed.gpus or 0), closed.remote
    return ray.ray_launch(gpus=asked.gpus, gpu_type=asked.gpu_type, remote=bool(remote), timeout=timeout, **options)


def ray_init(*args: Any, **kwargs: Any) -> Any:
    """Call `ray.init`: in the function of `ray_launch` it connects to that cluster, elsewhere to one of this process's own."""
    import ray

    return ray.init(*args, **kwargs)
