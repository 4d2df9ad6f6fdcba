# SPDX-License-Identifier: Apache-2.0
"""A tutorial's way from a plain loop to Accelerate and the Trainer, on images made here: each digit is a bright bar in its own place.

What differs from the tutorial: the data is not downloaded; nothing is dropped out and the order of batches is fixed, so that the losses of
one process and of many are comparable; what it prints is returned, too; the Trainer's newer names (eval_strategy, label_names) are used.
"""

from __future__ import annotations

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

BATCH = 32  # over all processes


class BasicNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, 1)
        self.conv2 = nn.Conv2d(32, 64, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)
        self.act = F.relu

    def forward(self, x):
        x = self.act(self.conv1(x))
        x = self.act(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = self.act(self.fc1(x))
        x = self.dropout2(x)
        x = self.fc2(x)
        return F.log_softmax(x, dim=1)


def basic_net() -> BasicNet:
    """The same at each call, and without randomness when it trains."""
    torch.manual_seed(0)
    model = BasicNet()
    model.dropout1.p = model.dropout2.p = 0.0
    return model


def digits(count: int, seed: int) -> TensorDataset:
    """Images (count, 1, 28, 28) and labels (count,)."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (count,), generator=generator)
    images = 0.1 * torch.randn(count, 1, 28, 28, generator=generator)
    for image, label in zip(images, labels.tolist()):
        row, column = 2 + 13 * (label // 5), 2 + 5 * (label % 5)
        image[0, row : row + 10, column : column + 4] += 2.0
    return TensorDataset(images, labels)


def train_ddp_accelerate() -> tuple[int, int, float, float]:
    """Processes, steps, loss of the last step on this process, and correct answers in percent of all test images."""
    from accelerate import Accelerator

    accelerator = Accelerator()
    size = BATCH // accelerator.num_processes
    train_loader = DataLoader(digits(256, 1), shuffle=True, batch_size=size, generator=torch.Generator().manual_seed(5))
    test_loader = DataLoader(digits(64, 2), shuffle=False, batch_size=size)
    model = basic_net()
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)

    # Send everything through `accelerator.prepare`
    train_loader, test_loader, model, optimizer = accelerator.prepare(train_loader, test_loader, model, optimizer)

    model.train()
    for _batch_idx, (data, target) in enumerate(train_loader):
        output = model(data)
        loss = F.nll_loss(output, target)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()

    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            output = model(data)
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    mean = accelerator.reduce(loss.detach(), "mean").item()
    print(f"Accuracy: {100.0 * correct / len(test_loader.dataset)}")
    steps, processes = len(train_loader), accelerator.num_processes
    accelerator.end_training()
    return processes, steps, mean, 100.0 * correct / len(test_loader.dataset)


def train_trainer_ddp() -> tuple[int, int, float]:
    """Processes, steps, and the loss on the test images after the epoch."""
    import os

    from transformers import Trainer, TrainingArguments

    size = BATCH // int(os.environ.get("WORLD_SIZE", "1"))
    model = basic_net()

    training_args = TrainingArguments(
        "basic-trainer",
        per_device_train_batch_size=size,
        per_device_eval_batch_size=size,
        num_train_epochs=1,
        eval_strategy="epoch",
        remove_unused_columns=False,
        learning_rate=1e-3,
        label_names=["labels"],
        save_strategy="no",
        disable_tqdm=True,
    )

    def collate_fn(examples):
        pixel_values = torch.stack([example[0] for example in examples])
        labels = torch.tensor([example[1] for example in examples])
        return {"x": pixel_values, "labels": labels}

    class MyTrainer(Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
            outputs = model(inputs["x"])
            target = inputs["labels"]
            loss = F.nll_loss(outputs, target)
            return (loss, outputs) if return_outputs else loss

    trainer = MyTrainer(
        model,
        training_args,
        train_dataset=digits(256, 1),
        eval_dataset=digits(64, 2),
        data_collator=collate_fn,
    )

    trainer.train()
    losses = [entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry]
    return training_args.world_size, trainer.state.global_step, losses[-1]
