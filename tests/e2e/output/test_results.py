# SPDX-License-Identifier: Apache-2.0
"""What ranks of functions leave behind, seen by plain HTTP: values of any size, exceptions, metrics, through restarts of either side."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from harness import GPUAGENT, PYTHON, Api, Cluster, eventually

MIB = 1 << 20


def payload(function: Callable[..., Any], *args: Any) -> bytes:
    """The call as a node gets it."""
    header = "gpuctl-function 1 python={}.{}\n".format(*sys.version_info[:2])
    return header.encode() + cloudpickle.dumps((function, args, {}))


def submit(api: Api, function: Callable[..., Any], *args: Any, **spec: Any) -> str:
    """Submit a call with its payload in the spec; the job's id. Functions are local to their test, so that they are pickled whole."""
    inline = base64.b64encode(payload(function, *args)).decode()
    document = {"gpus": 1, "function": {"inline": inline}, "python": PYTHON, **spec}
    return api.post("/v1/jobs", document, Idempotency_Key=uuid.uuid4().hex)["id"]


def rows(api: Api, job: str) -> list[dict[str, Any]]:
    return api.get(f"/v1/jobs/{job}/results?bytes=1")["results"]


def value(api: Api, row: dict[str, Any]) -> Any:
    """What the rank returned: from the row itself or from the blob that it names."""
    if "base64" in row:
        return pickle.loads(base64.b64decode(row["base64"]))
    status, _, stored = api.raw("GET", f"/v1/blobs/{row['sha256']}")
    assert status == 200 and hashlib.sha256(stored).hexdigest() == row["sha256"]
    return pickle.loads(stored)


def succeeded(api: Api, job: str) -> list[dict[str, Any]]:
    view = api.wait(job)
    assert view["state"] == "SUCCEEDED", (view["reason"], api.log(job, stream="stderr"))
    return rows(api, job)


# --- values -------------------------------------------------------------------------------------------------------------------


def test_every_rank_of_a_gang_leaves_its_value(cluster: Cluster) -> None:
    def where(word: str) -> dict[str, Any]:
        import os

        return {"rank": int(os.environ["RANK"]), "word": word}

    found = succeeded(cluster.api, submit(cluster.api, where, "x", gpus=4))
    assert [row["json"] for row in found] == [{"rank": rank, "word": "x"} for rank in range(4)]
    assert [value(cluster.api, row)["rank"] for row in found] == [0, 1, 2, 3]


def test_a_large_result_is_there_for_the_owner_of_its_job(cluster: Cluster) -> None:
    def large() -> bytes:
        return b"result" * 50_000

    ada, bob = cluster.user("ada"), cluster.user("bob")
    row = succeeded(ada, submit(ada, large))[0]
    assert value(ada, row) == large()
    assert bob.raw("GET", f"/v1/blobs/{row['sha256']}")[0] == 404


def test_a_payload_may_be_a_blob(cluster: Cluster) -> None:
    api = cluster.api
    call = payload(lambda: 7)
    name = hashlib.sha256(call).hexdigest()
    assert api.raw("PUT", f"/v1/blobs/{name}", call, {"Content-Type": "application/octet-stream"})[0] == 201
    job = api.post("/v1/jobs", {"gpus": 1, "function": {"blob": name}, "python": PYTHON})["id"]
    assert [row["json"] for row in succeeded(api, job)] == [7]


def test_a_large_value_is_there_when_its_job_has_succeeded(cluster: Cluster) -> None:
    def large() -> bytes:
        return bytes(range(256)) * 4096 * 8

    (row,) = succeeded(cluster.api, submit(cluster.api, large))
    assert row["size"] > 8 * MIB and "json" not in row and "base64" not in row
    assert value(cluster.api, row) == bytes(range(256)) * 4096 * 8


def test_a_value_that_is_too_large_fails_its_job_and_says_why(cluster: Cluster) -> None:
    def huge() -> None:
        import os

        path = os.path.join(os.environ["GPUCTL_RESULT_DIR"], "0.pickle")
        with open(path, "wb") as file:
            file.truncate((1 << 30) + 1)
        os._exit(0)

    view = cluster.api.wait(submit(cluster.api, huge))
    assert (view["state"], view["cause"]) == ("FAILED", "RESULT_MISSING"), view
    assert "the result of rank 0 is 1.1 GiB, the limit is 1 GiB" in view["reason"]


