# SPDX-License-Identifier: Apache-2.0
"""Runs Ray's processes on one node: `ray start --block` in its own session, with the job's part of the node, with ports that no other Ray
of the host has, and with its files in the attempt's folder. Its end also ends its child processes; processes that escape end with the
attempt.
"""

from __future__ import annotations

import contextlib
import functools
import glob
import hashlib
import importlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from serverless_gpu.ray.meeting import START_S

STOP_S = 10.0  # for Ray to end its processes by itself
PAUSE_S = 0.05  # between two reads of Ray's log
STORE_SHARE = 0.3  # of memory for objects; Ray's default share
STORE_LEAST_BYTES = 80 * 1024**2  # Ray takes no less than 75 MB
STORE_MOST_BYTES = 200 * 1000**3
STARTED_TOO_SLOWLY = "timed out during startup"  # printed by a Ray that gave up on its own processes, after a time limit that cannot be set
NODES_HAVE_FOLDERS = (2, 55)  # the first Ray whose nodes may each have their own folder
ASKS_FOR_TOKEN = (2, 52)  # the first Ray that takes orders only with the job's secret

# These variables describe a rank of the job. They would mislead Ray's workers, which are no ranks, or are ranks of Ray's own groups.
RANK_NAMES = (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "ROLE_NAME", "ROLE_WORLD_SIZE",
    "NODE_RANK", "NNODES", "NUM_NODES", "NPROC_PER_NODE", "CLUSTER_SPEC", "MASTER_ADDR", "MASTER_PORT",
    "GPUCTL_RANK", "GPUCTL_FUNCTION", "GPUCTL_RESULT_DIR", "RAY_ADDRESS",
)  # fmt: skip


class RayFailed(RuntimeError):
    """Ray did not start on a node, or ended before the driver. The text has Ray's last output."""


def version() -> tuple[int, int]:
    """Return (major, minor) of the Ray in this Python. Raises RayFailed if there is none."""
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise RayFailed(
            f"Ray cannot be imported on node {os.environ.get('GPUCTL_NODE', '?')} by {sys.executable} ({error}): install it there "
            f"({sys.executable} -m pip install 'ray[default]'), or name a Python that has it (python=PATH)"
        ) from error
    major, minor = str(ray.__version__).split(".")[:2]
    return int(major), int(minor)


# --- the job's part of the node ---------------------------------------------------------------------


def _memory_bytes() -> int:
    """Return the memory of the machine, or of this process's control group if that is less."""
    limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            limit = min(limit, int(Path(path).read_text()))
    return limit


def store_bytes(share: float) -> int:
    """Return the bytes of the object store for a job that has this share of the node.

    At most 90 % of that share of the free shared memory, but at least STORE_LEAST_BYTES.
    """
    wanted = min(_memory_bytes() * STORE_SHARE, STORE_MOST_BYTES) * share
    with contextlib.suppress(OSError):
        room = os.statvfs("/dev/shm")  # noqa: S108  (only asked how large it is)
        wanted = min(wanted, room.f_bavail * room.f_frsize * 0.9 * share)
    return max(int(wanted), STORE_LEAST_BYTES)


def resources() -> list[str]:
    """Return options with the job's GPUs and CPUs: its GPUs, with the same share of the cores; on CPU slots one CPU per slot."""
    cores = len(os.sched_getaffinity(0))
    gpus = len([word for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if word.strip()])
    slots = int(os.environ["NPROC_PER_NODE"])
    share = min(gpus / max(len(glob.glob("/dev/nvidia[0-9]*")), gpus) if gpus else slots / cores, 1.0)
    cpus = max(int(cores * share), gpus) if gpus else slots
    return [f"--num-gpus={gpus}", f"--num-cpus={cpus}", f"--object-store-memory={store_bytes(share)}"]


# --- its files --------------------------------------------------------------------------------------


def _make_folder() -> str:
    """Make a folder for Ray's files in the attempt's folder; outside of an attempt, among temporary files."""
    results = os.environ.get("GPUCTL_RESULT_DIR", "")
    work = os.path.join(os.path.dirname(os.path.abspath(results)), "work")
    return tempfile.mkdtemp(prefix="ray-", dir=work if results and os.path.isdir(work) else None)


def shared_folder(secret: str) -> str:
    """Return the path for a Ray whose nodes all use the head's path: it can be made on every node, and no other job has it. A node removes
    it unless it is killed.
    """
    return f"/tmp/gpuctl-ray-{hashlib.sha256(secret.encode()).hexdigest()[:12]}"  # noqa: S108  (nobody without the secret knows the name)


