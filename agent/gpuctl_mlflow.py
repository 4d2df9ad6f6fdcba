# SPDX-License-Identifier: Apache-2.0
"""One run for all ranks of a gang at a tracking server that is not the controller's.

The controller gives each attempt a run of its own, and ranks take it. Another server knows nothing of attempts, so each rank that logs
would make a run. Here the first run that a rank starts is the attempt's: rank 0 makes it and tags it with the attempt, and the others look
for the tag. gpuctl_watch.py, beside which this file lies, calls it once MLflow is imported.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

TAG = "gpuctl.attempt"
PATIENCE_S = 10.0  # for a run of rank 0, which may log nothing
PAUSE_S = 0.1


def shared(fluent: "Any", original: "Callable[..., Any]") -> "Callable[..., Any]":
    """start_run of the module mlflow.tracking.fluent, whose first run is the attempt's."""
    import functools
    import inspect

    started: list[bool] = []

    @functools.wraps(original)
    def start_run(*args: "Any", **named: "Any") -> "Any":
        asked = dict(inspect.signature(original).bind(*args, **named).arguments)
        if started or asked.get("run_id") or asked.get("nested") or not is_apart(fluent):
            return original(*args, **named)
        started.append(True)
        found = None if os.environ["GPUCTL_RANK"] == "0" else find(fluent, asked.get("experiment_id"))
        if found is not None:
            return original(**{**asked, "run_id": found})
        return original(**{**asked, "tags": {**(asked.get("tags") or {}), TAG: attempt()}})

    return start_run


def attempt() -> str:
    return f"{os.environ['GPUCTL_JOB_ID']}/{os.environ['GPUCTL_ATTEMPT']}"


def is_apart(fluent: "Any") -> bool:
    """Whether this process would make a run at a server that gives it none. MLFLOW_RUN_ID="" asks for runs of the ranks' own."""
    import mlflow

    named = "MLFLOW_RUN_ID" in os.environ or "GPUCTL_RUN_ID" in os.environ
    return not named and fluent.active_run() is None and mlflow.get_tracking_uri().startswith(("http:", "https:", "databricks"))


def find(fluent: "Any", experiment: "str | None") -> "str | None":
    """The run of the attempt, once another rank has made it; None where none does in time."""
    import time

    import mlflow

    client = mlflow.MlflowClient()
    place = experiment or fluent._get_experiment_id()
    end = time.monotonic() + PATIENCE_S
    while True:
        runs = client.search_runs([place], f"tags.`{TAG}` = '{attempt()}'", max_results=1, order_by=["attributes.start_time ASC"])
        if runs or time.monotonic() > end:
            return str(runs[0].info.run_id) if runs else None
        time.sleep(PAUSE_S)
