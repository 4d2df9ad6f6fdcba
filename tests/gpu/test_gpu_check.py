# SPDX-License-Identifier: Apache-2.0
"""The check of GPU machines, where there is none: what it accepts as proof, and how it ends without a GPU and with a driver that lies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from instance import ROOT
from inventory import Gpu, device_files, parse_smi
from verdict import FAILED, NO_GPU, PASSED, Report, end, judge_devices, judge_ranks, judge_sums, parse_facts

BUILD = Path(os.environ.get("GPUCTL_BUILD", ROOT / "build"))
OFFERED = [Gpu(0, "GPU-aa"), Gpu(1, "GPU-bb"), Gpu(3, "GPU-dd")]
SIZE = 256 * 2**20

without_gpu = pytest.mark.skipif(bool(device_files()), reason="this machine has a GPU: tests/gpu/run itself is the test")


def facts_of(rank: int, world: int, visible: str, uuid: str, **other: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {"rank": rank, "world": world, "visible": visible, "order": "PCI_BUS_ID", "backend": "nccl", "seen": world}
    facts.update({"uuid": uuid, "bytes": SIZE, "wrong": 0, "gathered": True, "seconds": 0.001}, **other)
    return facts


def test_a_gang_on_the_gpus_that_it_was_given_has_no_faults() -> None:
    gang = [facts_of(0, 2, "1,3", "bb"), facts_of(1, 2, "1,3", "dd")]
    assert judge_ranks(gang, 2) + judge_sums(gang, SIZE) + judge_devices(gang, OFFERED) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"backend": "gloo"}, "ran on gloo"),
        ({"backend": None}, "ran on None"),
        ({"visible": ""}, "CUDA_VISIBLE_DEVICES=''"),
        ({"visible": None}, "CUDA_VISIBLE_DEVICES=''"),
        ({"visible": "0,1"}, "CUDA_VISIBLE_DEVICES='0,1'"),
        ({"visible": "2"}, "CUDA_VISIBLE_DEVICES='2'"),
        ({"visible": "GPU-bb"}, "CUDA_VISIBLE_DEVICES='GPU-bb'"),
        ({"order": None}, "CUDA_DEVICE_ORDER is None"),
        ({"seen": 3}, "torch sees 3"),
        ({"uuid": "aa"}, "used the GPU aa"),
        ({"uuid": ""}, "does not tell"),
    ],
)
def test_a_rank_that_was_not_on_its_gpu_is_no_proof(change: dict[str, Any], fault: str) -> None:
    right = facts_of(0, 1, "1", "GPU-bb")
    assert judge_devices([right], OFFERED) == []
    assert any(fault in said for said in judge_devices([{**right, **change}], OFFERED))


def test_no_rank_at_all_is_no_proof() -> None:
    assert judge_devices([], OFFERED) != []
    assert judge_ranks([], 1) != []


@pytest.mark.parametrize("change", [{"wrong": 1}, {"wrong": None}, {"gathered": False}, {"bytes": SIZE - 4}, {"seconds": 0}])
def test_a_wrong_sum_is_a_fault(change: dict[str, Any]) -> None:
    assert judge_sums([{**facts_of(0, 1, "1", "bb"), **change}], SIZE) != []


def test_a_rank_that_is_missing_or_spoke_twice_is_a_fault() -> None:
    first, second = facts_of(0, 2, "0,1", "aa"), facts_of(1, 2, "0,1", "bb")
    assert judge_ranks([first, second], 2) == []
    assert judge_ranks([first], 2) != []
    assert judge_ranks([first, first], 2) != []


def test_success_is_said_only_with_a_gpu_and_proof_of_both_paths(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report()
    report.check("something", [])
    assert end(report, has_gpu=False) == NO_GPU
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "NO GPU on this machine: nothing was checked on a GPU, and this run says nothing about one.",
        "1 passed, 0 failed",
    ]
    report.proofs = 1
    assert end(report, has_gpu=True) == FAILED
    assert capsys.readouterr().out.endswith("1 passed, 1 failed\n")
    report = Report()
    report.proofs = 2
    assert end(report, has_gpu=True) == PASSED
    report.check("something", ["a fault"])
    assert end(report, has_gpu=True) == FAILED
    assert end(report, has_gpu=False) == FAILED


def test_the_output_of_many_ranks_is_read_by_rank() -> None:
    output = '[1] ALLREDUCE {"rank": 1}\n[0] a line\n[0] ALLREDUCE {"rank": 0}\n'
    assert parse_facts(output) == [{"rank": 0}, {"rank": 1}]


def test_slices_of_a_gpu_are_not_taken_for_gpus() -> None:
    listing = "GPU 0: NVIDIA H100 (UUID: GPU-aa)\n  MIG 1g.10gb Device 0: (UUID: MIG-x)\nGPU 1: NVIDIA H100 (UUID: GPU-bb)\n"
    assert parse_smi(listing) == [Gpu(0, "GPU-aa"), Gpu(1, "GPU-bb")]


# --- the whole of it


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """The programs of the build in the shape of a bundle; the client's dependencies are those of this Python."""
    folder = tmp_path / "bundle"
    (folder / "bin").mkdir(parents=True)
    (folder / "python").mkdir()
    (folder / "python" / "serverless_gpu").symlink_to(ROOT / "client/python/src/serverless_gpu")
    for program in ("client/cli/gpuctl", "daemon/gpuctld", "agent/gpuagent", "agent/gpushim"):
        (folder / "bin" / Path(program).name).symlink_to(BUILD / program)
    version = subprocess.run([BUILD / "agent/gpuagent", "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    (folder / "VERSION").write_text(f"gpuctl {version}\n")
    return folder


def make_driver(folder: Path, user: int) -> str:
    """A folder with a library that shows two GPUs of one type, the second in use by a process, and one of another; none computes."""
    folder.mkdir()
    source = (ROOT / "tests/unit/agent/devices/fake_nvml.c").read_text()
    assert "99999999" in source and source.count('"GPU-"') == 1
    source = source.replace('"GPU-"', '"GPU-check-"')  # agents lock GPUs of the host, and those of other tests are called GPU-0, too
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], input=source.replace("99999999", str(user)), text=True, check=True
    )
    return str(folder)


