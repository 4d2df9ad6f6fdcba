# SPDX-License-Identifier: Apache-2.0
"""Gangs of programs/chaos.py: what is to go wrong in one, drawn from a seed, and what must be said and left of it afterwards.

One value, Chaos, is the whole scenario; a failing one is printed and can be run again by its seed. It owns no cluster.
"""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import leftovers
from harness import Cluster, eventually
from slowness import patient

PROGRAM = (Path(__file__).parents[1] / "programs" / "chaos.py").read_text()
NODES, LOCAL = 2, 4
WORLD = NODES * LOCAL

#: From the first bad exit to the end of the last process: a grace of 5 s, KILL, and time to be told of it (I8, table row 20).
GONE_S = patient(10.0)

SIGNALS = {"kill": (9, "SIGKILL"), "segfault": (11, "SIGSEGV"), "abort": (6, "SIGABRT")}
LITTER = ["daemons", "children", "quiet", "flood", "shm", "sysv", "listener", "files"]
HANGS = {"stop", "absent"}


@dataclass
class Chaos:
    """One gang. victim -1: nobody fails."""

    seed: int
    victim: int = -1
    how: str = ""
    manner: str = "wait"
    litter: list[str] = field(default_factory=list)
    retries: int = 0

    def plan(self) -> dict[str, Any]:
        plan: dict[str, Any] = {"manner": self.manner, "litter": self.litter}
        if self.victim >= 0:
            plan["how"] = {str(self.victim): self.how}
        return plan

    def code(self) -> int:
        if self.how in SIGNALS:
            return 128 + SIGNALS[self.how][0]
        return int(self.how.split()[1]) if self.how.startswith("exit") else 1

    def says(self) -> str:
        """How the reason names rank, node and end."""
        where = f"rank {self.victim} on node node{self.victim // LOCAL}"
        if self.how in SIGNALS:
            number, name = SIGNALS[self.how]
            return f"{where} was killed by signal {number} ({name})"
        return f"{where} exited with {self.code()}"


def ways() -> list[Chaos]:
    """Each way to end once, with each kind of litter somewhere, and the two manners that make an end hard."""
    hows = ["kill", "segfault", "abort", "exit 1", "exit 255", "exception", "stop", "absent"]
    each = [Chaos(-number - 1, number % WORLD, how, litter=[LITTER[number]]) for number, how in enumerate(hows)]
    return [
        *each,
        Chaos(-20, 5, "kill", manner="deaf", litter=["daemons", "flood"]),
        Chaos(-21, 0, "exit 3", manner="contagious", retries=2),
        Chaos(-22, litter=LITTER),
    ]


def drawn(seed: int) -> Chaos:
    """The scenario of a seed: most gangs end fast, so that many of them fit into a minute."""
    chance = random.Random(seed)
    how = chance.choice(["kill", "segfault", "abort", "exception", f"exit {chance.randint(1, 255)}", f"exit {chance.randint(1, 255)}"])
    how = chance.choice(sorted(HANGS)) if chance.random() < 0.08 else how
    manner = chance.choices(["wait", "contagious", "deaf"], [5, 4, 1])[0] if how not in HANGS else "wait"
    litter_kinds = chance.sample(LITTER, chance.randint(0, 3))
    if manner != "deaf" and "daemons" in litter_kinds and chance.random() < 0.7:
        litter_kinds.remove("daemons")  # deaf to TERM, they cost the whole grace
    retries = chance.choice([0, 0, 0, 1]) if how not in HANGS else 0
    return Chaos(seed, chance.randrange(WORLD), how, manner, litter_kinds, retries)


def submit(cluster: Cluster, chaos: Chaos, mark: Path, **more: Any) -> str:
    plan = {**chaos.plan(), "mark": str(mark), **more.pop("plan", {})}
    mark.mkdir(exist_ok=True)
    limit = {"time_limit_s": 1.5, "grace_s": 1} if chaos.how in HANGS else {}
    spec = {
        "gpus": WORLD, "placement": "spread", "infra_retries": 0, "retries": chaos.retries, "name": f"chaos{chaos.seed}",
        "files": [{"path": "chaos.py", "text": PROGRAM}], **limit, **more,
    }  # fmt: skip
    return cluster.api.submit(["python", "-I", "-S", "chaos.py", json.dumps(plan)], **spec)


def moment(mark: Path, rank: int) -> float:
    return float((mark / f"{rank}.ended").read_text())


def attempts(cluster: Cluster, job: str) -> list[dict[str, Any]]:
    return cluster.api.get(f"/v1/jobs/{job}/attempts")["attempts"]


def check(cluster: Cluster, chaos: Chaos, job: str, mark: Path) -> None:
    """Wait for the end of the gang; what is told of it is right, it came in time, and nothing is left."""
    view = cluster.api.wait(job)
    now = time.monotonic()
    told = f"{chaos}\n{ {**view, 'spec': '...'} }\n{attempts(cluster, job)}"
    if chaos.victim < 0:
        assert (view["state"], view["exit_code"], view["attempt"]) == ("SUCCEEDED", 0, 1), told
        exits = {rank["rank"]: rank["exit_code"] for rank in attempts(cluster, job)[0]["ranks"]}
        assert exits == dict.fromkeys(range(WORLD), 0), told
    elif chaos.how in HANGS:
        assert (view["state"], view["exit_code"], view["cause"]) == ("TIMED_OUT", 124, "TIME_LIMIT"), told
    else:
        check_failure(chaos, view, told)
        assert now - moment(mark, chaos.victim) <= GONE_S, told
    check_nothing_left(cluster, job, mark, told)


def check_failure(chaos: Chaos, view: dict[str, Any], told: str) -> None:
    """The rank that failed first, its node, how it ended, and retries that only its own failures have used up."""
    expected = ("FAILED", "RANK_FAILED", chaos.victim, f"node{chaos.victim // LOCAL}", chaos.code(), 1 + chaos.retries)
    fields = ("state", "cause", "failed_rank", "failed_node", "exit_code", "attempt")
    assert tuple(view[name] for name in fields) == expected, told
    assert chaos.says() in view["reason"], told


def check_nothing_left(cluster: Cluster, job: str, mark: Path, told: str) -> None:
    """Terminal means that all processes have gone. Folders go once the controller has the last byte of output."""
    assert leftovers.processes_of(job) == [], told
    for path in mark.glob("*.port"):
        assert leftovers.port_is_free(int(path.read_text())), told
    if leftovers.has_own_memory():
        assert leftovers.shared_memory_of(job) == [], told
    for node in leftovers.nodes_of(cluster):
        eventually(lambda node=node: not leftovers.cgroups_left(node, idle=False), f"the cgroups of attempts to go: {told}")
    for attempt in attempts(cluster, job):
        epoch = int(attempt["epoch"])
        assert attempt["master_port"] is None or leftovers.port_is_free(attempt["master_port"]), told
        for node in leftovers.nodes_of(cluster):
            eventually(lambda node=node, epoch=epoch: not leftovers.files_of(node, epoch), f"the folders of {epoch} to go: {told}")
