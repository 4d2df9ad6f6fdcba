# SPDX-License-Identifier: Apache-2.0
"""Where jobs go: labels, constraints, nodes to avoid or exclude, spread; on two nodes of two CPU slots with labels of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Cluster, Problem, run_gpuctl


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(Path(tmp_path_factory.mktemp("labelled")), slots=[])
    cluster.start()
    cluster.add_agent("left", 2, "--label", "zone=a", "--label", "disk=ssd")
    cluster.add_agent("right", 2, "--label", "zone=b", "--gpu-type", "slot")
    cluster.wait_ready()
    yield cluster
    cluster.stop()


def gpuctl(cluster: Cluster, *arguments: str) -> Any:
    token = cluster.folder / "controller" / "admin.token"
    return run_gpuctl(*arguments, env={"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token)})


def nodes_of(cluster: Cluster, gpus: int = 1, **spec: Any) -> list[str]:
    view = cluster.api.wait(cluster.api.submit(["true"], gpus=gpus, **spec))
    assert view["state"] == "SUCCEEDED", view
    return [node["node"] for node in view["nodes"]]


def test_labels_are_shown_wherever_nodes_are(labelled: Cluster) -> None:
    images = {"images": "oci"} if "images" in labelled.nodes()["left"]["labels"] else {}  # where crun is installed
    shows = ",".join(f"{name}={value}" for name, value in sorted({"disk": "ssd", "zone": "a", **images}.items()))
    assert labelled.nodes()["left"]["labels"] == {"disk": "ssd", "zone": "a", **images}
    assert labelled.nodes()["right"]["labels"] == {"zone": "b", **images}
    listed = gpuctl(labelled, "nodes", "list", "-o", "wide")
    assert shows in listed.stdout, listed
    shown = gpuctl(labelled, "nodes", "show", "left")
    assert shows in shown.stdout and "slot-1" in shown.stdout, shown
    assert json.loads(gpuctl(labelled, "nodes", "show", "right", "-o", "json").stdout)["labels"] == {"zone": "b", **images}


def test_constraints_choose_the_node(labelled: Cluster) -> None:
    assert nodes_of(labelled, constraints={"zone": "b"}) == ["right"]
    assert nodes_of(labelled, constraints={"zone": ["a", "c"], "disk": "ssd"}) == ["left"]
    assert nodes_of(labelled, constraints={"disk": {"not": "ssd"}}) == ["right"]
    assert nodes_of(labelled, constraints={"node": "left"}) == ["left"]
    assert nodes_of(labelled, exclude=["left"]) == ["right"]
    assert nodes_of(labelled, avoid=["left"]) == ["right"]
    assert nodes_of(labelled, gpus=2, avoid=["right"], gpu_type="slot") == ["right"]


def test_types_are_taken_in_order_of_preference(labelled: Cluster) -> None:
    assert nodes_of(labelled, gpu_type="slot|cpu") == ["right"]
    assert nodes_of(labelled, gpu_type=["cpu", "slot"]) == ["left"]
    job = labelled.api.submit(["true"], gpu_type=["H100", "slot"])
    assert labelled.api.wait(job)["gpu_type"] == "H100|slot"


def test_what_no_node_can_fulfil_is_refused_with_the_reason(labelled: Cluster) -> None:
    with pytest.raises(Problem) as refusal:
        labelled.api.submit(["true"], constraints={"zone": "c"})
    assert (refusal.value.status, refusal.value.field) == (422, "constraints.zone")
    assert "zone=c fails on 2 of 2 nodes" in refusal.value.body["detail"]
    with pytest.raises(Problem) as refusal:
        labelled.api.submit(["true"], constraints={"zone": {"in": ["a"], "not": ["a"]}})
    assert refusal.value.field == "constraints.zone"


def test_gpuctl_says_it_with_options(labelled: Cluster) -> None:
    told = gpuctl(labelled, "run", "--constraint", "zone=b,c", "--constraint", "zone!=c", "--", "sh", "-c", "echo done")
    assert told.returncode == 0 and "done" in told.stdout, told
    newest = labelled.api.job(labelled.api.get("/v1/jobs?limit=1")["jobs"][0]["id"])
    assert [node["node"] for node in newest["nodes"]] == ["right"]
    assert newest["spec"]["constraints"] == {"zone": {"in": ["b", "c"], "not": ["c"]}}
    refused = gpuctl(labelled, "run", "--exclude", "left,right", "--", "true")
    assert refused.returncode == 125 and "exclude left,right fails on 2 of 2 nodes" in refused.stderr, refused


def test_spread_takes_both_nodes_and_pack_one(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, slots=[2, 2])
    cluster.start()
    try:
        assert nodes_of(cluster, gpus=2, placement="spread") == ["node0", "node1"]
        assert len(nodes_of(cluster, gpus=2)) == 1
    finally:
        cluster.stop()
