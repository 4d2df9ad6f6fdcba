# SPDX-License-Identifier: Apache-2.0
"""Agents that run jobs as the users of their owners: who may start one, and where its files may lie."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Cluster

#: A Python that every user may execute; that of the tests may lie in a home.
PYTHON = "/usr/bin/python3"

MAY_MOUNT = os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "--ipc", "true"], capture_output=True).returncode == 0
#: Root of a container without the right to mount cannot give a job a /tmp of its own, and the agent refuses to start.
needs_owners = pytest.mark.skipif(not MAY_MOUNT, reason="only root with mounts of its own can run jobs as other users")
#: The values of --run-as, for parametrize.
RUN_AS = ["agent", pytest.param("owner", marks=needs_owners)]


@contextlib.contextmanager
def passable_folder() -> Iterator[Path]:
    """A folder that users pass and do not list, outside of /tmp, which jobs have of their own."""
    folder = Path(tempfile.mkdtemp(prefix="gpuctl-test-", dir="/srv" if MAY_MOUNT else None))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def cluster_of(slots: list[int], *agent: str) -> Iterator[Cluster]:
    """A cluster in such a folder, whose agents have these options."""
    with passable_folder() as folder:
        cluster = Cluster(folder, slots, agent=list(agent)).start()
        try:
            yield cluster
        finally:
            cluster.stop()
