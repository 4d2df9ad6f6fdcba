# SPDX-License-Identifier: Apache-2.0
"""Prints what the ranks write as ordinary output, as it arrives: the lines of many ranks with a prefix, and none of an attempt mixed with
those of the one before.
"""

from __future__ import annotations

from typing import Callable

from serverless_gpu._internal.follow import Item
from serverless_gpu._internal.output import Output


class Printer:
    """Prints the pieces of one job's output."""

    def __init__(self, count_ranks: Callable[[], int]):
        self._count_ranks = count_ranks  # asked once, before the first line
        self._output: Output | None = None
        self._attempt = 0

    def take(self, items: list[Item], last_id: str | None = None) -> None:
        """Print them, but for what begins a line and does not end it."""
        if self._output is None:
            self._output = Output(self._count_ranks() > 1)
        for item in items:
            if item["attempt"] != self._attempt:
                self._output.finish()  # what an earlier attempt has begun will not end
                self._attempt = item["attempt"]
            self._output.write(item["rank"], item["stream"], item["text"])
        self._output.flush()

    def finish(self) -> None:
        """Print what has begun and will not end."""
        if self._output is not None:
            self._output.finish()
