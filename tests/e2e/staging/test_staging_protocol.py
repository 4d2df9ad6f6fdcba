# SPDX-License-Identifier: Apache-2.0
"""Staging as a node sees it and as a person sees it, with nodes of paper; and secrets, which nobody sees but the ranks."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness import Cluster, Problem, eventually
from paper_node import PaperNode

LINES = ["numpy==2.1.0", "torch"]
TEXT = "".join(f"{line}\n" for line in LINES)
HASH = hashlib.sha256(TEXT.encode()).hexdigest()
NEEDY = {"command": ["true"], "gpus": 1, "environment": {"requirements": LINES}}

MakePaper = Callable[..., PaperNode]


@pytest.fixture
def bare(make_cluster: Callable[..., Cluster]) -> Cluster:
    """A controller without agents."""
    return make_cluster()


@pytest.fixture
def paper(bare: Cluster) -> Iterator[MakePaper]:
    """Make nodes of paper. In the end what lives is canceled, and the nodes are declared dead, so that it ends."""
    nodes: list[PaperNode] = []

    def make(name: str = "n1", slots: int = 2) -> PaperNode:
        nodes.append(PaperNode(bare, name, slots))
        return nodes[-1]

    yield make
    for job in bare.api.get("/v1/jobs?state=QUEUED,STAGING,PLACED,RUNNING&limit=200")["jobs"]:
        bare.api.post(f"/v1/jobs/{job['id']}/cancel")
    for node in nodes:
        node.close()
        bare.api.post(f"/v1/nodes/{node.name}/fence", {"assert_dead": True})


def submit(cluster: Cluster, **changes: Any) -> str:
    return str(cluster.api.post("/v1/jobs", {**NEEDY, **changes}, Idempotency_Key=uuid.uuid4().hex)["id"])


def reason(cluster: Cluster, job: str, part: str) -> Any:
    """The view of the job, once its reason holds that."""

    def said() -> Any:
        view = cluster.api.job(job)
        return view if part in (view["reason"] or "") else None

    return eventually(said, f"the reason of job {job} to say {part!r}")


# --- what is refused ---


def test_a_node_that_is_not_registered_is_told_to_register(bare: Cluster, paper: MakePaper) -> None:
    node = paper()
    node.boot_id = "another-boot"
    for state in ("building", "ready", "failed"):
        with pytest.raises(Problem) as caught:
            node.say("a" * 64, state, text="Installing torch")
        assert (caught.value.status, caught.value.code) == (404, "not_found"), state
    node.boot_id, node.name = "boot-of-n1", "n2"
    with pytest.raises(Problem) as caught:
        node.say("a" * 64, "building")
    assert caught.value.status == 404
    node.name = "n1"
    assert node.say("a" * 64, "building") == {}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"key": None}, "key"),
        ({"key": 7}, "key"),
        ({"state": None}, "state"),
        ({"state": "READY"}, "state"),
        ({"node": None}, "node"),
        ({"boot_id": []}, "boot_id"),
        ({"by_user": "no"}, "by_user"),
        ({"text": 1}, "text"),
    ],
)
def test_a_wrong_staging_report_is_refused_by_its_field(bare: Cluster, paper: MakePaper, change: dict[str, Any], field: str) -> None:
    node = paper()
    with pytest.raises(Problem) as caught:
        node.api.post("/v1/agent/staging", {**node.who(), "key": "a" * 64, "state": "building", **change})
    assert (caught.value.status, caught.value.field) == (422, field)


def test_only_nodes_report_stagings_and_only_as_json(bare: Cluster, paper: MakePaper) -> None:
    node = paper()
    with pytest.raises(Problem) as caught:
        bare.user("anna").post("/v1/agent/staging", {**node.who(), "key": "a" * 64, "state": "ready"})
    assert caught.value.status == 403
    status, _, _ = node.api.raw("POST", "/v1/agent/staging", b"{", {"Content-Type": "application/json"})
    assert status == 400


@pytest.mark.parametrize(
    ("change", "status", "field"),
    [
        ({"environment": {"blob": "0" * 64}}, 422, "environment.blob"),
        ({"bundle": {"blob": "0" * 64}}, 422, "bundle.blob"),
        ({"environment": {"requirements": ["a\nb"]}}, 422, "environment.requirements[0]"),
        ({"environment": {"requirements": ["x" * 65536]}}, 413, "environment.requirements"),
        ({"environment": {"requirements": [], "python": "3"}}, 422, "environment.python"),
        ({"bundle": {"blob": "0" * 64, "python_path": ["../x"]}}, 422, "bundle.python_path[0]"),
    ],
)
def test_a_wrong_need_is_refused_with_its_field(bare: Cluster, paper: MakePaper, change: dict[str, Any], status: int, field: str) -> None:
    paper()
    with pytest.raises(Problem) as caught:
        submit(bare, **change)
    assert (caught.value.status, caught.value.field) == (status, field), caught.value.body
    assert caught.value.body["hint"]


# --- the way of a job ---


def test_a_job_is_staged_before_it_is_placed(bare: Cluster, paper: MakePaper) -> None:
    node = paper()
    job = submit(bare, environment={"requirements": LINES, "python": "3.11"}, python="/opt/python")
    staging = node.staging()
    assert staging["requirements"] == HASH and staging["blobs"] == [HASH]
    assert (staging["python_version"], staging["python"]) == ("3.11", "/opt/python")
    status, _, body = node.api.raw("GET", f"/v1/blobs/{HASH}")
    assert (status, body.decode()) == (200, TEXT)

    view = reason(bare, job, "node n1 was sent the order")
    assert view["state"] == "STAGING"
    assert bare.nodes()["n1"]["free_gpus"] == 2
    assert node.poll()["orders"] == []

    assert node.say(staging["key"], "building", text="Installing torch") == {}
    view = reason(bare, job, "node n1 builds the environment: Installing torch (")
    (line,) = view["staging"]
    assert (line["node"], line["state"], line["text"]) == ("n1", "building", "Installing torch")
    assert 0 <= line["silent_s"] <= line["since_s"]

    assert node.say(staging["key"], "ready") == {}
    assert bare.wait_state(job, "PLACED")["nodes"][0]["node"] == "n1"
    assert "staging" not in bare.api.job(job)
    reply = node.poll()
    assert reply["stagings"] == [] and [order["job_id"] for order in reply["orders"]] == [job]
    assert bare.api.events(job)[:3] == ["submitted", "staging", "placed"]
    assert node.say(staging["key"], "ready") == {}, "what is said again is answered again"


def test_a_parked_poll_is_answered_when_there_is_something_to_get_ready(bare: Cluster, paper: MakePaper) -> None:
    node = paper()
    version = node.poll()["version"]
    submit(bare)
    reply = node.poll_after(version)
    assert reply["version"] > version and len(reply["stagings"]) == 1


def test_a_node_that_is_ready_is_not_told_again(bare: Cluster, paper: MakePaper) -> None:
    node = paper()
    first = submit(bare)
    node.say(node.staging()["key"], "ready")
    bare.wait_state(first, "PLACED")
    second = submit(bare, name="another")
    bare.wait_state(second, "PLACED")
    assert "staging" not in bare.api.events(second)
    assert node.poll()["stagings"] == []


def test_a_gang_waits_for_its_slowest_node(bare: Cluster, paper: MakePaper) -> None:
    one, two = paper("n1", 1), paper("n2", 1)
    job = submit(bare, gpus=2)
    key = one.staging()["key"]
    assert two.staging()["key"] == key
    two.say(key, "building", text="Downloading torch")

    def two_is_silent() -> bool:
        return any(line["node"] == "n2" and line["silent_s"] > 0.02 for line in bare.api.job(job)["staging"])

    eventually(two_is_silent, "n2 to be silent for a moment")
    one.say(key, "building", text="Installing torch")
    view = reason(bare, job, "node n2 builds the environment: Downloading torch (")
    assert view["reason"].endswith("; 1 other node, too")
    assert [line["node"] for line in view["staging"]] == ["n2", "n1"]
    two.say(key, "ready")
    reason(bare, job, "node n1 builds the environment: Installing torch (")
    assert bare.api.job(job)["state"] == "STAGING"
    one.say(key, "ready")
    bare.wait_state(job, "PLACED")


def test_what_a_node_says_is_fit_to_be_shown(bare: Cluster, paper: MakePaper) -> None:
    node = paper()
    job = submit(bare)
    key = node.staging()["key"]
    node.say(key, "building", text="\x1b[31mInstalling\ntorch \u009b1m\t" + "\u20ac" * 2000)
    (line,) = reason(bare, job, "Installing torch")["staging"]
    assert all(char.isprintable() for char in line["text"])
    assert 4000 < len(line["text"].encode()) <= 4096 and line["text"].endswith("\u20ac")


def test_what_pip_refuses_fails_the_job_with_its_words(bare: Cluster, paper: MakePaper) -> None:
    node = paper()
    job = submit(bare)
    words = "ERROR: No matching distribution found for numpyy\nsee \x1b[1mthe index"
    node.say(node.staging()["key"], "failed", by_user=True, text=words)
    view = bare.api.wait(job)
    assert (view["state"], view["cause"], view["attempt"]) == ("FAILED", "STAGE_FAILED", 0)
    assert "ERROR: No matching distribution found for numpyy" in view["reason"] and "\x1b" not in view["reason"]
    assert view["failed_node"] == "n1"
    node.until(lambda reply: reply["stagings"] == [], "not to be told any more")


def test_a_node_that_cannot_is_replaced_by_another(bare: Cluster, paper: MakePaper) -> None:
    nodes = {"n1": paper("n1", 1), "n2": paper("n2", 1)}
    job = submit(bare)
    first = eventually(lambda: next((node for node in nodes.values() if node.poll()["stagings"]), None), "a node to be told")
    (other,) = (node for node in nodes.values() if node is not first)
    key = first.staging()["key"]
    first.say(key, "failed", by_user=False, text="no space left on device")
    assert other.staging()["key"] == key
    assert first.poll()["stagings"] == []
    assert bare.api.job(job)["state"] == "STAGING"
    other.say(key, "ready")
    assert bare.wait_state(job, "PLACED")["nodes"][0]["node"] == other.name


def test_a_job_whose_nodes_are_ready_but_busy_is_queued_again(bare: Cluster, paper: MakePaper) -> None:
    node = paper("n1", 1)
    busy = str(bare.api.post("/v1/jobs", {"command": ["true"], "gpus": 1})["id"])
    bare.wait_state(busy, "PLACED")
    job = submit(bare)
    node.say(node.staging()["key"], "ready")
    view = bare.wait_state(job, "QUEUED")
    assert view["reason"].startswith("needs 1 GPU: 0 of 1 are free (gpuctl explain ") and "staging" not in view
    assert bare.api.events(job) == ["submitted", "staging", "staged"]


def test_a_canceled_job_stops_what_is_built_for_it(bare: Cluster, paper: MakePaper) -> None:
    node = paper()
    job = submit(bare)
    node.staging()
    bare.api.post(f"/v1/jobs/{job}/cancel")
    assert bare.api.wait(job)["state"] == "CANCELED"
    node.until(lambda reply: reply["stagings"] == [], "not to be told any more")


def test_staging_goes_on_after_kill_9_of_the_controller(bare: Cluster, paper: MakePaper) -> None:
    node = paper()
    job = submit(bare)
    key = node.staging()["key"]
    node.say(key, "building", text="Installing torch")
    reason(bare, job, "Installing torch")
    bare.controller.kill()
    bare.start_controller()
    assert node.staging()["key"] == key
    assert reason(bare, job, "node n1 was sent the order")["state"] == "STAGING"
    node.say(key, "building", text="Installing numpy")
    reason(bare, job, "Installing numpy")
    node.say(key, "ready")
    bare.wait_state(job, "PLACED")


def test_a_need_of_blobs_alone_is_fetched(bare: Cluster, paper: MakePaper) -> None:
    node = paper()
    data = uuid.uuid4().bytes
    digest = hashlib.sha256(data).hexdigest()
    status, _, _ = bare.api.raw("PUT", f"/v1/blobs/{digest}", data)
    assert status == 201
    job = str(bare.api.post("/v1/jobs", {"command": ["true"], "gpus": 1, "bundle": {"blob": digest}})["id"])
    staging = node.staging()
    assert staging["blobs"] == [digest] and "requirements" not in staging
    node.say(staging["key"], "building", text=digest)
    reason(bare, job, f"node n1 fetches what the job needs: {digest} (")
    node.say(staging["key"], "ready")
    bare.wait_state(job, "PLACED")


# --- secrets ---


def test_a_secret_reaches_the_ranks_and_nobody_else(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, controller=["--log-level", "debug"])
    secret = f"hf_{uuid.uuid4().hex}"
    spec = {
        "command": ["sh", "-c", 'printf "%s" "$HF_TOKEN" | wc -c; exit 7'],
        "gpus": 1,
        "env": {"HF_TOKEN": secret, "TOKENIZERS_PARALLELISM": "false"},
    }
    replies: list[Any] = []
    made = cluster.api.post("/v1/jobs", spec, Idempotency_Key="once")
    job = made["id"]
    replies += [made, cluster.api.post("/v1/jobs", spec, Idempotency_Key="once"), cluster.api.wait(job)]
    assert cluster.api.log(job).strip() == str(len(secret))
    for document in ({**spec, "gpus": 2}, {**spec, "gpus": 99}, {**spec, "env": {"HF_TOKEN": [secret]}}, {**spec, "comand": secret}):
        with pytest.raises(Problem) as caught:
            cluster.api.post("/v1/jobs", document, **({"Idempotency_Key": "once"} if document["gpus"] == 2 else {}))
        replies.append(caught.value.body)
    for path in ("", "/events", "/attempts", "/results", "?wait=1"):
        replies.append(cluster.api.get(f"/v1/jobs/{job}{path}"))
    replies.append(cluster.api.get("/v1/jobs"))
    assert cluster.api.job(job)["spec"]["env"] == {"HF_TOKEN": "***", "TOKENIZERS_PARALLELISM": "false"}
    for reply in replies:
        assert secret not in json.dumps(reply), reply
    for program in (cluster.controller, *cluster.agents):
        assert secret not in program.said()
