# SPDX-License-Identifier: Apache-2.0
"""A job that was submitted, for any number of threads: its state, its end, its output and its metrics are asked for when they are wanted.

Nothing runs in the background. Each thread has a connection of its own. An instance of one's own that has ended meanwhile is started
again, because it keeps the results. What a job runs, and what becomes of its values, is left to call.py.
"""

from __future__ import annotations

import math
import time
import uuid
from typing import Any
from urllib.parse import quote

from serverless_gpu._internal.context import Context
from serverless_gpu._internal.controller import CONNECT_S, REPLY_S, RETRY_S, Controller, of_thread
from serverless_gpu._internal.messages import Messages
from serverless_gpu._internal.watch import IDLE_S, TERMINAL
from serverless_gpu.errors import ControllerError, ControllerUnreachable

TAIL_BYTES = 64 * 1024  # the first guess of what holds the last lines
STREAMS = ("stdout", "stderr")


class State(str):
    """A state of a job, as a text. It may be called, too: `call.status()` says the same as `call.status`."""

    def __call__(self) -> str:
        return str(self)


def seconds_left(deadline: float | None) -> float:
    """Seconds until a deadline of time.monotonic(), which is never when None."""
    return math.inf if deadline is None else max(0.0, deadline - time.monotonic())


def deadline_of(timeout: float | None) -> float | None:
    """When a timeout of so many seconds from now is over. Raises TypeError and ValueError for what is no duration."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout must be seconds or None, not {timeout!r}")
    if not timeout >= 0:
        raise ValueError(f"timeout must be 0 seconds or more, it is {timeout!r}")
    return time.monotonic() + timeout


def _finite_or_float(value: Any) -> Any:
    """The value of a point: JSON has texts for what is not finite."""
    return float(value) if isinstance(value, str) else value


def last_lines(text: str, count: int) -> str:
    """The last so many lines of a text, with their ends."""
    return "".join(text.splitlines(keepends=True)[-count:]) if count > 0 else ""


class Job:
    """A job by its id. `job_id` and `state`, the last state that was heard of, are None until it is submitted."""

    def __init__(self, context: Context, messages: Messages) -> None:
        self.job_id: str | None = None
        self.state: str | None = None
        self._context = context
        self._messages = messages

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of job {self.job_id or '(not submitted)'}: {self.state or 'not asked yet'}>"

    # --- asking ---

    def _asking(self) -> Controller:
        """This thread's connection to the job's controller."""
        self._context = self._context.revived()
        return of_thread(self._context, self._messages)

    def _path(self, rest: str = "") -> str:
        if self.job_id is None:
            raise RuntimeError("the call was not submitted yet")
        return f"/v1/jobs/{self.job_id}{rest}"

    def _heard(self, view: dict[str, Any]) -> str:
        """Keep the state of a view, unless a later one is known: answers of several threads may cross."""
        if self.state not in TERMINAL:
            self.state = str(view["state"])
        return str(self.state)

    @property
    def status(self) -> State:
        """QUEUED, HELD, BLOCKED, STAGING, PLACED or RUNNING; at its end SUCCEEDED, FAILED, CANCELED or TIMED_OUT."""
        return State(self.state if self.state in TERMINAL else self._heard(self._asking().get(self._path())))

    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self.status in TERMINAL

    def wait(self, timeout: float | None = None) -> str:
        """Wait until the job has ended and return its state.

        `timeout` is in seconds; when it is over TimeoutError is raised, and the job runs on. A controller that is away is waited for.
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
        """Why the job waits: "reason" in one sentence, "start" as it is estimated, and "smallest_change" that would start it now.

        Each is None where there is none: a job that has its GPUs waits for nothing. Raises ControllerError for a job that has ended.
        """
        return dict(self._asking().get(self._path("/explanation")))

    def cancel(self, patience_s: float = RETRY_S) -> bool:
        """Ask for the end of the job, on all its nodes. False where it has ended already, and stays as it is."""
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
        """Keep it back, while it waits. Raises ControllerError when it has GPUs, or has ended."""
        self._heard(self._asking().post(self._path("/hold"), {}, uuid.uuid4().hex))

    def release(self) -> None:
        """Let it wait for GPUs again. Raises ControllerError when it has ended."""
        self._heard(self._asking().post(self._path("/release"), {}, uuid.uuid4().hex))

    def update(self, *, priority: int | None = None, time_limit_s: float | None = None, if_seq: int | None = None) -> dict[str, Any]:
        """Change the priority or the time limit (0: none) and return the job as it then is.

        A limit counts from when the attempt was started. With `if_seq` nothing is changed unless that is the job's `seq` still. Raises
        ControllerError, with code "precondition_failed" in that case.
        """
        named = {"priority": priority, "time_limit_s": time_limit_s}
        change = {name: value for name, value in named.items() if value is not None}
        view: dict[str, Any] = self._asking().patch(self._path(), change, uuid.uuid4().hex, if_seq)
        self._heard(view)
        return view

    # --- what the ranks wrote ---

    def logs(self, rank: int = 0, stream: str = "stdout", tail: int | None = None) -> str:
        """What a rank has written so far to "stdout" or "stderr", of the newest attempt; `tail` is how many lines of its end."""
        if stream not in STREAMS:
            raise ValueError(f'stream must be "stdout" or "stderr", not {stream!r}')
        query = f"/logs?rank={int(rank)}&stream={stream}"
        if tail is None:
            return self._text(query)
        size = TAIL_BYTES
        while True:
            text = self._text(f"{query}&tail={size}")
            if text.count("\n") > tail or len(text.encode()) < size:  # one line more than asked for: the first may be cut
                return last_lines(text, tail)
            size *= 4

    def _text(self, query: str) -> str:
        return bytes(self._asking().request("GET", self._path(query)).content).decode("utf-8", "replace")

    def metrics(self, name: str | None = None, rank: int | None = None) -> list[dict[str, Any]]:
        """The points that the ranks of the newest attempt have logged so far, in the order of arrival, and then those logged by MLflow.

        Each is {"rank", "name", "value", "time"}, and "step" where one was given; `name` and `rank` leave out all others. The rank is None
        of a point that was logged by MLflow.
        """
        query = "?limit=10000"
        query += "" if name is None else f"&name={quote(name, safe='')}"
        query += "" if rank is None else f"&rank={int(rank)}"
        points = self._asking().pages(self._path(f"/metrics{query}"), "metrics", "cursor")
        return [{**point, "value": _finite_or_float(point["value"])} for point in points]