def run_check(scratch: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """tests/gpu/run with temporary files in a folder of its own, which it must leave empty."""
    temporary = scratch / "t"
    temporary.mkdir(exist_ok=True)
    said = subprocess.run(
        [ROOT / "tests/gpu/run", *words, "--python", sys.executable],
        env={**os.environ, "PYTHON": sys.executable, "TMPDIR": str(temporary), **environment},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert list(temporary.iterdir()) == [], said.stdout + said.stderr
    return said


@without_gpu
@pytest.mark.thorough
def test_without_a_gpu_the_check_passes_what_it_can_and_exits_with_77(bundle: Path, tmp_path: Path) -> None:
    said = run_check(tmp_path, str(bundle))
    assert said.returncode == NO_GPU, said.stdout + said.stderr
    assert "NO GPU on this machine" in said.stdout
    assert "ok    all-reduce of 1 rank as a command" in said.stdout
    assert "ok    all-reduce of 1 rank as a function" in said.stdout
    assert said.stdout.endswith(" passed, 0 failed\n")


@without_gpu
@pytest.mark.thorough
def test_a_driver_that_shows_gpus_which_compute_nothing_fails_the_check(bundle: Path, tmp_path: Path) -> None:
    said = run_check(tmp_path, str(bundle), LD_LIBRARY_PATH=make_driver(tmp_path / "driver", 99999999))
    assert said.returncode == FAILED, said.stdout + said.stderr
    assert "GPUs seen by device files: 0, nvidia-smi: 0, NVML: 3, torch: 0, gpuagent: 3" in said.stdout
    assert "ok    the agent lists the GPUs" in said.stdout
    assert "ok    a controller and a node start" in said.stdout
    assert "FAIL  the GPUs are empty before\n      GPU 1 is in use by [99999999]" in said.stdout
    assert "FAIL  all-reduce of 1 rank as a command\n" in said.stdout
    assert "rank 0 ran on gloo, not on nccl" in said.stdout
    assert "the gang over all of them is left out" in said.stdout
    assert "ok    all that was started has ended" in said.stdout


@without_gpu
@pytest.mark.thorough
def test_a_gang_over_all_gpus_of_a_type_is_run_where_all_are_empty_and_fails_without_real_ones(bundle: Path, tmp_path: Path) -> None:
    said = run_check(tmp_path, str(bundle), LD_LIBRARY_PATH=make_driver(tmp_path / "driver", 0))
    assert said.returncode == FAILED, said.stdout + said.stderr
    assert "FAIL  all-reduce of 2 ranks as a command\n" in said.stdout
    assert "rank 1 ran on gloo, not on nccl" in said.stdout


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    said = run_check(tmp_path, str(tmp_path))
    assert said.returncode == FAILED
    assert "is no bundle: it has no VERSION" in said.stdout
