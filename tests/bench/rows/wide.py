# SPDX-License-Identifier: Apache-2.0
"""What a person and a node notice of a wide cluster: 10,000 nodes of 8 GPUs, all in use, and 100,000 waiting jobs of 5,000 kinds.

Simulated agents (tests/bench/programs/agents.c), each with a parked poll of its own and beats every 5 s; each runs one job of 8 GPUs, as
long as it is wanted. The waiting jobs ask for 1 to 8 GPUs, and for one of 5,000 lists of GPU types. Meanwhile 200 clients follow the output
of a waiting job, as `gpuctl run` does, and 50 look at the list of jobs once a second. One after the other, over one connection: `submit`,
a job that waits; `get`, a job by its id; `explain`, why a job waits. `exit`: from a node's report that its job has ended until the
controller has taken it; `next`: until a node has the order for the next job. The same is done at once on a narrow cluster: 100 nodes and
1,000 waiting jobs of one kind, nobody beside. `growth`: the median on the wide one over that on the narrow one.

Gate: of all that but explain, twice the median of the narrow cluster, and 20 ms for the slowest hundredth; 2 s for an explanation.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import statistics
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from common import Goal, cluster, controller_pid, prepare, resident_kib, worst
from harness import Cluster
from simulated import Agents, agents, most_agents, node_token

SLOTS = 8
SAMPLES = 300
EXPLANATIONS = 50
FOLLOWERS = 200
LISTS = 50
BATCH = 1000
NAMES = {
    "submit": "a submission that waits",
    "get": "a job by its id",
    "exit": "an exit, until it is taken",
    "next": "an exit, until the next order is there",
}
WHY_EXPLAIN = (
    "questions are answered by a copy of the controller, and copies take at most 1 % of the writer's time; so the second question in a row "
    "waits for some half a second, where a copy of 200 MiB takes 5 ms. Questions that come together share a copy."
)
GOALS = (
    *(Goal(f"growth.{name}", f"{what}, wide over narrow", "x", 2, 1.2) for name, what in NAMES.items()),
    *(Goal(f"wide.{name}.p99_ms", f"{what}, p99", "ms", 20, 5) for name, what in NAMES.items()),
    Goal("wide.explain.p99_ms", "why a job waits, one question after the other, p99", "ms", 2000, 500, why=WHY_EXPLAIN),
)


@dataclass(frozen=True)
class Size:
    """Of a cluster."""

    nodes: int
    jobs: int
    kinds: int
    beside: bool  #: whether others look on


NARROW = Size(100, 1000, 1, False)
WIDE = Size(10_000, 100_000, 5000, True)


def spec(number: int, kinds: int) -> dict[str, Any]:
    return {"command": ["/bin/true"], "gpus": 1 + number % SLOTS, "gpu_type": f"cpu|k{number % kinds}", "name": "waits"}


class Person:
    """One connection that is kept alive."""

    def __init__(self, ours: Cluster):
        self.connection = http.client.HTTPConnection("127.0.0.1", ours.port, timeout=600)
        self.headers = {"Authorization": f"Bearer {ours.admin_token}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: object = None) -> Any:
        headers = {**self.headers, "Idempotency-Key": uuid.uuid4().hex} if method == "POST" else self.headers
        self.connection.request(method, path, None if body is None else json.dumps(body), headers)
        reply = self.connection.getresponse()
        answer = reply.read()
        assert reply.status < 300, (path, answer)
        return json.loads(answer)

    def submit(self, specs: list[dict[str, Any]]) -> list[str]:
        """The ids of the jobs."""
        found: list[str] = []
        for first in range(0, len(specs), BATCH):
            answers = self.ask("POST", "/v1/jobs:batch", specs[first : first + BATCH])["jobs"]
            found += [answer["job"]["id"] for answer in answers]
        return found


def summary(took_ms: list[float]) -> dict[str, float]:
    return {"p50_ms": round(statistics.median(took_ms), 2), "p99_ms": round(statistics.quantiles(took_ms, n=100)[98], 2)}


def timed(count: int, work: Callable[[int], object]) -> dict[str, float]:
    took = []
    for number in range(count):
        begin = time.perf_counter()
        work(number)
        took.append(1000 * (time.perf_counter() - begin))
    return summary(took)


def look(ours: Cluster, over: threading.Event) -> None:
    """The lists: each connection asks once a second."""
    people = [Person(ours) for _ in range(LISTS)]
    while not over.is_set():
        for person in people:
            person.ask("GET", "/v1/jobs?limit=50&state=QUEUED")
            over.wait(1 / LISTS)


@contextlib.contextmanager
def others(ours: Cluster, jobs: list[str]) -> Iterator[None]:
    over = threading.Event()
    thread = threading.Thread(target=look, args=(ours, over))
    with contextlib.ExitStack() as stack:
        for job in jobs[:FOLLOWERS]:
            line = stack.enter_context(socket.create_connection(("127.0.0.1", ours.port)))
            head = f"GET /v1/jobs/{job}/logs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {ours.admin_token}\r\n"
            line.sendall(f"{head}Accept: text/event-stream\r\n\r\n".encode())
            assert line.recv(4096).startswith(b"HTTP/1.1 200")
        thread.start()
        yield
        over.set()
        thread.join()


def exits(fleet: Agents) -> dict[str, dict[str, float]]:
    done = fleet.ask(f"exit {SAMPLES}")
    return {
        name: {"p50_ms": round(done[of][0] / 1000, 2), "p99_ms": round(done[of][1] / 1000, 2)}
        for name, of in (("exit", "taken_us"), ("next", "placed_us"))
    }


def figures(ours: Cluster, fleet: Agents, size: Size) -> dict[str, Any]:
    nodes = most_agents(size.nodes)
    person = Person(ours)
    fleet.ask("register")
    fleet.ask("park 1000")
    fleet.tell(f"hold {nodes}")
    person.submit([{"command": ["/bin/true"], "gpus": SLOTS, "gpu_type": "cpu", "name": "runs"}] * nodes)
    fleet.answer()
    jobs = person.submit([spec(number, size.kinds) for number in range(size.jobs)])
    with others(ours, jobs) if size.beside else contextlib.nullcontext():
        found: dict[str, Any] = {
            "submit": timed(SAMPLES, lambda number: person.ask("POST", "/v1/jobs", spec(7 * number, size.kinds))),
            "get": timed(SAMPLES, lambda number: person.ask("GET", f"/v1/jobs/{jobs[-1 - 3 * number]}")),
            "explain": timed(EXPLANATIONS, lambda number: person.ask("GET", f"/v1/jobs/{jobs[-1 - 7 * number]}/explanation")),
            **exits(fleet),
        }
    found |= {"nodes": nodes, "controller_mib": round(resident_kib(controller_pid(ours)) / 1024, 1)}
    print(json.dumps(found), flush=True)
    return found


def measure(size: Size) -> dict[str, Any]:
    with cluster([], controller=["--beat", "5s"]) as ours, agents(ours.port, node_token(ours), most_agents(size.nodes), SLOTS) as fleet:
        found = figures(ours, fleet, size)
        ours.controller.kill()  # to cancel all jobs would take minutes
        return found


def run() -> dict[str, object]:
    prepare(targets=("bench-agents",))
    narrow, wide = measure(NARROW), measure(WIDE)
    growth = {name: round(wide[name]["p50_ms"] / max(narrow[name]["p50_ms"], 0.01), 2) for name in (*NAMES, "explain")}
    found: dict[str, object] = {"growth": growth, "wide": wide, "narrow": narrow}
    return {"ratio": worst(GOALS, found), **found}
