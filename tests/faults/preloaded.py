# SPDX-License-Identifier: Apache-2.0
"""Clusters whose daemons have a library of ours preloaded: a wall clock that can be set, a disk that can be slowed down."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import BUILD, Cluster

SECOND_NS = 1_000_000_000


def preload(library: Path, **variables: str) -> dict[str, str]:
    """The environment with the library; the runtimes of sanitizers, which want to be first, come before it."""
    if not library.exists():
        pytest.fail(f"{library} has not been built")
    needed = subprocess.run(["ldd", str(BUILD / "daemon" / "gpuctld")], capture_output=True, text=True, check=True).stdout
    wanted = ("libasan", "libtsan", "libubsan")
    runtimes = [line.split()[2] for line in needed.splitlines() if line.strip().startswith(wanted) and "=>" in line]
    return {**variables, "LD_PRELOAD": " ".join([*runtimes, str(library)])}


class WallClock:
    """The wall clock of the daemons that have its environment."""

    def __init__(self, path: Path):
        self.path = path
        path.write_bytes(struct.pack("=q", 0))
        self.environment = preload(BUILD / "tests" / "faults" / "libclockshift.so", CLOCKSHIFT_FILE=str(path))

    def shift(self, seconds: float) -> None:
        """Set it so many seconds ahead of the real one, or behind it."""
        fd = os.open(self.path, os.O_WRONLY)
        try:
            os.pwrite(fd, struct.pack("=q", int(seconds * SECOND_NS)), 0)
        finally:
            os.close(fd)


class SlowDisk:
    """How long each sync of a daemon that has its environment takes longer."""

    def __init__(self, path: Path):
        self.path = path
        self.delay(0)
        self.environment = preload(BUILD / "tests" / "bench" / "libslowdisk.so", SLOWDISK_FILE=str(path))

    def delay(self, ms: int) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(str(ms))
        new.replace(self.path)


@contextlib.contextmanager
def running(
    folder: Path, slots: list[int], controller: dict[str, str], agents: dict[str, str] | None = None, arguments: list[str] | None = None
) -> Iterator[Cluster]:
    """A cluster with these variables in the environment of its controller and of its agents."""
    folder.mkdir(parents=True)
    cluster = Cluster(folder, slots, agent_environment=agents, controller=arguments)
    cluster.controller.environment.update(controller)
    try:
        yield cluster.start()
    finally:
        cluster.stop()
