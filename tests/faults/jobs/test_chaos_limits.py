# SPDX-License-Identifier: Apache-2.0
"""Jobs that use up what a node has: memory, processes, disk, the master port. The job that does it ends, its cause is named, and the
node and the other jobs on it go on. Each test has a node that is made for it, and says why it skips where this machine cannot make one.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import chaos_gang
import leftovers
from chaos_gang import Chaos
from harness import Cluster, eventually, restart_within

LIGHT = ["python", "-I", "-S", "-c"]

#: A rank that says that it is there and sleeps until a file comes.
SLEEPER = "import os, sys, time\nprint('there', flush=True)\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)"


def sleeper(cluster: Cluster, gate: Path) -> str:
    job = cluster.api.submit([*LIGHT, SLEEPER, str(gate)], infra_retries=0)
    eventually(lambda: "there" in cluster.api.log(job), "the bystander to run")
    return job


def test_a_port_that_a_stranger_took_is_an_infra_retry_that_nobody_sees(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    """The stranger binds the held port as rank 0 would, before rank 0 does: the first attempt fails, the second goes well."""
    cluster = make_cluster(2, 2)
    chaos = Chaos(1)
    mark, gate = tmp_path / "mark", tmp_path / "gate"
    job = chaos_gang.submit(cluster, chaos, mark, gpus=4, infra_retries=1, plan={"gate": str(gate)})
    eventually(lambda: (mark / "0.started").exists(), "rank 0 to run")
    port = chaos_gang.attempts(cluster, job)[0]["master_port"]
    with socket.socket() as stranger:
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stranger.bind(("0.0.0.0", port))
        stranger.listen()
        gate.touch()
        view = cluster.api.wait(job)
    assert (view["state"], view["attempt"], view["exit_code"]) == ("SUCCEEDED", 2, 0), view
    second, first = chaos_gang.attempts(cluster, job)
    assert (first["cause"], second["cause"]) == ("PORT_TAKEN", None), (first, second)
    assert first["master_port"] != second["master_port"]


# --- memory ------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_memory() -> Iterator[Path]:
    """A cgroup that gives 96 MiB to all in it."""
    version2 = "memory" in read(Path("/sys/fs/cgroup/cgroup.subtree_control")).split()
    place = Path("/sys/fs/cgroup" if version2 else "/sys/fs/cgroup/memory") / f"gpuctl-test-{os.getpid()}"
    try:
        place.mkdir()
        (place / ("memory.max" if version2 else "memory.limit_in_bytes")).write_text(str(96 << 20))
    except OSError as error:
        pytest.skip(f"no cgroup here that limits memory: {error}")
    swap = place / ("memory.swap.max" if version2 else "memory.memsw.limit_in_bytes")
    if swap.exists():
        swap.write_text("0" if version2 else str(96 << 20))
    with leftovers.killing_for_memory(True):
        yield place
    remove(place)


def remove(place: Path) -> None:
    eventually(lambda: not read(place / "cgroup.procs"), "the cgroup to be empty")
    for below in place.glob("gpuctl-*"):
        below.rmdir()
    place.rmdir()


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


EATER = """
import os, time
held = []
while os.environ["RANK"] == "1":
    held.append(bytearray(os.urandom(1 << 20)))
time.sleep(1000)
"""


def test_a_rank_that_eats_all_memory_is_named_with_that_cause_and_dies_alone(
    small_memory: Path, make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(3)
    if leftovers.counts_memory_by_attempt():
        pytest.skip("each attempt has a cgroup of its own at the top here, which no limit surrounds")
    restart_within(cluster.agents[0], "sh", "-c", f'echo $$ >{small_memory}/cgroup.procs; exec "$@"', "sh")
    bystander = sleeper(cluster, tmp_path / "gate")
    job = cluster.api.submit([*LIGHT, EATER], gpus=2, retries=1)
    view = cluster.api.wait(job)
    expected = ("FAILED", "OUT_OF_MEMORY", 1, 137, 2)
    assert tuple(view[name] for name in ("state", "cause", "failed_rank", "exit_code", "attempt")) == expected, view
    assert view["reason"] == "rank 1 on node node0 was killed by signal 9 (SIGKILL), out of memory"
    killed = cluster.api.wait(cluster.api.submit([*LIGHT, "import os; os.kill(os.getpid(), 9)"]))
    assert killed["cause"] == "RANK_FAILED", killed  # memory ran out before, and that is not why
    assert cluster.agents[0].alive()
    (tmp_path / "gate").touch()
    assert cluster.api.wait(bystander)["state"] == "SUCCEEDED"


# --- processes ---------------------------------------------------------------------------------------------------------------

#: Forks for ever, notes where it is refused, and goes on.
BOMB = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        open(sys.argv[1], "w").close()
        time.sleep(0.01)
"""

#: What the nodes of these tests allow, for each of two devices; and what is around them, should that fail.
MOST, FENCE = 60, 400


@pytest.fixture
def fence() -> Iterator[Path]:
    """A cgroup in which there may be FENCE processes, so that a test that fails leaves a machine that can be used."""
    version2 = "pids" in read(Path("/sys/fs/cgroup/cgroup.subtree_control")).split()
    place = Path("/sys/fs/cgroup" if version2 else "/sys/fs/cgroup/pids") / f"gpuctl-test-{os.getpid()}"
    try:
        place.mkdir()
        (place / "pids.max").write_text(str(FENCE))
    except OSError as error:
        pytest.skip(f"no cgroup here that counts processes: {error}")
    yield place
    remove(place)


