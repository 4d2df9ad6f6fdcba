# SPDX-License-Identifier: Apache-2.0
"""The job of the row `training`: DistributedDataParallel over gloo for some seconds; rank 0 prints its steps a second as JSON.

    steps.py SECONDS

What the environment says of ranks is what both launchers set. The first steps do not count; all ranks stop at the same step, which rank 0
tells in the batch that it sends round.
"""

from __future__ import annotations

import json
import os
import sys
import time

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

WARM_UP = 50
BLOCK = 50  #: steps between two looks at the clock
WIDTH = 512
BATCH = 32


def more_to_do(end: float) -> bool:
    """What rank 0's clock says, on all ranks."""
    word = torch.tensor([1 if time.monotonic() < end else 0])
    distributed.broadcast(word, src=0)
    return bool(word.item())


def main() -> None:
    seconds = float(sys.argv[1])
    torch.manual_seed(1)
    distributed.init_process_group("gloo")
    layers = [layer for _ in range(4) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = DistributedDataParallel(nn.Sequential(*layers, nn.Linear(WIDTH, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, targets = torch.randn(BATCH, WIDTH), torch.randint(0, 10, (BATCH,))

    def steps(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()

    steps(WARM_UP)
    distributed.barrier()
    begin, done = time.monotonic(), 0
    while more_to_do(begin + seconds):
        steps(BLOCK)
        done += BLOCK
    spent = time.monotonic() - begin
    if distributed.get_rank() == 0:
        print(json.dumps({"steps": done, "steps_per_s": done / spent, "threads": os.environ["OMP_NUM_THREADS"]}), flush=True)
    distributed.destroy_process_group()
    os._exit(0)  # once in some twenty runs torch 2.13 aborts at its exit where rank 0 has had the store, as under no launcher


if __name__ == "__main__":
    main()
