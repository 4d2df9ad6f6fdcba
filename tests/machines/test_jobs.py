# SPDX-License-Identifier: Apache-2.0
"""Jobs on machines with systemd and cgroup v2: where they run, what bounds them, and what they leave."""

from __future__ import annotations

import json
import re

import pytest

from cluster import Cluster
from machine import eventually


def cgroups(cluster: Cluster) -> str:
    return cluster.host.run("systemd-cgls --no-pager -l /system.slice/gpuagent.service")


def test_a_job_has_a_cgroup_of_its_own_in_the_delegated_unit(cluster: Cluster) -> None:
    """M1: with Delegate=yes, as the unit has it, every job failed."""
    host = cluster.start_controller()
    cluster.join(host)
    shown = cluster.gpuctl("run -- cat /proc/self/cgroup")
    assert "/system.slice/gpuagent.service/" in shown and "SUCCEEDED" in shown
    assert cluster.nodes()[host.name]["isolation"] == "cgroup2"
    assert "gpuctl" not in host.run("ls /sys/fs/cgroup")


def test_a_gang_runs_over_two_machines(cluster: Cluster) -> None:
    host = cluster.start_controller()
    other = cluster.machine()
    cluster.join(host)
    cluster.join(other)
    shown = cluster.gpuctl("run --gpus 4 --placement spread -- sh -c 'echo $RANK of $WORLD_SIZE on $(hostname), master $MASTER_ADDR'")
    for rank, name in enumerate([host.name, host.name, other.name, other.name]):
        assert f"{rank} of 4 on {name}, master {host.address}" in shown or f"{rank} of 4 on {name}, master {other.address}" in shown


def test_jobs_run_as_the_users_of_their_owners(cluster: Cluster) -> None:
    """S6: where the agent is root, so was every job."""
    host = cluster.start_controller()
    cluster.join(host)
    status = "id -un; id -gn; echo $HOME; pwd; touch ~/was-here /tmp/was-here; grep NoNewPrivs /proc/self/status"
    for owner in ("ann", "stranger"):
        cluster.gpuctl(f"token create --owner {owner} --out ~/{owner}.token")
    name, group, home, *_, privileges = said_by(cluster, "ann", f"sh -c '{status}'")
    assert (name, group, home, privileges) == ("ann", "ann", "/home/ann", "1")
    assert host.run("stat -c %U /home/ann/was-here").strip() == "ann"
    assert "was-here" not in host.run("ls /tmp")
    host.run("mknod -m 666 /srv/nvidia0 c 195 0")
    shut = "touch /home/ann/x || cat /etc/gpuctl/node.token || echo shut; cat /srv/nvidia0 2>&1 || true"
    number = said_by(cluster, "stranger", f"sh -c 'id -u; {shut}'")
    assert int(number[0]) > 1900000000 and " ".join(number[1:]) == "shut cat: /srv/nvidia0: Operation not permitted"
    assert cluster.nodes()[host.name]["labels"]["isolation"] == "user"


def test_workers_that_wait_for_an_owner_have_a_cgroup_of_their_own(cluster: Cluster) -> None:
    host = cluster.start_controller()
    cluster.join(host, "--preload decimal")
    cluster.gpuctl("token create --owner ann --out ~/ann.token")
    program = 'import os, sys; print("decimal" in sys.modules, os.getuid(), open("/proc/self/cgroup").read())'

    def warm() -> list[str] | None:
        words = said_by(cluster, "ann", f"python -c '{program}'")
        return words if words[0] == "True" else None

    _, uid, path = eventually(warm, "a warm start", pace=1)
    assert uid == host.run("id -u ann").strip() and path.rpartition(".a")[2].isdigit(), path
    folder = "/sys/fs/cgroup" + path.removeprefix("0::").rpartition("/")[0]
    waiting = eventually(lambda: host.run(f"cat {folder}/gpuctl-*.warm*/cgroup.procs; true").split(), "workers that wait")
    assert {host.run(f"stat -c %U /proc/{pid}").strip() for pid in waiting} == {"ann"}
    assert all(limit.isdigit() for limit in host.run(f"cat {folder}/gpuctl-*.warm*/pids.max").split())
    host.run("systemctl stop gpuagent")
    eventually(lambda: host.run("pgrep -u ann; true") == "", "what waits for ann to be gone")


