# SPDX-License-Identifier: Apache-2.0
"""Records what the programs of an earlier revision say and keep, for tests in which today's programs take it.

    python tests/faults/record.py PROGRAMS NAME

PROGRAMS is a folder that tests/faults/previous has printed. Into tests/faults/recorded/NAME go one message of each kind between agents and
controller, the launch file and the exit record of an attempt, and the database of a controller that was killed with jobs in every state.
What belongs to this machine is replaced by words that belong to none. Run it once for each schema version, when the next one is made; what
is recorded never changes.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import re
import signal
import sqlite3
import sys
import tempfile
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "e2e"))

from harness import PYTHON, TERMINAL, Cluster, end_shims, eventually  # noqa: E402
from leftovers import processes_of  # noqa: E402

RECORDED = Path(__file__).parent / "recorded"
BOOT_ID = "00000000-0000-4000-8000-000000000000"
HOST_ID = "0" * 64

#: Its first attempt goes on until somebody ends it, its second is over at once.
LONG = ["sh", "-c", 'echo attempt "$GPUCTL_ATTEMPT"; test "$GPUCTL_ATTEMPT" != 1 || sleep 1000']


class Recorder:
    """Passes requests on to a controller and keeps the first message of each kind."""

    def __init__(self, controller: str):
        self.controller = urllib.parse.urlsplit(controller).netloc
        self.messages: dict[str, Any] = {}
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.do_POST()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                try:
                    status, reply = recorder.pass_on(self.command, self.path, dict(self.headers), body)
                except (OSError, http.client.HTTPException):  # the controller is gone
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def pass_on(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.controller, timeout=60)
        try:
            connection.request(method, path, body, {name: headers[name] for name in ("Authorization", "Content-Type") if name in headers})
            answer = connection.getresponse()
            status, reply = answer.status, answer.read()
        finally:
            connection.close()
        if status == 200 and method == "POST":
            self.keep(path.partition("?")[0].rpartition("/")[2], body, reply)
        return status, reply

    def keep(self, what: str, body: bytes, reply: bytes) -> None:
        answer = json.loads(reply)
        if what == "logs":
            self.messages.setdefault("log_reply", answer)
            return
        message = json.loads(body)
        kind = message.get("kind") or message.get("state")
        self.messages.setdefault(f"{what}_message" + (f".{kind}" if kind else ""), message)
        if what == "register":
            self.messages.setdefault("register_reply", answer)
        for order in answer.get("orders", []) if what == "poll" else []:
            alone = {**answer, "orders": [order], "live": [order["epoch"]], "stagings": []}
            self.messages.setdefault(f"poll_reply.{order['phase']}", alone)
        if what == "poll" and answer.get("stagings"):
            self.messages.setdefault("poll_reply.staging", answer)


class RecordedCluster(Cluster):
    """Its agents speak with the controller through a recorder."""

    def start_controller(self) -> None:
        super().start_controller()
        self.recorder = Recorder(self.url)
        self.url = self.recorder.url


def run_jobs(cluster: RecordedCluster) -> dict[str, str]:
    """One of each kind; returns the ids of those that are to be in the database, by what became of them."""
    api = cluster.api
    jobs = {"succeeded": api.submit(["sh", "-c", "echo done; echo warned >&2"], name="done", labels={"team": "a"})}
    jobs["gang"] = api.submit(["sh", "-c", "echo $RANK"], gpus=3, name="gang")
    blob = b"staged\n" * 20000
    status, _, _ = api.raw("PUT", f"/v1/blobs/{hashlib.sha256(blob).hexdigest()}", blob)
    assert status == 201, status
    files = [{"path": "large", "blob": hashlib.sha256(blob).hexdigest()}]
    jobs["staged"] = api.submit(["sh", "-c", "wc -c <large"], files=files, name="staged")
    jobs["failed"] = api.submit(["sh", "-c", 'echo "{\\"message\\": \\"no luck\\"}" > $TORCHELASTIC_ERROR_FILE; exit 3'], name="unlucky")
    for job in jobs.values():
        api.wait(job)
    jobs["canceled"] = api.submit(LONG, name="canceled")
    cluster.wait_state(jobs["canceled"], "RUNNING")
    api.post(f"/v1/jobs/{jobs['canceled']}/cancel")
    api.wait(jobs["canceled"])
    return jobs


def leave_jobs(cluster: RecordedCluster) -> dict[str, str]:
    """Those that live when the controller is killed: two that run, of them one on two nodes, and two that wait."""
    api = cluster.api
    jobs = {"running": api.submit(LONG, gpus=3, name="running"), "alone": api.submit(LONG, name="alone")}
    for job in jobs.values():
        cluster.wait_state(job, "RUNNING")
    jobs["waiting"] = api.submit(["sh", "-c", "echo came"], gpus=3, name="waiting", priority=5, time_limit_s=600)
    jobs["behind"] = api.submit(["sh", "-c", "echo came"], name="behind")
    return jobs


def neutral(text: str, folder: Path) -> str:
    """Without what belongs to this machine and this run."""
    own_boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    text = text.replace(own_boot, BOOT_ID).replace(str(folder), "/var/lib/gpuctl").replace(f"{Path(PYTHON).parent}:", "")
    text = re.sub(r'("host_id": ")[0-9a-f]{64}', rf"\g<1>{HOST_ID}", text)
    return re.sub(r"gcr_[0-9a-f]+_[0-9a-f]+", "token", text)


def dump(database: Path) -> str:
    """The database as SQL, with the numbers that say what it is, and without tokens."""
    with sqlite3.connect(database) as db:
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        db.execute("DELETE FROM tokens")
        db.execute("DELETE FROM replies")
        db.execute("UPDATE nodes SET boot_id = ?, host_id = ?", (BOOT_ID, HOST_ID))
        lines = list(db.iterdump())
        db.rollback()
    return "\n".join([f"PRAGMA application_id = {application};", f"PRAGMA user_version = {version};", *lines, ""])


def main() -> None:
    programs, target = Path(sys.argv[1]), RECORDED / sys.argv[2]
    with tempfile.TemporaryDirectory(prefix="gpuctl-record-") as name:
        folder = Path(name)
        cluster = RecordedCluster(folder, [2, 2], programs=programs, agent_environment={"PATH": "/usr/local/bin:/usr/bin:/bin"})
        try:
            cluster.start()
            ended = run_jobs(cluster)
            lives = leave_jobs(cluster)
            (launch, *_) = sorted((folder / "node0.run").glob("*/launch"))
            launch_text = neutral(launch.read_bytes().decode(), folder)
            eventually(lambda: "beat_message" in cluster.recorder.messages, "a beat")
            states = {job["id"]: job["state"] for job in cluster.api.get("/v1/jobs?limit=100")["jobs"]}
            assert all(states[job] in TERMINAL for job in ended.values()), states
            cluster.controller.kill()
            target.mkdir(parents=True, exist_ok=True)
            (target / "database.sql").write_text(neutral(dump(folder / "controller" / "gpuctl.db"), folder))
            (target / "launch.txt").write_text(launch_text.replace("\0", "\n"))
            for pid in processes_of(lives["alone"]):
                os.kill(pid, signal.SIGTERM)
            newest = max(folder.glob("*/attempts/*"), key=lambda path: int(path.name))
            eventually((newest / "exit").exists, "the exit record")
            (target / "exit").write_text((newest / "exit").read_text())
            for what, message in sorted(cluster.recorder.messages.items()):
                text = neutral(json.dumps(message, indent=1), folder)
                (target / f"{what}.json").write_text(text + "\n")
            print(f"{target}: {', '.join(sorted(cluster.recorder.messages))}; live: {lives}")
        finally:
            for program in (*cluster.agents, cluster.controller):
                if program.alive():
                    program.kill()
            end_shims(folder)  # and the ranks with them


if __name__ == "__main__":
    main()
