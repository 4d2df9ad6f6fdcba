# SPDX-License-Identifier: Apache-2.0
"""The controller serves as many connections as it has files for, with more than one daemon of the HTTP library; who comes then waits."""

from __future__ import annotations

import contextlib
import resource
import signal
import socket
from collections.abc import Callable, Iterator

import pytest

from harness import PATIENCE, Api, Cluster

FILES, OTHER_FILES = 2048, 256  # LIMIT_OTHER_FILES
CONNECTIONS = FILES - OTHER_FILES
ROOM, MORE = 12, 40


@pytest.fixture
def raised_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def ask(stack: contextlib.ExitStack, api: Api, port: int, path: str) -> socket.socket:
    """Send a request on a connection of its own, which is kept."""
    line = stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {api.token}\r\n"
    line.sendall(f"{head}Accept: text/event-stream\r\n\r\n".encode())
    return line


def begun(line: socket.socket) -> bool:
    return line.recv(4096).startswith(b"HTTP/1.1 200")


def ended(line: socket.socket) -> bool:
    """The stream comes to its last chunk."""
    text = b""
    while not text.endswith(b"0\r\n\r\n"):
        part = line.recv(4096)
        if not part:
            return False
        text += part
    return True


def used(api: Api) -> int:
    text = api.raw("GET", "/metrics")[2].decode()
    (line,) = [line for line in text.splitlines() if line.startswith("gpuctl_used{") and 'of="connections"' in line]
    return int(line.split()[-1])


def test_more_than_one_daemon_serves_and_who_comes_when_all_are_full_waits(
    make_cluster: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch, raised_files: None
) -> None:
    cluster = make_cluster(1)
    cluster.agents[0].kill()
    command = cluster.controller_command
    monkeypatch.setattr(cluster, "controller_command", lambda: ["prlimit", f"--nofile={FILES}", *command()])
    cluster.controller.kill(signal.SIGTERM)
    cluster.start_controller()
    api = cluster.api
    job = api.submit(["true"], hold=True)
    output = f"/v1/jobs/{job}/logs"
    with contextlib.ExitStack() as stack:
        paths = ["/healthz"] * MORE + [output] * (CONNECTIONS - ROOM - 2 * MORE) + ["/healthz"] * MORE
        lines = [ask(stack, api, cluster.port, path) for path in paths]
        assert all(begun(line) for line in lines)
        assert CONNECTIONS - ROOM <= used(api) <= CONNECTIONS
        more = [ask(stack, api, cluster.port, output) for _ in range(MORE)]
        assert all(begun(line) for line in more[:ROOM])
        more[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            more[-1].recv(1)
        for line in (*lines[:MORE], *lines[-MORE:]):  # of the first and of the last daemon
            line.close()
        more[-1].settimeout(PATIENCE)
        assert all(begun(line) for line in more[ROOM:])
        api.post(f"/v1/jobs/{job}/cancel", {})
        assert all(ended(line) for line in (*lines[MORE:-MORE], *more))
