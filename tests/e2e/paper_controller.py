# SPDX-License-Identifier: Apache-2.0
"""A controller of paper, and a real agent before it."""

from __future__ import annotations

import hashlib
import json
import signal
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from harness import GPUAGENT, PYTHON, Program, end_shims, eventually

PARK_S = 20.0


class Paper:
    """A controller that does what a test says: the orders, the stagings and the blobs that it gives, and the reports that it got."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.version = 1
        self.live: list[int] = []
        self.orders: list[dict[str, Any]] = []
        self.wanted: list[dict[str, Any]] = []
        self.blobs: dict[str, bytes] = {}
        self.reports: list[dict[str, Any]] = []
        self.staged: list[dict[str, Any]] = []
        self.registered = 0
        self.forgotten = False  # the next report of a staging is answered: I do not know you
        paper = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                path = urllib.parse.urlsplit(self.path).path
                status, reply = paper.answer(path, body)
                self.send(status, json.dumps(reply).encode())

            def do_PUT(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                self.send(201, b"{}")

            def do_GET(self) -> None:
                found = paper.blobs.get(self.path.rpartition("/")[2].partition("?")[0])
                self.send(200 if found is not None else 404, found if found is not None else b'{"code":"not_found","detail":"no blob"}')

            def send(self, status: int, data: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        with self.changed:
            if path == "/v1/agent/register":
                self.registered += 1
                return 200, {"incarnation": 1, "beat_ms": 1000, "park_ms": int(PARK_S * 1000)}
            if path == "/v1/agent/poll":
                seen = json.loads(body)["version"]
                self.changed.wait_for(lambda: self.version != seen, PARK_S)
                return 200, {"version": self.version, "live": self.live, "orders": self.orders, "stagings": self.wanted}
            if path == "/v1/agent/staging":
                if self.forgotten:
                    self.forgotten = False
                    return 404, {"code": "not_found", "status": 404, "detail": "who are you"}
                self.staged.append(json.loads(body))
            if path == "/v1/agent/report":
                self.reports.append(json.loads(body))
            if path == "/v1/agent/logs":
                return 200, {"received": 0, "durable": 0}
            return 200, {}

    def put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return digest

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def change(self, **to: Any) -> None:
        with self.changed:
            for name, value in to.items():
                setattr(self, name, value)
            self.version += 1
            self.changed.notify_all()

    def want(self, key: str, *, requirements: str | None = None, blobs: tuple[str, ...] = (), **more: Any) -> None:
        """One more staging."""
        row: dict[str, Any] = {"key": hashlib.sha256(key.encode()).hexdigest(), "blobs": list(blobs), **more}
        if requirements is not None:
            row["requirements"] = self.put(requirements.encode())
            row["blobs"].append(row["requirements"])
        self.change(wanted=[*self.wanted, row])

    def ends(self, key: str) -> list[dict[str, Any]]:
        digest = hashlib.sha256(key.encode()).hexdigest()
        return [row for row in self.staged if row["key"] == digest and row["state"] != "building"]

    def end_of(self, key: str) -> dict[str, Any]:
        """How a staging ended."""
        return eventually(lambda: self.ends(key), f"the end of {key}: {self.staged}")[0]

    def run(self, epoch: int, spec: dict[str, Any], **more: Any) -> dict[str, Any]:
        """The last report of an attempt of one rank, whose order has more members, too."""
        order = {
            "epoch": epoch, "phase": "run", "job_id": "j" * 16, "attempt": 1, "node_rank": 0, "nodes": 1, "first_rank": 0, "local_ranks": 1,
            "world": 1, "devices": [0], "spec": {"gpus": 1, "gpu_type": "cpu", **spec}, **more,
        }  # fmt: skip
        self.change(live=[epoch], orders=[order])
        done = eventually(
            lambda: [row for row in self.reports if row["epoch"] == epoch and row["kind"] in ("exited", "declined")], f"the end of {epoch}"
        )
        return done[0]


class Node:
    """An agent of that controller."""

    def __init__(self, folder: Path, paper: Paper, *arguments: str) -> None:
        self.folder = folder
        self.paper = paper
        self.wheels = folder / "wheels"
        self.wheels.mkdir(exist_ok=True)
        (folder / "token").write_text("t\n")
        self.environments = folder / "state" / "environments"
        command = [
            str(GPUAGENT), "--controller", paper.url, "--token-file", str(folder / "token"), "--name", "node0", "--state",
            str(folder / "state"), "--run", str(folder / "run"), "--devices", "none", "--cpu-slots", "1", "--python", PYTHON,
            "--run-as", "agent", *arguments,
        ]  # fmt: skip
        variables = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheels), "SECRET_OF_THE_AGENT": "hunter2"}
        self.agent = Program(command, folder / "agent.log", variables)
        self.agent.start()

    def stop(self) -> None:
        if self.agent.alive():
            assert self.agent.kill(signal.SIGTERM) == 0, self.agent.said()
        end_shims(self.folder)

    def builders(self) -> list[int]:
        """Processes that build for this node."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if str(self.environments) in path.read_text():
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found
