# SPDX-License-Identifier: Apache-2.0
"""Limits the output of a job in a notebook. A notebook server drops messages of any content when a kernel sends more than about a megabyte
a second, and a browser becomes slow with many megabytes. So output beyond the limit is left out, with a note. The last lines are always
shown.
"""

from __future__ import annotations

import threading
import time
from typing import Callable

from serverless_gpu._internal.api.follow import Item
from serverless_gpu._internal.show.tails import Tails

BURST_BYTES = 1024 * 1024  # largest burst
RATE_BYTES = 64 * 1024  # a second in the long run
JOB_BYTES = 4 * 1024 * 1024  # of one job
LINE_BYTES = 8  # overhead of a line: the prefix, and the escapes of JSON
LAST_LINES = 50  # of each rank, shown at the end


class Allowance:
    """The amount that a kernel may send. Any thread may call all methods."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._lock = threading.Lock()
        self._left = float(BURST_BYTES)
        self._at = clock()

    def spend(self, size: int, spare: int = 0) -> bool:
        """Return whether `size` bytes may be sent now, with `spare` bytes left over; if so, count them as sent."""
        with self._lock:
            now = self._clock()
            self._left = min(self._left + (now - self._at) * RATE_BYTES, BURST_BYTES)
            self._at = now
            if size + spare > self._left:
                return False
            self._left -= size
            return True


KERNEL = Allowance()  # shared by all jobs of this process, which share its connection


class RateLimit:
    """Passes output of one job to `show`, or keeps its last lines. Reports omissions to `say`."""

    def __init__(self, job_id: str, show: Callable[[list[Item]], None], say: Callable[[str], None], allowance: Allowance = KERNEL):
        self._job_id = job_id
        self._show = show
        self._say = say
        self._allowance = allowance
        self._spent = 0
        self._withholds = False
        self._lines = 0  # lines left out since output last passed
        self._begun: set[tuple[int, str]] = set()  # streams whose unfinished line was shown
        self._torn: set[tuple[int, str]] = set()  # streams whose unfinished line was left out
        self._tails = Tails()

    def take(self, items: list[Item]) -> None:
        """Show output, or leave it out."""
        passed: list[Item] = []
        for item in items:
            if self._has_room(item):
                if self._withholds:
                    self._resume()
                passed.append(self._mended(item))
            else:
                self._pass_on(passed)
                passed = []
                self._withhold(item)
        self._pass_on(passed)

    def finish(self) -> None:
        """Show the last lines of the output that was left out."""
        if not self._withholds:
            return
        self._tails.finish()
        kept = {rank: tail.last(LAST_LINES, BURST_BYTES // 64) for rank, tail in sorted(self._tails.ranks.items())}
        self._tell(max(self._lines - sum(map(len, kept.values())), 0))
        for rank, lines in kept.items():
            text = "".join(f"{line}\n" for line in lines)
            self._show([{"rank": rank, "stream": "stdout", "attempt": self._tails.attempt, "text": text}])
        self._withholds = False

    def _has_room(self, item: Item) -> bool:
        size = len(item["text"].encode("utf-8", "replace")) + LINE_BYTES * item["text"].count("\n")
        spare = BURST_BYTES // 4 if self._withholds else 0  # so that output resumes with a large piece
        if self._spent + size > JOB_BYTES or not self._allowance.spend(size, spare):
            return False
        self._spent += size
        return True

    def _pass_on(self, items: list[Item]) -> None:
        items = [item for item in items if item["text"]]
        for item in items:
            mark = self._begun.discard if item["text"].endswith("\n") else self._begun.add
            mark((item["rank"], item["stream"]))
        if items:
            self._show(items)

    def _withhold(self, item: Item) -> None:
        self._withholds = True
        self._tails.take([item])
        self._lines += item["text"].count("\n")
        key = (item["rank"], item["stream"])
        if key in self._begun:  # else it would be joined to the text after the omission
            self._pass_on([{**item, "text": "\n"}])
        if item["text"].endswith("\n"):
            self._torn.discard(key)
        else:
            self._torn.add(key)

    def _resume(self) -> None:
        self._withholds = False
        self._tell(self._lines)
        self._lines = 0
        self._tails = Tails()

    def _mended(self, item: Item) -> Item:
        """Return the item without the rest of a line whose beginning was left out."""
        key = (item["rank"], item["stream"])
        if key not in self._torn:
            return item
        _, end, rest = item["text"].partition("\n")
        if end:
            self._torn.discard(key)
        return {**item, "text": rest}

    def _tell(self, lines: int) -> None:
        if lines:
            self._say(f"{lines} line{'' if lines == 1 else 's'} left out here, too much for a notebook: gpuctl logs {self._job_id}")
