# SPDX-License-Identifier: Apache-2.0
"""Many calls of one function as the tasks of one array job: what has ended is asked for a page at a time, and each task's result is fetched
once.
"""

from __future__ import annotations

import concurrent.futures
import copy
import math
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any, Callable

from serverless_gpu._internal.api.controller import connect
from serverless_gpu._internal.api.watch import TERMINAL
from serverless_gpu._internal.calls import defaults, failure, results, spec
from serverless_gpu._internal.calls.call import DistributedFunctionCall, named_arguments
from serverless_gpu._internal.calls.job import deadline_of, seconds_left
from serverless_gpu._internal.messages import Messages
from serverless_gpu._internal.pack import packaging, payload
from serverless_gpu._internal.pack.mapped import Mapped
from serverless_gpu.errors import JobFailed, ResultUnreadable
from serverless_gpu.launcher import Options

TASKS = 1_000_000  # of an array
THREADS = 8  # that fetch results
FIRST_PAUSE_S = 0.1  # between two looks at the array
LAST_PAUSE_S = 2.0
SHARE = 4  # pauses are so many times as long as a look takes, at least
BRIEF_CHARACTERS = 80


def _brief(arguments: tuple[Any, ...]) -> str:
    """Return the arguments of a call in a few characters of one line."""
    try:
        text = " ".join(", ".join(map(repr, arguments)).split())
    except Exception:  # a repr may fail
        text = ", ".join(type(argument).__name__ for argument in arguments)
    return text if len(text) <= BRIEF_CHARACTERS else f"{text[: BRIEF_CHARACTERS - 3]}..."


class Failure:
    """Tells the exception of a task that failed from one that a task returned as its value."""

    def __init__(self, error: JobFailed | ResultUnreadable):
        self.error = error


