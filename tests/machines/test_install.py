# SPDX-License-Identifier: Apache-2.0
"""The packages on a fresh machine: apt installs them, units start, a job runs; and a purge leaves nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cluster import Cluster, States, install
from machine import State

#: All files of a machine outside of folders that change by themselves.
CHANGING = ["/proc", "/sys", "/tmp", "/var/tmp", "/var/log", "/var/lib/apt", "/root"]
LISTING = f"find / -xdev \\( {' -o '.join(f'-path {folder}' for folder in CHANGING)} \\) -prune -o -print | sort"
#: What apt and adduser leave of every package.
BACKUPS = tuple(f"/etc/{name}-" for name in ["passwd", "group", "shadow", "gshadow"])
LEFT_BY_APT = ("/var/lib/dpkg/", "/var/cache/", "/var/lib/systemd/", "/run/", *BACKUPS)


def test_a_job_runs_on_a_fresh_machine_after_the_packages_are_installed(cluster: Cluster) -> None:
    host = cluster.start_controller()
    cluster.join(host)
    assert "hello" in cluster.gpuctl("run -- echo hello")
    for unit in ("gpuctld", "gpuagent"):
        assert host.run(f"systemctl is-active {unit} && systemctl is-enabled {unit}").split() == ["active", "enabled"]
    # M4: what a job is given
    job = cluster.submit("-- sh -c 'ulimit -l'")
    cluster.wait_for(job)
    assert cluster.output(job) == ["unlimited"]


def test_without_configuration_the_agent_does_not_start_and_nothing_fails(cluster: Cluster) -> None:
    machine = cluster.machine()
    assert machine.run("systemctl is-active gpuagent", check=False).strip() == "inactive"
    assert machine.run("systemctl --failed --no-legend").strip() == ""


@pytest.mark.long
def test_a_purge_of_the_packages_leaves_nothing(make_cluster: Callable[[State], Cluster], states: States, packages: Path) -> None:
    cluster = make_cluster(states.booted)
    machine = cluster.machine()
    before = set(machine.run(LISTING).splitlines())
    install(machine, packages)
    cluster.configure_controller(machine)
    cluster.join(machine)
    cluster.gpuctl("run -- echo hello")
    machine.run("DEBIAN_FRONTEND=noninteractive apt-get purge -y gpuctl gpuctl-controller gpuctl-agent")
    left = set(machine.run(LISTING).splitlines()) - before
    assert not [path for path in left if not path.startswith(LEFT_BY_APT) or "gpu" in path]
    assert "gpu" not in machine.run("cat /etc/passwd /etc/group; ps -eo args | grep -v 'grep\\|ps -eo'; ls /run /etc/systemd/system")
