# SPDX-License-Identifier: Apache-2.0
"""Agents of ordinary users, who log out, and agents in containers."""

from __future__ import annotations

import pytest

from cluster import PORT, Cluster
from counter import Counter
from machine import Machine

pytestmark = pytest.mark.long

OPTIONS = "--cpu-slots 2 --insecure-plain-http --name ann"


def users_agent(cluster: Cluster) -> Machine:
    """A machine whose user ann has the unit of her own agent configured."""
    host = cluster.start_controller()
    token = host.run("cat /root/node.token")
    host.write("/home/ann/.config/gpuctl/node.token", token, mode="600", user="ann")
    settings = f'GPUCTL_URL=http://{host.address}:{PORT}\\nGPUAGENT_OPTIONS="{OPTIONS}"\\n'.replace("\\n", "\n")
    host.write("/home/ann/.config/gpuctl/gpuagent", settings, user="ann")
    return host


def start(host: Machine) -> None:
    host.run("systemctl --user start gpuagent", user="ann", own=True)


def test_with_linger_a_logout_disturbs_no_job_of_the_users_agent(cluster: Cluster) -> None:
    host = users_agent(cluster)
    host.run("loginctl enable-linger ann")
    start(host)
    cluster.wait_for_node("ann")
    counter = Counter(cluster)
    assert cluster.nodes()["ann"]["isolation"] == "cgroup2"
    host.run("true", user="ann", own=True)
    counter.more()
    counter.finish(host)


def test_an_agent_that_is_started_from_elsewhere_finds_what_the_first_one_runs(cluster: Cluster) -> None:
    """M2: without XDG_RUNTIME_DIR, as from cron, it looked into another folder, and the job ran twice."""
    host = users_agent(cluster)
    command = f"gpuagent --controller http://{host.address}:{PORT} --token-file .config/gpuctl/node.token {OPTIONS}"
    host.run(f"{command} >first.log 2>&1 & echo $! >pid", user="ann", own=True)
    cluster.wait_for_node("ann")
    counter = Counter(cluster)
    host.run("kill -9 $(cat pid)", user="ann")
    host.run(f"su ann -c 'cd && env -u XDG_RUNTIME_DIR {command} >second.log 2>&1 &'")
    cluster.wait_for_node("ann")
    counter.more()
    counter.finish(host)


def test_an_agent_runs_in_a_container(cluster: Cluster) -> None:
    host = cluster.start_controller()
    host.run("tar -C / -c usr bin sbin lib lib64 etc/passwd etc/group etc/ssl | podman import - local/node >/dev/null", patience=600)
    token = host.run("cat /root/node.token")
    host.write("/root/container/node.token", token, mode="600")
    agent = f"gpuagent --controller http://{host.address}:{PORT} --token-file /token/node.token --state /state --run /run/agent {OPTIONS}"
    volumes = "-v /root/container:/token:ro --tmpfs /state --tmpfs /run"
    host.run(f"podman run -d --name node --net host {volumes} local/node {agent}")
    cluster.wait_for_node("ann")
    assert "hello" in cluster.gpuctl("run -- echo hello")
