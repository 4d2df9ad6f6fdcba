# SPDX-License-Identifier: Apache-2.0
"""gpuctl port-forward: a port of this machine leads to one beside a rank."""

from __future__ import annotations

import hashlib
import http.client
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from typing import IO

import pytest

from harness import PYTHON, Cluster, eventually
from joined import gpuctl, running, start

#: An HTTP server, whose path is how many bytes it sends, and one that adds up what it gets until the end of it. Prints both ports.
SERVERS = """
import hashlib, http.server, socket, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        left = int(self.path[1:])
        self.send_response(200)
        self.send_header("Content-Length", str(left))
        self.end_headers()
        while left > 0:
            left -= self.wfile.write(bytes(min(left, 1 << 20)))
    def log_message(self, *words):
        pass
web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
adder = socket.create_server(("127.0.0.1", 0))
print(web.server_port, adder.getsockname()[1], flush=True)
threading.Thread(target=web.serve_forever, daemon=True).start()
while True:
    peer, _ = adder.accept()
    hash = hashlib.sha256()
    while piece := peer.recv(1 << 20):
        hash.update(piece)
    peer.sendall(hash.hexdigest().encode())
    peer.close()
"""


class Servers:
    def __init__(self, job: str, web: str, adder: str):
        self.job, self.web, self.adder = job, web, adder


@pytest.fixture(scope="module")
def servers(cluster: Cluster) -> Iterator[Servers]:
    job = running(cluster, [PYTHON, "-c", SERVERS])
    ports = eventually(lambda: cluster.api.log(job).split(), "the ports")
    yield Servers(job, *ports)
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    cluster.api.wait(job)


class Forward:
    """gpuctl port-forward, to a free port."""

    def __init__(self, cluster: Cluster, job: str, port: str | int):
        self.process = start(cluster, "port-forward", job, f"0:{port}")
        assert self.process.stderr is not None
        self.said: IO[bytes] = self.process.stderr
        line = self.said.readline().decode()
        found = re.search(r"127\.0\.0\.1:(\d+) leads to port", line)
        assert found, line
        self.port = int(found[1])

    def get(self, size: int) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", f"/{size}")
        body = connection.getresponse().read()
        connection.close()
        return len(body)

    def end(self) -> str:
        self.process.terminate()
        assert self.process.wait(30) == 0
        return self.said.read().decode()


def test_many_connections_at_once(cluster: Cluster, servers: Servers) -> None:
    forward = Forward(cluster, servers.job, servers.web)
    got: list[int] = []
    threads = [threading.Thread(target=lambda size=size: got.append(forward.get(size))) for size in range(0, 2_000_000, 100_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got) == list(range(0, 2_000_000, 100_000))
    assert forward.end() == ""


def test_one_direction_may_end_before_the_other(cluster: Cluster, servers: Servers) -> None:
    forward = Forward(cluster, servers.job, servers.adder)
    sent = bytes(range(256)) * 40_000  # more than the other side takes without saying so
    with socket.create_connection(("127.0.0.1", forward.port), timeout=60) as peer:
        peer.sendall(sent)
        peer.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := peer.recv(4096):
            answer += piece
    assert answer.decode() == hashlib.sha256(sent).hexdigest()
    assert forward.end() == ""


def test_a_closed_port_is_named(cluster: Cluster, servers: Servers) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    forward = Forward(cluster, servers.job, port)
    with socket.create_connection(("127.0.0.1", forward.port), timeout=60) as peer:
        assert peer.recv(1) == b""
    assert forward.end() == f"gpuctl: job {servers.job}: nothing listens on port {port} beside rank 0\n"


def test_bad_ports_get_one_line(cluster: Cluster, servers: Servers) -> None:
    for word in ("0", "web", "1:2:3", "70000", "8080:"):
        assert gpuctl(cluster, "port-forward", servers.job, word, code=2).stderr.decode().startswith(f'gpuctl: "{word}" names no port\n')
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = gpuctl(cluster, "port-forward", servers.job, f"{taken.getsockname()[1]}:80", code=1).stderr.decode()
    assert said.startswith("gpuctl: cannot listen on port")


def ended(peer: socket.socket) -> bool:
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


def test_it_ends_with_the_job_and_its_connections_do(cluster: Cluster) -> None:
    job = running(cluster, [PYTHON, "-c", SERVERS])
    port = eventually(lambda: cluster.api.log(job).split(), "the ports")[1]
    forward = Forward(cluster, job, port)
    with socket.create_connection(("127.0.0.1", forward.port), timeout=60) as peer:
        peer.sendall(b"begun")
        cluster.api.post(f"/v1/jobs/{job}/cancel")
        assert ended(peer)
    cluster.api.wait(job)
    process: subprocess.Popen[bytes] = forward.process
    assert process.wait(60) == 0
    forward.end()
