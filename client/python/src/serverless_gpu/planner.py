# SPDX-License-Identifier: Apache-2.0
"""Asks when a job would start if it were submitted now. Nothing is sent along, and nothing is stored."""

from __future__ import annotations

import html
import uuid
from typing import Any, Callable

from serverless_gpu._internal.api.controller import connect
from serverless_gpu._internal.calls import defaults, spec
from serverless_gpu._internal.calls.call import named_arguments
from serverless_gpu._internal.messages import Messages
from serverless_gpu._internal.pack import payload
from serverless_gpu.launcher import DistributedFunction, Options, distributed


def _nothing() -> None:
    """Stands for a function without a name."""


class Plan(dict[str, Any]):
    """When a job would start, as the schema Plan of the API: a dict that shows itself as a few sentences."""

    def __init__(self, document: dict[str, Any], title: str):
        super().__init__(document)
        self._title = title

    def _lines(self) -> list[str]:
        refusal, reason, start, change = (self.get(name) for name in ("refusal", "reason", "start", "smallest_change"))
        if refusal:
            hint = f"; {refusal['hint']}" if refusal.get("hint") else ""
            return [f"{self._title} would be refused: {refusal['field']}: {refusal['detail']}{hint}"]
        if not reason:
            return [f"{self._title} would start now"]
        lines = [f"{self._title} would wait: {reason['text']}"]
        at = (start or {}).get("at")
        later = (start or {}).get("later_than")
        lines.append(f"it would start about {at}" if at else f"it would start after {later}" if later else "no start can be foreseen")
        return [*lines, *([f"it would start now with this change: {change['text']}"] if change else [])]

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        first, *rest = map(html.escape, self._lines())
        return f"<div><b>{first}</b>{''.join(f'<br>{line}' for line in rest)}</div>"


def ask(options: Options, function: Callable[..., Any], call: tuple[tuple[Any, ...], dict[str, Any]] | None = None) -> Plan:
    """Return the plan of a job with these options, and of a call with these arguments, which are checked."""
    if call is not None:
        payload.pack(function, *call, named_arguments(function, *call))
    controller = connect(Messages(options.quiet))
    options = defaults.resolve(controller, options)
    job = spec.build(options, function, own_host=controller.context.embedded)
    if function is _nothing and options.name is None:
        job.pop("name", None)
    document = controller.post("/v1/plan", {**job, "command": ["true"]}, uuid.uuid4().hex)
    kind = f" of type {options.gpu_type}" if options.gpu_type else ""
    title = f"{job.get('name', 'a job')} on {options.gpus} GPU{'s' if options.gpus != 1 else ''}{kind}"
    return Plan(document, title)


def plan(gpus: int, gpu_type: str | None = None, remote: bool = False, **options: Any) -> Plan:
    """Return when a job with these options of `distributed` would start now, or why it would not.

    In the dict, "admitted" says whether the job would be accepted, "start" when it would start, "reason" why it would not start now, and
    "smallest_change" which change would start it now. Packages and folders are not examined. Raises the same errors as a call.
    """
    decorate: Callable[[Callable[..., Any]], DistributedFunction[..., Any]] = distributed(gpus, gpu_type, remote, **options)
    return ask(decorate(_nothing)._options, _nothing)
