# SPDX-License-Identifier: Apache-2.0
"""Lists that are longer than one answer looks at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from harness import Api, Cluster, run_gpuctl

MANY = 1100  #: jobs: an answer looks at 500


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
