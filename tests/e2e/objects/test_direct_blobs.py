# SPDX-License-Identifier: Apache-2.0
"""Nodes fetch blobs from the object store themselves, and from the controller where they cannot."""

from __future__ import annotations

import os
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from file_server import FileServer
from harness import GPUCTLD, eventually, run_gpuctl
from rclone_server import BUCKET
from recorder import EXPIRED, Recorded

SIZE = 20_000_000


def hold(recorded: Recorded) -> tuple[str, str]:
    """A job on all nodes with a bundle of its own, which the store has, and the hash of the bundle."""
    cluster, s3 = recorded.cluster, recorded.s3
    before = s3.keys("blobs/")
    folder = cluster.folder / f"work{len(before)}"
    folder.mkdir()
    (folder / "big").write_bytes(os.urandom(SIZE))
    environment = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}
    command = ["submit", "--hold", "--gpus", str(recorded.nodes), "--bundle", str(folder), "--", "sh", "-c", "wc -c <big"]
    said = run_gpuctl(*command, env=environment)
    assert said.returncode == 0, said.stderr
    eventually(lambda: cluster.api.get("/v1/object-store")["complete"] and s3.keys("blobs/") - before, "it in the store")
    recorded.controller.sent = 0
    return said.stdout.split()[-1], (s3.keys("blobs/") - before).pop().removeprefix("blobs/")


def run(recorded: Recorded, job: str) -> None:
    api = recorded.cluster.api
    api.post(f"/v1/jobs/{job}/release")
    assert api.wait(job)["state"] == "SUCCEEDED", api.job(job)
    for rank in range(recorded.nodes):
        assert api.log(job, rank).strip() == str(SIZE)


def test_the_bytes_of_a_bundle_go_from_the_store_to_the_nodes(make_recorded: Callable[..., Recorded]) -> None:
    recorded = make_recorded(2)
    job, blob = hold(recorded)
    run(recorded, job)
    fetched = recorded.store.asked("GET ", f"/blobs/{blob}", "X-Amz-Signature=")
    assert len(fetched) == 2
    assert recorded.controller.sent < SIZE // 10
    token = (recorded.cluster.folder / "node.token").read_text().strip()
    for head in fetched:
        names = {line.partition(":")[0].lower() for line in head.split("\r\n")[1:]}
        assert names == {"host", "accept"}, head
        assert token not in head
    assert "objects away" not in recorded.said()


def test_nodes_fetch_from_the_controller_while_the_store_is_away(make_recorded: Callable[..., Recorded]) -> None:
    recorded = make_recorded(1)
    jobs = [hold(recorded)[0] for _ in range(2)]
    recorded.store.close()
    for job in jobs:
        run(recorded, job)
    assert recorded.controller.sent > 2 * SIZE
    assert recorded.said().count("objects away") == 1 and "X-Amz" not in recorded.said()
    assert len(recorded.controller.asked("GET /v1/blobs/", "redirect=1")) == 1


def test_a_link_that_has_expired_is_asked_for_anew(make_recorded: Callable[..., Recorded]) -> None:
    recorded = make_recorded(1)
    job, blob = hold(recorded)
    recorded.store.instead = [EXPIRED]
    run(recorded, job)
    assert len(recorded.controller.asked(f"GET /v1/blobs/{blob}?redirect=1")) == 2
    assert recorded.controller.sent < SIZE // 10
    assert "objects away" not in recorded.said()


def test_a_store_that_refuses_is_told_once_and_the_controller_asked(make_recorded: Callable[..., Recorded]) -> None:
    recorded = make_recorded(1)
    job, _ = hold(recorded)
    recorded.store.instead = [EXPIRED] * 2
    run(recorded, job)
    assert recorded.controller.sent > SIZE
    assert 'problem="it answers 403 AccessDenied"' in recorded.said()


def test_bytes_that_the_store_has_changed_come_from_the_controller(make_recorded: Callable[..., Recorded]) -> None:
    recorded = make_recorded(1)
    job, blob = hold(recorded)
    recorded.s3.stop()
    file: Path = recorded.s3.file(f"blobs/{blob}")
    file.write_bytes(bytes(file.stat().st_size))
    recorded.s3.start()
    run(recorded, job)
    assert recorded.controller.sent > SIZE
    assert "object damaged" in recorded.said() and "another content" in recorded.said()


@pytest.mark.parametrize("trusted", [False, True])
def test_the_certificate_of_the_store_is_checked_against_the_authorities_of_the_node(
    make_recorded: Callable[..., Recorded], tmp_path: Path, trusted: bool
) -> None:
    init = ["init", "--state", str(tmp_path / "authority"), "--config", str(tmp_path / "authority.conf"), "--listen", "127.0.0.1:0"]
    subprocess.run([str(GPUCTLD), *init], check=True, capture_output=True)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "authority/tls/server.pem", tmp_path / "authority/tls/server.key")
    server = FileServer(tls)
    try:
        recorded = make_recorded(1, **({"SSL_CERT_FILE": str(tmp_path / "authority/tls/ca.pem")} if trusted else {}))
        job, blob = hold(recorded)
        server.files[f"/{BUCKET}/some/prefix/blobs/{blob}"] = recorded.s3.file(f"blobs/{blob}").read_bytes()
        recorded.controller.replaced = f"http://127.0.0.1:{recorded.store.port}/".encode()
        recorded.controller.by = f"{server.url}/".encode()
        run(recorded, job)
        assert (recorded.controller.sent < SIZE // 10) == trusted
        assert [request[3] for request in server.requests] == ([200] if trusted else [])
        assert ("objects away" in recorded.said() and "certificate" in recorded.said()) == (not trusted)
    finally:
        server.stop()
