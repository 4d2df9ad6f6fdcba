# SPDX-License-Identifier: Apache-2.0
"""The API at its edges: who may, what is refused and how it says so, and that a refusal costs nobody else anything."""

from __future__ import annotations

import concurrent.futures
import contextlib
import hashlib
import json
import signal
import socket
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import PATIENCE, Api, Cluster, Problem, eventually
from slowness import patient

TRUE = {"command": ["true"], "gpus": 1}


def refused(api: Api, document: Any) -> Problem:
    with pytest.raises(Problem) as caught:
        api.post("/v1/jobs", document)
    assert caught.value.body["detail"], caught.value.body
    return caught.value


@pytest.mark.parametrize(
    ("change", "status", "code", "field"),
    [
        ({"gpus": -1}, 422, "invalid_field", "gpus"),
        ({"gpus": -1}, 422, "invalid_field", "gpus"),
        ({"gpus": "2"}, 422, "invalid_field", "gpus"),
        ({"gpus": 1.5}, 422, "invalid_field", "gpus"),
        ({"gpus": 5}, 422, "not_enough_gpus", "gpus"),
        ({"gpu_type": "A11"}, 422, "unknown_gpu_type", "gpu_type"),
        ({"command": "true"}, 422, "invalid_field", "command"),
        ({"command": []}, 422, "invalid_field", "command"),
        ({"command": [1]}, 422, "invalid_field", "command[0]"),
        ({"comand": ["true"]}, 422, "unknown_field", "comand"),
        ({"remote": "yes"}, 422, "invalid_field", "remote"),
        ({"pool": "nowhere"}, 422, "invalid_field", "pool"),
        ({"use_reserved_pool": True}, 422, "not_enough_gpus", "use_reserved_pool"),
        ({"launch_mode": "thread"}, 422, "invalid_field", "launch_mode"),
        ({"env": {"RANK": "1"}}, 422, "invalid_field", "env.RANK"),
        ({"env": {"1x": "1"}}, 422, "invalid_field", "env.1x"),
        ({"files": [{"path": "../x", "text": ""}]}, 422, "invalid_field", "files[0].path"),
        ({"files": [{"path": "/x", "text": ""}]}, 422, "invalid_field", "files[0].path"),
        ({"time_limit_s": -1}, 422, "invalid_field", "time_limit_s"),
        ({"on_disconnect": "panic"}, 422, "invalid_field", "on_disconnect"),
        ({"remote": False, "host_id": "0" * 64}, 422, "no_local_node", "remote"),
    ],
)
def test_a_wrong_field_is_named_with_its_remedy(
    cluster: Cluster, change: dict[str, Any], status: int, code: str, field: str
) -> None:
    problem = refused(cluster.api, {**TRUE, **change})
    assert (problem.status, problem.code, problem.field) == (status, code, field)


def test_a_near_miss_is_suggested(cluster: Cluster) -> None:
    assert "command" in refused(cluster.api, {"comand": ["true"], "gpus": 1}).body["hint"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'{"gpus": 1, "gpus": 2, "command": ["true"]}', 400),
        (b'{"command": ' + b"[" * 40 + b"]" * 40 + b', "gpus": 1}', 400),
        (b'{"command": ["true"], "gpus": 1} x', 400),
        (b'{"command": ["\xff"], "gpus": 1}', 400),
        (b'{"command": ["\\u0000"], "gpus": 1}', 400),
        (b'{"command": ["' + b"a" * (1536 * 1024) + b'"], "gpus": 1}', 413),
    ],
)
def test_a_body_that_is_not_one_json_object_is_refused(cluster: Cluster, body: bytes, status: int) -> None:
    got, headers, reply = cluster.api.raw("POST", "/v1/jobs", body, {"Content-Type": "application/json"})
    assert got == status, reply
    assert headers["content-type"] == "application/problem+json"
    assert json.loads(reply)["detail"]


def test_a_wrong_content_type_is_415(cluster: Cluster) -> None:
    got, _, reply = cluster.api.raw("POST", "/v1/jobs", json.dumps(TRUE).encode(), {"Content-Type": "text/plain"})
    assert (got, json.loads(reply)["code"]) == (415, "unsupported_media_type")


