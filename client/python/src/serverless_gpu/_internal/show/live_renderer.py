# SPDX-License-Identifier: Apache-2.0
"""Follows a job on a screen that can be updated.

Threads read the output, the metrics and the state of the job. Only the thread that waits for the job displays them, so two threads never
write at once. The screen decides on the appearance.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import Any, NamedTuple, Protocol

from serverless_gpu._internal.api.controller import Controller
from serverless_gpu._internal.api.follow import Follow, Item, documents
from serverless_gpu._internal.api.sse import Event
from serverless_gpu._internal.api.tracked import Run, Tracked, line
from serverless_gpu._internal.api.watch import Watch
from serverless_gpu._internal.messages import Messages
from serverless_gpu._internal.show.board import Board
from serverless_gpu._internal.show.metrics_reader import Gauge
from serverless_gpu.errors import ControllerError

PAUSE_S = 0.25  # shortest time between two updates
LAST_WORDS_S = 2.0  # how long metrics may arrive after the end of the job
INBOX = 64  # batches of output that wait to be shown; more wait at the controller


class Screen(Protocol):
    """The place where a job is shown. One thread calls all methods."""

    shows_state: bool  # the screen shows the state of the job, which then needs no messages

    def take(self, items: list[Item]) -> None:
        """Show output."""

    def note(self, text: str) -> None:
        """Show a line about the job."""

    def paint(self, board: Board) -> None:
        """Show the present state of the board."""

    def finish(self, board: Board, state: str) -> None:
        """Show the final state of an ended job."""

    def leave(self, board: Board) -> None:
        """Show that the job is no longer followed; it may be followed again."""


class _Batch(NamedTuple):
    """A piece of the output stream: output of ranks, a note, or the end of the stream."""

    items: list[Item]
    last_id: str | None = None
    note: str | None = None
    state: str | None = None
    error: BaseException | None = None


class _Inbox(Messages):
    """The queue from the reading threads to the displaying one. After `close` it drops everything."""

    def __init__(self) -> None:
        super().__init__()
        self._queue: queue.Queue[_Batch] = queue.Queue(INBOX)
        self._closed = threading.Event()

    def put(self, batch: _Batch) -> None:
        while not self._closed.is_set():
            try:
                self._queue.put(batch, timeout=0.5)
                return
            except queue.Full:
                continue

    def say(self, text: str) -> None:
        self.put(_Batch([], note=text))

    def take(self, events: list[Event], last_id: str | None) -> None:
        self.put(_Batch(documents(events), last_id))

    def get(self, timeout_s: float) -> _Batch | None:
        try:
            return self._queue.get(timeout=max(timeout_s, 0.001))
        except queue.Empty:
            return None

    def close(self) -> None:
        self._closed.set()


class Live:
    """One job. `run` may be called again after an interrupt; it then continues at the same point."""

    def __init__(self, controller: Controller, job_id: str, screen: Screen):
        self._controller = controller
        self._job_id = job_id
        self._screen = screen
        self._board = Board()
        self._last_id: str | None = None  # id of the last event that was shown
        self._gauged_id: str | None = None
        self._painted = 0.0
        self._told: Run | None = None

    def run(self) -> str:
        """Show the job until it is over; return its state. Raises ControllerError."""
        context, inbox = self._controller.context, _Inbox()
        follow = Follow(Controller(context, inbox), f"/v1/jobs/{self._job_id}/logs", inbox.take, self._last_id)
        threading.Thread(target=_read, args=(follow, inbox), name=f"gpuctl-follow-{self._job_id}", daemon=True).start()
        gauge = Gauge(context, self._job_id, self._board, self._gauged_id)
        watch = Watch(context, self._job_id, inbox, self._board.take_view if self._screen.shows_state else None)
        tracked = Tracked(context, self._job_id, self._board.take_run)
        state = None
        try:
            state = self._show(inbox)
            gauge.join(LAST_WORDS_S)
            tracked.finish(self._controller)
            self._finish(state)
            return state
        finally:
            for reader in (follow, gauge, watch, tracked):
                reader.stop()
            inbox.close()
            self._gauged_id = gauge.last_id
            if state is None:
                self._screen.leave(self._board)

    def _show(self, inbox: _Inbox) -> str:
        """Show the stream of the output until its end; return the state."""
        while True:
            if self._painted + PAUSE_S <= time.monotonic():
                self._tell_run()
                self._screen.paint(self._board)
                self._painted = time.monotonic()
            batch = inbox.get(self._painted + PAUSE_S - time.monotonic())
            if batch is None:
                continue
            if batch.items:
                self._last_id = batch.last_id
                self._screen.take(batch.items)
            if batch.note is not None:
                self._screen.note(batch.note)
            if batch.error is not None:
                raise batch.error
            if batch.state is not None:
                return batch.state

    def _finish(self, state: str) -> None:
        if self._screen.shows_state:
            try:
                view: dict[str, Any] = self._controller.get(f"/v1/jobs/{self._job_id}")
                self._board.take_view(view)
            except ControllerError as error:
                self._screen.note(str(error))
        self._tell_run()
        self._screen.finish(self._board, state)

    def _tell_run(self) -> None:
        """Show the tracking run as a line, unless the screen shows it."""
        run = self._board.facts().run
        if not self._screen.shows_state and run is not None and run != self._told:
            self._told = run
            self._screen.note(f"job {self._job_id} tracks with {line(run)}")


def _read(follow: Follow, inbox: _Inbox) -> None:
    """Thread: read the stream of the output into the inbox, and report its end."""
    try:
        inbox.put(_Batch([], state=follow.run()))
    except BaseException as error:
        inbox.put(_Batch([], error=error))
