# SPDX-License-Identifier: Apache-2.0
"""The controller serves more connections than one daemon of the HTTP library does, up to its limit of open files; who comes then waits."""

from __future__ import annotations

import contextlib
import resource
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import GPUCTLD, PATIENCE, Api, Cluster

SHARD = 1024  # LIBRARY_SHARD_CONNECTIONS
CONNECTIONS = SHARD + 200
FILES = CONNECTIONS + 256  # LIMIT_OTHER_FILES
ROOM, MORE = 12, 40


@pytest.fixture(autouse=True)
def raised_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * FILES if hard == resource.RLIM_INFINITY else min(hard, 2 * FILES), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Limited(Cluster):
    """A controller that may open so many files; its one node has gone, and nothing is connected."""

    def controller_command(self) -> list[str]:
        return ["prlimit", f"--nofile={FILES}", *super().controller_command()]

    def start(self) -> Limited:
        super().start()
        self.agents[0].kill()
        self.controller.kill(signal.SIGTERM)
        self.start_controller()
        return self


@contextlib.contextmanager
def limited(folder: Path, tls: bool = False) -> Iterator[Limited]:
    if tls:
        files = ["--state", str(folder / "controller"), "--config", str(folder / "controller.conf")]
        subprocess.run([str(GPUCTLD), "init", *files, "--listen", "127.0.0.1:0"], check=True, capture_output=True)
    cluster = Limited(folder, [1])
    try:
        yield cluster.start()
    finally:
        cluster.stop()


def ask(stack: contextlib.ExitStack, cluster: Cluster, path: str) -> socket.socket:
    """Send a request on a connection of its own, which is kept."""
    line = socket.create_connection(("127.0.0.1", cluster.port), PATIENCE)
    if cluster.cacert is not None:
        line = ssl.create_default_context(cafile=cluster.cacert).wrap_socket(line, server_hostname="127.0.0.1")
    stack.enter_context(line)
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {cluster.admin_token}\r\n"
    line.sendall(f"{head}Accept: text/event-stream\r\n\r\n".encode())
    return line


def begun(line: socket.socket) -> bool:
    return line.recv(4096).startswith(b"HTTP/1.1 200")


def ended(line: socket.socket) -> bool:
    """Whether the stream comes to its last chunk."""
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


def test_who_comes_when_all_daemons_are_full_waits_for_room_in_any(tmp_path: Path) -> None:
    with limited(tmp_path) as cluster, contextlib.ExitStack() as stack:
        job = cluster.api.submit(["true"], hold=True)
        output = f"/v1/jobs/{job}/logs"
        paths = ["/healthz"] * MORE + [output] * (CONNECTIONS - ROOM - 2 * MORE) + ["/healthz"] * MORE
        lines = [ask(stack, cluster, path) for path in paths]
        assert all(begun(line) for line in lines)
        assert CONNECTIONS - ROOM <= used(cluster.api) <= CONNECTIONS
        more = [ask(stack, cluster, output) for _ in range(MORE)]
        assert all(begun(line) for line in more[:ROOM])
        more[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            more[-1].recv(1)
        for line in (*lines[:MORE], *lines[-MORE:]):  # of the first and of the last daemon
            line.close()
        more[-1].settimeout(PATIENCE)
        assert all(begun(line) for line in more[ROOM:])
        cluster.api.post(f"/v1/jobs/{job}/cancel", {})
        assert all(ended(line) for line in (*lines[MORE:-MORE], *more))


@pytest.mark.parametrize("tls", [False, True])
def test_a_controller_that_ends_leaves_no_connection_open(tls: bool, tmp_path: Path) -> None:
    with limited(tmp_path, tls) as cluster, contextlib.ExitStack() as stack:
        job = cluster.api.submit(["true"], hold=True)
        lines = [ask(stack, cluster, f"/v1/jobs/{job}/logs") for _ in range(SHARD + MORE)]
        assert all(begun(line) for line in lines)
        assert cluster.controller.kill(signal.SIGTERM) == 0
        for line in lines:
            while line.recv(4096):
                pass
