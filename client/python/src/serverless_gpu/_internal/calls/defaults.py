# SPDX-License-Identifier: Apache-2.0
"""Asks the controller for values that a call leaves open: the number of GPUs of a whole node, and whether the nodes are this machine."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from serverless_gpu._internal.calls import host
from serverless_gpu.exceptions import GPUValidationError

if TYPE_CHECKING:
    from serverless_gpu._internal.api.controller import Controller
    from serverless_gpu.launcher import Options


def _nodes(controller: Controller, gpu_type: str | None, remote: bool) -> list[dict[str, Any]]:
    """Return the ready nodes; with gpu_type, those of the type or of one of "H100|A100" (in any letter case); with remote=False, those of
    this host.
    """
    here = host.host_id()
    types = gpu_type.lower().split("|") if gpu_type else None
    return [
        node
        for node in controller.pages("/v1/nodes", "nodes", "cursor")
        if node["state"] == "READY" and (remote or node["host_id"] == here) and (types is None or str(node["gpu_type"]).lower() in types)
    ]


def gpus_of_a_node(controller: Controller, gpu_type: str | None, remote: bool) -> int:
    """Return the number of GPUs of the largest such node. Raises GPUValidationError, a ValueError, if there is none."""
    most = max((int(node["gpus"]) for node in _nodes(controller, gpu_type, remote)), default=0)
    if most < 1:
        kind = f" of type {gpu_type}" if gpu_type else ""
        place = "at the controller" if remote else "on this host"
        raise GPUValidationError(f"there is no node{kind} {place} whose GPUs could be counted: say how many GPUs the function wants")
    return most


def most_gpus(controller: Controller, remote: bool) -> int:
    """Return the number of GPUs, without CPU slots, of the largest such node; 0 if there is none."""
    return max((int(node["gpus"]) for node in _nodes(controller, None, remote) if not node["slots"]), default=0)


def slot_type(controller: Controller, remote: bool) -> str | None:
    """Return the type of CPU slots on nodes without GPUs; None if there is no such node."""
    return next((node["gpu_type"] for node in _nodes(controller, None, remote) if node["slots"]), None)


def resolve(controller: Controller, options: Options) -> Options:
    """Return the options with all open values filled in."""
    if options.gpus is not None and options.remote is not None:
        return options
    closed = copy.copy(options)
    if options.remote is None:
        closed.remote = not controller.context.embedded
    if options.gpus is None:
        closed.gpus = gpus_of_a_node(controller, options.gpu_type, bool(closed.remote))
    return closed
