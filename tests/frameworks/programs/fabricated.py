# SPDX-License-Identifier: Apache-2.0
"""Lightning Fabric: a loop of its user's own; under a launcher, one device on each of two nodes."""

from __future__ import annotations

import os

import torch
from lightning.fabric import Fabric

import task


def main() -> None:
    launched = "RANK" in os.environ
    fabric = Fabric(accelerator="cpu", devices=1, num_nodes=2 if launched else 1)
    fabric.launch()
    net = task.network()
    model, optimizer = fabric.setup(net, torch.optim.SGD(net.parameters(), lr=task.RATE))
    x, y = task.examples()
    for step in range(task.STEPS):
        mine = task.share(step, fabric.global_rank, fabric.world_size)
        optimizer.zero_grad()
        fabric.backward(torch.nn.functional.mse_loss(model(x[mine]), y[mine]))
        optimizer.step()
    task.say("fabricated", fabric.world_size, fabric.node_rank, fabric.local_rank)
    if fabric.is_global_zero:
        task.report(task.loss_over_all(net))
    if launched:
        task.leave()


if __name__ == "__main__":
    main()
