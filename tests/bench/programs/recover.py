# SPDX-License-Identifier: Apache-2.0
"""The gang of the row `recover` as a script for torchrun with one restart: before it rank 1 says when it kills itself between two
all-reduces, after it each rank says when it had done its first all-reduce. Both as `WORD SECONDS`, by CLOCK_BOOTTIME.
"""

from __future__ import annotations

import os
import signal
import sys
import time

import torch
import torch.distributed as dist


def say(word: str) -> None:
    """At once, for two ranks have one pipe."""
    sys.stdout.write(f"{word} {time.clock_gettime(time.CLOCK_BOOTTIME)}\n")
    sys.stdout.flush()


dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    if dist.get_rank() == 1:
        say("killed")
        os.kill(os.getpid(), signal.SIGKILL)
    while True:  # until the other rank is missed
        dist.all_reduce(torch.ones(1))
say("back")
dist.destroy_process_group()
