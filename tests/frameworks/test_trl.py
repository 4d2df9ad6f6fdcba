# SPDX-License-Identifier: Apache-2.0
"""TRL, whose trainers are transformers' and are started by Accelerate's launcher."""

from __future__ import annotations

import pytest

from running import PROGRAMS, Plain, Run, results, said

pytestmark = pytest.mark.long


@pytest.mark.thorough
def test_a_model_is_tuned_on_two_nodes_as_in_one_process(pair_gpuctl: Run, plain: Plain) -> None:
    ran = pair_gpuctl("--gpus", "2", "--", "accelerate", "launch", str(PROGRAMS / "tuned.py"))
    assert results(ran.stdout) == plain("tuned.py")
    assert said(ran.stdout, "tuned") == ["2 16"] * 2
