# SPDX-License-Identifier: Apache-2.0
"""The supervisor of an attempt is killed: the attempt is over in seconds, as an infrastructure failure, and leaves nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import Cluster, eventually
from leftovers import assert_no_files, assert_nothing_lives, cgroup_mounts, killing_for_memory, port_is_free, processes_of
from slowness import patient

LITTER = (Path(__file__).parents[1] / "programs" / "litter.py").read_text()

#: For these tests alone, also where several runs go on beside each other.
FIRST_PORT = 24000 + os.getpid() % 500 * 10
PORTS = range(FIRST_PORT, FIRST_PORT + 10)

#: Promised from the death of a shim to the end of its attempt.
OVER_S = patient(5.0)


def begin(cluster: Cluster) -> str:
    """A gang of two ranks on one node, which holds a port."""
    files = [{"path": "litter.py", "text": LITTER}]
    return cluster.api.submit(["python", "-S", "litter.py"], gpus=2, files=files, infra_retries=0)


def is_ready(cluster: Cluster, job: str) -> bool:
    return all("ready\n" in cluster.api.log(job, rank) for rank in range(2))


def shim_pid(cluster: Cluster) -> int | None:
    """Of the attempt that has a shim; there is one at most."""
    for path in (cluster.folder / "node0.run").glob("*/shim.pid"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            return int(path.read_text().split()[0])
    return None


def kill_shim(cluster: Cluster) -> None:
    pid = eventually(lambda: shim_pid(cluster), "a shim")
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def while_running(cluster: Cluster, job: str) -> None:
    eventually(lambda: is_ready(cluster, job), "the ranks")
    kill_shim(cluster)


def while_starting(cluster: Cluster, job: str) -> None:
    kill_shim(cluster)


def while_stopping(cluster: Cluster, job: str) -> None:
    eventually(lambda: is_ready(cluster, job), "the ranks")
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    eventually(lambda: "stopping" in cluster.api.events(job), "the stop")
    kill_shim(cluster)


def with_its_agent(cluster: Cluster, job: str) -> None:
    """The agent finds out when it is back."""
    eventually(lambda: is_ready(cluster, job), "the ranks")
    cluster.agents[0].kill()
    kill_shim(cluster)
    cluster.agents[0].start()


MOMENTS = (while_running, while_starting, while_stopping, with_its_agent)


def assert_over(cluster: Cluster, job: str, killed: float) -> float:
    """The job is over in time and blames the right one; seconds since the death."""
    view = cluster.api.wait(job)
    took = time.monotonic() - killed
    outcome = (view["state"], view["attempt"], view["cause"])
    assert outcome in (("FAILED", 1, "SHIM_LOST"), ("CANCELED", 1, view["cause"])), view
    assert took <= OVER_S, f"{job} was over after {took:.2f} s"
    assert_nothing_lives(cluster, job)
    eventually(lambda: all(port_is_free(port) for port in PORTS), "the port to be free", OVER_S)
    return took


@pytest.fixture
def cluster(make_cluster: Callable[..., Cluster]) -> Cluster:
    return make_cluster(2, agent=["--ports", f"{PORTS[0]}-{PORTS[-1]}"])


def test_an_attempt_whose_shim_is_killed_is_over_in_seconds_and_leaves_nothing(
    cluster: Cluster, volume: Callable[[int, int], int], capsys: pytest.CaptureFixture[str]
) -> None:
    times = []
    for number in range(volume(8, 500)):
        job = begin(cluster)
        MOMENTS[number % len(MOMENTS)](cluster, job)
        times.append(assert_over(cluster, job, time.monotonic()))
    assert_no_files(cluster)
    with capsys.disabled():
        print(f"\n{len(times)} shims killed; their attempts were over after {max(times):.2f} s at the most")


def test_the_job_of_a_killed_shim_runs_again_where_retries_are_left(cluster: Cluster, tmp_path: Path) -> None:
    script = f"echo $GPUCTL_ATTEMPT >> {tmp_path}/starts; while ! test -e {tmp_path}/gate; do sleep 0.01; done"
    job = cluster.api.submit(["sh", "-c", script], retries=0)
    eventually(lambda: (tmp_path / "starts").exists(), "the first start")
    first = processes_of(job)
    kill_shim(cluster)
    eventually(lambda: (tmp_path / "starts").read_text().split() == ["1", "2"], "the second start")
    assert not set(first) & set(processes_of(job)), "the first attempt still runs beside the second"
    (tmp_path / "gate").touch()
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"


@contextlib.contextmanager
def starved(folder: Path, pid: int) -> Iterator[None]:
    """Keeps a process in a memory cgroup in which it can get none."""
    folder.mkdir()
    try:
        limit = next(path for path in (folder / "memory.max", folder / "memory.limit_in_bytes") if path.exists())
        limit.write_text("4096")
        (folder / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        eventually(lambda: not (folder / "cgroup.procs").read_text().strip(), "the process to be gone")
        folder.rmdir()


def memory_cgroup() -> Path | None:
    """Where cgroups can be made that limit memory."""
    for mount in cgroup_mounts():
        controllers = mount / "cgroup.subtree_control"
        limits = mount.name == "memory" or (controllers.exists() and "memory" in controllers.read_text().split())
        if limits and os.access(mount, os.W_OK):
            return mount
    return None


def test_an_attempt_whose_shim_the_kernel_killed_for_memory_is_over_in_seconds_and_leaves_nothing(cluster: Cluster) -> None:
    place = memory_cgroup()
    if place is None or os.geteuid() != 0:
        pytest.skip("needs root and a memory cgroup to put a process into")
    job = begin(cluster)
    eventually(lambda: is_ready(cluster, job), "the ranks")
    pid = eventually(lambda: shim_pid(cluster), "a shim")
    with killing_for_memory(True), starved(place / f"gpuctl-test-{pid}", pid):
        eventually(lambda: not is_alive(pid), "the kernel to kill the shim")
        killed = time.monotonic()
    assert_over(cluster, job, killed)
    assert_no_files(cluster)


def is_alive(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
