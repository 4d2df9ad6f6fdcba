# SPDX-License-Identifier: Apache-2.0
"""gpuctl debug: the stacks of all ranks, by the best tool that is there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from harness import PYTHON, Cluster, eventually
from joined import SLEEP, gpuctl, running

HANGS = """
import threading, time
def loads_for_ever():
    print("hangs", flush=True)
    threading.Event().wait()
def training_step():
    loads_for_ever()
training_step()
"""
#: What debug.sh needs of the node.
TOOLS = ["cat", "cut", "grep", "head", "readlink", "sed", "sh", "sleep", "tail", "timeout", "tr"]


def sections(said: bytes) -> dict[str, str]:
    """What is said of each rank."""
    parts = said.decode().split("=== rank ")[1:]
    return {part.split()[0]: part for part in parts}


def ended(cluster: Cluster, job: str) -> None:
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    cluster.api.wait(job)


def test_every_rank_of_a_python_program_says_its_lines(cluster: Cluster) -> None:
    job = running(cluster, [str(PYTHON), "-c", HANGS], gpus=4)
    eventually(lambda: cluster.api.log(job).count("hangs") >= 1, "the ranks to hang")
    found = eventually(
        lambda: (all_of := sections(gpuctl(cluster, "debug", job).stdout)) and "loads_for_ever" in all_of["3"] and all_of, "stacks"
    )
    assert sorted(found) == ["0", "1", "2", "3"]
    nodes = {node for node in ("node0", "node1") for said in found.values() if f"on node {node}\n" in said}
    assert nodes == {"node0", "node1"}
    for said in found.values():
        assert said.count("--- process ") == 1 and "training_step (<string>:7)" in said and "loads_for_ever (<string>:5)" in said
    assert sorted(sections(gpuctl(cluster, "debug", f"{job}.2").stdout)) == ["2"]
    assert cluster.api.job(job)["state"] == "RUNNING"
    ended(cluster, job)


def test_another_program_says_its_functions(cluster: Cluster) -> None:
    job = running(cluster, SLEEP)
    said = gpuctl(cluster, "debug", job).stdout.decode()
    assert said.count("--- process ") == 2 and ": sleep 600" in said and "#0 " in said and "nanosleep" in said
    ended(cluster, job)


def test_without_tools_the_kernel_says_what_it_knows(cluster: Cluster, tmp_path: Path) -> None:
    for tool in TOOLS:
        (tmp_path / tool).symlink_to(shutil.which(tool) or tool)
    job = running(cluster, ["sleep", "600"], env={"PATH": str(tmp_path)})
    said = gpuctl(cluster, "debug", job).stdout.decode()
    assert said.count("--- process ") == 1 and "(sleep): S (sleeping), in " in said and "#0 " not in said
    ended(cluster, job)


def test_a_tool_that_fails_says_so_and_the_next_one_follows(cluster: Cluster, tmp_path: Path) -> None:
    for tool in TOOLS:
        (tmp_path / tool).symlink_to(shutil.which(tool) or tool)
    broken = tmp_path / "gdb"
    broken.write_text("#!/bin/sh\necho ptrace: Operation not permitted. >&2\n")
    broken.chmod(0o755)
    job = running(cluster, ["sleep", "600"], env={"PATH": str(tmp_path)})
    said = gpuctl(cluster, "debug", job).stdout.decode()
    assert "  gdb failed: ptrace: Operation not permitted.\n" in said and "(sleep): S (sleeping), in " in said
    ended(cluster, job)


def test_a_rank_that_cannot_be_asked_fails_alone(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, 1)
    job = running(cluster, SLEEP, gpus=2)
    lost = next(place["node"] for place in cluster.api.job(job)["nodes"] if place["first_rank"] == 1)
    cluster.agents[int(lost.removeprefix("node"))].kill()
    found = sections(gpuctl(cluster, "debug", job, code=1).stdout)
    assert "sleep 600" in found["0"] and f"node {lost} did not open the connection to job {job} within 10 s" in found["1"]


def test_bad_requests_get_one_line(cluster: Cluster) -> None:
    job = running(cluster, SLEEP)
    said = gpuctl(cluster, "debug", f"{job}.7", code=2).stderr.decode()
    assert said.startswith(f"gpuctl: job {job} has no rank 7\n")
    ended(cluster, job)
    assert gpuctl(cluster, "debug", job, code=5).stderr.decode().startswith(f"gpuctl: job {job} does not run: it is CANCELED\n")
