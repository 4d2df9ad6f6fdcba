# SPDX-License-Identifier: Apache-2.0
"""Train a small network on handwritten digits with PyTorch DistributedDataParallel.

Start it once per rank, as `gpuctl run --gpus 2 -- python digits_ddp.py` does: the launcher sets RANK, WORLD_SIZE,
LOCAL_RANK, MASTER_ADDR and MASTER_PORT, and the script needs nothing else. It uses NCCL where a rank has a GPU and gloo
otherwise. The data are the 1,797 scans of 8 x 8 pixels that ship with scikit-learn; every fifth one is held out and only
used to measure the accuracy at the end.
"""

import argparse
import os
import socket

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def load(held_out: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Return pixels (n, 64) in 0..1 as float32 and labels (n,) as int64, of the held-out fifth or of the rest."""
    digits = load_digits()
    mask = torch.arange(len(digits.target)) % 5 == 0
    if not held_out:
        mask = ~mask
    pixels = torch.tensor(digits.data, dtype=torch.float32) / 16.0
    labels = torch.tensor(digits.target, dtype=torch.int64)
    return pixels[mask], labels[mask]


def make_network() -> nn.Module:
    """Map pixels (n, 64) to scores (n, 10)."""
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


def train(epochs: int, batch: int, device: torch.device) -> nn.Module:
    """Train on this rank's share of the data; gradients are averaged over all ranks by DDP."""
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    network = DistributedDataParallel(make_network().to(device))
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    loss_of = nn.CrossEntropyLoss()
    pixels, labels = load(held_out=False)
    share = len(labels) // world
    for epoch in range(1, epochs + 1):
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(epoch))
        mine = order[rank * share : (rank + 1) * share]
        total, steps = 0.0, 0
        for rows in mine.split(batch):
            optimizer.zero_grad()
            loss = loss_of(network(pixels[rows].to(device)), labels[rows].to(device))
            loss.backward()
            optimizer.step()
            total, steps = total + loss.item(), steps + 1
        print(f"epoch {epoch:2d}  loss {total / steps:.4f}", flush=True)
    return network.module


def evaluate(network: nn.Module, device: torch.device) -> float:
    """Return the share of held-out digits that the network names right."""
    pixels, labels = load(held_out=True)
    with torch.no_grad():
        named = network(pixels.to(device)).argmax(dim=1).cpu()
    return (named == labels).float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=16, help="digits a step and rank")
    options = parser.parse_args()

    gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if gpu else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
    name = torch.cuda.get_device_name(device) if gpu else "cpu"
    print(
        f"rank {dist.get_rank()} of {dist.get_world_size()} on {os.environ.get('GPUCTL_NODE', socket.gethostname())}: "
        f"{name}, {dist.get_backend()}, torch {torch.__version__}",
        flush=True,
    )
    torch.set_num_threads(1)
    network = train(options.epochs, options.batch, device)
    if dist.get_rank() == 0:
        print(f"test accuracy {evaluate(network, device):.3f}", flush=True)
    dist.barrier()  # all ranks leave together: a group that loses a peer while it closes may abort
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
