# SPDX-License-Identifier: Apache-2.0
"""The cell of a notebook: a card that is updated in place, and the output of the ranks.

The output of few ranks appears as ordinary output. With many ranks only that of rank 0 does, and the others are folded in a list below the
card. card.py renders both.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any, Callable

from serverless_gpu._internal.api.follow import Item
from serverless_gpu._internal.messages import Messages
from serverless_gpu._internal.show import card
from serverless_gpu._internal.show.board import Board
from serverless_gpu._internal.show.printer import Printer
from serverless_gpu._internal.show.rate_limit import RateLimit
from serverless_gpu._internal.show.tails import LINES, Tails

FEW_RANKS = 4  # up to this many ranks, all output is shown as it comes
FOLDS_S = 5.0  # between the first updates of the list of ranks: each update folds entries that a person has unfolded
SLOW_FOLDS_S = 60.0  # between the updates of a job that has run for long
FIRST_VIEW_S = 1.0  # the card waits this long for the first view of the job
FOLDED_LINES = 20  # of a rank while the job runs


@contextlib.contextmanager
def _whole() -> Iterator[None]:
    """Delay an interrupt of the kernel until the end of the block, so that it is known whether a message was sent."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    came: list[Any] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])


class _Output:
    """One output of the cell, which is replaced only when its content changes."""

    def __init__(self, display_id: str):
        self._id = display_id
        self._shown: str | None = None

    def is_shown(self) -> bool:
        """Return whether it has been shown."""
        return self._shown is not None

    def show(self, html: str, text: str) -> None:
        """Add it below the cell's other outputs, or replace it."""
        from IPython.display import display, update_display

        if html == self._shown:
            return
        publish: Callable[..., Any] = display if self._shown is None else update_display
        with _whole():
            publish({"text/html": html, "text/plain": text}, raw=True, display_id=self._id)
            self._shown = html


class Cell:
    """Shows one job in the cell that waits for it."""

    shows_state = True

    def __init__(self, url: str, job_id: str, count_ranks: Callable[[], int]):
        self._url = url
        self._job_id = job_id
        self._ask_ranks = count_ranks
        self._ranks: int | None = None
        self._messages = Messages()
        self._printer = Printer(self._count_ranks)
        self._rate_limit = RateLimit(job_id, self._printer.take, self.note)
        self._tails = Tails()
        self._board = Board()
        self._begun = time.monotonic()
        self._card = _Output(f"gpuctl-{job_id}")
        self._folds = _Output(f"gpuctl-{job_id}-ranks")
        self._folds_s = FOLDS_S
        self._folds_at = 0.0

    def _count_ranks(self) -> int:
        if self._ranks is None:
            self._ranks = self._ask_ranks()
        return self._ranks

    def take(self, items: list[Item]) -> None:
        """Show output: with many ranks only that of rank 0; keep the others' last lines."""
        if not self._card.is_shown():  # its place is above the output
            self._paint_card()
        if self._count_ranks() > 1:
            self._tails.take(items)
        if self._count_ranks() > FEW_RANKS:
            if not self._folds.is_shown():
                self._paint_folds(0)
            items = [item for item in items if item["rank"] == 0]
        self._rate_limit.take(items)

    def note(self, text: str) -> None:
        """Show a line about the job."""
        self._messages.say(text)

    def paint(self, board: Board) -> None:
        """Show the card, and from time to time the list of ranks."""
        self._board = board
        if self._card.is_shown() or board.facts().view or time.monotonic() >= self._begun + FIRST_VIEW_S:
            self._paint_card()
        if self._folds.is_shown() and time.monotonic() >= self._folds_at + self._folds_s and self._tails.ranks.keys() - {0}:
            self._folds_s = min(self._folds_s * 1.5, SLOW_FOLDS_S) if self._folds_at else FOLDS_S
            self._folds_at = time.monotonic()
            self._paint_folds(FOLDED_LINES)

    def finish(self, board: Board, state: str) -> None:
        """Show the end of the job and all last lines."""
        self._board = board
        self._rate_limit.finish()
        self._printer.finish()
        self._tails.finish()
        self._paint_card()
        if self._folds.is_shown():
            self._paint_folds(LINES)

    def leave(self, board: Board) -> None:
        """Show that the card is no longer updated."""
        self._board = board
        self._paint_card("not followed any more")

    def _paint_card(self, remark: str = "") -> None:
        arguments = (self._board.facts(), self._job_id, self._url, remark, self._tails.bar())
        self._card.show(card.card_html(*arguments), card.card_text(*arguments))

    def _paint_folds(self, lines: int) -> None:
        """Show the list of ranks, each with some of its last lines."""
        view = self._board.facts().view
        self._folds.show(card.ranks_html(self._tails, view, self._job_id, lines), card.ranks_text(self._tails, view, self._job_id))
