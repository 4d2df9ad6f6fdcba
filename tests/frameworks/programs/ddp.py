# SPDX-License-Identifier: Apache-2.0
"""DistributedDataParallel as torchrun's users write it; with no launcher, one process without a group."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import task


def main() -> None:
    launched = "RANK" in os.environ
    if launched:
        dist.init_process_group("gloo")
    rank, world = (dist.get_rank(), dist.get_world_size()) if launched else (0, 1)
    net = task.network()
    model = DistributedDataParallel(net) if launched else net
    optimizer = torch.optim.SGD(model.parameters(), lr=task.RATE)
    x, y = task.examples()
    for step in range(task.STEPS):
        mine = task.share(step, rank, world)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x[mine]), y[mine]).backward()
        optimizer.step()
    if rank == 0:
        task.report(task.loss_over_all(net))
    if launched:
        names = ("RANK", "LOCAL_RANK", "GROUP_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
        task.say("launched", *(os.environ.get(name, "-") for name in names))
        task.say("meets", os.environ["MASTER_PORT"] == os.environ.get("PET_MASTER_PORT"))
        task.leave()


if __name__ == "__main__":
    main()
