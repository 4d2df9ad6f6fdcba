# SPDX-License-Identifier: Apache-2.0
"""submitit inside of a job, where its local executor makes the tasks: its other one wants Slurm's sacct."""

from __future__ import annotations

from running import Run


def test_submitits_local_executor_runs_the_tasks_of_a_node(notebook: Run) -> None:
    notebook("""
        from serverless_gpu import distributed

        @distributed(gpus=2, remote=True, launch_mode="node", env={"OMP_NUM_THREADS": "1"})
        def train():
            import os
            import submitit

            def task():
                place = submitit.helpers.TorchDistributedEnvironment().export(overwrite=True)
                import torch
                torch.distributed.init_process_group("gloo", init_method="env://")
                value = torch.tensor(float(place.rank + 1))
                torch.distributed.all_reduce(value)
                return place.rank, place.world_size, value.item()

            executor = submitit.AutoExecutor(folder="submitit", cluster="local")
            executor.update_parameters(tasks_per_node=2, gpus_per_node=0, timeout_min=5)
            return executor.submit(task).results()

        assert train.distributed() == [[(0, 2, 3.0), (1, 2, 3.0)]]
        """)
