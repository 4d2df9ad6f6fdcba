# SPDX-License-Identifier: Apache-2.0
"""JAX: its processes find each other by MASTER_PORT, which they take in place of torch's store."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import GPUCTL, PYTHON, Cluster
from running import PROGRAMS, Plain, Run, completed, environment, results, said


def test_a_jax_function_initializes_without_arguments_on_two_nodes(notebook: Run, plain: Plain) -> None:
    ran = notebook(f"""
        import sys

        from serverless_gpu import distributed

        @distributed(gpus=4, remote=True, env={{"OMP_NUM_THREADS": "1"}})
        def train():
            import jax

            jax.distributed.initialize()
            sys.path.insert(0, {str(PROGRAMS)!r})
            import jaxed

            return jaxed.train()

        values = train.distributed()
        assert all(value[:2] == (4, 4) for value in values), values
        assert len(set(values)) == 1, values
        print("result", f"{{values[0][2]:.10f}}")
        """)
    assert results(ran.stdout) == plain("jaxed.py")


@pytest.mark.thorough
def test_a_jax_command_initializes_without_arguments(pair_gpuctl: Run, plain: Plain) -> None:
    ran = pair_gpuctl("--gpus", "2", "--", "python", str(PROGRAMS / "jaxed.py"))
    assert results(ran.stdout) == plain("jaxed.py")
    assert said(ran.stdout, "jaxed") == ["2 2"] * 2


@pytest.mark.thorough
def test_srun_starts_a_jax_that_takes_its_place_from_slurms_variables(pair: Cluster, plain: Plain, tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text(f"#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=1\nsrun {PYTHON} {PROGRAMS / 'jaxed.py'}\n")
    completed([str(GPUCTL), "sbatch", "--wait", "-o", "out.txt", str(script)], environment(pair, tmp_path), tmp_path)
    output = (tmp_path / "out.txt").read_text()
    assert results(output) == plain("jaxed.py")
    assert said(output, "jaxed") == ["2 2"] * 2