def environment(secret: str) -> dict[str, str]:
    """Return the environment of Ray's processes, and so of its workers."""
    kept = {name: value for name, value in os.environ.items() if name not in RANK_NAMES and not name.startswith("TORCHELASTIC_")}
    modules = os.environ.get("GPUCTL_MODULES")
    if modules:  # so that functions of the driver may use serverless_gpu in tasks and actors
        kept["PYTHONPATH"] = os.pathsep.join(filter(None, [modules, os.environ.get("PYTHONPATH")]))
    return {**kept, **credentials(secret)}


def credentials(secret: str) -> dict[str, str]:
    """Return the variables that make Ray take orders only with the secret, in versions that support it."""
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secret, "RAY_USAGE_STATS_ENABLED": "0"}


def _free_port() -> int:
    """Return a port that is free now. Ray binds most of its ports by itself, but needs these in advance."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def dashboard_host(own_address: str) -> str:
    """Return the address on which the dashboard listens. It can run commands, so without a token only this machine may reach it."""
    return own_address if version() >= ASKS_FOR_TOKEN else "127.0.0.1"


def head_options(own_address: str) -> list[str]:
    """Return the options that make a node the head. It has Ray's dashboard if Ray is installed as ray[default]."""
    return [
        "--head", "--port=0", f"--ray-client-server-port={_free_port()}", f"--dashboard-host={dashboard_host(own_address)}",
        f"--dashboard-port={_free_port()}",
    ]  # fmt: skip


# --- the node ---------------------------------------------------------------------------------------


class RayNode:
    """Ray on this node, from `start` to `stop`."""

    def __init__(self, own_address: str, head_address: str | None, secret: str):
        self.metrics_port = _free_port()
        self.address = ""  # of the cluster, "host:port", once it has started
        self._folder = _make_folder()
        # Ray makes unix sockets deep in its folder, and the limit of their paths is 107 bytes. So Ray gets a short name for the folder,
        # which is valid while this process has the folder open.
        self._opened = os.open(self._folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._shared_folder = None if version() >= NODES_HAVE_FOLDERS else shared_folder(secret)
        self._log = os.path.join(self._folder, "start.log")
        self._launch = functools.partial(self._launch_as, own_address, head_address, secret)
        self._process = self._launch()

    @classmethod
    def start(cls, own_address: str, head_address: str | None, secret: str) -> RayNode:
        """Start Ray and wait until it is up: a new cluster, or one more node of the cluster at `head_address`. Raises RayFailed."""
        node = cls(own_address, head_address, secret)
        try:
            said = node._started()
            node.address = head_address or said
        except BaseException:
            node.stop()
            raise
        return node

    def _launch_as(self, own_address: str, head_address: str | None, secret: str) -> subprocess.Popen[bytes]:
        role = head_options(own_address) if head_address is None else [f"--address={head_address}"]
        folder = self._shared_folder or f"/proc/{os.getpid()}/fd/{self._opened}"
        if self._shared_folder is not None:
            os.makedirs(self._shared_folder, mode=0o700, exist_ok=True)
        if self._shared_folder is None or head_address is None:
            role.append(f"--temp-dir={folder}")
        command = [
            sys.executable, "-u", "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats", *role, *resources(),
            f"--node-ip-address={own_address}", "--min-worker-port=0", "--max-worker-port=0", "--dashboard-agent-listen-port=0",
            f"--metrics-export-port={self.metrics_port}",
        ]  # fmt: skip
        env = {**environment(secret), "DASHBOARD_METRIC_PORT": str(_free_port())}  # without this, each Ray of the host has the same port
        with open(self._log, "wb") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env, start_new_session=True)

    def _said(self) -> str:
        text = Path(self._log).read_text(errors="replace")
        return re.sub(r"\x1b\[[0-9;]*m", "", text)

    def _started(self) -> str:
        """Wait until Ray is up, and return the address of a head, or any text on another node."""
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if self._process.poll() is not None and STARTED_TOO_SLOWLY in self._said():
                self._kill()
                self._process = self._launch()
            self.check()
            said = self._said()
            if "will now block" in said:
                found = re.search(r"--address='([^']+)'", said)
                return found.group(1) if found else "up"
            time.sleep(PAUSE_S)
        raise RayFailed(f"Ray did not start on node {os.environ.get('GPUCTL_NODE', '?')} in {START_S:.0f} s:\n{self._said()[-4000:]}")

    def check(self) -> None:
        """Raise RayFailed if Ray has ended."""
        code = self._process.poll()
        if code is not None:
            raise RayFailed(f"Ray ended on node {os.environ.get('GPUCTL_NODE', '?')} with exit code {code}:\n{self._said()[-4000:]}")

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """End Ray on this node: with SIGTERM, and after 10 seconds with SIGKILL."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._kill()
            self._process.wait()
        if self._shared_folder is not None:
            shutil.rmtree(self._shared_folder, ignore_errors=True)
        os.close(self._opened)
