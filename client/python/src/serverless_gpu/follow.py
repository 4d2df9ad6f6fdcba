# SPDX-License-Identifier: Apache-2.0
"""Follows a job to its end by the stream of its output. No line is lost or shown twice when the controller goes away in between: the
stream is resumed behind the last event that was seen. Why a job waits is watch.py's.
"""

from __future__ import annotations

import json
import time
from typing import Any, Callable

from serverless_gpu.controller import BACKOFF_S, Controller, next_pause
from serverless_gpu.errors import ControllerUnreachable
from serverless_gpu.output import Output
from serverless_gpu.sse import Event, EventParser


class Follow:
    """One job's output. `run` may be called again after an interrupt and goes on where it was."""

    def __init__(self, controller: Controller, job_id: str, many_ranks: Callable[[], bool]):
        self._controller = controller
        self._path = f"/v1/jobs/{job_id}/logs"
        self._many_ranks = many_ranks  # asked before the first line: whether lines get a prefix
        self._output: Output | None = None
        self._last_id: str | None = None
        self._attempt = 0
        self._state: str | None = None

    def run(self) -> str:
        """Show output until the job is over; return its state. Raises ControllerError when the controller refuses to tell."""
        pause = BACKOFF_S
        while self._state is None:
            before = self._last_id
            try:
                self._read_stream()
            except ControllerUnreachable as error:
                if self._last_id != before:
                    pause = BACKOFF_S
                self._controller.lost(error)
                time.sleep(pause)
                pause = next_pause(pause)
        if self._output is not None:
            self._output.finish()
        return self._state

    def _read_stream(self) -> None:
        headers = {"Accept": "text/event-stream"}
        if self._last_id is not None:
            headers["Last-Event-ID"] = self._last_id
        parser = EventParser()
        with self._controller.stream(self._path, headers) as pieces:
            self._controller.found()
            for piece in pieces:
                events = parser.feed(piece)
                if events:
                    self._take(events)
        if self._state is None:
            raise self._controller.unreachable("it has closed the stream")

    def _take(self, events: list[Event]) -> None:
        lines = [event for event in events if event.name == "message"]
        if lines:
            if self._output is None:
                self._output = Output(self._many_ranks())
            for item in json.loads(f"[{','.join([event.data for event in lines])}]"):
                self._show(self._output, item)
            self._output.flush()
            self._last_id = lines[-1].id or self._last_id
        if events[-1].name == "end":
            self._state = str(json.loads(events[-1].data)["state"])

    def _show(self, output: Output, item: dict[str, Any]) -> None:
        if item["attempt"] != self._attempt:
            output.finish()  # what an earlier attempt has begun will not end
            self._attempt = item["attempt"]
        output.write(item["rank"], item["stream"], item["text"])
