# SPDX-License-Identifier: Apache-2.0
"""Arrays and sweeps: one job for many tasks, as a person submits, watches and ends them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Cluster, Problem, eventually, run_gpuctl

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def gpuctl(cluster: Cluster, tmp_path: Path) -> Run:
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text(cluster.admin_token + "\n")
    return lambda *arguments, **options: run_gpuctl(
        *arguments, "--url", cluster.url, "--token-file", str(token), env={"NO_COLOR": "1"}, **options
    )


def submit(gpuctl: Run, *arguments: str) -> str:
    """The id of a job whose command is a line of shell, the last argument; options of gpuctl come before it."""
    *options, script = arguments
    # Options of the connection stand at the end of a command line, where a command would take them.
    made = gpuctl("submit", *options, "-f", script)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def job_file(folder: Path, script: str) -> str:
    path = folder / "job.json"  # JSON is YAML
    path.write_text(json.dumps({"command": ["sh", "-c", script]}))
    return str(path)


def refusal(function: Callable[[], Any]) -> Problem:
    with pytest.raises(Problem) as caught:
        function()
    return caught.value


def test_twenty_tasks_of_a_sweep_go_over_four_slots_and_one_fails(cluster: Cluster, gpuctl: Run, tmp_path: Path) -> None:
    script = job_file(
        tmp_path, 'echo "$GPUCTL_ARRAY_TASK/$GPUCTL_ARRAY_TASKS lr={lr} batch=$GPUCTL_SWEEP_BATCH name=$NAME"; test {task} -ne 7'
    )
    rates = ",".join(f"0.{digit}0" for digit in range(1, 6))
    job = submit(gpuctl, "--sweep", f"lr={rates}", "--sweep", "batch=32,64,128,256", "--env", "NAME=run-{task}-{batch}", script)
    waited = gpuctl("wait", job)
    assert waited.returncode == 1 and "1 of 20 tasks failed, first task 7: rank 0 on node" in waited.stderr
    view = cluster.api.job(job)
    assert view["state"] == "FAILED" and view["cause"] == "TASK_FAILED"
    assert view["array"] == {
        "tasks": 20, "parallel": None, "placed": 20, "running": 0, "succeeded": 19, "failed": 1, "canceled": 0, "sweep": ["lr", "batch"],
    }  # fmt: skip
    for task in range(20):
        lr, batch = f"0.{task // 4 + 1}0", [32, 64, 128, 256][task % 4]
        logs = gpuctl("logs", f"{job}.{task}")
        assert logs.stdout == f"{task}/20 lr={lr} batch={batch} name=run-{task}-{batch}\n"
    shown = cluster.api.job(f"{job}.7")
    assert (shown["state"], shown["task"], shown["array_id"], shown["exit_code"]) == ("FAILED", 7, job, 1)
    assert shown["sweep"] == {"lr": "0.20", "batch": "256"} and shown["array"] is None
    assert cluster.api.events(job) == ["submitted", "running", "failed"]
    listed = gpuctl("ps", "--all", "--array", job).stdout.splitlines()
    assert "VALUES" in listed[0] and any("lr=0.20 batch=256" in line and " 7 " in line for line in listed[1:]), listed


def test_lists_show_an_array_as_one_job_and_its_tasks_page_by_page(cluster: Cluster, gpuctl: Run, tmp_path: Path) -> None:
    job = submit(gpuctl, "--array", "7%3", job_file(tmp_path, "exit 0"))
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    listed = [view for view in cluster.api.get("/v1/jobs?limit=200")["jobs"] if view["id"] == job or view["array_id"] == job]
    assert [view["id"] for view in listed] == [job] and listed[0]["array"]["succeeded"] == 7
    tasks: list[Any] = []
    page: dict[str, Any] = {"next": ""}
    while page["next"] is not None:
        page = cluster.api.get(f"/v1/jobs?array={job}&limit=3" + (f"&cursor={page['next']}" if page["next"] else ""))
        tasks += page["jobs"]
    assert [view["task"] for view in tasks] == [6, 5, 4, 3, 2, 1, 0]
    table = gpuctl("ps", "--all", "--array", job[:12]).stdout.splitlines()
    assert table[0].split()[:2] == ["ID", "TASK"] and [line.split()[1] for line in table[1:]] == ["6", "5", "4", "3", "2", "1", "0"]
    line = next(line for line in gpuctl("ps", "--all").stdout.splitlines() if line.startswith(job))
    assert line.endswith("7/7 done")
    assert "7/7 done; at most 3 at a time" in gpuctl("get", job).stdout
    assert f"3 of array {job}" in gpuctl("get", f"{job[:12]}.3").stdout
    plain = cluster.api.submit(["true"])
    cluster.api.wait(plain)
    assert refusal(lambda: cluster.api.get(f"/v1/jobs?array={plain}")).body["field"] == "array"


def test_a_cancel_ends_what_runs_and_drops_the_rest(cluster: Cluster, gpuctl: Run, tmp_path: Path) -> None:
    job = submit(gpuctl, "--array", "100000", job_file(tmp_path, "exec sleep 1000"))
    eventually(lambda: cluster.api.job(job)["array"]["running"] == 4, "four tasks to run")
    line = next(line for line in gpuctl("ps").stdout.splitlines() if line.startswith(job))
    assert "0/100000 done, 4 running" in line
    missing = refusal(lambda: cluster.api.job(f"{job}.17"))
    assert missing.status == 404 and "has not been placed yet: 4 of 100000 have" in missing.body["detail"]
    assert "the last task of" in refusal(lambda: cluster.api.job(f"{job}.100000")).body["detail"]
    assert gpuctl("cancel", f"{job}.2", "--wait").returncode == 0
    assert cluster.api.job(f"{job}.2")["state"] == "CANCELED"
    eventually(lambda: cluster.api.job(job)["array"]["placed"] == 5, "the next task to take the slot")
    assert gpuctl("cancel", job, "--wait").returncode == 0
    view = cluster.api.job(job)
    assert (view["state"], view["exit_code"]) == ("CANCELED", 130)
    assert view["array"]["canceled"] == 100000 and view["array"]["placed"] == 5 and view["array"]["running"] == 0
    assert "was never placed" in refusal(lambda: cluster.api.job(f"{job}.17")).body["detail"]


def test_an_array_goes_on_after_the_controller_was_killed(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(2)
    folder = tmp_path / "done"
    folder.mkdir()
    script = f"echo x >> {folder}/$GPUCTL_ARRAY_TASK; while ! test -e {folder}/go; do sleep 0.01; done"
    job = cluster.api.post("/v1/jobs", {"gpus": 1, "command": ["sh", "-c", script], "array": {"tasks": 12, "parallel": 2}})["id"]
    eventually(lambda: cluster.api.job(job)["array"]["running"] == 2 and len(list(folder.iterdir())) == 2, "two tasks to run")
    cluster.controller.kill()
    (folder / "go").touch()
    cluster.start_controller()
    view = cluster.api.wait(job)
    assert view["state"] == "SUCCEEDED" and view["array"]["succeeded"] == 12
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"go": "", **{str(task): "x\n" for task in range(12)}}


def test_a_task_that_fails_is_tried_again_by_itself(cluster: Cluster, tmp_path: Path) -> None:
    script = f"test $GPUCTL_ARRAY_TASK -ne 1 || test -e {tmp_path}/again || {{ touch {tmp_path}/again; exit 3; }}"
    job = cluster.api.post("/v1/jobs", {"gpus": 1, "command": ["sh", "-c", script], "array": {"tasks": 3}, "retries": 1})["id"]
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert cluster.api.job(f"{job}.1")["attempt"] == 2 and cluster.api.job(f"{job}.0")["attempt"] == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--array", "0"], '--array "0" is no number of tasks'),
        (["--array", "%3"], '--array "%3" is no number of tasks'),
        (["--array", "3%x"], '--array "3%x" is no number of tasks'),
        (["--sweep", "lr"], '--sweep "lr" names no values'),
        (["--sweep", "lr=1", "--sweep", "lr=2"], "comes twice"),
    ],
)
def test_options_that_say_nothing_are_refused_before_anything_is_sent(gpuctl: Run, tmp_path: Path, options: list[str], words: str) -> None:
    refused = gpuctl("submit", *options, "-f", job_file(tmp_path, "exit 0"))
    assert refused.returncode == 2 and words in refused.stderr


def test_run_is_for_one_job(gpuctl: Run, tmp_path: Path) -> None:
    refused = gpuctl("run", "--array", "3", "-f", job_file(tmp_path, "exit 0"))
    assert refused.returncode != 0 and "gpuctl submit" in refused.stderr
