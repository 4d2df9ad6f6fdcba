# SPDX-License-Identifier: Apache-2.0
"""Output: live, by rank and stream, by range, and resumed where a reader was cut off."""

from __future__ import annotations

import json
from pathlib import Path

from harness import Cluster

TALK = "for n in 1 2 3; do echo out $n; echo err $n >&2; done; while ! test -e {gate}; do sleep 0.01; done; echo last"


def follow(cluster: Cluster, path: str, last_id: str | None = None, until: int | None = None) -> list[dict[str, str]]:
    """The events of a log stream, all of them or the first `until`."""
    events = []
    for event in cluster.api.stream(path, last_id):
        events.append(event)
        if until is not None and len(events) >= until:
            break
    return events


def joined(events: list[dict[str, str]], rank: int, stream: str) -> str:
    parts = [json.loads(event["data"]) for event in events if event.get("event") != "end"]
    return "".join(part["text"] for part in parts if (part["rank"], part["stream"]) == (rank, stream))


def test_following_brings_all_ranks_and_streams_and_ends_with_the_job(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    job = cluster.api.submit(["sh", "-c", TALK.format(gate=tmp_path / "gate")], gpus=4)
    events = follow(cluster, f"/v1/jobs/{job}/logs")
    for rank in range(4):
        assert joined(events, rank, "stdout") == "out 1\nout 2\nout 3\nlast\n"
        assert joined(events, rank, "stderr") == "err 1\nerr 2\nerr 3\n"
    assert events[-1]["event"] == "end"
    assert json.loads(events[-1]["data"]) == {"state": "SUCCEEDED", "exit_code": 0}


def test_a_follower_that_was_cut_off_resumes_without_gap_or_repeat(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.api.submit(["sh", "-c", TALK.format(gate=tmp_path / "gate")], gpus=2)
    first = follow(cluster, f"/v1/jobs/{job}/logs", until=2)
    (tmp_path / "gate").touch()
    rest = follow(cluster, f"/v1/jobs/{job}/logs", last_id=first[-1]["id"])
    for rank in range(2):
        assert joined(first + rest, rank, "stdout") == "out 1\nout 2\nout 3\nlast\n"
        assert joined(first + rest, rank, "stderr") == "err 1\nerr 2\nerr 3\n"


def test_a_follower_can_choose_rank_and_stream(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    job = cluster.api.submit(["sh", "-c", TALK.format(gate=tmp_path / "gate")], gpus=2)
    events = follow(cluster, f"/v1/jobs/{job}/logs?rank=1&stream=stderr")
    assert joined(events, 1, "stderr") == "err 1\nerr 2\nerr 3\n"
    assert joined(events, 0, "stderr") == joined(events, 1, "stdout") == ""


def test_ranges_and_tails_of_a_stream(cluster: Cluster) -> None:
    job = cluster.api.submit(["printf", "0123456789"])
    cluster.api.wait(job)
    path = f"/v1/jobs/{job}/logs?rank=0&stream=stdout"
    status, headers, body = cluster.api.raw("GET", path, headers={"Range": "bytes=2-4"})
    assert (status, body, headers["content-range"]) == (206, b"234", "bytes 2-4/10")
    assert cluster.api.raw("GET", path, headers={"Range": "bytes=7-"})[2] == b"789"
    assert cluster.api.raw("GET", path, headers={"Range": "bytes=-3"})[2] == b"789"
    assert cluster.api.raw("GET", path, headers={"Range": "bytes=10-"})[0] == 416
    assert cluster.api.log(job, tail=4) == "6789"


def test_bytes_that_are_not_text_come_through_raw_and_marked_in_the_stream(cluster: Cluster) -> None:
    job = cluster.api.submit(["printf", "a\\377b\\n"])
    cluster.api.wait(job)
    assert cluster.api.raw("GET", f"/v1/jobs/{job}/logs")[2] == b"a\xffb\n"
    assert joined(follow(cluster, f"/v1/jobs/{job}/logs"), 0, "stdout") == "a\ufffdb\n"


def test_events_can_be_followed_to_the_end(cluster: Cluster) -> None:
    job = cluster.api.submit(["true"])
    events = [event for event in cluster.api.stream(f"/v1/jobs/{job}/events") if event.get("event") != "end"]
    kinds = [json.loads(event["data"])["kind"] for event in events]
    assert kinds == ["submitted", "placed", "started", "running", "succeeded"]
    assert [event["id"] for event in events] == [str(n) for n in range(1, 6)]
    rest = [event for event in cluster.api.stream(f"/v1/jobs/{job}/events", last_id="3") if event.get("event") != "end"]
    assert [event["id"] for event in rest] == ["4", "5"]
