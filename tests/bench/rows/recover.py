# SPDX-License-Identifier: Apache-2.0
"""From the death of a rank to the next all-reduce of its gang, against torchrun.

Two ranks of a function with gloo and one retry, on one node of two slots with warm workers; one rank is killed by SIGKILL between two
all-reduces. The other one is ended, the attempt's exit is recorded, and the next attempt is placed and started: until the slower rank of
that has done its first all-reduce. torchrun --standalone --nproc-per-node 2 --max-restarts 1 runs the same as a script
(tests/bench/programs/recover.py); it keeps no record of the death and asks nobody for a place. TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1,
because ranks that are started again find addresses of the dead in a store that is shared. Ten rounds in turns; medians with least and most.

Gate: 20x (aim 35x).
"""

from __future__ import annotations

import os
from pathlib import Path

from common import PROGRAMS, ROOT, Chart, Goal, prepare, said, spread
from gangs import gangs
from harness import PYTHON

GOALS = (Goal("ratio", "torchrun's time over ours, death of a rank to the gang's next all-reduce", "x", 20, 35, at_most=False),)
CHARTS = (
    Chart(
        "death of a rank to the gang's next all-reduce",
        "ms",
        {"gpuctl, warm": "milliseconds.ours.median", "torchrun": "milliseconds.torchrun.median"},
    ),
)
TIMES = 10


def under_torchrun() -> float:
    """Milliseconds of a run by torchrun."""
    options = ["--standalone", "--nproc-per-node", "2", "--max-restarts", "1"]
    command = [Path(PYTHON).with_name("torchrun"), *options, PROGRAMS / "recover.py"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    lines = [line.split() for line in said(command, env=environment).splitlines()]
    moments: dict[str, list[float]] = {}
    for word, at_s in lines:
        moments.setdefault(word, []).append(float(at_s))
    assert len(moments["killed"]) == 1 and len(moments["back"]) == 2, moments
    return (max(moments["back"]) - moments["killed"][0]) * 1000


def run() -> dict[str, object]:
    prepare()
    said([ROOT / "deploy" / "python-environment", "--tests"])
    times: dict[str, list[float]] = {"ours": [], "torchrun": []}
    with gangs("recover", warm=True) as recover:
        for _ in range(TIMES):
            times["ours"].append(recover())
            times["torchrun"].append(under_torchrun())
            print({name: round(values[-1], 1) for name, values in times.items()}, flush=True)
    ratios = spread([theirs / ours for theirs, ours in zip(times["torchrun"], times["ours"])], 2)
    return {"ratio": ratios["median"], "ratios": ratios, "milliseconds": {name: spread(values, 1) for name, values in times.items()}}
