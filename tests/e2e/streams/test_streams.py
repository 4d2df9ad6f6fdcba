# SPDX-License-Identifier: Apache-2.0
"""Streams at the controller and at nodes: who may have one, what is noted, and what hostile clients and agents get."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness import Api, Cluster, Problem, eventually, make_tls
from joined import CREDIT, DATA, END, EXIT, FAILURE, SIZE, SLEEP, Joined, ask, frame, gpuctl, join, running, size


@pytest.fixture(scope="module")
def job(cluster: Cluster) -> Iterator[str]:
    job = running(cluster, SLEEP)
    yield job
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    cluster.api.wait(job)


def refused(api: Api, job: str, **wanted: object) -> tuple[int, str]:
    with pytest.raises(Problem) as caught:
        api.post(f"/v1/jobs/{job}/streams", {"kind": "exec", "command": ["true"], **wanted})
    return caught.value.status, caught.value.body["detail"]


def test_only_its_owner_and_administrators_reach_into_a_job(cluster: Cluster) -> None:
    ada, bob = cluster.user("ada"), cluster.user("bob")
    job = ada.submit(SLEEP, gpu_type="cpu")
    cluster.wait_state(job, "RUNNING")
    assert refused(bob, job) == (404, f"there is no job {job}")
    assert refused(cluster.user("otto", "operator"), job)[0] == 403
    assert refused(cluster.user("vera", "viewer"), job)[0] == 403
    gpuctl(cluster, "exec", job, "true", token=ada.token)
    gpuctl(cluster, "exec", job, "true")
    stream = ask(ada, job, command=["true"])
    assert Joined(bob, f"/v1/streams/{stream}").status == 404
    assert Joined(ada, f"/v1/streams/{stream}").status == 101
    ada.post(f"/v1/jobs/{job}/cancel")
    ada.wait(job)


def rows_of(cluster: Cluster, job: str) -> list[Any]:
    return [row for row in cluster.api.get("/v1/audit")["audit"] if job in row["path"] and row["detail"]]


def test_it_is_noted_who_ran_what(cluster: Cluster, job: str) -> None:
    gpuctl(cluster, "exec", job, "--", "echo", "a-password")
    stream = join(cluster.api, job, kind="forward", port=1)
    stream.until(FAILURE)
    noted = eventually(lambda: len(rows := rows_of(cluster, job)) >= 2 and rows, "rows")
    details = [json.loads(row["detail"]) for row in noted]
    assert any(detail.get("exec") == "echo" and detail["rank"] == 0 for detail in details)
    assert any(detail.get("forward") == 1 for detail in details)
    assert "a-password" not in json.dumps(cluster.api.get("/v1/audit"))
    assert all(row["owner"] == "admin" for row in noted)


def test_a_refused_command_is_not_noted(cluster: Cluster, job: str) -> None:
    bob = cluster.user("bobby")
    refused(bob, job, command=["echo", "secret-of-bob"])
    row = eventually(lambda: next((row for row in cluster.api.get("/v1/audit")["audit"] if row["owner"] == "bobby"), None), "the refusal")
    assert row["status"] == 404 and "secret-of-bob" not in json.dumps(row)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"command": []}, "command names no program"),
        ({"command": [1]}, "command holds something that is no text"),
        ({"command": ["x" * 40000]}, "command is longer than 32768 bytes"),
        ({"kind": "dance"}, 'there is no kind of stream "dance"'),
        ({"kind": "forward", "port": 0}, "port"),
        ({"kind": "forward", "port": 65536}, "port"),
        ({"rank": -1}, "rank"),
        ({"rank": 1}, "has no rank 1"),
        ({"terminal": {"term": "a b"}}, "term is not the name of a kind of terminal"),
        ({"terminal": {"rows": -1}}, "rows"),
        ({"user": "root"}, 'there is no field "user" here'),
    ],
)
def test_a_bad_request_names_its_field(cluster: Cluster, job: str, wanted: dict[str, object], said: str) -> None:
    status, detail = refused(cluster.api, job, **wanted)
    assert status in (400, 422) and said in detail


def test_an_id_is_good_for_one_use_of_each_side(cluster: Cluster, job: str) -> None:
    stream = ask(cluster.api, job, command=["cat"], input=True)
    first = Joined(cluster.api, f"/v1/streams/{stream}")
    assert first.status == 101
    assert Joined(cluster.api, f"/v1/streams/{stream}").status == 404
    node = Api(cluster.url, (cluster.folder / "node.token").read_text().strip(), cluster.cacert)
    assert Joined(node, f"/v1/agent/streams/{stream}").status == 404
    assert Joined(cluster.api, "/v1/streams/aaaaaaaaaaaaaaaa").status == 404
    assert Joined(cluster.api, f"/v1/streams/{ask(cluster.api, job, command=['true'])}", upgrade="websocket").status == 400
    assert Joined(node, f"/v1/streams/{ask(cluster.api, job, command=['true'])}").status == 403
    first.send(DATA, b"still here")
    assert first.until(DATA) == (DATA, b"still here")
    first.send(END)
    assert first.until(EXIT) == (EXIT, bytes([0, 0]))


def test_no_other_node_joins_a_stream(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    job = running(cluster, SLEEP)
    cluster.agents[0].kill()  # so that the test is the only one that asks
    other = Api(cluster.url, cluster.own_node_token("other"))
    stream = ask(cluster.api, job, command=["true"])
    assert Joined(other, f"/v1/agent/streams/{stream}").status == 404
    own = Api(cluster.url, (cluster.folder / "node.token").read_text().strip())
    node, client = Joined(own, f"/v1/agent/streams/{stream}", later=True), Joined(cluster.api, f"/v1/streams/{stream}", later=True)
    assert (node.answered(), client.answered()) == (101, 101)
    node.send(FAILURE, b"said by the node")
    assert client.next() == (FAILURE, b"said by the node")
    client.close()
    assert node.next() is None
    cluster.agents[0].start()
    cluster.wait_ready()


def test_a_node_that_is_away_is_named(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    job = running(cluster, SLEEP)
    cluster.agents[0].kill()
    said = gpuctl(cluster, "exec", job, "true", code=125).stderr.decode().splitlines()[0]
    assert said == f"gpuctl: node node0 did not open the connection to job {job} within 10 s"
    cluster.agents[0].start()
    cluster.wait_ready()


@pytest.mark.parametrize(
    "hostile",
    [
        bytes([DATA]) + (2**24 - 1).to_bytes(3, "big"), bytes([99, 0, 0, 1, 0]), frame(SIZE, b"123456"), frame(EXIT, bytes([0, 0])),
        frame(CREDIT, b"\xff\xff\xff\xff"), frame(DATA),
    ],
)  # fmt: skip
def test_a_frame_that_breaks_the_protocol_ends_the_stream_alone(cluster: Cluster, job: str, hostile: bytes) -> None:
    stream = join(cluster.api, job, command=["cat"], input=True)
    stream.socket.sendall(hostile)
    assert stream.next() is None
    gpuctl(cluster, "exec", job, "true")


def test_a_client_that_sends_more_than_it_may_is_cut(cluster: Cluster, job: str) -> None:
    stream = join(cluster.api, job, command=["sleep", "600"], input=True)
    with pytest.raises(OSError):
        for _ in range(1000):
            stream.send(DATA, bytes(65536))
        while stream.next() is not None:
            pass
        raise ConnectionResetError


def test_a_slow_reader_slows_the_command(cluster: Cluster, job: str) -> None:
    stream = join(cluster.api, job, command=["sh", "-c", "head -c 300000000 /dev/zero; echo done > done"])
    assert stream.next() is not None
    before = memory(cluster)
    here = gpuctl(cluster, "exec", job, "--", "sh", "-c", "pgrep -x head > /dev/null && ! test -e done && echo waits").stdout
    assert here == b"waits\n" and memory(cluster) - before < 10_000_000
    total = 0
    while (found := stream.next()) is not None and found[0] == DATA:
        total += len(found[1])
    assert found == (EXIT, bytes([0, 0])) and total > 299_000_000


def descriptors(cluster: Cluster) -> int:
    assert cluster.controller.process is not None
    return len(os.listdir(f"/proc/{cluster.controller.process.pid}/fd"))


@pytest.fixture
def away(cluster: Cluster, job: str) -> Iterator[None]:
    """No agent runs, so that the test is the only one that joins as a node."""
    for agent in cluster.agents:
        agent.kill()
    yield
    for agent in cluster.agents:
        agent.start()
    cluster.wait_ready()


def send_all(node: Joined, length: int) -> None:
    node.send(DATA, bytes(length))
    node.close()


@pytest.mark.usefixtures("away")
def test_what_a_node_said_last_reaches_a_client_that_does_not_read_yet(cluster: Cluster, job: str) -> None:
    node_api = Api(cluster.url, (cluster.folder / "node.token").read_text().strip(), cluster.cacert)
    first = descriptors(cluster)
    for length in range(50_000, 800_000, 150_000):  # some of which wait within the controller when the node has gone
        before = descriptors(cluster)
        stream = ask(cluster.api, job, command=["true"])
        node = Joined(node_api, f"/v1/agent/streams/{stream}", later=True)
        client = Joined(cluster.api, f"/v1/streams/{stream}", receive=4096)
        assert (node.answered(), client.status) == (101, 101)
        sender = threading.Thread(target=send_all, args=(node, length))
        sender.start()
        with suppress(AssertionError):  # the longest do not go out before this client reads
            eventually(lambda: descriptors(cluster) - before <= 4, "the node's side to end", 1)  # noqa: B023
        found = client.next()
        assert found is not None and (found[0], len(found[1]), client.next()) == (DATA, length, None)
        client.close()
        sender.join()
    eventually(lambda: descriptors(cluster) <= first + 4, "the connections to be closed")


def memory(cluster: Cluster) -> int:
    assert cluster.controller.process is not None
    with open(f"/proc/{cluster.controller.process.pid}/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_streams_of_a_job_are_limited(cluster: Cluster) -> None:
    job = running(cluster, SLEEP)  # without what others have asked for and not joined
    streams = [join(cluster.api, job, command=["sleep", "600"]) for _ in range(128)]
    assert refused(cluster.api, job) == (429, f"job {job} has 128 open streams, the most that a job may have")
    for stream in streams:
        stream.close()
    eventually(lambda: try_again(cluster, job), "room for a stream")
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    cluster.api.wait(job)


def try_again(cluster: Cluster, job: str) -> bool:
    try:
        join(cluster.api, job, command=["true"]).close()
    except Problem:
        return False
    return True


def open_requests(cluster: Cluster) -> int:
    page = cluster.api.raw("GET", "/metrics")[2].decode()
    return int(next(line.split()[-1] for line in page.splitlines() if line.startswith("gpuctl_http_requests_open ")))


@pytest.mark.parametrize("tls", [True, False])
def test_a_stream_that_was_joined_holds_no_request(tmp_path: Path, tls: bool) -> None:
    cluster = Cluster(tmp_path, [1], make_tls(tmp_path) if tls else []).start()
    job = running(cluster, SLEEP)
    own = 2  # the poll of the node, and the one that asks
    eventually(lambda: open_requests(cluster) == own, "the requests of the submission to end")
    streams = [join(cluster.api, job, command=["cat"], input=True) for _ in range(3)]
    eventually(lambda: open_requests(cluster) == own, "the requests of the streams to end")
    for stream in streams:
        stream.send(DATA, b"here")
        assert stream.until(DATA) == (DATA, b"here")
        stream.send(END)
        stream.until(EXIT)
    cluster.cancel_all()
    cluster.stop()


def test_a_window_that_changes_reaches_the_terminal(cluster: Cluster, job: str) -> None:
    stream = join(cluster.api, job, command=["sh", "-c", "stty size; read line; stty size"], input=True, terminal={"rows": 5, "columns": 6})
    assert stream.until(DATA)[1].startswith(b"5 6")
    stream.send(SIZE, size(7, 8))
    stream.send(DATA, b"\n")
    seen = b""
    while (found := stream.next()) is not None and found[0] == DATA:
        seen += found[1]
    assert b"7 8" in seen and found == (EXIT, bytes([0, 0]))


def test_a_revoked_token_ends_its_streams(cluster: Cluster) -> None:
    eve = cluster.user("eve")
    job = eve.submit(SLEEP, gpu_type="cpu")
    cluster.wait_state(job, "RUNNING")
    stream = join(eve, job, command=["sleep", "600"])
    token = next(row["id"] for row in cluster.api.get("/v1/tokens")["tokens"] if row["owner"] == "eve")
    cluster.api.post(f"/v1/tokens/{token}/revoke")
    assert stream.next() is None
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    cluster.api.wait(job)
