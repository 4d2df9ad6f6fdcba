# SPDX-License-Identifier: Apache-2.0
"""Reads an event stream of a job to its end. No event is lost or repeated when the controller goes away in between: the stream resumes
behind the last event that was taken. The receiver shows the events; watch.py reports why a job waits.
"""

from __future__ import annotations

import json
import threading
from typing import Any, Callable

from serverless_gpu._internal.api.controller import BACKOFF_S, Controller, next_pause
from serverless_gpu._internal.api.sse import Event, EventParser
from serverless_gpu.errors import ControllerUnreachable

Item = dict[str, Any]  # {"rank", "stream", "attempt", "text", ...}: a piece of a rank's output


def documents(events: list[Event], name: str = "message") -> list[Any]:
    """Return the data of the events of this name; for output, whose events have the default name, Items."""
    return list(json.loads(f"[{','.join([event.data for event in events if event.name == name])}]"))


class Follow:
    """One stream, passed to `take` as (events, id for resuming). `run` may be called again after an interrupt."""

    def __init__(self, controller: Controller, path: str, take: Callable[[list[Event], str | None], None], last_id: str | None = None):
        self._controller = controller
        self._path = path
        self._to = take
        self.last_id = last_id  # of the last event that was taken
        self._state: str | None = None
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Take no more events. A `run` on another thread ends with the next message from the controller, a heartbeat at the latest."""
        self._stopped.set()

    def run(self) -> str:
        """Read until the job has ended; return its state, "" if stopped. Raises ControllerError if the controller refuses the request."""
        pause = BACKOFF_S
        while self._state is None and not self._stopped.is_set():
            before = self.last_id
            try:
                self._read_stream()
            except ControllerUnreachable as error:
                if self.last_id != before:
                    pause = BACKOFF_S
                self._controller.lost(error)
                self._stopped.wait(max(pause, error.again_s))
                pause = next_pause(pause)
        return self._state or ""

    def _read_stream(self) -> None:
        headers = {"Accept": "text/event-stream"}
        if self.last_id is not None:
            headers["Last-Event-ID"] = self.last_id
        parser = EventParser()
        with self._controller.stream(self._path, headers) as pieces:
            self._controller.found()
            for piece in pieces:
                events = parser.feed(piece)
                if self._stopped.is_set():
                    return
                if events:
                    self._take(events)
        if self._state is None:
            raise self._controller.unreachable("it has closed the stream")

    def _take(self, events: list[Event]) -> None:
        last_id = next((event.id for event in reversed(events) if event.id), self.last_id)
        self._to(events, last_id)
        self.last_id = last_id
        if events[-1].name == "end":
            self._state = str(json.loads(events[-1].data)["state"])
