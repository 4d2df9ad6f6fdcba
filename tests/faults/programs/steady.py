# SPDX-License-Identifier: Apache-2.0
"""A rank of a gang that shows at every moment that it runs: `steady.py FOLDER`.

A thread writes `ATTEMPT RANK NANOSECONDS` to FOLDER/lines every 20 ms, whatever the network does; the main thread sums over all ranks by
torch's gloo, now and then, until rank 0 finds FOLDER/gate. With a second argument there is no torch: the ranks only write, and look for
the gate by themselves.
"""

import os
import sys
import threading
import time
from pathlib import Path

folder = Path(sys.argv[1])
attempt, rank = os.environ["GPUCTL_ATTEMPT"], os.environ["RANK"]
lines = os.open(folder / "lines", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
over = threading.Event()


def write() -> None:
    while not over.wait(0.02):
        os.write(lines, f"{attempt} {rank} {time.clock_gettime_ns(time.CLOCK_BOOTTIME)}\n".encode())


def wait_for_gate() -> None:
    while not (folder / "gate").exists():
        over.wait(0.02)


def sum_until_gate() -> None:
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    (folder / f"met.{attempt}.{rank}").touch()
    ended = torch.zeros(1)
    while ended.item() == 0:
        ended = torch.ones(1) if rank == "0" and (folder / "gate").exists() else torch.zeros(1)
        dist.all_reduce(ended)
        over.wait(0.1)
    dist.destroy_process_group()


threading.Thread(target=write, daemon=True).start()
wait_for_gate() if len(sys.argv) > 2 else sum_until_gate()
over.set()
