# SPDX-License-Identifier: Apache-2.0
"""Nodes with GPUs, which a fake library shows (tests/unit/agent/devices/fake_nvml.c): what is wrong with one concerns that one alone."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import gpu_files
from harness import BUILD, PYTHON, Cluster, Problem, Program, eventually, run_gpuctl
from owners import RUN_AS, passable_folder

needs_rules = pytest.mark.skipif(
    not gpu_files.can_be_refused(), reason="this kernel has no rules for the devices of cgroups, or not for this user"
)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of devices, and has rights to lose")
LIBRARY = (BUILD / "tests" / "unit" / "libfake-nvml.so").resolve()


class GpuNode:
    """A cluster with one node of three GPUs, two H100 and an RTX 4090, and the file that says how they are. Agents lock the GPUs of
    their host by UUID, so each file of tests has UUIDs of its own: `uuid` is how they begin.
    """

    def __init__(self, cluster: Cluster, folder: Path, uuid: str = "GPU-", run_as: str = "agent", through: tuple[str, ...] = ()):
        self.cluster = cluster
        self.api = cluster.api
        self.state = folder / "gpus"
        self.show("process 1 0")
        driver = folder / "driver"
        driver.mkdir()
        (driver / "libnvidia-ml.so.1").symlink_to(LIBRARY)
        command = [
            *through, str(cluster.gpuagent), "--controller", cluster.url, "--token-file", str(cluster.folder / "node.token"),
            "--name", "g1", "--state", str(cluster.folder / "g1"), "--run", str(cluster.folder / "g1.run"), "--python", PYTHON,
            "--sample-interval", "1", "--run-as", run_as,
        ]  # fmt: skip
        environment = {**os.environ, "LD_LIBRARY_PATH": str(driver), "FAKE_NVML_STATE": str(self.state), "FAKE_NVML_UUID": uuid}
        environment["CUDA_VISIBLE_DEVICES"] = ""
        self.agent = Program(command, cluster.folder / "g1.log", environment)
        cluster.agents.append(self.agent)
        self.agent.start()
        eventually(lambda: "g1" in cluster.nodes(), "the node to register")

    def show(self, *lines: str) -> None:
        """What the library shows from now on; the second GPU has no user unless a line gives it one."""
        new = self.state.with_suffix(".new")
        new.write_text("".join(f"{line}\n" for line in ("process 1 0", *lines)))
        new.replace(self.state)

    def view(self) -> Any:
        return self.api.get("/v1/nodes/g1")

    def await_unavailable(self, *parts: str) -> Any:
        """The node, once so many GPUs are unavailable, for these reasons."""

        def there() -> Any:
            view = self.view()
            reasons = [device["unavailable"] for device in view["devices"] if "unavailable" in device]
            right = len(reasons) == len(parts) and all(part in reason for part, reason in zip(parts, reasons, strict=True))
            return view if right else None

        return eventually(there, f"{parts} to be the reasons")


@contextlib.contextmanager
def locked_gpu() -> Iterator[socket.socket]:
    """The lock that an agent has on its first GPU."""
    with socket.socket(socket.AF_UNIX) as lock:
        eventually(lambda: taken(lock), "the agents of earlier tests to have left the GPU")
        yield lock


def taken(lock: socket.socket) -> bool:
    try:
        lock.bind("\0gpuctl-gpu-GPU-0")
    except OSError:
        return False
    return True


def sleeps(program: Program) -> bool:
    """Whether it waits for the clock alone, as an agent does between two tries."""
    return program.process is not None and "nanosleep" in Path(f"/proc/{program.process.pid}/wchan").read_text()


@pytest.fixture
def gpus(make_cluster: Callable[..., Cluster], tmp_path: Path) -> Iterator[GpuNode]:
    node = GpuNode(make_cluster(), tmp_path)
    yield node
    node.show()


def test_a_job_sees_its_gpus_by_uuid(gpus: GpuNode) -> None:
    """G3: they were numbers, which change when a GPU drops off."""
    job = gpus.api.submit(["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"], gpus=2, gpu_type="H100")
    gpus.api.wait(job)
    assert gpus.api.log(job) == "GPU-0,GPU-1\n"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    with passable_folder() as folder:
        yield folder


@contextlib.contextmanager
def gpu_node(folder: Path, *options: Any) -> Iterator[GpuNode]:
    cluster = Cluster(folder, []).start()
    try:
        yield GpuNode(cluster, folder, "GPU-files-", *options)
    finally:
        cluster.stop()


def refused(node: GpuNode, paths: list[str], **spec: Any) -> list[str]:
    """The names of the files that a job may not open."""
    job = node.api.submit(["/usr/bin/python3", "-c", gpu_files.OPENS, *paths, "/dev/null"], **spec)
    assert node.api.wait(job)["state"] == "SUCCEEDED", node.api.log(job, stream="stderr")
    return str(node.api.log(job)).split()


@needs_rules
@pytest.mark.parametrize("run_as", RUN_AS)
def test_a_job_opens_the_files_of_its_own_gpus_alone(open_folder: Path, run_as: str) -> None:
    """The GPUs have the indices 0, 1, 2 and the files nvidia2, nvidia1, nvidia0."""
    paths = gpu_files.make(open_folder)
    with gpu_node(open_folder, run_as) as node:
        assert node.view()["labels"]["gpu_files"] == "own"
        assert refused(node, paths, gpu_type="RTX4090") == ["nvidia1", "nvidia2"]
        assert refused(node, paths, gpus=2, gpu_type="H100") == ["nvidia0"]
        assert refused(node, paths, gpus=0, cpus=1) == list(gpu_files.FILES)
        node.show("minor 2 7")
        eventually(lambda: refused(node, paths, gpu_type="RTX4090") == ["nvidia0", "nvidia1", "nvidia2"], "a GPU to have another file")


@needs_rules
@pytest.mark.parametrize("run_as", RUN_AS)
def test_a_job_is_kept_to_its_gpus_when_its_agent_is_another_one(open_folder: Path, run_as: str) -> None:
    paths = gpu_files.make(open_folder)
    gate = open_folder / "gate"
    os.mkfifo(gate)
    gate.chmod(0o666)
    waits = f"print('waits', flush=True); open({str(gate)!r}).close()\n"
    with gpu_node(open_folder, run_as) as node:
        job = node.api.submit(["/usr/bin/python3", "-c", waits + gpu_files.OPENS, *paths], gpu_type="RTX4090")
        eventually(lambda: node.api.log(job), "the job to wait")
        node.agent.kill()
        node.agent.start()
        eventually(lambda: "attempt adopted" in node.agent.said(), "the next agent to have the job")
        gate.open("w").close()
        assert node.api.wait(job)["state"] == "SUCCEEDED"
        assert node.api.log(job).split() == ["waits", "nvidia1", "nvidia2"]


@needs_root
def test_where_a_gpu_has_no_number_jobs_open_all(open_folder: Path) -> None:
    paths = gpu_files.make(open_folder)
    with gpu_node(open_folder) as node:
        node.show("minor 2 -1")
        node.agent.kill()
        node.agent.start()
        eventually(lambda: node.view()["labels"]["gpu_files"] == "all", "the node to say so")
        assert refused(node, paths, gpu_type="RTX4090") == []
        assert "the driver does not number their files" in node.agent.said()


@needs_root
def test_a_node_that_cannot_keep_jobs_to_their_gpus_says_so(open_folder: Path) -> None:
    paths = gpu_files.make(open_folder)
    with gpu_node(open_folder, "agent", ("setpriv", "--bounding-set=-sys_admin,-bpf")) as node:
        assert node.view()["labels"]["gpu_files"] == "all"
        assert refused(node, paths, gpu_type="RTX4090") == []
        assert node.agent.said().count("gpus open") == 1 and "Operation not permitted" in node.agent.said()


def test_a_job_can_ask_for_the_memory_of_its_gpus(gpus: GpuNode) -> None:
    """G4: "A100" is 40 GB or 80 GB, and nothing told them apart."""
    assert gpus.view()["labels"]["gpu_memory"] == "80GB"
    job = gpus.api.submit(["true"], gpu_type="H100", constraints={"gpu_memory": "80GB"})
    assert gpus.api.wait(job)["state"] == "SUCCEEDED"
    with pytest.raises(Problem):
        gpus.api.submit(["true"], gpu_type="H100", constraints={"gpu_memory": "40GB"})


def test_a_gpu_that_a_stranger_holds_is_left_out_alone_and_is_back_by_itself(gpus: GpuNode) -> None:
    """G2: each job that was placed on it declined, and kept the whole node from work."""
    with subprocess.Popen(["sleep", "1000"]) as stranger:
        gpus.show(f"process 0 {stranger.pid}")
        view = gpus.await_unavailable(f"memory held by process {stranger.pid} (sleep) of user ")
        assert view["unavailable_gpus"] == 1 and view["free_gpus"] == 2
        env = {
            "GPUCTL_URL": gpus.cluster.url,
            "GPUCTL_TOKEN_FILE": str(gpus.cluster.folder / "controller" / "admin.token"),
            "COLUMNS": "250",
        }
        assert f"1 GPU unavailable: memory held by process {stranger.pid} (sleep)" in run_gpuctl("nodes", "list", env=env).stdout
        beside = gpus.api.submit(["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"], gpu_type="H100")
        gpus.api.wait(beside)
        assert gpus.api.log(beside) == "GPU-1\n"
        wide = gpus.api.submit(["true"], gpus=2, gpu_type="H100")
        why = gpus.api.get(f"/v1/jobs/{wide}/explanation")["reason"]
        assert why["code"] == "UNAVAILABLE" and "1 GPU is unavailable (node g1, GPU 0: memory held by process" in why["text"]
        stranger.kill()
    gpus.show()
    assert gpus.api.wait(wide)["state"] == "SUCCEEDED"
    gpus.await_unavailable()


def test_a_driver_that_hangs_stops_neither_heartbeats_nor_jobs(gpus: GpuNode, tmp_path: Path) -> None:
    """G1: the driver was asked in the agent's one loop."""
    go = tmp_path / "go"
    job = gpus.api.submit(["sh", "-c", f"until [ -e {go} ]; do sleep 0.05; done; echo done"], gpu_type="RTX4090")
    gpus.cluster.wait_state(job, "RUNNING")
    gpus.show("hang nvmlDeviceGetComputeRunningProcesses_v3 0")
    gpus.await_unavailable("the NVIDIA driver does not answer")
    assert gpus.view()["state"] == "READY"
    other = gpus.api.submit(["sh", "-c", "echo $CUDA_VISIBLE_DEVICES"], gpu_type="H100")
    gpus.api.wait(other)
    assert gpus.api.log(other) == "GPU-1\n"
    go.touch()
    assert gpus.api.wait(job)["state"] == "SUCCEEDED"
    gpus.show()
    gpus.await_unavailable()


