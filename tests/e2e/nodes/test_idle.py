# SPDX-License-Identifier: Apache-2.0
"""Jobs whose GPUs are nearly unused: their owners are told, and by the rule of their project they give their GPUs to others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness import Cluster, Problem, eventually, run_gpuctl
from test_gpus import GpuNode

IDLE = ["busy 0 1", "busy 2 0"]
WAITS = ["sh", "-c", 'trap "echo saved; exit 0" USR1; while :; do sleep 0.1; done']


@pytest.fixture
def gpus(make_cluster: Callable[..., Cluster], tmp_path: Path) -> Iterator[GpuNode]:
    node = GpuNode(make_cluster(), tmp_path, "GPU-idle-")
    node.show(*IDLE)
    yield node
    node.show()


def environment(gpus: GpuNode) -> dict[str, str]:
    admin = gpus.cluster.folder / "controller" / "admin.token"
    return {"GPUCTL_URL": gpus.cluster.url, "GPUCTL_TOKEN_FILE": str(admin), "COLUMNS": "250"}


def rule(gpus: GpuNode, *words: str) -> str:
    done = run_gpuctl("quotas", "set", "project", "default", *words, env=environment(gpus))
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def events(gpus: GpuNode, job: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = gpus.api.get(f"/v1/jobs/{job}/events?limit=200")["events"]
    return found


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def kinds(gpus: GpuNode, job: str) -> list[str]:
    return [event["kind"] for event in events(gpus, job)]


def test_an_owner_is_told_in_the_history_and_wherever_the_job_is_shown_until_its_gpus_are_used_again(gpus: GpuNode) -> None:
    assert '"idle_after_s":1' in rule(gpus, "--idle-after", "1s")
    job = gpus.api.submit(WAITS, gpus=1, gpu_type="H100")
    eventually(lambda: "idle" in kinds(gpus, job), "the event")
    told = next(event for event in events(gpus, job) if event["kind"] == "idle")
    view = gpus.api.get(f"/v1/jobs/{job}")
    assert (view["state"], view["reason"], view["idle_since"]) == ("RUNNING", "its GPUs are idle", told["detail"]["since"])
    assert "preempted_at" not in told["detail"] and told["detail"]["since"] < told["at"]
    assert "its GPUs are idle" in run_gpuctl("ps", env=environment(gpus)).stdout
    assert "idle since" in run_gpuctl("get", job, env=environment(gpus)).stdout
    gpus.show("busy 0 80", "busy 2 80")
    eventually(lambda: kinds(gpus, job)[-1] == "busy", "the other event")
    view = gpus.api.get(f"/v1/jobs/{job}")
    assert (view["reason"], view["idle_since"]) == (None, None)
    gpus.api.post(f"/v1/jobs/{job}/cancel")


def test_by_the_rule_of_its_project_an_idle_job_saves_its_work_gives_way_and_is_held_until_it_is_released(gpus: GpuNode) -> None:
    rule(gpus, "--idle-after", "1s", "--idle-action", "preempt", "--idle-grace", "1s")
    job = gpus.api.submit(WAITS, gpus=1, gpu_type="H100", early_signal={"signal": "USR1", "before_s": 60})
    eventually(lambda: gpus.api.get(f"/v1/jobs/{job}")["state"] == "HELD", "the job to be held")
    assert kinds(gpus, job)[-5:] == ["running", "idle", "stopping", "requeued", "held"]
    history = {event["kind"]: event for event in events(gpus, job)}
    early = moment(history["idle"]["detail"]["preempted_at"]) - moment(history["stopping"]["at"])
    assert early <= timedelta(milliseconds=5)  # between the two the wall clock may have been set
    assert "its GPUs were idle for " in history["stopping"]["detail"]["reason"]
    assert history["held"]["detail"] == {"by": "the rule for idle GPUs of its project"}
    assert gpus.api.log(job) == "saved\n"
    assert gpus.view()["free_gpus"] == 3 - len([device for device in gpus.view()["devices"] if "unavailable" in device])
    explained = run_gpuctl("explain", job, env=environment(gpus)).stdout
    assert "the rule for idle GPUs of its project" in explained or "held" in explained.lower(), explained
    gpus.show("busy 0 80", "busy 2 80")
    assert run_gpuctl("release", job, env=environment(gpus)).returncode == 0
    eventually(lambda: kinds(gpus, job)[-1] == "running", "the job to run again")
    gpus.api.post(f"/v1/jobs/{job}/cancel")


def test_rules_that_make_no_sense_are_refused_and_a_rule_is_taken_away_by_none(gpus: GpuNode) -> None:
    for words, said in ((["--idle-action", "kill"], "write tell or preempt"), (["--idle-after", "soon"], "write 30m")):
        refused = run_gpuctl("quotas", "set", "project", "default", *words, env=environment(gpus))
        assert refused.returncode != 0 and said in refused.stderr, refused.stderr
    with pytest.raises(Problem) as of_user:
        gpus.api.call("PUT", "/v1/accounts/users/ann", {"idle_after_s": 5})
    assert "a user has no limit idle_after_s" in str(of_user.value.body)
    rule(gpus, "--idle-after", "2h", "--idle-grace", "1m")
    rule(gpus, "--idle-after", "none", "--idle-grace", "none")
    project = json.loads(run_gpuctl("quotas", "list", "-o", "json", env=environment(gpus)).stdout)
    assert all("idle_after_s" not in account.get("limits", {}) for account in project["accounts"])
