# SPDX-License-Identifier: Apache-2.0
"""Submission to the first instruction of the job, one at a time on an idle cluster.

From just before the request is written on a connection that is open until the slowest rank stamps the clock: one rank; `gang`, 2 ranks on 2
agents; `slow_disk`, both again with 2 ms added to every fsync and fdatasync of controller and agents. `srun`: one rank under `gpuctl run`
and under Slurm's srun, as tests/bench/slurm.py tunes it, in turns: from before the command is started until the rank stamps the clock
(first), and until the command has ended (wall).

Gates, p50: one rank 2.5 ms and 5 ms on the slow disk (aim 1.3 and 3.5); gang 4 and 8 ms (aim 2 and 6); 10 times sooner than srun (aim 20).
"""

from __future__ import annotations

import os
import statistics
import struct
import subprocess
import time
from pathlib import Path

import slurm
from common import BUILD, Chart, Goal, Skipped, cluster, environment_of, figures_of, prepare, worst
from harness import GPUCTL

GOALS = (
    Goal(
        "p50_ms",
        "one rank",
        "ms",
        2.5,
        1.3,
        why="as `gpuctl get ID --timing` has it: 0.6 ms until the submission is on disk, 0.1 ms until the order leaves, 0.6 ms in the "
        "agent until its supervisor begins, 0.5 ms until the rank is started.",
    ),
    Goal("slow_disk.p50_ms", "one rank, fdatasync 2 ms slower", "ms", 5, 3.5),
    Goal("gang.p50_ms", "2 ranks on 2 agents", "ms", 4, 2),
    Goal("slow_disk.gang_p50_ms", "2 ranks on 2 agents, fdatasync 2 ms slower", "ms", 8, 6),
    Goal("srun.ratio", "srun to its first instruction over submission to ours", "x", 10, 20, at_most=False),
)
CHARTS = (
    Chart(
        "submission to first instruction, p50",
        "ms",
        {
            "gpuctl, one rank": "p50_ms",
            "gpuctl, 2 ranks on 2 agents": "gang.p50_ms",
            "gpuctl, one rank, slow disk": "slow_disk.p50_ms",
            "gpuctl, 2 ranks, slow disk": "slow_disk.gang_p50_ms",
            "gpuctl run, as a command": "srun.gpuctl_run.first_ms",
            "Slurm's srun, as a command": "srun.srun.first_ms",
        },
    ),
)
STAMP = BUILD / "tests/bench/bench-stamp"
SRUN_ROUNDS = 60


def starts(gpus: int, slots: list[int], slow_disk: bool, count: int) -> dict[str, float]:
    with cluster(slots, slow_disk) as ours:
        token = ours.folder / "controller" / "admin.token"
        figures: dict[str, float] = figures_of("bench-start", ours.port, token, STAMP, ours.folder / "fifo", gpus, count)
        print(f"{gpus} rank(s) on {len(slots)} agent(s){', slow disk' if slow_disk else ''}: {figures}", flush=True)
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
    one_rank, gang = starts(1, [1], False, 500), starts(2, [1, 1], False, 500)
    slow_one, slow_gang = starts(1, [1], True, 200), starts(2, [1, 1], True, 200)
    srun: dict[str, object]
    try:
        srun = against_srun(one_rank["p50_ms"])
    except Skipped as why:
        srun = {"skipped": str(why)}
    figures = {
        "p50_ms": one_rank["p50_ms"],
        "p99_ms": one_rank["p99_ms"],
        "gang": {"p50_ms": gang["p50_ms"], "p99_ms": gang["p99_ms"]},
        "slow_disk": {"p50_ms": slow_one["p50_ms"], "gang_p50_ms": slow_gang["p50_ms"]},
        "srun": srun,
    }
    return {"ratio": worst(GOALS, figures), **figures}
