# SPDX-License-Identifier: Apache-2.0
"""Follows a job where written text cannot be changed, such as in a file or a pipe: output and messages, line by line."""

from __future__ import annotations

from typing import Callable

from serverless_gpu._internal.api.controller import Controller
from serverless_gpu._internal.api.follow import Follow, documents
from serverless_gpu._internal.api.sse import Event
from serverless_gpu._internal.api.tracked import Run, Tracked, line
from serverless_gpu._internal.api.watch import Watch
from serverless_gpu._internal.messages import Messages
from serverless_gpu._internal.show.printer import Printer


class Plain:
    """One job. `run` may be called again after an interrupt; it then continues at the same point."""

    def __init__(self, controller: Controller, job_id: str, messages: Messages, count_ranks: Callable[[], int]):
        self._controller = controller
        self._job_id = job_id
        self._messages = messages
        self._printer = Printer(count_ranks)
        self._follow = Follow(controller, f"/v1/jobs/{job_id}/logs", self._show)
        self._told: Run | None = None

    def run(self) -> str:
        """Show output and notes until the job is over; return its state. Raises ControllerError."""
        watch = Watch(self._controller.context, self._job_id, self._messages)
        tracked = Tracked(self._controller.context, self._job_id, self._tell)
        try:
            state = self._follow.run()
            self._printer.finish()
            tracked.finish(self._controller)
            return state
        finally:
            watch.stop()
            tracked.stop()

    def _show(self, events: list[Event], last_id: str | None) -> None:
        items = documents(events)
        if items:
            self._printer.take(items)

    def _tell(self, run: Run) -> None:
        if run != self._told:
            self._told = run
            self._messages.say(f"job {self._job_id} tracks with {line(run)}")
