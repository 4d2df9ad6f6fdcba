# SPDX-License-Identifier: Apache-2.0
"""Who used what, through the real programs: it agrees with the attempts, outlives the jobs, and shows nobody what is another's."""

from __future__ import annotations

import csv
import datetime
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Cluster, Problem, eventually, run_gpuctl

NAMES = ("project", "owner", "pool", "gpu_type", "reserved")


@pytest.fixture
def fresh(make_cluster: Callable[..., Cluster]) -> Cluster:
    """A cluster in which nothing has run."""
    return make_cluster(4)


def gate(path: Path) -> list[str]:
    return ["sh", "-c", f"while ! test -e {path}; do sleep 0.01; done"]


def seconds(text: str) -> float:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def held(cluster: Cluster, jobs: list[str]) -> float:
    """GPU seconds of the attempts of these jobs, as their history has them."""
    total = 0.0
    for job in jobs:
        gpus = cluster.api.job(job)["gpus"]
        for attempt in cluster.api.get(f"/v1/jobs/{job}/attempts")["attempts"]:
            total += gpus * (seconds(attempt["ended_at"]) - seconds(attempt["created_at"]))
    return total


def run_jobs(cluster: Cluster, tmp_path: Path) -> list[str]:
    """Four of two people and two projects, of which one fails once."""
    ann, bob = cluster.user("ann"), cluster.user("bob")
    cluster.open_project("vision", "speech")
    once = ["sh", "-c", f"test -e {tmp_path / 'tried'} || {{ touch {tmp_path / 'tried'}; exit 3; }}"]
    jobs = [
        ann.submit(["true"], gpus=2, project="vision"),
        ann.submit(["sleep", "0.2"], project="speech"),
        bob.submit(once, retries=1),
        bob.submit(["true"], project="vision"),
    ]
    for job in jobs:
        assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    return jobs


def test_users_projects_and_types_add_up_to_what_the_attempts_held(fresh: Cluster, tmp_path: Path) -> None:
    jobs = run_jobs(fresh, tmp_path)
    expected = held(fresh, jobs)
    assert expected > 0.2
    for by in (*NAMES, ",".join(NAMES)):
        usage = fresh.api.get(f"/v1/usage?by={by}")
        assert sum(row["gpu_seconds"] for row in usage["usage"]) == pytest.approx(expected, abs=1e-6), by
        assert usage["total"]["gpu_seconds"] == pytest.approx(expected, abs=1e-6)
        assert usage["total"]["attempts"] == 5
    by_owner = {row["owner"]: row for row in fresh.api.get("/v1/usage?by=owner")["usage"]}
    assert by_owner["bob"]["attempts"] == 3
    assert by_owner["ann"]["gpu_seconds"] == pytest.approx(held(fresh, jobs[:2]), abs=1e-6)
    assert [row["project"] for row in fresh.api.get("/v1/usage?by=project&owner=bob")["usage"]] == ["default", "vision"]
    (row,) = fresh.api.get("/v1/usage?by=gpu_type,pool,reserved")["usage"]
    assert (row["gpu_type"], row["pool"], row["reserved"]) == ("cpu", "default", False)


def test_the_use_of_a_job_that_is_removed_stays_also_after_a_restart(fresh: Cluster, tmp_path: Path) -> None:
    jobs = run_jobs(fresh, tmp_path)
    before = fresh.api.get("/v1/usage?by=owner")["usage"]
    for job in jobs:
        fresh.api.call("DELETE", f"/v1/jobs/{job}")
    fresh.controller.kill()
    fresh.start_controller()
    assert fresh.api.get("/v1/usage?by=owner")["usage"] == before