def test_a_gpu_that_its_job_leaves_occupied_goes_to_nobody_until_it_is_empty(gpus: GpuNode, tmp_path: Path) -> None:
    """G2: it was handed on. Its job waits until the driver shows it empty."""
    go = tmp_path / "go"
    script = f"echo $$ >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; until [ -e {go} ]; do sleep 0.05; done"
    job = gpus.api.submit(["sh", "-c", script], gpu_type="RTX4090")
    eventually((tmp_path / "pid").exists, "the job to run")
    pid = (tmp_path / "pid").read_text().strip()
    gpus.show("process 2 99999999")
    next_one = gpus.api.submit(["true"], gpu_type="RTX4090")
    go.touch()
    eventually(lambda: not Path(f"/proc/{pid}").exists(), "the job's process to end")
    assert gpus.api.job(next_one)["state"] == "QUEUED"
    gpus.show()
    assert gpus.api.wait(job)["state"] == "SUCCEEDED"
    assert gpus.api.wait(next_one)["state"] == "SUCCEEDED"


def test_an_agent_that_restarts_knows_the_gpus_of_its_jobs(gpus: GpuNode, tmp_path: Path) -> None:
    """G3: it reads their UUIDs back; what its own job occupies is no stranger's."""
    go = tmp_path / "go"
    job = gpus.api.submit(["sh", "-c", f"until [ -e {go} ]; do sleep 0.05; done"], gpu_type="RTX4090")
    gpus.cluster.wait_state(job, "RUNNING")
    gpus.show("process 2 99999999", "mig 0 1")
    gpus.agent.kill()
    gpus.agent.start()
    gpus.await_unavailable("MIG is enabled")
    gpus.show()
    go.touch()
    assert gpus.api.wait(job)["state"] == "SUCCEEDED"


