# SPDX-License-Identifier: Apache-2.0
"""Nodes that agree on the run of their attempt at an MLflow server of the user's, in many orders of their requests.

The server is a model of one: requests take effect one after the other, and which node's comes next is drawn by a seed.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parents[3] / "agent" / "python" / "gpuctl_mlflow.py"


class Schedule:
    """Lets one of several threads go on at a time, as a seed says."""

    def __init__(self, nodes: int, seed: int) -> None:
        self.random = random.Random(seed)
        self.changed = threading.Condition()
        self.waiting: set[int] = set()
        self.live = set(range(nodes))
        self.next: int | None = None

    def turn(self, node: int) -> None:
        """Called by a node before each request. Returns when it is its turn."""
        with self.changed:
            self.waiting.add(node)
            self._choose()
            self.changed.wait_for(lambda: self.next == node)
            self.next = None
            self.waiting.discard(node)

    def leave(self, node: int) -> None:
        with self.changed:
            self.live.discard(node)
            self._choose()

    def _choose(self) -> None:
        if self.next is None and self.live and self.waiting == self.live:
            self.next = self.random.choice(sorted(self.waiting))
            self.changed.notify_all()


class Server:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.runs: dict[str, dict[str, str]] = {}
        self.deleted: set[str] = set()

    def client(self, node: int) -> Any:
        def search_runs(experiments: list[str], text: str, max_results: int = 1000) -> list[Any]:
            self.schedule.turn(node)
            name, value = text.removeprefix("tags.`").removesuffix("'").split("` = '")
            found = [run for run, tags in self.runs.items() if tags.get(name) == value and run not in self.deleted]
            self.random_order(found)
            return [self.view(run) for run in found[:max_results]]

        def set_tag(run: str, name: str, value: str) -> None:
            self.schedule.turn(node)
            self.runs[run][name] = value

        def delete_run(run: str) -> None:
            self.schedule.turn(node)
            self.deleted.add(run)

        return types.SimpleNamespace(search_runs=search_runs, set_tag=set_tag, delete_run=delete_run)

    def random_order(self, runs: list[str]) -> None:
        self.schedule.random.shuffle(runs)

    def start_run(self, node: int) -> Callable[..., Any]:
        def start_run(run_id: str | None = None, tags: dict[str, str] | None = None) -> Any:
            self.schedule.turn(node)
            if run_id is None:
                run_id = f"run of node {node}"
                self.runs[run_id] = dict(tags or {})
            assert run_id not in self.deleted
            return self.view(run_id)

        return start_run

    def view(self, run: str) -> Any:
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id=run), data=types.SimpleNamespace(tags=dict(self.runs[run])))


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Any:
    """gpuctl_mlflow, whose nodes wait for no run but that of an election, and pause by the schedule alone."""
    spec = importlib.util.spec_from_file_location("gpuctl_mlflow_alone", SOURCE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "PATIENCE_S", 0.0)
    monkeypatch.setattr(module, "PAUSE_S", 0.0)
    monkeypatch.setattr(module, "ELECTION_S", 600.0)
    monkeypatch.setenv("GPUCTL_JOB_ID", "job")
    monkeypatch.setenv("GPUCTL_ATTEMPT", "1")
    return module


def agree(program: Any, monkeypatch: pytest.MonkeyPatch, nodes: int, seed: int) -> tuple[Server, list[str]]:
    """The server, and the run that each node takes, when all begin at the same time."""
    schedule = Schedule(nodes, seed)
    server = Server(schedule)
    local = threading.local()
    mlflow = types.ModuleType("mlflow")
    mlflow.exceptions = types.SimpleNamespace(MlflowException=OSError)  # type: ignore[attr-defined]
    mlflow.MlflowClient = lambda: server.client(local.node)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    taken = [""] * nodes
    fluent = types.SimpleNamespace(end_run=lambda: None)

    def node(number: int) -> None:
        local.node = number
        try:
            taken[number] = program.common(fluent, server.start_run(number), {}, "0", number).info.run_id
        finally:
            schedule.leave(number)

    threads = [threading.Thread(target=node, args=(number,)) for number in range(nodes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return server, taken


@pytest.mark.parametrize("nodes", [2, 3, 5])
def test_in_whatever_order_nodes_ask_they_take_one_run_and_no_other_is_left(
    program: Any, monkeypatch: pytest.MonkeyPatch, nodes: int
) -> None:
    winners = set()
    for seed in range(200):
        server, taken = agree(program, monkeypatch, nodes, seed)
        left = set(server.runs) - server.deleted
        assert len(left) == 1 and set(taken) == left, (seed, taken, server.runs, server.deleted)
        (run,) = left
        assert server.runs[run][program.TAG] == "job/1"
        assert [name for name, tags in server.runs.items() if program.TAG in tags] == [run], seed
        winners.add(run)
    assert len(winners) > 1, "the orders did not differ"
