# SPDX-License-Identifier: Apache-2.0
"""The notebook's side of the rows `first-step` and `recover`: for each line on stdin one call of a gang of two ranks, and one line of its
milliseconds on stdout. Run with a controller in GPUCTL_URL: gang.py first|recover.

first     from the call to the slower rank's first all-reduce
recover   from the SIGKILL of a rank between two all-reduces to the slower rank's first all-reduce of the next attempt
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from serverless_gpu import distributed


def now_s() -> float:
    """One clock for all processes of the machine."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@distributed(gpus=2, remote=True)
def meet() -> float:
    """When this rank had done its first all-reduce."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(1))
    at_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    dist.destroy_process_group()
    return at_s


@distributed(gpus=2, remote=True, retries=1)
def go_on(victim: str) -> float:
    """The same on the second attempt; on the first, all-reduces for ever, once rank 1 has written its number to a file."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    dist.all_reduce(torch.ones(1))
    at_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    while os.environ["GPUCTL_ATTEMPT"] == "1":
        if dist.get_rank() == 1 and not os.path.exists(victim):
            Path(victim + ".new").write_text(str(os.getpid()))
            os.rename(victim + ".new", victim)
        dist.all_reduce(torch.ones(1))
        time.sleep(0.001)
    dist.destroy_process_group()
    return at_s


def first() -> float:
    begin_s = now_s()
    return max(meet.distributed()) - begin_s


def recover() -> float:
    killed_s = []
    with tempfile.TemporaryDirectory() as folder:
        victim = Path(folder) / "rank1"

        def kill() -> None:
            while not victim.exists():
                time.sleep(0.01)
            killed_s.append(now_s())
            os.kill(int(victim.read_text()), signal.SIGKILL)

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        done_s = max(go_on.distributed(str(victim)))
        killer.join()
    return done_s - killed_s[0]


def main() -> None:
    measure = {"first": first, "recover": recover}[sys.argv[1]]
    for _ in sys.stdin:
        print(round(measure() * 1000, 2), flush=True)


if __name__ == "__main__":
    main()
