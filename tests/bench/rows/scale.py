# SPDX-License-Identifier: Apache-2.0
"""What a full queue and a large cluster cost.

`submit_growth`: the time of a submission over HTTP on one connection, durable, to a controller with 100,000 queued jobs over that to one
with 100; both run, batches of 10 in turns, the median of the pairs' ratios. `pass_growth`: what an exit which places the next job costs
the core, likewise (the row `pass`). `agents`: 10,000 simulated agents of one slot (tests/bench/programs/agents.c), each with a parked poll
of its own, beats every 5 s, reports that a rank runs and that it has ended; 20,000 jobs are submitted over 32 connections: jobs a second
from the first submission until the last exit is taken; controller_cpu_ms_per_job is the controller's part, the agents run on the same
cores.

Gate: at most twice the cost (aim 1.2).
"""

from __future__ import annotations

import statistics
import subprocess
import time

from common import BUILD, Goal, cluster, controller_pid, cpu_s, figures_of, hold_queue, load, prepare, resident_kib, worst
from harness import Cluster, eventually
from simulated import Agents, agents, most_agents, node_token

GOALS = (
    Goal("submit_growth", "a submission over HTTP, at 100,000 queued jobs / at 100", "x", 2, 1.2),
    Goal("pass_growth", "a scheduling pass, at 100,000 queued jobs / at 100", "x", 2, 1.2),
)
FEW, MANY = 100, 100_000
BATCHES = 100
BATCH = 10
AGENTS = 10_000
JOBS = 20_000
SPEC = '{"command":["/bin/true"],"gpus":1,"name":"true"}'


def submit_us(ours: Cluster) -> float:
    """Of one of a batch."""
    return 1e6 / load(ours.port, 1, str(BATCH), "gpuctl", ours.admin_token)


def in_turns(small: Cluster, large: Cluster) -> dict[str, object]:
    """Pairs of batches; which of the two is first changes from pair to pair."""
    pairs = []
    cpu = [cpu_s(controller_pid(ours)) for ours in (small, large)]
    for number in range(BATCHES):
        first = submit_us(large) if number % 2 else 0.0
        few = submit_us(small)
        pairs.append((few, first or submit_us(large)))
    spent = [cpu_s(controller_pid(ours)) - before for ours, before in zip((small, large), cpu, strict=True)]
    few_us, many_us = (statistics.median(side) for side in zip(*pairs, strict=True))
    few_cpu_us, many_cpu_us = (round(1e6 * part / BATCHES / BATCH) for part in spent)
    return {
        "submit_us": {str(FEW): round(few_us, 1), str(MANY): round(many_us, 1)},
        "submit_cpu_us": {str(FEW): few_cpu_us, str(MANY): many_cpu_us},
        "submit_growth": round(statistics.median(b / a for a, b in pairs), 2),
    }


def submits() -> dict[str, object]:
    with cluster([1]) as small, cluster([1]) as large:
        for ours, jobs in ((small, FEW), (large, MANY)):
            hold_queue(ours)
            load(ours.port, 32, str(jobs), "gpuctl", ours.admin_token)
        figures = in_turns(small, large)
        for ours in (small, large):
            ours.controller.kill()  # cancelling them one by one would take a minute
        return figures


def passes() -> dict[str, object]:
    few, many = (figures_of("bench-passes", 1000, jobs)["exit_p50_us"] for jobs in (FEW, MANY))
    return {"pass_us": {str(FEW): few, str(MANY): many}, "pass_growth": round(many / few, 2)}


def idle_share(pid: int, fleet: Agents, beats: int) -> float:
    """Part of one core that the controller takes while agents only beat, until so many beats are answered."""
    begin, cpu = time.perf_counter(), cpu_s(pid)
    eventually(lambda: fleet.ask("park 0")["beats"] >= beats, "the agents to beat")
    return (cpu_s(pid) - cpu) / (time.perf_counter() - begin)


def crowd() -> dict[str, object]:
    count = most_agents(AGENTS)
    with cluster([], controller=["--beat", "5s"]) as ours, agents(ours.port, node_token(ours), count, 1) as fleet:
        pid = controller_pid(ours)
        fleet.ask("register")
        before = fleet.ask("park 1000")
        idle = idle_share(pid, fleet, before["beats"] + 2 * count)
        cpu, begin = cpu_s(pid), time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        fleet.tell(f"ended {before['ended'] + JOBS}")
        command = [str(BUILD / "tests/bench/bench-load"), str(ours.port), "32", str(JOBS), "gpuctl", ours.admin_token, SPEC]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        done = fleet.answer()
        spent = done["at_us"] / 1e6 - begin / 1e9
        figures = {
            "count": count,
            "jobs_per_s": round(JOBS / spent, 1),
            "controller_cpu_percent": round(100 * (cpu_s(pid) - cpu) / spent, 1),
            "controller_cpu_ms_per_job": round(1000 * (cpu_s(pid) - cpu) / JOBS, 3),
            "controller_mib": round(resident_kib(pid) / 1024, 1),
            "idle_cpu_percent": round(100 * idle, 1),
        }
        print(figures, flush=True)
        return figures


def run() -> dict[str, object]:
    prepare(targets=("bench-agents", "bench-load", "bench-passes"))
    figures: dict[str, object] = {**submits(), **passes()}
    return {"ratio": worst(GOALS, figures), **figures, "agents": crowd()}
