# SPDX-License-Identifier: Apache-2.0
"""Accelerate: scripts, functions, and notebooks that call its notebook_launcher."""

from __future__ import annotations

import pytest

from running import PROGRAMS, Plain, Run, results, said


@pytest.mark.thorough
def test_an_accelerate_script_sees_both_ranks_on_cpu_slots(pair_gpuctl: Run, plain: Plain) -> None:
    ran = pair_gpuctl("--gpus", "2", "--", "python", str(PROGRAMS / "accelerated.py"))
    assert results(ran.stdout) == plain("ddp.py")
    assert said(ran.stdout, "accelerated") == ["MULTI_CPU 2 cpu:0"] * 2


@pytest.mark.parametrize(
    "words",
    [
        ["--", "accelerate", "launch"],
        pytest.param(
            ["--", "accelerate", "launch", "--multi_gpu", "--num_processes", "2", "--mixed_precision", "no"], marks=pytest.mark.thorough
        ),
        pytest.param(["--launch-mode", "node", "--", "accelerate", "launch"], marks=pytest.mark.thorough),
    ],
    ids=lambda words: " ".join(words),
)
def test_accelerate_launch_makes_one_world_of_two_nodes(pair_gpuctl: Run, plain: Plain, words: list[str]) -> None:
    """P4: each rank had a world of its own, and the job succeeded."""
    ran = pair_gpuctl("--gpus", "2", *words, str(PROGRAMS / "accelerated.py"))
    assert results(ran.stdout) == plain("ddp.py")
    assert said(ran.stdout, "accelerated") == ["MULTI_CPU 2 cpu:0"] * 2


#: A notebook that has the functions of the tutorial in its cells.
TUTORIAL = (PROGRAMS / "tutorial.py").read_text()


def test_an_accelerate_function_learns_on_two_nodes_what_it_learns_in_the_notebook(pair_notebook: Run) -> None:
    pair_notebook(f"""{TUTORIAL}
from serverless_gpu import distributed

_, steps, loss, accuracy = train_ddp_accelerate()
assert accuracy > 90.0, accuracy

train = distributed(gpus=2, remote=True, env={{"OMP_NUM_THREADS": "1"}})(train_ddp_accelerate)
first, second = train.distributed()
assert first[:2] == second[:2] == (2, steps), (first, second)
assert first[2] == second[2] and abs(first[2] - loss) < 1e-5, (first, loss)
assert first[3] + second[3] == accuracy, "each rank counts its half of the test images"
""")


@pytest.mark.thorough
def test_notebook_launcher_runs_again_and_beside_an_accelerator_of_the_notebook(pair_notebook: Run) -> None:
    ran = pair_notebook(f"""{TUTORIAL}
from accelerate import Accelerator
from serverless_gpu.accelerate import notebook_launcher

def precision(prefix):
    accelerator = Accelerator()
    print(f"{{prefix}} {{accelerator.num_processes}} {{accelerator.mixed_precision}}")

accelerator = Accelerator()
assert notebook_launcher(train_ddp_accelerate, args=(), num_processes=1, num_nodes=2, env={{"OMP_NUM_THREADS": "1"}}) is None
assert notebook_launcher(precision, args=("saw",), num_processes=2, mixed_precision="bf16", remote=True) is None
assert accelerator.num_processes == 1 and accelerator.mixed_precision == "no"
""")
    accuracies = [float(value) for value in said(ran.stdout, "Accuracy:")]
    assert len(accuracies) == 2 and sum(accuracies) > 90.0
    assert said(ran.stdout, "saw") == ["2 bf16"] * 2


@pytest.mark.thorough
def test_the_notebook_launcher_of_accelerate_itself_makes_one_world_of_the_ranks(pair_notebook: Run) -> None:
    """Each rank is one of the processes that it would start; alone it started two of its own in each rank."""
    ran = pair_notebook("""
        from serverless_gpu import distributed

        @distributed(gpus=2, remote=True, env={"OMP_NUM_THREADS": "1"})
        def launch():
            from accelerate import Accelerator, notebook_launcher

            def train(word):
                accelerator = Accelerator()
                total = accelerator.reduce(__import__("torch").ones(1), "sum").item()
                print(f"{word} {accelerator.num_processes} {accelerator.mixed_precision} {total}")

            notebook_launcher(train, ("saw",), num_processes=2, mixed_precision="bf16")

        launch.distributed()
        """)
    assert said(ran.stdout, "saw") == ["2 bf16 2.0"] * 2
