# SPDX-License-Identifier: Apache-2.0
"""What an attempt may have left behind on its node, looked up in the kernel's own books: processes, cgroups, ports, shared memory, files.

Nothing here asks our programs: each function reads /proc, /sys or the file system.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import socket
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

from harness import Cluster

CGROUP_ROOTS = [Path("/sys/fs/cgroup"), *(Path("/sys/fs/cgroup") / name for name in ("unified", "freezer", "pids"))]


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


def agent_cgroups(cluster: Cluster, name: str) -> list[Path]:
    """The folders that this agent may have made, in whatever hierarchy."""
    unique = f"gpuctl-{name}-{hashlib.sha256(str(cluster.folder / name).encode()).hexdigest()[:8]}"
    return [root / unique for root in CGROUP_ROOTS if (root / unique).is_dir()]


def cgroups_of(cluster: Cluster, epoch: int) -> list[Path]:
    return [
        folder / str(epoch)
        for number in range(len(cluster.agents))
        for folder in agent_cgroups(cluster, f"node{number}")
        if (folder / str(epoch)).exists()
    ]


def files_of(cluster: Cluster, epoch: int) -> list[Path]:
    """Its folder on disk, and what of its run folder is more than the memory of the epoch."""
    found: list[Path] = []
    for number in range(len(cluster.agents)):
        found += (cluster.folder / f"node{number}" / "attempts").glob(str(epoch))
        found += (cluster.folder / f"node{number}.run").glob(f"{epoch}/*")
    return found


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


def shims_of(cluster: Cluster) -> list[int]:
    """The supervisors below the cluster's folders that have an attempt: those that wait for one stand elsewhere."""
    found = []
    for entry in processes():
        with contextlib.suppress(OSError):
            at_work = os.readlink(entry / "cwd").startswith(f"{cluster.folder}/")
            if at_work and os.readlink(entry / "exe").endswith("/gpushim"):
                found.append(int(entry.name))
    return found


def mounts_below(folder: Path) -> list[str]:
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" {folder}/" in line]


@functools.cache
def has_own_memory() -> bool:
    """Whether agents here can give an attempt a /dev/shm of its own."""
    done = subprocess.run(["unshare", "--ipc", "--mount", "true"], capture_output=True)
    return done.returncode == 0


def counts_memory_by_attempt(cluster: Cluster, name: str) -> bool:
    return any((folder / "memory.events").exists() for folder in agent_cgroups(cluster, name))
