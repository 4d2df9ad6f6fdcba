# SPDX-License-Identifier: Apache-2.0
"""Merges the output of many ranks into two streams.

With a prefix, each line is complete and from one rank, without text that a carriage return has overwritten. Without a prefix, for a single
rank, every character passes unchanged. The order of arrival is kept.
"""

from __future__ import annotations

import sys
from typing import TextIO

LINE_CHARACTERS = 64 * 1024  # a longer line is shown in parts


def _overwritten(line: str) -> str:
    """Return the line without text that a carriage return has overwritten; one at the end of the line has not done so yet."""
    kept = line.rstrip("\r")
    return kept.rpartition("\r")[2] + line[len(kept) :]


class Output:
    """Writes pieces of output to the current sys.stdout and sys.stderr."""

    def __init__(self, prefix: bool):
        self._prefix = prefix
        self._partial: dict[tuple[int, str], str] = {}  # by rank and stream: unfinished lines
        self._ready: list[str] = []  # output for the stream `_target`
        self._target = "stdout"

    def write(self, rank: int, stream: str, text: str) -> None:
        """Take a piece of a rank's output on "stdout" or "stderr"."""
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
        """Show all complete lines now."""
        self._hand_out()

    def finish(self) -> None:
        """Show all unfinished lines, each as a line."""
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
