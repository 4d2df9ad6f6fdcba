# SPDX-License-Identifier: Apache-2.0
"""Gangs in which something goes wrong: 2 nodes, 4 ranks on each, on real agents. The whole gang goes, in time; the rank that
failed first is named, with its cause; retries are counted right; other jobs on the nodes see nothing of it; and nothing is left.

`pytest tests/faults/jobs/test_chaos.py --long` draws a thousand gangs instead of a few. A failing one is printed with its seed.
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import chaos_gang
import leftovers
from chaos_gang import LOCAL, Chaos
from harness import Cluster, eventually
from slowness import patient

MEET = (Path(__file__).parents[2] / "e2e" / "programs" / "meet.py").read_text()

#: Connections that daemons may keep open for later: LIMIT_AGENT_CONNECTIONS of each agent.
CONNECTIONS = 32

#: Idle shims that an agent may keep for later (LIMIT_KEPT_SHIMS), each with a socket and a pidfd.
KEPT_SHIMS = 16

#: Gangs at once: the grace of one is the run of another.
AT_ONCE = 3


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes with room for three gangs and a bystander."""
    slots = AT_ONCE * LOCAL + 1
    cluster = Cluster(tmp_path_factory.mktemp("site"), [slots, slots]).start()
    yield cluster
    cluster.stop()


def run_gangs(site: Cluster, gangs: list[Chaos], folder: Path) -> None:
    def run(chaos: Chaos) -> None:
        mark = folder / f"mark{chaos.seed}"
        chaos_gang.check(site, chaos, chaos_gang.submit(site, chaos, mark), mark)

    with leftovers.killing_for_memory(False), ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(run, chaos) for chaos in gangs]:
            done.result()


class Bystander:
    """A job of one rank on each node that counts while the others fall; no line of it may be missing in the end."""

    def __init__(self, site: Cluster, folder: Path):
        self.site, self.gate = site, folder / "bystander.gate"
        self.job = site.api.submit(
            ["python", "-I", "-S", "meet.py", "count", str(self.gate)],
            gpus=2, placement="spread", files=[{"path": "meet.py", "text": MEET}], infra_retries=0,
        )  # fmt: skip
        eventually(lambda: "line 5\n" in site.api.log(self.job, 1), "the bystander to count")

    def check(self) -> None:
        self.gate.touch()
        view = self.site.api.wait(self.job)
        assert (view["state"], view["attempt"]) == ("SUCCEEDED", 1), view
        for rank in range(2):
            lines = self.site.api.log(self.job, rank).splitlines()
            count = int(re.fullmatch(r"counted (\d+)", lines[-1]).group(1))  # type: ignore[union-attr]
            assert lines[1:-1] == [f"line {n}" for n in range(count)], "a line is missing or doubled"


class Books:
    """What our daemons hold when nothing runs, to be compared with later."""

    def __init__(self, site: Cluster):
        self.site = site
        eventually(lambda: not leftovers.all_shims(site), "the last shims to end")
        self.pids = [program.process.pid for program in [site.controller, *site.agents] if program.process]
        self.descriptors = [leftovers.descriptors(pid) for pid in self.pids]
        self.resident = [leftovers.resident_kib(pid) for pid in self.pids]

    def check(self, runs: int) -> None:
        """No more descriptors than before, no zombies, no shims at work, no folders; memory does not grow with the number of gangs."""
        for pid, (others, sockets) in zip(self.pids, self.descriptors, strict=True):
            most = others + KEPT_SHIMS
            eventually(lambda pid=pid, most=most: leftovers.descriptors(pid)[0] <= most, f"descriptors of {pid} to be closed")
            assert leftovers.descriptors(pid)[1] <= sockets + CONNECTIONS + KEPT_SHIMS
        for pid, before in zip(self.pids, self.resident, strict=True):
            eventually(lambda pid=pid: leftovers.zombies_of(pid) == 0, f"{pid} to wait for its children")
            assert leftovers.resident_kib(pid) - before < 4096 + 20 * runs, f"{pid} grew from {before} KiB"
        eventually(lambda: not leftovers.all_shims(self.site), "the last shims to end")
        assert leftovers.mounts_below(self.site.folder) == []


#: Ranks of torch that reduce for ever, until one ends, stays away, or sees that another did.
GLOO = """
import json, os, sys, time
import torch, torch.distributed as dist
plan = json.loads(sys.argv[1])
dist.init_process_group("gloo")
rank, number = dist.get_rank(), 0
while True:
    number += 1
    if rank == plan["victim"] and number == 5:
        open(plan["mark"], "w").write(str(time.clock_gettime(time.CLOCK_MONOTONIC)))
        if plan["how"] == "kill": os.kill(os.getpid(), 9)
        if plan["how"] == "exception": raise ValueError("the loss is not a number")
        time.sleep(1000)
    dist.all_reduce(torch.ones(1000))
"""


def test_a_gloo_gang_goes_with_the_rank_that_died_raised_or_stayed_away(
    site: Cluster, tmp_path: Path, volume: Callable[[int, int], int]
) -> None:
    """2 x 2 ranks of torch. The others raise a moment later, as their connections break: the first is the one that is named."""
    hows = ["kill", "exception", "absent"]
    for run in range(volume(1, 100)):
        victim, how, mark = (3 + run) % 4, hows[run % 3], tmp_path / f"mark{run}"
        plan = {"victim": victim, "how": how, "mark": str(mark)}
        limit = {"time_limit_s": 20, "grace_s": 1} if how == "absent" else {}
        job = site.api.submit(["python", "-c", GLOO, json.dumps(plan)], gpus=4, placement="spread", infra_retries=0, **limit)
        view = site.api.wait(job, patient(120))
        told = f"{plan} { {**view, 'spec': '...'} } {chaos_gang.attempts(site, job)}"
        if how == "absent":
            assert (view["state"], view["cause"]) == ("TIMED_OUT", "TIME_LIMIT"), told
        else:
            assert (view["state"], view["failed_rank"], view["attempt"]) == ("FAILED", victim, 1), told
            assert time.monotonic() - float(mark.read_text()) <= chaos_gang.GONE_S, told
        chaos_gang.check_nothing_left(site, job, tmp_path, told)


def test_whatever_ends_a_rank_ends_its_gang_and_is_named(
    site: Cluster, tmp_path: Path, volume: Callable[[int, int], int]
) -> None:
    """Every way once, then gangs drawn from seeds."""
    chance = random.Random(os.environ.get("GPUCTL_CHAOS_SEED", "1"))
    run_gangs(site, [Chaos(0, 3, "kill")], tmp_path)  # what is made once is made now
    books = Books(site)
    bystander = Bystander(site, tmp_path)
    gangs = chaos_gang.ways() + [chaos_gang.drawn(chance.randrange(10**9)) for _ in range(volume(25, 1000))]
    run_gangs(site, gangs, tmp_path)
    bystander.check()
    books.check(len(gangs))
