# SPDX-License-Identifier: Apache-2.0
"""Jobs that have ended, submitted again: with the same spec, bundle and payload, by who may see them."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Api, Cluster, Problem, eventually, run_gpuctl
from paper_node import PaperNode


def retry(api: Api, job: str, **headers: str) -> str:
    made: str = api.post(f"/v1/jobs/{job}/retry", **headers)["id"]
    return made


def refusal(api: Api, job: str, body: dict[str, object] | None = None) -> Problem:
    with pytest.raises(Problem) as problem:
        api.post(f"/v1/jobs/{job}/retry", body)
    return problem.value


def test_a_retry_is_a_new_job_of_the_same_spec_that_names_the_old_one(cluster: Cluster) -> None:
    job = cluster.api.submit(
        ["sh", "-c", "echo $WORD on rank $RANK; exit $CODE"], gpus=2, name="again", env={"WORD": "hello", "CODE": "3"}, priority=7
    )
    assert cluster.api.wait(job)["state"] == "FAILED"
    old, made = cluster.api.job(job), retry(cluster.api, job)
    assert made != job and cluster.api.wait(made)["state"] == "FAILED"
    new = cluster.api.job(made)
    assert new["spec"] == {**old["spec"], "retry_of": job} and (new["name"], new["exit_code"], new["priority"]) == ("again", 3, 7)
    first = new["failed_rank"]  # the other may have been stopped before it said anything
    assert cluster.api.log(made, rank=first) == f"hello on rank {first}\n"
    of_a_retry = retry(cluster.api, made)
    assert cluster.api.wait(of_a_retry)["spec"]["retry_of"] == made


def test_secrets_of_a_job_reach_its_retry_and_stay_hidden(cluster: Cluster) -> None:
    job = cluster.api.submit(["sh", "-c", 'test "$API_TOKEN" = open-sesame'], env={"API_TOKEN": "open-sesame"})
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    new = cluster.api.wait(retry(cluster.api, job))
    assert new["state"] == "SUCCEEDED" and new["spec"]["env"] == {"API_TOKEN": "***"}


def test_a_retry_has_the_bundle_and_the_files_of_the_old_job(cluster: Cluster) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        entry = tarfile.TarInfo("word.txt")
        entry.size = 6
        tar.addfile(entry, io.BytesIO(b"bundle"))
    hashes = []
    for content in (archive.getvalue(), b"of a file"):
        hashes.append(hashlib.sha256(content).hexdigest())
        assert cluster.api.raw("PUT", f"/v1/blobs/{hashes[-1]}", content, {"Content-Type": "application/octet-stream"})[0] in (200, 201)
    spec: dict[str, Any] = {"bundle": {"blob": hashes[0]}, "files": [{"path": "f.txt", "blob": hashes[1]}]}
    job = cluster.api.submit(["sh", "-c", "cat word.txt f.txt"], **spec)
    cluster.api.wait(job)
    made = retry(cluster.api, job)
    assert cluster.api.wait(made)["state"] == "SUCCEEDED" and cluster.api.log(made) == cluster.api.log(job) == "bundleof a file"


def test_an_array_is_repeated_as_a_whole_and_a_task_as_an_array_of_its_own(cluster: Cluster) -> None:
    spec = {"command": ["sh", "-c", "echo {lr} $GPUCTL_ARRAY_TASK $GPUCTL_ARRAY_TASKS"], "gpus": 1, "sweep": {"lr": [1, 2]}}
    job = cluster.api.post("/v1/jobs", spec)["id"]
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    made = retry(cluster.api, job)
    assert cluster.api.wait(made)["array"]["succeeded"] == 2 and cluster.api.log(f"{made}.1") == "2 1 2\n"
    task = cluster.api.job(f"{job}.1")["id"]
    for name in (f"{job}.1", task):
        alone = retry(cluster.api, name)
        view = cluster.api.wait(alone)
        assert (view["array"]["tasks"], view["array"]["succeeded"], view["retry_of"], view["spec"]["array"]) == (1, 1, task, {"only": "1"})
        assert cluster.api.log(f"{alone}.1") == "2 1 2\n"
        with pytest.raises(Problem) as problem:
            cluster.api.job(f"{alone}.0")
        assert problem.value.status == 404 and "has only some tasks" in problem.value.body["detail"]


def test_some_tasks_of_an_array_run_again_in_their_order(cluster: Cluster) -> None:
    job = cluster.api.submit(["sh", "-c", "echo {task} of $GPUCTL_ARRAY_TASKS"], array={"tasks": 9, "parallel": 2})
    cluster.api.wait(job)
    made = cluster.api.post(f"/v1/jobs/{job}/retry", {"tasks": "1,4-6,8"})["id"]
    view = cluster.api.wait(made)
    assert (view["array"]["tasks"], view["array"]["succeeded"]) == (5, 5)
    tasks = [task["task"] for task in cluster.api.get(f"/v1/jobs?array={made}&limit=200")["jobs"]]
    assert tasks == [8, 6, 5, 4, 1] and cluster.api.log(f"{made}.6") == "6 of 9\n"
    once_more = cluster.api.post(f"/v1/jobs/{made}/retry", {"tasks": "8"})["id"]
    assert cluster.api.wait(once_more)["array"]["tasks"] == 1 and cluster.api.log(f"{once_more}.8") == "8 of 9\n"


@pytest.mark.parametrize("tasks", ["", "9", "3,3", "5,4", "4-2", "1,", "a", "1 2", "-1"])
def test_lists_of_tasks_that_are_none_are_refused(cluster: Cluster, tasks: str) -> None:
    job = cluster.api.submit(["true"], array={"tasks": 9})
    cluster.api.wait(job)
    assert refusal(cluster.api, job, {"tasks": tasks}).body["field"] == "tasks"
    with pytest.raises(Problem) as problem:
        cluster.api.submit(["true"], array={"tasks": 9, "only": tasks})
    assert problem.value.body["field"] == "array.only"


def test_an_array_of_some_tasks_goes_on_after_the_controller_was_killed(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1)
    script = f"echo {{task}} >>{tmp_path}/ran; while ! test -e {tmp_path}/gate; do sleep 0.01; done"
    job = cluster.api.submit(["sh", "-c", script], array={"tasks": 100, "only": "7,42-43,99"})
    eventually(lambda: (tmp_path / "ran").exists(), "the first task")
    cluster.controller.kill()
    cluster.start_controller()
    (tmp_path / "gate").touch()
    assert cluster.api.wait(job)["array"]["succeeded"] == 4
    assert (tmp_path / "ran").read_text().split() == ["7", "42", "43", "99"]


def test_one_key_makes_one_job_and_each_key_its_own(cluster: Cluster) -> None:
    job = cluster.api.submit(["true"])
    cluster.api.wait(job)
    key = uuid.uuid4().hex
    first = retry(cluster.api, job, Idempotency_Key=key)
    assert retry(cluster.api, job, Idempotency_Key=key) == first
    assert retry(cluster.api, job, Idempotency_Key=uuid.uuid4().hex) != first


def test_a_job_that_has_not_ended_is_not_repeated(cluster: Cluster) -> None:
    job = cluster.api.submit(["true"], hold=True)
    problem = refusal(cluster.api, job)
    assert problem.status == 409 and "is HELD" in problem.body["detail"] and "cancel it first" in problem.body["hint"]
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    made = retry(cluster.api, job)
    assert cluster.api.job(made)["state"] == "HELD"
    cluster.api.post(f"/v1/jobs/{made}/cancel")


def test_who_may_see_a_job_may_repeat_it_and_owns_the_new_one(cluster: Cluster) -> None:
    ann, ben = cluster.user("ann"), cluster.user("ben")
    job = ann.submit(["true"])
    ann.wait(job)
    assert refusal(ben, job).status == 404
    assert ann.wait(retry(ann, job))["owner"] == "ann"
    assert cluster.api.wait(retry(cluster.api, job))["owner"] == "admin"


def test_what_a_spec_does_not_show_goes_to_nobody_who_may_not_change_the_job(cluster: Cluster) -> None:
    cluster.api.call("PUT", "/v1/accounts/projects/sight", {"members": {"ann": "user", "ben": "user", "cleo": "operator"}})
    ann, ben, cleo = cluster.user("ann"), cluster.user("ben"), cluster.user("cleo")
    shown = ann.submit(["true"], project="sight")
    function = {"inline": base64.b64encode(b"gpuctl-function 1 python=3.12\nwhat only ann may read").decode()}
    hidden = [
        ann.submit(["true"], env={"API_TOKEN": "open-sesame"}, project="sight", hold=True),
        ann.post("/v1/jobs", {"function": function, "gpus": 1, "project": "sight", "hold": True})["id"],
    ]
    for job in hidden:  # that those who repeat them can cancel as well, before they run
        ann.post(f"/v1/jobs/{job}/cancel")
    for job in [shown, *hidden]:
        ann.wait(job)
    assert ben.wait(retry(ben, shown))["owner"] == "ben"
    for job in hidden:
        problem = refusal(ben, job)
        assert problem.status == 403 and "not shown" in problem.body["hint"]
        with pytest.raises(Problem) as of_clone:
            ben.post(f"/v1/jobs/{job}/clone", {})
        assert of_clone.value.status == 403
        made = retry(cleo, job)
        cleo.post(f"/v1/jobs/{made}/cancel")
    cluster.api.call("DELETE", "/v1/accounts/projects/sight")


def test_wrong_retries_are_refused(cluster: Cluster) -> None:
    job = cluster.api.submit(["true"])
    cluster.api.wait(job)
    assert refusal(cluster.api, job, {"x": 1}).body["field"] == "x"
    assert refusal(cluster.api, "aaaaaaaaaaaaaaaa").status == 404
    for wrong in ("x", 7, "AAAAAAAAAAAAAAAA"):
        with pytest.raises(Problem) as problem:
            cluster.api.submit(["true"], retry_of=wrong)
        assert problem.value.body["field"] == "retry_of"


def test_what_a_job_named_and_is_gone_is_said(cluster: Cluster) -> None:
    """A job that waited for another one, which was removed since."""
    first = cluster.api.submit(["true"])
    cluster.api.wait(first)
    job = cluster.api.submit(["true"], after=[first])
    cluster.api.wait(job)
    cluster.api.call("DELETE", f"/v1/jobs/{first}")
    problem = refusal(cluster.api, job)
    assert (problem.status, problem.body["field"]) == (422, "after[0]") and "gone" in problem.body["hint"]


def test_a_node_is_not_told_which_job_is_repeated(cluster: Cluster) -> None:
    """Agents of earlier versions refuse a field that they do not know."""
    node = PaperNode(cluster, "paper", 1, ["paper"])
    try:
        job = cluster.api.submit(["true"], gpu_type="paper", retry_of="a" * 16)
        (order,) = node.until(lambda reply: reply["orders"], "the order")["orders"]
        assert order["spec"] == {"command": ["true"], "gpus": 1, "gpu_type": "paper"}
        assert cluster.api.job(job)["spec"]["retry_of"] == "a" * 16
        node.api.post(
            "/v1/agent/report",
            {**node.who(), "epoch": int(order["epoch"]), "kind": "exited", "ranks": [{"rank": 0, "code": 0, "at_ms": 2}], "flushed": True},
        )
        cluster.api.wait(job)
    finally:
        node.close()
        cluster.api.post("/v1/nodes/paper/fence", {"assert_dead": True})


def test_gpuctl_retry_prints_the_new_ids_and_goes_on_after_a_failure(cluster: Cluster) -> None:
    jobs = [cluster.api.submit(["true"]) for _ in range(2)]
    for job in jobs:
        cluster.api.wait(job)
    ran = run_gpuctl(
        "--url",
        cluster.url,
        "retry",
        jobs[0],
        "aaaaaaaaaaaaaaaa",
        jobs[1][:12],
        env={"GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")},
    )
    made = ran.stdout.split()
    assert ran.returncode == 3 and "there is no job aaaaaaaaaaaaaaaa" in ran.stderr
    assert [cluster.api.wait(job)["spec"]["retry_of"] for job in made] == jobs
