# SPDX-License-Identifier: Apache-2.0
"""What the code on the ranks uses: ranks and sizes, metrics and progress."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serverless_gpu import runtime


class Supervisor:
    """The other end of the socket."""

    def __init__(self, path: Path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        folder = os.open(path.parent, os.O_PATH)
        self.socket.bind(f"/proc/self/fd/{folder}/{path.name}")
        os.close(folder)
        self.socket.settimeout(10)

    def datagram(self) -> list[dict[str, Any]]:
        data = self.socket.recv(1 << 20)
        assert data.endswith(b"\n") and len(data) <= 64 * 1024
        return [json.loads(line) for line in data.splitlines()]

    def close(self) -> None:
        self.socket.close()
        self.path.unlink(missing_ok=True)


def in_a_process_with_torch(script: str) -> None:
    """torch stays out of this process: it would make every process that the tests start look large."""
    start = "import os, pytest, torch\nfrom serverless_gpu import runtime\n"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, "-c", start + textwrap.dedent(script)], env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


@pytest.fixture
def supervisor(clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    listening = Supervisor(tmp_path / "rank.sock")
    monkeypatch.setenv("GPUCTL_SOCKET", str(listening.path))
    monkeypatch.setenv("RANK", "3")
    yield listening
    listening.close()


# --- ranks ---


def test_outside_of_a_job_a_process_is_a_world_of_its_own(clean: Path) -> None:
    got = (
        runtime.get_global_rank(),
        runtime.get_local_rank(),
        runtime.get_world_size(),
        runtime.get_local_world_size(),
        runtime.get_node_rank(),
    )
    assert got == (0, 0, 1, 1, 0)
    runtime.log_metric("loss", 0.5)
    runtime.progress(0.5)


def test_inside_of_a_job_the_environment_says_it(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": 5, "LOCAL_RANK": 1, "WORLD_SIZE": 8, "LOCAL_WORLD_SIZE": 2, "NODE_RANK": 2}.items():
        monkeypatch.setenv(name, str(value))
    got = (
        runtime.get_global_rank(),
        runtime.get_local_rank(),
        runtime.get_world_size(),
        runtime.get_local_world_size(),
        runtime.get_node_rank(),
    )
    assert got == (5, 1, 8, 2, 2)
    monkeypatch.setenv("RANK", "five")
    with pytest.raises(RuntimeError, match="RANK.*five"):
        runtime.get_global_rank()


def test_a_torch_that_disagrees_is_an_error_that_names_both(clean: Path, tmp_path: Path) -> None:
    in_a_process_with_torch(f"""
        import torch.distributed as dist

        dist.init_process_group("gloo", rank=0, world_size=1, init_method="file://{tmp_path}/store")
        assert runtime.get_global_rank() == 0 and runtime.get_world_size() == 1
        assert runtime.get_global_rank(dist.group.WORLD) == 0
        os.environ.update(RANK="1", WORLD_SIZE="2")
        with pytest.raises(RuntimeError, match="RANK=1.*get_rank.*0"):
            runtime.get_global_rank()
        with pytest.raises(RuntimeError, match="WORLD_SIZE=2.*get_world_size.*1"):
            runtime.get_world_size()
        dist.destroy_process_group()
        """)


# --- metrics ---


def test_a_metric_is_one_datagram_with_rank_and_time(supervisor: Supervisor) -> None:
    begin = time.time()
    runtime.log_metric("loss", 0.25, step=7)
    (point,) = supervisor.datagram()
    assert begin - 1 <= point.pop("time") <= time.time() + 1
    assert point == {"metric": "loss", "value": 0.25, "step": 7, "rank": 3}


def test_numbers_of_all_kinds_are_taken_and_what_is_not_finite_is_spelled(supervisor: Supervisor) -> None:
    import numpy

    values = {
        "int": 3, "numpy": numpy.float32(0.5), "array": numpy.array([2]), "scalar": numpy.array(4), "nan": float("nan"),
        "up": float("inf"), "down": -float("inf"), "large": 10**20,
    }  # fmt: skip
    runtime.log_metrics(values, step=numpy.int64(9))
    points = supervisor.datagram()
    assert {point["metric"]: point["value"] for point in points} == {
        "int": 3, "numpy": 0.5, "array": 2, "scalar": 4, "nan": "NaN", "up": "Infinity", "down": "-Infinity", "large": 1e20,
    }  # fmt: skip
    assert {point["step"] for point in points} == {9} and all(type(point["step"]) is int for point in points)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("", 1), ValueError), (("x" * 251, 1), ValueError), ((5, 1), TypeError), (("a", "1"), TypeError), (("a", None), TypeError),
        (("a", True), TypeError), (("a", [1, 2]), TypeError), (("a", 1, 0.5), ValueError), (("a", 1, "1"), TypeError),
        (("a", 10**400), ValueError),
    ],
)  # fmt: skip
def test_what_is_no_metric_is_refused_inside_of_a_job_and_outside(clean: Path, arguments: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        runtime.log_metric(*arguments)


def test_tensors_of_one_element_are_taken_and_others_refused_with_their_name(supervisor: Supervisor) -> None:
    in_a_process_with_torch("""
        runtime.log_metrics({"float": torch.tensor(1.5), "whole": torch.tensor([4]), "grad": torch.tensor(0.5, requires_grad=True)})
        with pytest.raises(TypeError, match="'loss' must be one number"):
            runtime.log_metric("loss", torch.ones(3))
        """)
    assert {point["metric"]: point["value"] for point in supervisor.datagram()} == {"float": 1.5, "whole": 4, "grad": 0.5}


def test_many_metrics_go_in_as_few_datagrams_as_they_fit_in(supervisor: Supervisor) -> None:
    metrics = {f"metric {number} {'x' * 200}": number for number in range(500)}
    sending = threading.Thread(target=runtime.log_metrics, args=(metrics,))
    sending.start()
    seen: list[dict[str, Any]] = []
    sizes = []
    while len(seen) < 500:
        sizes.append(len(seen))
        seen += supervisor.datagram()
    sending.join()
    assert [point["value"] for point in seen] == list(range(500)) and len(sizes) <= 4


def test_progress_is_sent_with_its_words(supervisor: Supervisor) -> None:
    runtime.progress(0.5, "epoch 3")
    runtime.progress()
    (first,), (second,) = supervisor.datagram(), supervisor.datagram()
    assert (first["progress"], first["text"], first["rank"]) == (0.5, "epoch 3", 3)
    assert second["progress"] is None and "text" not in second
    with pytest.raises(ValueError):
        runtime.progress(1.5)


def test_a_checkpoint_is_acknowledged_by_one_line(supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime.checkpointed()
    runtime.checkpointed(step=100)
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    runtime.checkpointed(step=101)
    (bare,), (first,), (second,) = supervisor.datagram(), supervisor.datagram(), supervisor.datagram()
    assert bare["checkpoint"] == {} and bare["rank"] == 3 and "local_rank" not in bare
    assert first["checkpoint"] == {"step": 100}
    assert (second["checkpoint"], second["local_rank"], second["local_world_size"]) == ({"step": 101}, 1, 2)
    with pytest.raises(ValueError, match="step"):
        runtime.checkpointed(step=1.5)  # type: ignore[arg-type]


def test_a_mark_is_one_line_with_its_name(supervisor: Supervisor) -> None:
    runtime.mark("first all-reduce")
    runtime.mark("~" * 40)
    (first,), (second,) = supervisor.datagram(), supervisor.datagram()
    assert (first["mark"], first["rank"]) == ("first all-reduce", 3)
    assert second["mark"] == "~" * 40


@pytest.mark.parametrize("name", ["", "x" * 41, 'a "quote"', "back\\slash", "tab\t", "ü"])
def test_a_mark_that_no_table_could_show_is_refused(supervisor: Supervisor, name: str) -> None:
    with pytest.raises(ValueError, match="mark"):
        runtime.mark(name)


def test_a_mark_has_a_text_for_its_name(supervisor: Supervisor) -> None:
    with pytest.raises(TypeError, match="mark"):
        runtime.mark(7)  # type: ignore[arg-type]


def test_a_path_longer_than_an_address_can_hold_works(clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ("deep" * 30)
    folder.mkdir()
    listening = Supervisor(folder / "rank.sock")
    monkeypatch.setenv("GPUCTL_SOCKET", str(listening.path))
    assert len(str(listening.path)) > 107
    runtime.log_metric("loss", 1)
    assert listening.datagram()[0]["value"] == 1
    listening.close()


def test_a_socket_that_has_vanished_does_not_disturb_training(supervisor: Supervisor) -> None:
    runtime.log_metric("loss", 1)
    supervisor.close()
    runtime.log_metric("loss", 2)
    runtime.log_metric("loss", 3)


def test_a_supervisor_that_takes_nothing_costs_a_moment_only(supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "SEND_S", 0.05)
    monkeypatch.setattr(runtime, "_channel", runtime._Channel())
    begin = time.monotonic()
    for number in range(20_000):
        runtime.log_metric("flood", number)
    assert time.monotonic() - begin < 10
    taken = 0
    while True:
        (point,) = supervisor.datagram()
        if point["value"] != taken:
            break
        taken += 1
        if taken > 2:
            runtime.log_metric("again", -1)
    assert point == {**point, "metric": "again", "value": -1}


def test_threads_and_forked_workers_send_too(supervisor: Supervisor) -> None:
    runtime.log_metric("parent", 0)
    assert supervisor.datagram()[0]["metric"] == "parent"
    threads = [threading.Thread(target=runtime.log_metric, args=("thread", number)) for number in range(4)]
    for thread in threads:
        thread.start()
    seen = sorted(supervisor.datagram()[0]["value"] for _ in threads)
    for thread in threads:
        thread.join()
    assert seen == [0, 1, 2, 3]
    worker = multiprocessing.get_context("fork").Process(target=runtime.log_metric, args=("worker", 9))
    worker.start()
    assert supervisor.datagram()[0]["metric"] == "worker"
    worker.join()
    assert worker.exitcode == 0
