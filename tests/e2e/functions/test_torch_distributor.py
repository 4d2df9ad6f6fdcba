# SPDX-License-Identifier: Apache-2.0
"""Code written for PySpark's TorchDistributor, on real torch and gloo over two nodes, without Spark.

The programs are the published examples for TorchDistributor on Databricks, with their imports as they are. Read: use_gpu=True as False,
since the nodes have CPU slots, and local_mode=False where all processes would not fit on one node; `...` and names that the originals leave
undefined (createModel, dataset, the inner train) as the smallest that does what they say; `dist.cleanup()` and the import of a class as if
it were a module, which do not exist, as what they mean; `import os` where it is forgotten.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from harness import ROOT, Cluster
from test_functions import notebook  # noqa: F401

Notebook = Callable[..., CompletedProcess[str]]

PATH = ":".join(str(ROOT / "client" / part) for part in ("python/src", "pyspark/src/gpuctl_pyspark", "air/src"))


@pytest.fixture
def spark(notebook: Notebook) -> Notebook:  # noqa: F811
    """A notebook for which client/pyspark is installed."""

    def run(script: str, **options: object) -> CompletedProcess[str]:
        return notebook(script, env={"PYTHONPATH": PATH, "OMP_NUM_THREADS": "1"}, **options)

    return run


def test_the_training_function_of_the_notebook_workflow_runs_over_two_nodes(spark: Notebook, cluster: Cluster) -> None:
    spark("""
        import os
        from pyspark.ml.torch.distributor import TorchDistributor

        def createModel():
            import torch
            torch.manual_seed(0)
            return torch.nn.Linear(10, 1)

        def train_loop(model, loader, learning_rate):
            import torch
            optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
            seen = 0
            for inputs, targets in loader:
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(model(inputs), targets).backward()
                optimizer.step()
                seen += len(inputs)
            return os.environ["RANK"], os.environ["NODE_RANK"], seen, sum(p.sum().item() for p in model.parameters())

        def train(learning_rate, use_gpu):
            import torch
            import torch.distributed as dist
            from torch.nn.parallel import DistributedDataParallel as DDP
            from torch.utils.data import DistributedSampler, DataLoader, TensorDataset
            backend = "nccl" if use_gpu else "gloo"
            dist.init_process_group(backend)
            device = int(os.environ["LOCAL_RANK"]) if use_gpu else "cpu"
            kwargs = {}
            model = DDP(createModel(), **kwargs)
            dataset = TensorDataset(torch.randn(100, 10), torch.randn(100, 1))
            sampler = DistributedSampler(dataset)
            loader = DataLoader(dataset, sampler=sampler)
            output = train_loop(model, loader, learning_rate)
            dist.destroy_process_group()
            return output

        distributor = TorchDistributor(num_processes=4, local_mode=False, use_gpu=False)
        rank, node, seen, total = distributor.run(train, 1e-3, False)
        assert (rank, node, seen) == ("0", "0", 25), (rank, node, seen)
        assert total != sum(p.sum().item() for p in createModel().parameters())
        """)
    newest = cluster.api.get("/v1/jobs?limit=1")["jobs"][0]
    assert newest["name"] == "train" and len(cluster.api.job(newest["id"])["nodes"]) == 2


@pytest.mark.thorough
def test_a_training_file_of_a_repository_runs_over_two_nodes_with_its_arguments_and_its_folder(
    spark: Notebook, tmp_path_factory: pytest.TempPathFactory
) -> None:
    repository = tmp_path_factory.mktemp("elsewhere") / "path" / "to"
    (repository / "project").mkdir(parents=True)
    (repository / "project" / "size.txt").write_text("10")
    (repository / "project" / "model.py").write_text("import torch\n\ndef create():\n    return torch.nn.Linear(10, 1)\n")
    (repository / "options.py").write_text(f"# {'long ' * 20_000}\nNAMES = ('learning_rate', 'batch_size')\n")
    (repository / "train.py").write_text(
        textwrap.dedent("""
        import argparse, os
        import torch, torch.distributed as dist
        from torch.nn.parallel import DistributedDataParallel as DDP
        from options import NAMES
        from project.model import create

        assert open("project/size.txt").read() == "10"  # P6: it stayed behind, and so did the package without an __init__.py
        parser = argparse.ArgumentParser()
        for name in NAMES:
            parser.add_argument(f"--{name}", type=float, required=True)
        args = parser.parse_args()
        dist.init_process_group("gloo")
        model = DDP(create())
        model(torch.ones(int(args.batch_size), 10)).sum().backward()
        gradient = model.module.bias.grad.item()
        print(f"rank {dist.get_rank()} of {dist.get_world_size()} lr {args.learning_rate} gradient {gradient}", flush=True)
        dist.destroy_process_group()
        os._exit(0)  # torch 2.13 aborts now and then when Python ends, also without gpuctl
        """)
    )
    ran = spark(f"""
        from pyspark.ml.torch.distributor import TorchDistributor

        train_file = "{repository}/train.py"
        args = ["--learning_rate=0.001", "--batch_size=16"]
        distributor = TorchDistributor(num_processes=4, local_mode=False, use_gpu=False)
        assert distributor.run(train_file, *args) is None
        """)
    lines = sorted(line for line in ran.stdout.splitlines() if "rank" in line)
    assert lines == [f"[{rank}] rank {rank} of 4 lr 0.001 gradient 16.0" for rank in range(4)], ran.stdout


@pytest.mark.thorough
def test_the_remedy_for_nccl_on_several_interfaces_does_no_harm(spark: Notebook) -> None:
    spark("""
        from pyspark.ml.torch.distributor import TorchDistributor

        def train():
            import os
            os.environ["NCCL_SOCKET_IFNAME"] = "eth0"
            import torch, torch.distributed as dist
            dist.init_process_group("gloo")
            total = torch.ones(1)
            dist.all_reduce(total)
            dist.destroy_process_group()
            return total.item()

        assert TorchDistributor(num_processes=4, local_mode=False, use_gpu=False).run(train) == 4.0
        """)


@pytest.mark.thorough
def test_a_model_and_a_loader_of_the_notebook_train_with_num_workers(spark: Notebook) -> None:
    spark("""
        import torch
        import torch.nn as nn

        class SimpleModel(nn.Module):
            def __init__(self):
                super(SimpleModel, self).__init__()
                self.fc = nn.Linear(10, 1)

            def forward(self, x):
                return self.fc(x)

        # Sample data
        inputs = torch.randn(100, 10)
        targets = torch.randn(100, 1)

        # Create dataset and dataloader
        from torch.utils.data import DataLoader, TensorDataset

        dataset = TensorDataset(inputs, targets)
        dataloader = DataLoader(dataset, batch_size=10)

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
            return model

        from pyspark.ml.torch.distributor import TorchDistributor

        # Distribute the training
        distributor = TorchDistributor(num_workers=4, local_mode=False, use_gpu=False)
        model = distributor.run(train_model, dataloader)

        # Evaluate the model (after distributed training is complete)
        model.eval()
        seen = 0
        with torch.no_grad():
            for inputs, targets in dataloader:
                outputs = model(inputs)
                # Perform evaluation logic
                seen += len(outputs)
        assert seen == 100 and isinstance(model, SimpleModel)
        """)


# --- what PySpark promises beside the examples ---


def test_in_local_mode_a_file_runs_where_it_lies_with_the_modules_of_the_notebook(spark: Notebook, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("NAME = 'helper'\n")
    (tmp_path / "train.py").write_text("import os, sys, helper; print(helper.NAME, __file__, os.getcwd(), *sys.argv[1:], flush=True)\n")
    ran = spark("""
        from pyspark.ml.torch.distributor import TorchDistributor

        assert TorchDistributor(num_processes=2, use_gpu=False).run("train.py", 5, "a b") is None
        """)
    assert sorted(ran.stdout.splitlines()) == [f"[{rank}] helper {tmp_path}/train.py {tmp_path} 5 a b" for rank in (0, 1)]


def test_only_the_value_of_rank_0_has_to_travel(spark: Notebook) -> None:
    spark("""
        from pyspark.ml.torch.distributor import TorchDistributor

        def train():
            import os, threading
            assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
            return "first" if os.environ["RANK"] == "0" else threading.Lock()

        assert TorchDistributor(num_processes=2, use_gpu=False).run(train) == "first"
        """)


def test_gpus_that_are_not_there_and_failures_are_runtime_errors(spark: Notebook, tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("import sys; sys.exit(3)\n")
    spark("""
        from pyspark.ml.torch.distributor import TorchDistributor

        def fails():
            raise KeyError("learning_rate")

        for arguments, run, words in (
            ({}, fails, "GPUs were unable to be found on the driver"),
            ({"local_mode": False}, fails, "GPUs were unable to be found"),
            ({"use_gpu": False}, fails, "KeyError: 'learning_rate'"),
            ({"use_gpu": False, "local_mode": False}, "fails.py", "exited with"),
        ):
            try:
                TorchDistributor(**arguments).run(run)
            except RuntimeError as error:
                assert words in str(error), error
            else:
                raise AssertionError(arguments)
        """)


# --- calls that nobody waits for, and the names of the successor ---


def test_a_sweep_runs_its_calls_side_by_side_and_each_can_be_asked(spark: Notebook, cluster: Cluster) -> None:
    ran = spark("""
        import concurrent.futures, os, threading, time
        from serverless_gpu import distributed, runtime
        from serverless_gpu.errors import JobFailed

        @distributed(gpus=1, remote=True, run_async=True)
        def train(folder, number, last):
            runtime.log_metric("loss", 1 / (number + 1), step=number)
            runtime.log_metric("loss", float("nan"))
            print("one", "two", sep="\\n", flush=True)
            while not os.path.exists(f"{folder}/go"):
                time.sleep(0.02)
            if number == last:
                raise ValueError("the last one")
            return number

        def wait_for(condition):
            deadline = time.monotonic() + 60
            while not condition():
                assert time.monotonic() < deadline
                time.sleep(0.02)

        folder = os.getcwd()
        begin = time.monotonic()
        calls = [train.distributed(folder, number, 3) for number in range(4)]
        assert len({call.job_id for call in calls}) == 4 and not any(call.done() for call in calls)
        try:
            calls[0].result(timeout=0.2)
        except TimeoutError as error:
            assert calls[0].job_id in str(error)
        else:
            raise AssertionError("it cannot have ended")
        for call in calls:
            wait_for(lambda: call.status() == "RUNNING")
            wait_for(lambda: call.logs().count("\\n") == 2)
        assert calls[1].logs(tail=1) == "two\\n" and calls[1].logs(stream="stderr") == ""
        wait_for(lambda: len(calls[1].metrics(name="loss")) == 2)
        first, second = calls[1].metrics(name="loss")
        assert (first["value"], first["step"], first["rank"]) == (0.5, 1, 0) and second["value"] != second["value"]
        assert calls[2].cancel() is True and calls[2].wait(60) == "CANCELED" and calls[2].cancel() is False
        open("go", "w").close()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            values = list(pool.map(lambda call: call.get(60), [calls[0], calls[1]] * 4))
        assert values == [[0], [1]] * 4
        for call, kind in ((calls[2], type(None)), (calls[3], ValueError)):
            try:
                call.result()
            except JobFailed as error:
                assert isinstance(error.__cause__, kind) and call.exception() is error
            else:
                raise AssertionError(call)
        assert calls[0].exception() is None and "SUCCEEDED" in repr(calls[0]) and calls[0].job_id in repr(calls[0])
        """)
    assert ran.stdout == "" and ran.stderr == ""


@pytest.mark.thorough
def test_a_function_of_the_successor_takes_all_of_a_node(spark: Notebook, cluster: Cluster) -> None:
    spark("""
        import os
        from databricks.air import distributed

        root = os.path.join(os.getcwd(), "volume")
        os.makedirs(root)
        for number in range(8):
            with open(os.path.join(root, f"{number}.txt"), "w") as file:
                file.write(str(number))

        @distributed()
        def train(root, step):
            import torch, torch.distributed as dist, torch.distributed.checkpoint as checkpoint
            from databricks.air import runtime
            from databricks.air.data import DataLoader, UCVolumeDataset, UCVolumeReader, UCVolumeWriter
            dist.init_process_group("gloo")
            assert runtime.get_node_ip().startswith("127."), runtime.get_node_ip()
            total = torch.zeros(1)
            for batch in DataLoader(UCVolumeDataset(root), batch_size=2, num_workers=1):
                total += sum(int(open(path).read()) for path in batch)
            dist.all_reduce(total)
            state = {"total": total}
            checkpoint.save(state, storage_writer=UCVolumeWriter(step))
            state = {"total": torch.zeros(1)}
            checkpoint.load(state, storage_reader=UCVolumeReader(step))
            dist.destroy_process_group()
            return state["total"].item(), int(os.environ["WORLD_SIZE"])

        assert train.distributed(root, os.path.join(os.getcwd(), "step1")) == [(28.0, 2), (28.0, 2)]
        one = train.with_overrides(num_accelerators=1)
        assert (one.num_accelerators, train.func) == (1, one.func)
        assert one.distributed(root, os.path.join(os.getcwd(), "step2")) == [(28.0, 1)]
        assert distributed(num_accelerators=3, accelerator_type="GPU_2xCPU")(lambda: os.environ["RANK"]).distributed() == ["0", "1", "2"]
        """)
