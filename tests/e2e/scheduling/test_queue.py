# SPDX-License-Identifier: Apache-2.0
"""Who is next, and why: the queue in the order in which its jobs then start, with what made that order."""

from __future__ import annotations

import concurrent.futures
import datetime
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Api, Cluster, Problem, eventually, run_gpuctl

#: The rows that the next answer is asked for: answers are kept for some seconds, and another number is another question.
ROWS = iter(range(200, 1000))


def gate(path: Path) -> list[str]:
    return ["sh", "-c", f"while ! test -e {path}; do sleep 0.01; done"]


def queue(api: Api, query: str = "") -> Any:
    """The queue as of now."""
    return api.get(f"/v1/queue?limit={next(ROWS)}{query}")


def at(text: str) -> float:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@pytest.fixture
def full(make_cluster: Callable[..., Cluster], tmp_path: Path) -> Iterator[tuple[Cluster, str]]:
    """A node of one slot, and a job of the project `much` on it until the gate opens."""
    cluster = make_cluster(1)
    runs = cluster.api.submit(gate(tmp_path / "gate"), name="first", project="much", time_limit_s=3600)
    cluster.wait_state(runs, "RUNNING")
    yield cluster, runs


def test_jobs_start_in_the_order_of_the_queue_and_the_queue_says_what_made_it(full: tuple[Cluster, str], tmp_path: Path) -> None:
    cluster, runs = full
    api = cluster.api
    long = api.submit(["true"], name="long", project="little", time_limit_s=7200)
    short = api.submit(["true"], name="short", project="little", time_limit_s=60)
    urgent = api.submit(["true"], project="little", time_limit_s=7200, priority=5)
    used = api.submit(["true"], name="used", project="much", time_limit_s=60)
    held = api.submit(["true"], hold=True)
    blocked = api.submit(["true"], after=[{"job": long}])
    shown = eventually(lambda: len((found := queue(api))["jobs"]) == 4 and found, "four jobs to wait")
    assert (shown["policy"], shown["count"], shown["held"], shown["blocked"]) == ("default", 4, 1, 1)
    order = [job["id"] for job in shown["jobs"]]
    assert order == [urgent, short, used, long]
    assert [job["position"] for job in shown["jobs"]] == [1, 2, 3, 4]
    assert {job["id"]: job["name"] for job in shown["jobs"]} == {urgent: None, short: "short", used: "used", long: "long"}
    for job in shown["jobs"]:
        assert job["allowance_s"] == 10 * job["estimate_s"]
        due = at(job["submitted_at"]) + job["allowance_s"] + job["share_delay_s"]
        assert abs(at(job["due_at"]) - due) < 0.01
    first = shown["jobs"][0]
    assert first["reason"]["code"] == "NODES_BUSY" and runs in first["reason"]["text"]
    assert shown["jobs"][1]["reason"]["code"] == "BEHIND" and urgent in shown["jobs"][1]["reason"]["text"]
    assert at(first["start"]["at"]) - at(shown["as_of"]) > 3000
    (running,) = shown["running"]
    assert (running["id"], running["name"], running["nodes"], running["gpus"]) == (runs, "first", ["node0"], 1)
    assert 3000 < at(running["ends_at"]) - at(shown["as_of"]) <= 3600
    (tmp_path / "gate").touch()
    started = {job: at(api.wait(job)["started_at"]) for job in order}
    assert sorted(order, key=lambda job: started[job]) == order
    api.wait(blocked)
    assert (empty := queue(api))["jobs"] == [] and (empty["count"], empty["held"], empty["running"]) == (0, 1, [])
    api.post(f"/v1/jobs/{held}/cancel")


def test_an_array_is_one_row_where_its_first_task_stands(full: tuple[Cluster, str], tmp_path: Path) -> None:
    cluster, _ = full
    array = cluster.api.submit(["true"], name="many", array={"tasks": 5, "parallel": 2}, time_limit_s=60)
    single = cluster.api.submit(["true"], time_limit_s=600)
    shown = queue(cluster.api)
    assert [(job["id"], job["tasks"], job["position"]) for job in shown["jobs"]] == [(array, 5, 1), (single, None, 2)]
    assert (shown["jobs"][0]["name"], shown["count"]) == ("many", 2)
    (tmp_path / "gate").touch()
    assert cluster.api.wait(array)["state"] == "SUCCEEDED"


