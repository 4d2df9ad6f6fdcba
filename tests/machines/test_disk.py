# SPDX-License-Identifier: Apache-2.0
"""Disks that are full or may not be written."""

from __future__ import annotations

import pytest

from cluster import Cluster
from counter import Counter

pytestmark = pytest.mark.long

FILL = "dd if=/dev/zero of=/var/lib/filler bs=1M 2>/dev/null; dd if=/dev/zero of=/var/lib/filler2 bs=1k 2>/dev/null; df /var/lib >&2; true"


def test_a_full_disk_refuses_new_work_and_loses_nothing_that_was_accepted(cluster: Cluster) -> None:
    host = cluster.start_controller()
    cluster.join(cluster.machine())
    counter = Counter(cluster)
    host.run(FILL)
    refused = cluster.gpuctl("submit -- echo hello", check=False)
    assert "space" in refused or "disk" in refused, refused
    host.run("rm /var/lib/filler /var/lib/filler2")
    assert "hello" in cluster.gpuctl("run -- echo hello")
    counter.more()
    counter.finish(cluster.machines[1])


def test_a_full_disk_of_a_node_fails_no_job_that_needs_none(cluster: Cluster) -> None:
    cluster.start_controller()
    node = cluster.machine()
    cluster.join(node)
    counter = Counter(cluster)
    node.run(FILL)
    node.run("rm /var/lib/filler /var/lib/filler2")
    counter.more()
    assert "hello" in cluster.gpuctl("run -- echo hello")
    counter.finish(node)


def test_daemons_run_where_everything_but_var_is_read_only(cluster: Cluster) -> None:
    host = cluster.start_controller()
    cluster.join(host)
    host.run("systemctl stop gpuctld gpuagent && mount --bind /var /var && mount -t tmpfs tmpfs /tmp && systemctl restart systemd-journald")
    host.run("mount -o remount,bind,ro / && ! touch /etc/gpuctl/x 2>/dev/null")
    host.run("systemctl start gpuctld gpuagent")
    cluster.wait_for_node(host.name)
    assert "hello" in cluster.gpuctl("run -- echo hello")
