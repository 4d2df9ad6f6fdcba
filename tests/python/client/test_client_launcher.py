# SPDX-License-Identifier: Apache-2.0
"""The decorator: what it takes, what it refuses, and what a decorated function still is."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from typing import Any

import cloudpickle
import pytest

from conftest import SOURCES
from serverless_gpu import distributed, launcher
from serverless_gpu.launcher import DistributedFunction


def test_a_plain_call_runs_in_this_process_and_the_function_keeps_its_name() -> None:
    @distributed(gpus=4, gpu_type="H100", remote=True)
    def train(lr: float, *, steps: int = 3) -> tuple[int, float, int]:
        """Says where it ran."""
        return os.getpid(), lr, steps

    assert train(0.5, steps=7) == (os.getpid(), 0.5, 7)
    assert (train.__name__, train.__doc__, train.__module__) == ("train", "Says where it ran.", __name__)
    assert isinstance(train, DistributedFunction) and "4 GPUs" in repr(train)


def test_lambdas_partials_and_methods_can_be_decorated() -> None:
    import functools

    class Model:
        scale = 3

        @distributed(gpus=1)
        def fit(self, x: int) -> int:
            return self.scale * x

    assert distributed(gpus=1)(lambda x: x + 1)(2) == 3
    assert distributed(gpus=1)(functools.partial(pow, 2))(5) == 32
    assert Model().fit(5) == 15


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"gpus": -2}, ValueError, "gpus.*total over all nodes"),
        ({"gpus": True}, TypeError, "gpus"),
        ({"gpus": 2.0}, TypeError, "gpus"),
        ({"gpus": "2"}, TypeError, "gpus"),
        ({}, TypeError, "gpus"),
        ({"gpus": 1, "gpu": "H100"}, TypeError, "gpu"),
        ({"gpus": 1, "remote": "yes"}, TypeError, "remote"),
        ({"gpus": 1, "gpu_type": 10}, TypeError, "gpu_type"),
        ({"gpus": 1, "retries": -1}, ValueError, "retries"),
        ({"gpus": 1, "timeout": 0}, ValueError, "timeout"),
        ({"gpus": 1, "timeout": "1h"}, TypeError, "timeout"),
        ({"gpus": 1, "timeout": float("nan")}, ValueError, "timeout"),
        ({"gpus": 1, "keep_on_failure": -1}, ValueError, "keep_on_failure"),
        ({"gpus": 1, "keep_on_failure": "1h"}, TypeError, "keep_on_failure"),
        ({"gpus": 1, "early_signal": 10}, TypeError, "early_signal"),
        ({"gpus": 1, "early_signal": "USR1@soon"}, ValueError, "early_signal"),
        ({"gpus": 1, "env": {"A": 1}}, TypeError, r"env\['A'\]"),
    ],
)
def test_a_wrong_option_is_refused_when_the_function_is_decorated(options: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        distributed(**options)


def test_whole_numbers_of_other_libraries_and_timedeltas_are_taken() -> None:
    import numpy

    function = distributed(gpus=numpy.int64(3), timeout=timedelta(minutes=2))(len)
    assert function._options.gpus == 3 and function._options.timeout_s == 120


def test_the_decorator_without_parentheses_says_how_it_is_written() -> None:
    with pytest.raises(TypeError, match=r"@distributed\(gpus=1\)"):

        @distributed  # type: ignore[call-overload]
        def train() -> None:
            pass


def test_what_is_no_function_and_what_is_decorated_already_is_refused() -> None:
    with pytest.raises(TypeError, match="decorates a function"):
        distributed(gpus=1)(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="decorate it once"):
        distributed(gpus=1)(distributed(gpus=1)(len))


def test_a_decorated_function_travels_inside_another_one_and_with_itself() -> None:
    @distributed(gpus=2)
    def countdown(n: int) -> int:
        return 0 if n == 0 else countdown(n - 1)

    def outer() -> Any:
        return countdown(3), countdown

    value, again = cloudpickle.loads(cloudpickle.dumps(outer))()
    assert value == 0 and again(2) == 0 and isinstance(again, DistributedFunction) and again._options.gpus == 2


def test_the_old_place_and_the_enumeration_of_types_are_there() -> None:
    from serverless_gpu.compute import GPUType

    assert launcher.distributed is distributed
    assert distributed(gpus=1, gpu_type=GPUType.H100)(len)._options.gpu_type == "H100"  # type: ignore[arg-type]


def test_importing_is_quick_and_loads_nothing_heavy() -> None:
    code = (
        "import time, sys; before = set(sys.modules); begin = time.perf_counter(); import serverless_gpu;"
        "took = time.perf_counter() - begin;"
        "print(took, *({'requests', 'cloudpickle', 'torch', 'numpy', 'inspect', 'subprocess', 'typing'} & (set(sys.modules) - before)))"
    )
    env = {**os.environ, "PYTHONPATH": str(SOURCES)}
    runs = [subprocess.run([sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(SOURCES)!r}); {code}"], env=env, check=True,
                           capture_output=True, text=True).stdout.split() for _ in range(3)]  # fmt: skip
    assert all(len(run) == 1 for run in runs), runs
    assert min(float(run[0]) for run in runs) < 0.15
