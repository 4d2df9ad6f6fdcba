# SPDX-License-Identifier: Apache-2.0
"""Offers `notebook_launcher` to notebooks written for Accelerate: the same call, run on GPUs by `distributed`.

Nothing is forked here, so a notebook that has used CUDA or an `Accelerator` itself may launch, repeatedly. The notebook needs no
accelerate; the ranks need the modules that the function imports.
"""

from __future__ import annotations

from serverless_gpu.launcher import distributed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

PRECISIONS = ("no", "fp8", "fp16", "bf16")


def notebook_launcher(
    function: Callable[..., Any],
    args: Iterable[Any] = (),
    num_processes: int | None = None,
    mixed_precision: str = "no",
    use_port: str | int = "29500",
    master_addr: str = "127.0.0.1",
    node_rank: int = 0,
    num_nodes: int = 1,
    rdzv_backend: str = "static",
    rdzv_endpoint: str = "",
    rdzv_conf: dict[str, Any] | None = None,
    rdzv_id: str = "none",
    max_restarts: int = 0,
    monitor_interval: float = 0.1,
    log_line_prefix_template: str | None = None,
    *,
    gpu_type: str | None = None,
    remote: bool | None = None,
    **options: Any,
) -> None:
    """Run `function(*args)` once in each of num_processes * num_nodes processes, one per GPU, and wait for their end.

    num_processes     on each node; there is no default
    mixed_precision   "no", "fp16", "bf16" or "fp8": the default of an `Accelerator()` in the ranks
    num_nodes         one call from one notebook starts all of them
    max_restarts      further attempts of the whole job after the function failed
    gpu_type, remote  as in `distributed`; remote=None means False for one node and True for more
    options           further options of `distributed`, such as name, pool, env, requirements, working_dir, timeout

    gpuctl does the rendezvous, the output and the supervision: use_port, master_addr, the rdzv_ arguments, monitor_interval and
    log_line_prefix_template are accepted and have no effect.

    The values of the function are dropped; `distributed` returns them. Raises ValueError for invalid counts and modes, otherwise the errors
    of `distributed(...)` and `.distributed(...)`.
    """
    if num_processes is None:
        raise ValueError("notebook_launcher needs num_processes: how many GPUs to use on each node")
    if num_processes < 1:
        raise ValueError(f"num_processes must be at least 1, it is {num_processes}: give how many GPUs to use on each node")
    if num_nodes < 1:
        raise ValueError(f"num_nodes must be at least 1, it is {num_nodes}")
    if node_rank >= num_nodes:
        raise ValueError(f"node_rank must be less than num_nodes: it is {node_rank} of {num_nodes}; one call starts all nodes, leave it 0")
    precision = str(getattr(mixed_precision, "value", mixed_precision)).lower()
    if precision not in PRECISIONS:
        raise ValueError(f"mixed_precision must be one of {', '.join(PRECISIONS)}, not {mixed_precision!r}")
    env = {"ACCELERATE_MIXED_PRECISION": precision, **(options.pop("env", None) or {})}
    decorate: Any = distributed(
        gpus=num_processes * num_nodes,
        gpu_type=gpu_type,
        remote=num_nodes > 1 if remote is None else remote,
        retries=max_restarts,
        env=env,
        **options,
    )
    decorate(function).distributed(*args)
