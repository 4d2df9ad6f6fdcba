# SPDX-License-Identifier: Apache-2.0
"""Prints the output of the ranks as ordinary output, as it arrives. Lines of several ranks have a prefix, and attempts are never mixed."""

from __future__ import annotations

from typing import Callable

from serverless_gpu._internal.api.follow import Item
from serverless_gpu._internal.show.output import Output


class Printer:
    """Prints the pieces of one job's output."""

    def __init__(self, count_ranks: Callable[[], int]):
        self._count_ranks = count_ranks  # called once, before the first line
        self._output: Output | None = None
        self._attempt = 0

    def take(self, items: list[Item]) -> None:
        """Print the items, except for unfinished lines of several ranks."""
        if self._output is None:
            self._output = Output(self._count_ranks() > 1)
        for item in items:
            if item["attempt"] != self._attempt:
                self._output.finish()  # lines that an earlier attempt left unfinished
                self._attempt = item["attempt"]
            self._output.write(item["rank"], item["stream"], item["text"])
        self._output.flush()

    def finish(self) -> None:
        """Print all unfinished lines."""
        if self._output is not None:
            self._output.finish()
