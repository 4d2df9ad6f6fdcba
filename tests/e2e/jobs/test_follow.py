# SPDX-License-Identifier: Apache-2.0
"""Jobs that follow others, that are held, and that are changed while they live: through the API, gpuctl and the Python client."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Cluster, Problem, eventually, run_gpuctl

Run = Callable[..., subprocess.CompletedProcess[str]]
HANG = ["python", "-S", "-c", "import signal; print('up', flush=True); signal.pause()"]


@pytest.fixture
def gpuctl(cluster: Cluster) -> Run:
    settings = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}
    return lambda *arguments: run_gpuctl(*arguments, env=settings)


def until(path: Path, code: int = 0) -> list[str]:
    """A program that ends when the file is there."""
    return ["sh", "-c", f"while ! test -e {path}; do sleep 0.02; done; exit {code}"]


def details(cluster: Cluster, job: str, kind: str) -> list[Any]:
    return [event["detail"] for event in cluster.api.get(f"/v1/jobs/{job}/events")["events"] if event["kind"] == kind]


# --- following ---


def test_a_job_waits_for_another_and_says_so_and_then_runs(cluster: Cluster, tmp_path: Path) -> None:
    first = cluster.api.submit(until(tmp_path / "go"))
    next_ = cluster.api.submit(["true"], after=[first])
    last = cluster.api.submit(["true"], after=[{"job": next_, "when": "afterany"}, first])
    cluster.wait_state(first, "RUNNING")
    assert cluster.api.job(next_)["reason"] == f"waits for job {first} to succeed (RUNNING)"
    waits = f"waits for job {first} to succeed (RUNNING), job {next_} to end (BLOCKED)"
    assert cluster.api.job(last)["reason"] == waits
    assert {job["id"] for job in cluster.api.get("/v1/jobs?state=BLOCKED")["jobs"]} == {next_, last}
    (tmp_path / "go").touch()
    assert cluster.api.wait(last)["state"] == "SUCCEEDED"
    assert cluster.api.events(next_) == ["submitted", "blocked", "ready", "placed", "started", "running", "succeeded"]


def test_a_chain_ends_with_the_job_that_failed_and_names_it(cluster: Cluster, tmp_path: Path) -> None:
    first = cluster.api.submit(until(tmp_path / "go", 3))
    next_ = cluster.api.submit(["true"], after=[first])
    last = cluster.api.submit(["true"], after=[next_])
    anyway = cluster.api.submit(["true"], after=[{"job": next_, "when": "after"}])
    (tmp_path / "go").touch()
    view = cluster.api.wait(next_)
    assert (view["state"], view["exit_code"], view["cause"]) == ("CANCELED", 130, "DEPENDENCY")
    assert view["reason"] == f"job {first}, on which it depends, is FAILED"
    assert cluster.api.wait(last)["reason"] == f"job {next_}, on which it depends, is CANCELED"
    assert cluster.api.wait(anyway)["state"] == "SUCCEEDED"
    late = cluster.api.submit(["true"], after=[first])
    assert cluster.api.job(late)["state"] == "CANCELED"


@pytest.mark.parametrize(
    ("after", "field"),
    [
        (["aaaaaaaaaaaaaaaa"], "after[0]"),
        (["short"], "after[0]"),
        ([{"job": "aaaaaaaaaaaaaaaa", "when": "later"}], "after[0].when"),
        ([{"job": "aaaaaaaaaaaaaaaa", "until": "x"}], "after[0].until"),
        ("aaaaaaaaaaaaaaaa", "after"),
        (["aaaaaaaaaaaaaaaa"] * 2, "after[1]"),
    ],
)
def test_what_cannot_be_followed_is_refused_by_its_field(cluster: Cluster, after: Any, field: str) -> None:
    with pytest.raises(Problem) as refused:
        cluster.api.submit(["true"], after=after)
    assert (refused.value.status, refused.value.body["field"]) == (422, field)


def test_a_job_of_somebody_else_cannot_be_followed_and_is_not_told_apart_from_none(cluster: Cluster) -> None:
    theirs = cluster.api.submit(["true"], hold=True)
    ann = cluster.user("ann")
    with pytest.raises(Problem, match=f"there is no job {theirs}"):
        ann.submit(["true"], after=[theirs])
    for verb in ("hold", "release"):
        with pytest.raises(Problem) as refused:
            ann.post(f"/v1/jobs/{theirs}/{verb}")
        assert refused.value.status == 404
    with pytest.raises(Problem) as refused:
        ann.call("PATCH", f"/v1/jobs/{theirs}", {"priority": 1})
    assert refused.value.status == 404
    cluster.api.post(f"/v1/jobs/{theirs}/cancel")
    assert cluster.api.wait(theirs)["state"] == "CANCELED"


def test_who_follows_whom_and_who_is_held_outlives_a_killed_controller(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(2)
    first = cluster.api.submit(until(tmp_path / "go"))
    good = cluster.api.submit(["true"], after=[first])
    held = cluster.api.submit(["true"], hold=True)
    lost = cluster.api.submit(["true"], after=[{"job": held}])
    cluster.api.call("PATCH", f"/v1/jobs/{good}", {"priority": 7, "time_limit_s": 60})
    cluster.controller.kill()
    cluster.start_controller()
    assert [cluster.api.job(job)["state"] for job in (good, held, lost)] == ["BLOCKED", "HELD", "BLOCKED"]
    assert (cluster.api.job(good)["priority"], cluster.api.job(good)["time_limit_s"]) == (7, 60)
    (tmp_path / "go").touch()
    assert cluster.api.wait(good)["state"] == "SUCCEEDED"
    cluster.api.post(f"/v1/jobs/{held}/cancel")
    assert cluster.api.wait(lost)["cause"] == "DEPENDENCY"


# --- holding ---


def test_a_held_job_waits_until_it_is_released(cluster: Cluster) -> None:
    job = cluster.api.submit(["true"], hold=True)
    view = cluster.api.job(job)
    assert (view["state"], view["reason"]) == ("HELD", "held by admin")
    assert cluster.api.post(f"/v1/jobs/{job}/hold")["state"] == "HELD"
    released = cluster.api.post(f"/v1/jobs/{job}/release")
    assert released["state"] in ("QUEUED", "PLACED")
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert cluster.api.events(job)[:4] == ["submitted", "held", "released", "placed"]
    with pytest.raises(Problem) as refused:
        cluster.api.post(f"/v1/jobs/{job}/hold")
    assert (refused.value.status, refused.value.body["code"]) == (409, "conflict")


def test_a_running_job_is_not_held_and_the_answer_says_what_to_do(cluster: Cluster) -> None:
    job = cluster.api.submit(HANG)
    cluster.wait_state(job, "RUNNING")
    with pytest.raises(Problem) as refused:
        cluster.api.post(f"/v1/jobs/{job}/hold")
    assert refused.value.status == 409 and "RUNNING" in refused.value.body["detail"] and "cancel it" in refused.value.body["hint"]
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    cluster.api.wait(job)


# --- asked again ---


def keyed(cluster: Cluster, method: str, path: str, key: str, document: Any) -> tuple[int, dict[str, str], Any]:
    headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
    status, sent, body = cluster.api.raw(method, path, json.dumps(document).encode(), headers)
    return status, sent, json.loads(body)


def test_what_was_granted_is_granted_again_after_the_job_has_ended(cluster: Cluster) -> None:
    """The first answer may have been lost: it was done, and must not be denied."""
    job = cluster.api.submit(["true"], hold=True)
    first = keyed(cluster, "PATCH", f"/v1/jobs/{job}", f"change {job}", {"priority": 3})
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    again = keyed(cluster, "PATCH", f"/v1/jobs/{job}", f"change {job}", {"priority": 3})
    assert (first[0], again[0], again[1]["idempotency-replayed"]) == (200, 200, "true")
    assert again[2] == first[2]
    assert keyed(cluster, "PATCH", f"/v1/jobs/{job}", f"other {job}", {"priority": 3})[0] == 409


def test_what_was_refused_is_not_done_when_the_same_request_comes_late(cluster: Cluster) -> None:
    """A job that has GPUs cannot be held; when it waits again, it could."""
    job = cluster.api.submit(HANG)
    cluster.wait_state(job, "RUNNING")
    path = f"/v1/jobs/{job}/hold"
    first = keyed(cluster, "POST", path, f"hold {job}", {})
    for node in cluster.nodes():
        cluster.api.post(f"/v1/nodes/{node}/drain")
    cluster.api.post(f"/v1/jobs/{job}/preemption")
    cluster.wait_state(job, "QUEUED")
    again = keyed(cluster, "POST", path, f"hold {job}", {})
    assert (first[0], again[0], again[2]) == (409, 409, first[2])
    assert (again[1]["content-type"], again[1]["idempotency-replayed"]) == ("application/problem+json", "true")
    assert keyed(cluster, "POST", path, f"other {job}", {})[2]["state"] == "HELD"
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    for node in cluster.nodes():
        cluster.api.post(f"/v1/nodes/{node}/resume")


# --- changing ---


def test_a_change_rests_on_the_etag_that_its_sender_saw(cluster: Cluster) -> None:
    job = cluster.api.submit(["true"], hold=True, time_limit_s=1.5)
    path = f"/v1/jobs/{job}"
    _, headers, body = cluster.api.raw("GET", path)
    assert headers["etag"] == f'"{json.loads(body)["seq"]}"'
    changed = cluster.api.call("PATCH", path, {"priority": 5, "time_limit_s": None}, {"If-Match": headers["etag"]})
    assert (changed["priority"], changed["time_limit_s"], changed["state"]) == (5, None, "HELD")
    with pytest.raises(Problem) as refused:
        cluster.api.call("PATCH", path, {"priority": 6}, {"If-Match": headers["etag"]})
    problem = refused.value
    assert (problem.status, problem.body["code"]) == (412, "precondition_failed")
    assert f'"{changed["seq"]}"' in problem.body["hint"]
    assert cluster.api.call("PATCH", path, {"priority": 6}, {"If-Match": "*"})["priority"] == 6
    [first, _] = details(cluster, job, "changed")
    assert first == {"by": "admin", "priority": {"from": 0, "to": 5}, "time_limit_s": {"from": 1.5, "to": None}}
    cluster.api.post(f"{path}/cancel")
    with pytest.raises(Problem) as refused:
        cluster.api.call("PATCH", path, {"priority": 1})
    assert refused.value.status == 409


@pytest.mark.parametrize(
    ("change", "match", "status", "field"),
    [
        ({}, None, 422, None),
        ({"name": "x"}, None, 422, "name"),
        ({"priority": 1001}, None, 422, "priority"),
        ({"time_limit_s": -1}, None, 422, "time_limit_s"),
        ({"priority": 1}, "7", 422, "If-Match"),
        ({"priority": 1}, 'W/"7"', 422, "If-Match"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(cluster: Cluster, change: Any, match: str | None, status: int, field: str | None) -> None:
    job = cluster.api.submit(["true"], hold=True)
    with pytest.raises(Problem) as refused:
        cluster.api.call("PATCH", f"/v1/jobs/{job}", change, {"If-Match": match} if match else None)
    assert (refused.value.status, refused.value.body.get("field")) == (status, field)
    cluster.api.post(f"/v1/jobs/{job}/cancel")


def test_a_running_job_gets_a_limit_that_is_over_and_ends(cluster: Cluster) -> None:
    job = cluster.api.submit(HANG)
    cluster.wait_state(job, "RUNNING")
    cluster.api.call("PATCH", f"/v1/jobs/{job}", {"time_limit_s": 0.001})
    view = cluster.api.wait(job)
    assert (view["state"], view["exit_code"]) == ("TIMED_OUT", 124)


# --- gpuctl ---


def test_gpuctl_submits_the_jobs_of_a_file_in_the_order_in_which_they_follow(cluster: Cluster, gpuctl: Run, tmp_path: Path) -> None:
    (tmp_path / "jobs.yaml").write_text(
        f"""\
