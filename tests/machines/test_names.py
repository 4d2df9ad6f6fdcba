# SPDX-License-Identifier: Apache-2.0
"""Two machines of one name: one that would join under a name that is taken, and one whose disk is a copy of a node's."""

from __future__ import annotations

from cluster import Cluster

#: What makes a machine the node that it is.
IDENTITY = "etc/gpuctl etc/hostname etc/machine-id var/lib/gpuagent"


def test_a_copy_of_a_node_is_refused_and_no_task_runs_twice(cluster: Cluster) -> None:
    """M3: cloned machines share name and identity; both agents ran the tasks."""
    cluster.start_controller()
    first, second = cluster.machine(), cluster.machine()
    cluster.join(first)
    second.run(f"hostnamectl set-hostname {first.name}")
    refusal = second.run(f"{cluster.join_line()} --cpu-slots 2", check=False)
    assert f"there is a node named {first.name} already" in refusal and "--name" in refusal
    copied = first.run(f"tar -C / -c {IDENTITY} | base64")
    second.run("base64 -d | tar -C / -x && systemctl restart systemd-journald && systemctl start gpuagent", stdin=copied)
    second.wait_until("journalctl -u gpuagent --no-pager | grep 'node refused' | grep -q -- --name", "the refusal, with its remedy")
    for machine in (first, second):
        machine.run("install -m 777 /dev/null /srv/ran")  # jobs run as the users of their owners
    array = cluster.submit("--array 8 -- sh -c 'echo ran >>/srv/ran'")
    assert cluster.wait_for(array)["state"] == "SUCCEEDED"
    assert [machine.run("cat /srv/ran").split().count("ran") for machine in (first, second)] == [8, 0]
    assert int(second.run("journalctl -u gpuagent --no-pager | grep -c 'node refused'")) == 1, "it says so once"