def test_unknown_paths_methods_and_ids_are_told_apart(cluster: Cluster) -> None:
    assert cluster.api.raw("GET", "/v1/nothing")[0] == 404
    status, headers, _ = cluster.api.raw("DELETE", "/v1/jobs")
    assert status == 405 and "POST" in headers["allow"]
    with pytest.raises(Problem) as caught:
        cluster.api.job("a" * 16)
    assert (caught.value.status, caught.value.code) == (404, "not_found")


def test_without_a_good_token_nothing_is_shown_but_health(cluster: Cluster) -> None:
    nobody = Api(cluster.url, None)
    assert nobody.get("/healthz") == {"status": "ok"}
    forged = cluster.admin_token[:-1] + ("A" if cluster.admin_token[-1] != "A" else "B")
    for token in (None, "nonsense", "gct_aaaaaaaa_" + "a" * 43, forged):
        for path in ("/version", "/v1/jobs", "/v1/nodes", "/v1/openapi.yaml", "/v1/tokens"):
            status, _, body = Api(cluster.url, token).raw("GET", path)
            assert (status, json.loads(body)["code"]) == (401, "unauthenticated")


def test_roles_are_kept_apart(cluster: Cluster) -> None:
    anna, bert, node = cluster.user("anna"), cluster.user("bert"), cluster.user("n", role="node")
    job = anna.submit(["true"])
    anna.wait(job)
    assert anna.job(job)["owner"] == "anna"
    for ask in (lambda: bert.job(job), lambda: bert.post(f"/v1/jobs/{job}/cancel"), lambda: bert.log(job)):
        with pytest.raises(Problem) as caught:
            ask()
        assert caught.value.status == 404
    assert job not in [j["id"] for j in bert.get("/v1/jobs")["jobs"]]
    assert job in [j["id"] for j in cluster.api.get("/v1/jobs")["jobs"]]
    for ask in (
        lambda: anna.post("/v1/nodes/node0/drain"),
        lambda: anna.get("/v1/tokens"),
        lambda: anna.post("/v1/shutdown"),
        lambda: anna.post("/v1/agent/beat", {"node": "node0", "boot_id": "x", "seq": 1, "attempts": []}),
        lambda: node.get("/v1/jobs"),
        lambda: node.post("/v1/jobs", TRUE),
    ):
        with pytest.raises(Problem) as caught:
            ask()
        assert (caught.value.status, caught.value.code) == (403, "forbidden")


def test_a_revoked_token_is_refused(cluster: Cluster) -> None:
    made = cluster.api.post("/v1/tokens", {"role": "user", "owner": "carl"})
    carl = Api(cluster.url, made["secret"])
    carl.get("/v1/jobs")
    cluster.api.post(f"/v1/tokens/{made['id']}/revoke")
    with pytest.raises(Problem) as caught:
        carl.get("/v1/jobs")
    assert caught.value.status == 401
    database = (cluster.folder / "controller").glob("*.db*")
    assert not any(made["secret"].split("_", 2)[2].encode() in file.read_bytes() for file in database)


def test_one_key_is_one_job_and_another_body_a_conflict(cluster: Cluster) -> None:
    key = uuid.uuid4().hex
    first = cluster.api.post("/v1/jobs", TRUE, Idempotency_Key=key)
    status, headers, body = cluster.api.raw(
        "POST", "/v1/jobs", json.dumps(TRUE).encode(), {"Content-Type": "application/json", "Idempotency-Key": key}
    )
    assert (status, json.loads(body)) == (201, first)
    assert headers["idempotency-replayed"] == "true"
    with pytest.raises(Problem) as caught:
        cluster.api.post("/v1/jobs", {**TRUE, "name": "other"}, Idempotency_Key=key)
    assert (caught.value.status, caught.value.code) == (409, "idempotency_mismatch")
    cluster.api.wait(first["id"])


def test_a_key_is_remembered_by_the_next_controller(cluster: Cluster) -> None:
    key = uuid.uuid4().hex
    first = cluster.api.post("/v1/jobs", TRUE, Idempotency_Key=key)
    cluster.controller.kill()
    cluster.start_controller()
    assert cluster.api.post("/v1/jobs", TRUE, Idempotency_Key=key) == first
    cluster.api.wait(first["id"])


