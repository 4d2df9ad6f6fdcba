# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed without its own launcher: it takes the rendezvous from the environment of the ranks."""

from __future__ import annotations

from running import PROGRAMS, Plain, Run, results, said


def test_zero_1_of_deepspeed_shards_the_optimizer_over_two_nodes_and_learns_the_same(pair_gpuctl: Run, plain: Plain) -> None:
    ran = pair_gpuctl("--gpus", "2", "--env", "DS_ACCELERATOR=cpu", "--", "python", str(PROGRAMS / "sped.py"))
    assert results(ran.stdout) == plain("sped.py")
    assert said(ran.stdout, "sped") == ["1 gloo 66"] * 2  # 129 values, in two parts that are aligned