def test_a_job_that_runs_counts_up_to_now(fresh: Cluster, tmp_path: Path) -> None:
    job = fresh.api.submit(gate(tmp_path / "gate"), gpus=2)
    fresh.wait_state(job, "RUNNING")
    first = fresh.api.get("/v1/usage")["total"]
    eventually(lambda: fresh.api.get("/v1/usage")["total"]["gpu_seconds"] > first["gpu_seconds"], "more of it")
    assert first["attempts"] == 0
    (tmp_path / "gate").touch()
    fresh.api.wait(job)
    assert fresh.api.get("/v1/usage")["total"]["gpu_seconds"] == pytest.approx(held(fresh, [job]), abs=1e-6)


def test_each_task_of_an_array_counts_once_for_its_owner_and_project(fresh: Cluster) -> None:
    ann = fresh.user("ann")
    fresh.open_project("sweep")
    spec = {"command": ["sh", "-c", "exit {task}"], "gpus": 1, "project": "sweep", "array": {"tasks": 3}}
    array = ann.post("/v1/jobs", spec)["id"]
    ann.wait(array)
    (row,) = ann.get("/v1/usage?by=project,owner")["usage"]
    assert (row["project"], row["owner"], row["attempts"]) == ("sweep", "ann", 3)
    assert row["gpu_seconds"] == pytest.approx(held(fresh, [f"{array}.{task}" for task in range(3)]), abs=1e-6)


def test_people_see_their_own_use_alone(fresh: Cluster, tmp_path: Path) -> None:
    run_jobs(fresh, tmp_path)
    ann = fresh.user("ann")
    assert [row["owner"] for row in ann.get("/v1/usage?by=owner")["usage"]] == ["ann"]
    with pytest.raises(Problem) as caught:
        ann.get("/v1/usage?owner=bob")
    assert (caught.value.status, caught.value.field) == (403, "owner")
    with pytest.raises(Problem) as caught:
        fresh.user("probe", "monitor").get("/v1/usage")
    assert caught.value.status == 403


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("by=owner,colour", "by"),
        ("step=week", "step"),
        ("since=yesterday", "since"),
        ("since=2000&until=1000", "since"),
        ("owner=a/b", "owner"),
    ],
)
def test_a_wrong_question_names_the_field(cluster: Cluster, query: str, field: str) -> None:
    with pytest.raises(Problem) as caught:
        cluster.api.get(f"/v1/usage?{query}")
    assert (caught.value.status, caught.value.field) == (422, field)


def test_gpuctl_shows_hours_cost_and_csv(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(2, controller=["--prices", "cpu=360000", "--currency", "EUR"])
    jobs = run_jobs(cluster, tmp_path)
    expected = held(cluster, jobs)

    def gpuctl(*words: str) -> str:
        token = cluster.folder / "controller" / "admin.token"
        environment = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token), "NO_COLOR": "1"}
        done = run_gpuctl("usage", *words, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout

    table = gpuctl("--by", "owner,project")
    assert table.splitlines()[0].split() == ["PROJECT", "USER", "GPU", "H", "IDLE", "KWH", "RUNS", "COST"]
    assert f"{expected * 100:.2f} EUR" in table.splitlines()[-1]
    document: dict[str, Any] = json.loads(gpuctl("-o", "json", "--step", "hour"))
    assert document["step_s"] == 3600 and document["currency"] == "EUR"
    rows = list(csv.DictReader(io.StringIO(gpuctl("--by", "owner,reserved", "--csv"))))
    assert sum(float(row["gpu_seconds"]) for row in rows) == pytest.approx(expected, abs=0.01)
    assert {row["reserved"] for row in rows} == {"false"}
    assert gpuctl("--since", "2d", "--until", "1d") == "in all: 0.00 GPU h, 0.00 EUR\n"


def test_a_wrong_price_keeps_the_controller_from_starting_and_is_named(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    cluster.controller.kill()
    cluster.controller.arguments += ["--prices", "H100:2"]
    cluster.controller.start()
    eventually(lambda: not cluster.controller.alive(), "its end")
    assert '"H100:2" is no price' in cluster.controller.said()
