# SPDX-License-Identifier: Apache-2.0
"""Fixtures: clusters of virtual machines with our packages."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster import Cluster, States
from image import cache_with, newest
from machine import State


@pytest.fixture(scope="session")
def packages() -> Path:
    """The folder with our packages."""
    return Path(os.environ["GPUCTL_PACKAGES"])


@pytest.fixture(scope="session")
def scratch() -> Iterator[Path]:
    """A folder whose path is short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="machines-", dir="/var/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def states(packages: Path, scratch: Path) -> Iterator[States]:
    """The kept machines that tests continue from."""
    kept = States(newest(), packages)
    with cache_with(kept.are_there, lambda: kept.make(scratch)):
        yield kept


@pytest.fixture
def make_cluster(states: States, scratch: Path) -> Iterator[Callable[[State], Cluster]]:
    """Make a cluster of machines that continue from a state; all of it ends with the test."""
    made: list[Cluster] = []

    def make(state: State) -> Cluster:
        made.append(Cluster(Path(tempfile.mkdtemp(dir=scratch)), states.image, state))
        return made[-1]

    yield make
    for cluster in made:
        cluster.stop()
        shutil.rmtree(cluster.folder)


@pytest.fixture
def cluster(make_cluster: Callable[[State], Cluster], states: States) -> Cluster:
    """A cluster without machines: cluster.start_controller() and cluster.machine() add them."""
    return make_cluster(states.installed)
