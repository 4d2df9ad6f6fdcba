# SPDX-License-Identifier: Apache-2.0
"""Programs that save as their library does, with no word to gpuctl: a gang on two nodes is killed, and goes on from what they saved."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from harness import PYTHON, Cluster, eventually
from running import PATIENCE_S, PROGRAMS, completed, plain_environment, results, said


@pytest.fixture(scope="module")
def saving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes of one slot each, which take a folder that has been still for a second."""
    shared = Cluster(tmp_path_factory.mktemp("saving"), [1, 1], agent=["--checkpoint-still", "1"]).start()
    yield shared
    shared.stop()


def taken_at(cluster: Cluster, job: str) -> float:
    """When the last complete checkpoint was taken, in seconds since 1970; 0: there is none."""
    found = cluster.api.get(f"/v1/jobs/{job}/checkpoint")["checkpoint"]
    return datetime.fromisoformat(found["taken_at"].replace("Z", "+00:00")).timestamp() if found else 0.0


@pytest.mark.parametrize(
    "library",
    ["dcp", pytest.param("lightning", marks=pytest.mark.long), pytest.param("trainer", marks=pytest.mark.thorough)],
)
def test_a_killed_gang_goes_on_from_what_its_library_saved(saving: Cluster, tmp_path: Path, library: str) -> None:
    program = [PYTHON, str(PROGRAMS / "saved.py"), library, str(tmp_path)]
    environment = {name: plain_environment(tmp_path)[name] for name in ("OMP_NUM_THREADS", "HF_HUB_OFFLINE")}
    job = saving.api.submit(program, gpu_type="cpu", gpus=2, retries=1, env=environment)
    marks = [tmp_path / f"saved.{rank}" for rank in range(2)]
    eventually(lambda: all(mark.exists() for mark in marks), "the steps before the end", PATIENCE_S)
    saved = max(mark.stat().st_mtime for mark in marks)
    eventually(lambda: taken_at(saving, job) > saved, "a checkpoint of them")
    (tmp_path / "go").touch()
    assert saving.api.wait(job, PATIENCE_S)["state"] == "SUCCEEDED", saving.api.log(job, stream="stderr")
    alone = completed(program, plain_environment(tmp_path), tmp_path)
    assert said(alone.stdout, "begins") == ["0"]
    for rank in range(2):
        assert said(saving.api.log(job, rank), "begins") == ["3"]
    assert results(saving.api.log(job)) == results(alone.stdout)
