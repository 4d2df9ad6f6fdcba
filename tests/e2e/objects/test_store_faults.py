# SPDX-License-Identifier: Apache-2.0
"""A store that is away, busy, refuses or loses bytes: one clear line each, nothing lost, and nothing else is delayed."""

from __future__ import annotations

import hashlib
import http.server
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Cluster, Problem, eventually
from http_fault import Fault, Proxy
from rclone_server import S3Server
from test_object_store import fetch, gone, local, settled, status


class Gate(Proxy):
    """Holds back requests whose first line has this text, until it is opened."""

    def __init__(self, port: int, text: str):
        self.text = text
        self.held = threading.Event()
        self.opened = threading.Event()
        self.lines: list[str] = []
        super().__init__(port)

    def _answer(self, connection: Any, request: bytes) -> None:
        line = request.split(b"\r\n", 1)[0].decode()
        self.lines.append(line)
        if self.text in line and not self.opened.is_set():
            self.held.set()
            self.opened.wait(60)
        super()._answer(connection, request)


def restart(cluster: Cluster, options: list[str] | None = None, how: int = 15) -> None:
    cluster.controller.kill(how)
    cluster.controller_arguments = options if options is not None else cluster.controller_arguments
    cluster.start_controller()


def test_a_store_that_is_away_delays_nothing_and_gets_all_later(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(1, controller=s3.options("--object-store-after", "1s"))
    before = os.urandom(100_000)
    known = cluster.api.blob(before)
    gone(cluster, "blobs")
    s3.stop()
    content = os.urandom(100_000)
    name = cluster.api.blob(content)
    job = cluster.api.submit(["echo", "hello"])
    assert cluster.api.wait(job)["state"] == "SUCCEEDED" and cluster.api.log(job) == "hello\n"
    eventually(lambda: status(cluster)["away_since"] is not None, "the controller to notice")
    told = status(cluster)
    assert "cannot be reached" in told["problem"] and told["waiting_files"] >= 1 and not told["complete"]
    assert fetch(cluster, f"/v1/blobs/{name}") == content  # it is still here
    with pytest.raises(Problem) as refused:
        cluster.api.get(f"/v1/blobs/{known}")
    assert refused.value.status == 503 and "the object store" in refused.value.body["detail"]
    restart(cluster, how=9)  # what waits survives this
    assert cluster.controller.said().count("objects away") <= 4
    s3.start()
    gone(cluster, "blobs", "logs")
    assert fetch(cluster, f"/v1/blobs/{known}") == before and fetch(cluster, f"/v1/blobs/{name}") == content
    assert cluster.api.log(job) == "hello\n"


def test_a_store_that_does_not_answer_delays_only_what_needs_it(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(1, controller=s3.options("--object-store-after", "1s"))
    before = os.urandom(100_000)
    known = cluster.api.blob(before)
    gone(cluster, "blobs")
    s3.pause(True)
    waiting: list[bytes] = []
    asks = threading.Thread(target=lambda: waiting.append(fetch(cluster, f"/v1/blobs/{known}")))
    asks.start()
    content = os.urandom(100_000)
    name = cluster.api.blob(content)
    job = cluster.api.submit(["echo", "hello"])
    assert cluster.api.wait(job)["state"] == "SUCCEEDED" and cluster.api.log(job) == "hello\n"
    assert fetch(cluster, f"/v1/blobs/{name}") == content
    s3.pause(False)
    asks.join()
    assert waiting == [before]
    eventually(lambda: s3.file(f"blobs/{name}").exists(), "the blob in the store")


class Refusing(http.server.BaseHTTPRequestHandler):
    """An S3 server that answers all requests with one error."""

    code = ""

    def do_GET(self) -> None:
        body = f"<Error><Code>{self.code}</Code><Message>no</Message></Error>".encode()
        self.send_response(503 if self.code == "SlowDown" else 403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *ignored: object) -> None:
        pass


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("RequestTimeTooSkewed", "set the clock of this host"),
        ("InvalidAccessKeyId", "--object-store-credentials"),
        ("ExpiredToken", "put new credentials"),
        ("AccessDenied", "let the access key"),
        ("SlowDown", "tries again by itself"),
    ],
)
def test_what_the_store_refuses_is_said_with_the_remedy(make_cluster: Callable[..., Cluster], s3: S3Server, code: str, hint: str) -> None:
    handler = type("Handler", (Refusing,), {"code": code})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as refusing:
        threading.Thread(target=refusing.serve_forever, daemon=True).start()
        cluster = make_cluster(controller=s3.options(port=refusing.server_port))
        cluster.api.blob(os.urandom(100_000))
        eventually(lambda: status(cluster)["away_since"] is not None, "the controller to notice")
        told = status(cluster)
        assert code in told["problem"] and hint in told["hint"]
        assert local(cluster, "blobs")
        cluster.controller.kill(15)
        refusing.shutdown()


