# SPDX-License-Identifier: Apache-2.0
"""Nodes fetch blobs from the object store themselves, and from the controller where they cannot."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from file_server import FileServer
from harness import GPUCTLD, Cluster, eventually, run_gpuctl
from http_fault import Proxy, close_after
from rclone_server import BUCKET, S3Server

SIZE = 20_000_000
EXPIRED = b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"


class Recorder(Proxy):
    """Keeps the heads of requests, and counts the bytes of answers. It can refuse presigned requests, and change a text in answers."""

    def __init__(self, port: int):
        self.heads: list[str] = []
        self.sent = 0
        self.instead: list[bytes] = []
        self.replaced = self.by = b""
        super().__init__(port)

    def _answer(self, connection: socket.socket, request: bytes) -> None:
        head = request.split(b"\r\n\r\n", 1)[0].decode("latin1")
        self.heads.append(head)
        if self.instead and "X-Amz-Signature=" in head:
            body = self.instead.pop()
            connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
            return
        with socket.create_connection(("127.0.0.1", self.upstream), timeout=120) as upstream:
            upstream.sendall(close_after(request))
            while piece := upstream.recv(65536):
                self.sent += len(piece)
                connection.sendall(piece.replace(self.replaced, self.by) if self.replaced else piece)

    def asked(self, *texts: str) -> list[str]:
        """The requests with all these texts in their first line."""
        return [head for head in self.heads if all(text in head.split("\r\n", 1)[0] for text in texts)]


class Direct:
    """A cluster whose nodes reach controller and store through recorders."""

    def __init__(self, cluster: Cluster, s3: S3Server, nodes: int, store: Recorder, environment: dict[str, str]):
        self.cluster, self.s3, self.store = cluster, s3, store
        self.controller = Recorder(cluster.port)
        cluster.url = self.controller.url
        cluster.agent_environment = environment
        for number in range(nodes):
            cluster.add_agent(f"node{number}", 1)
        cluster.wait_ready()
        self.nodes = nodes
        self.count = 0

    def hold(self) -> tuple[str, str]:
        """A job on all nodes with a bundle of its own, which the store has, and the hash of the bundle."""
        before = self.s3.keys("blobs/")
        folder = self.cluster.folder / f"work{self.count}"
        self.count += 1
        folder.mkdir()
        (folder / "big").write_bytes(os.urandom(SIZE))
        environment = {"GPUCTL_URL": self.cluster.url, "GPUCTL_TOKEN_FILE": str(self.cluster.folder / "controller" / "admin.token")}
        command = ["submit", "--hold", "--gpus", str(self.nodes), "--bundle", str(folder), "--", "sh", "-c", "wc -c <big"]
        said = run_gpuctl(*command, env=environment)
        assert said.returncode == 0, said.stderr
        eventually(lambda: self.cluster.api.get("/v1/object-store")["complete"] and self.s3.keys("blobs/") - before, "it in the store")
        self.controller.sent = 0
        return said.stdout.split()[-1], (self.s3.keys("blobs/") - before).pop().removeprefix("blobs/")

    def run(self, job: str) -> None:
        self.cluster.api.post(f"/v1/jobs/{job}/release")
        assert self.cluster.api.wait(job)["state"] == "SUCCEEDED", self.cluster.api.job(job)
        for rank in range(self.nodes):
            assert self.cluster.api.log(job, rank).strip() == str(SIZE)

    def said(self) -> str:
        return "".join(agent.said() for agent in self.cluster.agents)


@pytest.fixture
def make_direct(make_cluster: Callable[..., Cluster], s3: S3Server) -> Iterator[Callable[..., Direct]]:
    made: list[Direct] = []

    def make(nodes: int, **environment: str) -> Direct:
        store = Recorder(s3.port)
        made.append(Direct(make_cluster(controller=s3.options(port=store.port)), s3, nodes, store, environment))
        return made[-1]

    yield make
    for direct in made:
        direct.controller.close()
        direct.store.close()


def test_the_bytes_of_a_bundle_go_from_the_store_to_the_nodes(make_direct: Callable[..., Direct]) -> None:
    direct = make_direct(2)
    job, blob = direct.hold()
    direct.run(job)
    fetched = direct.store.asked("GET ", f"/blobs/{blob}", "X-Amz-Signature=")
    assert len(fetched) == 2
    assert direct.controller.sent < SIZE // 10
    token = (direct.cluster.folder / "node.token").read_text().strip()
    for head in fetched:
        names = {line.partition(":")[0].lower() for line in head.split("\r\n")[1:]}
        assert names == {"host", "accept"}, head
        assert token not in head
    assert "objects away" not in direct.said()


def test_nodes_fetch_from_the_controller_while_the_store_is_away(make_direct: Callable[..., Direct]) -> None:
    direct = make_direct(1)
    jobs = [direct.hold()[0] for _ in range(2)]
    direct.store.close()
    for job in jobs:
        direct.run(job)
    assert direct.controller.sent > 2 * SIZE
    assert direct.said().count("objects away") == 1 and "X-Amz" not in direct.said()
    assert len(direct.controller.asked("GET /v1/blobs/", "redirect=1")) == 1


def test_a_link_that_has_expired_is_asked_for_anew(make_direct: Callable[..., Direct]) -> None:
    direct = make_direct(1)
    job, blob = direct.hold()
    direct.store.instead = [EXPIRED]
    direct.run(job)
    assert len(direct.controller.asked(f"GET /v1/blobs/{blob}?redirect=1")) == 2
    assert direct.controller.sent < SIZE // 10
    assert "objects away" not in direct.said()


def test_a_store_that_refuses_is_told_once_and_the_controller_asked(make_direct: Callable[..., Direct]) -> None:
    direct = make_direct(1)
    job, _ = direct.hold()
    direct.store.instead = [EXPIRED] * 2
    direct.run(job)
    assert direct.controller.sent > SIZE
    assert 'problem="it answers 403 AccessDenied"' in direct.said()


def test_bytes_that_the_store_has_changed_come_from_the_controller(make_direct: Callable[..., Direct]) -> None:
    direct = make_direct(1)
    job, blob = direct.hold()
    direct.s3.stop()
    file: Path = direct.s3.file(f"blobs/{blob}")
    file.write_bytes(bytes(file.stat().st_size))
    direct.s3.start()
    direct.run(job)
    assert direct.controller.sent > SIZE
    assert "object damaged" in direct.said() and "another content" in direct.said()


@pytest.mark.parametrize("trusted", [False, True])
def test_the_certificate_of_the_store_is_checked_against_the_authorities_of_the_node(
    make_direct: Callable[..., Direct], tmp_path: Path, trusted: bool
) -> None:
    init = ["init", "--state", str(tmp_path / "authority"), "--config", str(tmp_path / "authority.conf"), "--listen", "127.0.0.1:0"]
    subprocess.run([str(GPUCTLD), *init], check=True, capture_output=True)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "authority/tls/server.pem", tmp_path / "authority/tls/server.key")
    server = FileServer(tls)
    try:
        direct = make_direct(1, **({"SSL_CERT_FILE": str(tmp_path / "authority/tls/ca.pem")} if trusted else {}))
        job, blob = direct.hold()
        server.files[f"/{BUCKET}/some/prefix/blobs/{blob}"] = direct.s3.file(f"blobs/{blob}").read_bytes()
        direct.controller.replaced, direct.controller.by = f"http://127.0.0.1:{direct.store.port}/".encode(), f"{server.url}/".encode()
        direct.run(job)
        assert (direct.controller.sent < SIZE // 10) == trusted
        assert [request[3] for request in server.requests] == ([200] if trusted else [])
        assert ("objects away" in direct.said() and "certificate" in direct.said()) == (not trusted)
    finally:
        server.stop()
