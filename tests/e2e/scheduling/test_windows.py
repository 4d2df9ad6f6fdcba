# SPDX-License-Identifier: Apache-2.0
"""Nodes that go away: agents that say until when they stay, and maintenance windows, through the real programs."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import GPUAGENT, PATIENCE, Cluster, Problem, eventually, run_gpuctl

#: Runs until it is told to end, and ends well then.
OBEYS = ["bash", "-c", "trap 'exit 0' TERM; echo began; while :; do sleep 0.05; done"]


def moment(seconds: float) -> str:
    """RFC 3339 of that many seconds from now."""
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def asked(cluster: Cluster) -> Callable[..., subprocess.CompletedProcess[str]]:
    """gpuctl as the administrator of the cluster."""
    token = str(cluster.folder / "controller" / "admin.token")
    return lambda *arguments: run_gpuctl(*arguments, env={"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": token})


def reason_of_stop(cluster: Cluster, job: str) -> str:
    events = cluster.api.get(f"/v1/jobs/{job}/events")["events"]
    return next(event["detail"]["reason"] for event in events if event["kind"] == "stopping")


def test_what_runs_on_a_node_that_expires_moves_to_another_at_no_cost(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    job = cluster.api.submit(OBEYS, infra_retries=0, grace_s=2)
    cluster.wait_state(job, "RUNNING")
    cluster.add_agent("node1", 1, "--expires-at", "+1h")
    cluster.wait_ready()
    assert cluster.nodes()["node1"]["expires_at"] is not None
    assert cluster.nodes()["node0"]["expires_at"] is None
    assert asked(cluster)("nodes", "expire", "node1", "never").returncode == 0
    assert asked(cluster)("nodes", "expire", "node0", "+4s").returncode == 0
    eventually(lambda: cluster.api.job(job)["attempt"] == 2 and cluster.api.job(job)["state"] == "RUNNING", "the second attempt")
    assert [place["node"] for place in cluster.api.job(job)["nodes"]] == ["node1"]
    assert reason_of_stop(cluster, job).startswith("node node0 expires at 2")
    node = eventually(lambda: (found := cluster.nodes()["node0"])["state"] == "DRAINED" and found, "node0 to be drained")
    assert node["reason"] == "expired"
    refused = asked(cluster)("nodes", "resume", "node0")
    assert refused.returncode != 0 and "nodes expire" in refused.stderr
    assert asked(cluster)("nodes", "expire", "node0", "never").returncode == 0
    assert cluster.nodes()["node0"]["state"] == "READY"


def test_a_soft_window_holds_new_work_and_ends_by_itself(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(2)
    running = cluster.api.submit(OBEYS)
    cluster.wait_state(running, "RUNNING")
    window = cluster.api.post("/v1/windows", {"nodes": ["node0"], "from": moment(-1), "until": moment(4), "reason": "fan"})
    assert cluster.nodes()["node0"]["window"] == {name: window[name] for name in ("from", "until", "hard")}
    waiting = cluster.api.submit(["true"], time_limit_s=1, grace_s=1)
    assert cluster.api.job(waiting)["state"] == "QUEUED"
    assert "leave" in cluster.api.job(waiting)["reason"]
    assert [gpu["state"] for gpu in cluster.api.get("/v1/gpus")["gpus"]] == ["allocated", "drained"]
    supply = cluster.api.get("/v1/overview")["gpus"][0]
    assert (supply["total"], supply["free"], supply["unavailable"]) == (2, 0, 1), "a job cannot get what is left"
    assert cluster.api.wait(waiting)["state"] == "SUCCEEDED"
    assert cluster.api.job(running)["state"] == "RUNNING"
    assert cluster.api.get("/v1/windows") == {"windows": []}
    assert cluster.nodes()["node0"]["window"] is None


def test_a_hard_window_stops_what_runs_and_survives_a_restart(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    job = cluster.api.submit(OBEYS, infra_retries=0, grace_s=1)
    cluster.wait_state(job, "RUNNING")
    made = asked(cluster)("nodes", "window", "add", "--all", "--from", "+6s", "--until", "+9s", "--hard", "--reason", "new fan")
    assert made.returncode == 0, made.stderr
    cluster.controller.kill()
    cluster.start_controller()
    cluster.wait_state(job, "QUEUED")
    assert reason_of_stop(cluster, job).endswith(": new fan")
    eventually(lambda: cluster.api.job(job)["attempt"] == 2 and cluster.api.job(job)["state"] == "RUNNING", "the attempt after the window")


def test_windows_are_added_listed_and_removed(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    gpuctl = asked(cluster)
    one = gpuctl("nodes", "window", "add", "node0", "--from", "+1h", "--until", "+2h").stdout.strip()
    gpuctl("nodes", "window", "add", "--pool", "default", "--from", "+3h", "--until", "2999-01-01T00:00:00Z", "--hard")
    listed = json.loads(gpuctl("nodes", "window", "list", "-o", "json").stdout)["windows"]
    assert [(window["nodes"], window["pool"], window["hard"]) for window in listed] == [(["node0"], None, False), (None, "default", True)]
    shown = gpuctl("nodes", "window").stdout
    assert one in shown and "pool default" in shown
    assert "from 2" in gpuctl("nodes", "list", "-o", "wide").stdout
    long = cluster.api.submit(["true"], time_limit_s=7200)
    assert cluster.api.job(long)["state"] == "QUEUED"
    short = cluster.api.submit(["true"], gpu_type="cpu", time_limit_s=60)
    assert cluster.api.wait(short)["state"] == "SUCCEEDED"
    assert gpuctl("nodes", "window", "remove", one[:8]).returncode == 0
    assert cluster.api.wait(long)["state"] == "SUCCEEDED"
    assert gpuctl("nodes", "window", "remove", one).returncode != 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"all": True, "from": "2030-01-01T00:00:00Z", "until": "2030-01-01T00:00:00Z"}, "until"),
        ({"all": True, "from": "2020-01-01T00:00:00Z", "until": "2020-01-02T00:00:00Z"}, "until"),
        ({"all": True, "from": "tomorrow", "until": "2030-01-01T00:00:00Z"}, "from"),
        ({"nodes": ["nobody"], "from": "2030-01-01T00:00:00Z", "until": "2030-01-02T00:00:00Z"}, "nodes"),
        ({"nodes": [], "from": "2030-01-01T00:00:00Z", "until": "2030-01-02T00:00:00Z"}, "nodes"),
        ({"pool": "nowhere", "from": "2030-01-01T00:00:00Z", "until": "2030-01-02T00:00:00Z"}, "pool"),
        ({"from": "2030-01-01T00:00:00Z", "until": "2030-01-02T00:00:00Z"}, "nodes"),
        ({"all": True, "pool": "default", "from": "2030-01-01T00:00:00Z", "until": "2030-01-02T00:00:00Z"}, "nodes"),
        ({"all": True, "until": "2030-01-02T00:00:00Z"}, "from"),
        ({"all": True, "from": "2030-01-01T00:00:00Z", "until": "2030-01-02T00:00:00Z", "reason": "x" * 256}, "reason"),
    ],
)
def test_windows_that_make_no_sense_are_refused(cluster: Cluster, body: dict[str, Any], field: str) -> None:
    with pytest.raises(Problem) as refusal:
        cluster.api.post("/v1/windows", body)
    assert refusal.value.status == 422 and refusal.value.field == field
    assert cluster.api.get("/v1/windows") == {"windows": []}


def test_users_see_windows_and_make_none(cluster: Cluster) -> None:
    anna = cluster.user("anna")
    assert anna.get("/v1/windows") == {"windows": []}
    for method, path in (("POST", "/v1/windows"), ("DELETE", "/v1/windows/aaaaaaaaaaaaaaaa"), ("POST", "/v1/nodes/node0/expire")):
        with pytest.raises(Problem) as refusal:
            anna.call(method, path, {} if method == "POST" else None)
        assert refusal.value.status == 403


@pytest.mark.parametrize(("at", "field"), [("2020-01-01T00:00:00Z", "at"), ("soon", "at"), (7, "at")])
def test_expiries_that_make_no_sense_are_refused(cluster: Cluster, at: Any, field: str) -> None:
    with pytest.raises(Problem) as refusal:
        cluster.api.post("/v1/nodes/node0/expire", {"at": at})
    assert refusal.value.status == 422 and refusal.value.field == field
    assert cluster.nodes()["node0"]["expires_at"] is None


@pytest.mark.parametrize(("given", "says"), [("2020-01-01T00:00:00Z", "in the past"), ("soon", "is not a time"), ("2h", "is not a time")])
def test_an_agent_refuses_an_expiry_that_makes_no_sense(tmp_path: Path, given: str, says: str) -> None:
    for option, environment in ((["--expires-at", given], {}), ([], {"GPUCTL_EXPIRES_AT": given})):
        ended = subprocess.run(
            [str(GPUAGENT), "--controller", "http://127.0.0.1:1", "--token-file", "none", "--state", str(tmp_path), *option],
            env={**os.environ, **environment}, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert ended.returncode == 2 and says in ended.stderr and "--expires-at" in ended.stderr
