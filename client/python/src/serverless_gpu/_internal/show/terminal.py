# SPDX-License-Identifier: Apache-2.0
"""Shows a job on a terminal: output and messages line by line, and below them one line of progress, which is rewritten in place and never
kept. It uses only carriage returns and spaces, so that any terminal can show it.
"""

from __future__ import annotations

import shutil
import sys
from typing import Callable

from serverless_gpu._internal.api.follow import Item
from serverless_gpu._internal.messages import Messages
from serverless_gpu._internal.show.board import Board, Progress
from serverless_gpu._internal.show.printer import Printer

CELLS = 24  # of the bar


def bar(progress: Progress, columns: int) -> str:
    """Return the progress line, at most `columns` characters long: "[#####-----]  50% epoch 1"."""
    parts = []
    if progress.fraction is not None:
        full = round(progress.fraction * CELLS)
        parts.append(f"[{'#' * full}{'-' * (CELLS - full)}] {progress.fraction:4.0%}")
    parts.append("".join(character if character.isprintable() else " " for character in progress.text or ""))
    return " ".join(part for part in parts if part)[:columns]


class Terminal:
    """Shows one job on the current stdout and stderr; the progress line is on stderr."""

    shows_state = False

    def __init__(self, messages: Messages, count_ranks: Callable[[], int]):
        self._messages = messages
        self._printer = Printer(count_ranks)
        self._shown = ""
        self._whole = True  # whether the last output has ended its line, so that another may follow

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
        """Show the progress line, if there is progress and the last line of output is complete."""
        progress = board.facts().progress
        if progress is None or not self._whole:
            return
        line = bar(progress, shutil.get_terminal_size().columns - 1)
        if line != self._shown:
            sys.stderr.write(f"\r{line.ljust(len(self._shown))}\r")
            sys.stderr.flush()
            self._shown = line

    def finish(self, board: Board, state: str) -> None:
        """Show unfinished lines of output and remove the progress line."""
        self._clear()
        self._printer.finish()

    def leave(self, board: Board) -> None:
        """Remove the progress line."""
        self._clear()

    def _clear(self) -> None:
        if self._shown:
            sys.stderr.write(f"\r{' ' * len(self._shown)}\r")
            sys.stderr.flush()
            self._shown = ""
