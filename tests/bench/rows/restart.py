# SPDX-License-Identifier: Apache-2.0
"""What a restart costs: a controller with 10,000 live jobs is killed, and the clock runs until it serves again.

2,000 of the jobs run on 250 nodes. Kill -9, then from the start of the process to the first answered GET and to the first beat that is
taken. The rows are real: paper nodes have registered, jobs were submitted over HTTP, those that fit run and have said so. The floor, in
turns with it (tests/bench/programs/read.c): a process that opens a copy of the same database, with what its log has, and reads the rows of
jobs, attempts, members and nodes by plain SQLite. Medians of five.

Gate: 10 times the floor for the slower of the two (aim 5).
"""

from __future__ import annotations

import hashlib
import http.client
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from common import BUILD, Goal, cluster, medians, prepare, said, worst
from harness import Cluster, eventually

GOALS = (
    Goal("get_ratio", "start of the process to the first answered GET, of the floor", "x", 10, 5),
    Goal("beat_ratio", "start of the process to the first beat that is taken, of the floor", "x", 10, 5),
)
ROUNDS = 5
NODES = 250
JOBS = 10_000
SLOTS = 8
PATIENCE_S = 30.0


class Line:
    """One connection that is kept alive."""

    def __init__(self, port: int, token: str):
        self.token = token
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)

    def call(self, method: str, path: str, document: Any = None) -> Any:
        body = None if document is None else json.dumps(document)
        self.connection.request(method, path, body, {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        reply = self.connection.getresponse()
        text = reply.read()
        assert reply.status < 300, (method, path, reply.status, text)
        return json.loads(text)


def who(number: int) -> dict[str, Any]:
    return {"node": f"paper{number}", "boot_id": f"boot{number}"}


def register(line: Line, number: int) -> None:
    devices = [{"index": i, "uuid": f"slot-{number}-{i}", "type": "cpu", "memory_bytes": 0} for i in range(SLOTS)]
    document = {
        "name": f"paper{number}", "boot_id": f"boot{number}", "host_id": hashlib.sha256(b"%d" % number).hexdigest(), "version": "0.1.0",
        "address": "127.0.0.1", "slots": True, "isolation": "none", "devices": devices, "attempts": [],
    }  # fmt: skip
    line.call("POST", "/v1/agent/register", document)


def run_all(line: Line, number: int) -> int:
    """The node starts what it is told to; how many that were."""
    orders = line.call("POST", "/v1/agent/poll", {**who(number), "version": 0})["orders"]
    for order in orders:
        line.call("POST", "/v1/agent/report", {**who(number), "epoch": order["epoch"], "kind": "running", "at_ms": 1})
    return len(orders)


def fill(cluster: Cluster, node_token: str, nodes: int, jobs: int) -> int:
    """So many live jobs on so many nodes; how many of them run."""
    agents = Line(cluster.port, node_token)
    for number in range(nodes):
        register(agents, number)
    people = Line(cluster.port, cluster.admin_token)
    spec = {"gpus": 1, "command": ["python", "train.py", "--epochs", "10"], "env": {"WANDB_MODE": "offline"}, "labels": {"team": "vision"}}
    for number in range(jobs):
        people.call("POST", "/v1/jobs", {**spec, "name": f"train-{number}"})
    agents = Line(cluster.port, node_token)
    return sum(run_all(agents, number) for number in range(nodes))


def answered(port: int, token: str, method: str, path: str, document: Any, begin: float) -> float:
    """Milliseconds from the beginning until the first good answer."""
    while True:
        try:
            Line(port, token).call(method, path, document)
            return (time.perf_counter() - begin) * 1000
        except (ConnectionRefusedError, ConnectionResetError):
            assert time.perf_counter() - begin < PATIENCE_S
            time.sleep(0.0005)


def floor_ms(state: Path) -> float:
    """A process that only reads what is read at a start, in a copy, which it may change."""
    with tempfile.TemporaryDirectory(dir=state) as copy:
        for name in ("gpuctl.db", "gpuctl.db-wal"):
            shutil.copy(state / name, copy)
        begin = time.perf_counter()
        assert int(said([BUILD / "tests" / "bench" / "bench-read", f"{copy}/gpuctl.db"])) > JOBS
        return (time.perf_counter() - begin) * 1000


def restart(cluster: Cluster, node_token: str, number: int) -> dict[str, float]:
    """Kill it, take the floor, start it, and ask at once and again until it answers."""
    cluster.controller.kill()
    floor = floor_ms(cluster.folder / "controller")
    begin = time.perf_counter()
    cluster.controller.start()
    get = answered(cluster.port, cluster.admin_token, "GET", "/v1/jobs?limit=1", None, begin)
    beat = answered(cluster.port, node_token, "POST", "/v1/agent/beat", {**who(0), "seq": number + 1, "attempts": []}, begin)
    return {"get_ratio": get / floor, "beat_ratio": beat / floor, "get_ms": get, "beat_ms": beat, "floor_ms": floor}


def count_running(ours: Cluster) -> int:
    """A page of a filtered list may have none of its jobs, and the next one has."""
    count, cursor = 0, ""
    while True:
        page = ours.api.get(f"/v1/jobs?state=RUNNING&limit=200{cursor}")
        count += len(page["jobs"])
        if page["next"] is None:
            return count
        cursor = f"&cursor={page['next']}"


def measure(ours: Cluster) -> dict[str, object]:
    """The row's figures on a cluster without agents."""
    node_token = ours.api.post("/v1/tokens", {"role": "node", "owner": "nodes"})["secret"]
    running = fill(ours, node_token, NODES, JOBS)
    eventually(lambda: count_running(ours) == running, "the jobs to run")
    ours.controller.kill()
    ours.start_controller()  # now its command line names the port
    size = said(["du", "-sk", ours.folder / "controller"]).split()[0]
    runs = []
    for number in range(ROUNDS):
        runs.append(restart(ours, node_token, number))
        print(json.dumps({name: round(ms, 1) for name, ms in runs[-1].items()}), flush=True)
    assert count_running(ours) == running
    figures = medians(runs, 2)
    return {"ratio": worst(GOALS, figures), **figures, "live_jobs": JOBS, "running": running, "state_kib": int(size)}


def run() -> dict[str, object]:
    prepare(targets=("bench-read",))
    with cluster([], controller=["--beat", "60s"]) as ours:  # the nodes of paper beat once
        figures = measure(ours)
        ours.controller.kill()  # nodes of paper end no jobs
        return figures
