# SPDX-License-Identifier: Apache-2.0
"""Restarts, upgrades and kills of our programs under running jobs: no job is disturbed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cluster import Cluster, install
from counter import Counter
from machine import eventually

#: How many processes the only job of a node may have; other cgroups have no process yet.
LIMIT = (
    "for made in /sys/fs/cgroup/system.slice/gpuagent.service/gpuctl-*.a*; do "
    "grep -q . $made/cgroup.procs && cat $made/pids.max; done; true"
)


def node_and_job(cluster: Cluster) -> Counter:
    host = cluster.start_controller()
    cluster.join(host)
    return Counter(cluster)


def test_a_restart_of_the_units_disturbs_no_job(cluster: Cluster) -> None:
    counter = node_and_job(cluster)
    host = cluster.host
    limit = host.run(LIMIT)
    assert len(limit.split()) == 1
    for unit in ("gpuctld", "gpuagent", "gpuagent"):
        host.run(f"systemctl restart {unit}")
        cluster.wait_for_node(host.name)
        counter.more()
        assert host.run(LIMIT) == limit
    assert "hello" in cluster.gpuctl("run -- echo hello")
    assert "gpuctl-agent" in host.run("systemd-cgls --no-pager /system.slice/gpuagent.service")
    counter.finish(host)


def test_a_kill_of_agent_and_controller_disturbs_no_job(cluster: Cluster) -> None:
    counter = node_and_job(cluster)
    host = cluster.host
    for unit in ("gpuctld", "gpuagent"):
        killed = main_process(cluster, unit)
        host.run(f"systemctl kill --kill-whom=main --signal=KILL {unit}")
        again = f"systemctl is-active {unit} && test $(systemctl show -P MainPID {unit}) != {killed}"
        host.wait_until(again, f"systemd to start {unit} again")
        cluster.wait_for_node(host.name)
        counter.more()
    assert "hello" in cluster.gpuctl("run -- echo hello")
    counter.finish(host)


def main_process(cluster: Cluster, unit: str) -> int:
    return int(cluster.host.run(f"systemctl show -P MainPID {unit}"))


def raised(packages: Path, folder: Path) -> Path:
    """The same packages with a higher version."""
    folder.mkdir()
    for package in packages.glob("*.deb"):
        tree = folder / "tree"
        subprocess.run(["dpkg-deb", "-R", str(package), str(tree)], check=True)
        control = tree / "DEBIAN/control"
        lines = [f"{line}+next" if line.startswith("Version:") else line for line in control.read_text().splitlines()]
        lines = [line.replace(f"(= {_version(package)})", f"(= {_version(package)}+next)") for line in lines]
        control.write_text("\n".join(lines) + "\n")
        target = folder / package.name.replace("_amd64", "+next_amd64")
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(tree), str(target)], check=True, capture_output=True)
        subprocess.run(["rm", "-rf", str(tree)], check=True)
    return folder


def _version(package: Path) -> str:
    return subprocess.run(["dpkg-deb", "-f", str(package), "Version"], check=True, capture_output=True, text=True).stdout.strip()


def test_an_upgrade_of_the_packages_restarts_both_daemons_and_disturbs_no_job(cluster: Cluster, packages: Path, tmp_path: Path) -> None:
    counter = node_and_job(cluster)
    host = cluster.host
    before = {main_process(cluster, unit) for unit in ("gpuctld", "gpuagent")}
    shims = host.run("pgrep -x gpushim").split()
    install(host, raised(packages, tmp_path / "raised"))
    cluster.wait_for_node(host.name)
    after = {main_process(cluster, unit) for unit in ("gpuctld", "gpuagent")}
    assert not before & after and 0 not in after
    assert set(host.run("pgrep -x gpushim").split()) & set(shims), "the job's supervisor was ended"
    counter.more()
    counter.finish(host)


@pytest.mark.long
def test_the_journal_tells_what_happened_with_priorities(cluster: Cluster) -> None:
    host = cluster.start_controller()
    cluster.join(host)
    job = cluster.submit("-- sh -c 'exit 3'")
    cluster.wait_for(job)
    assert job in host.run("journalctl -u gpuagent --no-pager")
    assert "node registered" in host.run("journalctl -u gpuctld -u gpuagent --no-pager")
    # A warning is one to journald, too, and is not told as information.
    host.run("systemctl stop gpuctld")
    eventually(lambda: "controller lost" in host.run("journalctl -u gpuagent -p warning --no-pager"), "the agent to miss its controller")
    assert "agent starts" not in host.run("journalctl -u gpuagent -p warning --no-pager")
