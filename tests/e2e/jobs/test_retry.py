# SPDX-License-Identifier: Apache-2.0
"""Jobs that have ended, submitted again: with the same spec, bundle and payload, by who may see them."""

from __future__ import annotations

import hashlib
import io
import tarfile
import uuid
from typing import Any

import pytest

from harness import Api, Cluster, Problem, run_gpuctl
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


def test_an_array_is_repeated_as_a_whole_and_a_task_is_not(cluster: Cluster) -> None:
    job = cluster.api.post("/v1/jobs", {"command": ["echo", "{lr}"], "gpus": 1, "sweep": {"lr": [1, 2]}})["id"]
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    task = cluster.api.job(f"{job}.1")["id"]
    for name in (f"{job}.1", task):
        problem = refusal(cluster.api, name)
        assert (problem.status, problem.body["field"]) == (422, "id") and "name the array" in problem.body["hint"]
    made = retry(cluster.api, job)
    assert cluster.api.wait(made)["array"]["succeeded"] == 2 and cluster.api.log(f"{made}.1") == "2\n"


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