def test_fifty_submitters_at_once_get_fifty_jobs_a_key_each(cluster: Cluster) -> None:
    keys = [uuid.uuid4().hex for _ in range(50)]
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        twice = list(pool.map(lambda key: cluster.api.post("/v1/jobs", TRUE, Idempotency_Key=key)["id"], keys * 2))
    assert twice[:50] == twice[50:] and len(set(twice)) == 50
    for job in twice[:50]:
        assert cluster.api.wait(job)["state"] == "SUCCEEDED"


@pytest.mark.parametrize("count", [127, 128, 129, 255, 256, 257])
def test_exact_multiples_of_128_ready_connections_are_served(cluster: Cluster, count: int) -> None:
    """An event loop that refills a full batch with a blocking wait stops here for ever."""
    request = f"GET /v1/nodes HTTP/1.1\r\nHost: {cluster.api.address}\r\nAuthorization: Bearer {cluster.api.token}\r\n\r\n".encode()
    address = ("127.0.0.1", cluster.port)
    connections = [socket.create_connection(address, timeout=30) for _ in range(count)]
    try:
        for _ in range(2):
            for connection in connections:
                connection.sendall(request)
            for connection in connections:
                assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    finally:
        for connection in connections:
            connection.close()


def raw_exchange(cluster: Cluster, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", cluster.port), timeout=30) as connection:
        connection.sendall(request)
        reply = b""
        while chunk := connection.recv(65536):
            reply += chunk
        return reply


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("POST /v1/jobs HTTP/1.1\r\nHost: H\r\nContent-Length: 2\r\nContent-Length: 3\r\n", 400),
        ("POST /v1/jobs HTTP/1.1\r\nHost: H\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n", 400),
        ("POST /v1/jobs HTTP/1.1\r\nHost: H\r\nTransfer-Encoding: xchunked\r\n", 400),
        ("GET /healthz HTTP/1.1\r\nHost: H\r\nHost: H\r\n", 400),
        ("GET /healthz HTTP/1.1\r\nHost: evil.example\r\n", 421),
        ("GET /v1/jobs/a%00b HTTP/1.1\r\nHost: H\r\n", 400),
        ("GET /v1/jobs/%2e%2e HTTP/1.1\r\nHost: H\r\n", 400),
        ("GET /v1/jobs%2fx HTTP/1.1\r\nHost: H\r\n", 400),
        ("GET //v1/jobs HTTP/1.1\r\nHost: H\r\n", 400),
        ("BREW /v1/jobs HTTP/1.1\r\nHost: H\r\n", 405),
    ],
)
def test_smuggled_and_twisted_requests_are_refused(cluster: Cluster, head: str, status: int) -> None:
    text = head.replace("Host: H", f"Host: {cluster.api.address}")
    text += f"Authorization: Bearer {cluster.api.token}\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
    reply = raw_exchange(cluster, text.encode() + (b"{}" if "POST" in head else b""))
    assert reply.split(b" ", 2)[1] == str(status).encode(), reply


