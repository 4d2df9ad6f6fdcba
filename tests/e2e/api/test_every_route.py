# SPDX-License-Identifier: Apache-2.0
"""Every route with every kind of job in every state, and with names that nobody expects: it answers as the contract says, and the
controller lives. All of it follows from proto/openapi.yaml, so a route that is added is tested as soon as the contract names it.
"""

from __future__ import annotations

import base64
import contextlib
import signal
import sys
from collections.abc import Iterator
from typing import Any

import cloudpickle
import jsonschema
import pytest

import contract as contracts
from contract import Asker, Contract, Operation
from harness import Cluster, Problem, eventually
from paper_node import PaperNode

CONTRACT = Contract(contracts.load())
OF_JOBS = [operation for operation in CONTRACT.operations if operation.path.startswith("/v1/jobs/{id}")]
#: It ends the controller.
ENDING = "/v1/shutdown"
OTHERS = [operation for operation in CONTRACT.operations if operation not in OF_JOBS and operation.path != ENDING]


def function(source: str) -> dict[str, Any]:
    """A function of no arguments as a job's payload."""
    notebook: dict[str, Any] = {"__name__": "__main__"}
    exec(f"def call():\n    {source}", notebook)
    pickled = cloudpickle.dumps((notebook["call"], (), {}))
    header = "gpuctl-function 1 python={}.{}\n".format(*sys.version_info[:2]).encode()
    return {"function": {"inline": base64.b64encode(header + pickled).decode()}}


def command(script: str) -> dict[str, Any]:
    return {"command": ["sh", "-c", script]}


#: What a job is, but for how it goes.
KINDS: dict[str, dict[str, Any]] = {
    "single": {"gpus": 1},
    "gang": {"gpus": 2, "placement": "spread"},
    "array": {"gpus": 1, "array": {"tasks": 3, "parallel": 2}},
    "sweep": {"gpus": 1, "sweep": {"lr": [0.1, 0.2]}},
    "function": {"gpus": 1},
}
#: How it goes: (what its ranks do, what else its spec says).
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "QUEUED": ("sleep", {"gpu_type": "busy"}),
    "HELD": ("sleep", {"hold": True}),
    "BLOCKED": ("sleep", {"after": [...]}),
    "STAGING": ("sleep", {"gpu_type": "paper", "environment": {"requirements": ["x"]}}),
    "PLACED": ("sleep", {"gpu_type": "paper"}),
    "LEAVING": ("sleep", {"gpu_type": "paper"}),
    "RUNNING": ("sleep", {}),
    "SUCCEEDED": ("end", {}),
    "FAILED": ("fail", {}),
    "CANCELED": ("sleep", {"hold": True}),
    "TIMED_OUT": ("sleep", {"time_limit_s": 0.2}),
}
COMMANDS = {"sleep": command("exec sleep 1000"), "end": command("exit 0"), "fail": command("exit 3")}
FUNCTIONS = {"sleep": function("import time; time.sleep(1000)"), "end": function("return 1"), "fail": function("1 / 0")}


