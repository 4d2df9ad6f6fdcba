# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed, ZeRO stage 1 on CPUs: each rank holds its part of the optimizer's state; with no launcher, the same by torch alone."""

from __future__ import annotations

import os

import torch

import task


def train_alone() -> torch.nn.Module:
    net = task.network().float()
    optimizer = torch.optim.SGD(net.parameters(), lr=task.RATE, momentum=0.9)
    x, y = (values.float() for values in task.examples())
    for step in range(task.STEPS):
        mine = task.share(step, 0, 1)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(net(x[mine]), y[mine]).backward()
        optimizer.step()
    return net


def train() -> torch.nn.Module:
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    import deepspeed

    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # only inference uses it, and its first user compiles it for a minute
    deepspeed.init_distributed()
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    net = task.network().float()
    engine, optimizer, _, _ = deepspeed.initialize(
        model=net,
        optimizer=torch.optim.SGD(net.parameters(), lr=task.RATE, momentum=0.9),
        config={
            "train_micro_batch_size_per_gpu": task.BATCH // world,
            "gradient_accumulation_steps": 1,
            "zero_optimization": {"stage": 1},
            "zero_allow_untested_optimizer": True,
            "gradient_clipping": 0.0,
        },
    )
    x, y = (values.float() for values in task.examples())
    for step in range(task.STEPS):
        mine = task.share(step, rank, world)
        engine.backward(torch.nn.functional.mse_loss(engine(x[mine]), y[mine]))
        engine.step()
    held = sum(values["momentum_buffer"].numel() for values in optimizer.optimizer.state.values())
    task.say("sped", engine.zero_optimization_stage(), torch.distributed.get_backend(), held)
    return engine.module


def main() -> None:
    launched = "RANK" in os.environ
    net = train() if launched else train_alone()
    x, y = (values.float() for values in task.examples())
    with torch.no_grad():
        loss = torch.nn.functional.mse_loss(net(x), y).item()
    if os.environ.get("RANK", "0") == "0":
        task.report(f"{loss:.5f}")
    if launched:
        task.leave()


if __name__ == "__main__":
    main()
