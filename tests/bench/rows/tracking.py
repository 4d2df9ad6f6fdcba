# SPDX-License-Identifier: Apache-2.0
"""How long `log_metric` of one user takes while another user floods the tracking store with searches.

A database of 20,000 runs with a note of 200 letters each. Ada keeps eight searches for a text that no note has under way, and Bob logs one
metric after the other on one connection: 2,000 without the searches, and as many as fit into 10 s with them. The same client, so
its part is in both figures, as the cores that all of it shares are.

Gate: the 99th percentile is 10 ms longer with the searches than without.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from common import Goal, cluster, prepare
from harness import Api, Cluster
from large_tracking import SEARCH, fill, slow_search

GOALS = (Goal("delay_ms", "what searches of others add to log_metric, 99th percentile", "ms", 10, 2),)
RUNS = 20_000
LETTERS = 200
SEARCHES = 8
CALLS = 2_000
FLOOD_S = 10.0
API = "/api/2.0/mlflow"


class Caller:
    """One user's calls on one connection."""

    def __init__(self, api: Api):
        self.connection = http.client.HTTPConnection(api.address, timeout=120)
        self.headers = {"Authorization": f"Bearer {api.token}", "Content-Type": "application/json"}

    def post(self, path: str, document: object) -> int:
        self.connection.request("POST", path, json.dumps(document), self.headers)
        reply = self.connection.getresponse()
        reply.read()
        return reply.status


def times_ms(caller: Caller, run: str, seconds: float, most: int) -> list[float]:
    """How long each call took, sorted."""
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while len(taken) < most and time.perf_counter() < end:
        begin = time.perf_counter()
        body = {"run_id": run, "key": "loss", "value": 1, "timestamp": 1, "step": len(taken)}
        assert caller.post(f"{API}/runs/log-metric", body) == 200
        taken.append((time.perf_counter() - begin) * 1000)
    return sorted(taken)


@contextmanager
def flood(api: Api, done: list[int]) -> Iterator[None]:
    """Searches one after the other on each connection; `done` gets their statuses."""
    over = threading.Event()

    def search() -> None:
        caller = Caller(api)
        while not over.is_set():
            done.append(caller.post(SEARCH, slow_search(LETTERS // 2)))

    threads = [threading.Thread(target=search) for _ in range(SEARCHES)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def measure(made: Cluster) -> dict[str, object]:
    fill(made.folder / "controller" / "mlflow.db", RUNS, LETTERS)
    ada, bob = made.user("ada"), made.user("bob")
    run = bob.post(f"{API}/runs/create", {"experiment_id": "0"})["run"]["info"]["run_id"]
    alone = times_ms(Caller(bob), run, 60, CALLS)
    done: list[int] = []
    with flood(ada, done):
        beside = times_ms(Caller(bob), run, FLOOD_S, CALLS * 100)
    p99 = {name: found[int(0.99 * len(found))] for name, found in (("alone", alone), ("beside_searches", beside))}
    return {
        "delay_ms": round(max(p99["beside_searches"] - p99["alone"], 0), 2),
        "p99_ms": {name: round(value, 2) for name, value in p99.items()},
        "p50_ms": {"alone": round(alone[len(alone) // 2], 2), "beside_searches": round(beside[len(beside) // 2], 2)},
        "max_ms": {"alone": round(alone[-1], 2), "beside_searches": round(beside[-1], 2)},
        "calls": len(beside),
        "searches": len(done),
        "searches_failed": sum(status != 200 for status in done),
    }


def run() -> dict[str, object]:
    prepare()
    with cluster([]) as made:
        figures = measure(made)
    return {"ratio": round(GOALS[0].gate / max(float(str(figures["delay_ms"])), 0.01), 2), **figures}
