# SPDX-License-Identifier: Apache-2.0
"""Fixtures: clusters of real programs for tests that kill, cut and fill them, and how much of that a run wants."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "e2e")]

from harness import Cluster  # noqa: E402


@pytest.fixture
def volume(request: pytest.FixtureRequest) -> Callable[[int, int], int]:
    """volume(short, full): how often to do it in this run."""
    return lambda short, full: full if request.config.getoption("--long") else short


@pytest.fixture
def make_cluster(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Make clusters that end with the test: make_cluster(1, 1) has two nodes of one slot each."""
    made: list[Cluster] = []

    def make(*slots: int, **options: Any) -> Cluster:
        folder = tmp_path / f"cluster{len(made)}"
        folder.mkdir()
        cluster = Cluster(folder, list(slots), **options)
        made.append(cluster)
        return cluster.start()

    yield make
    for cluster in made:
        cluster.stop()


@pytest.fixture(autouse=True)
def no_core_files() -> Iterator[None]:
    """Programs that abort because they were made to."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, before)


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0:exitcode=99")
    os.environ.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
