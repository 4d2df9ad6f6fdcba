# SPDX-License-Identifier: Apache-2.0
"""Keeps the last lines of each of many ranks as a terminal would show them: a carriage return begins the line anew, and colours are left
out. Memory is bounded for each rank.
"""

from __future__ import annotations

import re
from collections import deque

from serverless_gpu._internal.api.follow import Item

LINES = 200  # of a rank
CHARACTERS = 64 * 1024  # of a rank
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.?|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def _shown(line: str) -> str:
    return _CONTROL.sub("", line).rstrip("\r").rpartition("\r")[2]


class Tail:
    """The last lines of one rank."""

    def __init__(self) -> None:
        self.count = 0  # of all lines, including dropped ones
        self._lines: deque[str] = deque()
        self._size = 0
        self._begun = {"stdout": "", "stderr": ""}  # an unfinished line

    def write(self, stream: str, text: str) -> None:
        """Take a piece of the rank's output."""
        *whole, rest = (self._begun[stream] + text).split("\n")
        for line in whole:
            self._add(line)
        self._begun[stream] = rest[-CHARACTERS:]

    def _add(self, line: str) -> None:
        line = _shown(line)[:CHARACTERS]
        self._lines.append(line)
        self._size += len(line) + 1
        self.count += 1
        while len(self._lines) > LINES or self._size > CHARACTERS + 1:
            self._size -= len(self._lines.popleft()) + 1

    def finish(self) -> None:
        """End the unfinished lines: the rank writes nothing more."""
        for stream, text in self._begun.items():
            if text:
                self.write(stream, "\n")

    def bar(self) -> str:
        """Return the line that the rank rewrites in place, as progress bars do; "" if there is none."""
        begun = next((text for text in (self._begun["stderr"], self._begun["stdout"]) if "\r" in text), "")
        return _shown(begun)

    def last(self, lines: int, characters: int) -> list[str]:
        """Return the last lines, as many as are wanted and fit. The last line is cut at its front if it does not fit."""
        chosen: list[str] = []
        for line in reversed(self._lines):
            if len(chosen) == lines or (chosen and len(line) > characters):
                break
            chosen.append(line[-characters:] if characters < len(line) else line)
            characters -= len(line) + 1
        return chosen[::-1]


class Tails:
    """The tails of all ranks that have written output, of the newest attempt only."""

    def __init__(self) -> None:
        self.ranks: dict[int, Tail] = {}
        self.attempt = 0

    def take(self, items: list[Item]) -> None:
        """Take pieces of output."""
        for item in items:
            if item["attempt"] != self.attempt:
                self.attempt = item["attempt"]
                self.ranks.clear()
            self.ranks.setdefault(item["rank"], Tail()).write(item["stream"], item["text"])

    def bar(self) -> str:
        """Return the progress bar of the lowest rank that has one, with the rank; "" if no rank has one."""
        bars = ((rank, self.ranks[rank].bar()) for rank in sorted(self.ranks))
        return next((f"[{rank}] {bar}" for rank, bar in bars if bar), "")

    def finish(self) -> None:
        """End the unfinished lines of all ranks: no more output comes."""
        for tail in self.ranks.values():
            tail.finish()
