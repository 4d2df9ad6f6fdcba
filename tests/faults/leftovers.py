# SPDX-License-Identifier: Apache-2.0
"""What an attempt must not leave on its node: processes, a cgroup, a port, files. The system is asked, not the programs."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

from harness import Cluster, eventually


def processes_of(job: str) -> list[int]:
    """Those that carry the environment of a rank of that job, and are no zombies."""
    variable = f"GPUCTL_JOB_ID={job}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if variable in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def shims_of(node: Path) -> list[int]:
    """The shims that hold an attempt of the agent with that state folder; idle ones have no folder of their own."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                inside = os.readlink(entry / "cwd").startswith(f"{node}.run/")
                if inside and os.readlink(entry / "exe").removesuffix(" (deleted)").endswith("/gpushim"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def cgroup_mounts() -> list[Path]:
    """Where agents may make cgroups."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [Path(line.split()[4]) for line in lines if " - cgroup" in line]


def cgroups_of(node: Path, epoch: int) -> list[Path]:
    """Agents of one name are told apart by a hash of their state folder."""
    unique = f"gpuctl-{node.name}-{hashlib.sha256(str(node).encode()).hexdigest()[:8]}"
    own = [line.split(":", 2)[2].lstrip("/") for line in Path("/proc/self/cgroup").read_text().splitlines()]
    places = {mount / place for mount in cgroup_mounts() for place in ("", *own)}
    return [place / unique / str(epoch) for place in places if (place / unique / str(epoch)).exists()]


def port_is_free(port: int) -> bool:
    """Both the socket and the lock between shims have gone."""
    with socket.socket() as listener, socket.socket(socket.AF_UNIX) as lock:
        try:
            listener.bind(("127.0.0.1", port))
            lock.bind(f"\0gpuctl-port-{port}")
        except OSError:
            return False
    return True


def files_of(node: Path, epoch: int) -> list[Path]:
    """But for the empty folder that says that the epoch was seen."""
    return [path for path in (node / "attempts" / str(epoch), *Path(f"{node}.run/{epoch}").glob("*")) if path.exists()]


def epochs_of(node: Path) -> list[int]:
    """All that this agent has ever claimed in this boot."""
    return sorted(int(entry.name) for entry in Path(f"{node}.run").iterdir() if entry.name.isdigit())


def alive_on(node: Path) -> list[str]:
    """Shims and cgroups of an idle node."""
    alive = [f"shim {pid} of {node.name}" for pid in shims_of(node)]
    for epoch in epochs_of(node):
        alive += [f"cgroup {path}" for path in cgroups_of(node, epoch)]
    return alive


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
    nodes = [cluster.folder / agent.log.stem for agent in cluster.agents]

    def look() -> list[str]:
        return [f"process {pid}" for pid in processes_of(job)] + [text for node in nodes for text in alive_on(node)]

    _wait_until_empty(look, patience)


def assert_no_files(cluster: Cluster, patience: float = 15.0) -> None:
    """Of all attempts that an idle cluster ever had. Their output stays until the controller has it on its disk, a second or two."""
    nodes = [cluster.folder / agent.log.stem for agent in cluster.agents]
    _wait_until_empty(lambda: [str(path) for node in nodes for epoch in epochs_of(node) for path in files_of(node, epoch)], patience)
