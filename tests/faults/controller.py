# SPDX-License-Identifier: Apache-2.0
"""A controller alone, without agents, that is meant to die.

It is started plainly, or under strace, which kills it or makes its calls fail.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import urllib.parse
from pathlib import Path

import pytest

from harness import GPUCTLD, PATIENCE, Api, eventually

#: What changes files, and what tells the world.
CALLS = [
    "write", "writev", "pwrite64", "fdatasync", "fsync", "sync_file_range", "ftruncate", "fallocate", "rename", "renameat", "renameat2",
    "unlink", "unlinkat", "mkdir", "mkdirat", "openat", "fchmod", "sendto", "sendmsg",
]  # fmt: skip


def tracing(calls: list[str], *more: str, out: str | Path = "/dev/null") -> list[str]:
    """The words before a command under strace; all threads. With --seccomp-bpf strace 6.1 would not send signals."""
    return ["strace", "-f", "-qq", "-o", str(out), "-e", "trace=" + ",".join(calls), *more]


def killed_at(call: str, number: int) -> list[str]:
    """SIGKILL instead of a thread's so many-th call of that name."""
    return tracing([call], "-e", f"inject={call}:signal=SIGKILL:when={number}")


def failing_at(call: str, number: int, error: str, lasting: bool) -> list[str]:
    """That call fails, and all that follow where it lasts."""
    return tracing([call], "-e", f"inject={call}:error={error}:when={number}{'+' if lasting else ''}")


def traced_here() -> None:
    """A container may forbid it."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    tried = subprocess.run([*tracing(["write"]), "true"], capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"strace cannot trace here: {tried.stderr.strip()}")


class Controller:
    """gpuctld on a state folder, on the same port in all its lives."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.endpoint = folder / "endpoint"
        self.log = folder / "gpuctld.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.pid = 0
        folder.mkdir(parents=True, exist_ok=True)

    def start(self, wrapper: list[str] | None = None) -> bool:
        """Start it, perhaps under strace or with an environment of its own; whether it came to serve before it ended."""
        self.endpoint.unlink(missing_ok=True)
        command = [
            *(wrapper or []), str(GPUCTLD), "--state", str(self.folder / "controller"), "--listen", f"127.0.0.1:{self.port}",
            "--endpoint-file", str(self.endpoint), "--beat", "60s",
        ]  # fmt: skip
        options = os.environ.get("ASAN_OPTIONS", "")
        traced = command[0] == "strace"  # where nothing can look for leaks
        environment = {**os.environ, "ASAN_OPTIONS": f"{options}:detect_leaks=0" if traced else options}
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment)
        eventually(lambda: self.endpoint.exists() or not self.alive(), "the controller's endpoint file")
        if not self.endpoint.exists():
            return False
        told = json.loads(self.endpoint.read_text())
        self.pid = told["pid"]
        self.port = urllib.parse.urlsplit(told["url"]).port or 0
        return True

    def must_start(self) -> None:
        assert self.start(), self.said()

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def api(self, token: str | None = None) -> Api:
        """A client; of the administrator without a token."""
        return Api(f"http://127.0.0.1:{self.port}", token or (self.folder / "controller" / "admin.token").read_text().strip())

    def wait(self) -> int:
        """Its exit status, negative for a signal; strace hands on that of the controller."""
        assert self.process is not None
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """SIGKILL, not to strace: what it traces would go on."""
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError):
            if self.alive():
                os.kill(self.traced() or self.process.pid, signal.SIGKILL)
        self.wait()

    def traced(self) -> int:
        """The controller under strace; 0 without strace."""
        assert self.process is not None
        with contextlib.suppress(OSError):
            if "strace" in os.readlink(f"/proc/{self.process.pid}/exe"):
                children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
                return int(children[0]) if children else 0
        return 0

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]
