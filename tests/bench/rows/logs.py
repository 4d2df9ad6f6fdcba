# SPDX-License-Identifier: Apache-2.0
"""Log bytes a second from eight flooding ranks to clients that follow them, through the controller.

One node of 8 slots; each rank writes 64 MiB of lines of 100 characters to stdout as fast as it is read. A client a rank follows it as an
event stream; what they get is counted, and must be all of it. `lean`: one program that takes the streams apart without decoding JSON
(tests/bench/programs/follow.c); `gpuctl_logs`: eight `gpuctl logs --follow --rank N`, whose output goes to a pipe. From the submission to
the last byte; in turns, medians of three. All of it, ranks, shim, agent, controller and clients, shares the cores of this machine.
`controller_cpu_s_per_gb` is what the controller alone takes.

Gate: 100 MB/s (aim 300).
"""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Callable

from common import Goal, cluster, controller_pid, cpu_s, environment_of, figures_of, medians, prepare, worst
from harness import GPUCTL, Cluster

GOALS = (Goal("lean.mb_per_s", "log bytes to lean clients", "MB/s", 100, 300, at_most=False),)
ROUNDS = 3
RANKS = 8
RANK_BYTES = 64 << 20
FLOOD = f"yes {'a line of a rank that has much to say ' * 2}and then some more of it | head -c {RANK_BYTES}"


def count(streams: list[subprocess.Popen[bytes]]) -> list[int]:
    """Read all of the programs' outputs to their ends; how many bytes each had."""
    totals = [0] * len(streams)
    with selectors.DefaultSelector() as selector:
        for number, stream in enumerate(streams):
            assert stream.stdout is not None
            selector.register(stream.stdout.fileno(), selectors.EVENT_READ, number)
        while selector.get_map():
            for key, _ in selector.select():
                got = len(os.read(key.fd, 1 << 20))
                totals[key.data] += got
                if not got:
                    selector.unregister(key.fd)
    return totals


def lean(ours: Cluster, job: str) -> list[int]:
    counts: list[int] = figures_of("bench-follow", ours.port, ours.folder / "controller" / "admin.token", job, RANKS)
    return counts


def gpuctl_logs(ours: Cluster, job: str) -> list[int]:
    followers = [
        subprocess.Popen([str(GPUCTL), "logs", "--follow", "--rank", str(rank), job], env=environment_of(ours), stdout=subprocess.PIPE)
        for rank in range(RANKS)
    ]
    totals = count(followers)
    assert [follower.wait() for follower in followers] == [0] * RANKS
    return totals


def flood(ours: Cluster, follow: Callable[[Cluster, str], list[int]]) -> dict[str, float]:
    before = cpu_s(controller_pid(ours))
    begin = time.perf_counter()
    job = ours.api.submit(["sh", "-c", FLOOD], gpus=RANKS)
    totals = follow(ours, job)
    spent = time.perf_counter() - begin
    cpu = cpu_s(controller_pid(ours)) - before
    assert totals == [RANK_BYTES] * RANKS, totals
    assert ours.api.wait(job)["state"] == "SUCCEEDED"
    megabytes = RANKS * RANK_BYTES / 1e6
    return {
        "mb_per_s": megabytes / spent,
        "controller_cpu_percent": 100 * cpu / spent,
        "controller_cpu_s_per_gb": cpu / megabytes * 1000,
    }


def run() -> dict[str, object]:
    prepare(targets=("bench-follow",))
    runs: dict[str, list[dict[str, float]]] = {"lean": [], "gpuctl_logs": []}
    with cluster([RANKS]) as ours:
        for _ in range(ROUNDS):
            runs["lean"].append(flood(ours, lean))
            runs["gpuctl_logs"].append(flood(ours, gpuctl_logs))
            print({name: round(done[-1]["mb_per_s"], 1) for name, done in runs.items()}, flush=True)
    figures = {name: medians(done) for name, done in runs.items()}
    return {"ratio": worst(GOALS, figures), **figures}
