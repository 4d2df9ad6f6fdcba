# SPDX-License-Identifier: Apache-2.0
"""Searches of the tracking store: one user's delay nobody else's calls, and take turns with those of others."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from harness import Api, Cluster, Problem, eventually
from large_tracking import SEARCH, fill, slow_search
from slowness import patient

API = "/api/2.0/mlflow"
PATIENCE = patient(60)
#: A flood is as many searches as a user may have: one that runs, and those that wait.
MAY_WAIT = 16


def large(make_cluster: Callable[..., Cluster], letters: int = 1000) -> Cluster:
    """Runs of which a search for 500 letters takes some 0.2 s, and a search for 4,000 of 8,000 more than its time."""
    cluster = make_cluster(controller=["--log-level", "debug"])
    fill(cluster.folder / "controller" / "mlflow.db", 400, letters)
    return cluster


class Flood:
    """Searches of one user, all at once; `done` has their answers in the order in which they came."""

    def __init__(self, api: Api, searches: int, letters: int):
        self.done: list[str] = []
        self.first = threading.Event()
        self.pool = ThreadPoolExecutor(searches)
        self.futures = [self.pool.submit(self.search, api, letters, f"flood {number}") for number in range(searches)]

    def search(self, api: Api, letters: int, name: str) -> None:
        try:
            assert api.post(SEARCH, slow_search(letters)) == {"runs": []}
            self.done.append(name)
        finally:
            self.first.set()

    def end(self) -> None:
        """Wait for all of them."""
        for future in self.futures:
            future.result(PATIENCE)
        self.pool.shutdown()


def test_calls_of_others_pass_a_flood_of_searches(make_cluster: Callable[..., Cluster]) -> None:
    cluster = large(make_cluster)
    ada, bob = cluster.user("ada"), cluster.user("bob")
    run = bob.post(f"{API}/runs/create", {"experiment_id": "0"})["run"]["info"]["run_id"]
    flood = Flood(ada, MAY_WAIT, 500)
    assert flood.first.wait(PATIENCE)
    for step in range(10):
        bob.post(f"{API}/runs/log-metric", {"run_id": run, "key": "loss", "value": 1, "timestamp": 1, "step": step})
        assert bob.get(f"{API}/runs/get?run_id={run}")["run"]["data"]["metrics"][0]["step"] == step
    flood.done.append("metrics of bob")
    found = bob.post(SEARCH, {"experiment_ids": ["0"], "filter": f"attributes.run_id = '{run}'"})["runs"]
    assert found[0]["data"]["metrics"][0]["step"] == 9  # a search sees the calls before it
    flood.done.append("search of bob")
    flood.end()
    assert len(flood.done) == MAY_WAIT + 2
    assert flood.done.index("metrics of bob") < MAY_WAIT / 2, flood.done
    assert flood.done.index("search of bob") < MAY_WAIT - 2, flood.done


def test_a_user_has_no_more_searches_than_may_wait(make_cluster: Callable[..., Cluster]) -> None:
    cluster = large(make_cluster)
    ada, bob = cluster.user("ada"), cluster.user("bob")

    def ask(_: int) -> tuple[int, str]:
        try:
            ada.post(SEARCH, slow_search(500))
        except Problem as problem:
            return problem.status, json.dumps(problem.body)
        return 200, ""

    with ThreadPoolExecutor(3 * MAY_WAIT) as pool:
        answers = list(pool.map(ask, range(3 * MAY_WAIT)))
    refused = [text for status, text in answers if status == 429]
    assert refused and all("REQUEST_LIMIT_EXCEEDED" in text and "at most 16 wait of one user" in text for text in refused), answers
    assert {status for status, _ in answers} <= {200, 429}, answers
    assert bob.post(SEARCH, {"experiment_ids": ["0"], "max_results": 1})["runs"]


def test_searches_whose_client_has_left_are_ended(make_cluster: Callable[..., Cluster]) -> None:
    cluster = large(make_cluster, letters=8000)
    ada, bob = cluster.user("ada"), cluster.user("bob")
    body = json.dumps(slow_search(4000)).encode()
    sent = {"Authorization": f"Bearer {ada.token}", "Content-Type": "application/json"}
    connections = [ada.connection(PATIENCE) for _ in range(4)]
    for connection in connections:
        connection.request("POST", SEARCH, body, sent)
        eventually(lambda: "search begun owner=ada" in cluster.controller.said(), "the first search to begin", PATIENCE)
    for connection in connections:
        connection.close()
    assert bob.post(SEARCH, {"experiment_ids": ["0"], "max_results": 1})["runs"]

    def ended() -> list[str]:
        return [line for line in cluster.controller.said().splitlines() if f"path={SEARCH}" in line and "owner=ada" in line]

    eventually(lambda: len(ended()) == len(connections), "the searches to end", PATIENCE)
    begun = [line for line in ended() if "status=503" not in line and "status=0" not in line]  # 0: left before its turn
    assert len(begun) == 1 and "status=400" in begun[0], ended()
    assert int(begun[0].rsplit("ms=", 1)[1]) < 5000, begun  # a search that nobody interrupts ends then
    assert cluster.controller.said().count("search begun owner=ada") == 1
