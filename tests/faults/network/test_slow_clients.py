# SPDX-License-Identifier: Apache-2.0
"""Clients that are stuck, drip, or never read are cut off, cost little, and hold up nobody; those that are only slow are served."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness import Cluster, eventually
from raw_http import resident, unsent_bytes
from slow_clients import Crowd, Pace

KIB = 1024
#: What a job writes that nobody reads: more than all buffers between the controller and a client hold.
TALK_BYTES = 24 * KIB * KIB


def head(cluster: Cluster, line: str, *more: str) -> bytes:
    """The first line and headers of a request of an admin."""
    lines = [f"{line} HTTP/1.1", f"Host: {cluster.api.address}", f"Authorization: Bearer {cluster.api.token}", *more, "", ""]
    return "\r\n".join(lines).encode()


def files_of(cluster: Cluster) -> int:
    assert cluster.controller.process is not None
    return len(os.listdir(f"/proc/{cluster.controller.process.pid}/fd"))


def memory_of(cluster: Cluster) -> int:
    assert cluster.controller.process is not None
    return resident(cluster.controller.process.pid)


@contextlib.contextmanager
def crowd_at(cluster: Cluster) -> Iterator[Crowd]:
    crowd = Crowd(cluster.port)
    try:
        yield crowd
    finally:
        crowd.close()


def talk(cluster: Cluster) -> str:
    """A job that has written TALK_BYTES, all of which are stored."""
    job = cluster.api.submit(["sh", "-c", f"yes 0123456789abcde | head -c {TALK_BYTES}"])
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    return job


def test_stuck_clients_are_cut_off_cost_little_and_hold_up_nobody(
    make_cluster: Callable[..., Cluster], volume: Callable[[int, int], int]
) -> None:
    cluster = make_cluster(1, controller=["--client-patience", "1s"])
    job = talk(cluster)
    count = volume(60, 400)
    ask = head(cluster, "GET /v1/jobs?limit=1")
    with Pace(cluster.port, ask) as before:
        eventually(lambda: len(before.samples) >= 200, "200 requests")
    files, memory = files_of(cluster), memory_of(cluster)
    post = ("Content-Type: application/json", "Content-Length: 2000")
    with crowd_at(cluster) as crowd, Pace(cluster.port, ask) as during:
        crowd.open_many(count, "silent")
        crowd.open_many(count, "head", said=b"GET /healthz HTTP/1.1\r\n", drip=b"X-Own: " + b"a" * 2000)
        crowd.open_many(count, "body", said=head(cluster, "POST /v1/jobs", *post), drip=b"{" + b" " * 1999)
        crowd.open_many(count, "idle", said=head(cluster, "GET /healthz"))
        crowd.open_many(count // 2, "reply", said=head(cluster, f"GET /v1/jobs/{job}/logs"), reads=False)
        crowd.open_many(count // 2, "events", said=head(cluster, f"GET /v1/jobs/{job}/logs", "Accept: text/event-stream"), reads=False)
        assert crowd.held("idle") == count and crowd.held("reply") == count // 2  # these have six times as long
        unsent = eventually(lambda: unsent_bytes(cluster.port), "replies that nobody reads")
        grown = memory_of(cluster) - memory
        for kind, patience in (("silent", 1), ("head", 1), ("body", 1), ("idle", 6), ("reply", 6), ("events", 6)):
            eventually(lambda kind=kind: crowd.held(kind) == 0, f"all {kind} clients to be cut off")
            print(f"{kind}: cut off after {crowd.held_longest(kind):.1f} s at most, allowed {patience} s")
            assert crowd.held_longest(kind) >= patience
    eventually(lambda: files_of(cluster) <= files, "the controller to close what it held")
    total = len(crowd.clients)
    print(f"{total} stuck clients: {grown // total / KIB:.1f} KiB each, {unsent // KIB} KiB in the kernel at most")
    print(f"others: {before.told()} before; {during.told()} during")
    assert during.failures == []
    assert grown + unsent * total <= total * 256 * KIB
    assert during.percentile(0.99) < 2.0


def slow_body(cluster: Cluster) -> int:
    """The status of a submission that arrives at 4 KiB/s for 3 s."""
    body = json.dumps({"command": ["true"], "gpus": 1, "labels": {"padding": "x"}}).encode().ljust(12 * KIB)
    with socket.create_connection(("127.0.0.1", cluster.port), timeout=30) as connection:
        connection.sendall(head(cluster, "POST /v1/plan", "Content-Type: application/json", f"Content-Length: {len(body)}"))
        pause = threading.Event()
        for start in range(0, len(body), 410):
            connection.sendall(body[start : start + 410])
            pause.wait(0.1)
        return int(connection.recv(65536).split()[1])


def slow_reader(cluster: Cluster, job: str) -> int:
    """How many bytes of a log come to a client that takes 64 KiB a time, ten times a second."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * KIB)
    connection.settimeout(30)
    connection.connect(("127.0.0.1", cluster.port))
    connection.sendall(head(cluster, f"GET /v1/jobs/{job}/logs", "Range: bytes=0-4194303", "Connection: close"))
    pause, total = threading.Event(), 0
    while piece := connection.recv(64 * KIB):
        total += len(piece)
        pause.wait(0.1)
    connection.close()
    return total


