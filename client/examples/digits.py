# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # Handwritten digits on two GPUs
#
# A small network learns to read digits by PyTorch's DistributedDataParallel. The training function below runs once per rank, on nodes where
# nobody logs in; its loss arrives as a metric, its return values as a list.
#
# It is a script, `digits.py`, and cell by cell the same as a notebook, `digits.ipynb`, which `percent.py` makes of it.

# %%
from serverless_gpu import distributed

# %% [markdown]
# Data are made inside the function, so that nothing large travels. They are the 1,797 scans of 8 x 8 pixels that come with scikit-learn;
# every fifth one is held out and only used to measure the accuracy.

# %%
def load(held_out):
    """Return pixels (n, 64) in 0..1 as float32 and labels (n,) as int64, of the held-out fifth or of the rest."""
    import torch
    from sklearn.datasets import load_digits

    digits = load_digits()
    mask = torch.arange(len(digits.target)) % 5 == 0
    if not held_out:
        mask = ~mask
    pixels = torch.tensor(digits.data, dtype=torch.float32) / 16.0
    labels = torch.tensor(digits.target, dtype=torch.int64)
    return pixels[mask], labels[mask]


def accuracy(network, device):
    """Return the share of held-out digits that the network names right."""
    import torch

    pixels, labels = load(held_out=True)
    with torch.no_grad():
        named = network(pixels.to(device)).argmax(dim=1).cpu()
    return (named == labels).float().mean().item()


# %% [markdown]
# The decorated function is what a rank runs. It finds its rank and the others by the usual environment variables; it uses NCCL where the
# node has a GPU for it and gloo otherwise.

# %%
@distributed(gpus=2, remote=True, name="digits")
def train(epochs, batch):
    """Train on this rank's share of the digits; return what the rank can say of it."""
    import os

    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    from serverless_gpu import runtime

    gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if gpu else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
    print(f"{torch.cuda.get_device_name(device) if gpu else 'cpu'}, {dist.get_backend()}, torch {torch.__version__}")

    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    model = DistributedDataParallel(network.to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    pixels, labels = load(held_out=False)
    share = len(labels) // world
    for epoch in range(1, epochs + 1):
        order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(epoch))
        losses = []
        for rows in order[rank * share : (rank + 1) * share].split(batch):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(pixels[rows].to(device)), labels[rows].to(device))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        mean = sum(losses) / len(losses)
        runtime.log_metric("loss", mean, step=epoch)
        runtime.progress(epoch / epochs)
        if rank == 0:
            print(f"epoch {epoch:2d}  loss {mean:.4f}")

    reached = accuracy(network, device)
    dist.barrier()  # the ranks leave together
    dist.destroy_process_group()
    return {"node": os.environ["GPUCTL_NODE"], "loss": round(mean, 4), "accuracy": round(reached, 3)}


# %%
results = train.distributed(epochs=20, batch=16)

# %%
print(f"{'rank':>4}  {'node':<8}  {'loss':>6}  {'accuracy':>8}")
for number, result in enumerate(results):
    print(f"{number:>4}  {result['node']:<8}  {result['loss']:>6.4f}  {result['accuracy']:>8.3f}")
