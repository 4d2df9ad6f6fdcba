# SPDX-License-Identifier: Apache-2.0
"""Training that goes on from what it finds in $GPUCTL_CHECKPOINT_DIR, saved as its library does and with no word to gpuctl:
`saved.py dcp|lightning|trainer GATE`. Without a launcher, one process that trains from the beginning to the end.

On the first attempt it stops after some steps: makes GATE/saved.RANK, waits for GATE/go, and rank 0 is killed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.nn.parallel import DistributedDataParallel

import task

RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
FOLDER = Path(os.environ.get("GPUCTL_CHECKPOINT_DIR", "saved"))
STOP = 3  # steps


def stop(step: int) -> None:
    """Die after some steps, once the test has seen the checkpoint."""
    if step != STOP or os.environ.get("GPUCTL_ATTEMPT") != "1":
        return
    gate = Path(sys.argv[2])
    (gate / f"saved.{RANK}").touch()
    while not (gate / "go").exists():
        time.sleep(0.05)
    if RANK == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def begins(step: int) -> None:
    task.say("begins", step)


def train_dcp() -> None:
    """A loop with torch.distributed.checkpoint: each rank writes a file of its own, and rank 0 the metadata behind them."""
    if WORLD > 1:
        dist.init_process_group("gloo")
    net = task.network()
    model = DistributedDataParallel(net) if WORLD > 1 else net
    optimizer = torch.optim.SGD(model.parameters(), lr=task.RATE)
    state = {"net": net.state_dict(), "step": torch.tensor(0)}
    whole = sorted(path.parent for path in FOLDER.glob("step-*/.metadata"))
    if whole:
        dcp.load(state, checkpoint_id=whole[-1])
        net.load_state_dict(state["net"])
    x, y = task.examples()
    begins(int(state["step"]))
    for step in range(int(state["step"]), task.STEPS):
        mine = task.share(step, RANK, WORLD)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x[mine]), y[mine]).backward()
        optimizer.step()
        dcp.save({"net": net.state_dict(), "step": torch.tensor(step + 1)}, checkpoint_id=FOLDER / f"step-{step + 1}")
        stop(step + 1)
    if RANK == 0:
        task.report(task.loss_over_all(net))


def train_lightning() -> None:
    """Lightning's Trainer with its ModelCheckpoint, which rank 0 alone writes."""
    import lightning
    from torch.utils.data import DataLoader, TensorDataset

    from lightened import Module

    class Stops(lightning.Callback):
        def on_train_epoch_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
            stop(trainer.current_epoch)

    saves = lightning.pytorch.callbacks.ModelCheckpoint(dirpath=FOLDER, save_last=True, every_n_epochs=1, save_on_train_epoch_end=True)
    trainer = lightning.Trainer(
        accelerator="cpu", devices=1, num_nodes=WORLD, strategy="ddp" if WORLD > 1 else "auto", max_epochs=task.STEPS, logger=False,
        enable_progress_bar=False, enable_model_summary=False, use_distributed_sampler=False, callbacks=[saves, Stops()],
    )  # fmt: skip
    module = Module()
    last = FOLDER / "last.ckpt"
    begins(torch.load(last, weights_only=False)["epoch"] + 1 if last.exists() else 0)
    trainer.fit(module, DataLoader(TensorDataset(*task.examples()), batch_size=task.BATCH), ckpt_path=last if last.exists() else None)
    if RANK == 0:
        task.report(task.loss_over_all(module.net))


def train_trainer() -> None:
    """The Trainer of transformers: the main process writes the model, and each one the state of its random numbers."""
    from torch.utils.data import TensorDataset
    from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
    from transformers.trainer_utils import get_last_checkpoint

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = task.network()

        def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": torch.nn.functional.mse_loss(self.net(x), labels)}

    class Stops(TrainerCallback):
        def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **rest: object) -> None:
            stop(state.global_step)

    def collate(rows: list[tuple[torch.Tensor, torch.Tensor]]) -> dict[str, torch.Tensor]:
        return {"x": torch.stack([x for x, _ in rows]), "labels": torch.stack([y for _, y in rows])}

    trainer = Trainer(
        model=Net(),
        args=TrainingArguments(
            output_dir=str(FOLDER), per_device_train_batch_size=task.BATCH // WORLD, num_train_epochs=1, learning_rate=task.RATE,
            lr_scheduler_type="constant", report_to=[], save_strategy="steps", save_steps=1, logging_strategy="no", disable_tqdm=True,
            use_cpu=True, seed=3, optim="sgd",
        ),
        train_dataset=TensorDataset(*task.examples()),
        data_collator=collate,
        callbacks=[Stops()],
    )  # fmt: skip
    last = get_last_checkpoint(str(FOLDER)) if FOLDER.exists() else None
    begins(int(last.rsplit("-", 1)[1]) if last else 0)
    trainer.train(resume_from_checkpoint=last)
    if RANK == 0:
        task.report(task.loss_over_all(trainer.model.net))


if __name__ == "__main__":
    {"dcp": train_dcp, "lightning": train_lightning, "trainer": train_trainer}[sys.argv[1]]()
    task.leave()
