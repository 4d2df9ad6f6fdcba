# SPDX-License-Identifier: Apache-2.0
"""Reboots and power cuts: what was acknowledged is there, what was lost is run again, nothing runs twice."""

from __future__ import annotations

import pytest

from cluster import Cluster
from counter import Counter


def two_machines(cluster: Cluster) -> None:
    """The controller's host, and a node beside it."""
    cluster.start_controller()
    cluster.join(cluster.machine())


def test_a_node_that_reboots_comes_back_and_its_job_runs_again(cluster: Cluster) -> None:
    two_machines(cluster)
    node = cluster.machines[1]
    counter = Counter(cluster)
    node.reboot()
    cluster.wait_for_node(node.name)
    cluster.wait_for(counter.job, "RUNNING")
    counter.more()
    counter.finish(node, attempts=2)


@pytest.mark.long
def test_a_node_that_loses_power_comes_back_and_its_job_runs_again(cluster: Cluster) -> None:
    two_machines(cluster)
    node = cluster.machines[1]
    counter = Counter(cluster)
    node.power_cut()
    node.boot()
    cluster.wait_for_node(node.name)
    cluster.wait_for(counter.job, "RUNNING")
    counter.more()
    counter.finish(node, attempts=2)


@pytest.mark.long
@pytest.mark.parametrize("how", ["reboot", "power cut"])
def test_the_controllers_host_goes_and_comes_and_no_job_of_others_is_disturbed(cluster: Cluster, how: str) -> None:
    two_machines(cluster)
    counter = Counter(cluster)
    waiting = cluster.submit("--gpus 2 -- echo hello")
    if how == "reboot":
        cluster.host.reboot()
    else:
        cluster.host.power_cut()
        cluster.host.boot()
    cluster.wait_for_node(cluster.machines[1].name)
    counter.more()
    counter.finish(cluster.machines[1])
    assert cluster.wait_for(waiting)["state"] == "SUCCEEDED"
