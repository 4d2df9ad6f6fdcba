# SPDX-License-Identifier: Apache-2.0
"""A terminal: output and messages line by line, and below them one line of progress, which is written anew in place and never kept. It is
made of carriage returns and spaces only, so that any terminal can show it.
"""

from __future__ import annotations

import shutil
import sys
from typing import Callable

from serverless_gpu._internal.board import Board, Progress
from serverless_gpu._internal.follow import Item
from serverless_gpu._internal.messages import Messages
from serverless_gpu._internal.printer import Printer

CELLS = 24  # of the bar


def bar(progress: Progress, columns: int) -> str:
    """The line, not longer than columns: "[#####-----]  50% epoch 1"."""
    parts = []
    if progress.fraction is not None:
        full = round(progress.fraction * CELLS)
        parts.append(f"[{'#' * full}{'-' * (CELLS - full)}] {progress.fraction:4.0%}")
    parts.append("".join(character if character.isprintable() else " " for character in progress.text or ""))
    return " ".join(part for part in parts if part)[:columns]


class Terminal:
    """Shows one job on stdout and stderr as they are at that moment; the line is on stderr."""

    shows_state = False

    def __init__(self, messages: Messages, count_ranks: Callable[[], int]):
        self._messages = messages
        self._printer = Printer(count_ranks)
        self._shown = ""
        self._whole = True  # the last output has ended its line: another may be written there

    def take(self, items: list[Item]) -> None:
        """Show output."""
        self._clear()
        self._printer.take(items)
        self._whole = items[-1]["text"].endswith("\n")

    def note(self, text: str) -> None:
        """Show a line about the job."""
        self._clear()
        self._messages.say(text)
        self._whole = True

    def paint(self, board: Board) -> None:
        """Show the line, where there is progress and a place for it."""
        progress = board.facts().progress
        if progress is None or not self._whole:
            return
        line = bar(progress, shutil.get_terminal_size().columns - 1)
        if line != self._shown:
            sys.stderr.write(f"\r{line.ljust(len(self._shown))}\r")
            sys.stderr.flush()
            self._shown = line

    def finish(self, board: Board, state: str) -> None:
        """Show what has begun and will not end, and no line any more."""
        self._clear()
        self._printer.finish()

    def leave(self, board: Board) -> None:
        """No line any more."""
        self._clear()

    def _clear(self) -> None:
        if self._shown:
            sys.stderr.write(f"\r{' ' * len(self._shown)}\r")
            sys.stderr.flush()
            self._shown = ""
