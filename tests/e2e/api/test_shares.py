# SPDX-License-Identifier: Apache-2.0
"""Each sender of requests has a share of the controller: a flood delays its sender and nobody else, and is refused at last."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from harness import Api, Cluster, eventually, run_gpuctl
from slowness import patient

LISTS = "/v1/jobs?limit=200"


class Flood:
    """The same request from many connections, each again as soon as it is answered, until it is stopped."""

    def __init__(self, api: Api, path: str, connections: int):
        self.answers: Counter[int] = Counter()
        self.refusals: list[tuple[dict[str, str], dict[str, Any]]] = []
        self._api, self._path = api, path
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(connections)]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        connection = self._api.connection(60)
        while not self._stopped.is_set():
            connection.request("GET", self._path, headers={"Authorization": f"Bearer {self._api.token}"} if self._api.token else {})
            reply = connection.getresponse()
            body = reply.read()
            self.answers[reply.status] += 1
            if reply.status == 429:
                self.refusals.append((dict(reply.getheaders()), json.loads(body)))
        connection.close()

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()


@contextlib.contextmanager
def flood(api: Api, path: str, connections: int) -> Iterator[Flood]:
    made = Flood(api, path, connections)
    try:
        yield made
    finally:
        made.stop()


def in_line(api: Api) -> int:
    text = api.raw("GET", "/metrics")[2].decode()
    return int(next(line for line in text.splitlines() if line.startswith("gpuctl_http_requests_in_line ")).split()[1])


def fill(cluster: Cluster, api: Api) -> None:
    """Make lists long, so that the controller is slower than the flood."""
    cluster.api.post("/v1/nodes/node0/drain", {"reason": "jobs are to wait"})
    for _ in range(200):
        api.submit(["true"], env={"TEXT": "x" * 500})


def test_a_flood_stands_in_line_and_others_pass_it(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    flooder, other = cluster.user("flooder"), cluster.user("other")
    fill(cluster, flooder)
    with flood(flooder, LISTS, 32) as made:
        eventually(lambda: in_line(other) >= 16, "the flood to stand in line")
        connection: http.client.HTTPConnection = other.connection(60)
        between = []
        for _ in range(50):
            before = sum(made.answers.values())
            connection.request("GET", "/v1/nodes", headers={"Authorization": f"Bearer {other.token}"})
            assert connection.getresponse().read()
            between.append(sum(made.answers.values()) - before)
        connection.close()
    assert set(made.answers) == {200}
    assert sorted(between)[25] < 8, between  # of 32 that had come before it


def test_what_stands_in_line_for_too_long_is_refused_with_the_time_to_come_again(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, controller=["--request-wait", "20ms"])
    flooder, other = cluster.user("flooder"), cluster.user("other")
    fill(cluster, flooder)
    with flood(flooder, LISTS, 32) as made:

        def refused() -> bool:
            assert other.raw("GET", "/v1/nodes")[0] == 200
            return made.answers[429] > 0

        eventually(refused, "a refusal")
    headers, problem = made.refusals[0]
    assert headers["Retry-After"] == "1" and problem["code"] == "too_many_requests" and problem["retryable"] is True
    assert "user flooder" in problem["detail"] and "--request-wait" in problem["hint"]
    assert all(node["state"] == "DRAINED" for node in cluster.nodes().values())


def test_a_sender_that_is_alone_is_never_refused(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, controller=["--request-wait", "1ms"])
    fill(cluster, cluster.api)
    with flood(cluster.api, LISTS, 32) as made:
        eventually(lambda: made.answers[200] >= 200, "200 answers")
    assert set(made.answers) == {200}


def test_what_a_sender_took_while_it_was_alone_is_not_held_against_it(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    first, second = cluster.user("first"), cluster.user("second")
    fill(cluster, first)
    with flood(first, LISTS, 16) as earlier:
        eventually(lambda: earlier.answers[200] >= 3000, "the first one to have had all of the time")
        fill(cluster, second)
        with flood(second, LISTS, 16) as later:
            eventually(lambda: later.answers[200] >= 20, "the second one to be served")
            before = earlier.answers[200]
            eventually(lambda: later.answers[200] >= 320, "the second one to have a share")
            had = earlier.answers[200] - before
    assert had >= 100, had


def ask_in_heaps(address: tuple[str, int], path: str, over: threading.Event, answers: Counter[bytes]) -> None:
    """Without a token, 50 requests at a time: so the controller is slower than its client, however fast the machine is."""
    heap, start = 50, b"HTTP/1.1 "
    with socket.create_connection(address, 60) as line:
        while not over.is_set():
            line.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode() * heap)
            text = b""
            while text.count(start) < heap or not text.endswith(b"}"):
                text += line.recv(65536)
            for answer in text.split(start)[1:]:
                answers[answer[:3]] += 1


def test_without_a_token_the_address_has_the_share(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    over, answers = threading.Event(), Counter[bytes]()
    strangers = [threading.Thread(target=ask_in_heaps, args=(("127.0.0.1", cluster.port), "/v1/nodes", over, answers)) for _ in range(32)]
    for stranger in strangers:
        stranger.start()
    try:
        eventually(lambda: in_line(cluster.api) > 0, "strangers to stand in line")
    finally:
        over.set()
        for stranger in strangers:
            stranger.join()
    assert set(answers) == {b"401"}


def test_nodes_stay_ready_and_jobs_run_during_a_flood(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, controller=["--request-wait", f"{patient(50):.0f}ms"])
    flooder, other = cluster.user("flooder"), cluster.user("other")
    with flood(flooder, "/v1/nodes", 32):
        for _ in range(5):
            assert other.wait(other.submit(["true"]))["state"] == "SUCCEEDED"
        assert cluster.nodes()["node0"]["state"] == "READY"


class Refusing(BaseHTTPRequestHandler):
    """Refuses the first request, with a time to come again, and has an empty list of jobs for the next."""

    asked: list[float] = []

    def do_GET(self) -> None:
        self.asked.append(time.monotonic())
        first = len(self.asked) == 1
        body = b'{"code": "too_many_requests", "detail": "too many", "retryable": true}' if first else b'{"jobs": [], "next": null}'
        self.send_response(429 if first else 200)
        self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_gpuctl_comes_again_when_it_was_told_to_and_no_sooner(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text("gct_none\n")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    environment = {"GPUCTL_URL": f"http://127.0.0.1:{server.server_address[1]}", "GPUCTL_TOKEN_FILE": str(token)}
    done = run_gpuctl("ps", env=environment)
    server.shutdown()
    server.server_close()
    assert done.returncode == 0, done.stderr
    assert len(Refusing.asked) == 2 and Refusing.asked[1] - Refusing.asked[0] >= 1


def test_zero_gives_no_shares(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, controller=["--request-wait", "0"])
    flooder, other = cluster.user("flooder"), cluster.user("other")
    fill(cluster, flooder)
    with flood(flooder, LISTS, 32) as made:
        for _ in range(50):
            assert in_line(other) == 0
    assert set(made.answers) == {200}
