# SPDX-License-Identifier: Apache-2.0
"""Networks that are cut, slow, lossy and disordered, by the kernel of the node; clocks that jump."""

from __future__ import annotations

import pytest

from cluster import Cluster
from counter import Counter

pytestmark = pytest.mark.long

#: The card of the cluster's network.
CARD = "$(ip -o -4 address | awk '/10.77.0/ {print $2}')"


def counting(cluster: Cluster) -> Counter:
    cluster.start_controller()
    cluster.join(cluster.machine())
    return Counter(cluster)


def test_a_cut_network_stops_no_job_and_its_output_comes_when_it_is_mended(cluster: Cluster) -> None:
    counter = counting(cluster)
    node = cluster.machines[1]
    node.run(f"ip link set {CARD} down")
    cluster.wait_for_node(node.name, "SUSPECT")
    assert cluster.job(counter.job)["state"] == "RUNNING"
    node.run("networkctl up ens4 && networkctl reconfigure ens4")
    cluster.wait_for_node(node.name)
    counter.more()
    counter.finish(node)


@pytest.mark.parametrize("how", ["delay 300ms 100ms", "loss 20%", "delay 50ms reorder 50% 50%", "duplicate 30%", "corrupt 5%"])
def test_a_bad_network_loses_nothing(cluster: Cluster, how: str) -> None:
    counter = counting(cluster)
    node = cluster.machines[1]
    node.run(f"modprobe sch_netem && tc qdisc add dev {CARD} root netem {how}")
    counter.more()
    node.run("install -m 777 /dev/null /srv/ran")  # jobs run as the users of their owners
    array = cluster.submit("--array 5 -- sh -c 'echo ran >>/srv/ran'")
    assert cluster.wait_for(array)["state"] == "SUCCEEDED"
    assert node.run("cat /srv/ran").split() == ["ran"] * 5
    counter.finish(node)


@pytest.mark.parametrize(("step", "back"), [("+1 day", "-1 day"), ("-1 day", "+1 day"), ("+20 years", "-20 years")])
@pytest.mark.parametrize("whose", ["node", "controller"])
def test_a_clock_that_jumps_disturbs_no_job(cluster: Cluster, step: str, back: str, whose: str) -> None:
    counter = counting(cluster)
    machine = cluster.machines[1] if whose == "node" else cluster.host
    machine.run(f"date -s '{step}'")
    if whose == "controller" and step != "+1 day":  # there the certificate is not valid yet, or not any more
        assert "the clock of this machine" in cluster.gpuctl("ps", check=False)
        machine.run(f"date -s '{back}'")
    counter.more()
    assert "hello" in cluster.gpuctl("run -- echo hello")
    cluster.wait_for_node(cluster.machines[1].name)
    counter.finish(cluster.machines[1])
