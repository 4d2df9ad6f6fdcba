# SPDX-License-Identifier: Apache-2.0
"""Uploads: how much a person may send before a job names it, and who may read it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

import pytest

from harness import Api, Cluster, Problem

MIB = 1 << 20


def name_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def send(api: Api, content: bytes) -> tuple[int, str]:
    status, _, reply = api.raw("PUT", f"/v1/blobs/{name_of(content)}", content)
    return status, reply.decode()


def read(api: Api, content: bytes) -> int:
    status, _, got = api.raw("GET", f"/v1/blobs/{name_of(content)}")
    assert status != 200 or got == content
    return status


def submit(api: Api, content: bytes) -> str:
    """A job that names the blob as a file and shows it."""
    job: str = api.submit(["cat", "sent"], files=[{"path": "sent", "blob": name_of(content)}])
    return job


def test_what_no_job_names_has_a_quota(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, controller=["--upload-quota", "4"])
    ada, bob = cluster.user("ada"), cluster.user("bob")
    first, second, third = (bytes([letter]) * (2 * MIB) for letter in b"abc")
    assert [send(ada, content)[0] for content in (first, second)] == [201, 201]
    status, text = send(ada, third)
    problem = json.loads(text)
    assert (status, problem["code"]) == (422, "over_limit"), text
    assert "names 4 MiB" in problem["detail"] and "may have 4 MiB" in problem["detail"] and "--upload-quota" in problem["hint"], text
    assert send(ada, b"small")[0] == 422
    assert send(bob, third)[0] == 201  # everybody has a quota
    with pytest.raises(Problem):
        submit(ada, b"never sent")
    assert send(ada, third)[0] == 422
    assert cluster.api.wait(submit(ada, first))["state"] == "SUCCEEDED"
    assert send(ada, third)[0] == 201


def test_a_blob_is_there_for_those_alone_whose_it_is(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    ada, bob = cluster.user("ada"), cluster.user("bob")
    content = b"of ada" * 20_000
    assert send(ada, content)[0] == 201
    assert (read(ada, content), read(bob, content), read(cluster.api, content)) == (200, 404, 200)
    assert bob.raw("HEAD", f"/v1/blobs/{name_of(content)}")[0] == 404
    assert cluster.api.wait(submit(ada, content))["state"] == "SUCCEEDED"
    assert (read(ada, content), read(bob, content)) == (200, 404)
    assert send(bob, content)[0] == 201  # not even that somebody has it is told
    assert (read(bob, content), send(bob, content)[0]) == (200, 200)
    cluster.controller.kill()
    cluster.start_controller()
    ada.address = bob.address = cluster.api.address
    assert (read(ada, content), read(bob, content)) == (200, 200)  # a job of ada's names it, and bob has sent it
    eva = cluster.user("eva")
    assert read(eva, content) == 404


def test_the_quota_holds_after_a_kill(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, controller=["--upload-quota", "4"])
    ada = cluster.user("ada")
    first, second, third = (bytes([letter]) * (2 * MIB) for letter in b"abc")
    assert [send(ada, content)[0] for content in (first, second)] == [201, 201]
    cluster.controller.kill()
    cluster.start_controller()
    ada.address = cluster.api.address
    assert send(ada, third)[0] == 422
    assert cluster.api.wait(submit(ada, first))["state"] == "SUCCEEDED"
    cluster.controller.kill()
    cluster.start_controller()
    ada.address = cluster.api.address
    assert [send(ada, content)[0] for content in (third, b"small")] == [201, 422]  # the first is named, the second is not


def test_a_job_may_name_a_blob_only_if_its_owner_has_sent_it(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    ada, bob = cluster.user("ada"), cluster.user("bob")
    content = b"of ada" * 20_000
    assert send(ada, content)[0] == 201
    for _ in range(2):  # when ada has sent it, and when a job of ada's names it
        with pytest.raises(Problem) as refused:
            submit(bob, content)
        assert (refused.value.status, refused.value.field) == (422, "files[0].blob")
        assert "not sent" in refused.value.body["detail"]
        assert cluster.api.wait(submit(ada, content))["state"] == "SUCCEEDED"
    assert send(bob, content)[0] == 201
    assert cluster.api.wait(submit(bob, content))["state"] == "SUCCEEDED"
    assert cluster.api.wait(submit(bob, content))["state"] == "SUCCEEDED"  # held by the job before
    assert cluster.api.wait(submit(cluster.api, content))["state"] == "SUCCEEDED"  # administrators see all


def test_a_node_reads_only_what_live_jobs_name(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    ada, node = cluster.user("ada"), cluster.user("nodes", role="node")
    content = b"of ada" * 20_000
    assert send(ada, content)[0] == 201
    assert read(node, content) == 404
    job = ada.submit(["sleep", "1000"], files=[{"path": "sent", "blob": name_of(content)}])
    assert read(node, content) == 200
    ada.post(f"/v1/jobs/{job}/cancel")
    ada.wait(job)
    assert read(node, content) == 404


def test_a_node_that_joined_reads_only_what_its_own_orders_name(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    here, other = cluster.own_node_token("here"), Api(cluster.url, cluster.own_node_token("other"))
    (cluster.folder / "node.token").write_text(here + "\n")
    cluster.add_agent("here", 1)
    cluster.wait_ready()
    ada = cluster.user("ada")
    content = b"of ada" * 20_000
    assert send(ada, content)[0] == 201
    job = ada.submit(["sh", "-c", "cat sent; exec sleep 1000"], files=[{"path": "sent", "blob": name_of(content)}])
    cluster.wait_state(job, "RUNNING")
    assert read(Api(cluster.url, here), content) == 200
    assert read(other, content) == 404
    ada.post(f"/v1/jobs/{job}/cancel")
    ada.wait(job)
    assert read(Api(cluster.url, here), content) == 404
