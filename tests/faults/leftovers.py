# SPDX-License-Identifier: Apache-2.0
"""What an attempt may have left behind on its node, looked up in the kernel's own books: processes, cgroups, ports, shared memory, files.

Nothing here asks our programs: each function reads /proc, /sys or the file system. Nodes are named by the state folders of their agents.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import socket
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from harness import Cluster, eventually

#: Of agent/launch/cgroup.h.
SPARE_CGROUPS = 2


def nodes_of(cluster: Cluster) -> list[Path]:
    return [cluster.folder / agent.log.stem for agent in cluster.agents]


def processes() -> Iterator[Path]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            yield entry


def is_zombie(process: Path) -> bool:
    with contextlib.suppress(OSError):
        return process.joinpath("stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    return True


def processes_of(job: str) -> list[int]:
    """Who carries the job in its environment, as every rank and what it starts does, and lives."""
    found = []
    for entry in processes():
        with contextlib.suppress(OSError):
            variables = entry.joinpath("environ").read_bytes().split(b"\0")
            if b"GPUCTL_JOB_ID=" + job.encode() in variables and not is_zombie(entry):
                found.append(int(entry.name))
    return found


def cgroup_mounts() -> list[Path]:
    """Where agents may make cgroups."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [Path(line.split()[4]) for line in lines if " - cgroup" in line]


def agent_cgroups(node: Path, name: str = "*") -> list[Path]:
    """Cgroups of this agent, in whatever hierarchy: agents of one name differ in a hash of their state folder."""
    unique = f"gpuctl-{node.name}-{hashlib.sha256(str(node).encode()).hexdigest()[:8]}"
    own = [line.split(":", 2)[2].lstrip("/") for line in Path("/proc/self/cgroup").read_text().splitlines()]
    places = {mount / place for mount in cgroup_mounts() for place in ("", *own)}
    return [path for place in places for path in place.glob(f"{unique}.{name}")]


def cgroups_left(node: Path, idle: bool) -> list[Path]:
    """Cgroups of attempts that nobody needs: empty ones but those that the agent has made for the next attempts, and on an idle node all
    that hold something.
    """
    full: list[Path] = []
    empty: list[Path] = []
    for path in agent_cgroups(node, "a[0-9]*"):
        with contextlib.suppress(OSError):
            holds = (path / "cgroup.procs").read_text().strip() or any(entry.is_dir() for entry in path.iterdir())
            (full if holds else empty).append(path)
    return [*(full if idle else []), *empty[SPARE_CGROUPS:]]


def files_of(node: Path, epoch: int) -> list[Path]:
    """Its folder on disk, and in its run folder."""
    return [path for path in (node / "attempts" / str(epoch), Path(f"{node}.run/{epoch}")) if path.exists()]


def epochs_of(node: Path) -> list[int]:
    """All that this agent has ever claimed in this boot."""
    run = Path(f"{node}.run")
    over = (run / "seen").read_text().split()
    return sorted({int(name) for name in (*over, *(entry.name for entry in run.iterdir())) if name.isdigit()})


def shared_memory_of(job: str) -> list[str]:
    """What its ranks put into /dev/shm and among the host's System V objects (programs/chaos.py: shm, sysv)."""
    found = [path.name for path in Path("/dev/shm").glob(f"chaos-{job}-*")]
    for kind in ("shm", "sem", "msg"):
        for line in Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]:
            key = int(line.split()[0]) & 0xFFFFFFFF
            if key >> 8 == 0x470000 | zlib.crc32(job.encode()) & 0xFFFF:
                found.append(f"{kind} {key:#x}")
    return found


def port_is_free(port: int) -> bool:
    """Nobody has it bound, listening or not, and no shim holds its lock."""
    if f"@gpuctl-port-{port}\n" in Path("/proc/net/unix").read_text():
        return False
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that have ended are no owners
            probe.bind(("::", port))
            probe.listen()
        except OSError:
            return False
    return True


def descriptors(pid: int) -> tuple[int, int]:
    """How many a process has that are no sockets, and how many that are."""
    kinds = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            kinds.append(os.readlink(entry).startswith("socket:"))
    return kinds.count(False), kinds.count(True)


def resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError(f"process {pid} has no memory")


def zombies_of(pid: int) -> int:
    count = 0
    for entry in processes():
        with contextlib.suppress(OSError):
            state, parent = entry.joinpath("stat").read_text().rpartition(")")[2].split()[:2]
            count += int(parent) == pid and state == "Z"
    return count


def shims_of(node: Path) -> list[int]:
    """The supervisors that hold an attempt of the agent with that state folder; idle ones are in folders of their own."""
    found = []
    for entry in processes():
        with contextlib.suppress(OSError):
            place = os.readlink(entry / "cwd")
            at_work = place.startswith(f"{node}.run/") and not place.startswith(f"{node}.run/shims/")
            if at_work and os.readlink(entry / "exe").removesuffix(" (deleted)").endswith("/gpushim"):
                found.append(int(entry.name))
    return found


def all_shims(cluster: Cluster) -> list[int]:
    return [pid for node in nodes_of(cluster) for pid in shims_of(node)]


def mounts_below(folder: Path) -> list[str]:
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" {folder}/" in line]


@functools.cache
def has_own_memory() -> bool:
    """Whether agents here can give an attempt a /dev/shm of its own."""
    done = subprocess.run(["unshare", "--ipc", "--mount", "true"], capture_output=True)
    return done.returncode == 0


def counts_memory_by_attempt() -> bool:
    """Whether attempts have cgroups at the top that count memory."""
    return any("memory" in path.read_text().split() for mount in cgroup_mounts() for path in mount.glob("cgroup.subtree_control"))


@contextlib.contextmanager
def killing_for_memory(allowed: bool) -> Iterator[None]:
    """Keeps tests that have the kernel kill for want of memory apart from those that kill ranks themselves, which run beside them.

    Where attempts have no counters, that of the host explains every SIGKILL.
    """
    with (Path(tempfile.gettempdir()) / "gpuctl-test-memory").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if allowed else fcntl.LOCK_SH)
        yield


def alive_on(node: Path) -> list[str]:
    """Shims and cgroups of an idle node."""
    alive = [f"shim {pid} of {node.name}" for pid in shims_of(node)]
    return alive + [f"cgroup {path}" for path in cgroups_left(node, idle=True)]


def _wait_until_empty(look: Callable[[], list[str]], patience: float) -> None:
    seen: list[str] = []

    def empty() -> bool:
        seen[:] = look()
        return not seen

    try:
        eventually(empty, "nothing to be left", patience)
    except AssertionError:
        raise AssertionError(f"left after {patience:.0f} s: {', '.join(seen)}") from None


def assert_nothing_lives(cluster: Cluster, job: str, patience: float = 5.0) -> None:
    """Neither process nor shim nor cgroup: of a job that has ended, on a cluster that is idle now."""
    nodes = nodes_of(cluster)

    def look() -> list[str]:
        return [f"process {pid}" for pid in processes_of(job)] + [text for node in nodes for text in alive_on(node)]

    _wait_until_empty(look, patience)


def assert_no_files(cluster: Cluster, patience: float = 15.0) -> None:
    """Of all attempts that an idle cluster ever had. Their output stays until the controller has it on its disk, a second or two."""
    nodes = nodes_of(cluster)
    _wait_until_empty(lambda: [str(path) for node in nodes for epoch in epochs_of(node) for path in files_of(node, epoch)], patience)