def test_a_reservation_names_its_nodes_and_its_time(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(2, 1)
    runs = cluster.api.submit(gate(tmp_path / "gate"), gpus=2, time_limit_s=600)
    cluster.wait_state(runs, "RUNNING")
    large = cluster.api.submit(["true"], gpus=3, time_limit_s=600)
    behind = cluster.api.submit(["true"], time_limit_s=3600)
    shown = queue(cluster.api)
    assert [job["id"] for job in shown["jobs"]] == [large, behind]
    (reserved,) = shown["jobs"][0]["reservations"]
    assert (reserved["pool"], reserved["gpu_type"], reserved["firm"], reserved["all"]) == ("default", "cpu", False, False)
    assert sorted((place["node"], place["gpus"]) for place in reserved["nodes"]) == [("node0", 2), ("node1", 1)]
    assert abs(at(reserved["from"]) - at(shown["running"][0]["ends_at"])) < 1
    assert shown["jobs"][1]["reservations"] == []
    assert (shown["jobs"][1]["reason"]["code"], large in shown["jobs"][1]["reason"]["text"]) == ("RESERVED", True)
    (tmp_path / "gate").touch()
    assert at(cluster.api.wait(large)["started_at"]) <= at(cluster.api.wait(behind)["started_at"])


def test_under_fifo_the_first_job_reserves_everything_and_no_job_is_due(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(2, 1, controller=["--policy", "fifo"])
    runs = cluster.api.submit(gate(tmp_path / "gate"), gpus=2)
    cluster.wait_state(runs, "RUNNING")
    large = cluster.api.submit(["true"], gpus=3, priority=-1)
    small = cluster.api.submit(["true"], priority=1)
    shown = queue(cluster.api)
    assert (shown["policy"], [job["id"] for job in shown["jobs"]]) == ("fifo", [large, small])
    first = shown["jobs"][0]
    assert (first["due_at"], first["allowance_s"], first["share_delay_s"]) == (None, None, None)
    assert [reserved["all"] for reserved in first["reservations"]] == [True]
    (tmp_path / "gate").touch()
    assert cluster.api.wait(small)["state"] == "SUCCEEDED"


def test_filters_keep_positions_and_users_see_their_own(full: tuple[Cluster, str], tmp_path: Path) -> None:
    cluster, _ = full
    api, ann, bob = cluster.api, cluster.user("ann"), cluster.user("bob")
    cluster.open_project("red", "blue")
    one = ann.submit(["true"], project="red", time_limit_s=60)
    two = bob.submit(["true"], project="red", time_limit_s=120, pool="default")
    three = bob.submit(["true"], project="blue", time_limit_s=180)

    def rows(asker: Api, query: str) -> list[tuple[int, str]]:
        return [(job["position"], job["id"]) for job in queue(asker, query)["jobs"]]

    assert rows(api, "") == [(1, one), (2, two), (3, three)]
    assert rows(api, "&project=red") == [(1, one), (2, two)]
    assert rows(api, "&owner=bob") == rows(bob, "") == rows(bob, "&owner=bob") == [(2, two), (3, three)]
    assert rows(api, "&owner=bob&project=blue") == rows(bob, "&project=blue") == [(3, three)]
    assert rows(api, "&pool=default") == [(1, one), (2, two), (3, three)]
    assert rows(api, "&pool=elsewhere") == []
    assert (queue(ann)["count"], queue(ann)["running"]) == (1, [])
    first = api.get("/v1/queue?limit=1")
    assert (first["count"], [job["id"] for job in first["jobs"]]) == (3, [one])
    with pytest.raises(Problem) as refused:
        queue(ann, "&owner=bob")
    assert (refused.value.status, refused.value.field) == (403, "owner") and refused.value.body["hint"]
    (tmp_path / "gate").touch()


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=many", "limit"),
        ("pool=a/b", "pool"),
        ("owner=", "owner"),
        ("project=-x", "project"),
        ("state=QUEUED", "state"),
    ],
)
def test_a_wrong_question_is_refused_with_the_field(cluster: Cluster, query: str, field: str) -> None:
    with pytest.raises(Problem) as refused:
        cluster.api.get(f"/v1/queue?{query}")
    assert (refused.value.status, refused.value.field) == (422, field), refused.value.body


def test_fifty_who_ask_the_same_get_one_answer(cluster: Cluster) -> None:
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: cluster.api.get("/v1/queue?limit=199")["as_of"], range(50)))
    assert len(set(answers)) == 1


def test_gpuctl_lists_the_queue_in_its_order(full: tuple[Cluster, str], tmp_path: Path) -> None:
    cluster, _ = full
    token = cluster.folder / "controller" / "admin.token"

    def gpuctl(*arguments: str) -> str:
        told = run_gpuctl("queue", *arguments, env={"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token), "NO_COLOR": "1"})
        assert told.returncode == 0, told.stderr
        return told.stdout

    assert gpuctl("--limit", "7").splitlines()[-1] == "policy default; 0 jobs wait"
    late = cluster.api.submit(["true"], name="late", time_limit_s=600)
    soon = cluster.api.submit(["true"], time_limit_s=60, array={"tasks": 3})
    cluster.api.submit(["true"], hold=True)
    head, first, second, last = gpuctl("--limit", "8", "-o", "wide").splitlines()
    titles = "POS ID NAME OWNER PROJECT POOL GPUS TYPE PRIO WAITS RUNS SHARE DUE START RESERVED REASON"
    assert head.split() == titles.split()
    assert (first.split()[:2], second.split()[:3]) == (["1", soon], ["2", late, "late"])
    assert "1 x 3" in first and "waits for 1 GPU: 0 are free" in first and "it is queued behind" in second
    assert last == "policy default; 2 jobs wait; not in the queue: 1 held, 0 blocked"
    assert gpuctl("--limit", "9", "-q").split() == [soon, late]
    assert gpuctl("--limit", "1").splitlines()[-1].startswith("policy default; 2 jobs wait, the first 1 are shown")
    assert [job["id"] for job in json.loads(gpuctl("--limit", "10", "-o", "json"))["jobs"]] == [soon, late]
    (tmp_path / "gate").touch()