def test_a_job_that_takes_too_much_memory_ends_with_that_cause_and_its_neighbour_lives(cluster: Cluster) -> None:
    host = cluster.start_controller()
    cluster.join(host)
    limit = "sh -c 'cat /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/memory.max'"
    shown = cluster.gpuctl(f"run --gpus 0 --cpus 1 --memory 256M -- {limit}")
    assert str(256 << 20) in shown and "SUCCEEDED" in shown
    neighbour = cluster.submit("--memory 64M -- sleep 7779")
    cluster.wait_for(neighbour, "RUNNING")
    greedy = cluster.submit("--memory 128M -- python3 -c 'x = bytearray(400 << 20)'")
    job = cluster.wait_for(greedy, "FAILED")
    assert job["cause"] == "OUT_OF_MEMORY", job
    assert re.search("the job may use 128 MiB on this node, and used 12[78] MiB at most", job["reason"]), job
    assert cluster.job(neighbour)["state"] == "RUNNING" and host.run("pgrep -fx 'sleep 7779'")


def said_by(cluster: Cluster, owner: str, command: str) -> list[str]:
    """The words that a job of that owner printed."""
    submitted = cluster.host.run(f"GPUCTL_TOKEN_FILE=~/{owner}.token gpuctl submit -o json -- {command}")
    job = str(json.loads(submitted)["id"])
    assert cluster.wait_for(job)["state"] == "SUCCEEDED", cluster.output(job)
    return cluster.output(job)


@pytest.mark.long
def test_a_job_runs_in_a_unit_that_delegates_nothing(cluster: Cluster) -> None:
    host = cluster.start_controller()
    cluster.join(host, unit="Delegate=no")
    assert "hello" in cluster.gpuctl("run -- echo hello")
    assert "gpuctl" not in host.run("ls /sys/fs/cgroup")


@pytest.mark.long
def test_a_fork_bomb_ends_at_the_limit_of_its_job_and_the_node_works_on(cluster: Cluster) -> None:
    host = cluster.start_controller()
    cluster.join(host, "--max-processes 64")
    bomb = cluster.submit("""-- python3 -c 'while True: __import__("os").fork()'""")
    assert "hello" in cluster.gpuctl("run -- echo hello")
    assert "as many processes as it may have" in cluster.wait_for(bomb, "FAILED")["reason"]
    eventually(lambda: "fork()" not in host.run("ps -eo args"), "the bomb's processes to be gone")


@pytest.mark.long
def test_the_memory_limit_of_the_unit_bounds_a_job_and_the_verdict_names_it(cluster: Cluster) -> None:
    host = cluster.start_controller()
    cluster.join(host, unit="MemoryMax=300M\nMemorySwapMax=0")
    greedy = cluster.submit("""-- python3 -c 'x = bytearray(600 << 20); print(len(x))'""")
    job = cluster.wait_for(greedy)
    assert job["state"] == "FAILED" and "memory" in job["reason"], job
    assert "hello" in cluster.gpuctl("run -- echo hello")


@pytest.mark.long
def test_what_ranks_leave_behind_is_gone_when_the_job_has_ended(cluster: Cluster) -> None:
    host = cluster.start_controller()
    cluster.join(host)
    job = cluster.submit("-- sh -c 'setsid nohup sleep 7777 >/dev/null 2>&1 & (sleep 7778 &) ; echo left'")
    assert cluster.wait_for(job)["state"] == "SUCCEEDED"
    assert "sleep 777" not in host.run("ps -eo args | grep -v grep")
    eventually(lambda: "8589934" not in cgroups(cluster), "the job's cgroup to be gone")
