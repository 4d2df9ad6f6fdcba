# SPDX-License-Identifier: Apache-2.0
"""Fully sharded data parallel training: each rank holds its part of every parameter, and prints how much that is."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

import task


def main() -> None:
    launched = "RANK" in os.environ
    if launched:
        dist.init_process_group("gloo")
    rank, world = (dist.get_rank(), dist.get_world_size()) if launched else (0, 1)
    model = task.network()
    if launched:
        mesh = init_device_mesh("cpu", (world,))
        for layer in (model[0], model[2]):
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=task.RATE)
    x, y = task.examples()
    for step in range(task.STEPS):
        mine = task.share(step, rank, world)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x[mine]), y[mine]).backward()
        optimizer.step()
    loss = task.loss_over_all(model)
    if rank == 0:
        task.report(loss)
    if launched:
        held = sum(parameter.to_local().numel() for parameter in model.parameters() if isinstance(parameter, DTensor))
        task.say("holds", held)
        task.leave()


if __name__ == "__main__":
    main()
