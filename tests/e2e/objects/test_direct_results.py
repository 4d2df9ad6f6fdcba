# SPDX-License-Identifier: Apache-2.0
"""Clients fetch large results from the object store themselves, and from the controller where they cannot."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Cluster, eventually, run_gpuctl
from rclone_server import S3Server
from recorder import EXPIRED, Recorded
from serverless_gpu._internal.api.context import Context
from serverless_gpu._internal.api.controller import Controller
from serverless_gpu._internal.api.object_store import may_go
from serverless_gpu._internal.messages import Messages

SIZE = 3_000_000


def await_store(recorded: Recorded, name: str) -> None:
    eventually(lambda: recorded.s3.file(f"blobs/{name}").exists(), "the blob in the store")
    eventually(lambda: recorded.cluster.api.get("/v1/object-store")["complete"], "the controller to know")


def stored_blob(recorded: Recorded) -> tuple[str, bytes]:
    content = os.urandom(SIZE)
    name = recorded.cluster.api.blob(content)
    await_store(recorded, name)
    return name, content


def fetch(controller: Controller, name: str) -> bytes:
    file = io.BytesIO()
    assert controller.fetch_blob(name, file) == name
    return file.getvalue()


def connect(cluster: Cluster, url: str) -> Controller:
    token_file = cluster.folder / "controller" / "admin.token"
    context = Context(url, token_file.read_text().strip(), str(token_file), None, cluster.folder, False)
    return Controller(context, Messages(quiet=True))


@pytest.fixture
def client(make_recorded: Callable[..., Recorded]) -> tuple[Recorded, Controller]:
    recorded = make_recorded(0)
    return recorded, connect(recorded.cluster, recorded.controller.url)


def test_a_large_result_goes_from_the_store_to_the_client(client: tuple[Recorded, Controller]) -> None:
    recorded, controller = client
    name, content = stored_blob(recorded)
    assert fetch(controller, name) == content
    (head,) = recorded.store.asked("GET ", f"/blobs/{name}", "X-Amz-Signature=")
    assert "authorization" not in head.lower() and controller.context.token not in head
    assert recorded.controller.sent < SIZE // 10


@pytest.mark.parametrize("trouble", ["refused", "spoilt", "closed"])
def test_a_client_that_cannot_use_the_store_asks_the_controller(client: tuple[Recorded, Controller], trouble: str) -> None:
    recorded, controller = client
    stored = [stored_blob(recorded) for _ in range(2)]
    recorded.store.instead = [EXPIRED] * (trouble == "refused")
    recorded.store.spoils = trouble == "spoilt"
    if trouble == "closed":
        recorded.store.close()
    for name, content in stored:
        assert fetch(controller, name) == content
    assert len(recorded.controller.asked("redirect=1")) == 1
    assert recorded.controller.sent > 2 * SIZE


def save(recorded: Recorded, job: str, place: Path) -> str:
    """The hash of what `gpuctl results --save` writes."""
    environment = {"GPUCTL_URL": recorded.controller.url, "GPUCTL_TOKEN_FILE": str(recorded.cluster.folder / "controller" / "admin.token")}
    said = run_gpuctl("results", job, "--save", str(place), env=environment)
    assert said.returncode == 0, said.stderr
    return hashlib.sha256(place.read_bytes()).hexdigest()


def test_gpuctl_saves_a_large_result_from_the_store_or_from_the_controller(make_recorded: Callable[..., Recorded], tmp_path: Path) -> None:
    recorded = make_recorded(1)
    api, store = recorded.cluster.api, recorded.store
    payload = b"gpuctl-function 1 python=%d.%d\n" % sys.version_info[:2] + pickle.dumps((os.urandom, (SIZE,), {}))
    job = api.post("/v1/jobs", {"function": {"inline": base64.b64encode(payload).decode()}, "gpus": 1})["id"]
    assert api.wait(job)["state"] == "SUCCEEDED", api.job(job)
    name = api.get(f"/v1/jobs/{job}/results")["results"][0]["sha256"]
    await_store(recorded, name)
    recorded.controller.sent = 0
    assert save(recorded, job, tmp_path / "result") == name
    (head,) = store.asked("GET ", f"/blobs/{name}", "X-Amz-Signature=")
    assert "authorization" not in head.lower()
    assert recorded.controller.sent < SIZE // 10
    store.instead = [EXPIRED]
    assert save(recorded, job, tmp_path / "result") == name
    assert recorded.controller.sent > SIZE
    store.spoils = True
    assert save(recorded, job, tmp_path / "result") == name
    assert recorded.controller.sent > 2 * SIZE
    assert [path.name for path in tmp_path.glob("result*")] == ["result"]


def test_what_the_store_does_not_have_comes_from_the_controller(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(controller=s3.options())
    name = cluster.api.blob(b"small")
    assert fetch(connect(cluster, cluster.url), name) == b"small"


def test_plain_http_leads_no_further_than_the_host_of_the_controller() -> None:
    assert may_go("https://store.example/object", "https://controller.example")
    assert may_go("http://127.0.0.1:9000/object", "http://localhost:8470")
    assert not may_go("http://store.example/object", "http://localhost:8470")
    assert not may_go("http://127.0.0.1:9000/object", "https://controller.example")
    assert not may_go("file:///etc/passwd", "http://localhost:8470")