HEAD = "Host: localhost\r\nAuthorization: Bearer TOKEN\r\n"
JSON = "Content-Type: application/json\r\n"
#: How a request may end: what is sent, what comes back, and what the client does then.
WAYS_OUT = {
    "too many arguments": (f"GET /healthz?{'a&' * 200}a HTTP/1.1\r\n{HEAD}\r\n", b" 422 ", "close"),
    "too many for a path that takes some": (f"GET /v1/jobs?{'limit=1&' * 400}a HTTP/1.1\r\n{HEAD}\r\n", b" 400 ", "close"),
    "a path over its limit": (f"GET /healthz?{'x' * 5000} HTTP/1.1\r\n{HEAD}\r\n", b" 414 ", "close"),
    "a path that nothing holds": (f"GET /healthz?{'x' * 20000} HTTP/1.1\r\n{HEAD}\r\n", b" 414 ", "close"),
    "a path that leaves no room for headers": (f"GET /healthz?{'x' * 8000} HTTP/1.1\r\n{HEAD}\r\n", b"", "read to the end"),
    "headers over their limit": (f"GET /healthz HTTP/1.1\r\n{HEAD}X: {'x' * 7000}\r\n\r\n", b" 431 ", "close"),
    "a header that nothing holds": (f"GET /healthz HTTP/1.1\r\n{HEAD}X: {'x' * 20000}\r\n\r\n", b" 431 ", "close"),
    "too many headers": ("GET /healthz HTTP/1.1\r\n" + HEAD + "X: y\r\n" * 300 + "\r\n", b" 431 ", "close"),
    "a first line that is none": ("nothing\r\n\r\n", b"", "read to the end"),
    "a method that nobody knows": (f"BREW /healthz HTTP/1.1\r\n{HEAD}\r\n", b" 405 ", "close"),
    "left in its first line": ("GET /heal", b"", "close"),
    "left in its headers": ("GET /healthz?a&b HTTP/1.1\r\nHost: loc", b"", "close"),
    "left in its body": (f"POST /v1/jobs HTTP/1.1\r\n{HEAD}{JSON}Content-Length: 9\r\n\r\n{{", b"", "close"),
    "left in its chunks": (f"POST /v1/jobs HTTP/1.1\r\n{HEAD}{JSON}Transfer-Encoding: chunked\r\n\r\nff\r\n{{", b"", "close"),
    "left with a body that was refused": (f"POST /v1/jobs HTTP/1.1\r\n{HEAD}{JSON}Content-Length: 99999999\r\n\r\n{{", b" 413 ", "close"),
    "chunks that are none": (f"POST /v1/jobs HTTP/1.1\r\n{HEAD}{JSON}Transfer-Encoding: chunked\r\n\r\nxyz\r\n", b"", "read to the end"),
    "out of patience in its headers": ("GET /healthz HTTP/1.1\r\nHost: loc", b"", "read to the end"),
    "out of patience in its body": (f"POST /v1/jobs HTTP/1.1\r\n{HEAD}{JSON}Content-Length: 9\r\n\r\n{{", b"", "read to the end"),
    "left while it waits": (f"GET /v1/jobs/JOB?wait=60 HTTP/1.1\r\n{HEAD}\r\n", b"", "close"),
    "left while it follows": (f"GET /v1/jobs/JOB/events HTTP/1.1\r\n{HEAD}Accept: text/event-stream\r\n\r\n", b" 200 ", "close"),
    "still there at the end": (f"GET /v1/jobs/JOB?wait=60 HTTP/1.1\r\n{HEAD}\r\n", b"", "stay"),
    "one behind the other, the last cut off": (
        f"GET /healthz HTTP/1.1\r\n{HEAD}\r\n" * 3 + "GET /healthz?a HTTP/1.1\r\nHo", b" 200 ", "close",
    ),
    "one behind the other, the last too long": (
        f"GET /healthz HTTP/1.1\r\n{HEAD}\r\n" * 3 + f"GET /healthz?{'a&' * 2000} HTTP/1.1\r\n{HEAD}\r\n", b" 200 ", "read to the end",
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS_OUT)
def test_a_request_is_gone_whichever_way_it_ends(make_cluster: Callable[..., Cluster], way: str) -> None:
    """A6: some ways out were never told to us, and the memory stayed. A controller that ends with a request left aborts."""
    text, answer, then = WAYS_OUT[way]
    cluster = make_cluster(*[1] * ("JOB" in text), controller=["--client-patience", "200ms"])
    job = cluster.api.submit(["true"], hold=True) if "JOB" in text else ""
    request = text.replace("TOKEN", cluster.admin_token).replace("JOB", job).encode()
    connections = [socket.create_connection(("127.0.0.1", cluster.port), timeout=patient(30)) for _ in range(20)]
    for connection in connections:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(request)
    for connection in connections:
        with contextlib.suppress(ConnectionResetError):
            assert answer in connection.recv(4096) if answer else True
            while then == "read to the end" and connection.recv(4096):
                continue
        if then != "stay":
            connection.close()
    assert cluster.api.get("/healthz") == {"status": "ok"}
    assert cluster.controller.kill(signal.SIGTERM) == 0, cluster.controller.said()[-2000:]
    for connection in connections:
        connection.close()


def test_blobs_are_kept_under_their_hash_and_a_wrong_hash_is_refused(cluster: Cluster) -> None:
    for size in (0, 10, 64 * 1024, 64 * 1024 + 1, 5_000_000):
        body = bytes(i * 7 % 251 for i in range(min(size, 1000))) * (size // 1000 + 1)
        body = body[:size]
        name = hashlib.sha256(body).hexdigest()
        assert cluster.api.raw("HEAD", f"/v1/blobs/{name}")[0] == 404
        assert cluster.api.raw("PUT", f"/v1/blobs/{name}", body)[0] == 201
        assert cluster.api.raw("PUT", f"/v1/blobs/{name}", body)[0] == 200
        status, headers, got = cluster.api.raw("GET", f"/v1/blobs/{name}")
        assert status == 200 and got == body
        assert cluster.api.raw("HEAD", f"/v1/blobs/{name}")[1]["content-length"] == str(size)
    status, _, reply = cluster.api.raw("PUT", "/v1/blobs/" + "0" * 64, b"something")
    assert status == 422 and json.loads(reply)["field"] == "sha256"
    assert cluster.api.raw("HEAD", "/v1/blobs/" + "0" * 64)[0] == 404


def test_lists_page_by_cursor_and_filter(cluster: Cluster) -> None:
    dora = cluster.user("dora")
    jobs = [dora.submit(["true"], name=f"page-{n % 2}") for n in range(7)]
    for job in jobs:
        dora.wait(job)
    seen: list[str] = []
    page = dora.get("/v1/jobs?limit=3")
    while True:
        seen += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        page = dora.get(f"/v1/jobs?limit=3&cursor={page['next']}")
    assert seen == jobs[::-1]
    assert [job["id"] for job in dora.get("/v1/jobs?name=page-1")["jobs"]] == [jobs[5], jobs[3], jobs[1]]
    assert dora.get("/v1/jobs?state=FAILED")["jobs"] == []
    assert [job["id"] for job in dora.get(f"/v1/jobs?id_prefix={jobs[0][:10]}")["jobs"]] == [jobs[0]]
    with pytest.raises(Problem) as caught:
        dora.get("/v1/jobs?state=ASLEEP")
    assert caught.value.field == "state"


def test_waiting_returns_at_once_when_the_job_ends(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.api.submit(["sh", "-c", f"while ! test -e {tmp_path}/gate; do sleep 0.01; done"])
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(cluster.api.get, f"/v1/jobs/{job}?wait=50")
        cluster.wait_state(job, "RUNNING")
        (tmp_path / "gate").touch()
        assert waiting.result(timeout=PATIENCE)["state"] == "SUCCEEDED"


def test_a_drained_node_gets_no_work_until_it_is_resumed(cluster: Cluster) -> None:
    for node in ("node0", "node1"):
        cluster.api.post(f"/v1/nodes/{node}/drain", {"reason": "disk swap"})
    assert {node["state"] for node in cluster.nodes().values()} == {"DRAINED"}
    assert cluster.nodes()["node0"]["reason"] == "disk swap"
    job = cluster.api.submit(["true"])
    assert cluster.api.job(job)["state"] == "QUEUED"
    for node in ("node0", "node1"):
        cluster.api.post(f"/v1/nodes/{node}/resume")
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"


def test_the_contract_is_served_and_names_every_route(cluster: Cluster) -> None:
    status, _, body = cluster.api.raw("GET", "/v1/openapi.yaml")
    assert status == 200
    for path in ("/v1/jobs:", "/v1/jobs/{id}/logs:", "/v1/blobs/{sha256}:", "/v1/agent/poll:", "/healthz:"):
        assert path.encode() in body


def test_a_full_disk_is_said_and_nothing_is_lost(make_cluster: Any) -> None:
    """The controller refuses submissions below its free-space margin, and goes on with what it has."""
    cluster = make_cluster(1, controller=["--min-free", "1000000TiB"])
    problem = refused(cluster.api, TRUE)
    assert (problem.status, problem.code) == (507, "disk_full")
    assert eventually(lambda: cluster.nodes()["node0"]["state"] == "READY", "the node to stay READY")
