# SPDX-License-Identifier: Apache-2.0
"""One supervisor serves jobs that follow one another, and nothing of one reaches the next."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Cluster

#: What a job may leave in its namespaces, by what the next one says of it; needs root.
LEFT = {
    "echo x > /dev/shm/left": "ls /dev/shm",
    "chmod 700 /dev/shm": "stat -c %a /dev/shm | grep -v 1777",
    "ipcmk --shmem 4096 > ipc": "tail -n +2 /proc/sysvipc/shm",
    "ipcmk --queue > ipc": "tail -n +2 /proc/sysvipc/msg",
    "mount -t tmpfs left /mnt": "grep ' /mnt ' /proc/self/mountinfo",
    "umount /dev/shm": "grep -q ' /dev/shm .*gpuctl' /proc/self/mountinfo || echo gone",
}


SLOTS = 4


@pytest.fixture
def cluster(make_cluster: Callable[..., Cluster]) -> Cluster:
    return make_cluster(SLOTS)


def has_own_memory() -> bool:
    return os.geteuid() == 0 and subprocess.run(["unshare", "--ipc", "--mount", "true"], capture_output=True).returncode == 0


def said_by(cluster: Cluster, *jobs: str) -> list[tuple[str, str]]:
    """For each job the process number of its supervisor, and what the job printed."""
    said = []
    for job in jobs:
        assert cluster.api.wait(job)["state"] == "SUCCEEDED", cluster.api.log(job, stream="stderr")
        supervisor, _, rest = cluster.api.log(job).partition("\n")
        said.append((supervisor, rest))
    return said


def submit(cluster: Cluster, script: str) -> str:
    return cluster.api.submit(["sh", "-c", f"echo $PPID; {script}"])


def side_by_side(cluster: Cluster, folder: Path, script: str) -> list[tuple[str, str]]:
    """As many jobs as there are slots, all of which run at once: no supervisor serves two."""
    meet = f"touch {folder}/$GPUCTL_JOB_ID; while test $(ls {folder} | wc -l) -lt {SLOTS}; do sleep 0.01; done"
    folder.mkdir()
    return said_by(cluster, *[submit(cluster, f"{meet}; {script}; true") for _ in range(SLOTS)])


def test_jobs_that_follow_one_another_share_supervisors(cluster: Cluster) -> None:
    supervisors = {said_by(cluster, submit(cluster, "true"))[0][0] for _ in range(20)}
    assert len(supervisors) <= 5, supervisors


@pytest.mark.skipif(not has_own_memory(), reason="needs root and namespaces")
@pytest.mark.parametrize("leave", LEFT)
def test_what_a_job_leaves_in_its_namespaces_does_not_reach_the_next_of_its_supervisor(
    cluster: Cluster, tmp_path: Path, leave: str
) -> None:
    first = said_by(cluster, submit(cluster, leave))[0][0]
    for number in range(20):
        later = side_by_side(cluster, tmp_path / f"meeting{number}", LEFT[leave])
        assert {said for _, said in later} == {""}
        if first in {supervisor for supervisor, _ in later}:
            return
    raise AssertionError("the supervisor did not serve again")


def test_a_job_whose_supervisor_served_others_has_its_own_output_and_end(cluster: Cluster) -> None:
    for code in (0, 3, 0, 5):
        job = cluster.api.submit(["sh", "-c", f"echo out {code}; echo err {code} >&2; exit {code}"])
        view = cluster.api.wait(job)
        assert view["state"] == ("FAILED" if code else "SUCCEEDED") and view["exit_code"] == code, view
        assert cluster.api.log(job) == f"out {code}\n" and cluster.api.log(job, stream="stderr") == f"err {code}\n"
    job = cluster.api.submit(["sh", "-c", "kill -9 $$"])
    assert cluster.api.wait(job)["exit_code"] == 137
    assert said_by(cluster, submit(cluster, "true"))[0][1] == ""
