# SPDX-License-Identifier: Apache-2.0
"""Programs of MPI by the example client/examples/mpirun.py: only tests/frameworks/run installs an Open MPI."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness import GPUCTL, ROOT, Cluster
from running import PATIENCE_S, PROGRAMS, Run, environment, said

pytestmark = pytest.mark.long

MPIRUN = str(ROOT / "client" / "examples" / "mpirun.py")

#: As root, which mpirun wants to be told.
AS_ROOT = [word for name in ("", "_CONFIRM") for word in ("--env", f"OMPI_ALLOW_RUN_AS_ROOT{name}=1")]


def test_mpirun_starts_ranks_on_both_nodes_without_ssh(gpuctl: Run) -> None:
    ran = gpuctl("--gpus", "4", "--launch-mode", "node", *AS_ROOT, "--", "python", MPIRUN, "python", str(PROGRAMS / "mpi.py"))
    assert said(ran.stdout, "mpi") == ["0 4 0 10 None", "1 4 0 10 None", "2 4 1 10 None", "3 4 1 10 None"]


def test_the_job_ends_as_mpirun_does(cluster: Cluster, tmp_path: Path) -> None:
    command = [str(GPUCTL), "run", "--gpus", "4", "--launch-mode", "node", *AS_ROOT, "--", "python", MPIRUN, "sh", "-c", "exit 7"]
    env = environment(cluster, tmp_path)
    ran = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ran.returncode == 7, ran.stdout + ran.stderr
