# SPDX-License-Identifier: Apache-2.0
"""A real PySpark beside our TorchDistributor: only tests/frameworks/run installs one, and our client/pyspark after it. To import it takes
no Java.
"""

from __future__ import annotations

import pytest

from running import Run

pytestmark = pytest.mark.long


def test_torch_distributor_runs_on_two_nodes_beside_a_real_pyspark(pair_notebook: Run) -> None:
    pair_notebook("""
        import pyspark.sql
        from pyspark.ml.torch.distributor import TorchDistributor as OfSpark
        from serverless_gpu.torch_distributor import TorchDistributor

        def train(start):
            import os
            import torch
            import torch.distributed as dist
            dist.init_process_group("gloo")
            value = torch.tensor(float(os.environ["RANK"]) + start)
            dist.all_reduce(value)
            dist.destroy_process_group()
            return value.item()

        assert TorchDistributor is not OfSpark and "serverless_gpu" not in (OfSpark.__module__, pyspark.__file__)
        assert TorchDistributor(num_processes=2, local_mode=False, use_gpu=False).run(train, 3) == 7.0
        """)


def test_our_distribution_of_that_name_steps_behind_a_real_pyspark(pair_notebook: Run) -> None:
    pair_notebook("""
        import importlib.metadata
        from pyspark.ml.torch.distributor import Distributor, TorchDistributor

        importlib.metadata.version("gpuctl-pyspark")
        assert issubclass(TorchDistributor, Distributor) and TorchDistributor.__module__ == "pyspark.ml.torch.distributor"
        """)
