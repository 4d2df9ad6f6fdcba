# SPDX-License-Identifier: Apache-2.0
"""The task that the programs of this folder train on, and what they print of it: a small network on numbers that are always the same.

A step is of BATCH examples over all ranks, so that the losses are those of one process, whatever the number of ranks.
"""

from __future__ import annotations

import os

import torch

STEPS, BATCH, INPUTS = 5, 8, 6
RATE = 0.1


def network() -> torch.nn.Sequential:
    """A float64 network of (batch, INPUTS) -> (batch, 1) with the same weights at each call."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(INPUTS, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    return net.double()


def examples() -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs (STEPS * BATCH, INPUTS) and targets (STEPS * BATCH, 1), both float64."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(STEPS * BATCH, INPUTS, generator=generator, dtype=torch.float64)
    return x, x.sum(dim=1, keepdim=True).sin()


def share(step: int, rank: int, world: int) -> slice:
    """The examples of a rank in a step."""
    size = BATCH // world
    begin = step * BATCH + rank * size
    return slice(begin, begin + size)


def loss_over_all(module: torch.nn.Module) -> float:
    """The loss over all examples."""
    x, y = examples()
    with torch.no_grad():
        return torch.nn.functional.mse_loss(module(x), y).item()


def say(*words: object) -> None:
    """Print a line in one write: under torchrun the ranks of a node share a pipe, and what is printed in pieces mixes."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def report(*values: float | int | str) -> None:
    """Print a result, with digits that hide only the order of additions."""
    say("result", *(f"{value:.10f}" if isinstance(value, float) else value for value in values))


def leave() -> None:
    """End all ranks together, without teardown: torch may abort while it closes a group whose peer is gone."""
    if torch.distributed.is_initialized():
        torch.distributed.barrier()
    os._exit(0)
