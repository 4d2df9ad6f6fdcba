# SPDX-License-Identifier: Apache-2.0
"""The Trainer of Hugging Face's transformers, with a model and a loss of its user."""

from __future__ import annotations

from running import PROGRAMS, Run


def test_the_trainer_learns_on_two_nodes_what_it_learns_in_the_notebook(pair_notebook: Run) -> None:
    pair_notebook(f"""{(PROGRAMS / "tutorial.py").read_text()}
from serverless_gpu import distributed

_, steps, loss = train_trainer_ddp()
assert loss < 1.0, loss

first, second = distributed(gpus=2, remote=True, env={{"OMP_NUM_THREADS": "1"}})(train_trainer_ddp).distributed()
assert first == second and first[:2] == (2, steps), (first, second)
assert abs(first[2] - loss) < 1e-4, (first, loss)
""")
