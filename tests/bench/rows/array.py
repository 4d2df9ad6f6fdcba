# SPDX-License-Identifier: Apache-2.0
"""Arrays of 100,000 and of 1,000,000 tasks that wait: how long the submission takes and what it costs the controller in memory; tasks of an
array a second to completion on four slots.

There is no peer and no gate.
"""

from __future__ import annotations

import time

from common import Goal, cluster, controller_pid, prepare, resident_kib
from harness import Cluster

GOALS: tuple[Goal, ...] = ()


def waiting(ours: Cluster, tasks: int) -> dict[str, float]:
    """What it costs to submit an array all of whose tasks wait, and to cancel it."""
    before = resident_kib(controller_pid(ours))
    begin = time.perf_counter()
    job = ours.api.post("/v1/jobs", {"gpus": 4, "command": ["true"], "array": {"tasks": tasks}})["id"]
    submitted = time.perf_counter() - begin
    figures = {"submit_ms": round(submitted * 1000, 2), "memory_kib": resident_kib(controller_pid(ours)) - before}
    begin = time.perf_counter()
    ours.api.post(f"/v1/jobs/{job}/cancel")
    ours.api.wait(job)
    return {**figures, "cancel_ms": round((time.perf_counter() - begin) * 1000, 2)}


def through(ours: Cluster, tasks: int) -> float:
    """Tasks a second, from the submission to the end of the last."""
    begin = time.perf_counter()
    job = ours.api.post("/v1/jobs", {"gpus": 1, "command": ["/bin/true"], "array": {"tasks": tasks}})["id"]
    assert ours.api.wait(job, 600)["array"]["succeeded"] == tasks
    return tasks / (time.perf_counter() - begin)


def run() -> dict[str, object]:
    prepare()
    with cluster([4]) as ours:
        hold = ours.api.submit(["sleep", "1000"], gpus=4)
        waiting(ours, 10)
        figures = {f"waiting_{tasks}": waiting(ours, tasks) for tasks in (100_000, 1_000_000)}
        ours.api.post(f"/v1/jobs/{hold}/cancel")
        ours.api.wait(hold)
        through(ours, 20)
        return {**figures, "tasks_per_s_on_4_slots": round(through(ours, 2000), 1)}
