# SPDX-License-Identifier: Apache-2.0
"""The daemons as services of systemd: what a unit promises them, and what they promise a unit."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import PATIENCE, Cluster


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
