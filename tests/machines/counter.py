# SPDX-License-Identifier: Apache-2.0
"""A job that shows whether it was disturbed: it counts aloud until it is told to stop, so a second start or a lost line leaves a mark."""

from __future__ import annotations

import shlex

from cluster import Cluster
from machine import Machine, eventually

#: A line each fifth of a second, until the file is there.
PROGRAM = "i=0; while [ ! -e {stop} ]; do i=$((i+1)); echo $i; sleep 0.2; done; echo end"


class Counter:
    """One such job. Its ranks look for a file on their own machine."""

    def __init__(self, cluster: Cluster, options: str = "", name: str = "counter"):
        self.cluster = cluster
        self.stop = f"/srv/{name}.stop"  # jobs have a /tmp and a /var/tmp of their own
        self.job = cluster.submit(f"{options} -- sh -c {shlex.quote(PROGRAM.format(stop=self.stop))}")
        cluster.wait_for(self.job, "RUNNING")
        self.more()

    def more(self) -> None:
        """Wait until the controller has more of its output than now."""
        before = len(self.cluster.output(self.job))
        eventually(lambda: len(self.cluster.output(self.job)) > before, f"job {self.job} to go on counting", pace=0.5)

    def finish(self, *machines: Machine, attempts: int = 1) -> None:
        """Let it end, and assert that the last attempt counted without a gap, and that there were as many attempts as that."""
        for machine in machines:
            machine.run(f"touch {self.stop}")
        job = self.cluster.wait_for(self.job)
        lines = self.cluster.output(self.job)
        assert job["state"] == "SUCCEEDED", job
        assert lines == [str(number) for number in range(1, len(lines))] + ["end"]
        assert len(self.cluster.attempts(self.job)) == attempts
