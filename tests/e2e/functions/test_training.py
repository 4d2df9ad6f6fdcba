# SPDX-License-Identifier: Apache-2.0
"""Training code as people write it for other launchers, on real torch and gloo over two nodes.

The functions follow the published examples for Databricks' serverless GPUs, TorchDistributor, the DDP tutorial for Accelerate and Trainer,
and Google's AI Platform. Read: nccl as gloo, a CUDA device as the CPU, a downloaded data set as random tensors of its shape,
mlflow.log_metric as runtime.log_metric, and slips of the originals (a module path that does not exist, dist.cleanup) as what they mean.
"""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from harness import Cluster
from test_functions import notebook  # noqa: F401

Notebook = Callable[..., CompletedProcess[str]]


#: The example of the serverless GPU API, with its calls of MLflow.
MLP = """
import os
import torch
import torch.distributed as dist
import torch.nn as nn

def setup():
    if torch.cuda.is_available():
        dist.init_process_group("nccl")
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    else:
        dist.init_process_group("gloo")

def cleanup():
    dist.destroy_process_group()

class SimpleMLP(nn.Module):
    def __init__(self, input_dim=10, hidden_dim=64, output_dim=1):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(input_dim, hidden_dim),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(hidden_dim, hidden_dim),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(hidden_dim, output_dim),
        )

    def forward(self, x):
        return self.net(x)

import serverless_gpu
from serverless_gpu import distributed

@distributed(gpus=4, gpu_type='cpu', remote=True, name="mlp")
def run_train(num_epochs: int, batch_size: int) -> None:
    import mlflow
    import torch.optim as optim
    from torch.nn.parallel import DistributedDataParallel as DDP
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    # 1. Set up multi node environment
    setup()
    gpu = torch.cuda.is_available()
    device = torch.device(f"cuda:{int(os.environ['LOCAL_RANK'])}" if gpu else "cpu")

    # 2. Apply the Torch distributed data parallel (DDP) library for data-parallel training.
    model = SimpleMLP().to(device)
    model = DDP(model, device_ids=[device] if gpu else None)

    # 3. Create and load dataset.
    x = torch.randn(500, 10)
    y = torch.randn(500, 1)

    dataset = TensorDataset(x, y)
    sampler = DistributedSampler(dataset)
    dataloader = DataLoader(dataset, sampler=sampler, batch_size=batch_size)

    # 4. Define the training loop.
    optimizer = optim.Adam(model.parameters(), lr=0.001)
    loss_fn = nn.MSELoss()

    for epoch in range(num_epochs):
        sampler.set_epoch(epoch)
        model.train()
        total_loss = 0.0
        for step, (xb, yb) in enumerate(dataloader):
            xb, yb = xb.to(device), yb.to(device)
            optimizer.zero_grad()
            loss = loss_fn(model(xb), yb)
            mlflow.log_metric("loss", loss.item(), step=step)

            loss.backward()
            optimizer.step()
            total_loss += loss.item() * xb.size(0)

        mlflow.log_metric("total_loss", total_loss)
        print(f"Total loss for epoch {epoch}: {total_loss}")

    cleanup()

assert run_train.distributed(num_epochs=3, batch_size=1) == [None] * 4
"""


@pytest.fixture(autouse=True)
def few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def test_the_mlp_of_the_serverless_gpu_api_trains_on_two_nodes(notebook: Notebook, cluster: Cluster) -> None:  # noqa: F811
    ran = notebook(MLP.replace("import mlflow", "from serverless_gpu import runtime").replace("mlflow.log_metric", "runtime.log_metric"))
    lines = ran.stdout.splitlines()
    assert len(lines) == 12 and all("Total loss for epoch" in line for line in lines)
    job = cluster.api.get("/v1/jobs?name=mlp")["jobs"][0]
    points = cluster.api.get(f"/v1/jobs/{job['id']}/metrics?limit=10000")["metrics"]
    assert sum(point["name"] == "loss" for point in points) == 4 * 3 * 125
    assert sum(point["name"] == "total_loss" for point in points) == 4 * 3


@pytest.mark.thorough
def test_weights_after_ddp_equal_those_of_one_process_on_the_joined_batch(notebook: Notebook) -> None:  # noqa: F811
    notebook("""
        from serverless_gpu import distributed

        STEPS, SHARD = 30, 8

        def make():
            import torch
            torch.manual_seed(0)
            torch.set_default_dtype(torch.float64)
            torch.set_num_threads(1)
            net = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
            data = torch.randn(STEPS, 2 * SHARD, 10), torch.randn(STEPS, 2 * SHARD, 1)
            return net, data

        def step(net, optimizer, x, y):
            import torch
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(net(x), y).backward()
            optimizer.step()

        @distributed(gpus=2, remote=True)
        def train():
            import torch, torch.distributed as dist
            from torch.nn.parallel import DistributedDataParallel as DDP
            dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
            rank = dist.get_rank()
            net, (x, y) = make()
            net = DDP(net)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
            for i in range(STEPS):
                mine = slice(rank * SHARD, (rank + 1) * SHARD)
                step(net, optimizer, x[i, mine], y[i, mine])
            weights = {name: value.tolist() for name, value in net.module.state_dict().items()}
            dist.barrier()
            dist.destroy_process_group()
            return weights

        first, second = train.distributed()

        import torch
        net, (x, y) = make()
        start = {name: value.clone() for name, value in net.state_dict().items()}
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
        for i in range(STEPS):
            step(net, optimizer, x[i], y[i])
        for name, value in net.state_dict().items():
            for other in (first, second):
                assert (value - torch.tensor(other[name])).abs().max() <= 1e-10, name
            assert (value - start[name]).abs().max() > 1e-4, name
        """)


