# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the controller at each system call with which it submits runs of schedules: each run that is due becomes one job."""

from __future__ import annotations

import contextlib
import http.client
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller import Controller, killed_at, traced_here
from harness import Api, eventually
from paper_node import registration
from schedule_clock import jobs_of, set_due, yearly
from slowness import patient

NAMES = ["one", "two", "three"]


def make_schedules(controller: Controller) -> None:
    """Of held jobs, and of one that replaces them; the node of paper is where they might run."""
    api = controller.api()
    secret = api.post("/v1/tokens", {"role": "node", "owner": "nodes"})["secret"]
    controller.api(secret).post("/v1/agent/register", registration("paper", "boot", ["cpu"]))
    for name in NAMES:
        yearly(api, name, missed="last", overlap="replace" if name == "three" else "allow", spec={"hold": True})


def all_have_run(api: Api) -> bool:
    """None is due any more: the next run of each is that of a February 29."""
    return all(schedule["next_at"][5:10] == "02-29" for schedule in api.get("/v1/schedules")["schedules"])


def counts(api: Api) -> dict[str, int]:
    return {name: len(jobs_of(api, name)) for name in NAMES}


@contextlib.contextmanager
def killing(controller: Controller, call: str, number: int) -> Iterator[None]:
    """All threads are traced from here on, and SIGKILL comes instead of one's so many-th call of that name."""
    with subprocess.Popen([*killed_at(call, number), "-p", str(controller.pid)]) as tracer:
        status = Path(f"/proc/{controller.pid}/status")
        eventually(lambda: "TracerPid:\t0\n" not in status.read_text(), "the tracer")
        yield
        tracer.terminate()


def survives(controller: Controller, call: str, number: int) -> bool:
    """Whether all runs were made before the call that was to kill the controller."""
    controller.must_start()
    api = controller.api()

    def over() -> bool:
        try:
            return all_have_run(api)
        except (OSError, http.client.HTTPException):
            return not controller.alive()

    with killing(controller, call, number):
        eventually(over, "the runs, or the end of the controller")
    return controller.alive()


@pytest.mark.parametrize("call", ["pwrite64", "fdatasync"])
def test_a_run_is_one_job_wherever_the_controller_is_killed(call: str, tmp_path: Path, volume: Callable[[int, int], int]) -> None:
    traced_here()
    controller = Controller(tmp_path / "controller")
    killed = 0
    try:
        controller.must_start()
        make_schedules(controller)
        for number in range(1, volume(24, 200)):
            controller.kill()
            set_due(controller.folder, -patient(2))  # the tracer is there by then
            survived = survives(controller, call, number)
            controller.kill()
            controller.must_start()
            api = controller.api()
            eventually(lambda: all_have_run(api), "the runs")  # noqa: B023  (it ends before the next turn)
            assert counts(api) == dict.fromkeys(NAMES, number), f"killed at {call} {number}"
            if survived:
                break
            killed += 1
    finally:
        controller.kill()
    assert killed > 0
