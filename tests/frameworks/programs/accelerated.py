# SPDX-License-Identifier: Apache-2.0
"""Accelerate: the same lines for one process and for many."""

from __future__ import annotations

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

import task


def main() -> None:
    accelerator = Accelerator()
    task.say("accelerated", accelerator.distributed_type.value, accelerator.num_processes, accelerator.device)
    net = task.network()
    optimizer = torch.optim.SGD(net.parameters(), lr=task.RATE)
    loader = DataLoader(TensorDataset(*task.examples()), batch_size=task.BATCH // accelerator.num_processes)
    model, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    for x, y in loader:
        optimizer.zero_grad()
        accelerator.backward(torch.nn.functional.mse_loss(model(x), y))
        optimizer.step()
    if accelerator.is_main_process:
        task.report(task.loss_over_all(net))
    if accelerator.num_processes > 1:
        task.leave()
    accelerator.end_training()


if __name__ == "__main__":
    main()