def hidden(isolation: str) -> list[str]:
    """The cgroup mounts that an agent must not see to keep its processes together in that way."""
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - cgroup" in line]
    versions = {mount[4]: mount[mount.index("-") + 1] for mount in mounts}
    wanted = {"cgroup2": ["cgroup", "cgroup2"], "none": ["cgroup"]}[isolation]
    if isolation != "none" and wanted[-1] not in versions.values():
        pytest.skip(f"this machine has no {isolation}")
    return [place for place, version in versions.items() if version not in wanted]


def confine(cluster: Cluster, isolation: str, fence: Path) -> None:
    """Let the agent see only some of the machine's cgroups."""
    if not leftovers.has_own_memory():
        pytest.skip("this machine lets nobody hide a mount")
    script = f"echo $$ >{fence}/cgroup.procs && " + "".join(f"umount -l {place} && " for place in hidden(isolation)) + 'exec "$@"'
    restart_within(cluster.agents[0], "unshare", "--mount", "sh", "-c", script, "sh")
    assert cluster.nodes()["node0"]["isolation"] == isolation


def counted(cluster: Cluster, fence: Path) -> int:
    """Processes of the node, as the kernel counts them: within the fence, or where each attempt has a cgroup that counts, in those."""
    places = [fence, *leftovers.agent_cgroups(cluster.folder / "node0")]
    return sum(int(read(place / "pids.current") or 0) for place in places)


@pytest.mark.parametrize("isolation", ["cgroup2", "none"])
def test_a_fork_bomb_goes_off_within_its_bounds_and_is_swept_away(
    fence: Path, make_cluster: Callable[..., Cluster], tmp_path: Path, isolation: str
) -> None:
    """With each way to keep processes together: the node stays usable, and all of it is gone in time."""
    cluster = make_cluster(2, agent=["--max-processes", str(MOST)])
    confine(cluster, isolation, fence)
    bystander = sleeper(cluster, tmp_path / "gate")
    job = cluster.api.submit([*LIGHT, textwrap.dedent(BOMB), str(tmp_path / "refused")], time_limit_s=1, grace_s=0.5)
    most = 0

    def ended() -> bool:
        nonlocal most
        most = max(most, counted(cluster, fence))
        return cluster.api.job(job)["state"] == "TIMED_OUT"

    eventually(ended, "the bomb to be gone", 1.5 + chaos_gang.GONE_S)
    assert leftovers.processes_of(job) == []
    unlimited = "processes unlimited" in cluster.agents[0].said()
    assert unlimited or isolation == "cgroup2"  # of which the kernel may offer no pids controller
    assert (tmp_path / "refused").exists()  # so there were as many as may be, whether or not we looked just then
    assert most <= (FENCE if unlimited else 2 * MOST + 5)
    (tmp_path / "gate").touch()
    assert cluster.api.wait(bystander)["state"] == "SUCCEEDED"
    assert cluster.api.wait(cluster.api.submit(["true"]))["state"] == "SUCCEEDED"


def test_what_a_killed_supervisor_leaves_is_not_looked_for_among_strangers(
    fence: Path, make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    """Without cgroups it is found by its environment. Two agents of one host count their attempts alike."""
    mine, other = make_cluster(1), make_cluster(1)
    for cluster in (mine, other):
        confine(cluster, "none", fence)
    bystander = sleeper(other, tmp_path / "gate")
    job = mine.api.submit([*LIGHT, "import os, signal; os.fork() or os.setsid(); signal.pause()"], infra_retries=0)
    eventually(lambda: len(leftovers.processes_of(job)) == 2, "both processes")  # and their exec: before, they are the shim's image
    (shim,) = leftovers.all_shims(mine)
    epochs = [chaos_gang.attempts(cluster, name)[0]["epoch"] for cluster, name in ((mine, job), (other, bystander))]
    assert epochs[0] == epochs[1]
    os.kill(shim, 9)
    assert mine.api.wait(job)["cause"] == "SHIM_LOST"
    assert leftovers.processes_of(job) == []
    (tmp_path / "gate").touch()
    view = other.api.wait(bystander)
    assert (view["state"], view["attempt"]) == ("SUCCEEDED", 1), view


# --- disk --------------------------------------------------------------------------------------------------------------------

FILLER = "open('big', 'wb').write(b'x' * (1 << 26))"


def test_a_job_that_fills_its_working_folder_ends_and_leaves_the_node_usable(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    """The exit record and the last words have their place though the disk is full; what was written goes with the job."""
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "small", str(disk)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        cluster = make_cluster(1, agent=["--state", str(disk)])
        for _ in range(3):
            view = cluster.api.wait(cluster.api.submit([*LIGHT, FILLER]))
            assert (view["state"], view["cause"], view["exit_code"]) == ("FAILED", "RANK_FAILED", 1), view
            eventually(lambda: shutil.disk_usage(disk).used < 4 << 20, "the folder of the job to go")
        assert cluster.api.wait(cluster.api.submit(["true"]))["state"] == "SUCCEEDED"
        cluster.agents[0].kill()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
