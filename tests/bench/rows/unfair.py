# SPDX-License-Identifier: Apache-2.0
"""What a user notices of another one who floods the controller.

One user sends the same request from 64 connections as fast as the answers come, for each of the routes below in turn. Another user works
over one connection: submits a job, reads it, lists 20 jobs, cancels the job; 200 times. `p99_ms`: over all these requests, without a flood
and with it; `without_shares`: the same with `gpuctld --request-wait 0`. `ratio`: with the flood over without, the median of five. The
flood's process has only the time that nobody else wants, because floods come from other machines.

Gate: with any of the floods twice the p99 without it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import statistics
import subprocess
import time
import uuid
from collections.abc import Iterator
from typing import Any

from common import BUILD, Chart, Goal, cluster, hold_queue, prepare, worst
from harness import Api, Cluster

CONNECTIONS = 64
ROUNDS = 5
WORK = 200
JOBS = 2000
SPEC: dict[str, Any] = {"command": ["true"], "gpus": 1, "gpu_type": "cpu", "name": "bench"}

#: Name of a flood: method, path and body. JOB is a waiting job of the flood's own user.
FLOODS = {
    "show": ("GET", "/v1/jobs/JOB", ""),
    "list": ("GET", "/v1/jobs?limit=200", ""),
    "explain": ("GET", "/v1/jobs/JOB/explanation", ""),
    "plan": ("POST", "/v1/plan", json.dumps(SPEC)),
    "events": ("GET", "/v1/jobs/JOB/events", ""),
    "search": ("POST", "/api/2.0/mlflow/runs/search", '{"experiment_ids":["0"],"max_results":1000}'),
    "refused": ("GET", "/v1/nodes/none", ""),
    "submit": ("POST", "/v1/jobs", json.dumps(SPEC)),
}
WRITER_WHY = "a change of another user waits for the flood's 0.1 ms of work with the writer, or for one request that takes longer"
WHYS = {
    "explain": WRITER_WHY,
    "plan": WRITER_WHY,
    "submit": "a change waits for the commit that is under way, the flood's, and then for its own: that is twice a commit at best",
    "refused": "the flood's own process has one of the two cores here, and this kernel (PREEMPT_NONE) lets it finish what it does for a "
    "packet before the writer runs: half of the writer's wakes waited for that, 0.1 to 0.25 ms (perf sched)",
    "list": "a request of another user waits for a piece of a list, 60 us, both before it is read and before it is answered",
    "search": "two cores are all there are, and a search takes one: it lets others go first, ten times a millisecond, but where the kernel "
    "has put the writer behind it for a fair share, a change waits for the kernel's tick of 4 ms",
}
GOALS = tuple(Goal(f"{name}.ratio", f"p99 of others during a flood of {name}", "x", 2, why=WHYS.get(name, "")) for name in FLOODS)
CHARTS = (
    Chart(
        "p99 of another user's requests during a flood of lists",
        "ms",
        {"gpuctl, no flood": "list.p99_ms.alone", "gpuctl": "list.p99_ms.flooded", "gpuctl, no shares": "list.p99_ms.without_shares"},
    ),
)


class Worker:
    """The other user, over one connection."""

    def __init__(self, api: Api):
        self.connection = http.client.HTTPConnection(api.address, timeout=60)
        self.headers = {"Authorization": f"Bearer {api.token}", "Content-Type": "application/json"}
        self.took: list[float] = []

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Any:
        text = None if body is None else json.dumps(body)
        begin = time.perf_counter()
        self.connection.request(method, path, text, {**self.headers, **headers})
        reply = self.connection.getresponse()
        answer = reply.read()
        self.took.append((time.perf_counter() - begin) * 1000)
        assert reply.status < 300, answer
        return json.loads(answer)

    def p99_ms(self) -> float:
        """Do the work, and return the 99th percentile of its requests."""
        self.took = []
        for _ in range(WORK):
            job = self.ask("POST", "/v1/jobs", SPEC, **{"Idempotency-Key": uuid.uuid4().hex})["id"]
            self.ask("GET", f"/v1/jobs/{job}")
            self.ask("GET", "/v1/jobs?limit=20")
            self.ask("POST", f"/v1/jobs/{job}/cancel", {})
        return statistics.quantiles(self.took, n=100)[98]


@contextlib.contextmanager
def flood(ours: Cluster, token: str, method: str, path: str, body: str) -> Iterator[None]:
    words = [BUILD / "tests/bench/bench-load", ours.port, CONNECTIONS, "10m", "flood", token, method, path, *([body] if body else [])]
    process = subprocess.Popen(["chrt", "-i", "0", *map(str, words)], stdout=subprocess.DEVNULL)
    try:
        yield
        assert process.poll() is None, f"the flood has ended: {process.returncode}"
    finally:
        process.kill()
        process.wait()


def measure(shares: bool) -> dict[str, dict[str, float]]:
    """Each flood's p99 with and without it, in turns."""
    found: dict[str, dict[str, float]] = {}
    with cluster([1], controller=[] if shares else ["--request-wait", "0"]) as ours:
        hold_queue(ours)
        flooder, other = ours.user("flooder"), ours.user("other")
        jobs = [flooder.submit(SPEC["command"], gpu_type="cpu") for _ in range(JOBS)]
        for _ in range(1000):
            run = flooder.post("/api/2.0/mlflow/runs/create", {"experiment_id": "0"})
        assert run
        worker = Worker(other)
        for name, (method, path, body) in FLOODS.items():
            token = "gct_none" if name == "refused" else str(flooder.token)
            runs = []
            for _ in range(ROUNDS):
                alone = worker.p99_ms()
                with flood(ours, token, method, path.replace("JOB", jobs[-1]), body):
                    flooded = worker.p99_ms()
                runs.append((flooded / alone, alone, flooded))
            ratio, alone, flooded = sorted(runs)[len(runs) // 2]
            found[name] = {"ratio": ratio, "alone": alone, "flooded": flooded}
            print(f"{'shares' if shares else 'none'} {name}: {alone:.2f} ms, flooded {flooded:.2f} ms, {ratio:.2f} x", flush=True)
    return found


def run() -> dict[str, object]:
    prepare(targets=("bench-load",))
    with_shares, without = measure(True), measure(False)
    figures = {
        name: {
            "ratio": round(found["ratio"], 2),
            "p99_ms": {
                "alone": round(found["alone"], 2),
                "flooded": round(found["flooded"], 2),
                "without_shares": round(without[name]["flooded"], 2),
            },
        }
        for name, found in with_shares.items()
    }
    return {"ratio": worst(GOALS, figures), **figures}