# what comes last may stand first
---
name: report
command: echo report
after: [train, "prepare:afterany"]
---
name: prepare
command: while ! test -e {tmp_path}/go; do sleep 0.02; done
---
name: train
command: echo train
after: prepare
"""
    )
    ran = gpuctl("submit", "-f", str(tmp_path / "jobs.yaml"))
    assert ran.returncode == 0, ran.stderr
    ids = ran.stdout.split()
    assert [cluster.api.job(job)["name"] for job in ids] == ["prepare", "train", "report"]
    assert cluster.api.job(ids[2])["spec"]["after"] == [{"job": ids[1]}, {"job": ids[0], "when": "afterany"}]
    assert "BLOCKED" in gpuctl("ps").stdout
    (tmp_path / "go").touch()
    assert cluster.api.wait(ids[2])["state"] == "SUCCEEDED"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("name: a\ncommand: x\nafter: [b]\n---\nname: b\ncommand: x\nafter: [a]\n", ":7: jobs b, a and b follow each other"),
        ("name: a\ncommand: x\nafter: a\n---\nname: b\ncommand: x\n", ":3: jobs a and a follow each other"),
        ("name: a\ncommand: x\n---\nname: b\ncommand: x\nafter: [No-Such]\n", ":6: after[0]: no job of yours is called No-Such"),
        ("name: a\ncommand: x\n---\nname: b\ncommand: x\nafter: [zzzzz]\n", ":6: after[0]: no job of yours is called zzzzz, and no job's"),
        ("name: a\ncommand: x\n---\nname: a\ncommand: x\n---\ncommand: x\nafter: a\n", ":8: after[0]: two jobs of the file are named a"),
        ("name: a\ncommand: x\n---\nname: b\ncommand: x\ngpu: 2\n", ":6: gpu is not a known field"),
        ("name: a\ncommand: x\n---\nname: b\ncommand: x\nafter: [a:soon]\n", ":6: after[0].when must be one of"),
    ],
)
def test_gpuctl_submits_nothing_of_a_file_that_cannot_be(cluster: Cluster, gpuctl: Run, tmp_path: Path, text: str, error: str) -> None:
    (tmp_path / "jobs.yaml").write_text(text)
    before = cluster.api.get("/v1/jobs?limit=1")["jobs"]
    ran = gpuctl("submit", "-f", str(tmp_path / "jobs.yaml"))
    assert ran.returncode in (2, 3) and f"jobs.yaml{error}" in ran.stderr, ran.stderr
    assert ran.stdout == "" and cluster.api.get("/v1/jobs?limit=1")["jobs"] == before


def test_gpuctl_holds_releases_and_updates(cluster: Cluster, gpuctl: Run) -> None:
    job = gpuctl("submit", "--hold", "true").stdout.strip()
    follower = gpuctl("submit", "--after", f"{job[:12]}:afterany", "true").stdout.strip()
    assert cluster.api.job(follower)["reason"] == f"waits for job {job} to end (HELD)"
    shown = gpuctl("get", job).stdout
    assert "held by admin" in shown
    assert f"job {follower} is HELD" in gpuctl("hold", follower).stderr
    assert f"job {follower} is BLOCKED" in gpuctl("release", follower).stderr
    updated = gpuctl("update", job[:12], "--priority", "3", "--time-limit", "90m")
    assert updated.returncode == 0 and "priority 3 and a time limit of 1 h 30 m" in updated.stderr, updated.stderr
    assert "no time limit" in gpuctl("update", job, "--time-limit", "none").stderr
    assert gpuctl("update", job).returncode == 2
    assert gpuctl("release", job).returncode == 0
    assert cluster.api.wait(follower)["state"] == "SUCCEEDED"
    ended = gpuctl("hold", job)
    assert ended.returncode == 5 and "has ended" in ended.stderr


def test_gpuctl_run_waits_with_its_job_and_says_why(cluster: Cluster, gpuctl: Run, tmp_path: Path) -> None:
    first = cluster.api.submit(until(tmp_path / "go", 1))
    (tmp_path / "go").touch()
    ran = gpuctl("run", "--after", first, "echo", "never")
    assert ran.returncode == 130 and f"job {first}, on which it depends, is FAILED" in ran.stderr, ran.stderr


# --- Python ---


def test_the_python_client_follows_holds_and_updates(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    from serverless_gpu import distributed
    from serverless_gpu.errors import ControllerError

    monkeypatch.setenv("GPUCTL_URL", cluster.url)
    monkeypatch.setenv("GPUCTL_TOKEN_FILE", str(cluster.folder / "controller" / "admin.token"))
    plain: dict[str, Any] = {"gpus": 1, "remote": True, "run_async": True, "requirements": None, "working_dir": None}
    first = distributed(**plain, hold=True)(lambda: 1).distributed()
    second = distributed(**plain, after=[(first, "afterok")])(lambda: 2).distributed()
    third = distributed(**plain, after=str(second.job_id))(lambda: 3).distributed()
    assert [call.status() for call in (first, second, third)] == ["HELD", "BLOCKED", "BLOCKED"]
    view = first.update(priority=4, time_limit_s=600)
    assert (view["priority"], view["time_limit_s"]) == (4, 600)
    with pytest.raises(ControllerError) as refused:
        first.update(priority=5, if_seq=view["seq"] - 1)
    assert refused.value.code == "precondition_failed"
    second.hold()
    assert second.state == "HELD"
    second.release()
    assert second.state == "BLOCKED"
    first.release()
    assert third.result() == [3] and second.result() == [2]
    with pytest.raises(TypeError, match="after takes ids"):
        distributed(**plain, after=[3])
    eventually(first.done, "the first to have ended")
