# SPDX-License-Identifier: Apache-2.0
"""Agents of ordinary users, who log out, and agents in containers."""

from __future__ import annotations

import pytest

from cluster import Cluster
from counter import Counter

pytestmark = pytest.mark.long

OPTIONS = "--cpu-slots 2 --name ann"


def test_with_linger_a_logout_disturbs_no_job_of_the_users_agent(cluster: Cluster) -> None:
    host = cluster.start_controller()
    host.run("loginctl enable-linger ann")
    host.run(f"{cluster.join_line()} {OPTIONS}", user="ann", own=True)
    cluster.wait_for_node("ann")
    counter = Counter(cluster)
    assert cluster.nodes()["ann"]["isolation"] == "cgroup2"
    host.run("true", user="ann", own=True)
    counter.more()
    counter.finish(host)


def test_an_agent_that_is_started_from_elsewhere_finds_what_the_first_one_runs(cluster: Cluster) -> None:
    """M2: without XDG_RUNTIME_DIR, as from cron, it looked into another folder, and the job ran twice."""
    host = cluster.start_controller()
    host.run(f"{cluster.join_line()} {OPTIONS} --no-start", user="ann", own=True)
    host.run("setsid gpuagent >first.log 2>&1 </dev/null & echo $! >pid", user="ann", own=True)
    cluster.wait_for_node("ann")
    counter = Counter(cluster)
    host.run("pkill -9 -x gpuagent", user="ann")
    host.run("su - ann -c 'env -u XDG_RUNTIME_DIR setsid gpuagent >second.log 2>&1 </dev/null &'")
    cluster.wait_for_node("ann")
    counter.more()
    counter.finish(host)


def test_an_agent_runs_in_a_container(cluster: Cluster) -> None:
    host = cluster.start_controller()
    host.run("tar -C / -c usr bin sbin lib lib64 etc/passwd etc/group etc/ssl | podman import - local/node >/dev/null", patience=600)
    begin = f"{cluster.join_line()} {OPTIONS} --no-start && exec gpuagent --state /state --run /run/agent"
    host.run(f"podman run -d --name node --net host --tmpfs /state --tmpfs /run local/node sh -c '{begin}'")
    cluster.wait_for_node("ann")
    assert "hello" in cluster.gpuctl("run -- echo hello")
