# SPDX-License-Identifier: Apache-2.0
"""What projects and users may use, through the real programs: limits, quotas, shares, pools that lend."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness import Cluster, Problem, eventually, run_gpuctl
from owners import cluster_of, needs_owners

PROJECT = "/v1/accounts/projects"
USER = "/v1/accounts/users"


def gpuctl(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    token = cluster.folder / "controller" / "admin.token"
    return run_gpuctl(*arguments, env={"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token), "NO_COLOR": "1"})


def gate(path: Path) -> list[str]:
    return ["sh", "-c", f"while ! test -e {path}; do sleep 0.01; done"]


def test_a_job_over_the_cap_waits_while_others_pass_until_there_is_room(cluster: Cluster, tmp_path: Path) -> None:
    cluster.api.call("PUT", f"{PROJECT}/vision", {"max_gpus": {"cpu": 1}})
    first = cluster.api.submit(gate(tmp_path / "gate"), project="vision")
    cluster.wait_state(first, "RUNNING")
    second = cluster.api.submit(["true"], project="vision")
    assert cluster.api.wait(cluster.api.submit(["true"], gpu_type="cpu", project="speech"))["state"] == "SUCCEEDED"
    assert cluster.api.job(second)["state"] == "QUEUED"
    account = cluster.api.get(f"{PROJECT}/vision")
    assert (account["running_jobs"], account["queued_jobs"], account["gpus"]) == (1, 1, 1)
    assert account["use"] == [{"gpu_type": "cpu", "gpus": 1, "entitled": 1, "quota": None, "max_gpus": 1}]
    (tmp_path / "gate").touch()
    assert cluster.api.wait(second)["state"] == "SUCCEEDED"
    cluster.api.call("DELETE", f"{PROJECT}/vision")
    assert cluster.api.get(f"{PROJECT}/vision")["limits"] == {}


def test_what_limits_never_allow_is_refused_with_field_and_remedy(cluster: Cluster) -> None:
    cluster.api.call("PUT", f"{PROJECT}/small", {"max_gpus": {"*": 1}})
    with pytest.raises(Problem) as caught:
        cluster.api.submit(["true"], gpus=2, project="small")
    assert (caught.value.status, caught.value.code, caught.value.field) == (422, "over_limit", "gpus")
    assert "project small may use 1 at once" in caught.value.body["detail"] and caught.value.body["hint"]


@pytest.mark.parametrize(
    ("path", "limits", "field"),
    [
        (f"{PROJECT}/x", {"quota": {"cpu": 0}}, "quota"),
        (f"{PROJECT}/x", {"max_gpus": {"c u": 1}}, "max_gpus"),
        (f"{PROJECT}/x", {"max_gpus": {"cpu": 1, "CPU": 2}}, "max_gpus"),
        (f"{PROJECT}/x", {"max_running_jobs": -1}, "max_running_jobs"),
        (f"{PROJECT}/x", {"gpu_hours": {"hours": 3}}, "gpu_hours"),
        (f"{PROJECT}/x", {"weight": 0}, "weight"),
        (f"{PROJECT}/x", {"max_jobs": 1}, "max_jobs"),
        (f"{USER}/x", {"quota": {"cpu": 1}}, "quota"),
        (f"{PROJECT}/-x", {}, "name"),
        ("/v1/pools/none", {"lend": True}, "name"),
    ],
)
def test_wrong_limits_are_refused_with_the_field(cluster: Cluster, path: str, limits: dict[str, Any], field: str) -> None:
    with pytest.raises(Problem) as caught:
        cluster.api.call("PUT", path, limits)
    assert caught.value.field == field, caught.value.body


def test_users_read_their_own_accounts_and_change_none(cluster: Cluster) -> None:
    anna, bert = cluster.user("anna"), cluster.user("bert")
    cluster.open_project("ours")
    anna.wait(anna.submit(["true"], project="ours"))
    assert {user["name"] for user in anna.get(f"{PROJECT}/ours")["users"]} == {"anna"}
    assert anna.get(f"{USER}/anna")["kind"] == "user"
    for path in (f"{PROJECT}/ours", f"{USER}/anna"):
        with pytest.raises(Problem) as caught:
            bert.get(path)
        assert caught.value.status == 404
    with pytest.raises(Problem) as caught:
        anna.call("PUT", f"{USER}/anna", {"weight": 100})
    assert caught.value.status == 403


def test_limits_use_and_quotas_survive_the_controller(make_cluster: Any, tmp_path: Path) -> None:
    cluster = make_cluster(4)
    cluster.api.call("PUT", f"{PROJECT}/vision", {"quota": {"cpu": 2}, "weight": 2.5, "gpu_hours": {"hours": 100, "period_s": 86400}})
    jobs = [cluster.api.submit(gate(tmp_path / "gate"), gpus=2, project="vision") for _ in range(2)]
    for job in jobs:
        cluster.wait_state(job, "RUNNING")
    before = cluster.api.get(f"{PROJECT}/vision")
    assert before["use"] == [{"gpu_type": "cpu", "gpus": 4, "entitled": 2, "quota": 2, "max_gpus": None}]
    with pytest.raises(Problem) as caught:
        cluster.api.call("PUT", f"{PROJECT}/vision", {"quota": {"cpu": 1}})
    assert (caught.value.status, caught.value.field) == (409, "quota")
    cluster.controller.kill()
    cluster.start_controller()
    after = cluster.api.get(f"{PROJECT}/vision")
    for member in ("limits", "use", "gpus", "running_jobs"):
        assert after[member] == before[member]
    assert cluster.api.call("PUT", f"{PROJECT}/vision", {"quota": {"cpu": 1}, "force": True})["limits"] == {"quota": {"cpu": 1}}
    assert cluster.api.get(f"{PROJECT}/vision")["use"][0]["entitled"] == 0
    (tmp_path / "gate").touch()
    for job in jobs:
        assert cluster.api.wait(job)["state"] == "SUCCEEDED"


def test_gpuctl_sets_shows_and_takes_away(cluster: Cluster) -> None:
    done = gpuctl(cluster, "quotas", "set", "project", "told", "--quota", "A10=8", "--max-gpus", "A10=16", "--max-gpus", "32",
                  "--max-running", "20", "--weight", "2", "--gpu-hours", "100/1d", "-o", "json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    hours = {"hours": 100, "period_s": 86400}
    limits = {"quota": {"A10": 8}, "max_gpus": {"A10": 16, "*": 32}, "max_running_jobs": 20, "gpu_hours": hours, "weight": 2}
    assert json.loads(done.stdout)["limits"] == limits
    done = gpuctl(
        cluster, "quotas", "set", "project", "told", "--max-gpus", "a10=none", "--max-queued", "5", "--gpu-hours", "none", "-o", "json"
    )
    assert json.loads(done.stdout)["limits"] == {
        "quota": {"A10": 8},
        "max_gpus": {"*": 32},
        "max_running_jobs": 20,
        "max_queued_jobs": 5,
        "weight": 2,
    }
    table = gpuctl(cluster, "quotas").stdout
    assert any(
        line.split() == ["project", "told", "0", "of", "20", "0", "of", "5", "-", "A10", "0", "0", "8", "-"] for line in table.splitlines()
    ), table
    assert gpuctl(cluster, "quotas", "unset", "project", "told").returncode == 0
    assert gpuctl(cluster, "quotas", "unset", "project", "told").returncode == 3
    wrong = gpuctl(cluster, "quotas", "set", "project", "told", "--quota", "8")
    assert wrong.returncode == 2 and "A10=8" in wrong.stderr
    assert gpuctl(cluster, "quotas", "set", "pool", "told").returncode == 2


def test_shares_show_projects_and_their_users(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.api.submit(gate(tmp_path / "gate"), project="shared")
    shown = json.loads(gpuctl(cluster, "shares", "-o", "json").stdout)["projects"]
    mine = next(project for project in shown if project["name"] == "shared")
    assert {"share", "target", "delay_s", "used_gpu_hours"} <= set(mine)
    assert [(user["name"], user["share"]) for user in mine["users"]] == [("admin", 1.0)]
    table = gpuctl(cluster, "shares").stdout
    assert "shared" in table and "100.0 %" in table
    (tmp_path / "gate").touch()
    cluster.api.wait(job)


@needs_owners
def test_a_pool_with_isolation_takes_no_agent_that_runs_jobs_as_itself() -> None:
    with cluster_of([1], "--run-as", "owner", "--pool", "walls") as cluster:
        done = gpuctl(cluster, "pools", "set", "walls", "--isolation", "user")
        assert done.returncode == 0 and "isolation of pool walls: user" in done.stdout + done.stderr, done
        assert gpuctl(cluster, "pools").stdout.splitlines()[1].split()[:4] == ["walls", "on-demand", "no", "user"]
        stranger = cluster.add_agent("stranger", 1, "--run-as", "agent")
        said = "pool walls takes only nodes that run jobs as the users of their owners"
        eventually(lambda: said in stranger.said(), "the agent to say why it is refused")
        assert "stranger" not in cluster.nodes()
        assert gpuctl(cluster, "pools", "set", "walls", "--isolation", "none").returncode == 0
        if not stranger.alive():
            stranger.start()
        cluster.wait_ready()


def test_a_reserved_pool_may_lend(make_cluster: Any) -> None:
    cluster = make_cluster(1, agent=["--reserved", "--pool", "kept"])
    lent = gpuctl(cluster, "pools", "set", "kept", "--lend")
    assert lent.returncode == 0, lent.stderr
    assert gpuctl(cluster, "pools").stdout.splitlines()[1].split() == ["kept", "reserved", "yes", "-", "cpu", "1", "1"]
    refused = gpuctl(cluster, "pools", "set", "kept", "--isolation", "user")
    assert refused.returncode == 5 and "does not run jobs as the users of their owners" in refused.stderr, refused
    assert gpuctl(cluster, "pools", "set", "kept", "--isolation", "none").returncode == 0
    cluster.controller.kill()
    cluster.start_controller()
    eventually(lambda: cluster.nodes()["node0"]["state"] == "READY", "the node to be READY")
    assert cluster.api.get("/v1/pools")["pools"][0]["lend"] is True
    assert gpuctl(cluster, "pools", "set", "kept", "--no-lend").returncode == 0
    assert cluster.api.get("/v1/pools")["pools"][0]["lend"] is False
