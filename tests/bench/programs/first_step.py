# SPDX-License-Identifier: Apache-2.0
"""The same gang as a script for torchrun: each rank prints when, by CLOCK_BOOTTIME in seconds, it had done its first all-reduce."""

from __future__ import annotations

import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
at_s = time.clock_gettime(time.CLOCK_BOOTTIME)
sys.stdout.write(f"{at_s}\n")  # at once: two ranks have one pipe
sys.stdout.flush()
dist.destroy_process_group()
