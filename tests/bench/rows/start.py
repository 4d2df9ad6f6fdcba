# SPDX-License-Identifier: Apache-2.0
"""Submission to the first instruction of the job, one at a time on an idle cluster, in multiples of what no durable start does without.

A start: from just before the request is written on a connection that is open until the slowest rank stamps the clock. The floor, in turns
with it (tests/bench/programs/floor.c): a message and its answer over loopback, an fdatasync of a page that was appended to a log on the
same disk, one more message and answer, and a process of the same program, by themselves, one after the other. One rank; `gang`, 2 ranks on
2 agents, whose floor has two last messages and two processes, both at a time; `slow_disk`, both again with 2 ms added to every fsync and
fdatasync of controller, agents and floor. `ratio` is the median of the pairs. `srun`: one rank under `gpuctl run` and under Slurm's
srun, as tests/bench/slurm.py tunes it, in turns: from before the command is started until the rank stamps the clock (first), and until
the command has ended (wall).

Gates: one rank 2 times the floor (aim 1.4), gang 3 times (aim 2), both also on the slow disk; 10 times sooner than srun (aim 20).
"""

from __future__ import annotations

import os
import statistics
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

import slurm
from common import BUILD, Chart, Goal, Skipped, cluster, environment_of, figures_of, prepare, worst
from harness import GPUCTL

WHY = (
    "as `gpuctl get ID --timing` has it, on a disk whose fdatasync takes 0.3 ms: 0.6 ms until the submission is on disk, 0.05 ms until the "
    "order leaves, 0.3 ms in the agent until its supervisor begins, 0.4 ms until the rank is started, and the rest until it runs; the "
    "floor takes 1.1 ms."
)
WHY_GANG = (
    "a gang over nodes has two decisions on the disk before it starts, that its nodes are its own and that it goes; the floor has one."
)
WHY_SRUN = (
    "a sync and a spawn, which nobody can leave out, take 1.1 ms of ours; where srun takes 17 ms, a tenth of it leaves 0.6 ms for all else."
)
GOALS = (
    Goal("one.ratio", "one rank, of the floor", "x", 2, 1.4, why=WHY),
    Goal("gang.ratio", "2 ranks on 2 agents, of the floor", "x", 3, 2, why=WHY_GANG),
    Goal("slow_disk.one.ratio", "one rank, fdatasync 2 ms slower, of the floor", "x", 2, 1.4),
    Goal("slow_disk.gang.ratio", "2 ranks on 2 agents, fdatasync 2 ms slower, of the floor", "x", 3, 2, why=WHY_GANG),
    Goal("srun.ratio", "srun to its first instruction over submission to ours", "x", 10, 20, at_most=False, why=WHY_SRUN),
)
CHARTS = (
    Chart(
        "submission to first instruction, p50",
        "ms",
        {
            "floor, one rank": "one.floor_ms",
            "gpuctl, one rank": "one.p50_ms",
            "floor, 2 ranks": "gang.floor_ms",
            "gpuctl, 2 ranks on 2 agents": "gang.p50_ms",
            "floor, one rank, slow disk": "slow_disk.one.floor_ms",
            "gpuctl, one rank, slow disk": "slow_disk.one.p50_ms",
            "floor, 2 ranks, slow disk": "slow_disk.gang.floor_ms",
            "gpuctl, 2 ranks, slow disk": "slow_disk.gang.p50_ms",
            "gpuctl run, as a command": "srun.gpuctl_run.first_ms",
            "Slurm's srun, as a command": "srun.srun.first_ms",
        },
    ),
)
STAMP = BUILD / "tests/bench/bench-stamp"
SRUN_ROUNDS = 60


def starts(slots: list[int], slow_disk: bool, count: int) -> dict[str, Any]:
    """A rank on each agent, so many times in turns with the floor."""
    with cluster(slots, slow_disk) as ours:
        token = ours.folder / "controller" / "admin.token"
        figures: dict[str, Any] = figures_of("bench-start", ours.port, token, STAMP, ours.folder, len(slots), count)
        print(f"{len(slots)} rank(s){', slow disk' if slow_disk else ''}: {figures}", flush=True)
        return figures


def one(command: list[str], fifo: int, environment: dict[str, str]) -> tuple[float, float]:
    """Milliseconds from before the command is started to the rank's stamp, and to the command's end."""
    begin = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - begin
    (stamp_us,) = struct.unpack("=q", os.read(fifo, 8))
    return stamp_us / 1000 - begin / 1e6, wall / 1e6


def against_srun(submitted_ms: float) -> dict[str, object]:
    """Our command line and srun in turns; `submitted_ms` is the p50 of a submission on an open connection."""
    times: dict[str, list[tuple[float, float]]] = {"gpuctl_run": [], "srun": []}
    with slurm.running(cpus=2) as peer, cluster([1]) as ours:
        path = Path(ours.folder / "fifo")
        os.mkfifo(path)
        fifo = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        for number in range(SRUN_ROUNDS + 5):
            pair = {
                "gpuctl_run": one([str(GPUCTL), "run", "-q", "--", str(STAMP), str(path)], fifo, environment_of(ours)),
                "srun": one(["srun", "-Q", "-n1", str(STAMP), str(path)], fifo, peer.environment),
            }
            for name, both in pair.items() if number >= 5 else ():
                times[name].append(both)
        os.close(fifo)
    p50 = {
        name: {"first_ms": round(statistics.median(a for a, _ in runs), 2), "wall_ms": round(statistics.median(b for _, b in runs), 2)}
        for name, runs in times.items()
    }
    return {
        "ratio": round(p50["srun"]["first_ms"] / submitted_ms, 2),
        "command_first_ratio": round(p50["srun"]["first_ms"] / p50["gpuctl_run"]["first_ms"], 2),
        "command_wall_ratio": round(p50["srun"]["wall_ms"] / p50["gpuctl_run"]["wall_ms"], 2),
        "slurm": peer.version,
        **p50,
    }


def run() -> dict[str, object]:
    prepare(targets=("bench-start", "bench-stamp", "libslowdisk.so"))
    figures: dict[str, Any] = {
        "one": starts([1], False, 500),
        "gang": starts([1, 1], False, 500),
        "slow_disk": {"one": starts([1], True, 200), "gang": starts([1, 1], True, 200)},
    }
    try:
        figures["srun"] = against_srun(figures["one"]["p50_ms"])
    except Skipped as why:
        figures["srun"] = {"skipped": str(why)}
    return {"ratio": worst(GOALS, figures), **figures}
