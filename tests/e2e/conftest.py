# SPDX-License-Identifier: Apache-2.0
"""Fixtures: clusters of real programs, each with its own folder and ports."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
#: Functions and tracking are used by tests of other folders, too; a proxy of tests/faults by those of the object store.
sys.path[:0] = [str(HERE), str(HERE / "functions"), str(HERE / "tracking"), str(HERE / "objects")]
sys.path.append(str(HERE.parent / "faults" / "network"))

from harness import Cluster, make_tls  # noqa: E402
from rclone_server import S3Server  # noqa: E402
from recorder import Recorded, Recorder  # noqa: E402


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


#: Files of tests that run with TLS and without. Other streams are tested with it, as most clusters have it.
WITH_AND_WITHOUT_TLS = ("test_forward", "test_streams")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cluster" in metafunc.fixturenames and metafunc.module.__name__ in WITH_AND_WITHOUT_TLS:
        metafunc.parametrize("cluster", ["tls", "plain"], indirect=True, scope="module")


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes of two slots each, shared by the tests of a file; each test leaves it idle."""
    folder = tmp_path_factory.mktemp("cluster")
    tls = getattr(request, "param", "tls" if request.path.parent.name == "streams" else "plain") == "tls"
    options = make_tls(folder) if tls else []
    shared = Cluster(folder, [2, 2], options).start()
    yield shared
    shared.stop()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Function) -> Generator[None, object, object]:
    """A test that fails leaves the cluster idle, too: what it has started does not fail those after it."""
    try:
        return (yield)
    except (Exception, pytest.fail.Exception):
        shared = item.funcargs.get("cluster")
        if isinstance(shared, Cluster) and shared.controller.alive():
            shared.cancel_all()
        raise


@pytest.fixture
def s3(tmp_path: Path) -> Iterator[S3Server]:
    """An S3 server of the test's own."""
    server = S3Server(tmp_path / "s3").start()
    yield server
    server.stop()


@pytest.fixture
def make_recorded(make_cluster: Callable[..., Cluster], s3: S3Server) -> Iterator[Callable[..., Recorded]]:
    """Makes a cluster with an object store: of so many nodes, with these options of gpuctld, and an environment of its agents."""
    made: list[Recorded] = []

    def make(nodes: int, *options: str, **environment: str) -> Recorded:
        store = Recorder(s3.port)
        made.append(Recorded(make_cluster(controller=s3.options(*options, port=store.port)), s3, nodes, store, environment))
        return made[-1]

    yield make
    for recorded in made:
        recorded.close()


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0:exitcode=99")
    os.environ.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
    os.environ.setdefault("TSAN_OPTIONS", "halt_on_error=1:exitcode=98")
