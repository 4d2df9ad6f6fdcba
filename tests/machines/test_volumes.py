# SPDX-License-Identifier: Apache-2.0
"""Volumes on a file server: NFS, whose server gives root no rights and is away for a while."""

from __future__ import annotations

import json

from cluster import Cluster
from machine import Machine, eventually

#: NFS 4 alone, which has no other daemons. After a start the server waits for clients that it knew before.
SERVER = """set -e
mkdir -p /srv/shared /etc/nfs.conf.d && chmod 1777 /srv/shared
printf '[nfsd]\\nvers3=n\\ngrace-time=10\\nlease-time=10\\n' >/etc/nfs.conf.d/test.conf
echo '/srv/shared *(rw,root_squash,no_subtree_check)' >/etc/exports
systemctl --quiet unmask nfs-server && systemctl start nfs-server
"""
#: Rank 0 leaves a step, which rank 1 sees on the other node. The first attempt fails then, and the second finds it.
PROGRAM = """cd $GPUCTL_CHECKPOINT_DIR || exit 1
if [ -e step ]; then exec stat -c "%U %a $(cat step)" .; fi
[ $RANK = 0 ] && hostname >new && mv new step
until [ -e step ]; do ls >/dev/null; sleep 0.1; done
exit 3
"""


def mount(machine: Machine, server: Machine) -> None:
    machine.run(f"mkdir -p /mnt/shared && mount -t nfs4 -o hard,timeo=30 {server.address}:/srv/shared /mnt/shared")


def submit(cluster: Cluster, words: str) -> str:
    """As ann."""
    return str(json.loads(cluster.host.run(f"GPUCTL_TOKEN_FILE=~/ann.token gpuctl submit -o json {words}"))["id"])


def test_checkpoints_lie_on_a_file_server_that_gives_root_no_rights_and_may_be_away(cluster: Cluster) -> None:
    host = cluster.start_controller()
    host.run(SERVER)
    nodes = [cluster.machine(), cluster.machine()]
    for node in nodes:
        mount(node, host)
        cluster.join(node, "--volume shared=/mnt/shared")
        of_root = "/mnt/shared/of-root"
        assert node.run(f"mkdir {of_root} && stat -c %U {of_root} && rmdir {of_root}").strip() == "nobody"
    cluster.gpuctl("token create --owner ann --out ~/ann.token")
    wants = "--volume shared --checkpoint-volume shared"

    host.write("program", PROGRAM)
    job = submit(cluster, f"{wants} --gpus 2 --placement spread --retries 1 -- sh -c \"$(cat program)\"")
    ended = cluster.wait_for(job)
    assert (ended["state"], ended["attempt"]) == ("SUCCEEDED", 2), (ended, cluster.ask(f"logs {job}"))
    assert {one["node"] for one in ended["nodes"]} == {node.name for node in nodes}
    user, mode, name = cluster.output(job)
    assert (user, mode) == ("ann", "700") and name in {node.name for node in nodes}

    host.run("systemctl stop nfs-server")
    waits = submit(cluster, f"{wants} -- true")
    assert cluster.wait_for(submit(cluster, "-- true"))["state"] == "SUCCEEDED"
    eventually(lambda: "volume shared fails on 2 of 2 nodes" in cluster.ask(f"explain {waits}"), "the reason why the job waits")
    host.run("systemctl start nfs-server")
    assert cluster.wait_for(waits)["state"] == "SUCCEEDED"
