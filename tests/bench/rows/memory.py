# SPDX-License-Identifier: Apache-2.0
"""Resident memory of the controller: with no jobs, and what each queued job adds.

Growth of VmRSS from none to 10,000 and to 100,000 jobs that wait, submitted over HTTP with an Idempotency-Key each, and 90,000 more from
there. Slurm: slurmctld as tests/bench/slurm.py sets it up, growth from none to 10,000 held jobs of sbatch.

Gate: 2 KiB a job (aim 1 KiB), 10 MiB with none.
"""

from __future__ import annotations

import slurm
from common import Chart, Goal, Skipped, cluster, controller_pid, hold_queue, load, prepare, resident_kib, worst
from harness import eventually

GOALS = (
    Goal("kib_per_job.10000", "growth per queued job, 10,000 of them", "KiB", 2, 1),
    Goal("kib_per_job.100000", "growth per queued job, 100,000 of them", "KiB", 2, 1),
    Goal("idle_mib", "with no jobs", "MiB", 10),
)
CHARTS = (
    Chart(
        "resident memory of the controller for each queued job",
        "KiB",
        {
            "gpuctl, 10,000 jobs": "kib_per_job.10000",
            "gpuctl, 100,000 jobs": "kib_per_job.100000",
            "Slurm, 10,000 held jobs": "slurm.kib_per_job.10000",
        },
    ),
)
CONNECTIONS = 16


def ours() -> dict[str, object]:
    with cluster([1]) as made:
        pid = controller_pid(made)
        idle = resident_kib(pid)
        hold_queue(made)
        empty = resident_kib(pid)
        per_job, before = {}, 0
        for jobs in (10_000, 100_000):
            load(made.port, CONNECTIONS, str(jobs - before), "gpuctl", made.admin_token)
            per_job[str(jobs)] = round((resident_kib(pid) - empty) / jobs, 2)
            print(f"{jobs} queued jobs: {resident_kib(pid)} KiB, {per_job[str(jobs)]} KiB each", flush=True)
            before = jobs
        made.controller.kill()  # cancelling them one by one would take a minute
        return {"idle_mib": round(idle / 1024, 2), "kib_per_job": per_job}


def slurms(jobs: int) -> dict[str, object]:
    with slurm.running(cpus=2) as peer:
        idle = resident_kib(peer.controller_pid)
        (peer.folder / "true.sh").write_text("#!/bin/sh\n/bin/true\n")
        peer.said("sh", "-c", f"seq {jobs} | xargs -P8 -n1 sbatch -Q --hold -n1 -o /dev/null true.sh")
        eventually(lambda: len(peer.said("squeue", "-h", "-o", "%i").split()) == jobs, "Slurm to have all jobs")
        per_job = (resident_kib(peer.controller_pid) - idle) / jobs
        return {"idle_mib": round(idle / 1024, 2), "kib_per_job": {str(jobs): round(per_job, 2)}, "version": peer.version}


def run() -> dict[str, object]:
    prepare(targets=("bench-load",))
    figures = ours()
    try:
        return {"ratio": worst(GOALS, figures), **figures, "slurm": slurms(10_000)}
    except Skipped as why:
        return {"ratio": worst(GOALS, figures), **figures, "slurm": {"skipped": str(why)}}
