# SPDX-License-Identifier: Apache-2.0
"""A submitted job, for any number of threads: its state, its end, its output, its metrics and its files are fetched on demand.

Nothing runs in the background. Each thread has its own connection. If the user's own instance has ended meanwhile, it is started again,
because it keeps the results. call.py handles the function and its values.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

from serverless_gpu._internal.api.context import Context
from serverless_gpu._internal.api.controller import CONNECT_S, REPLY_S, RETRY_S, Controller, of_thread
from serverless_gpu._internal.api.watch import IDLE_S, TERMINAL
from serverless_gpu._internal.calls import kept
from serverless_gpu._internal.messages import Messages
from serverless_gpu.errors import ControllerError, ControllerUnreachable

TAIL_BYTES = 64 * 1024  # the first guess of the size of the last lines
STREAMS = ("stdout", "stderr")
FILES_PAUSE_S = 0.5  # between two looks for files that are on their way


class State(str):
    """The state of a job, a str. It may be called, too: `call.status()` returns the same as `call.status`."""

    def __call__(self) -> str:
        return str(self)


def seconds_left(deadline: float | None) -> float:
    """Return the seconds until a deadline of time.monotonic(); inf for None."""
    return math.inf if deadline is None else max(0.0, deadline - time.monotonic())


def deadline_of(timeout: float | None) -> float | None:
    """Return the time.monotonic() at which a timeout in seconds from now ends; None for None. Raises TypeError or ValueError if it is no
    duration.
    """
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout must be seconds or None, not {timeout!r}")
    if not timeout >= 0:
        raise ValueError(f"timeout must be 0 seconds or more, it is {timeout!r}")
    return time.monotonic() + timeout


def _finite_or_float(value: Any) -> Any:
    """Return the value of a point as a float, where JSON has a text for a value that is not finite."""
    return float(value) if isinstance(value, str) else value


def last_lines(text: str, count: int) -> str:
    """Return the last `count` lines of a text, with their line ends."""
    return "".join(text.splitlines(keepends=True)[-count:]) if count > 0 else ""


class Job:
    """A job by its id. `job_id` and `state`, its last known state, are None until it is submitted."""

    def __init__(self, context: Context, messages: Messages) -> None:
        self.job_id: str | None = None
        self.state: str | None = None
        self._context = context
        self._messages = messages

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of job {self.job_id or '(not submitted)'}: {self.state or 'not asked yet'}>"

    # --- asking ---

    def _asking(self) -> Controller:
        """Return this thread's connection to the job's controller."""
        self._context = self._context.revived()
        return of_thread(self._context, self._messages)

    def _path(self, rest: str = "") -> str:
        if self.job_id is None:
            raise RuntimeError("the call was not submitted yet")
        return f"/v1/jobs/{self.job_id}{rest}"

    def _heard(self, view: dict[str, Any]) -> str:
        """Keep the state of a view, unless a terminal one is known: answers of several threads may cross."""
        if self.state not in TERMINAL:
            self.state = str(view["state"])
        return str(self.state)

    @property
    def status(self) -> State:
        """The state: QUEUED, HELD, BLOCKED, STAGING, PLACED or RUNNING; at the end SUCCEEDED, FAILED, CANCELED or TIMED_OUT."""
        return State(self.state if self.state in TERMINAL else self._heard(self._asking().get(self._path())))

    def done(self) -> bool:
        """Return whether the job has ended, in success or not."""
        return self.status in TERMINAL

    def wait(self, timeout: float | None = None) -> str:
        """Wait until the job has ended and return its state.

        Raises TimeoutError after `timeout` seconds (None: never); the job runs on. Waits for a controller that is away.
        """
        deadline = deadline_of(timeout)
        while self.state not in TERMINAL:
            left = seconds_left(deadline)
            wait_s = min(left, float(IDLE_S))
            path = self._path(f"?wait={round(wait_s * 1000)}ms")
            try:
                reply_s = wait_s + (REPLY_S if left > IDLE_S else CONNECT_S)
                self._heard(self._asking().get(path, patience_s=left, reply_s=reply_s))
            except ControllerUnreachable as error:
                raise self._timed_out(timeout, f"{error}") from error
            if self.state not in TERMINAL and seconds_left(deadline) == 0:
                raise self._timed_out(timeout, f"it is {self.state}")
        return str(self.state)

    def _timed_out(self, timeout: float | None, why: str) -> TimeoutError:
        return TimeoutError(f"job {self.job_id} has not ended within {timeout} s ({why}); it runs on, and cancel() would end it")

    def explain(self) -> dict[str, Any]:
        """Return why the job waits: "reason" in one sentence, the estimated "start", and the "smallest_change" that would start it now.

        Each is None if it does not apply: a job that has its GPUs does not wait. Raises ControllerError for an ended job.
        """
        return dict(self._asking().get(self._path("/explanation")))

    def cancel(self, patience_s: float = RETRY_S) -> bool:
        """Ask for the end of the job on all its nodes. Return False if it has ended already, which does not change it."""
        if self.state in TERMINAL:
            return False
        try:
            self._asking().post(self._path("/cancel"), {}, uuid.uuid4().hex, patience_s=patience_s)
        except ControllerError as error:
            if error.status != 409:
                raise
            return False
        return True

    def hold(self) -> None:
        """Hold the waiting job back. Raises ControllerError if it has GPUs or has ended."""
        self._heard(self._asking().post(self._path("/hold"), {}, uuid.uuid4().hex))

    def release(self) -> None:
        """Let the held job wait for GPUs again. Raises ControllerError if it has ended."""
        self._heard(self._asking().post(self._path("/release"), {}, uuid.uuid4().hex))

    def update(self, *, priority: int | None = None, time_limit_s: float | None = None, if_seq: int | None = None) -> dict[str, Any]:
        """Change the priority or the time limit in seconds (0: none) and return the job's new view.

        A limit counts from the start of the attempt. With `if_seq` nothing changes unless the job's `seq` is still the same; otherwise it
        raises ControllerError with code "precondition_failed". Raises ControllerError for other refusals, too.
        """
        named = {"priority": priority, "time_limit_s": time_limit_s}
        change = {name: value for name, value in named.items() if value is not None}
        view: dict[str, Any] = self._asking().patch(self._path(), change, uuid.uuid4().hex, if_seq)
        self._heard(view)
        return view

    # --- what the ranks wrote ---

    def logs(self, rank: int = 0, stream: str = "stdout", tail: int | None = None) -> str:
        """Return the output of a rank so far on "stdout" or "stderr", from the newest attempt; `tail`: only this many last lines."""
        if stream not in STREAMS:
            raise ValueError(f'stream must be "stdout" or "stderr", not {stream!r}')
        query = f"/logs?rank={int(rank)}&stream={stream}"
        if tail is None:
            return self._text(query)
        size = TAIL_BYTES
        while True:
            text = self._text(f"{query}&tail={size}")
            if text.count("\n") > tail or len(text.encode()) < size:  # one line more than requested, because the first may be cut
                return last_lines(text, tail)
            size *= 4

    def _text(self, query: str) -> str:
        return bytes(self._asking().request("GET", self._path(query)).content).decode("utf-8", "replace")

    def metrics(self, name: str | None = None, rank: int | None = None) -> list[dict[str, Any]]:
        """Return the points that the ranks of the newest attempt have logged so far, in order of arrival, then those logged by MLflow.

        Each is {"rank", "name", "value", "time"}, and "step" if one was given; `name` and `rank` select points. The rank of a point from
        MLflow is None.
        """
        query = "?limit=10000"
        query += "" if name is None else f"&name={quote(name, safe='')}"
        query += "" if rank is None else f"&rank={int(rank)}"
        points = self._asking().pages(self._path(f"/metrics{query}"), "metrics", "cursor")
        return [{**point, "value": _finite_or_float(point["value"])} for point in points]

    # --- what the ranks kept ---

    def files(self) -> list[dict[str, Any]]:
        """Return the files that the ranks of the newest attempt left in $GPUCTL_OUTPUT_DIR: {"path", "size" in bytes, "modified_at",
        "executable", "complete"}, by rank and path. A path is "RANK/..."; the list is empty until the attempt has ended.
        """
        return kept.rows(self._asking(), self._path().rsplit("/", 1)[-1])

    def output(self, folder: str | os.PathLike[str] | None = None, timeout: float | None = None) -> Path:
        """Wait until the job has ended, in success or not, copy the files that its ranks kept into a folder, and return that.

        Each rank's files are in a folder of its number. `folder`: where to, made if it does not exist; None: a new temporary folder. Raises
        TimeoutError if not all files have come after `timeout` seconds (None: never), and ControllerError.
        """
        deadline = deadline_of(timeout)
        self.wait(timeout)
        job_id = self._path().rsplit("/", 1)[-1]
        while not kept.complete(self._asking(), job_id):
            if seconds_left(deadline) == 0:
                raise TimeoutError(f"not all files of job {job_id} have come from their nodes within {timeout} s")
            time.sleep(min(FILES_PAUSE_S, seconds_left(deadline)))
        target = Path(tempfile.mkdtemp(prefix=f"gpuctl-{job_id}-") if folder is None else folder)
        target.mkdir(parents=True, exist_ok=True)
        for row in self.files():
            kept.copy(self._asking(), job_id, row, target)
        return target
