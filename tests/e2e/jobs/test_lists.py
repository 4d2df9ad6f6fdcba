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
