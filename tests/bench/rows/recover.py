# SPDX-License-Identifier: Apache-2.0
"""From the death of a rank to the next all-reduce of its gang.

Two ranks of a function with gloo and one retry, on one node of two slots with warm workers; one rank is killed by SIGKILL between two
all-reduces. The other one is ended, the attempt's exit is recorded, and the next attempt is placed and started: until the slower rank of
that has done its first all-reduce. Ten times; median, least and most.

Gate: 1 s (aim 0.3 s).
"""

from __future__ import annotations

from common import ROOT, Goal, prepare, said, spread, worst
from gangs import gangs

GOALS = (Goal("milliseconds.median", "death of a rank to the gang's next all-reduce", "ms", 1000, 300),)
TIMES = 10


def run() -> dict[str, object]:
    prepare()
    said([ROOT / "deploy" / "python-environment", "--tests"])
    with gangs("recover", warm=True) as recover:
        times = [recover() for _ in range(TIMES)]
    print([round(time) for time in times], flush=True)
    figures = {"milliseconds": spread(times, 1)}
    return {"ratio": worst(GOALS, figures), **figures}
