# SPDX-License-Identifier: Apache-2.0
"""Wall clocks that are set while everything runs, by seconds and by ten years: no lease, limit or order changes, recorded times of a job
never fall, and what people gave a time of day follows the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from harness import Api, Cluster, Problem, eventually
from preloaded import WallClock, running

DAY_S = 24 * 3600
YEAR_S = 365 * DAY_S
JUMPS = [10 * YEAR_S, -10 * YEAR_S, 0.9, -3.0, 3600.0]
MORE_JUMPS = [-0.9, 3.0, -3600.0, 30 * YEAR_S, 60.0, -60.0, 0.0]
BEAT_S = 0.5


@pytest.fixture
def clocks(tmp_path: Path) -> tuple[WallClock, WallClock]:
    """Of the controller, and of the node."""
    return WallClock(tmp_path / "controller.shift"), WallClock(tmp_path / "node.shift")


@pytest.fixture
def cluster(tmp_path: Path, clocks: tuple[WallClock, WallClock]) -> Iterator[Cluster]:
    with running(tmp_path / "cluster", [2], clocks[0].environment, clocks[1].environment) as cluster:
        yield cluster


def stays(cluster: Cluster, job: str, seconds: float) -> None:
    """The job runs on in its first attempt, on a node that is heard, for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        view = cluster.api.job(job)
        assert (view["state"], view["attempt"]) == ("RUNNING", 1), view
        assert cluster.nodes()["node0"]["state"] == "READY"


def times_rise(api: Api, job: str) -> None:
    """Times that are recorded of a job never fall; there is no gap in its history."""
    events = api.get(f"/v1/jobs/{job}/events")["events"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    recorded = [event["at"] for event in events]
    assert recorded == sorted(recorded), recorded


def place(api: Api, job: str) -> int:
    """When the job was placed, on a count of all attempts."""
    (attempt,) = api.get(f"/v1/jobs/{job}/attempts")["attempts"]
    return int(attempt["epoch"])


def in_seconds(seconds: float) -> str:
    """That time of the real clock, as RFC 3339 has it."""
    return (datetime.now(timezone.utc) + timedelta(seconds=seconds)).isoformat()


def test_jumps_of_the_wall_clock_change_no_lease_limit_or_order(
    cluster: Cluster, clocks: tuple[WallClock, WallClock], volume: Callable[[int, int], int]
) -> None:
    api = cluster.api
    leased = api.submit(["sleep", "600"], on_disconnect="requeue", lease_s=3, time_limit_s=500)
    cluster.wait_state(leased, "RUNNING")
    jobs = [leased]
    jumps = JUMPS + (JUMPS + MORE_JUMPS) * volume(0, 20)
    for jump in jumps:
        begin = time.monotonic()
        limited = api.submit(["sleep", "600"], time_limit_s=1.2, grace_s=1)
        cluster.wait_state(limited, "RUNNING")
        queued = [api.submit(["true"], name="turn")]
        for clock in clocks:
            clock.shift(jump)
            jump = -jump / 2
        queued.append(api.submit(["true"], name="turn"))
        stays(cluster, leased, 2 * BEAT_S)
        assert api.wait(limited)["state"] == "TIMED_OUT"
        assert 1.2 <= time.monotonic() - begin < 20
        ended = [api.wait(job) for job in queued]
        assert [view["state"] for view in ended] == ["SUCCEEDED"] * 2
        assert place(api, queued[0]) < place(api, queued[1]), "one was overtaken"
        jobs += [limited, *queued]
    stays(cluster, leased, 4.0)  # longer than its lease
    for job in jobs:
        times_rise(api, job)
    account = api.get("/v1/accounts/projects/default")
    assert account["used_gpu_hours"] < 1, "somebody was charged for the jumps"


def test_a_controller_that_starts_in_the_past_goes_on_with_its_jobs(cluster: Cluster, clocks: tuple[WallClock, WallClock]) -> None:
    job = cluster.api.submit(["sleep", "600"], on_disconnect="requeue", lease_s=3)
    cluster.wait_state(job, "RUNNING")
    for jump in (-10 * YEAR_S, 10 * YEAR_S, 0.0):
        cluster.controller.kill()
        clocks[0].shift(jump)
        cluster.start_controller()
        cluster.wait_ready()
        stays(cluster, job, 1.0)
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    assert cluster.api.wait(job)["state"] == "CANCELED"
    times_rise(cluster.api, job)


def test_a_clock_that_leaps_makes_nothing_old(cluster: Cluster, clocks: tuple[WallClock, WallClock]) -> None:
    job = cluster.api.submit(["echo", "stays"])
    cluster.api.wait(job)
    assert not cluster.api.post("/v1/retention", {})["clock_doubtful"]
    clocks[0].shift(10 * YEAR_S)
    newer = cluster.api.submit(["true"])
    cluster.api.wait(newer)
    for _ in range(2):
        went = cluster.api.post("/v1/retention", {})
        assert went["clock_doubtful"] and went["jobs"] == went["logs"] == 0
    cluster.controller.kill()
    clocks[0].shift(20 * YEAR_S)
    cluster.start_controller()
    assert cluster.api.post("/v1/retention", {})["clock_doubtful"]
    assert cluster.api.log(job) == "stays\n" and cluster.api.events(job)[-1] == "succeeded"


def test_output_goes_after_thirty_days_and_its_job_after_ninety(cluster: Cluster, clocks: tuple[WallClock, WallClock]) -> None:
    job = cluster.api.submit(["echo", "hello"])
    cluster.api.wait(job)
    step_days = 5
    gone: dict[str, int] = {}
    for days in range(0, 100, step_days):
        clocks[0].shift(days * DAY_S)
        went = cluster.api.post("/v1/retention", {})
        assert not went["clock_doubtful"]
        for what in ("logs", "jobs"):
            if went[what] > 0:
                gone.setdefault(what, days)
    assert gone["logs"] in (30, 30 + step_days) and gone["jobs"] in (90, 90 + step_days)
    with pytest.raises(Problem) as missing:
        cluster.api.job(job)
    assert missing.value.status == 404


def test_what_people_gave_a_time_of_day_follows_the_wall_clock(cluster: Cluster, clocks: tuple[WallClock, WallClock]) -> None:
    api = cluster.api
    hour = Api(cluster.url, api.post("/v1/tokens", {"role": "user", "owner": "anna", "expires_in_s": 3600})["secret"])
    window = {"nodes": ["node0"], "from": in_seconds(7200), "until": in_seconds(10800), "hard": False, "reason": "cables"}
    api.post("/v1/windows", window)
    waits = api.submit(["true"], time_limit_s=60)
    assert api.wait(waits)["state"] == "SUCCEEDED"
    assert hour.get("/v1/jobs")["jobs"] == []
    clocks[0].shift(7300.0)  # within the window, and after the token
    kept = eventually(lambda: held_back(api), "the window to begin")
    with pytest.raises(Problem) as refused:
        hour.get("/v1/jobs")
    assert refused.value.status == 401
    clocks[0].shift(0.0)
    eventually(lambda: api.job(kept)["state"] == "SUCCEEDED", "the window to be ahead again")
    assert hour.get("/v1/jobs")["jobs"] == []


def held_back(api: Api) -> str | None:
    """A job that the window keeps waiting; None: there is none yet."""
    job = api.submit(["true"], time_limit_s=60)
    end = time.monotonic() + 1.0
    while time.monotonic() < end:
        if api.job(job)["state"] == "SUCCEEDED":
            return None
    return job
