# SPDX-License-Identifier: Apache-2.0
"""Fixtures: clusters that all tests of this folder share, and ways to run something on them, each in a folder of its test."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from running import Cluster, Plain, Run, run_gpuctl, run_notebook, run_plain  # noqa: E402
from slowness import patient  # noqa: E402


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0:exitcode=99")
    os.environ.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")


#: Ray's own limits, stretched as those of the tests are: ranks inherit their agent's environment.
RAY_PATIENCE = {
    "RAY_gcs_server_port_wait_time_s": str(int(patient(60))),
    "RAY_gcs_server_request_timeout_seconds": str(int(patient(60))),
    "RAY_worker_register_timeout_seconds": str(int(patient(60))),
    "RAY_agent_register_timeout_ms": str(int(patient(30) * 1000)),
}


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes of two slots each; each test leaves it idle."""
    shared = Cluster(tmp_path_factory.mktemp("cluster"), [2, 2], agent_environment=RAY_PATIENCE).start()
    yield shared
    shared.stop()


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes of one slot each, so that two ranks are on two nodes."""
    shared = Cluster(tmp_path_factory.mktemp("pair"), [1, 1], agent_environment=RAY_PATIENCE).start()
    yield shared
    shared.stop()


@pytest.fixture
def notebook(cluster: Cluster, tmp_path: Path) -> Run:
    """notebook(script), against the nodes of two slots."""
    return functools.partial(run_notebook, cluster, tmp_path)


@pytest.fixture
def pair_notebook(pair: Cluster, tmp_path: Path) -> Run:
    """notebook(script), against the nodes of one slot."""
    return functools.partial(run_notebook, pair, tmp_path)


@pytest.fixture
def gpuctl(cluster: Cluster, tmp_path: Path) -> Run:
    """gpuctl(argument, ...): `gpuctl run` against the nodes of two slots."""
    return functools.partial(run_gpuctl, cluster, tmp_path)


@pytest.fixture
def pair_gpuctl(pair: Cluster, tmp_path: Path) -> Run:
    """gpuctl(argument, ...): `gpuctl run` against the nodes of one slot."""
    return functools.partial(run_gpuctl, pair, tmp_path)


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Plain:
    """plain(program): its results as one process without gpuctl. Each program is run once."""
    return functools.cache(functools.partial(run_plain, folder=tmp_path_factory.mktemp("plain")))
