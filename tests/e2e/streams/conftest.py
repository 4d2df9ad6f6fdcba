# SPDX-License-Identifier: Apache-2.0
"""Streams are tested through TLS, as most clusters have it; those of BOTH without it, too."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from harness import GPUCTLD, Cluster

BOTH = ("test_forward", "test_streams")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cluster" in metafunc.fixturenames and metafunc.module.__name__ in BOTH:
        metafunc.parametrize("cluster", ["tls", "plain"], indirect=True, scope="module")


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes of two slots each, shared by the tests of a file."""
    folder = tmp_path_factory.mktemp("cluster")
    options = []
    if getattr(request, "param", "tls") == "tls":
        options = ["--config", str(folder / "controller.conf")]
        made = [str(GPUCTLD), "init", "--state", str(folder / "controller"), *options, "--listen", "127.0.0.1:0"]
        subprocess.run(made, check=True, capture_output=True)
    shared = Cluster(folder, [2, 2], options).start()
    yield shared
    shared.stop()