class Stage:
    """Nodes of three kinds: those that work, of one that takes no work, and one of paper that is told and does nothing."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.api = cluster.api
        cluster.add_agent("busy", 2, "--gpu-type", "busy")
        self.paper = PaperNode(cluster, "paper", 64, ["paper"] * 64)
        eventually(lambda: len(cluster.nodes()) == 4, "the nodes to register")
        self.api.post("/v1/nodes/busy/drain")
        self.blocker = self.api.submit(["true"], hold=True)
        self.made: list[str] = []

    def submit(self, kind: str, way: str) -> str:
        does, more = WAYS[way]
        document = {"gpu_type": "cpu", **(FUNCTIONS if kind == "function" else COMMANDS)[does], **KINDS[kind], **more}
        if "after" in document:
            document["after"] = [{"job": self.blocker, "when": "afterok"}]
        jsonschema.validate(document, {"$ref": "#/components/schemas/JobSpec", "components": CONTRACT.document["components"]})
        job: str = self.api.post("/v1/jobs", document)["id"]
        self.made.append(job)
        return job

    def state(self, job: str) -> str:
        """Of a task that was not placed yet: none."""
        try:
            state: str = self.api.job(job)["state"]
        except Problem as problem:
            assert problem.status == 404, problem
            return "NONE"
        return state

    def until(self, job: str, state: str) -> str:
        eventually(lambda: self.state(job) == state, f"{job} to be {state}; it is {self.state(job)}")
        return job

    def job(self, kind: str, way: str) -> tuple[str, str]:
        """A job of that kind that went that way, and its state."""
        if kind == "task":
            return self.task(way), way
        job = self.submit(kind, way)
        state = "PLACED" if way == "LEAVING" else way
        if way == "CANCELED":
            self.api.post(f"/v1/jobs/{job}/cancel")
        self.until(job, state)
        if way == "LEAVING":  # the node of paper stops nothing
            self.api.post(f"/v1/jobs/{job}/cancel")
        return job, state

    def task(self, way: str) -> str:
        """A task of an array. One that waits was given back by the node that takes no work since."""
        if way in ("QUEUED", "HELD"):
            self.api.post("/v1/nodes/busy/resume")
            job = self.until(f"{self.submit('array', 'QUEUED')}.1", "RUNNING")
            self.api.post("/v1/nodes/busy/drain")
            self.api.post(f"/v1/jobs/{job}/preemption")
            self.until(job, "QUEUED")
            if way == "HELD":
                self.api.post(f"/v1/jobs/{job}/hold")
        else:
            job = f"{self.submit('array', {'NONE': 'QUEUED', 'CANCELED': 'RUNNING'}.get(way, way))}.1"
        if way == "CANCELED":
            self.until(job, "RUNNING")
            self.api.post(f"/v1/jobs/{job}/cancel")
        return self.until(job, way)

    def retries(self) -> list[str]:
        """What a retry made of the jobs, as far as it lives."""
        live = self.api.get("/v1/jobs?limit=200&state=QUEUED,HELD,BLOCKED,STAGING,PLACED,RUNNING")["jobs"]
        return [job["id"] for job in live if job["id"] != self.blocker and job["array_id"] is None]

    def clear(self) -> None:
        """Cancel what was made, and wait for the ends; the node of paper tells of none."""
        for job in dict.fromkeys([*self.made, *self.retries()]):
            with contextlib.suppress(Problem):
                self.api.post(f"/v1/jobs/{job}/cancel")
                if self.api.job(job)["gpu_type"] != "paper":
                    self.api.wait(job)
        self.made.clear()

    def close(self) -> None:
        """The controller ends well, and the next one, which looks at all it finds, begins."""
        self.clear()
        self.api.post(f"/v1/jobs/{self.blocker}/cancel")
        self.paper.close()
        self.api.post("/v1/nodes/paper/fence", {"assert_dead": True})
        assert self.cluster.controller.kill(signal.SIGTERM) == 0, self.cluster.controller.said()[-4000:]
        self.cluster.start_controller()


@pytest.fixture(scope="module")
def stage(cluster: Cluster) -> Iterator[Stage]:
    made = Stage(cluster)
    yield made
    made.close()


@pytest.fixture
def asker(stage: Stage) -> Iterator[Asker]:
    made = Asker(stage.api, CONTRACT)
    yield made
    made.close()


#: Not of jobs that stand for tasks.
ENDS_OF_ONE = ("PLACED", "LEAVING", "TIMED_OUT")
CASES = [
    *((kind, way) for kind in KINDS for way in WAYS if kind not in ("array", "sweep") or way not in ENDS_OF_ONE),
    *(("task", way) for way in ("NONE", "QUEUED", "HELD", "RUNNING", "SUCCEEDED", "FAILED", "CANCELED", "TIMED_OUT")),
]


def asks(operation: Operation) -> Iterator[tuple[str, Any, dict[str, str]]]:
    """Each query and each body, one at a time, and a stream of events: (query, body, headers)."""
    for query in CONTRACT.queries(operation):
        yield query, None, {}
    for document in CONTRACT.bodies(operation):
        yield "", document, {}
    if operation.method == "get":
        yield "", None, {"Accept": "text/event-stream"}


@pytest.mark.parametrize(("kind", "way"), CASES)
def test_every_route_of_a_job_answers_whatever_the_job_is_and_does(stage: Stage, asker: Asker, kind: str, way: str) -> None:
    """A1: one kind of job in one state, an array that runs, ended the controller by one route."""
    job, state = stage.job(kind, way)
    for operation in OF_JOBS:
        for query, document, headers in asks(operation):
            asker.ask(operation, {"id": job}, query, document, **headers)
            if operation.method != "get" and stage.state(job) != state:
                stage.clear()
                job, state = stage.job(kind, way)
    stage.clear()
    assert stage.cluster.controller.alive()


#: What stands for {id}, {name} and so on.
ODD = [
    "x1", "a b", "a/b", "a\0b", "a\nb", "\u00e4\u732b", "..", "%2f", "-", "1", "0" * 64, "a" * 16, f"{'a' * 16}.1", f"{'a' * 16}.99999999",
    "x" * 80, "x" * 3000,
]  # fmt: skip


@pytest.mark.parametrize("role", ["admin", "user", "node"])
def test_every_other_route_answers_whatever_it_is_asked_for(stage: Stage, role: str) -> None:
    """Names that nobody has, of the longest and oddest kind; bodies as the contract has them, and nearly so."""
    asker = Asker(stage.cluster.user("odd", role=role), CONTRACT)
    for operation in OTHERS:
        holes = [parameter["name"] for parameter in operation.parameters if parameter["in"] == "path"]
        for name in ODD if holes else [""]:
            asker.ask(operation, dict.fromkeys(holes, name))
        for query, document, headers in asks(operation):
            asker.ask(operation, dict.fromkeys(holes, "x1"), query, document, **headers)
    asker.close()
    assert stage.cluster.controller.alive()
