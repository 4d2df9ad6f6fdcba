# SPDX-License-Identifier: Apache-2.0
"""Lists that are longer than one answer looks at."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable, Iterator

import pytest

from harness import Api, Cluster, Problem, eventually, run_gpuctl
from paper_node import registration

MANY = 1100  #: jobs: an answer looks at 500
ROWS = 200  #: the most on a page


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A controller with many jobs that wait, all of ann's; the oldest two are named "rare"."""
    ours = Cluster(tmp_path_factory.mktemp("many"), [1]).start()
    ours.api.post("/v1/nodes/node0/drain", {"reason": "jobs are to wait"})
    ann = ours.user("ann")
    for number in range(MANY):
        ann.submit(["true"], name="rare" if number < 2 else "train")
    yield ours
    ours.controller.kill()  # it would take a while to cancel them one by one
    ours.stop()


@pytest.fixture
def ann(many: Cluster) -> Api:
    return many.user("ann")


def pages(api: Api, path: str) -> list[list[str]]:
    """The names on each page of the list."""
    found, position = [], ""
    while True:
        page = api.get(path + position)
        found.append([job["name"] for job in page["jobs"]])
        if page["next"] is None:
            return found
        position = f"&cursor={page['next']}"


@pytest.mark.parametrize("query", ["name=rare", "name=rare&state=QUEUED", "name=rare&owner=ann&since=0"])
def test_a_filter_that_few_jobs_fit_takes_several_pages_and_misses_none(ann: Api, query: str) -> None:
    found = pages(ann, f"/v1/jobs?{query}")
    assert found[0] == [] and len(found) > 1
    assert sum(found, []) == ["rare", "rare"]


def test_a_filter_that_no_job_fits_ends(ann: Api) -> None:
    assert pages(ann, "/v1/jobs?name=nope&state=FAILED") == [[], [], []]
    assert pages(ann, "/v1/jobs?name=train&since=2100-01-01T00:00:00Z") == [[]]


def test_a_list_without_a_filter_fills_its_pages(ann: Api) -> None:
    assert [len(page) for page in pages(ann, "/v1/jobs?limit=200")] == [200, 200, 200, 200, 200, 100]


def test_lists_that_are_asked_for_together_are_each_whole(many: Cluster, ann: Api) -> None:
    path = f"/v1/jobs?limit={ROWS}"
    alone = [job["id"] for job in ann.get(path)["jobs"]]
    request = f"GET {path} HTTP/1.1\r\nHost: {ann.address}\r\nAuthorization: Bearer {ann.token}\r\n\r\n".encode()
    lines = [socket.create_connection(("127.0.0.1", many.port)) for _ in range(40)]
    for line in lines:
        line.sendall(request)
    for line in lines[::2]:  # who goes away takes nobody else's rows along
        line.close()
    for line in lines[1::2]:
        with line:
            reply = http.client.HTTPResponse(line)
            reply.begin()
            assert [job["id"] for job in json.loads(reply.read())["jobs"]] == alone
    assert len(set(alone)) == ROWS


def test_ps_shows_the_jobs_that_lie_far_back(many: Cluster) -> None:
    access = {"GPUCTL_URL": many.url, "GPUCTL_TOKEN_FILE": str(many.folder / "controller" / "admin.token")}
    for options in (["--all"], [], ["--all", "--limit", "2"], ["--all", "--owner", "ann"]):
        shown = run_gpuctl("ps", "--name", "rare", *options, "-o", "json", env=access)
        assert [job["name"] for job in json.loads(shown.stdout)["jobs"]] == ["rare", "rare"], shown.stderr


def test_attempts_of_many_ranks_take_several_pages(make_cluster: Callable[..., Cluster]) -> None:
    ours = make_cluster(60)
    job = ours.api.submit(["false"], gpus=60, retries=9)
    assert ours.api.wait(job)["attempt"] == 10
    numbers, position = [], ""
    while True:
        page = ours.api.get(f"/v1/jobs/{job}/attempts{position}")
        numbers.append([attempt["attempt"] for attempt in page["attempts"]])
        assert all(len(attempt["nodes"]) == 1 and len(attempt["ranks"]) == 60 for attempt in page["attempts"])
        if page["next"] is None:
            break
        position = f"?cursor={page['next']}"
    assert numbers == [[10, 9, 8, 7, 6, 5, 4, 3, 2], [1]]


def all_of(api: Api, path: str, limit: int) -> list[list[str]]:
    """The names of nodes, or the ids of tokens, on each page of their list."""
    found: list[list[str]] = []
    position = ""
    while True:
        page = api.get(f"{path}?limit={limit}{position}")
        found.append([item.get("name") or item["id"] for item in page.get("nodes") or page["tokens"]])
        if page["next"] is None:
            return found
        position = f"&cursor={page['next']}"


def test_nodes_and_tokens_come_in_pages_and_gpuctl_shows_all_of_them(make_cluster: Callable[..., Cluster]) -> None:
    ours = make_cluster(1)
    nodes = Api(ours.url, ours.user("nodes", role="node").token)
    for number in range(ROWS + 5):
        nodes.post("/v1/agent/register", registration(f"paper{number:03}", "boot", ["cpu"]))
        ours.user(f"user{number}")
    access = {"GPUCTL_URL": ours.url, "GPUCTL_TOKEN_FILE": str(ours.folder / "controller" / "admin.token")}
    for path, verb, key, order in (("/v1/nodes", "nodes", "name", "name"), ("/v1/tokens", "token", "id", "created_at")):
        few, most = all_of(ours.api, path, 7), all_of(ours.api, path, ROWS)
        assert {len(page) for page in few[:-1]} == {7} and [len(page) for page in most[:-1]] == [ROWS]
        shown = next(iter(json.loads(run_gpuctl(verb, "list", "-o", "json", env=access).stdout).values()))
        assert sum(few, []) == sum(most, []) == [item[key] for item in shown]
        assert len({item[key] for item in shown}) == len(shown) > ROWS + 5
        assert [item[order] for item in shown] == sorted(item[order] for item in shown)


