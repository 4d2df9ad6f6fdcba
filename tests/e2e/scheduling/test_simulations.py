# SPDX-License-Identifier: Apache-2.0
"""POST /v1/simulations: what other policies would have made of the jobs that have ended, on the controller."""

from __future__ import annotations

import http.client
import json
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from harness import Api, Cluster, Problem, eventually, run_gpuctl
from history import fill
from slowness import patient

PATH = "/v1/simulations"
POLICIES = ["fifo", "easy", "sjf", "srtf", "srsf", "default"]
#: More jobs than one simulation replays, and a cluster that is far too small for them: it would take minutes.
MANY, SLOW = 20_100, {"policies": POLICIES, "nodes": "2000x4"}
MakeCluster = Callable[..., Cluster]


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with some hundred jobs of three users in the last 20 days."""
    cluster = Cluster(tmp_path_factory.mktemp("past"), [2, 2]).start()
    cluster.api.wait(cluster.api.submit(["true"]))
    fill(cluster, 400, over=20, gpus=[1, 1, 1, 2, 4, 8], run_s=9000, owners=["ann", "bob", "eve"])
    yield cluster
    cluster.stop()


@pytest.fixture
def slow(make_cluster: MakeCluster) -> Cluster:
    """A cluster whose history takes long to replay."""
    cluster = make_cluster(1, controller=["--log-level", "debug"])
    cluster.api.wait(cluster.api.submit(["true"]))
    fill(cluster, MANY, over=20, gpus=[2000, 4000, 8000], run_s=3600)
    return cluster


def ask(api: Api, *policies: str, **more: str) -> Any:
    return api.post(PATH, {"policies": list(policies), **more})


def by_gpuctl(cluster: Cluster, api: Api, *arguments: str) -> Any:
    token = cluster.folder / "token-of-a-test"
    token.touch(0o600)
    token.write_text(f"{api.token}\n")
    ran = run_gpuctl("simulate", "--history", "-o", "json", *arguments, env={"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token)})
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def begin(api: Api, question: dict[str, Any]) -> http.client.HTTPConnection:
    """Ask, and do not wait for the answer."""
    connection = api.connection(patient(120))
    body = json.dumps(question).encode()
    connection.request("POST", PATH, body, {"Authorization": f"Bearer {api.token}", "Content-Type": "application/json"})
    return connection


def thread_at_idle(cluster: Cluster) -> bool:
    """Whether a thread of the controller computes at the lowest priority."""
    assert cluster.controller.process is not None
    tasks = Path(f"/proc/{cluster.controller.process.pid}/task")
    fields = [(task / "stat").read_text().rpartition(")")[2].split() for task in tasks.iterdir()]
    return any(field[16] == "19" and field[0] == "R" for field in fields)


# --- what it says


@pytest.mark.parametrize("since", [None, "7d"])
@pytest.mark.parametrize(("limits", "nodes"), [(None, None), ("exact", "2x4"), ("none", "1x8:cpu,3x2:cpu")])
def test_the_answer_is_what_gpuctl_makes_of_the_same_history(
    past: Cluster, since: str | None, limits: str | None, nodes: str | None
) -> None:
    chosen = {name: value for name, value in {"since": since, "limits": limits, "nodes": nodes}.items() if value is not None}
    options = [word for name, value in chosen.items() for word in (f"--{name}", value)]
    answer = ask(past.api, *POLICIES, **chosen)
    expected = by_gpuctl(past, past.api, "--policy", "all", *options)
    assert answer["results"] == expected
    assert (answer["cut"], answer["more"], answer["nodes"]) == ([], False, nodes or "2x2:cpu")
    assert (answer["jobs"] == 401) == (since is None) and answer["jobs"] == expected[0]["jobs"] + expected[0]["refused"]
    assert (answer["refusal"] is not None) == (expected[0]["refused"] > 0)
    assert len({result["avg_wait_s"] for result in answer["results"]}) > 1  # policies differ


def test_waits_are_told_by_user_and_by_project(past: Cluster) -> None:
    result = ask(past.api, "default")["results"][0]
    assert {item["name"] for item in result["owners"]} == {"ann", "bob", "eve", "admin"}
    assert sum(item["jobs"] for item in result["owners"]) == sum(item["jobs"] for item in result["projects"]) == result["jobs"]
    assert [item["jobs"] for item in result["owners"]] == sorted((item["jobs"] for item in result["owners"]), reverse=True)
    assert {item["name"] for item in result["projects"]} == {"of-ann", "of-bob", "of-eve", "default"}
    assert 0 <= result["p50_wait_s"] <= result["p90_wait_s"] <= result["p99_wait_s"]


def test_a_user_sees_what_gpuctl_shows_him_and_operators_and_administrators_all(past: Cluster) -> None:
    ann = past.user("ann")
    answer = ask(ann, "default", "fifo")
    assert answer["results"] == by_gpuctl(past, ann, "--policy", "default,fifo")
    assert ask(past.user("ann", "viewer"), "default", "fifo")["results"] == answer["results"]
    assert 0 < answer["jobs"] < ask(past.api, "default")["jobs"] == ask(past.user("otto", "operator"), "default")["jobs"]
    assert all(item["name"] == "ann" for result in answer["results"] for item in result["owners"])


def test_policies_come_in_the_order_that_was_asked_for_each_once(past: Cluster) -> None:
    assert [result["policy"] for result in ask(past.api, "sjf", "default", "sjf")["results"]] == ["sjf", "default"]


def test_without_jobs_or_nodes_it_says_so(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1)
    none = ask(cluster.api, "default")
    assert (none["jobs"], none["results"], none["oldest_at"], none["more"]) == (0, [], None, False)
    cluster.api.post("/v1/nodes/node0/drain", {"reason": "to be left out"})
    with pytest.raises(Problem) as caught:
        ask(cluster.api, "fifo")
    assert (caught.value.status, caught.value.field) == (422, "nodes")
    assert ask(cluster.api, "fifo", nodes="1x1")["nodes"] == "1x1"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "policies"),
        ({"policies": []}, "policies"),
        ({"policies": "fifo"}, "policies"),
        ({"policies": [1]}, "policies"),
        ({"policies": ["lifo"]}, "policies"),
        ({"policies": ["fifo"] * 7}, "policies"),
        ({"policies": ["fifo"], "since": "a week"}, "since"),
        ({"policies": ["fifo"], "since": "0s"}, "since"),
        ({"policies": ["fifo"], "since": 7}, "since"),
        ({"policies": ["fifo"], "limits": "some"}, "limits"),
        ({"policies": ["fifo"], "nodes": "8"}, "nodes"),
        ({"policies": ["fifo"], "nodes": "10001x8"}, "nodes"),
        ({"policies": ["fifo"], "nodes": "1000x1000"}, "nodes"),
        ({"policies": ["fifo"], "speed": 2}, "speed"),
    ],
)
def test_a_wrong_question_names_the_field(past: Cluster, body: dict[str, Any], field: str) -> None:
    with pytest.raises(Problem) as caught:
        past.api.post(PATH, body)
    assert (caught.value.status, caught.value.field) == (422, field), caught.value


def test_a_list_is_no_question_and_strangers_get_no_answer(past: Cluster) -> None:
    body = {"policies": ["fifo"]}
    for status, api, asked in ((400, past.api, []), (401, Api(past.url, None), body), (403, past.user("m", "monitor"), body)):
        with pytest.raises(Problem) as caught:
            api.post(PATH, asked)
        assert caught.value.status == status


# --- what it costs


def test_an_answer_is_kept_and_serves_all_who_ask_the_same(past: Cluster) -> None:
    first = ask(past.api, "easy", since="19d")
    assert ask(past.api, "easy", since="19d") == first and first["as_of"] == ask(past.user("chief", "admin"), "easy", since="19d")["as_of"]
    assert ask(past.api, "easy", since="18d")["as_of"] != first["as_of"]
    assert ask(past.user("bob"), "easy", since="19d")["jobs"] < first["jobs"]


def test_only_the_newest_jobs_are_replayed_and_it_says_so(slow: Cluster) -> None:
    answer = ask(slow.api, "fifo", nodes="1x1")  # where only the very first job has room
    assert (answer["jobs"], answer["more"], answer["results"][0]["refused"]) == (20_000, True, 20_000)
    with sqlite3.connect(f"file:{slow.folder}/controller/gpuctl.db?mode=ro", uri=True) as database:
        newest = "SELECT created_ms FROM jobs ORDER BY key DESC LIMIT 20000"
        oldest_ms = database.execute(f"SELECT min(created_ms) FROM ({newest})").fetchone()[0]
    assert datetime.fromisoformat(answer["oldest_at"]).timestamp() * 1000 == pytest.approx(oldest_ms, abs=1)
    week = ask(slow.api, "fifo", nodes="1x1", since="7d")
    assert week["jobs"] < 20_000 and not week["more"]


def test_one_runs_at_a_time_and_who_asks_for_too_many_is_told_that_it_is_busy(slow: Cluster) -> None:
    waiting = [begin(slow.api, SLOW)]
    eventually(lambda: thread_at_idle(slow), "the simulation to run")
    waiting.append(begin(slow.api, {"policies": ["sjf"], "since": "1d"}))
    eventually(lambda: busy(slow.api), "the second to wait")
    ann = slow.user("ann")
    waiting.append(begin(ann, {"policies": ["sjf"], "nodes": "1x8"}))
    again = begin(slow.api, SLOW)  # the same question waits for the same answer
    assert slow.api.get("/v1/jobs?limit=1")["jobs"]  # and nobody else waits
    waiting.pop(0).close()
    again.close()
    eventually(lambda: "simulation ended owner=admin working=1" in slow.controller.said(), "the run to be ended")
    for connection in waiting:
        reply = connection.getresponse()
        assert (reply.status, json.loads(reply.read())["cut"]) == (200, [])
        connection.close()


def busy(api: Api) -> bool:
    """Whether a third question is refused, in plain words."""
    try:
        status, _, body = api.raw("POST", PATH, b'{"policies": ["srsf"], "since": "1s"}', {"Content-Type": "application/json"}, timeout=1)
    except TimeoutError:
        return False
    assert status == 429 and "busy" in json.loads(body)["detail"], body
    return True


def test_a_run_delays_the_end_of_the_controller_by_no_more_than_its_answers(slow: Cluster) -> None:
    connection = begin(slow.api, SLOW)
    eventually(lambda: thread_at_idle(slow), "the simulation to run")
    began = time.monotonic()
    assert slow.controller.kill(signal.SIGTERM) == 0
    assert time.monotonic() - began < patient(10)
    reply = connection.getresponse()
    assert reply.status == 503 and "ending" in json.loads(reply.read())["detail"]
    connection.close()
    slow.start_controller()


def test_askers_that_come_at_once_share_one_run(past: Cluster) -> None:
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(ask(past.api, *POLICIES, nodes="3x3"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4 and len({answer["as_of"] for answer in answers}) == 1
