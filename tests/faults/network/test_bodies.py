# SPDX-License-Identifier: Apache-2.0
"""Bodies that are huge, never end, or are not what their length says: refused early, streamed where wanted, never kept in part."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import Cluster, eventually
from raw_http import Exchange, exchange, resident, take_reply, unread_bytes
from slowness import patient

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
#: What a refused body may cost beyond its limit: it is read for a while, so that the refusal arrives, and the sockets hold some
#: (net.ipv4.tcp_wmem and tcp_rmem have the most).
DRAINED = 16 * MIB

#: One path of each class, with the token that it wants and the most that it takes.
PATHS = {
    "small JSON": ("POST", "/v1/tokens", "admin", 64 * KIB),
    "a submission": ("POST", "/v1/jobs", "admin", 1536 * KIB),
    "a node's report": ("POST", "/v1/agent/report", "node", 640 * KIB),
    "a piece of a log": ("POST", "/v1/agent/logs?node=n&epoch=1&rank=0&stream=stdout&offset=0", "node", MIB),
    "MLflow's JSON": ("POST", "/api/2.0/mlflow/runs/create", "admin", MIB),
    "a blob": ("PUT", "/v1/blobs/" + "0" * 64, "admin", GIB),
    "an artifact": ("PUT", "/api/2.0/mlflow-artifacts/artifacts/0/x/artifacts/model.bin", "admin", GIB),
    "no body": ("GET", "/v1/nodes", "admin", 0),
}
STREAMED = {"a blob", "an artifact"}
CLIENT_PATIENCE = patient(60)


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("bodies"), [], controller=["--client-patience", f"{CLIENT_PATIENCE:.0f}s"])
    cluster.start_controller()
    cluster.node_token = cluster.api.post("/v1/tokens", {"role": "node", "owner": "nodes"})["secret"]  # type: ignore[attr-defined]
    yield cluster
    assert cluster.controller.alive(), cluster.controller.said()
    cluster.stop()


def head(cluster: Cluster, name: str, *more: str) -> bytes:
    method, path, who, _ = PATHS[name]
    token = cluster.api.token if who == "admin" else cluster.node_token  # type: ignore[attr-defined]
    lines = [
        f"{method} {path} HTTP/1.1",
        f"Host: {cluster.api.address}",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        *more,
        "",
        "",
    ]
    return "\r\n".join(lines).encode()


def pid_of(cluster: Cluster) -> int:
    assert cluster.controller.process is not None
    return cluster.controller.process.pid


def arriving(cluster: Cluster) -> list[str]:
    """Files of uploads that are under way: those that the controller has open for writing below its folders of bytes."""
    state = str(cluster.folder / "controller")
    found = []
    for entry in Path(f"/proc/{pid_of(cluster)}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            name = os.readlink(entry)
            if name.startswith((f"{state}/blobs/", f"{state}/artifacts/")) and name.count("/") > state.count("/") + 2:
                found.append(name)
    left = [str(path) for folder in ("blobs/arriving", "artifacts/arriving") for path in (Path(state) / folder).glob("*")]
    return sorted({*found, *left})


@pytest.mark.parametrize("name", PATHS)
def test_a_length_above_the_limit_is_refused_before_a_byte_of_it_is_read(controller: Cluster, name: str) -> None:
    for length in (10 * GIB, PATHS[name][3] + 1):
        found = exchange(controller.port, head(controller, name, f"Content-Length: {length}"))
        assert (found.statuses, found.closed) == ([413], True), found
    assert arriving(controller) == []


def send_chunks(cluster: Cluster, name: str, most: int, look: Callable[[], None] = lambda: None) -> tuple[int, Exchange]:
    """Send an endless body in chunks until the controller ends it, or most bytes are sent: how many were, and what came back."""
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    sent, found = 0, Exchange()
    with socket.create_connection(("127.0.0.1", cluster.port), timeout=30) as connection:
        connection.sendall(head(cluster, name, "Transfer-Encoding: chunked"))
        try:
            while sent < most:
                connection.sendall(chunk)
                sent += 0x10000
                look()
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            while piece := connection.recv(65536):
                found.raw += piece
        except ConnectionResetError:
            pass
    reply, _ = take_reply(found.raw)
    if reply is not None:
        found.replies.append(reply)
    return sent, found


@pytest.mark.parametrize("name", [name for name in PATHS if name not in STREAMED])
def test_an_endless_body_is_cut_off_soon_above_the_limit_and_costs_no_memory(controller: Cluster, name: str) -> None:
    memory = resident(pid_of(controller))
    sent, found = send_chunks(controller, name, GIB)
    assert sent <= PATHS[name][3] + DRAINED
    assert found.statuses in ([413], []), found.raw[:300]  # the refusal may be lost with the reset that ends the connection
    assert resident(pid_of(controller)) - memory < 8 * MIB
    assert controller.api.raw("GET", "/healthz")[0] == 200


def test_an_endless_blob_is_cut_off_at_its_limit_and_leaves_nothing(controller: Cluster, volume: Callable[[int, int], int]) -> None:
    """In full: more than the limit of 1 GiB. In short a part of it, given up by the client."""
    memory = resident(pid_of(controller))
    full = volume(0, 1)
    for name in sorted(STREAMED):
        sent, found = send_chunks_and_leave(controller, name, 64 * MIB) if not full else send_chunks(controller, name, 2 * GIB)
        assert sent <= GIB + DRAINED
        if full:
            assert found.statuses in ([413], [])
        eventually(lambda: arriving(controller) == [], "the file of the upload to go")
        grown = resident(pid_of(controller)) - memory
        print(f"{name}: {sent // MIB} MiB sent, {grown // KIB} KiB of memory")
        assert grown < 8 * MIB


def send_chunks_and_leave(cluster: Cluster, name: str, size: int) -> tuple[int, Exchange]:
    """The start of an endless body, of which the file is there, from a client that goes away."""
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with socket.create_connection(("127.0.0.1", cluster.port), timeout=30) as connection:
        connection.sendall(head(cluster, name, "Transfer-Encoding: chunked"))
        for _ in range(size // 0x10000):
            connection.sendall(chunk)
        eventually(lambda: len(arriving(cluster)) == 1, "the file of the upload")
    return size, Exchange()


def test_a_large_blob_goes_through_in_constant_memory(controller: Cluster, volume: Callable[[int, int], int]) -> None:
    size = volume(64 * MIB, GIB)
    piece = os.urandom(MIB)
    digest = hashlib.sha256()
    for _ in range(size // MIB):
        digest.update(piece)
    memory = resident(pid_of(controller))
    path = (
        f"PUT /v1/blobs/{digest.hexdigest()} HTTP/1.1\r\nHost: {controller.api.address}\r\nAuthorization: Bearer {controller.api.token}\r\n"
    )
    with socket.create_connection(("127.0.0.1", controller.port), timeout=60) as connection:
        connection.sendall(f"{path}Content-Length: {size}\r\nConnection: close\r\n\r\n".encode())
        for _ in range(size // MIB):
            connection.sendall(piece)
        assert connection.recv(65536).startswith(b"HTTP/1.1 201")
    grown = resident(pid_of(controller)) - memory
    print(f"a blob of {size // MIB} MiB: {grown // KIB} KiB of memory")
    assert grown < 8 * MIB
    assert arriving(controller) == []


@pytest.mark.parametrize("name", [name for name in PATHS if name != "no body"])
def test_a_body_that_ends_before_its_length_is_never_acted_on(controller: Cluster, name: str) -> None:
    counts = [len(controller.api.get("/v1/jobs")["jobs"]), len(controller.api.get("/v1/tokens")["tokens"])]
    good = {"small JSON": {"role": "user", "owner": "x"}, "a submission": {"command": ["true"], "gpus": 1, "gpu_type": "cpu"}}
    body = json.dumps(good.get(name, {"experiment_id": "0"})).encode().ljust(600 * KIB if name in STREAMED else 100)
    # The library may miss an end that comes together with the last bytes: then the connection goes when it has said nothing for too long.
    with socket.create_connection(("127.0.0.1", controller.port), timeout=CLIENT_PATIENCE + patient(30)) as connection:
        connection.sendall(head(controller, name, f"Content-Length: {len(body) + 1}") + body)
        if name in STREAMED:
            eventually(lambda: len(arriving(controller)) == 1, "the file of the upload")
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(65536) == b""
    eventually(lambda: arriving(controller) == [], "the file of the upload to go")
    assert [len(controller.api.get("/v1/jobs")["jobs"]), len(controller.api.get("/v1/tokens")["tokens"])] == counts


def test_what_follows_a_body_beyond_its_length_is_no_part_of_it(controller: Cluster) -> None:
    """The length counts: the rest is another request, and not a good one."""
    body = json.dumps({"role": "user", "owner": "y"}).encode()
    found = exchange(controller.port, head(controller, "small JSON", f"Content-Length: {len(body)}") + body + b"more of it\r\n\r\n")
    assert found.statuses[0] == 201 and found.closed
    assert set(found.statuses[1:]) <= {400}


def test_many_large_bodies_at_once_stay_within_their_budget_and_small_ones_pass(controller: Cluster) -> None:
    """Submissions that are all but complete: each holds 1.5 MiB, and 128 MiB is what there is for all of them."""
    body = b"{" + b" " * (1536 * KIB - 2)
    memory = resident(pid_of(controller))
    held = []
    for _ in range(110):
        connection = socket.create_connection(("127.0.0.1", controller.port), timeout=30)
        connection.sendall(head(controller, "a submission", f"Content-Length: {len(body) + 1}") + body)
        held.append(connection)
    eventually(lambda: unread_bytes(controller.port) == 0, "all bodies to be read")
    assert controller.api.raw("POST", "/v1/tokens", b"{}", {"Content-Type": "application/json"})[0] == 422
    for connection in held:
        connection.sendall(b"}")
    replies = [connection.recv(65536) for connection in held]
    statuses = sorted(int(reply.split()[1]) for reply in replies)
    grown = resident(pid_of(controller), "VmHWM") - memory
    print(f"{statuses.count(422)} of {len(held)} bodies taken in, {statuses.count(503)} told to come again; {grown // MIB} MiB at the most")
    assert set(statuses) == {422, 503} and 80 <= statuses.count(422) <= 86
    assert all(b"Retry-After: 1" in reply for reply in replies if reply.split()[1] == b"503")
    assert grown < 144 * MIB
    for connection in held:
        connection.close()
    status, _, _ = controller.api.raw("POST", "/v1/jobs", body + b"}", {"Content-Type": "application/json"})
    assert status == 422  # room again


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of its own, of 128 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "tmpfs", str(folder)], capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a tmpfs here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def free_bytes(folder: Path) -> int:
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize


def test_uploads_stop_while_there_is_space_left(small_disk: Path) -> None:
    cluster = Cluster(small_disk, [], controller=["--min-free", "32MiB"])
    cluster.start_controller()
    free: list[int] = []

    def look() -> None:
        free.append(free_bytes(small_disk))

    try:
        for name in sorted(STREAMED):
            found = exchange(cluster.port, head(cluster, name, f"Content-Length: {100 * MIB}"))
            assert (found.statuses, found.closed) == ([507], True)
            _, found = send_chunks(cluster, name, 200 * MIB, look)
            assert found.statuses in ([507], []), found.raw[:300]
            eventually(lambda: arriving(cluster) == [], "the file of the upload to go")
        print(f"the least that was free was {min(free) // MIB} MiB")
        assert min(free) > 24 * MIB and free_bytes(small_disk) > 64 * MIB
        body = b"a small one"
        name = hashlib.sha256(body).hexdigest()
        assert eventually(lambda: cluster.api.raw("PUT", f"/v1/blobs/{name}", body)[0] == 201, "room for a small blob")
    finally:
        cluster.stop()