class MapCall(DistributedFunctionCall):
    """The calls of `map` or `starmap` under way: an iterator of their values, and a handle of their array job.

    A call that failed raises its JobFailed where its value would come; the next step of the iterator goes on behind it. `result()` returns
    all values in their order, and `dataframe()` a table of them. `task(number)` is the handle of one call.
    """

    def expect(self, tasks: int, calls: Sequence[tuple[Any, ...]] | None, ordered: bool, return_exceptions: bool) -> None:
        """Say how many calls there are, with which arguments, and how the iterator gives their values."""
        self._tasks = tasks
        self._calls = calls
        self._columns: list[str] = []
        self._ordered = ordered
        self._return_exceptions = return_exceptions
        self._outcomes: dict[int, Any] = {}  # a value, or the exception that stands for it
        self._failures: dict[int, JobFailed | ResultUnreadable] = {}
        self._order: list[int] = []  # numbers of calls, as they ended
        self._given = 0
        self._floor = 0  # calls with smaller numbers have ended
        self._ended = -1  # of the last look
        self._looking = threading.Lock()
        self._fetchers: concurrent.futures.ThreadPoolExecutor | None = None  # between looks they keep their connections

    @classmethod
    def prepare_all(
        cls,
        function: Callable[..., Any],
        options: Options,
        calls: Iterable[Any],
        ordered: bool,
        return_exceptions: bool,
        max_concurrent: int | None,
    ) -> MapCall:
        """Check and pickle the calls, then find the controller. Nothing is submitted yet."""
        listed = list(calls)
        if len(listed) > TASKS:
            raise ValueError(f"values has {len(listed)} items, and an array takes {TASKS}: split them over several calls")
        if max_concurrent is not None and (isinstance(max_concurrent, bool) or not isinstance(max_concurrent, int) or max_concurrent < 1):
            raise ValueError(f"max_concurrent must be a whole number of at least 1, or None for as many as fit, not {max_concurrent!r}")
        columns: list[str] = []
        for number, arguments in enumerate(listed):
            try:
                columns = max(columns, list(named_arguments(function, arguments, {})), key=len)
            except TypeError as error:
                raise TypeError(f"values[{number}]: {error}") from None
        messages = Messages(options.quiet)
        controller = connect(messages)
        options = copy.copy(defaults.resolve(controller, options))
        job = spec.build(options, function, own_host=controller.context.embedded)
        packed = payload.Payload()
        uploads = {}
        if listed:
            packed = payload.pack(Mapped(function, listed), (), {}, {})
            uploads = dict(packaging.pack(job, options, controller.context, messages))
            job["array"] = {"tasks": len(listed), **({} if max_concurrent is None else {"parallel": max_concurrent})}
        call = cls(controller, options, job, packed, messages, uploads)
        call.expect(len(listed), listed, ordered, return_exceptions)
        call._columns = columns
        return call

    def start(self) -> MapCall:
        """Submit the calls and return at once. Without calls there is no job."""
        if self._tasks == 0:
            self.state = "SUCCEEDED"
            return self
        self._options.quiet = True  # nothing shows the output of thousands of tasks
        super().start()
        return self

    # --- what has ended ---

    def _look(self) -> None:
        """Ask once what has ended since the last look, and fetch its results."""
        controller = self._asking()
        view = controller.get(self._path())
        progress = view["array"]
        ended = progress["succeeded"] + progress["failed"] + progress["canceled"]
        over = view["state"] in TERMINAL
        if ended != self._ended or over:
            rows: list[dict[str, Any]] = []
            for row in controller.pages(f"/v1/jobs?array={self.job_id}&limit=200", "jobs", "cursor"):
                if row["state"] in TERMINAL and row["task"] not in self._outcomes:
                    rows.append(row)
                if row["task"] <= self._floor:
                    break
            self._fetch(sorted(rows, key=lambda row: (str(row["ended_at"]), int(row["task"]))))
            self._ended = ended
        if over:
            for number in range(self._tasks):
                if number not in self._outcomes:
                    text = f"{self._named(number)} was not run, because job {self.job_id} ended {view['state']}: {view['reason']}"
                    self._keep(number, Failure(JobFailed(text, job_id=str(self.job_id), state="CANCELED")))
            self._heard(view)
            if self._fetchers is not None:
                self._fetchers.shutdown()
                self._fetchers = None
        while self._floor in self._outcomes:
            self._floor += 1
        failed = f", {len(self._failures)} failed" if self._failures else ""
        self._messages.progress(f"job {self.job_id}: {len(self._outcomes)} of {self._tasks} calls ended{failed}, {progress['running']} run")
        if over:
            self._messages.finish_progress()

    def _fetch(self, rows: list[dict[str, Any]]) -> None:
        if len(rows) <= 1:
            for row in rows:
                self._keep(row["task"], self._value(row))
            return
        self._fetchers = self._fetchers or concurrent.futures.ThreadPoolExecutor(THREADS, "gpuctl-map")
        for row, value in zip(rows, self._fetchers.map(self._value, rows)):
            self._keep(row["task"], value)

    def _keep(self, number: int, outcome: Any) -> None:
        if isinstance(outcome, Failure):
            self._failures[number] = outcome.error
            outcome = outcome.error
        self._outcomes[number] = outcome
        self._order.append(number)

    def _named(self, number: int) -> str:
        return f"call {number}" + (f" ({_brief(self._calls[number])})" if self._calls is not None else "")

    def _value(self, row: dict[str, Any]) -> Any:
        """Return the value of a task that has ended, or the exception that stands for it."""
        controller = self._asking()
        if row["state"] != "SUCCEEDED":
            failed = failure.of(controller, row["id"], self._seal_key)
            failed.args = (f"{self._named(row['task'])}: {failed}",)
            return Failure(failed)
        try:
            values = [results.value(controller, row["id"], found, self._seal_key) for found in results.rows(controller, row["id"])]
        except ResultUnreadable as error:
            return Failure(error)
        return values if len(values) > 1 else values[0]

    def _wait_for(self, enough: Callable[[], bool], deadline: float | None) -> None:
        """Look until enough has ended. Raises TimeoutError at the deadline."""
        pause = FIRST_PAUSE_S
        while not enough():
            with self._looking:
                if enough():
                    return
                begun = time.monotonic()
                before = len(self._outcomes)
                self._look()
                took = time.monotonic() - begun
            if enough():
                return
            if seconds_left(deadline) == 0:
                left = self._tasks - len(self._outcomes)
                raise TimeoutError(f"{left} of {self._tasks} calls of job {self.job_id} have not ended; they run on")
            pause = FIRST_PAUSE_S if len(self._outcomes) > before else min(2 * pause, LAST_PAUSE_S)
            time.sleep(min(max(pause, SHARE * took), seconds_left(deadline) if deadline is not None else math.inf))

    # --- as an iterator ---

    def __len__(self) -> int:
        """Return the number of calls."""
        return self._tasks

    def __iter__(self) -> MapCall:
        return self

    def __next__(self) -> Any:
        if self._given >= self._tasks:
            raise StopIteration
        place = self._given
        self._wait_for(lambda: place in self._outcomes if self._ordered else len(self._order) > place, None)
        self._given += 1
        number = place if self._ordered else self._order[place]
        if number in self._failures and not self._return_exceptions:
            raise self._failures[number]
        return self._outcomes[number]

    # --- as a handle ---

    def result(self, timeout: float | None = None, *, logs: bool = False) -> list[Any]:
        """Wait for the end of all calls and return their values in order. The first failure is raised, unless exceptions are returned.

        A call on several ranks has the list of their values. Raises TimeoutError after `timeout` seconds; the job runs on.
        """
        if logs:
            raise ValueError("logs=True shows one job: take task(NUMBER).result(logs=True)")
        self._wait_for(lambda: len(self._outcomes) == self._tasks, deadline_of(timeout))
        if self._failures and not self._return_exceptions:
            raise self._failures[min(self._failures)]
        return [self._outcomes[number] for number in range(self._tasks)]

    get = result

    def results(self) -> list[Any]:
        """Return the values of all calls in order."""
        return self.result()

    def exception(self, timeout: float | None = None) -> JobFailed | ResultUnreadable | None:  # type: ignore[override]
        """Wait for the end and return the exception of the first call that failed; None if all succeeded."""
        self._wait_for(lambda: len(self._outcomes) == self._tasks, deadline_of(timeout))
        return self._failures[min(self._failures)] if self._failures else None

    def task(self, number: int) -> DistributedFunctionCall:
        """Return the handle of one call, by its number from 0: its logs, metrics and files. The call must have been started."""
        from serverless_gpu._internal.calls.attached import attach

        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < self._tasks:
            raise ValueError(f"number must be a call's, 0 to {self._tasks - 1}, not {number!r}")
        return attach(f"{self.job_id}.{number}")

    def dataframe(self) -> Any:
        """Wait for the end and return a pandas.DataFrame: a row for each call, with columns for its arguments and the column "value".

        With `return_exceptions=True` the column "error" has the exceptions. The column is "result" if the function has a parameter "value".
        Raises ImportError without pandas.
        """
        try:
            import pandas  # type: ignore[import-untyped,unused-ignore]
        except ImportError as error:
            raise ImportError("dataframe() needs pandas: install it in this Python (pip install pandas), or take result()") from error
        values = self.result()
        table: dict[str, list[Any]] = {}
        for place, name in enumerate(self._columns if self._calls is not None else ()):
            table[name] = [call[place] if place < len(call) else None for call in self._calls or ()]
        label = "result" if "value" in table else "value"
        table[label] = [None if number in self._failures else value for number, value in enumerate(values)]
        if self._return_exceptions:
            table["error"] = [self._failures.get(number) for number in range(self._tasks)]
        return pandas.DataFrame(table)


def calls_of(values: Iterable[Any], several: bool) -> Iterable[tuple[Any, ...]]:
    """Return the arguments of each call. Raises TypeError if values cannot be iterated over, or `starmap` has an item that cannot."""
    name = "starmap takes tuples of arguments" if several else "map takes values"
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{name} in a list or another iterable, not {type(values).__name__}")
    if not several:
        return [(value,) for value in values]
    listed = list(values)
    for number, item in enumerate(listed):
        if not isinstance(item, (tuple, list)):
            raise TypeError(f"{name}: values[{number}] is {type(item).__name__}; map takes single values")
    return [tuple(item) for item in listed]
