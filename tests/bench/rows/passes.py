# SPDX-License-Identifier: Apache-2.0
"""What a decision costs the scheduler's core under the default policy, without HTTP and store.

A submission that waits, and an exit which frees GPUs and places what is next: 1,000 nodes of 8 GPUs with 100 and with 100,000 waiting jobs,
100,000 nodes with 1,000. And 1,000 nodes with 5,000 waiting jobs that have one environment, and an environment each; and with 6,000 whose
resource requests differ.

Gate: at 100,000 waiting jobs at most twice what it costs at 100 (aim 1.2); an exit at 5,000 environments twice what it costs at one; at
6,000 different resource requests the slowest hundredth of submissions and exits at most 20 ms.
"""

from __future__ import annotations

import json

from common import Goal, figures_of, prepare, worst

GOALS = (
    Goal("submit_growth", "a submission that waits, at 100,000 jobs / at 100", "x", 2, 1.2),
    Goal("exit_growth", "an exit that places what is next, at 100,000 jobs / at 100", "x", 2, 1.2),
    Goal("environments_growth", "an exit that places what is next, at 5,000 environments / at one", "x", 2, 1.2),
    Goal("kinds_submit_p99_ms", "a submission that waits, at 6,000 different requests, p99", "ms", 20, 5),
    Goal("kinds_exit_p99_ms", "an exit, at 6,000 different requests, p99", "ms", 20, 5),
)


def run() -> dict[str, object]:
    prepare(targets=("bench-passes",))
    runs = []
    for nodes, jobs in ((1000, 100), (1000, 100_000), (100_000, 1000)):
        runs.append(figures_of("bench-passes", nodes, jobs))
        print(json.dumps(runs[-1]), flush=True)
    for environments in (1, 5000):
        runs.append(figures_of("bench-passes", 1000, 5000, "default", environments) | {"environments": environments})
        print(json.dumps(runs[-1]), flush=True)
    runs.append(figures_of("bench-passes", 1000, 6000, "default", 0, 6000) | {"kinds": 6000})
    print(json.dumps(runs[-1]), flush=True)
    few, many, one, each, kinds = runs[0], runs[1], runs[3], runs[4], runs[5]
    growth = {f"{name}_growth": round(many[f"{name}_p50_us"] / few[f"{name}_p50_us"], 2) for name in ("submit", "exit")}
    growth["environments_growth"] = round(each["exit_p50_us"] / one["exit_p50_us"], 2)
    growth |= {f"kinds_{name}_p99_ms": round(kinds[f"{name}_p99_us"] / 1000, 1) for name in ("submit", "exit")}
    return {"ratio": worst(GOALS, growth), **growth, "runs": runs}
