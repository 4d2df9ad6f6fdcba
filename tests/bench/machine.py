# SPDX-License-Identifier: Apache-2.0
"""What a row was measured on: processor, memory, kernel, disk with the time of an fdatasync, and the versions of ours and of peers."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from common import BUILD, ROOT

#: Debian packages of peers.
PEERS = ("redis-server", "etcd-server", "slurm-wlm", "task-spooler", "parallel", "findutils")
SYNCS = 300


def first_value(file: str, name: str) -> str:
    """The first line `name : value` of a file of /proc."""
    for line in Path(file).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return "unknown"


def disk() -> str:
    """File system, device and kind of what the build folder is on."""
    rows = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    source, _, system = max((row[:3] for row in rows if BUILD.is_relative_to(row[1])), key=lambda row: len(row[1]))
    queue = Path(f"/sys/class/block/{Path(source).name}/queue/rotational")
    kind = "of unknown kind"
    if queue.exists():
        kind = "said to rotate" if queue.read_text().strip() == "1" else "said not to rotate"
    return f"{system} on {source}, {kind}"


def sync_us() -> float:
    """Median of an appended page's fdatasync."""
    spent = []
    with tempfile.NamedTemporaryFile(dir=BUILD) as file:
        for _ in range(SYNCS):
            os.write(file.fileno(), bytes(4096))
            begin = time.perf_counter()
            os.fdatasync(file.fileno())
            spent.append((time.perf_counter() - begin) * 1e6)
    return statistics.median(spent)


def machine() -> dict[str, str]:
    """What stays the same from run to run."""
    memory_kib = int(first_value("/proc/meminfo", "MemTotal").split()[0])
    return {
        "processor": first_value("/proc/cpuinfo", "model name"),
        "cores": str(os.cpu_count()),
        "memory": f"{memory_kib / 1024**2:.0f} GiB",
        "kernel": platform.release(),
        "disk": disk(),
    }


def fingerprint() -> str:
    """One line that tells machines apart."""
    return "; ".join(f"{name} {value}" for name, value in machine().items())


def busy_percent(seconds: float = 1.0) -> float:
    """What all processes take of the machine's cores, over so many seconds: before a row, what its neighbours do."""

    def read() -> tuple[int, int]:
        fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return sum(fields), fields[3] + fields[4]

    total, idle = read()
    time.sleep(seconds)
    later_total, later_idle = read()
    return 100 * (1 - (later_idle - idle) / max(later_total - total, 1))


def package_version(package: str) -> str | None:
    done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", package], capture_output=True, text=True)
    status, _, version = done.stdout.partition(" ")
    return version if status == "installed" else None


def versions() -> dict[str, str]:
    """Of ours, of the peers that are installed, and of .venv: how rarely its Python looks for garbage makes imports longer or shorter."""
    commit = subprocess.run(["git", "describe", "--always"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    changed = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", ".", ":!docs"], cwd=ROOT, capture_output=True).returncode != 0
    found = {"gpuctl": f"{commit or 'unknown'}{', changed' if changed else ''}"}
    found.update({package: version for package in PEERS if (version := package_version(package))})
    code = "import gc, platform, torch; print(platform.python_version(), torch.__version__, gc.get_threshold()[0])"
    done = subprocess.run([ROOT / ".venv/bin/python", "-c", code], capture_output=True, text=True)
    if done.returncode == 0:
        python, found["PyTorch"], threshold = done.stdout.split()
        found["Python"] = f"{python}, looks for garbage every {threshold} objects"
    return found
