# SPDX-License-Identifier: Apache-2.0
"""A bundle, and a controller and an agent of it on loopback, in a folder of their own that goes with them. Every call has a deadline."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tarfile
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MARK = "GPUCTL_GPU_CHECK"  # in the environment of what we start, to find what was left behind

#: Seconds: for what only asks, for what starts or ends daemons, for a job, for building a bundle.
ASK, START, JOB, BUILD = 60, 60, 600, 900


class Failure(Exception):
    """A check did not hold; the text says what was seen."""


def run_program(
    words: list[str], environment: dict[str, str], seconds: float, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run to the end, or kill the program and all of its session and raise Failure after so many seconds."""
    with subprocess.Popen(
        words,
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                output, errors = process.communicate()
                raise Failure(f"{' '.join(words[:3])} took longer than {seconds:.0f} s: {(output + errors)[-500:]}") from None
            raise
        return subprocess.CompletedProcess(words, process.returncode, output, errors)


def clean_environment() -> dict[str, str]:
    """Ours without settings that would lead to another controller or lend its programs our libraries."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GPUCTL_") and name != "PYTHONPATH"}


def open_bundle(given: str | None, scratch: Path) -> Path:
    """The folder of a bundle: the one that was given, unpacked if it is an archive, or one that is built now."""
    if given is not None and Path(given).is_dir():
        folder = Path(given).resolve()
    else:
        archive = Path(given) if given is not None else build_bundle(scratch)
        unpacked = scratch / "bundle"
        try:
            with tarfile.open(archive) as tar:
                if hasattr(tarfile, "data_filter"):
                    tar.extraction_filter = tarfile.data_filter
                tar.extractall(unpacked)
        except (OSError, tarfile.TarError) as error:
            raise Failure(f"{archive} cannot be unpacked: {error}") from error
        folders = list(unpacked.iterdir())
        if len(folders) != 1:
            raise Failure(f"{archive} holds {len(folders)} folders, not one")
        folder = folders[0]
    for part in ("VERSION", "bin/gpuctl", "bin/gpuctld", "bin/gpuagent", "bin/gpushim", "python/serverless_gpu"):
        if not (folder / part).exists():
            raise Failure(f"{folder} is no bundle: it has no {part}")
    return folder


def build_bundle(scratch: Path) -> Path:
    """Build one with deploy/bundle."""
    archive = scratch / "bundle.tar.gz"
    script = ROOT / "deploy" / "bundle"
    if not script.exists():
        raise Failure("no bundle was named, and deploy/bundle, which makes one, is not here")
    made = run_program([str(script), "--output", str(archive)], clean_environment(), BUILD)
    if made.returncode != 0:
        raise Failure(f"no bundle was named, and deploy/bundle could not make one: {made.stderr.strip()[-500:]}")
    return archive


def await_end(pid: int, seconds: float) -> None:
    """Until the process has ended, or so many seconds have passed."""
    with contextlib.suppress(ProcessLookupError):
        end = os.pidfd_open(pid)
        try:
            select.select([end], [], [], seconds)
        finally:
            os.close(end)


class Instance:
    """A private controller and node. Use it in a with statement: whatever happens inside, it is gone afterwards."""

    def __init__(self, bundle: Path, python: str):
        self.bundle = bundle
        self.python = python
        self.scratch = Path(tempfile.mkdtemp(prefix="gpuctl-gpu-check-"))
        self.state = self.scratch / "state"
        self.mark = self.scratch.name
        (self.scratch / "run").mkdir(mode=0o700)
        self.environment = clean_environment()
        self.environment.update(
            {"XDG_RUNTIME_DIR": str(self.scratch / "run"), "XDG_CONFIG_HOME": str(self.scratch / "config"), MARK: self.mark}
        )
        self.started = False

    def __enter__(self) -> Instance:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            for pid in self.marked():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            shutil.rmtree(self.scratch, ignore_errors=True)

    def program(self, name: str) -> str:
        return str(self.bundle / "bin" / name)

    def gpuctl(self, *words: str, seconds: float = ASK) -> subprocess.CompletedProcess[str]:
        return run_program([self.program("gpuctl"), *words], self.environment, seconds, self.scratch)

    def start(self, cpu_slots: int | None) -> dict[str, Any]:
        """Start with this machine's GPUs, or with CPU slots; the node's view once it is ready."""
        devices = [] if cpu_slots is None else ["--devices", "none", "--cpu-slots", str(cpu_slots)]
        self.started = True
        up = self.gpuctl("up", "--state", str(self.state), "--python", self.python, "--output", "json", *devices, seconds=START)
        if up.returncode != 0:
            raise Failure(f"gpuctl up exited with {up.returncode}: {up.stderr.strip()}")
        endpoint = json.loads(up.stdout)
        self.environment.update(GPUCTL_URL=endpoint["url"], GPUCTL_TOKEN_FILE=endpoint["token_file"], GPUCTL_STATE=str(self.state))
        return self.wait_for_node()

    def wait_for_node(self) -> dict[str, Any]:
        deadline = time.monotonic() + START
        pause = threading.Event()
        while True:
            listed = self.gpuctl("nodes", "list", "--output", "json")
            nodes = json.loads(listed.stdout)["nodes"] if listed.returncode == 0 else []
            if nodes and nodes[0]["state"] == "READY":
                node: dict[str, Any] = nodes[0]
                return node
            if time.monotonic() > deadline:
                raise Failure(f"no node was ready after {START} s: {listed.stdout}{listed.stderr}")
            pause.wait(0.1)

    def stop(self) -> None:
        """End it, and cancel what still runs on it. Raises Failure when it does not end."""
        if not self.started:
            return
        self.started = False
        for name in ("GPUCTL_URL", "GPUCTL_TOKEN_FILE"):
            self.environment.pop(name, None)
        down = self.gpuctl("down", "--state", str(self.state), "--force", seconds=START)
        if down.returncode != 0:
            raise Failure(f"gpuctl down exited with {down.returncode}: {down.stderr.strip()}")

    def survivors(self, patience: float) -> list[int]:
        """Of what we started, what has not ended after so many seconds: idle supervisors end once their agent is gone."""
        deadline = time.monotonic() + patience
        while (found := self.marked()) and (left := deadline - time.monotonic()) > 0:
            await_end(found[0], left)
        return found

    def marked(self) -> list[int]:
        """Processes that carry our mark in their environment, so descend from what we started."""
        mark = f"{MARK}={self.mark}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
        return found

    def tails(self) -> str:
        """The last lines of the daemons' logs, for the report of a failure."""
        lines = []
        for path in sorted(self.state.glob("*.log")):
            lines.append(f"{path.name}:")
            lines.extend("  " + line for line in path.read_text(errors="replace").splitlines()[-15:])
        return "\n".join(lines)
