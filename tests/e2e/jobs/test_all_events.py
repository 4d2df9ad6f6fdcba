# SPDX-License-Identifier: Apache-2.0
"""The events of all jobs as one stream: in order, one's own alone, and with a word where something is missing."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable
from typing import Any

import pytest

from harness import GPUCTL, Api, Cluster, Problem, eventually


class Follower:
    """Reads the stream on a thread of its own."""

    def __init__(self, api: Api, last_id: str | None = None):
        self.api = api
        self.got: list[dict[str, str]] = []
        self.last_id = last_id
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self) -> None:
        for event in self.api.stream("/v1/events", self.last_id):
            self.got.append(event)

    def of(self, job: str) -> list[Any]:
        return [event for event in (json.loads(got["data"]) for got in list(self.got)) if event.get("job_id") == job]


@pytest.fixture
def listening(cluster: Cluster) -> Callable[..., Follower]:
    """Make followers that have begun: each has seen an event of a job that was submitted for that."""

    def make(api: Api) -> Follower:
        follower = Follower(api)

        def heard() -> bool:
            api.wait(api.submit(["true"]))
            return bool(follower.got)

        eventually(heard, "the first event")
        return follower

    return make


def test_each_event_comes_as_the_history_of_its_job_has_it(cluster: Cluster, listening: Callable[..., Follower]) -> None:
    follower = listening(cluster.api)
    jobs = [cluster.user("ann").submit(["true"]), cluster.user("bob").submit(["sh", "-c", "exit 3"], retries=1)]
    jobs.append(cluster.api.submit(["true"], array={"tasks": 3}))
    for job in jobs:
        cluster.api.wait(job)
        history = cluster.api.get(f"/v1/jobs/{job}/events?limit=200")["events"]
        eventually(lambda job=job, history=history: len(follower.of(job)) >= len(history), "the events")
        assert follower.of(job) == history


def test_people_see_events_of_their_own_jobs_alone(cluster: Cluster, listening: Callable[..., Follower]) -> None:
    ann, bob = cluster.user("ann"), cluster.user("bob")
    follower = listening(ann)
    theirs = bob.submit(["true"])
    bob.wait(theirs)
    mine = ann.submit(["true"])
    ann.wait(mine)
    eventually(lambda: len(follower.of(mine)) == len(ann.events(mine)), "the events")
    assert follower.of(theirs) == []
    assert {json.loads(event["data"])["job_id"] for event in follower.got} <= {job["id"] for job in ann.get("/v1/jobs?limit=200")["jobs"]}


def test_a_client_that_comes_back_goes_on_behind_what_it_saw(cluster: Cluster, listening: Callable[..., Follower]) -> None:
    first = listening(cluster.api)
    job = cluster.api.submit(["true"])
    cluster.api.wait(job)
    history = cluster.api.get(f"/v1/jobs/{job}/events")["events"]
    eventually(lambda: len(first.of(job)) == len(history), "the events")
    last = next(event["id"] for event in reversed(first.got) if "id" in event and json.loads(event["data"])["seq"] < len(history))
    again = Follower(cluster.api, last)
    eventually(lambda: again.of(job) and again.of(job)[-1] == history[-1], "the rest")
    assert again.of(job) == history[-len(again.of(job)) :]
    assert "gap" not in [event.get("event") for event in again.got]


def test_what_is_missing_after_a_start_of_the_controller_is_said(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    follower = Follower(cluster.api, "1-0")
    cluster.api.wait(cluster.api.submit(["true"]))
    eventually(lambda: follower.got, "an event")
    last = next(event["id"] for event in follower.got if "id" in event)
    cluster.controller.kill()
    cluster.start_controller()
    again = Follower(cluster.api, last)
    eventually(lambda: again.got, "an event")
    assert again.got[0]["event"] == "gap"
    job = cluster.api.submit(["true"])
    eventually(lambda: again.of(job), "an event of later")


def test_bad_requests_are_refused_by_field(cluster: Cluster) -> None:
    with pytest.raises(Problem) as caught:
        cluster.api.get("/v1/events")
    assert (caught.value.status, caught.value.body["field"]) == (422, "Accept")
    headers = {"Accept": "text/event-stream", "Last-Event-ID": "x"}
    status, _, body = cluster.api.raw("GET", "/v1/events", headers=headers)
    assert (status, json.loads(body)["field"]) == (422, "Last-Event-ID")


def test_gpuctl_follows_all_jobs(cluster: Cluster, tmp_path: Any) -> None:
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text(cluster.admin_token)
    command = [str(GPUCTL), "events", "--follow", "-o", "jsonl", "--url", cluster.url, "--token-file", str(token)]
    refused = subprocess.run([*command[:2], *command[5:]], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--follow" in refused.stderr
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
        lines: list[Any] = []
        assert follower.stdout is not None
        out = follower.stdout
        reader = threading.Thread(target=lambda: lines.extend(iter(lambda: json.loads(out.readline() or "0"), 0)), daemon=True)
        reader.start()

        def seen() -> bool:
            job = cluster.api.submit(["true"])
            cluster.api.wait(job)
            return any(line["job_id"] == job for line in list(lines))

        eventually(seen, "the events of a job")
        follower.kill()
