# SPDX-License-Identifier: Apache-2.0
"""Asks when a job would start if it were submitted now. Nothing is sent along, and nothing is stored."""

from __future__ import annotations

import uuid
from typing import Any, Callable

from serverless_gpu._internal.api.controller import connect
from serverless_gpu._internal.calls import defaults, spec
from serverless_gpu._internal.messages import Messages
from serverless_gpu.launcher import DistributedFunction, Options, distributed


def _nothing() -> None:
    """Stands for a function without a name."""


def ask(options: Options, function: Callable[..., Any]) -> dict[str, Any]:
    """Return the plan of a job with these options: the schema Plan of the API."""
    controller = connect(Messages(options.quiet))
    options = defaults.resolve(controller, options)
    job = spec.build(options, function, own_host=controller.context.embedded)
    if function is _nothing and options.name is None:
        job.pop("name", None)
    return dict(controller.post("/v1/plan", {**job, "command": ["true"]}, uuid.uuid4().hex))


def plan(gpus: int, gpu_type: str | None = None, remote: bool = False, **options: Any) -> dict[str, Any]:
    """Return when a job with these options of `distributed` would start now, or why it would not.

    In the dict, "admitted" says whether the job would be accepted, "start" when it would start, "reason" why it would not start now, and
    "smallest_change" which change would start it now. Packages and folders are not examined. Raises the same errors as a call.
    """
    decorate: Callable[[Callable[..., Any]], DistributedFunction[..., Any]] = distributed(gpus, gpu_type, remote, **options)
    return ask(decorate(_nothing)._options, _nothing)
