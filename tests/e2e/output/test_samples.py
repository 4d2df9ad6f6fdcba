# SPDX-License-Identifier: Apache-2.0
"""What the processes of a job use, as their nodes measure it: of a plain command, without MLflow."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import PYTHON, Cluster, Problem, eventually, run_gpuctl
from paper_node import PaperNode
from test_functions import environment

BURN = """
import importlib.util, os, pathlib, sys, time
assert importlib.util.find_spec("mlflow") is None and importlib.util.find_spec("psutil") is None
go = pathlib.Path(os.environ["GO"])
if os.environ["RANK"] == "0":
    taken = b"x" * 200_000_000
    while not go.exists():
        for _ in range(100000):
            pass
while not go.exists():
    time.sleep(0.05)
"""
LEAN = [PYTHON, "-I", "-S", "-c"]  # without the packages of its environment
IO = ("io_read_megabytes", "io_written_megabytes")
SAMPLED = ["--sample-interval", "1"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes of one slot each, which measure each second."""
    cluster = Cluster(tmp_path_factory.mktemp("measured"), [1, 1], agent=SAMPLED).start()
    yield cluster
    cluster.stop()


def points(cluster: Cluster, job: str, ending: str = "") -> list[dict[str, Any]]:
    return [point for point in cluster.api.get(f"/v1/jobs/{job}/metrics?limit=10000")["metrics"] if point["name"].endswith(ending)]


