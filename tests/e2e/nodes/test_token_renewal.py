# SPDX-License-Identifier: Apache-2.0
"""The token of a node that joined is renewed, and an older one is soon worth nothing; whatever is lost on the way, the node goes on."""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness import Api, Cluster, Problem, eventually, run_gpuctl

LIFE = "1s"


@pytest.fixture
def cluster(make_cluster: Callable[..., Cluster]) -> Iterator[Cluster]:
    yield make_cluster()


def begin(cluster: Cluster, *arguments: str) -> str:
    """An agent with a token of its own, which it was given when it joined."""
    token = cluster.own_node_token("here")
    (cluster.folder / "node.token").write_text(token + "\n")
    cluster.add_agent("here", 1, *arguments)
    cluster.wait_ready()
    return token


def kept(cluster: Cluster) -> str:
    return (cluster.folder / "node.token").read_text().strip()


def status(cluster: Cluster, token: str) -> int:
    """Of a request that every valid token may make."""
    return Api(cluster.url, token).raw("GET", "/version")[0]


def valid(cluster: Cluster) -> list[str]:
    tokens: list[dict[str, Any]] = cluster.api.get("/v1/tokens")["tokens"]
    return [token["id"] for token in tokens if token.get("node") == "here" and not token["revoked"]]


def renew(cluster: Cluster, token: str, secret: str) -> str:
    order = {"node": "here", "secret_sha256": hashlib.sha256(secret.encode()).hexdigest()}
    return f"gct_{Api(cluster.url, token).post('/v1/agent/token', order)['token_id']}_{secret}"


def test_the_token_is_renewed_while_jobs_run_and_older_ones_end(cluster: Cluster) -> None:
    first = begin(cluster, "--token-life", LIFE)
    job = cluster.api.submit(["sleep", "1000"])
    cluster.wait_state(job, "RUNNING")
    second = eventually(lambda: kept(cluster) if kept(cluster) != first else None, "a new token")
    eventually(lambda: kept(cluster) != second, "one more")
    eventually(lambda: status(cluster, first) == status(cluster, second) == 401, "the older ones to end")
    assert status(cluster, kept(cluster)) == 200
    assert cluster.api.job(job)["state"] == "RUNNING"
    mode = (cluster.folder / "node.token").stat().st_mode & 0o777
    assert mode == 0o600
    made = [row for row in cluster.api.get("/v1/audit?path=/v1/agent/token")["audit"] if row["status"] == 201]
    assert len(made) >= 2 and all(row["owner"] == "here" and row["subject"] for row in made)


def test_a_young_token_stays_and_an_old_one_is_renewed_at_the_start(cluster: Cluster) -> None:
    first = begin(cluster, "--token-life", "2h")
    cluster.agents[0].kill()
    cluster.agents[0].start()
    cluster.wait_ready()
    assert kept(cluster) == first and len(valid(cluster)) == 1
    cluster.agents[0].kill()
    file = cluster.folder / "node.token"
    os.utime(file, (1, 1))
    cluster.agents[0].start()
    eventually(lambda: kept(cluster) != first, "a new token")
    eventually(lambda: len(valid(cluster)) == 1, "the old one to end")


def test_an_answer_that_is_lost_costs_nothing(cluster: Cluster) -> None:
    """The older token is good until a newer one is used, then all others end, also those whose answers were lost."""
    first = begin(cluster, "--token-life", "0")
    lost = [renew(cluster, first, letter * 43) for letter in "BC"]
    assert len(valid(cluster)) == 3 and status(cluster, first) == 200
    assert cluster.api.wait(cluster.api.submit(["true"]))["state"] == "SUCCEEDED"
    new = renew(cluster, first, "D" * 43)
    assert status(cluster, new) == 200
    assert [status(cluster, token) for token in (first, *lost)] == [401, 401, 401]
    assert cluster.controller.kill() != 0
    cluster.start_controller()
    assert valid(cluster) == [new.split("_")[1]] and status(cluster, first) == 401
    (cluster.folder / "node.token").write_text(new + "\n")  # which the agent reads when it is refused
    assert cluster.api.wait(cluster.api.submit(["true"]))["state"] == "SUCCEEDED"


def test_a_token_for_all_nodes_is_not_renewed_and_nobody_renews_that_of_another(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, agent=["--token-life", LIFE])
    shared = kept(cluster)
    other, third = cluster.own_node_token("other"), cluster.own_node_token("third")
    for token, node, expected in ((shared, "node0", 409), (other, "node0", 403), (third, "third", 422)):
        with pytest.raises(Problem) as refused:
            Api(cluster.url, token).post("/v1/agent/token", {"node": node, "secret_sha256": "0" * (64 if expected != 422 else 63)})
        assert refused.value.status == expected
    assert cluster.api.wait(cluster.api.submit(["true"]))["state"] == "SUCCEEDED"
    assert kept(cluster) == shared


def renew_now(cluster: Cluster) -> str:
    """The agent starts again with a token that is old."""
    before = kept(cluster)
    cluster.agents[0].kill()
    os.utime(cluster.folder / "node.token", (1, 1))
    cluster.agents[0].start()
    return eventually(lambda: kept(cluster) if kept(cluster) != before and len(valid(cluster)) == 1 else None, "a new token to be used")


def test_a_node_comes_back_by_itself_to_a_controller_that_was_restored(cluster: Cluster) -> None:
    """The backup knows the second of four tokens."""
    first = begin(cluster, "--token-life", "2h")
    second = renew_now(cluster)
    state, backup = cluster.folder / "controller", cluster.folder / "backup"
    made = run_gpuctl("admin", "backup", str(backup), "--state", str(state))
    assert made.returncode == 0, made.stderr
    third, fourth = renew_now(cluster), renew_now(cluster)
    assert [status(cluster, token) for token in (first, second, third, fourth)] == [401, 401, 401, 200]
    assert cluster.controller.kill(signal.SIGTERM) == 0
    restored = run_gpuctl("admin", "restore", str(backup), "--state", str(state))
    assert restored.returncode == 0, restored.stderr
    cluster.start_controller()
    fifth = eventually(lambda: kept(cluster) if kept(cluster) != fourth else None, "a token of the restored controller")
    assert cluster.api.wait(cluster.api.submit(["true"]))["state"] == "SUCCEEDED"
    eventually(lambda: status(cluster, second) == 401, "the token of the backup to end")
    assert [status(cluster, token) for token in (first, third, fourth, fifth)] == [401, 401, 401, 200]
    said = cluster.agents[0].said()
    assert said.count("earlier node token number=2") == 1, said
    earlier = cluster.folder / "node.token.earlier"
    assert earlier.read_text().split() == [fourth, third, second, first] and earlier.stat().st_mode & 0o777 == 0o600


def test_a_node_whose_tokens_were_revoked_stays_out_and_says_so_once(cluster: Cluster) -> None:
    tokens = [begin(cluster, "--token-life", "2h"), renew_now(cluster), renew_now(cluster)]
    (last,) = valid(cluster)
    cluster.api.post(f"/v1/tokens/{last}/revoke")
    eventually(lambda: "node tokens refused tried=3" in cluster.agents[0].said(), "the agent to give up")
    other = cluster.user("ann")
    assert other.get("/v1/jobs")["jobs"] == [], "people at the same address are served"
    eventually(lambda: cluster.nodes()["here"]["state"] != "READY", "the node to be missed")
    assert [status(cluster, token) for token in tokens] == [401, 401, 401] and kept(cluster) == tokens[-1]
    assert cluster.agents[0].said().count("node tokens refused") == 1
