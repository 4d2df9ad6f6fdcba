# SPDX-License-Identifier: Apache-2.0
"""The daemons as services of systemd: what a unit promises them, and what they promise a unit."""

from __future__ import annotations

import resource
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import PATIENCE, Cluster


@pytest.fixture
def lowered_files() -> Iterator[int]:
    """A soft limit of open files that nobody else has; what is started meanwhile is born with it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (777, hard))
    yield 777
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("abstract", [False, True])
def test_controller_and_agent_say_when_they_are_ready(
    abstract: bool, make_cluster: Callable[..., Cluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # M4
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        name = str(tmp_path / "notify")
        listener.bind("\0" + name if abstract else name)
        listener.settimeout(PATIENCE)
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + name if abstract else name)
        make_cluster(1)
        assert [listener.recv(100) for _ in range(2)] == [b"READY=1", b"READY=1"]


def test_a_job_has_the_limit_of_open_files_that_its_agent_was_born_with(
    make_cluster: Callable[..., Cluster], lowered_files: int
) -> None:  # M4
    api = make_cluster(1).api
    job = api.submit(["sh", "-c", "ulimit -Sn; ulimit -Hn"])
    assert api.wait(job)["state"] == "SUCCEEDED"
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert api.log(job).split() == [str(lowered_files), "unlimited" if hard == resource.RLIM_INFINITY else str(hard)]
