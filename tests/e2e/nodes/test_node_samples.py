# SPDX-License-Identifier: Apache-2.0
"""What nodes and their GPUs use: at /metrics, and in the samples of a node."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Api, Cluster, Problem, eventually, run_gpuctl
from test_gpus import GpuNode

SHOWN = ["busy 0 97", "power 0 650250", "memory 0 1024", "temperature 0 64", "energy 0 5000000123", "busy 2 5"]
GPU_0 = 'node="g1",gpu="0",uuid="GPU-samples-0"'


@pytest.fixture
def gpus(make_cluster: Callable[..., Cluster], tmp_path: Path) -> Iterator[GpuNode]:
    node = GpuNode(make_cluster(), tmp_path, "GPU-samples-")
    node.show(*SHOWN)
    eventually(lambda: f"gpuctl_gpu_utilization_ratio{{{GPU_0}}} 0.970" in page(node.api), "the first sample")
    yield node
    node.show()


def page(api: Api) -> str:
    status, _, body = api.raw("GET", "/metrics")
    assert status == 200
    return body.decode()


def allocations(api: Api) -> list[str]:
    return re.findall(r"^gpuctl_gpu_allocation_info\{(.*)\} 1$", page(api), re.MULTILINE)


def samples(api: Api) -> Any:
    return api.get("/v1/nodes/g1/samples")


def test_what_the_driver_says_is_at_metrics_and_what_it_does_not_say_is_not(gpus: GpuNode) -> None:
    text = page(gpus.api)
    for line in (
        f"gpuctl_gpu_memory_used_bytes{{{GPU_0}}} {1 << 30}",
        f"gpuctl_gpu_memory_total_bytes{{{GPU_0}}} {80 << 30}",
        f"gpuctl_gpu_power_watts{{{GPU_0}}} 650.250",
        f"gpuctl_gpu_energy_joules_total{{{GPU_0}}} 5000000.123",
        f"gpuctl_gpu_temperature_celsius{{{GPU_0}}} 64",
        'gpuctl_gpu_utilization_ratio{node="g1",gpu="2",uuid="GPU-samples-2"} 0.050',
    ):
        assert f"\n{line}\n" in text, line
    assert not re.search(r"^gpuctl_gpu_(power|energy|temperature)\w+\{.*GPU-samples-2", text, re.MULTILINE)
    assert re.search(r'^gpuctl_node_memory_used_bytes\{node="g1"\} [1-9]', text, re.MULTILINE)
    assert "\ngpuctl_gpus_left_out 0\n" in text
    cpu = re.compile(r'^gpuctl_node_cpu_utilization_ratio\{node="g1"\} [01]\.\d{3}$', re.MULTILINE)
    eventually(lambda: cpu.search(page(gpus.api)), "the CPU's use")


def test_energy_goes_up_with_the_driver(gpus: GpuNode) -> None:
    def joules() -> float:
        found = re.search(r"^gpuctl_gpu_energy_joules_total\{.*\} (\S+)$", page(gpus.api), re.MULTILINE)
        assert found
        return float(found[1])

    seen = [joules()]
    gpus.show(*SHOWN[:4], "energy 0 5000009000")

    def risen() -> bool:
        seen.append(joules())
        return seen[-1] == 5000009.0

    eventually(risen, "the new count")
    assert seen == sorted(seen)


def test_the_samples_of_a_node_outlast_the_controller_and_go_with_the_node(gpus: GpuNode) -> None:
    cluster = gpus.cluster
    first = eventually(lambda: samples(gpus.api)["at_ms"] and samples(gpus.api), "the first record")
    gpu = next(one for one in first["gpus"] if one["uuid"] == "GPU-samples-0")
    # The record has the node's first sample: the driver may have been asked before the file was shown.
    assert gpu["index"] == 0 and len(gpu["utilization_percent"]) == len(first["at_ms"]) == len(first["cpu_percent"])
    assert gpu["memory_bytes"][0] in (0, 1 << 30) and first["memory_bytes"][0] > 0
    assert first["gpus"][2]["power_w"] == [None] * len(first["at_ms"])
    cluster.controller.kill()
    cluster.start_controller()

    def window() -> list[int]:
        """A controller that has restarted writes its first record over one of the same half minute."""
        return [at_ms // 30_000 for at_ms in samples(gpus.api)["at_ms"][:1]]

    eventually(lambda: window() == [first["at_ms"][0] // 30_000], "the record after a restart")
    assert gpus.api.get(f"/v1/nodes/g1/samples?until={first['at_ms'][0] - 1}")["at_ms"] == []
    with pytest.raises(Problem) as refused:
        gpus.api.get("/v1/nodes/g1/samples?since=2&until=1")
    assert refused.value.status == 422
    with pytest.raises(Problem) as unknown:
        gpus.api.get("/v1/nodes/other/samples")
    assert unknown.value.status == 404
    ring = cluster.folder / "controller" / "samples" / "g1"
    assert ring.stat().st_size == 24 + 2880 * (24 + 3 * 8)
    gpus.agent.kill()
    gpus.api.call("DELETE", "/v1/nodes/g1?force=true")
    eventually(lambda: not ring.exists(), "the ring to go with its node")
    assert 'node="g1"' not in page(gpus.api)


class BusyNode(GpuNode):
    """One whose GPUs are busy from the start, so that its first record says so."""

    def show(self, *lines: str) -> None:
        super().show(*SHOWN, *lines)


def test_gpuctl_top_shows_what_nodes_and_ranks_use(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    node = BusyNode(make_cluster(), tmp_path, "GPU-samples-")
    token = node.cluster.folder / "controller" / "admin.token"
    environment = {"GPUCTL_URL": node.cluster.url, "GPUCTL_TOKEN_FILE": str(token), "LC_ALL": "C"}
    job = node.api.submit(["sleep", "1000"], gpu_type="H100")
    node.cluster.wait_state(job, "RUNNING")
    eventually(lambda: samples(node.api)["at_ms"], "the first record")
    nodes = run_gpuctl("top", env=environment).stdout
    assert re.search(r"^mixed in default +#+\.+  1 of 3 in use, 2 free, 0 unavailable$", nodes, re.MULTILINE)
    assert re.search(r"^  g1 +READY +default +mixed +##?#?\.+ 1/3 +###\.{5}  34% +\.{8} 1\.0 GiB +", nodes, re.MULTILINE), nodes
    ranks = run_gpuctl("top", job, env=environment).stdout
    assert re.search(r"^  +0  g1 +RUNNING +0 +########  97%  \.{8} 1\.0 GiB +", ranks, re.MULTILINE), ranks
    node.api.post(f"/v1/jobs/{job}/cancel")
    node.api.wait(job)


def test_a_foreign_file_in_the_place_of_a_ring_is_begun_anew(gpus: GpuNode) -> None:
    ring = gpus.cluster.folder / "controller" / "samples" / "g1"
    eventually(ring.exists, "the ring")
    gpus.cluster.controller.kill()
    ring.write_bytes(b"something else")
    gpus.cluster.start_controller()
    eventually(lambda: samples(gpus.api)["at_ms"], "a record after the file was damaged")
    assert "samples begun anew" in gpus.cluster.controller.said()


def test_allocations_name_job_and_user_while_it_runs_and_only_to_those_who_may_see_it(gpus: GpuNode) -> None:
    ann, ben = gpus.cluster.user("ann"), gpus.cluster.user("ben")
    gpus.cluster.open_project("vision")
    job = ann.submit(["sleep", "600"], project="vision")
    gpus.cluster.wait_state(job, "RUNNING")
    (labels,) = allocations(gpus.api)
    assert re.fullmatch(rf'node="g1",gpu="\d",uuid="GPU-samples-\d",job_id="{job}",user="ann",project="vision"', labels)
    assert allocations(ann) == [labels] and allocations(ben) == []
    monitor = gpus.cluster.user("probe", "monitor")
    assert allocations(monitor) == [labels]
    with pytest.raises(Problem) as refused:
        monitor.get("/v1/jobs")
    assert refused.value.status == 403
    ann.post(f"/v1/jobs/{job}/cancel")
    eventually(lambda: allocations(gpus.api) == [], "the allocation to go")


def test_idle_gpus_and_their_energy_are_in_the_usage_of_a_job_that_has_ended(gpus: GpuNode, tmp_path: Path) -> None:
    gpus.show("busy 0 4", "energy 0 1000000", "busy 2 80")
    idle = f'gpuctl_gpu_utilization_ratio{{{GPU_0}}} 0.040'
    eventually(lambda: idle in page(gpus.api), "the GPU to be idle")
    job = gpus.api.submit(["sh", "-c", f"while ! test -e {tmp_path / 'go'}; do sleep 0.02; done"], gpus=2, gpu_type="H100", project="lazy")
    busy = gpus.api.submit(["sh", "-c", f"while ! test -e {tmp_path / 'go'}; do sleep 0.02; done"], gpu_type="RTX4090", project="keen")
    for one in (job, busy):
        gpus.cluster.wait_state(one, "RUNNING")
    gpus.show("busy 0 4", "energy 0 3500000", "busy 2 80")
    eventually(lambda: f"gpuctl_gpu_energy_joules_total{{{GPU_0}}} 3500.000" in page(gpus.api), "the energy")
    (tmp_path / "go").touch()
    for one in (job, busy):
        assert gpus.api.wait(one)["state"] == "SUCCEEDED"
    lazy, keen = (gpus.api.get(f"/v1/usage?project={project}")["total"] for project in ("lazy", "keen"))
    assert 0 < lazy["idle_gpu_seconds"] == lazy["measured_gpu_seconds"] <= lazy["gpu_seconds"]
    assert lazy["energy_joules"] == 2500.0
    assert keen["idle_gpu_seconds"] == 0 < keen["measured_gpu_seconds"] and keen["energy_joules"] == 0


def test_openmetrics_is_given_to_those_who_accept_it(gpus: GpuNode) -> None:
    _, headers, body = gpus.api.raw("GET", "/metrics", None, {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.3"})
    assert headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    text = body.decode()
    assert text.endswith("\n# EOF\n") and "\n# TYPE gpuctl_gpu_energy_joules counter\n" in text
    assert f"\ngpuctl_gpu_energy_joules_total{{{GPU_0}}} " in text


def test_a_gpu_that_no_job_can_get_is_marked(gpus: GpuNode) -> None:
    assert f"\ngpuctl_gpu_unavailable{{{GPU_0}}} 0\n" in page(gpus.api)
    gpus.show(*SHOWN, "process 0 1")
    eventually(lambda: f"\ngpuctl_gpu_unavailable{{{GPU_0}}} 1\n" in page(gpus.api), "the mark")
    gpus.show(*SHOWN)
    eventually(lambda: f"\ngpuctl_gpu_unavailable{{{GPU_0}}} 0\n" in page(gpus.api), "the mark to go")