def test_a_job_is_shown_what_its_gpus_do_and_no_other(gpus: GpuNode, tmp_path: Path) -> None:
    """They are numbered as the job numbers them; a call that a GPU does not answer is left out."""
    go = tmp_path / "go"
    beside = gpus.api.submit(["sh", "-c", f"until [ -e {go} ]; do sleep 0.05; done"], gpu_type="H100")
    gpus.cluster.wait_state(beside, "RUNNING")
    job = gpus.api.submit(["sh", "-c", f"echo $CUDA_VISIBLE_DEVICES; until [ -e {go} ]; do sleep 0.05; done"], gpu_type="RTX4090")
    gpus.show("busy 2 93", "memory 2 20480", "power 2 287512", "busy 0 5", "error nvmlDeviceGetUtilizationRates 1 3")

    def shown(of: str) -> dict[str, float]:
        points = gpus.api.get(f"/v1/jobs/{of}/metrics")["metrics"]
        return {point["name"].removeprefix("system/g1/gpu_"): point["value"] for point in points if "/gpu_" in point["name"]}

    wanted = {
        "0_utilization_percentage": 93, "0_memory_usage_megabytes": 21474.8, "0_memory_usage_percentage": 25, "0_power_usage_watts": 287.5,
    }  # fmt: skip
    eventually(lambda: shown(job) == wanted, "what the third GPU does")
    eventually(lambda: shown(beside).get("0_utilization_percentage") == 5, "what the first GPU does")
    assert "0_power_usage_watts" not in shown(beside)
    go.touch()
    for one in (job, beside):
        assert gpus.api.wait(one)["state"] == "SUCCEEDED"


