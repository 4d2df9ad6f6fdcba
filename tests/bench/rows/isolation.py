# SPDX-License-Identifier: Apache-2.0
"""What it costs that a job runs as its owner's user, with a /tmp, a /proc and rights of its own, and not as the agent's.

Two idle clusters of one slot, whose agents have `--run-as agent` and `--run-as owner`, get the same job (`true`) in turns. A start: from
the moment in which the order left the controller until the rank was started, as the controller has it (`gpuctl get ID --timing`). Medians
of 200 pairs; `more_ms` is the median of the differences.

Gate: 1.5 ms more (aim 0.75).
"""

from __future__ import annotations

import os
import statistics

from common import Goal, Skipped, cluster, prepare, worst
from harness import Cluster

GOALS = (Goal("more_ms", "a start as the owner's user, over one as the agent's", "ms", 1.5, 0.75),)
ROUNDS = 200
WARM_UP = 20


def start_ms(ours: Cluster) -> float:
    """One job, from its order to its rank."""
    job = ours.api.submit(["true"])
    assert ours.api.wait(job)["state"] == "SUCCEEDED"
    moments = ours.api.get(f"/v1/jobs/{job}/timing")["attempts"][0]["moments"]
    return float(moments["ranks_started_ms"] - moments["ordered_ms"])


def run() -> dict[str, object]:
    if os.geteuid() != 0:
        raise Skipped("only root can run jobs as other users")
    prepare()
    pairs: list[tuple[float, float]] = []
    with cluster([1], agent=["--run-as", "agent"]) as plain, cluster([1], agent=["--run-as", "owner"]) as apart:
        apart.folder.chmod(0o711)  # jobs pass through it to their own folders
        for number in range(ROUNDS + WARM_UP):
            pair = (start_ms(plain), start_ms(apart))
            if number >= WARM_UP:
                pairs.append(pair)
    figures = {
        "more_ms": round(statistics.median(owner - agent for agent, owner in pairs), 3),
        "agent_ms": round(statistics.median(agent for agent, _ in pairs), 3),
        "owner_ms": round(statistics.median(owner for _, owner in pairs), 3),
    }
    return {"ratio": worst(GOALS, figures), **figures}
