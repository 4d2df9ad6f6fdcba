# SPDX-License-Identifier: Apache-2.0
"""The cluster at a glance: one answer serves all who ask, and shows a user no other user's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import Api, Cluster, eventually


def gate(path: Path) -> list[str]:
    return ["sh", "-c", f"while ! test -e {path}; do sleep 0.01; done"]


def fresh(api: Api, condition: Callable[[Any], Any]) -> Any:
    """The first overview for which the condition holds: an older answer may be given for some seconds."""

    def look() -> Any:
        overview = api.get("/v1/overview")
        return overview if condition(overview) else None

    return eventually(look, "the overview")


def test_gpus_jobs_users_and_problems_are_counted(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(2, 2)
    ann, bob = cluster.user("ann"), cluster.user("bob")
    first, second = ann.submit(gate(tmp_path / "gate"), gpus=2), bob.submit(gate(tmp_path / "gate"))
    for job in (first, second):
        cluster.wait_state(job, "RUNNING")
    waiting = ann.submit(["true"], gpus=2)
    held = ann.submit(["true"], hold=True)
    overview = fresh(cluster.api, lambda found: found["jobs"]["HELD"] == 1 and len(found["users"]) == 2 and found["oldest_waiting_at"])
    (supply,) = overview["gpus"]
    assert supply == {"gpu_type": "cpu", "pool": "default", "kind": "on-demand", "nodes": 2, "total": 4, "free": 1, "unavailable": 0}
    assert {state: count for state, count in overview["jobs"].items() if count} == {"RUNNING": 2, "QUEUED": 1, "HELD": 1}
    assert overview["users"] == [{"owner": "ann", "gpus": 2, "jobs": 1}, {"owner": "bob", "gpus": 1, "jobs": 1}]
    assert overview["oldest_waiting_at"] == cluster.api.job(waiting)["created_at"]
    assert (overview["problems"], overview["problem_count"], overview["leases_held"], overview["disk_full"]) == ([], 0, False, False)
    assert bob.get("/v1/overview")["users"] == [{"owner": "bob", "gpus": 1, "jobs": 1}, {"owner": None, "gpus": 2, "jobs": 1}]
    idle = next(node["name"] for node in cluster.api.get("/v1/nodes")["nodes"] if node["free_gpus"] == 1)
    cluster.api.post(f"/v1/nodes/{idle}/drain", {"reason": "a fan"})
    overview = fresh(cluster.api, lambda found: found["problem_count"] == 1)
    assert overview["problems"] == [{"node": idle, "state": "DRAINING", "unavailable_gpus": 0, "reason": "a fan"}]
    assert (overview["gpus"][0]["free"], overview["gpus"][0]["unavailable"]) == (0, 1)
    cluster.api.post(f"/v1/nodes/{idle}/resume")
    (tmp_path / "gate").touch()
    cluster.api.wait(waiting)
    ann.post(f"/v1/jobs/{held}/cancel")
    assert fresh(cluster.api, lambda found: found["users"] == [])["oldest_waiting_at"] is None


def test_a_node_that_is_silent_is_a_problem_and_an_empty_cluster_is_none(make_cluster: Callable[..., Cluster]) -> None:
    empty = make_cluster()
    assert (empty.api.get("/v1/overview")["gpus"], empty.api.get("/v1/overview")["problems"]) == ([], [])
    cluster = make_cluster(1)
    cluster.agents[0].kill()
    overview = fresh(cluster.api, lambda found: found["problem_count"] == 1)
    assert overview["problems"][0]["state"] in ("SUSPECT", "LOST") and overview["gpus"][0]["free"] == 0