def test_a_gpu_whose_use_cannot_be_asked_for_is_unavailable_as_after_any_call_that_hangs(gpus: GpuNode) -> None:
    gpus.show("hang nvmlDeviceGetPowerUsage 0", "power 0 1")
    gpus.await_unavailable("the NVIDIA driver does not answer")
    gpus.show()
    gpus.await_unavailable()


def children_of(pid: int, name: str) -> list[Path]:
    """The processes of that name that another one has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            head, rest = stat.read_text().rsplit(")", 1)
            if head.endswith(f"({name}") and int(rest.split()[1]) == pid:
                found.append(stat.parent)
    return found


def test_an_agent_waits_for_the_gpus_of_one_that_has_just_ended(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    """A child that the other agent has started has its locks until it has executed its program."""
    cluster = make_cluster()
    with locked_gpu() as lock, ThreadPoolExecutor(1) as pool:
        starting = pool.submit(GpuNode, cluster, tmp_path)
        eventually(lambda: any(sleeps(agent) for agent in cluster.agents), "the agent to wait for the lock")
        lock.close()
        assert starting.result().agent.alive()


def test_an_agent_does_not_start_on_the_gpus_of_another(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster()
    with ThreadPoolExecutor(1) as pool:
        with locked_gpu():
            starting = pool.submit(GpuNode, cluster, tmp_path)
            (agent,) = eventually(lambda: [each for each in cluster.agents if each.process], "the agent to be started")
            eventually(lambda: not agent.alive(), "it to end")
            assert "another gpuagent serves the GPU GPU-0" in agent.said()
        agent.start()
        assert starting.result().agent.alive()


def test_the_helper_ends_with_the_agent(gpus: GpuNode) -> None:
    """G1: also where the driver hangs in it."""
    assert gpus.agent.process is not None
    agent = gpus.agent.process.pid
    gpus.show("hang nvmlDeviceGetMemoryInfo 0")
    mine = eventually(lambda: children_of(agent, "gpuagent-nvml"), "the helper to run")
    gpus.agent.kill()
    eventually(lambda: not any(process.exists() for process in mine), "the helper to end")
