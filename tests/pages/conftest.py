# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a reader for each page."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests" / "e2e")]

from reader import Reader, make_python, variables_of_a_reader  # noqa: E402
from slowness import patient  # noqa: E402

#: A reader's own controller has more devices than this machine may have cores, of the type that examples ask for.
#: Placeholders take its address from INSTANCE_URL.
UP = """gpuctl up --cpu-slots 8 --gpu-type A10 --devices none --idle-exit 0 -o json >~/up.json
INSTANCE_URL=$(python -c 'import json, os; print(json.load(open(os.path.expanduser("~/up.json")))["url"])')
INSTANCE_TOKEN_FILE=$(python -c 'import json, os; print(json.load(open(os.path.expanduser("~/up.json")))["token_file"])')"""


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of all readers."""
    folder = tmp_path_factory.mktemp("python") / "environment"
    make_python(folder)
    return folder


@pytest.fixture(scope="module")
def reader(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, python: Path) -> Iterator[Reader]:
    """The reader of one page: a person without a controller but a private one."""
    folder = tmp_path_factory.mktemp("reader")
    programs = Path(os.environ.get("GPUCTL_BUILD", ROOT / "build"))
    made = Reader(folder, variables_of_a_reader(folder / "home", programs, python), patient(180))
    made.shell(UP)
    yield made
    made.close()
    made.shell("gpuctl down --force")


@pytest.fixture
def reader_of_nothing(tmp_path: Path) -> Iterator[Reader]:
    """A reader without a page and without a controller."""
    made = Reader(tmp_path, variables_of_a_reader(tmp_path / "home", ROOT, Path(sys.prefix)), patient(60))
    yield made
    made.close()
