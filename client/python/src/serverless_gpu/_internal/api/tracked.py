# SPDX-License-Identifier: Apache-2.0
"""Asks the controller for the MLflow runs of a job, and reports each run in one line. A job without a run gets no line."""

from __future__ import annotations

import threading
from typing import Any, Callable, NamedTuple

from serverless_gpu._internal.api.context import Context
from serverless_gpu._internal.api.controller import Controller
from serverless_gpu._internal.messages import Messages
from serverless_gpu.errors import ControllerError

FIRST_S = 1.0  # from the start of the job to the first request; each further pause is twice as long ...
REST_S = 60.0  # ... up to this. It is also the pause once a run is known, because another attempt has another run


class Run(NamedTuple):
    """A run as it is shown to a person; `url` is "" if no page shows the run."""

    text: str
    url: str


def _spell(run: dict[str, Any]) -> Run:
    text = f"MLflow run {run['run_id']}"
    if run["experiment"] is not None:
        text += f" in experiment {run['experiment']}"
    if run["tracking_uri"] is not None:
        text += f" at {run['tracking_uri']}"
    return Run(text, run["url"] or "")


def line(run: Run) -> str:
    """Return the run in one line of plain text."""
    return f"{run.text}: {run.url}" if run.url else run.text


class Tracked:
    """Asks on a thread until `stop`; reports each run once, from that thread or from the caller of `finish`."""

    def __init__(self, context: Context, job_id: str, tell: Callable[[Run], None]):
        self._controller = Controller(context, Messages(quiet=True))
        self._path = f"/v1/jobs/{job_id}/runs"
        self._tell = tell
        self._told: Run | None = None
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name=f"gpuctl-tracked-{job_id}", daemon=True).start()

    def stop(self) -> None:
        """Stop asking. Does not wait for a request that is under way."""
        self._stopped.set()

    def finish(self, controller: Controller) -> None:
        """Ask a last time, by a controller of the calling thread: the job has ended."""
        self._stopped.set()
        self._ask(controller)

    def _run(self) -> None:
        pause = FIRST_S
        while not self._stopped.wait(pause):
            self._ask(self._controller)
            pause = REST_S if self._told else min(2 * pause, REST_S)

    def _ask(self, controller: Controller) -> None:
        """Ask once. Says nothing if the controller is away or knows no runs."""
        with self._lock:
            try:
                runs = controller.get(self._path)["runs"]
            except ControllerError:
                return
            newest = _spell(runs[0]) if runs else None
            if newest is not None and newest != self._told:
                self._told = newest
                self._tell(newest)