def long_poll(cluster: Cluster, job: str) -> tuple[int, float]:
    """The status of a wait of seven times the patience, and how long it took."""
    begin = time.monotonic()
    status, _, _ = cluster.api.raw("GET", f"/v1/jobs/{job}?wait=7")
    return status, time.monotonic() - begin


def quiet_stream(cluster: Cluster, job: str) -> list[str]:
    """The kinds of what comes on a stream of events on which nothing is said for seven times the patience."""
    return [event.get("event", "output") for event in cluster.api.stream(f"/v1/jobs/{job}/logs")]


def test_clients_that_are_only_slow_and_those_that_wait_for_us_are_served(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1, controller=["--client-patience", "1s"])
    told = talk(cluster)
    gate = tmp_path / "gate"
    job = cluster.api.submit(["sh", "-c", f"echo first; while ! test -e {gate}; do sleep 0.05; done; echo last"])
    with ThreadPoolExecutor(8) as pool:
        body = pool.submit(slow_body, cluster)
        reader = pool.submit(slow_reader, cluster, told)
        events = pool.submit(quiet_stream, cluster, job)
        status, took = pool.submit(long_poll, cluster, job).result()
        gate.touch()
        assert status == 200 and took > 6, took  # the controller counts from the moment at which it began to look at its sockets
        assert body.result() == 200
        assert reader.result() > 4 * KIB * KIB
        assert events.result() == ["output", "output", "end"]


def test_a_hundred_parked_polls_starve_none_of_a_hundred_busy_connections(
    make_cluster: Callable[..., Cluster], tmp_path: Path, volume: Any
) -> None:
    """MHD before 1.0.3 could pass over a ready connection, perhaps for ever, while another one was suspended."""
    cluster = make_cluster(1)
    gate = tmp_path / "gate"
    job = cluster.api.submit(["sh", "-c", f"while ! test -e {gate}; do sleep 0.05; done"])
    cluster.wait_state(job, "RUNNING")
    rounds = volume(20, 500)
    park, ask = head(cluster, f"GET /v1/jobs/{job}?wait=60"), head(cluster, "GET /v1/nodes")
    parked = [socket.create_connection(("127.0.0.1", cluster.port), timeout=30) for _ in range(100)]
    busy = [socket.create_connection(("127.0.0.1", cluster.port), timeout=30) for _ in range(100)]
    slowest = 0.0
    for connection in parked:
        connection.sendall(park)
    for _ in range(rounds):
        begin = time.monotonic()
        for connection in busy:
            connection.sendall(ask)
        for connection in busy:
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        slowest = max(slowest, time.monotonic() - begin)
    gate.touch()
    for connection in parked:
        reply = connection.recv(65536)
        assert reply.startswith(b"HTTP/1.1 200") and b'"SUCCEEDED"' in reply
    for connection in parked:  # they go on as usual
        connection.sendall(ask)
    for connection in parked + busy:
        if connection in parked:
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        connection.close()
    print(f"{rounds} rounds of 100 requests beside 100 parked: the slowest took {slowest * 1e3:.0f} ms")


