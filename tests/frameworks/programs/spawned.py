# SPDX-License-Identifier: Apache-2.0
"""torch.multiprocessing.spawn, as code for one process a node has it: each process counts out its rank by itself."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

import task


def worker(local_rank: int, node: int, nodes: int, processes: int) -> None:
    rank, world = node * processes + local_rank, nodes * processes
    dist.init_process_group("gloo", rank=rank, world_size=world)
    net = task.network()
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=task.RATE)
    x, y = task.examples()
    for step in range(task.STEPS):
        mine = task.share(step, rank, world)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x[mine]), y[mine]).backward()
        optimizer.step()
    task.say("spawned", rank, world)
    if rank == 0:
        task.report(task.loss_over_all(net))
    task.leave()


def main() -> None:
    processes = int(os.environ["NPROC_PER_NODE"])
    mp.spawn(worker, args=(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), processes), nprocs=processes)


if __name__ == "__main__":
    main()
