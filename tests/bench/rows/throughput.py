# SPDX-License-Identifier: Apache-2.0
"""Trivial jobs a second to completion on two slots.

/bin/true, from the first submission until the last has ended. Ours: one node of two slots, jobs submitted over HTTP with 32 of them in
flight, durable, each with its history and its exit record; and the tasks of one array, likewise. xargs -P2: the bound of fork and exec.
Slurm: sbatch, 8 in flight, as tests/bench/slurm.py tunes it; it is told of 128 CPUs, for its scheduler looks once a second, and two slots
would give two jobs a second. task-spooler: `tsp -S2 -n`. GNU parallel: -j2. HyperQueue: its Python API, one worker of two CPUs, one job of
all tasks, no streams. Three rounds in turns, medians; of peers that are slow, fewer jobs.

Gate: 0.35x xargs (aim 0.5x) and 5x Slurm; the array 1.5x HyperQueue (aim 3x), jobs one by one 1x (aim 1.5x).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import slurm
from common import PROGRAMS, Chart, Goal, Skipped, cluster, folder, install, load, prepare, said
from harness import Cluster, eventually

WHY_ARRAY = (
    "each task has a cgroup, a namespace, pipes and an exit record of its own, and each change of its state is synced to the controller's "
    "disk; HyperQueue runs without a journal here."
)
GOALS = (
    Goal(
        "ratio",
        "jobs a second, of xargs -P2",
        "x",
        0.35,
        0.5,
        at_most=False,
        why="fork and exec are a fifth of the CPU time of a job. The controller, the agent and the supervisor take a good quarter each: "
        "two requests, a commit with the history, a cgroup, a System V namespace, pipes, a run folder with its sockets.",
    ),
    Goal("array_ratio", "tasks of an array a second, of xargs -P2", "x", 0.35, 0.5, at_most=False),
    Goal("array_hyperqueue_ratio", "tasks of an array a second, of HyperQueue", "x", 1.5, 3, at_most=False, why=WHY_ARRAY),
    Goal("hyperqueue_ratio", "jobs a second, of HyperQueue", "x", 1, 1.5, at_most=False),
    Goal("slurm_ratio", "jobs a second, of Slurm", "x", 5, at_most=False),
)
CHARTS = (
    Chart(
        "trivial jobs a second to completion, two slots",
        "/s",
        {
            "gpuctl": "per_second.ours",
            "gpuctl, an array": "per_second.array",
            "xargs -P2": "per_second.xargs",
            "task-spooler -S2": "per_second.task-spooler",
            "HyperQueue": "per_second.hyperqueue",
            "GNU parallel -j2": "per_second.parallel",
            "Slurm": "per_second.slurm",
        },
    ),
)
ROUNDS = 3
SLURM_CPUS = 128
IN_FLIGHT = 32
SPEC = '{"command":["/bin/true"],"gpus":1,"name":"true"}'
OWN_AND_BOUND = ("ours", "array", "xargs")
LIVE = "QUEUED,STAGING,PLACED,RUNNING"


def timed(count: int, work: Callable[[], object]) -> float:
    """Jobs a second."""
    begin = time.perf_counter()
    work()
    return count / (time.perf_counter() - begin)


def ours_rate(ours: Cluster, count: int) -> float:
    def through() -> None:
        load(ours.port, IN_FLIGHT, str(count), "gpuctl", ours.admin_token, SPEC)
        eventually(lambda: not ours.api.get(f"/v1/jobs?state={LIVE}&limit=1")["jobs"], "all jobs to end", 300)

    since = time.time_ns() // 1_000_000
    rate = timed(count, through)
    succeeded = ended_well(ours, since)
    assert succeeded == count, f"{succeeded} of {count} jobs succeeded"
    return rate


def array_rate(ours: Cluster, count: int) -> float:
    def through() -> None:
        job = ours.api.post("/v1/jobs", {**json.loads(SPEC), "array": {"tasks": count}})["id"]
        succeeded = ours.api.wait(job, 600)["array"]["succeeded"]
        assert succeeded == count, f"{succeeded} of {count} tasks succeeded"

    return timed(count, through)


def ended_well(ours: Cluster, since_ms: int) -> int:
    count, cursor = 0, ""
    while True:
        page = ours.api.get(f"/v1/jobs?state=SUCCEEDED&since={since_ms}&limit=200{cursor}")
        count += len(page["jobs"])
        if not page["next"]:
            return count
        cursor = f"&cursor={page['next']}"


def xargs_rate(count: int) -> float:
    return timed(count, lambda: said(["sh", "-c", f"seq {count} | xargs -P2 -n1 /bin/true"]))


def parallel_rate(count: int) -> float:
    return timed(count, lambda: said(["sh", "-c", f"seq {count} | parallel --will-cite -j2 /bin/true"]))


def spooler_rate(count: int) -> float:
    with folder() as state:
        environment = {**os.environ, "TS_SOCKET": f"{state}/socket", "TS_MAXFINISHED": str(2 * count), "TMPDIR": str(state)}
        said(["tsp", "-S2"], env=environment)
        script = f"for i in $(seq {count}); do tsp -n /bin/true >/dev/null; done; tsp -w {count - 2}; tsp -w {count - 1}"
        try:
            rate = timed(count, lambda: said(["sh", "-c", script], env=environment))
            finished = said(["tsp"], env=environment).count("finished")
            assert finished == count, f"{finished} of {count} finished"
            return rate
        finally:
            subprocess.run(["tsp", "-K"], env=environment, check=True)


def slurm_rate(peer: slurm.Slurm, count: int) -> float:
    def through() -> None:
        peer.said("sh", "-c", f"seq {count} | xargs -P8 -n1 sbatch -Q -n1 -o /dev/null true.sh")
        eventually(peer.queue_is_empty, "Slurm's queue to be empty", 300)

    (peer.folder / "true.sh").write_text("#!/bin/sh\n/bin/true\n")
    return timed(count, through)


@contextlib.contextmanager
def hyperqueue() -> Iterator[str]:
    """A Python that has HyperQueue; Skipped where it does not install."""
    with folder() as state:
        said([sys.executable, "-m", "venv", state / "venv"])
        python = str(state / "venv" / "bin" / "python")
        done = subprocess.run([python, "-m", "pip", "install", "-q", "hyperqueue"], capture_output=True, text=True)
        if done.returncode != 0:
            raise Skipped(f"hyperqueue does not install: {done.stderr.strip()[-300:]}")
        yield python


def hyperqueue_rate(python: str, count: int) -> float:
    with folder() as state:  # it leaves its streams where it is
        environment = {**os.environ, "TMPDIR": str(state)}
        return float(said([python, PROGRAMS / "hyperqueue_tasks.py", count], cwd=state, env=environment).splitlines()[-1])


def contenders(ours: Cluster, stack: contextlib.ExitStack, skipped: dict[str, str]) -> dict[str, Callable[[], float]]:
    """All that run here, by name."""
    found: dict[str, Callable[[], float]] = {
        "ours": lambda: ours_rate(ours, 2000),
        "array": lambda: array_rate(ours, 2000),
        "xargs": lambda: xargs_rate(4000),
    }
    try:
        peer = stack.enter_context(slurm.running(cpus=SLURM_CPUS))
        found["slurm"] = lambda: slurm_rate(peer, 300)
    except Skipped as why:
        skipped["slurm"] = str(why)
    for name, package, program, work in (
        ("task-spooler", "task-spooler", "tsp", lambda: spooler_rate(1000)),
        ("parallel", "parallel", "parallel", lambda: parallel_rate(500)),
    ):
        try:
            install(package)
            assert shutil.which(program)
            found[name] = work
        except Skipped as why:
            skipped[name] = str(why)
    try:
        python = stack.enter_context(hyperqueue())
        found["hyperqueue"] = lambda: hyperqueue_rate(python, 1000)
    except Skipped as why:
        skipped["hyperqueue"] = str(why)
    return found


def run() -> dict[str, object]:
    prepare(targets=("bench-load",))
    skipped: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(cluster([2]))
        found = contenders(ours, stack, skipped)
        ours_rate(ours, 100)
        rates: dict[str, list[float]] = {name: [] for name in found}
        for _ in range(ROUNDS):
            for name, work in found.items():
                rates[name].append(work())
                print(f"{name}: {rates[name][-1]:.1f} jobs/s", flush=True)
    middle = {name: round(statistics.median(rate), 1) for name, rate in rates.items()}
    ratios = {f"{name}_ratio": round(middle["ours"] / rate, 2) for name, rate in middle.items() if name not in OWN_AND_BOUND}
    ratios["array_ratio"] = round(middle["array"] / middle["xargs"], 3)
    if "hyperqueue" in middle:
        ratios["array_hyperqueue_ratio"] = round(middle["array"] / middle["hyperqueue"], 2)
    return {"ratio": round(middle["ours"] / middle["xargs"], 3), **ratios, "per_second": middle, "skipped": skipped}
