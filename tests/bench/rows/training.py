# SPDX-License-Identifier: Apache-2.0
"""Steps a second of a DDP job under gpuctl over those under torchrun.

Two ranks with gloo, OMP_NUM_THREADS=1, on two slots of one node, each run 8 s of steps of some milliseconds
(tests/bench/programs/steps.py). Ours and `torchrun --standalone --nproc-per-node 2` in turns, which of the two is first changes from pair
to pair; the median of the pairs' ratios, with least and most. `daemons_cpu_percent`: the CPU time of gpuagent and gpushim over our runs, as
part of all cores of the node.

Gate: 1.00 +- 0.02, and 0.5 % of the node.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from pathlib import Path

from common import PROGRAMS, ROOT, Chart, Goal, cluster, cpu_s, prepare, said, spread
from harness import PYTHON, Cluster

GOALS = (
    Goal("deviation", "distance of the ratio of steps a second from 1.00", "", 0.02),
    Goal("daemons_cpu_percent", "CPU of gpuagent and gpushim, of one node", "%", 0.5),
)
CHARTS = (Chart("steps a second of a DDP job of two ranks", "/s", {"gpuctl": "steps_per_s.ours", "torchrun": "steps_per_s.torchrun"}),)
PAIRS = 12
SECONDS = 8
STEPS = str(PROGRAMS / "steps.py")


def shims(ours: Cluster) -> list[int]:
    """The supervisors of this cluster's attempts."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "exe").endswith("/gpushim") and os.readlink(entry / "cwd").startswith(f"{ours.folder}/"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def daemons_cpu_s(ours: Cluster) -> float:
    agent = ours.agents[0].process
    assert agent is not None
    return cpu_s(agent.pid) + sum(cpu_s(pid) for pid in shims(ours))


def under_gpuctl(ours: Cluster) -> dict[str, float]:
    """A run of the job; the CPU of the daemons is read while it runs, so that no supervisor has left with its part."""
    job = ours.api.submit([PYTHON, STEPS, str(SECONDS)], gpus=2, env={"OMP_NUM_THREADS": "1"})
    ours.wait_state(job, "RUNNING")
    begin, before = time.perf_counter(), daemons_cpu_s(ours)
    time.sleep(SECONDS)  # the length of the run is what it is
    spent, cpu = time.perf_counter() - begin, daemons_cpu_s(ours) - before
    view = ours.api.wait(job)
    assert view["state"] == "SUCCEEDED", (view, [ours.api.log(job, rank, "stderr")[-2000:] for rank in range(2)])
    steps: dict[str, float] = json.loads(ours.api.log(job).splitlines()[-1])
    return {"steps_per_s": steps["steps_per_s"], "cpu_percent": 100 * cpu / spent / (os.cpu_count() or 1)}


def under_torchrun() -> float:
    command = [Path(PYTHON).with_name("torchrun"), "--standalone", "--nproc-per-node", "2", STEPS, SECONDS]
    out = said(command, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return float(json.loads(out.splitlines()[-1])["steps_per_s"])


def run() -> dict[str, object]:
    prepare()
    said([ROOT / "deploy" / "python-environment", "--tests"])
    ours_rates, their_rates, shares = [], [], []
    with cluster([2]) as ours:
        for number in range(PAIRS):
            theirs = under_torchrun() if number % 2 else 0.0
            mine = under_gpuctl(ours)
            theirs = theirs or under_torchrun()
            ours_rates.append(mine["steps_per_s"])
            their_rates.append(theirs)
            shares.append(mine["cpu_percent"])
            print(f"ours {ours_rates[-1]:.1f}, torchrun {theirs:.1f} steps/s, {shares[-1]:.2f} % CPU", flush=True)
    ratios = spread([a / b for a, b in zip(ours_rates, their_rates, strict=True)])
    return {
        "ratio": ratios["median"],
        "ratios": ratios,
        "deviation": round(abs(ratios["median"] - 1), 3),
        "steps_per_s": {"ours": round(statistics.median(ours_rates), 1), "torchrun": round(statistics.median(their_rates), 1)},
        "daemons_cpu_percent": round(statistics.mean(shares), 3),
    }