def gpuctl(cluster: Cluster, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_gpuctl(*arguments, env=environment(cluster, folder))


def test_each_node_of_a_plain_command_is_measured(measured: Cluster, tmp_path: Path) -> None:
    go = tmp_path / "go"
    job = measured.api.submit([*LEAN, BURN], gpus=2, name="burner", env={"GO": str(go)})

    def both() -> Any:
        found = [points(measured, job, f"system/node{node}/cpu_utilization_percentage") for node in (0, 1)]
        return all(len(series) >= 3 for series in found)

    eventually(both, "three samples of both nodes")
    go.touch()
    assert measured.api.wait(job)["state"] == "SUCCEEDED", measured.api.log(job, stream="stderr")
    last = {point["name"]: point for point in points(measured, job)}
    keys = {"cpu_utilization_percentage", "system_memory_usage_megabytes", "system_memory_usage_percentage", *IO}
    assert set(last) == {f"system/node{node}/{key}" for node in (0, 1) for key in keys}
    assert {point["rank"] for point in last.values()} == {None}
    value = {name.removeprefix("system/"): point["value"] for name, point in last.items()}
    busy, idle = ("node0", "node1") if value["node0/system_memory_usage_megabytes"] > 200 else ("node1", "node0")
    assert 200 <= value[f"{busy}/system_memory_usage_megabytes"] < 400, value
    assert 0 < value[f"{idle}/system_memory_usage_megabytes"] < 150, value
    assert 2 < value[f"{busy}/cpu_utilization_percentage"] <= 100, value
    assert 0 <= value[f"{idle}/cpu_utilization_percentage"] < value[f"{busy}/cpu_utilization_percentage"], value
    for name in last:
        steps = [point["step"] for point in points(measured, job, name)]
        assert steps == sorted(set(steps)) and 0 <= steps[0] <= steps[-1] < 600, (name, steps)

    table = gpuctl(measured, tmp_path, "metrics", job)
    rows = {line.split()[0]: line.split()[1] for line in table.stdout.splitlines()[1:]}
    assert rows == dict.fromkeys(last, "-"), table
    lines = gpuctl(measured, tmp_path, "metrics", "-f", job, "--name", f"system/{busy}/cpu_utilization_percentage").stdout.splitlines()
    assert len(lines) == len(points(measured, job, f"{busy}/cpu_utilization_percentage"))
    assert "MLflow run " in gpuctl(measured, tmp_path, "get", job).stdout


def test_ranks_that_share_a_node_are_measured_one_by_one(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(2, agent=SAMPLED)
    go = tmp_path / "go"
    job = cluster.api.submit([*LEAN, BURN], gpus=2, env={"GO": str(go)})

    def last(name: str) -> Any:
        found = points(cluster, job, f"/{name}")
        return found[-1]["value"] if len(found) >= 2 else None

    cpu, memory = "cpu_utilization_percentage", "system_memory_usage_megabytes"
    eventually(lambda: all(last(f"{cpu}/rank_{rank}") is not None for rank in (0, 1)), "two samples of both ranks")
    cluster.agents[0].kill()
    cluster.agents[0].start()
    before = len(points(cluster, job, f"/{cpu}/rank_0"))
    eventually(lambda: len(points(cluster, job, f"/{cpu}/rank_0")) >= before + 2, "samples of the new agent")
    assert last(f"{cpu}/rank_0") > 2 > last(f"{cpu}/rank_1"), points(cluster, job, "")
    assert last(f"{memory}/rank_0") > 200 > 150 > last(f"{memory}/rank_1") > 0
    assert all(last(f"{io}/rank_{rank}") is not None for io in IO for rank in (0, 1))
    go.touch()
    assert cluster.api.wait(job)["state"] == "SUCCEEDED", cluster.api.log(job, stream="stderr")


def test_a_job_that_has_ended_is_not_measured(measured: Cluster, tmp_path: Path) -> None:
    go = tmp_path / "go"
    job = measured.api.submit(["sh", "-c", f"until [ -e {go} ]; do sleep 0.05; done"])
    eventually(lambda: points(measured, job), "a sample")
    go.touch()
    measured.api.wait(job)
    beside = measured.api.submit(["sleep", "1000"])
    eventually(lambda: len(points(measured, beside, "cpu_utilization_percentage")) >= 2, "two samples of the next job")
    measured.api.post(f"/v1/jobs/{beside}/cancel")
    after = measured.api.wait(beside)
    stored = points(measured, job)
    assert max(point["time"] for point in stored) <= after["created_at"], (stored, after)


def test_an_agent_that_starts_anew_goes_on_measuring(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, agent=SAMPLED)
    job = cluster.api.submit(["sleep", "1000"])
    before = eventually(lambda: points(cluster, job, "cpu_utilization_percentage"), "a sample")
    cluster.agents[0].kill()
    cluster.agents[0].start()
    more = eventually(lambda: points(cluster, job, "cpu_utilization_percentage")[len(before) + 1 :], "samples of the new agent")
    assert more[0]["step"] > before[-1]["step"]
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    cluster.api.wait(job)


def test_an_agent_may_measure_nothing(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, agent=["--sample-interval", "0"])
    job = cluster.api.submit(["sleep", "2"])
    cluster.api.wait(job)
    assert points(cluster, job) == [] and cluster.api.get(f"/v1/jobs/{job}/runs")["runs"] == []


# --- heartbeats, said by a node of paper ---------------------------------------------------------------------------------------


def end(node: PaperNode, epoch: int) -> None:
    report = {"kind": "exited", "ranks": [{"rank": 0, "code": 0}], "flushed": True}
    node.api.post("/v1/agent/report", {**node.who(), "epoch": epoch, **report})


@pytest.fixture
def paper(make_cluster: Callable[..., Cluster]) -> Iterator[PaperNode]:
    node = PaperNode(make_cluster(), "paper", 2)
    yield node
    with contextlib.suppress(Problem):  # of a node that was fenced
        for epoch in node.poll()["live"]:
            end(node, epoch)
    node.close()


def running(node: PaperNode, **spec: Any) -> tuple[str, int]:
    """A job whose attempt runs on the node, and its epoch."""
    job = node.cluster.api.submit(["true"], **spec)

    def ordered() -> Any:
        return next((order for order in node.poll().get("orders", []) if order["job_id"] == job), None)

    order = eventually(ordered, "the order to run")
    node.api.post("/v1/agent/report", {**node.who(), "epoch": order["epoch"], "kind": "running", "at_ms": int(time.time() * 1000)})
    node.cluster.wait_state(job, "RUNNING")
    return job, order["epoch"]


def sample(epoch: int, step: int) -> dict[str, Any]:
    gpus = [{"busy_percent": 97, "memory_bytes": 1_000_000, "memory_total_bytes": 4_000_000}, {"power_mw": 350_250}]
    memory = {"memory_bytes": 3_000_000, "memory_total_bytes": 12_000_000, "io_written_bytes": 5_000_000}
    return {"epoch": epoch, "at_ms": 1_700_000_000_000 + 1000 * step, "step": step, "cpu_percent": 12.5, **memory, "gpus": gpus}


def beat(node: PaperNode, epochs: list[int], *samples: dict[str, Any]) -> Any:
    attempts = [{"epoch": epoch, "state": "RUNNING"} for epoch in epochs]
    return node.api.post("/v1/agent/beat", {**node.who(), "seq": 1, "attempts": attempts, "samples": list(samples)})


def steps(node: PaperNode, job: str) -> list[int]:
    return [point["step"] for point in points(node.cluster, job, "cpu_utilization_percentage")]


def counted() -> int:
    """What this process has written to disks."""
    return int(dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())["write_bytes"])


def test_what_a_job_writes_to_disks_is_counted_with_what_its_children_wrote(measured: Cluster, tmp_path: Path) -> None:
    before = counted()
    (tmp_path / "probe").write_bytes(bytes(1_000_000))
    if counted() == before:
        pytest.skip("the folder of tests is in memory: nothing goes to a disk")
    go = tmp_path / "go"
    write = f"dd if=/dev/zero of={tmp_path}/file bs=1M count=30 2>/dev/null"
    job = measured.api.submit(["sh", "-c", f"{write}; {write.replace('/file', '/second')}; while ! test -e {go}; do sleep 0.05; done"])

    def written() -> Any:
        series = [point["value"] for point in points(measured, job, "/io_written_megabytes")]
        assert series == sorted(series), "it never falls"
        return series and series[-1] >= 60

    eventually(written, "what was written")
    go.touch()
    assert measured.api.wait(job)["state"] == "SUCCEEDED"
    assert 60 <= points(measured, job, "/io_written_megabytes")[-1]["value"] < 120


def test_a_heartbeat_that_comes_again_brings_no_point_twice(paper: PaperNode) -> None:
    job, epoch = running(paper)
    for _ in range(3):
        beat(paper, [epoch], sample(epoch, 10))
    beat(paper, [epoch], sample(epoch, 20))
    eventually(lambda: 20 in steps(paper, job), "the last sample")
    assert steps(paper, job) == [10, 20]
    shown = {point["name"]: point["value"] for point in points(paper.cluster, job)}
    assert shown == {
        "system/paper/cpu_utilization_percentage": 12.5,
        "system/paper/system_memory_usage_megabytes": 3.0,
        "system/paper/system_memory_usage_percentage": 25.0,
        "system/paper/io_written_megabytes": 5.0,
        "system/paper/gpu_0_utilization_percentage": 97.0,
        "system/paper/gpu_0_memory_usage_megabytes": 1.0,
        "system/paper/gpu_0_memory_usage_percentage": 25.0,
        "system/paper/gpu_1_power_usage_watts": 350.3,
    }


def test_what_an_exit_says_of_disks_is_the_last_point(paper: PaperNode) -> None:
    job, epoch = running(paper)
    beat(paper, [epoch], sample(epoch, 10))
    eventually(lambda: steps(paper, job), "the sample")
    use = {"measured_ms": 0, "idle_ms": 0, "energy_mj": 0, "io_read_bytes": 1_500_000, "io_written_bytes": 9_000_000}
    exited = {"epoch": epoch, "kind": "exited", "ranks": [{"rank": 0, "code": 0, "at_ms": 2}], "flushed": True, "use": use}
    other = PaperNode(paper.cluster, "other", 1)
    try:
        with contextlib.suppress(Problem):
            other.api.post("/v1/agent/report", {**other.who(), **exited, "timing": {"running_us": 1000, "ended_us": 2_001_000}})
    finally:
        other.close()
    timing = {"running_us": 1000, "ended_us": 12_001_000}
    for _ in range(2):  # the same report may come again
        paper.api.post("/v1/agent/report", {**paper.who(), **exited, "timing": timing})
    assert paper.cluster.api.wait(job)["state"] == "SUCCEEDED"
    eventually(lambda: len(points(paper.cluster, job, "io_read_megabytes")) == 1, "the last point")
    written = [(point["step"], point["value"]) for point in points(paper.cluster, job, "io_written_megabytes")]
    assert written == [(10, 5.0), (13, 9.0)]
    assert points(paper.cluster, job, "io_read_megabytes")[0]["value"] == 1.5
    assert steps(paper, job) == [10], "and of nothing else"


def test_samples_of_attempts_that_the_node_is_not_to_have_are_not_stored(paper: PaperNode) -> None:
    job, epoch = running(paper, infra_retries=0)
    beat(paper, [epoch], sample(epoch, 10))
    assert beat(paper, [epoch, epoch + 1], sample(epoch + 1, 20)) == {"fenced": [epoch + 1]}
    beat(paper, [], sample(epoch, 30))  # of one that it does not list
    eventually(lambda: steps(paper, job), "the first sample")
    other = PaperNode(paper.cluster, "other", 1)
    try:
        assert beat(other, [epoch], sample(epoch, 40)) == {"fenced": [epoch]}
    finally:
        other.close()
    paper.cluster.api.post("/v1/nodes/paper/fence", {"assert_dead": True})
    with pytest.raises(Problem):
        beat(paper, [epoch], sample(epoch, 50))
    assert steps(paper, job) == [10]


def test_an_attempt_that_has_ended_gets_no_more_points(paper: PaperNode) -> None:
    job, epoch = running(paper)
    beat(paper, [epoch], sample(epoch, 10))
    end(paper, epoch)
    assert paper.cluster.api.wait(job)["state"] == "SUCCEEDED"
    beat(paper, [epoch], sample(epoch, 20))
    next_job, next_epoch = running(paper)
    beat(paper, [next_epoch], sample(next_epoch, 30))
    eventually(lambda: steps(paper, next_job), "the sample of the next job")
    assert steps(paper, job) == [10]


@pytest.mark.parametrize(
    "variable",
    [
        "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING=true",
        "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING=false",
        "MLFLOW_TRACKING_URI=https://m.example/",
        "MLFLOW_RUN_ID=",
    ],
)
def test_a_job_that_says_where_it_tracks_or_what_mlflow_measures_has_no_samples(paper: PaperNode, variable: str) -> None:
    name, value = variable.split("=")
    job, epoch = running(paper, env={name: value})
    beside, next_epoch = running(paper)
    beat(paper, [epoch, next_epoch], sample(epoch, 10), sample(next_epoch, 10))
    eventually(lambda: steps(paper, beside), "the sample of the other job")
    assert points(paper.cluster, job) == []
    assert paper.cluster.api.get(f"/v1/jobs/{job}/runs")["runs"] == []


def test_a_heartbeat_with_samples_of_nonsense_is_refused(paper: PaperNode) -> None:
    _, epoch = running(paper)
    nonsense: list[dict[str, Any]] = [{"cpu_percent": -1}, {"step": None}, {"gpus": [{}] * 65}]
    for wrong in nonsense:
        with pytest.raises(Problem, match=next(iter(wrong))):
            beat(paper, [epoch], {**sample(epoch, 10), **wrong})
