# SPDX-License-Identifier: Apache-2.0
"""The present state of a job that is shown live: its newest view, its progress and the course of a few metrics, in bounded memory however
long it runs.

Reading threads write the state, the displaying thread reads it; nothing here depends on a screen.
"""

from __future__ import annotations

import math
import threading
import time
from typing import Any, NamedTuple

from serverless_gpu._internal.api.tracked import Run

SERIES = 6  # metric names whose course is kept, the first that arrive
SYSTEM = "system/"  # prefix of the names of node measurements; there are hundreds, and none has a course
POINTS = 120  # of a course; with more, every second point is dropped


class Progress(NamedTuple):
    """The progress that a rank reports; the fraction is from 0 to 1, or None if the rank does not know it."""

    rank: int
    fraction: float | None
    text: str | None


class Course(NamedTuple):
    """One metric of one rank: its last value as in JSON, and finite values over its whole time.

    The rank is -1 for metrics from MLflow, which does not know ranks.
    """

    name: str
    rank: int
    last: float | str
    points: list[float]


class Facts(NamedTuple):
    """The state of a board at one moment.

    `view` is the controller's view of the job, {} before the first one. `state_s` are whole seconds since its state was first seen; `at` is
    the moment of these facts, in seconds since 1970. Both advance together.
    """

    view: dict[str, Any]
    state_s: int
    at: float
    progress: Progress | None
    courses: list[Course]
    more_names: int
    run: Run | None = None


class _Series:
    """The values of one metric, thinned out evenly, so that few points span the whole time."""

    def __init__(self, rank: int):
        self.rank = rank
        self.last: float | str = "NaN"
        self.points: list[float] = []
        self._stride = 1
        self._skip = 0

    def add(self, value: float | str) -> None:
        self.last = value
        if isinstance(value, str) or not math.isfinite(value):
            return
        if self._skip > 0:
            self._skip -= 1
            return
        self.points.append(float(value))
        if len(self.points) > POINTS:
            del self.points[1::2]
            self._stride *= 2
        self._skip = self._stride - 1

    def course(self, name: str) -> Course:
        points = list(self.points)
        if not isinstance(self.last, str) and points and points[-1] != self.last:
            points.append(float(self.last))
        return Course(name, self.rank, self.last, points)


class Board:
    """The board of one job. Any thread may call all methods."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._view: dict[str, Any] = {}
        self._mark()
        self._progress: Progress | None = None
        self._series: dict[str, _Series] = {}
        self._more: set[str] = set()
        self._run: Run | None = None

    def _mark(self) -> None:
        self._since, self._since_wall = time.monotonic(), time.time()

    def take_view(self, view: dict[str, Any]) -> None:
        """Take a view of the job. A view older than the last one is ignored; with a new attempt, progress and metrics start again."""
        with self._lock:
            if self._view and (view["seq"], view["attempt"]) < (self._view["seq"], self._view["attempt"]):
                return
            if self._view and view["state"] != self._view["state"]:
                self._mark()
            if self._view and view["attempt"] > self._view["attempt"] >= 1:
                self._progress = None
                self._series.clear()
                self._more.clear()
            self._view = view

    def take_progress(self, told: dict[str, Any]) -> None:
        """Take an event of progress; the progress of the lowest reporting rank is kept."""
        with self._lock:
            if self._progress is None or told["rank"] <= self._progress.rank:
                self._progress = Progress(told["rank"], told["fraction"], told["text"])

    def take_points(self, points: list[dict[str, Any]]) -> None:
        """Take points of metrics; for each name those of the lowest reporting rank are kept."""
        with self._lock:
            for point in points:
                self._take_point(point["name"], -1 if point["rank"] is None else point["rank"], point["value"])

    def _take_point(self, name: str, rank: int, value: float | str) -> None:
        series = self._series.get(name)
        if series is None and (len(self._series) >= SERIES or name.startswith(SYSTEM)):
            if len(self._more) < 1000:
                self._more.add(name)
            return
        if series is None or rank < series.rank:
            series = self._series[name] = _Series(rank)
        if rank == series.rank:
            series.add(value)

    def take_run(self, run: Run) -> None:
        """Take the tracking run of the job."""
        with self._lock:
            self._run = run

    def facts(self) -> Facts:
        """Return the whole state at this moment."""
        with self._lock:
            courses = [series.course(name) for name, series in self._series.items()]
            state_s = int(time.monotonic() - self._since)
            return Facts(self._view, state_s, self._since_wall + state_s, self._progress, courses, len(self._more), self._run)
