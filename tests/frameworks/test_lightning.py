# SPDX-License-Identifier: Apache-2.0
"""Lightning's Trainer and Fabric: they must see that the ranks are launched already, and take their world from the launcher."""

from __future__ import annotations

import pytest

from running import PROGRAMS, Plain, Run, results, said


@pytest.mark.thorough
def test_a_lightning_script_trains_on_two_nodes_of_two_devices(gpuctl: Run, plain: Plain) -> None:
    ran = gpuctl("--gpus", "4", "--", "python", str(PROGRAMS / "lightened.py"))
    assert results(ran.stdout) == plain("ddp.py")
    assert said(ran.stdout, "lightened") == ["TorchElasticEnvironment 4"] * 4


def test_a_lightning_function_trains_on_two_nodes_of_two_devices(notebook: Run, plain: Plain) -> None:
    ran = notebook(f"""
        import sys

        from serverless_gpu import distributed

        @distributed(gpus=4, remote=True)
        def train():
            sys.path.insert(0, {str(PROGRAMS)!r})
            import lightened

            return lightened.train(devices=2, num_nodes=2)

        values = train.distributed()
        assert all(value[:2] == ("TorchElasticEnvironment", 4) for value in values), values
        assert len({{loss for _, _, loss in values}}) == 1
        print("result", f"{{values[0][2]:.10f}}")
        """)
    assert results(ran.stdout) == plain("ddp.py")


@pytest.mark.thorough
def test_a_loop_of_fabric_trains_on_two_nodes(pair_gpuctl: Run, plain: Plain) -> None:
    ran = pair_gpuctl("--gpus", "2", "--", "python", str(PROGRAMS / "fabricated.py"))
    assert results(ran.stdout) == plain("ddp.py")
    assert said(ran.stdout, "fabricated") == ["2 0 0", "2 1 0"]