def test_a_training_function_of_torch_distributor_runs(notebook: Notebook) -> None:  # noqa: F811
    notebook("""
        import os
        from serverless_gpu import distributed

        def createModel():
            import torch
            return torch.nn.Linear(10, 1)

        def train_loop(model, loader, learning_rate):
            import torch
            optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
            total = 0
            for inputs, targets in loader:
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(model(inputs), targets).backward()
                optimizer.step()
                total += len(inputs)
            return total

        @distributed(gpus=2, remote=True)
        def train(learning_rate, use_gpu):
            import torch
            import torch.distributed as dist
            from torch.nn.parallel import DistributedDataParallel as DDP
            from torch.utils.data import DistributedSampler, DataLoader, TensorDataset
            backend = "nccl" if use_gpu else "gloo"
            dist.init_process_group(backend)
            device = int(os.environ["LOCAL_RANK"]) if use_gpu else "cpu"
            model = DDP(createModel().to(device))
            dataset = TensorDataset(torch.randn(100, 10), torch.randn(100, 1))
            sampler = DistributedSampler(dataset)
            loader = DataLoader(dataset, sampler=sampler)
            output = train_loop(model, loader, learning_rate)
            dist.destroy_process_group()
            return output

        assert train.distributed(1e-3, False) == [50, 50]
        """)


def test_a_data_loader_made_in_the_notebook_is_an_argument(notebook: Notebook) -> None:  # noqa: F811
    notebook("""
        import torch
        import torch.nn as nn
        from torch.utils.data import DataLoader, TensorDataset
        from serverless_gpu import distributed

        class SimpleModel(nn.Module):
            def __init__(self):
                super(SimpleModel, self).__init__()
                self.fc = nn.Linear(10, 1)

            def forward(self, x):
                return self.fc(x)

        inputs = torch.randn(100, 10)
        targets = torch.randn(100, 1)
        dataset = TensorDataset(inputs, targets)
        dataloader = DataLoader(dataset, batch_size=10)

        @distributed(gpus=1, remote=True)
        def train_model(dataloader):
            import torch
            import torch.nn as nn
            from torch.optim import SGD

            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            model = SimpleModel().to(device)
            optimizer = SGD(model.parameters(), lr=0.01)
            loss_fn = nn.MSELoss()

            for epoch in range(10):
                for batch in dataloader:
                    inputs, targets = batch
                    inputs, targets = inputs.to(device), targets.to(device)
                    optimizer.zero_grad()
                    outputs = model(inputs)
                    loss = loss_fn(outputs, targets)
                    loss.backward()
                    optimizer.step()
            with torch.no_grad():
                model.cpu()
                return model, [loss_fn(model(inputs), targets).item() for inputs, targets in dataloader]

        (model, losses), = train_model.distributed(dataloader)
        model.eval()
        with torch.no_grad():
            assert isinstance(model, SimpleModel) and len(losses) == 10
            assert losses == [nn.functional.mse_loss(model(inputs), targets).item() for inputs, targets in dataloader]
        """)


@pytest.mark.thorough
def test_ddp_code_that_sets_its_own_port_on_localhost_runs_on_one_node(notebook: Notebook) -> None:  # noqa: F811
    notebook("""
        import os
        import torch, torch.nn as nn, torch.nn.functional as F, torch.optim as optim
        import torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP
        from serverless_gpu import distributed

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
                output = F.log_softmax(x, dim=1)
                return output

        def setup(rank, world_size):
            os.environ["MASTER_ADDR"] = 'localhost'
            os.environ["MASTER_PORT"] = "12355"
            dist.init_process_group("gloo", rank=rank, world_size=world_size)

        def cleanup():
            dist.destroy_process_group()

        @distributed(gpus=2, remote=True)
        def train_ddp():
            rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            setup(rank, world_size)
            torch.manual_seed(0)
            data = [(torch.randn(16, 1, 28, 28), torch.randint(0, 10, (16,))) for _ in range(3)]
            model = BasicNet()
            ddp_model = DDP(model)
            optimizer = optim.AdamW(ddp_model.parameters(), lr=1e-3)
            ddp_model.train()
            for batch_idx, (x, target) in enumerate(data):
                output = ddp_model(x)
                loss = F.nll_loss(output, target)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            total = sum(parameter.sum().item() for parameter in model.parameters())
            cleanup()
            return total

        first, second = train_ddp.distributed()
        assert first == second
        """)


@pytest.mark.thorough
def test_env_rendezvous_with_plain_ddp_averages_over_all_ranks(notebook: Notebook) -> None:  # noqa: F811
    notebook("""
        import torch
        from serverless_gpu import distributed

        @distributed(gpus=4, remote=True)
        def train():
            import torch
            torch.distributed.init_process_group(backend='gloo', init_method='env://')
            model = torch.nn.Linear(4, 1)
            model = torch.nn.parallel.DistributedDataParallel(model)
            model(torch.ones(2, 4) * torch.distributed.get_rank()).sum().backward()
            total = model.module.weight.grad.sum().item()
            torch.distributed.destroy_process_group()
            return total

        assert train.distributed() == [12.0] * 4
        """)


def test_rank_0_may_return_long_before_the_others_need_the_store_no_more(notebook: Notebook) -> None:  # noqa: F811
    notebook("""
        from serverless_gpu import distributed

        @distributed(gpus=2, remote=True)
        def train():
            import time
            import torch, torch.distributed as dist
            dist.init_process_group("gloo")
            store = dist.distributed_c10d._get_default_store()
            if dist.get_rank() == 0:
                return "first"
            time.sleep(1)
            store.set("late", "x")
            return store.get("late").decode()

        assert train.distributed() == ["first", "x"]
        """)
