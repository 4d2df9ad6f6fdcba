# SPDX-License-Identifier: Apache-2.0
"""A rank that may run once, and never beside another of its kind.

    once.py FOLDER

It holds a lock for as long as it lives and notes each start: so a second start is seen, and the kernel tells of a second live attempt.
"""

import fcntl
import os
import sys
from pathlib import Path

folder, rank = Path(sys.argv[1]), os.environ["RANK"]
lock = os.open(folder / f"lock-{rank}", os.O_RDWR | os.O_CREAT)
with (folder / "starts").open("a") as starts:
    starts.write(f"{rank} {os.environ['GPUCTL_ATTEMPT']}\n")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    with (folder / "twice").open("a") as twice:
        twice.write(f"{rank} {os.environ['GPUCTL_ATTEMPT']}\n")
    sys.exit("another attempt is live")
for number in range(100):
    os.write(1, b"out %d\n" % number)
    os.write(2, b"err %d\n" % number)
