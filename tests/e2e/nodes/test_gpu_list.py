# SPDX-License-Identifier: Apache-2.0
"""All GPUs of the cluster, one by one: what each does, who holds it, and why no job can get it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Api, Cluster, Problem, eventually, run_gpuctl
from test_gpus import GpuNode


@pytest.fixture
def gpus(make_cluster: Callable[..., Cluster], tmp_path: Path) -> Iterator[GpuNode]:
    node = GpuNode(make_cluster(), tmp_path, "GPU-list-")
    yield node
    node.show()


def listed(api: Api, query: str = "") -> Any:
    return api.get(f"/v1/gpus{query}")["gpus"]


def names(api: Api, query: str = "") -> list[str]:
    return [f"{gpu['node']}:{gpu['index']}" for gpu in listed(api, query)]


def held(api: Api, count: int) -> list[Any]:
    """The GPUs that are allocated, once there are so many: who holds them may be some seconds old."""

    def look() -> Any:
        found = listed(api, "?state=allocated")
        return found if len(found) == count else None

    if count == 0:
        eventually(lambda: not listed(api, "?state=allocated"), "the GPUs to be given back")
        return []
    found: list[Any] = eventually(look, f"{count} GPUs to be held")
    return found


def environment(cluster: Cluster) -> dict[str, str]:
    token = cluster.folder / "controller" / "admin.token"
    return {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token), "LC_ALL": "C"}


def test_a_gpu_says_what_it_does_and_which_job_holds_it(gpus: GpuNode) -> None:
    gpus.show("busy 0 97", "power 0 650250", "memory 0 1024", "temperature 0 64")
    eventually(lambda: (listed(gpus.api)[0]["sample"] or {}).get("utilization_percent") == 97, "the sample")
    first, _, third = listed(gpus.api)
    age = first["sample"].pop("age_s")
    assert 0 <= age < 180 and first == {
        "node": "g1", "index": 0, "uuid": "GPU-list-0", "gpu_type": "H100", "slot": False, "pool": "default", "pool_kind": "on-demand",
        "node_state": "READY", "state": "free", "unavailable": None, "holder": None,
        "sample": {
            "utilization_percent": 97, "memory_bytes": 1 << 30, "memory_total_bytes": 80 << 30, "power_w": 650, "temperature_c": 64,
        },
    }  # fmt: skip
    assert third["sample"]["power_w"] is None and third["gpu_type"] == "RTX4090"
    ann, ben = gpus.cluster.user("ann"), gpus.cluster.user("ben")
    gpus.cluster.open_project("vision")
    job = ann.submit(["sleep", "600"], gpus=2, gpu_type="H100", project="vision", name="big")
    holders = [gpu["holder"] for gpu in held(gpus.api, 2)]
    since = {holder.pop("since") for holder in holders}
    assert len(since) == 1 and since.pop() >= gpus.api.job(job)["created_at"]
    assert holders == [{"job": job, "name": "big", "owner": "ann", "project": "vision", "rank": rank} for rank in (0, 1)]
    assert names(gpus.api, "?owner=ann") == names(ann, "?owner=ann") == ["g1:0", "g1:1"]
    assert [(gpu["state"], gpu["holder"]) for gpu in listed(ben)] == [("allocated", None)] * 2 + [("free", None)]
    assert listed(ben, "?owner=ann") == [] == listed(gpus.api, "?owner=ben")
    ann.post(f"/v1/jobs/{job}/cancel")
    held(gpus.api, 0)


def test_a_gpu_that_no_job_can_get_says_why_and_one_of_a_silent_or_drained_node_does(gpus: GpuNode) -> None:
    gpus.show("mig 2 1")
    gpus.await_unavailable("MIG is enabled")
    (broken,) = listed(gpus.api, "?state=unavailable")
    assert broken["index"] == 2 and "MIG is enabled" in broken["unavailable"]
    gpus.api.post("/v1/nodes/g1/drain", {})
    assert [gpu["state"] for gpu in listed(gpus.api)] == ["drained", "drained", "unavailable"]
    gpus.api.post("/v1/nodes/g1/resume", {})
    gpus.agent.kill()
    eventually(lambda: [gpu["state"] for gpu in listed(gpus.api)] == ["silent", "silent", "unavailable"], "the node to be silent")
    assert {gpu["node_state"] for gpu in listed(gpus.api)} == {"SUSPECT"}


def test_filters_and_pages_find_each_device_once_and_in_order(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(2, 3)
    cluster.add_agent("spare", 12, "--gpu-type", "small", "--pool", "other")
    eventually(lambda: len(cluster.nodes()) == 3, "the nodes to register")
    first, second = sorted(set(cluster.nodes()) - {"spare"})
    every = [f"{node}:{index}" for node, count in ((first, 2), (second, 3), ("spare", 12)) for index in range(count)]
    every.sort(key=lambda name: (name.split(":")[0], int(name.split(":")[1])))
    assert names(cluster.api) == every and all(gpu["slot"] and gpu["sample"] is None for gpu in listed(cluster.api))
    for query, wanted in {
        f"node={second}": [name for name in every if name.startswith(f"{second}:")],
        "pool=other": [name for name in every if name.startswith("spare:")],
        "gpu_type=small&state=free,silent": [name for name in every if name.startswith("spare:")],
        "node=none-such": [],
        "pool=default&gpu_type=small": [],
        "state=silent": [],
    }.items():
        assert names(cluster.api, f"?{query}") == wanted, query
        for limit in (1, 2, 3, 1000):
            found, cursor = [], ""
            while cursor is not None:
                page = cluster.api.get(f"/v1/gpus?{query}&limit={limit}{cursor and f'&cursor={cursor}'}")
                assert len(page["gpus"]) <= limit
                found += [f"{gpu['node']}:{gpu['index']}" for gpu in page["gpus"]]
                cursor = page["next"]
                assert len(found) <= len(wanted), (query, limit, found)
            assert found == wanted, (query, limit)


@pytest.mark.parametrize(
    ("query", "field"),
    [("state=broken", "state"), ("state=", "state"), ("limit=1001", "limit"), ("cursor=a:x", "cursor"), ("cursor=%20", "cursor"),
     ("cursor=a:-2", "cursor"), ("node=a/b", "node"), ("pool=", "pool"), ("owner=-", "owner"), ("gpu_type=%2a", "gpu_type"), ("x=1", "x")],
)  # fmt: skip
def test_a_filter_that_is_none_is_refused_by_its_name(cluster: Cluster, query: str, field: str) -> None:
    with pytest.raises(Problem) as refused:
        cluster.api.get(f"/v1/gpus?{query}")
    assert refused.value.status in (400, 422) and refused.value.body["field"] == field


def test_gpuctl_lists_gpus_as_a_table_as_json_and_as_csv(gpus: GpuNode) -> None:
    gpus.show("mig 2 1")
    gpus.await_unavailable("MIG is enabled")
    job = gpus.cluster.user("ann").submit(["sleep", "600"], gpu_type="H100")
    held(gpus.api, 1)
    gpus.show("busy 0 42", "memory 0 20480", "temperature 0 61", "power 0 300000", "mig 2 1")
    eventually(lambda: (listed(gpus.api)[0]["sample"] or {}).get("utilization_percent") == 42, "the sample")
    env = environment(gpus.cluster)
    table = run_gpuctl("gpus", env=env).stdout.splitlines()
    assert table[0].split() == ["NODE", "GPU", "TYPE", "STATE", "UTIL", "MEM", "TEMP", "JOB", "OWNER"]
    assert table[1].split() == ["g1", "0", "H100", "allocated", "42", "%", "20.0/80", "GiB", "61", "C", job, "ann"]
    assert re.search(r"^g1 +2 +RTX4090 +unavailable +\S+ +%?.* - +-$", table[3])
    wide = run_gpuctl("gpus", "--state", "unavailable", "-o", "wide", env={**env, "COLUMNS": "400"}).stdout
    assert "MIG is enabled" in wide and "GPU-list-2" in wide and "GPU-list-0" not in wide
    assert run_gpuctl("gpus", "--owner", "ann", "-q", env=env).stdout == "GPU-list-0\n"
    lines = list(csv.DictReader(io.StringIO(run_gpuctl("gpus", "--node", "g1", "--csv", env=env).stdout)))
    assert [line["uuid"] for line in lines] == [f"GPU-list-{index}" for index in range(3)]
    assert (lines[0]["job"], lines[0]["utilization_percent"], lines[1]["job"]) == (job, "42", "")
    assert "MIG is enabled" in lines[2]["unavailable"]
    wrong = run_gpuctl("gpus", "--state", "broken", env=env)
    assert wrong.returncode == 2 and "allocated" in wrong.stderr
