# SPDX-License-Identifier: Apache-2.0
"""Streams into running jobs, as gpuctl opens them and by hand: upgrades and frames."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import subprocess
from pathlib import Path
from typing import Any

from harness import GPUCTL, Api, Cluster

DATA, END, STDERR, SIZE, EXIT, FAILURE, CREDIT = range(1, 8)
SLEEP = ["sh", "-c", "sleep 600"]
#: A web server of its folder, which prints its port.
WEB = """
import http.server
web = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
print(web.server_port, flush=True)
web.serve_forever()
"""


def environment(cluster: Cluster, token: str | None = None) -> dict[str, str]:
    """What gpuctl needs to ask this cluster, as its administrator or with another token."""
    file = cluster.folder / "controller" / "admin.token"
    if token is not None:
        file = cluster.folder / f"{token[4:12]}.token"
        file.write_text(token)
        file.chmod(0o600)
    trust = {"GPUCTL_CACERT": str(cluster.cacert)} if cluster.cacert else {}
    return {**os.environ, "GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(file), **trust}


def gpuctl(
    cluster: Cluster, *words: str | Path, code: int = 0, send: bytes = b"", token: str | None = None
) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run([str(GPUCTL), *map(str, words)], input=send, env=environment(cluster, token), capture_output=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done


def start(cluster: Cluster, *words: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [str(GPUCTL), *map(str, words)], env=environment(cluster), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def running(cluster: Cluster, command: list[str], **more: Any) -> str:
    """The id of a job that runs."""
    job = cluster.api.submit(command, gpu_type="cpu", **more)
    cluster.wait_state(job, "RUNNING")
    return job


def frame(kind: int, content: bytes = b"") -> bytes:
    return bytes([kind]) + len(content).to_bytes(3, "big") + content


class Joined:
    """One side of a stream. status is 101 when it was joined."""

    def __init__(self, api: Api, path: str, upgrade: str = "gpuctl-stream", later: bool = False, receive: int = 0):
        host, _, port = api.address.partition(":")
        self.socket = socket.socket()
        self.socket.settimeout(30)
        if receive:  # so many bytes, at most, wait here
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        self.socket.connect((host, int(port)))
        if api.trust is not None:
            self.socket = api.trust.wrap_socket(self.socket, server_hostname=host)
        words = [f"GET {path} HTTP/1.1", f"Host: {api.address}", f"Authorization: Bearer {api.token}"]
        words += ["Connection: Upgrade", f"Upgrade: {upgrade}"]
        self.socket.sendall(("\r\n".join(words) + "\r\n\r\n").encode())
        self.rest = b""
        self.status = 0
        if not later:
            self.answered()

    def answered(self) -> int:
        while b"\r\n\r\n" not in self.rest:
            more = self.socket.recv(65536)
            assert more, "the controller closed the connection without an answer"
            self.rest += more
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        self.status = int(head.split()[1])
        return self.status

    def send(self, kind: int, content: bytes = b"") -> None:
        self.socket.sendall(frame(kind, content))

    def next(self) -> tuple[int, bytes] | None:
        """The next frame; None: the stream has ended."""
        while len(self.rest) < 4 or len(self.rest) < 4 + int.from_bytes(self.rest[1:4], "big"):
            try:
                more = self.socket.recv(65536)
            except (ConnectionResetError, ssl.SSLError):
                return None
            if not more:
                return None
            self.rest += more
        length = int.from_bytes(self.rest[1:4], "big")
        kind, content, self.rest = self.rest[0], self.rest[4 : 4 + length], self.rest[4 + length :]
        return kind, content

    def until(self, *kinds: int) -> tuple[int, bytes]:
        while (found := self.next()) is not None:
            if found[0] in kinds:
                return found
        raise AssertionError(f"the stream has ended without a frame of kind {kinds}")

    def close(self) -> None:
        self.socket.close()


def ask(api: Api, job: str, **wanted: Any) -> str:
    """The id of a new stream."""
    answer = api.post(f"/v1/jobs/{job}/streams", {"kind": "exec", **wanted})
    found: str = answer["id"]
    return found


def join(api: Api, job: str, **wanted: Any) -> Joined:
    stream = Joined(api, f"/v1/streams/{ask(api, job, **wanted)}")
    assert stream.status == 101
    return stream


def size(rows: int, columns: int) -> bytes:
    return struct.pack(">HH", rows, columns)
