# SPDX-License-Identifier: Apache-2.0
"""From the start of a gang of two ranks to its first all-reduce, against torchrun.

Ours: a function is called from a notebook, on one node of two slots, with gloo; `cold`: the node has no warm workers, `warm`: it has.
torchrun --standalone --nproc-per-node 2 runs the same as a script. All ranks import torch, have OMP_NUM_THREADS=1, and say when the
all-reduce was done; the slower one counts. Nine rounds in turns; medians, and of the ratios of each round the median, least and most.

Gate: 1.6x cold, 20x warm (aims 2.1x, 35x).
"""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

from common import PROGRAMS, ROOT, Chart, Goal, prepare, said, spread
from gangs import gangs
from harness import PYTHON

GOALS = (
    Goal("cold_ratio", "torchrun's time over ours, ranks not warm", "x", 1.6, 2.1, at_most=False),
    Goal("ratio", "torchrun's time over ours, warm ranks", "x", 20, 35, at_most=False),
)
CHARTS = (
    Chart(
        "start to first all-reduce, two ranks",
        "ms",
        {"gpuctl, warm": "milliseconds.warm", "gpuctl, cold": "milliseconds.cold", "torchrun": "milliseconds.torchrun"},
    ),
)
ROUNDS = 9


def under_torchrun() -> float:
    """Milliseconds of a run by torchrun."""
    command = [Path(PYTHON).with_name("torchrun"), "--standalone", "--nproc-per-node", "2", PROGRAMS / "first_step.py"]
    begin_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    ends_s = said(command, env={**os.environ, "OMP_NUM_THREADS": "1"}).split()
    return (max(map(float, ends_s)) - begin_s) * 1000


def run() -> dict[str, object]:
    prepare()
    said([ROOT / "deploy" / "python-environment", "--tests"])
    times: dict[str, list[float]] = {"warm": [], "cold": [], "torchrun": []}
    with gangs("first", warm=True) as warm, gangs("first", warm=False) as cold:
        under_torchrun()
        for _ in range(ROUNDS):
            for name, measure in (("warm", warm), ("cold", cold), ("torchrun", under_torchrun)):
                times[name].append(measure())
            print({name: round(values[-1], 1) for name, values in times.items()}, flush=True)
    ratios = {name: spread([theirs / ours for theirs, ours in zip(times["torchrun"], times[name])], 2) for name in ("warm", "cold")}
    return {
        "ratio": ratios["warm"]["median"],
        "cold_ratio": ratios["cold"]["median"],
        "ratios": ratios,
        "milliseconds": {name: round(statistics.median(values), 1) for name, values in times.items()},
        "longest": {name: round(max(values), 1) for name, values in times.items()},
    }
