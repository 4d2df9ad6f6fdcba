# SPDX-License-Identifier: Apache-2.0
"""Two machines that are clones of one another: agents of one name."""

from __future__ import annotations

from cluster import Cluster


def test_a_second_machine_of_a_name_is_refused_and_no_task_runs_twice(cluster: Cluster) -> None:
    """M3: cloned machines share a host name; both agents ran the tasks."""
    host = cluster.start_controller()
    first = cluster.machine()
    second = cluster.machine()
    second.run(f"hostnamectl set-hostname {first.name} && cp /etc/machine-id /root/ && true")
    cluster.join(first)
    cluster.join(second, wait=False)
    second.wait_until("journalctl -u gpuagent --no-pager | grep -q -- --name", "the refusal, with its remedy")
    array = cluster.submit("--array 8 -- sh -c 'echo ran >>/var/tmp/ran'")
    assert cluster.wait_for(array)["state"] == "SUCCEEDED"
    counts = [int(machine.run("cat /var/tmp/ran 2>/dev/null | wc -l")) for machine in (first, second)]
    assert counts == [8, 0]
    assert int(second.run("journalctl -u gpuagent --no-pager | wc -l")) < 60, "the refused agent floods its journal"
    assert host.run("journalctl -u gpuctld --no-pager | wc -l").strip().isdigit()