def test_too_much_that_waits_is_refused_and_says_so(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    s3.stop()
    cluster = make_cluster(1, controller=s3.options("--object-store-spool", "1MiB"))
    first = cluster.api.blob(os.urandom(600_000))
    content = os.urandom(600_000)
    name = hashlib.sha256(content).hexdigest()

    def put() -> tuple[int, bytes]:
        code, _, body = cluster.api.raw("PUT", f"/v1/blobs/{name}", content, {"Content-Type": "application/octet-stream"})
        return code, body

    eventually(lambda: status(cluster)["away_since"] is not None, "the controller to notice")
    code, body = put()
    assert code == 507 and b"wait for the object store" in body and b"cannot be reached" in body
    assert cluster.api.submit(["true"])  # what brings no payload goes on
    s3.start()
    eventually(lambda: put()[0] in (200, 201), "the upload to be taken")
    settled(cluster)
    eventually(lambda: {f"blobs/{first}", f"blobs/{name}"} <= s3.keys(), "both in the store")


@pytest.mark.parametrize("fault", [Fault.BUSY, Fault.CLOSED, Fault.LOST, Fault.CUT, Fault.REFUSED, Fault.ERROR, Fault.GARBAGE])
def test_one_request_that_fails_is_sent_again(make_cluster: Callable[..., Cluster], s3: S3Server, fault: Fault) -> None:
    proxy = Proxy(s3.port)
    try:
        cluster = make_cluster(controller=s3.options("--object-store-after", "1s", port=proxy.port))
        content = os.urandom(100_000)
        proxy.arm(fault)
        name = cluster.api.blob(content)
        gone(cluster, "blobs")
        assert s3.file(f"blobs/{name}").read_bytes() == content
        proxy.arm(fault)
        assert fetch(cluster, f"/v1/blobs/{name}") == content
        assert proxy.struck is not None and name in proxy.struck
    finally:
        proxy.close()


def test_a_controller_that_is_killed_goes_on_with_the_parts_that_are_missing(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    gate = Gate(s3.port, "partNumber=3")
    try:
        cluster = make_cluster(controller=s3.options("--object-store-after", "1s", port=gate.port))
        content = os.urandom(1 << 20) * 40
        name = cluster.api.blob(content)
        assert gate.held.wait(60)
        cluster.controller.kill(9)
        gate.lines.clear()
        gate.opened.set()
        cluster.start_controller()
        gone(cluster, "blobs")
        sent = [line for line in gate.lines if "partNumber=" in line]
        assert not any("partNumber=1&" in line or "partNumber=2&" in line for line in sent), sent
        assert hashlib.sha256(s3.file(f"blobs/{name}").read_bytes()).hexdigest() == name
        assert fetch(cluster, f"/v1/blobs/{name}") == content
    finally:
        gate.close()


def test_wrong_credentials_are_named_and_can_be_put_right_while_it_serves(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    s3.write_credentials("wrong")
    cluster = make_cluster(controller=s3.options("--object-store-after", "1s"))
    name = cluster.api.blob(os.urandom(100_000))
    eventually(lambda: status(cluster)["away_since"] is not None, "the controller to notice")
    assert "SignatureDoesNotMatch" in status(cluster)["problem"] and "--object-store-credentials" in status(cluster)["hint"]
    s3.write_credentials("secret/of+the=tests")
    eventually(lambda: s3.keys() == {f"blobs/{name}"}, "the blob in the store")


def test_a_bucket_that_is_not_there_is_named(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    s3.bucket.rmdir()
    cluster = make_cluster(controller=s3.options("--object-store-after", "1s"))
    name = cluster.api.blob(os.urandom(100_000))
    eventually(lambda: status(cluster)["away_since"] is not None, "the controller to notice")
    assert "NoSuchBucket" in status(cluster)["problem"] and "make the bucket" in status(cluster)["hint"]
    assert local(cluster, "blobs")
    s3.stop()
    s3.bucket.mkdir()
    s3.start()
    eventually(lambda: s3.keys() == {f"blobs/{name}"}, "the blob in the store")


def test_bytes_that_the_store_has_changed_are_not_handed_out(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(controller=s3.options("--object-store-after", "1s"))
    name = cluster.api.blob(os.urandom(100_000))
    gone(cluster, "blobs")
    s3.stop()
    s3.file(f"blobs/{name}").write_bytes(bytes(100_000))
    s3.start()
    with pytest.raises(Problem, match="has not the bytes that were stored"):
        eventually(lambda: cluster.api.get(f"/v1/blobs/{name}"), "never")
    assert not local(cluster, "blobs")


def test_retention_goes_on_without_the_store(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(1, controller=s3.options("--object-store-after", "1s"))
    job = cluster.api.submit(["echo", "hello"])
    cluster.api.wait(job)
    gone(cluster, "logs")
    s3.stop()
    cluster.api.call("DELETE", f"/v1/jobs/{job}")
    assert cluster.api.post("/v1/retention")["jobs"] == 0
    s3.start()
    eventually(lambda: status(cluster)["away_since"] is None, "the store to be back")
    cluster.api.post("/v1/retention")
    eventually(lambda: not s3.keys("logs/"), "the output to go")


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("http://bucket", "no address of an object store"),
        ("s3://B", "a bucket's name has"),
        ("s3://bucket?endpoint=http://192.0.2.1", "the endpoint is https"),
        ("s3://bucket?colour=red", "the parameters are endpoint and region"),
        ("s3://bucket/a//b", "a prefix has"),
    ],
)
def test_an_address_that_is_wrong_is_refused_at_the_start(tmp_path: Path, option: str, says: str) -> None:
    cluster = Cluster(tmp_path, [], controller=["--object-store", option])
    with pytest.raises(AssertionError) as ended:
        cluster.start()
    assert says in str(ended.value) and "--object-store" in str(ended.value)


def test_credentials_that_others_may_read_are_refused_at_the_start(tmp_path: Path, s3: S3Server) -> None:
    s3.credentials.chmod(0o644)
    cluster = Cluster(tmp_path, [], controller=s3.options())
    with pytest.raises(AssertionError, match="all users of this host may read"):
        cluster.start()