def test_a_list_that_has_not_changed_is_not_sent_again_to_who_has_it(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    ann, bob = cluster.user("ann"), cluster.user("bob")

    def ask(api: Api, tag: str = "") -> tuple[int, str, bytes]:
        status, headers, body = api.raw("GET", "/v1/jobs?limit=5", headers={"If-None-Match": tag} if tag else {})
        return status, headers["etag"], body

    job = ann.submit(["true"])
    ann.wait(job)
    status, tag, body = ask(ann)
    assert status == 200 and job in body.decode()
    assert ask(ann, tag) == (304, tag, b"")
    assert ask(bob, tag)[0] == 200  # of another person, who sees other jobs
    other = ann.submit(["true"])
    ann.wait(other)
    status, later, body = ask(ann, tag)
    assert status == 200 and other in body.decode()
    tag = eventually(lambda: ask(ann, later)[0] == 304 and later, "the list to stay as it is")
    cluster.api.call("DELETE", f"/v1/jobs/{job}")
    status, _, body = ask(ann, tag)
    assert status == 200 and job not in body.decode()


def test_a_page_that_cannot_be_is_refused_by_the_name_of_the_parameter(many: Cluster) -> None:
    for path, query in (("/v1/tokens", "cursor=nonsense"), ("/v1/tokens", "limit=201"), ("/v1/nodes", "limit=0")):
        with pytest.raises(Problem) as refused:
            many.api.get(f"{path}?{query}")
        assert (refused.value.status, refused.value.field) == (422, query.split("=")[0])


def test_a_node_lists_the_jobs_and_tasks_that_had_its_gpus_to_those_who_may_see_them(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, 1)
    ann, bob = cluster.user("ann"), cluster.user("bob")
    access = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}

    def of(api: Api, query: str) -> list[str]:
        return [job["id"] for page in whole(api, f"/v1/jobs?limit=2&{query}") for job in page]

    def whole(api: Api, path: str) -> Iterator[list[dict[str, object]]]:
        position: str | None = ""
        while position is not None:
            page = api.get(f"{path}&cursor={position}" if position else path)
            yield page["jobs"]
            position = page["next"]

    first = ann.submit(["true"], name="first", constraints={"node": "node0"})
    other = bob.submit(["true"], constraints={"node": "node1"})
    gang = bob.submit(["true"], gpus=2)
    array = ann.submit(["true"], array={"tasks": 2}, constraints={"node": "node0"})
    tried = ann.submit(["false"], retries=1, constraints={"node": "node0"})
    for job in (first, other, gang, array, tried):
        cluster.api.wait(job)
    runs = ann.submit(["sleep", "600"], constraints={"node": "node0"})
    cluster.wait_state(runs, "RUNNING")
    waits = ann.submit(["true"], constraints={"node": "node0"})
    tasks = [job["id"] for job in ann.get(f"/v1/jobs?array={array}")["jobs"]]

    assert of(cluster.api, "node=node0") == [job for job in of(cluster.api, "id_prefix=") if job in (runs, tried, *tasks, gang, first)]
    assert of(cluster.api, "node=node1") == [gang, other]
    assert of(cluster.api, "node=node1&owner=ann") == [] and of(cluster.api, "node=nothing-ran-there") == []
    assert of(cluster.api, "node=node0&state=QUEUED,RUNNING") == [runs] and waits not in of(cluster.api, "node=node0")
    assert of(ann, "node=node0&name=first") == of(ann, "node=node0&state=SUCCEEDED&since=0")[-1:] == [first]
    assert gang not in of(ann, "node=node0") and of(bob, "node=node0") == [gang] and of(ann, "node=node1") == []
    with pytest.raises(Problem) as refusal:
        ann.get("/v1/jobs?node=../node0")
    assert (refusal.value.status, refusal.value.field) == (422, "node")

    here = {job["id"]: job["on_node"] for job in cluster.api.get("/v1/jobs?node=node0")["jobs"]}
    attempt = ann.get(f"/v1/jobs/{tried}/attempts")["attempts"][0]
    assert attempt["attempt"] == 2 and attempt["cause"] == "RANK_FAILED"
    assert here[tried] == {**{name: attempt[name] for name in here[tried] if name != "devices"}, "devices": attempt["nodes"][0]["devices"]}
    assert here[runs]["ended_at"] is None and here[first]["cause"] is None
    assert all("on_node" not in job for job in cluster.api.get("/v1/jobs")["jobs"])

    shown = run_gpuctl("ps", "--node", "node0", "--all", env=access).stdout.splitlines()
    assert shown[0].split() == ["ID", "NAME", "STATE", "OWNER", "DEVICES", "FROM", "UNTIL", "TRY", "CAUSE"]
    (line,) = (line.split() for line in shown if line.startswith(tried))
    assert line[2:5] == ["FAILED", "ann", "0"] and line[-2:] == ["2", "RANK_FAILED"]
    assert run_gpuctl("ps", "--node", "node0", "--quiet", env=access).stdout.split() == [runs]
