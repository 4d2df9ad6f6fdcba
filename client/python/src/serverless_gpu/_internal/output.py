# SPDX-License-Identifier: Apache-2.0
"""The output of many ranks, brought into two streams.

With a prefix every line is of one rank and whole, and what a carriage return has overwritten is left out; without one, for a single rank,
every character passes as it is. The order of arrival is kept.
"""

from __future__ import annotations

import sys
from typing import TextIO

LINE_CHARACTERS = 64 * 1024  # a longer line is shown in parts


def _overwritten(line: str) -> str:
    """The line without what a carriage return will have overwritten; one at its end has not yet done so."""
    kept = line.rstrip("\r")
    return kept.rpartition("\r")[2] + line[len(kept) :]


class Output:
    """Shows pieces of output on sys.stdout and sys.stderr as they are at that moment."""

    def __init__(self, prefix: bool):
        self._prefix = prefix
        self._partial: dict[tuple[int, str], str] = {}  # by rank and stream: what has begun and not ended
        self._ready: list[str] = []  # of the stream `_target`
        self._target = "stdout"

    def write(self, rank: int, stream: str, text: str) -> None:
        """Take a piece of what a rank wrote to "stdout" or "stderr"."""
        if stream != self._target:
            self._hand_out()
            self._target = stream
        self._ready.append(self._lines(rank, stream, text) if self._prefix else text)

    def _lines(self, rank: int, stream: str, text: str) -> str:
        key = (rank, stream)
        text = self._partial.pop(key, "") + text
        end = text.rfind("\n")
        rest = _overwritten(text[end + 1 :])
        if len(rest) > LINE_CHARACTERS:
            text, end, rest = f"{text}\n", len(text), ""
        if rest:
            self._partial[key] = rest
        if end < 0:
            return ""
        start, whole = f"[{rank}] ", text[:end]
        if "\r" in whole:
            whole = "\n".join(_overwritten(line).rstrip("\r") for line in whole.split("\n"))
        return start + whole.replace("\n", f"\n{start}") + "\n"

    def flush(self) -> None:
        """Show all whole lines now."""
        self._hand_out()

    def finish(self) -> None:
        """Show what has begun and will not end, each as a line."""
        for rank, stream in list(self._partial):
            self.write(rank, stream, "\n")
        self._hand_out()

    def _hand_out(self) -> None:
        text = "".join(self._ready)
        self._ready.clear()
        if text:
            target: TextIO = sys.stderr if self._target == "stderr" else sys.stdout
            target.write(text)
            target.flush()
