# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own ways to train on many processes: torchrun, FSDP, spawned processes, and the one process a node of Google's and PAI's
platforms.
"""

from __future__ import annotations

import pytest

from running import PROGRAMS, Plain, Run, results, said

#: RANK, LOCAL_RANK, GROUP_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, as ddp.py prints them
FOUR_ON_TWO_NODES = ["0 0 0 4 2", "1 1 0 4 2", "2 0 1 4 2", "3 1 1 4 2"]


@pytest.mark.parametrize(
    "launcher",
    [
        ["torchrun"],
        pytest.param(["python", "-m", "torch.distributed.run"], marks=pytest.mark.long),
        pytest.param(["python", "-m", "torch.distributed.run", "--nproc-per-node", "2"], marks=pytest.mark.long),
    ],
    ids=lambda words: " ".join(words),
)
def test_torchrun_needs_no_options(gpuctl: Run, plain: Plain, launcher: list[str]) -> None:
    ran = gpuctl("--gpus", "4", "--", *launcher, str(PROGRAMS / "ddp.py"))
    assert results(ran.stdout) == plain("ddp.py")
    assert said(ran.stdout, "launched") == FOUR_ON_TWO_NODES
    assert said(ran.stdout, "meets") == ["True"] * 4  # on the port that was held for this job


def test_options_of_torchrun_win_over_those_of_node_mode(gpuctl: Run, plain: Plain) -> None:
    torchrun = (
        "torchrun --nnodes 2 --nproc-per-node 1 --node-rank $NODE_RANK "
        f"--master-addr $MASTER_ADDR --master-port $MASTER_PORT {PROGRAMS / 'ddp.py'}"
    )
    ran = gpuctl("--gpus", "4", "--launch-mode", "node", "--", "sh", "-c", torchrun)
    assert results(ran.stdout) == plain("ddp.py")
    assert said(ran.stdout, "launched") == ["0 0 0 2 1", "1 0 1 2 1"]


@pytest.mark.long
def test_processes_that_a_command_spawns_on_each_node_meet(gpuctl: Run, plain: Plain) -> None:
    ran = gpuctl("--gpus", "4", "--launch-mode", "node", "--", "python", str(PROGRAMS / "spawned.py"))
    assert results(ran.stdout) == plain("ddp.py")
    assert said(ran.stdout, "spawned") == ["0 4", "1 4", "2 4", "3 4"]


@pytest.mark.thorough
def test_processes_that_a_function_spawns_on_each_node_meet(notebook: Run) -> None:
    notebook("""
        import os

        import torch.distributed as dist
        import torch.multiprocessing as mp
        from serverless_gpu import distributed

        def worker(local_rank, processes, sums):
            node, nodes = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
            dist.init_process_group("gloo", rank=node * processes + local_rank, world_size=nodes * processes)
            import torch
            value = torch.tensor(float(dist.get_rank()))
            dist.all_reduce(value)
            sums[local_rank] = value.item()
            dist.destroy_process_group()

        @distributed(gpus=4, remote=True, launch_mode="node", env={"OMP_NUM_THREADS": "1"})
        def train():
            sums = mp.get_context("spawn").Array("d", 2)
            mp.spawn(worker, args=(2, sums), nprocs=2)
            return list(sums)

        assert train.distributed() == [[6.0, 6.0], [6.0, 6.0]]
        """)


@pytest.mark.thorough
def test_a_model_sharded_over_two_nodes_learns_what_one_process_learns(pair_gpuctl: Run, plain: Plain) -> None:
    ran = pair_gpuctl("--gpus", "2", "--", "python", str(PROGRAMS / "fsdp.py"))
    assert results(ran.stdout) == plain("fsdp.py")
    held = [int(count) for count in said(ran.stdout, "holds")]
    assert held == [56, 73]  # rows of weights and of biases


@pytest.mark.thorough
def test_code_of_google_and_pai_finds_one_rank_a_node(notebook: Run) -> None:
    notebook("""
        from serverless_gpu import distributed

        @distributed(gpus=4, gpu_type="cpu", remote=True, launch_mode="node")
        def train():
            import json
            import os
            import torch

            torch.distributed.init_process_group(
                backend='gloo',
                init_method='env://'
            )
            rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
            assert (str(rank), str(size)) == (os.environ["RANK"], os.environ["WORLD_SIZE"])
            model = torch.nn.Linear(4, 1)
            model = torch.nn.parallel.DistributedDataParallel(model)
            model(torch.ones(2, 4) * rank).sum().backward()
            cluster = json.loads(os.environ["CLUSTER_SPEC"])
            torch.distributed.destroy_process_group()
            return {
                "rank": rank, "size": size, "gradient": model.module.weight.grad.tolist(), "role": cluster["task"]["type"],
                "index": cluster["task"]["index"], "replicas": {role: len(hosts) for role, hosts in cluster["cluster"].items()},
                "devices": os.environ["NPROC_PER_NODE"],
                "master": cluster["cluster"]["master"] == [os.environ["MASTER_ADDR"] + ":" + os.environ["MASTER_PORT"]],
            }

        # the mean of both nodes' sums over two examples of zeros and of ones
        same = {"size": 2, "gradient": [[1.0] * 4], "replicas": {"master": 1, "worker": 1}, "devices": "2", "master": True}
        assert train.distributed() == [
            {"rank": 0, "role": "master", "index": 0, **same},
            {"rank": 1, "role": "worker", "index": 0, **same},
        ]
        """)


def test_worlds_of_their_own_are_in_the_verdict(pair_gpuctl: Run) -> None:
    """Each rank trains alone then, and nothing fails. The second time ranks are warm."""
    for _ in range(2):
        ran = pair_gpuctl("--gpus", "2", "--", "python", str(PROGRAMS / "separate.py"))
        assert said(ran.stdout, "world") == ["1"] * 2
        verdict = ran.stderr.splitlines()[-1]
        found = "is in a world of 1, but the job has 2 ranks: see world_size of separate.py:11."
        assert "SUCCEEDED" in verdict and found in verdict, ran.stderr
