# SPDX-License-Identifier: Apache-2.0
"""The line before the pickle of a call, changed by chance: nothing is unpickled behind another one than that of this Python."""

from __future__ import annotations

import importlib
import io
import sys
from typing import Any

import pytest

from mutator import Mutator
from runner_rig import HEADER, RUNNER, payload_of

SEED = 20261128


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(RUNNER.parent))
    yield importlib.import_module("gpuctl_runner")
    sys.modules.pop("gpuctl_runner")


@pytest.mark.parametrize("executions", [20_000, pytest.param(500_000, marks=pytest.mark.long)])
def test_a_call_behind_another_header_is_refused_before_it_is_unpickled(
    runner: Any, monkeypatch: pytest.MonkeyPatch, executions: int
) -> None:
    data = b""
    monkeypatch.setenv("GPUCTL_FUNCTION", "function")
    monkeypatch.setattr(runner, "open", lambda path, mode: io.BytesIO(data), raising=False)  # files take long
    opened: list[bytes] = []
    monkeypatch.setattr(runner.Loader, "load", lambda loader: opened.append(b"x"))
    call = payload_of("def call():\n  return 1")
    others = (b"gpuctl-function 2 python=3.11\n", b"gpuctl-function 1 python=2.7\n", b"\x80\x05N.", b"gpuctl-function\n", HEADER.strip())
    mutator = Mutator(SEED, [call[:200], *others])
    same = 0
    for number in range(executions):
        data = mutator.mutated()
        words = data[: runner.HEADER_LIMIT_BYTES].partition(b"\n")[0].split()
        if words[:3] == HEADER.split() and b"\n" in data[: runner.HEADER_LIMIT_BYTES]:
            runner.load()
            assert opened == [b"x"]
            opened.clear()
            same += 1
            continue
        with pytest.raises(runner.Refusal):
            runner.load()
            pytest.fail(f"seed {SEED}, execution {number}: {data!r} was taken")
        assert opened == [], f"seed {SEED}, execution {number}: {data!r} was unpickled"
    assert same > 0
