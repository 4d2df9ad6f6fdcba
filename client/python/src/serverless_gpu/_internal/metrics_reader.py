# SPDX-License-Identifier: Apache-2.0
"""Reads the stream of a job's metrics and progress onto its board, on a separate thread and connection. The reader of the output reports a
controller that is away.
"""

from __future__ import annotations

import json
import threading

from serverless_gpu._internal.board import Board
from serverless_gpu._internal.context import Context
from serverless_gpu._internal.controller import BACKOFF_S, Controller, next_pause
from serverless_gpu._internal.messages import Messages
from serverless_gpu._internal.sse import Event, EventParser
from serverless_gpu.errors import ControllerError, ControllerUnreachable


class Gauge:
    """Reads until `stop` is called or the job ends."""

    def __init__(self, context: Context, job_id: str, board: Board, last_id: str | None = None):
        self._controller = Controller(context, Messages(quiet=True))
        self._path = f"/v1/jobs/{job_id}/metrics"
        self._board = board
        self.last_id = last_id  # id of the last event on the board
        self._ended = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"gpuctl-gauge-{job_id}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop writing to the board; the thread ends with the next message, a heartbeat at the latest."""
        self._stopped.set()

    def join(self, timeout_s: float) -> None:
        """Wait, at most timeout_s seconds, until the board has everything from an ended job."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        pause = BACKOFF_S
        while not self._ended and not self._stopped.is_set():
            before = self.last_id
            try:
                self._read_stream()
            except ControllerUnreachable as error:
                self._controller.lost(error)
            except ControllerError:
                return
            pause = BACKOFF_S if self.last_id != before else next_pause(pause)
            if not self._ended:
                self._stopped.wait(pause)

    def _read_stream(self) -> None:
        headers = {"Accept": "text/event-stream"}
        if self.last_id is not None:
            headers["Last-Event-ID"] = self.last_id
        parser = EventParser()
        with self._controller.stream(self._path, headers) as pieces:
            for piece in pieces:
                events = parser.feed(piece)
                if self._stopped.is_set():
                    return
                if events:
                    self._take(events)

    def _take(self, events: list[Event]) -> None:
        for event in events:
            if event.name == "progress":
                self._board.take_progress(json.loads(event.data))
        points = [event.data for event in events if event.name == "metric"]
        if points:
            self._board.take_points(json.loads(f"[{','.join(points)}]"))
        self.last_id = next((event.id for event in reversed(events) if event.id), self.last_id)
        self._ended = events[-1].name == "end"
