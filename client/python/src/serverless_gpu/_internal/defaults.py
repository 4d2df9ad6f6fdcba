# SPDX-License-Identifier: Apache-2.0
"""What a call leaves open until it is made, answered by the controller: how many GPUs "all of a node" are, and whether the nodes are this
machine's own.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from serverless_gpu._internal import host
from serverless_gpu.exceptions import GPUValidationError

if TYPE_CHECKING:
    from serverless_gpu._internal.controller import Controller
    from serverless_gpu.launcher import Options


def _nodes(controller: Controller, gpu_type: str | None, remote: bool) -> list[dict[str, Any]]:
    """The nodes that can take work, of that type, or one of "H100|A100" (in any letter case), where one is given; those of this host only
    where not remote.
    """
    here = host.host_id()
    types = gpu_type.lower().split("|") if gpu_type else None
    return [
        node
        for node in controller.get("/v1/nodes")["nodes"]
        if node["state"] == "READY"
        and (remote or node["host_id"] == here)
        and (types is None or str(node["gpu_type"]).lower() in types)
    ]


def gpus_of_a_node(controller: Controller, gpu_type: str | None, remote: bool) -> int:
    """How many GPUs the largest of those nodes has. Raises GPUValidationError, a ValueError, where there is none."""
    most = max((int(node["gpus"]) for node in _nodes(controller, gpu_type, remote)), default=0)
    if most < 1:
        kind = f" of type {gpu_type}" if gpu_type else ""
        place = "at the controller" if remote else "on this host"
        raise GPUValidationError(f"there is no node{kind} {place} whose GPUs could be counted: say how many GPUs the function wants")
    return most


def most_gpus(controller: Controller, remote: bool) -> int:
    """How many GPUs, CPU slots aside, the largest of those nodes has; 0 where there is none."""
    return max((int(node["gpus"]) for node in _nodes(controller, None, remote) if not node["slots"]), default=0)


def slot_type(controller: Controller, remote: bool) -> str | None:
    """The type that nodes without GPUs give their slots; None where there is no such node."""
    return next((node["gpu_type"] for node in _nodes(controller, None, remote) if node["slots"]), None)


def resolve(controller: Controller, options: Options) -> Options:
    """The options with nothing left open."""
    if options.gpus > 0 and options.remote is not None:
        return options
    closed = copy.copy(options)
    if options.remote is None:
        closed.remote = not controller.context.embedded
    if options.gpus == 0:
        closed.gpus = gpus_of_a_node(controller, options.gpu_type, bool(closed.remote))
    return closed