def test_a_reader_that_was_cut_off_resumes_without_gap_or_repeat(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, controller=["--client-patience", "200ms"])
    job = talk(cluster)
    path = f"/v1/jobs/{job}/logs"
    connection = http.client.HTTPConnection(cluster.api.address, timeout=30)
    headers = {"Authorization": f"Bearer {cluster.api.token}", "Accept": "text/event-stream"}
    connection.request("GET", path, headers=headers)
    reply = connection.getresponse()
    events = cluster.api.stream(path)  # one that is read all along, to compare with
    whole = "".join(json.loads(event["data"])["text"] for event in events if event.get("event") != "end")
    assert len(whole) == TALK_BYTES
    eventually(lambda: b"CLOSE" in socket_state(connection.sock), "the reader that does not read to be cut off")
    text, last = read_what_is_there(reply)
    assert 0 < len(text) < TALK_BYTES and whole.startswith(text)
    rest = "".join(json.loads(event["data"])["text"] for event in cluster.api.stream(path, last_id=last) if event.get("event") != "end")
    assert text + rest == whole


def socket_state(connection: socket.socket | None) -> bytes:
    """CLOSE once the other side has ended the connection; tcpi_state is the first byte of TCP_INFO."""
    assert connection is not None
    closed = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in (7, 8)  # TCP_CLOSE, TCP_CLOSE_WAIT
    return b"CLOSE" if closed else b""


def read_what_is_there(reply: http.client.HTTPResponse) -> tuple[str, str]:
    """The text of the whole events that arrived before the cut, and the id of the last of them."""
    fields: dict[str, str] = {}
    text, last = "", ""
    with contextlib.suppress(http.client.IncompleteRead, ConnectionResetError):
        for line in reply:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if not name and fields:
                text, last, fields = text + json.loads(fields["data"])["text"], fields["id"], {}
            elif name:
                fields[name] = value
    return text, last


def own_address() -> str | None:
    """An address of this machine that others could reach it by."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.1", 9))  # sends nothing
        except OSError:
            return None
        address = str(probe.getsockname()[0])
    return None if address.startswith("127.") else address


def served(address: str, port: int) -> socket.socket | None:
    """A connection on which a request was answered; None when it was closed instead."""
    connection = socket.create_connection((address, port), timeout=30)
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        connection.sendall(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        if connection.recv(65536).startswith(b"HTTP/1.1 200"):
            return connection
    connection.close()
    return None


def test_one_address_holds_no_more_than_its_share_of_connections(tmp_path: Path) -> None:
    address = own_address()
    if address is None:
        pytest.skip("this machine has no address but the loopback, which has no limit")
    options = ["--listen", "0.0.0.0:0", "--insecure-plain-http", "--host-name", "0.0.0.0", "--connections-per-address", "20"]
    cluster = Cluster(tmp_path, [], controller=options)
    cluster.start_controller()
    try:
        held = [served(address, cluster.port) for _ in range(30)]
        assert [connection is not None for connection in held] == [True] * 20 + [False] * 10
        near = [served("127.0.0.1", cluster.port) for _ in range(30)]
        assert all(near)
        for connection in held[:5]:
            assert connection is not None
            connection.close()
        eventually(lambda: served(address, cluster.port) is not None, "room for another connection")
        assert cluster.controller.said().count("connection refuse") == 1
        for connection in held[5:20] + near:
            assert connection is not None
            connection.close()
    finally:
        cluster.stop()
