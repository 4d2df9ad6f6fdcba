# SPDX-License-Identifier: Apache-2.0
"""notebook_launcher: what it makes of its arguments, and what it refuses before anything is sent."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest

import serverless_gpu
from fake_controller import FakeController, Job
from serverless_gpu.accelerate import notebook_launcher


def sent(fake: FakeController) -> dict[str, Any]:
    assert len(fake.jobs) == 1
    spec: dict[str, Any] = next(iter(fake.jobs.values())).spec
    return spec


def values(controller: FakeController, job: Job) -> None:
    for rank in range(job.spec["gpus"]):
        controller.leave(job, rank, cloudpickle.dumps(rank))
    controller.end(job)


def train(lr: float, steps: int) -> float:
    return lr * steps


def test_processes_of_all_nodes_become_gpus_and_values_are_dropped(fake: FakeController) -> None:
    fake.program = values
    launch: Callable[..., Any] = notebook_launcher
    assert launch(train, (0.1, 3), num_processes=2, num_nodes=3, max_restarts=4, gpu_type="A10", name="mine") is None
    spec = sent(fake)
    assert (spec["gpus"], spec["gpu_type"], spec["retries"], spec["name"], spec["remote"]) == (6, "A10", 4, "mine", True)


def test_one_node_is_the_notebooks_own_unless_remote_says_otherwise(fake: FakeController) -> None:
    fake.program = values
    notebook_launcher(train, (0.1, 3), num_processes=2, env={"A": "b"}, mixed_precision="FP16")
    assert sent(fake)["remote"] is False
    assert {"ACCELERATE_MIXED_PRECISION": "fp16", "A": "b"}.items() <= sent(fake)["env"].items()
    fake.jobs.clear()
    notebook_launcher(train, (0.1, 3), 2, remote=True)
    assert sent(fake)["remote"] is True
    assert sent(fake)["env"] == {"ACCELERATE_MIXED_PRECISION": "no"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "num_processes"),
        ({"num_processes": 0}, "num_processes must be at least 1"),
        ({"num_processes": 2, "num_nodes": 0}, "num_nodes"),
        ({"num_processes": 2, "node_rank": 1}, "node_rank"),
        ({"num_processes": 2, "num_nodes": 2, "node_rank": 2}, "node_rank"),
        ({"num_processes": 2, "mixed_precision": "fp12"}, "mixed_precision.*bf16"),
    ],
)
def test_what_cannot_be_is_refused_by_name(options: dict[str, Any], words: str, fake: FakeController) -> None:
    with pytest.raises(ValueError, match=words):
        notebook_launcher(train, (0.1, 3), **options)
    assert not fake.jobs


def test_arguments_have_the_names_order_and_defaults_of_accelerates(fake: FakeController) -> None:
    positional = [p for p in inspect.signature(notebook_launcher).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [(parameter.name, parameter.default) for parameter in positional[1:]] == [
        ("args", ()),
        ("num_processes", None),
        ("mixed_precision", "no"),
        ("use_port", "29500"),
        ("master_addr", "127.0.0.1"),
        ("node_rank", 0),
        ("num_nodes", 1),
        ("rdzv_backend", "static"),
        ("rdzv_endpoint", ""),
        ("rdzv_conf", None),
        ("rdzv_id", "none"),
        ("max_restarts", 0),
        ("monitor_interval", 0.1),
        ("log_line_prefix_template", None),
    ]
    assert serverless_gpu.accelerate.notebook_launcher is notebook_launcher
