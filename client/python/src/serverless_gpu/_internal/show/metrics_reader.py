# SPDX-License-Identifier: Apache-2.0
"""Reads the stream of a job's metrics and progress onto its board, on a separate thread and connection. The reader of the output reports a
controller that is away.
"""

from __future__ import annotations

import contextlib
import threading

from serverless_gpu._internal.api.context import Context
from serverless_gpu._internal.api.controller import Controller
from serverless_gpu._internal.api.follow import Follow, documents
from serverless_gpu._internal.api.sse import Event
from serverless_gpu._internal.messages import Messages
from serverless_gpu._internal.show.board import Board
from serverless_gpu.errors import ControllerError


class Gauge(Follow):
    """Reads until `stop` is called or the job ends."""

    def __init__(self, context: Context, job_id: str, board: Board, last_id: str | None = None):
        super().__init__(Controller(context, Messages(quiet=True)), f"/v1/jobs/{job_id}/metrics", self._show, last_id)
        self._board = board
        self._thread = threading.Thread(target=self._read, name=f"gpuctl-gauge-{job_id}", daemon=True)
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait, at most timeout_s seconds, until the board has everything from an ended job."""
        self._thread.join(timeout_s)

    def _read(self) -> None:
        with contextlib.suppress(ControllerError):
            self.run()

    def _show(self, events: list[Event], last_id: str | None) -> None:
        for told in documents(events, "progress"):
            self._board.take_progress(told)
        self._board.take_points(documents(events, "metric"))