def test_a_function_that_leaves_without_a_value_has_failed(cluster: Cluster) -> None:
    def leave() -> None:
        import os

        os._exit(0)

    view = cluster.api.wait(submit(cluster.api, leave))
    assert (view["state"], view["cause"], view["failed_rank"]) == ("FAILED", "RESULT_MISSING", 0), view


# --- exceptions ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("launch_mode", ["process", "node"])
def test_an_exception_is_named_in_the_reason_and_kept(cluster: Cluster, launch_mode: str) -> None:
    def fail() -> None:
        raise ValueError("bad\nmore of it")

    job = submit(cluster.api, fail, gpus=2, launch_mode=launch_mode)
    view = cluster.api.wait(job)
    assert view["state"] == "FAILED" and view["reason"].endswith("exited with 1: ValueError: bad"), view
    first = next(row for row in rows(cluster.api, job) if row["rank"] == view["failed_rank"])
    assert first["kind"] == "exception"
    assert first["error"]["message"]["message"] == "ValueError: bad\nmore of it"
    assert value(cluster.api, first)["message"] == "bad\nmore of it"


def test_a_command_is_quoted_by_its_error_file(cluster: Cluster) -> None:
    script = "import json, os, sys; json.dump({'message': 'out of luck'}, open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w')); sys.exit(3)"
    job = cluster.api.submit([PYTHON, "-S", "-c", script])
    view = cluster.api.wait(job)
    assert view["reason"].endswith("exited with 3: out of luck"), view
    (row,) = rows(cluster.api, job)
    assert (row["kind"], row["sha256"], row["error"]) == ("exception", None, {"message": "out of luck"})


def test_a_canceled_function_leaves_nothing(cluster: Cluster) -> None:
    def wait_for_ever() -> None:
        import threading

        threading.Event().wait()

    job = submit(cluster.api, wait_for_ever)
    cluster.wait_state(job, "RUNNING")
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    assert cluster.api.wait(job)["state"] == "CANCELED"
    assert rows(cluster.api, job) == []


# --- metrics ------------------------------------------------------------------------------------------------------------------


def test_metrics_of_all_ranks_have_arrived_when_the_job_ends(cluster: Cluster) -> None:
    def measure() -> None:
        import json
        import os
        import socket
        import time

        talk = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        talk.connect(os.environ["GPUCTL_SOCKET"])
        for step in range(100):
            line = {"metric": "loss", "value": step / 2, "step": step, "rank": int(os.environ["RANK"]), "time": time.time()}
            talk.send(json.dumps(line).encode() + b"\n")

    job = submit(cluster.api, measure, gpus=4)
    succeeded(cluster.api, job)
    points = cluster.api.get(f"/v1/jobs/{job}/metrics?limit=1000")["metrics"]
    for rank in range(4):
        assert [point["step"] for point in points if point["rank"] == rank] == list(range(100))


# --- either side is away ------------------------------------------------------------------------------------------------------


def gated(api: Api, folder: Path) -> str:
    """A function that runs, waits for the gate and returns 8 MiB."""

    def large(gate: str) -> bytes:
        import os
        import time

        open(gate + ".reached", "w").close()
        while not os.path.exists(gate):
            time.sleep(0.01)
        return bytes(8 << 20)

    job = submit(api, large, str(folder / "gate"), infra_retries=0)
    eventually((folder / "gate.reached").exists, "the function to run")
    return job


def open_gate(cluster: Cluster, folder: Path) -> None:
    """Let it return; its processes are gone afterwards."""
    (folder / "gate").touch()
    eventually(lambda: list((cluster.folder / "node0" / "attempts").glob("*/exit")), "the exit record")


def test_a_value_outlives_the_agent_that_ran_it(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1)
    job = gated(cluster.api, tmp_path)
    cluster.agents[0].kill()
    open_gate(cluster, tmp_path)
    cluster.agents[0].start()
    (row,) = succeeded(cluster.api, job)
    assert value(cluster.api, row) == bytes(8 << 20)


def test_a_value_waits_for_the_controller_and_is_collected_again(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1)
    job = gated(cluster.api, tmp_path)
    cluster.controller.kill()
    open_gate(cluster, tmp_path)
    cluster.agents[0].kill()
    cluster.agents[0].start()
    cluster.start_controller()
    (row,) = succeeded(cluster.api, job)
    assert row["size"] > 8 * MIB and cluster.api.job(job)["attempt"] == 1


