# SPDX-License-Identifier: Apache-2.0
"""Reports why a job waits and when it starts again, in one line each, only on changes. It reports nothing about a job that starts at once.

It runs beside the stream of the output, on its own thread and connection. The stream notices a controller that is away.
"""

from __future__ import annotations

import re
import threading
from typing import Any, Callable

from serverless_gpu._internal.api.context import Context
from serverless_gpu._internal.api.controller import Controller
from serverless_gpu._internal.messages import Messages
from serverless_gpu.errors import ControllerError

GRACE_S = 0.5  # a job that starts within this time started at once
ASK_S = 5  # interval at which the reason is asked for while a job waits
IDLE_S = 60  # the longest wait that the controller grants
SECONDS = re.compile(r"\b\d+ s\b")  # a duration so far, which is not news
WAITING = ("QUEUED", "HELD", "BLOCKED", "STAGING")  # no attempt is under way, and the reason says why
TERMINAL = ("SUCCEEDED", "FAILED", "CANCELED", "TIMED_OUT")


class Watch:
    """Watches one job until `stop` is called or the job ends. With `tell`, each view goes to it, and only messages about attempts are
    printed.
    """

    def __init__(self, context: Context, job_id: str, messages: Messages, tell: Callable[[dict[str, Any]], None] | None = None):
        self._controller = Controller(context, Messages(quiet=True))
        self._job_id = job_id
        self._messages = messages
        self._tell_view = tell
        self._stopped = threading.Event()
        self._said: str | None = None
        self._waited = False
        self._attempts_told = 0
        threading.Thread(target=self._run, name=f"gpuctl-watch-{job_id}", daemon=True).start()

    def stop(self) -> None:
        """Report nothing any more. Does not wait for a request that is under way."""
        self._stopped.set()

    def _run(self) -> None:
        if self._tell_view is None and self._stopped.wait(GRACE_S):
            return
        query = ""
        while not self._stopped.is_set():
            try:
                view = self._controller.get(f"/v1/jobs/{self._job_id}{query}", reply_s=IDLE_S + 30)
                if self._tell_view is not None and not self._stopped.is_set():
                    self._tell_view(view)
                if view["state"] in TERMINAL:
                    return
                self._tell(view)
                query = f"?wait={ASK_S if view['state'] in WAITING else IDLE_S}&seq={view['seq']}"
            except ControllerError as error:
                if 400 <= error.status < 500 and error.status != 429:
                    return
                self._stopped.wait(ASK_S)

    def _tell(self, view: dict[str, Any]) -> None:
        ended = view["attempt"] - (0 if view["state"] in WAITING else 1)
        if ended > self._attempts_told:
            self._attempts_told = ended
            self._say(f"attempt {ended} ended: {self._reason_of(ended)}; trying again")
            self._waited = True
        if self._tell_view is not None or (view["state"] == "RUNNING" and not self._waited):
            return
        self._waited = view["state"] != "RUNNING"
        places = ", ".join(node["node"] for node in view["nodes"])
        where = view["reason"] if view["state"] in WAITING else f"on {places}" if places else view["reason"]
        text = f"{view['state']}: {where}" if where else str(view["state"])
        plain = SECONDS.sub("", text)
        if plain != self._said:
            self._said = plain
            self._say(text)

    def _say(self, text: str) -> None:
        if not self._stopped.is_set():
            self._messages.say(f"job {self._job_id} {text}")

    def _reason_of(self, number: int) -> str:
        attempts = self._controller.pages(f"/v1/jobs/{self._job_id}/attempts", "attempts", "cursor")
        reasons = (attempt["reason"] or attempt["cause"] for attempt in attempts if attempt["attempt"] == number)
        return next(reasons, None) or "its gang failed"
