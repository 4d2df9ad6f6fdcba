# SPDX-License-Identifier: Apache-2.0
"""A rank that is hard to be rid of: it ignores TERM, and starts a process that leaves its session and its parent.

Where it may it moves that one into a cgroup of its own, below that of the attempt. It says `ready` and writes on until it is killed.
"""

import os
import signal
import time
from pathlib import Path


def own_cgroup() -> Path | None:
    """That of the attempt, where the node has version 2."""
    place = next((line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")), "")
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        folder = Path(line.split()[4] + place)
        if " - cgroup2 " in line and "/gpuctl-" in place and os.access(folder, os.W_OK):
            return folder
    return None


def hide(folder: Path | None) -> None:
    if folder is not None:
        below = folder / f"below-{os.environ['RANK']}"
        below.mkdir()
        (below / "cgroup.procs").write_text(str(os.getpid()))


signal.signal(signal.SIGTERM, signal.SIG_IGN)
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() != 0:
        os._exit(0)
    hide(own_cgroup())
    os.write(writer, b"!")
    signal.pause()
    os._exit(0)
assert os.read(reader, 1) == b"!"
print("ready", flush=True)
while True:
    print("more", flush=True)
    time.sleep(0.05)
