# SPDX-License-Identifier: Apache-2.0
"""Lightning: a module and a Trainer; under a launcher that set the size of the world, two devices on each of two nodes."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator

import lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

import task


class Module(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = task.network()

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], index: int) -> torch.Tensor:
        x, y = batch
        return torch.nn.functional.mse_loss(self.net(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=task.RATE)


class Whole(torch.utils.data.Sampler[int]):
    """The examples of a rank, step by step, in the order in which one process takes them all."""

    def __init__(self, rank: int, world: int) -> None:
        self.indices = [index for step in range(task.STEPS) for index in range(task.STEPS * task.BATCH)[task.share(step, rank, world)]]

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices)

    def __len__(self) -> int:
        return len(self.indices)


def train(devices: int, num_nodes: int) -> tuple[str, int, float]:
    """Fit for one epoch; the class of the environment that Lightning found, the size of the world, the loss afterwards."""
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    world = devices * num_nodes
    trainer = lightning.Trainer(
        accelerator="cpu", devices=devices, num_nodes=num_nodes, strategy="ddp" if world > 1 else "auto", max_epochs=1, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False,
    )  # fmt: skip
    module = Module()
    dataset = TensorDataset(*task.examples())
    loader = DataLoader(dataset, batch_size=task.BATCH // world, sampler=Whole(trainer.global_rank, world))
    trainer.fit(module, loader)
    environment = trainer._accelerator_connector.cluster_environment
    return type(environment).__name__, trainer.world_size, task.loss_over_all(module.net)


if __name__ == "__main__":
    launched = "WORLD_SIZE" in os.environ
    kind, size, loss = train(devices=2, num_nodes=2) if launched else train(devices=1, num_nodes=1)
    task.say("lightened", kind, size)
    if os.environ.get("RANK", "0") == "0":
        task.report(loss)
    if launched:
        task.leave()
