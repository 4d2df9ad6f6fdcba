# SPDX-License-Identifier: Apache-2.0
"""Why a job waits, what one would meet that is not submitted yet, and who would have to go: in REST, gpuctl and Python."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Cluster, Problem, run_gpuctl
from serverless_gpu import distributed
from serverless_gpu.planner import plan

HANG = ["python", "-S", "-c", "import signal; print('up', flush=True); signal.pause()"]


@pytest.fixture
def busy(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """A job that runs on three of four slots, and one that waits for all."""
    runs = cluster.api.submit(HANG, gpus=3, priority=1, time_limit_s=3600)
    cluster.wait_state(runs, "RUNNING")
    waits = cluster.api.submit(["true"], gpus=4, time_limit_s=600)
    yield runs, waits
    for job in (waits, runs):
        cluster.api.post(f"/v1/jobs/{job}/cancel", {})
        cluster.api.wait(job)


@pytest.fixture
def gpuctl(cluster: Cluster, tmp_path: Path) -> Callable[..., Any]:
    token = tmp_path / "token"
    token.write_text(str(cluster.api.token))
    token.chmod(0o600)
    environment = {"GPUCTL_URL": f"http://{cluster.api.address}", "GPUCTL_TOKEN_FILE": str(token), "NO_COLOR": "1"}
    return lambda *arguments: run_gpuctl(*arguments, env=environment)


def test_a_job_that_waits_is_explained_in_numbers(cluster: Cluster, busy: tuple[str, str]) -> None:
    runs, waits = busy
    told = cluster.api.get(f"/v1/jobs/{waits}/explanation")
    assert (told["id"], told["state"]) == (waits, "QUEUED")
    assert told["reason"]["code"] == "NODES_BUSY"
    assert told["reason"]["text"].startswith(f"waits for 4 GPUs: 1 is free, 3 more when job {runs} ends, which has run for ")
    assert told["nodes"]["total"] == 2 and told["nodes"]["failed"][0]["test"] == "busy"
    assert told["turn"]["ahead"] == 0 and told["turn"]["estimate_s"] == 600
    assert told["start"]["earliest_at"] <= told["start"]["at"] <= told["start"]["latest_at"]
    assert told["smallest_change"]["field"] == "gpus" and told["smallest_change"]["value"] == 1
    assert f"(gpuctl explain {waits})" in cluster.api.job(waits)["reason"]


def test_what_was_advised_starts_at_once(cluster: Cluster, busy: tuple[str, str]) -> None:
    told = cluster.api.get(f"/v1/jobs/{busy[1]}/explanation")["smallest_change"]
    cluster.api.post(f"/v1/jobs/{busy[1]}/cancel", {})
    job = cluster.api.submit(["true"], **{told["field"]: told["value"]})
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"


def test_only_its_owner_hears_of_a_job_and_none_of_an_ended_one(cluster: Cluster, busy: tuple[str, str]) -> None:
    stranger = cluster.user("stranger")
    for path in (f"/v1/jobs/{busy[1]}/explanation", f"/v1/jobs/{busy[1]}/preemption"):
        with pytest.raises(Problem) as refused:
            stranger.get(path)
        assert refused.value.status == 404
    with pytest.raises(Problem) as refused:
        stranger.post(f"/v1/jobs/{busy[0]}/preemption", {})
    assert refused.value.status == 404
    ended = cluster.api.submit(["true"], gpus=1, time_limit_s=60)
    cluster.api.wait(ended)
    with pytest.raises(Problem) as refused:
        cluster.api.get(f"/v1/jobs/{ended}/explanation")
    assert refused.value.status == 409


def test_a_plan_says_what_a_submission_would_meet_and_stores_nothing(cluster: Cluster, busy: tuple[str, str]) -> None:
    before = cluster.api.get("/v1/jobs")["jobs"][0]["id"]
    told = cluster.api.post("/v1/plan", {"command": ["true"], "gpus": 4})
    assert told["admitted"] is True and told["reason"]["code"] == "BEHIND"
    refused = cluster.api.post("/v1/plan", {"command": ["true"], "gpus": 5})
    with pytest.raises(Problem) as problem:
        cluster.api.submit(["true"], gpus=5)
    assert refused["admitted"] is False and refused["start"] is None
    assert refused["refusal"] == {name: problem.value.body[name] for name in ("code", "field", "detail", "hint")}
    with pytest.raises(Problem) as problem:
        cluster.api.post("/v1/plan", {"command": ["true"], "gpus": "many"})
    assert problem.value.status == 422 and problem.value.body["field"] == "gpus"
    assert cluster.api.get("/v1/jobs")["jobs"][0]["id"] == before


def test_gpuctl_explains_plans_and_rehearses_in_words(cluster: Cluster, busy: tuple[str, str], gpuctl: Callable[..., Any]) -> None:
    runs, waits = busy
    told = gpuctl("explain", waits[:8])
    assert told.returncode == 0, told.stderr
    lines = {line[:8].strip(): line[8:] for line in told.stdout.splitlines()}
    assert list(lines) == ["job", "why", "start", "change", "turn", "runs", "nodes"]
    assert lines["job"] == f"{waits} is QUEUED" and lines["why"].endswith("(NODES_BUSY)")
    assert lines["change"] == "with 1 GPU instead of 4 it would start now"
    assert "in about 59 min" in lines["start"] and "confidence" in lines["start"]
    assert json.loads(gpuctl("explain", waits, "-o", "json").stdout)["reason"]["code"] == "NODES_BUSY"
    planned = gpuctl("plan", "--gpus", "4", "--", "true")
    assert planned.returncode == 0 and "it is queued behind" in planned.stdout, planned.stderr
    refused = gpuctl("plan", "--gpus", "9", "--", "true")
    assert refused.returncode == 1 and refused.stdout.startswith("refused the job needs 9 GPUs"), refused.stderr
    rehearsed = gpuctl("preempt", "--rehearse", waits)
    assert rehearsed.returncode == 0 and "is not enough" in rehearsed.stdout, rehearsed.stderr  # its priority is higher
    assert gpuctl("preempt", "--rehearse", runs).returncode != 0
    assert cluster.api.job(runs)["state"] == "RUNNING"


def test_a_plan_with_a_folder_sends_nothing(cluster: Cluster, gpuctl: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("print('hello')\n")
    told = json.loads(gpuctl("plan", "--bundle", str(folder), "-o", "json", "--", "python", "train.py").stdout)
    assert told["reason"]["code"] == "STAGING"


def test_a_preempted_job_is_requeued_and_runs_again(cluster: Cluster, gpuctl: Callable[..., Any]) -> None:
    job = cluster.api.submit(["sh", "-c", '[ "$GPUCTL_ATTEMPT" = 2 ] || exec sleep 1000'], grace_s=5)
    cluster.wait_state(job, "RUNNING")
    told = gpuctl("preempt", job)
    assert told.returncode == 0, told.stderr
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert cluster.api.events(job).count("requeued") == 1
    causes = [attempt["cause"] for attempt in cluster.api.get(f"/v1/jobs/{job}/attempts")["attempts"]]
    assert "PREEMPTED" in causes


def test_python_explains_and_plans(cluster: Cluster, busy: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tmp_path / "token"
    token.write_text(str(cluster.api.token))
    token.chmod(0o600)
    monkeypatch.setenv("GPUCTL_URL", f"http://{cluster.api.address}")
    monkeypatch.setenv("GPUCTL_TOKEN_FILE", str(token))
    assert plan(gpus=4, remote=True)["reason"]["code"] == "BEHIND"
    train = distributed(gpus=4, remote=True, run_async=True, requirements=False, working_dir=False)(len)
    assert train.plan()["start"]["confidence"] in ("low", "medium", "high")
    call = train.distributed("four")
    assert call.explain()["reason"]["code"] in ("STAGING", "BEHIND")
    call.cancel()
    assert call.wait(60) == "CANCELED"