# --- a controller that refuses ------------------------------------------------------------------------------------------------


class Refusing(BaseHTTPRequestHandler):
    """Orders one function, and does not want its results."""

    protocol_version = "HTTP/1.1"
    server: Stage

    def log_message(self, *_: Any) -> None:
        pass

    def answer(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, reply = self.server.turn(self.path, json.loads(body) if self.headers["Content-Type"] == "application/json" else {})
        self.answer(status, reply)

    def do_PUT(self) -> None:
        self.server.puts += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(422, {"code": "invalid_field", "status": 422, "detail": "another content"})


class Stage(ThreadingHTTPServer):
    """What the agent has said to it."""

    daemon_threads = True

    def __init__(self, spec: dict[str, Any]):
        super().__init__(("127.0.0.1", 0), Refusing)
        self.spec = spec
        self.exits: list[dict[str, Any]] = []
        self.puts = 0
        self.done = threading.Event()

    def turn(self, path: str, message: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path.endswith("/register"):
            return 200, {"incarnation": 1, "beat_ms": 500, "park_ms": 500}
        if path.endswith("/poll"):
            return 200, self.orders(message["version"])
        if path.endswith("/report") and message["kind"] == "exited":
            self.exits.append(message)
            if message["results"]:
                return 422, {"code": "invalid_field", "status": 422, "detail": "no such blob"}
            self.done.set()
        return 200, {"received": 0, "durable": 0}

    def orders(self, version: int) -> dict[str, Any]:
        if version > 0:
            self.done.wait(0.2)
        order = {
            "epoch": 4294967297, "phase": "run", "job_id": "jjjjjjjjjjjjjjjj", "attempt": 1, "node_rank": 0, "nodes": 1, "first_rank": 0,
            "local_ranks": 1, "world": 1, "devices": [0], "gang": False, "grace_ms": 1000, "lease_ms": 0, "spec": self.spec,
        }  # fmt: skip
        live = [] if self.done.is_set() else [order["epoch"]]
        return {"version": 1, "live": live, "orders": [order] if version == 0 else [], "shutdown": False}


@pytest.fixture
def refused(tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """Run one function on an agent whose controller refuses its results; what the agent said."""
    agents: list[subprocess.Popen[bytes]] = []

    def run(function: Callable[..., Any]) -> Stage:
        inline = base64.b64encode(payload(function)).decode()
        stage = Stage({"gpus": 1, "function": {"inline": inline}, "python": PYTHON})
        threading.Thread(target=stage.serve_forever, daemon=True).start()
        (tmp_path / "token").write_text("secret\n")
        url = f"http://127.0.0.1:{stage.server_address[1]}"
        with (tmp_path / "agent.log").open("wb") as log:
            agents.append(
                subprocess.Popen(
                    [
                        str(GPUAGENT), "--controller", url, "--token-file", str(tmp_path / "token"), "--name", "alpha",
                        "--state", str(tmp_path / "state"), "--run", str(tmp_path / "run"), "--devices", "none", "--cpu-slots", "1",
                        "--run-as", "agent",
                    ],
                    stderr=log,
                )
            )  # fmt: skip
        eventually(stage.done.is_set, "an exit report that the controller takes: " + str(tmp_path / "agent.log"))
        eventually(lambda: not list((tmp_path / "state" / "attempts").iterdir()), "the attempt to be forgotten")
        stage.shutdown()
        stage.server_close()
        return stage

    yield run
    for agent in agents:
        agent.terminate()
        assert agent.wait(60) == 0, (tmp_path / "agent.log").read_text()


def test_a_blob_that_is_refused_is_not_put_again(refused: Callable[..., Stage]) -> None:
    stage = refused(lambda: bytes(MIB))
    assert stage.puts == 1
    assert [message["cause"] for message in stage.exits] == ["RESULT_MISSING"]
    assert stage.exits[0]["text"] == "the result of rank 0 cannot be stored: another content"


def test_an_exit_whose_results_are_refused_is_told_without_them(refused: Callable[..., Stage]) -> None:
    stage = refused(lambda: 7)
    assert [len(message["results"]) for message in stage.exits] == [1, 0]
    assert stage.exits[1]["text"] == "the controller does not take the results: no such blob"
