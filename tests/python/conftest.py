# SPDX-License-Identifier: Apache-2.0
"""Fixtures for the tests of the Python parts: the client from the checkout, its own settings, a controller in a thread."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "client" / "python" / "src"
sys.path[:0] = [str(SOURCES), str(Path(__file__).parent), str(ROOT / "tests" / "e2e")]

from fake_controller import TOKEN, FakeController  # noqa: E402


@pytest.fixture
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No settings but those of the test, a home of its own, and an empty working folder; returns the home."""
    for name in list(os.environ):
        if name.startswith(("GPUCTL_", "DATABRICKS_", "XDG_")) or name in (
            "RANK",
            "WORLD_SIZE",
            "LOCAL_RANK",
            "LOCAL_WORLD_SIZE",
            "NODE_RANK",
        ):
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return home


@pytest.fixture(scope="session")
def kept_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that all tests share: the zip of modules is compiled once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def fake(clean: Path, kept_modules: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeController]:
    """A controller in a thread, which the settings name."""
    controller = FakeController()
    token = clean / "token"
    token.write_text(TOKEN + "\n")
    monkeypatch.setenv("GPUCTL_URL", controller.url)
    monkeypatch.setenv("GPUCTL_TOKEN_FILE", str(token))
    monkeypatch.setenv("XDG_CACHE_HOME", str(kept_modules))
    yield controller
    controller.stop()


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python without any package."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return str(folder / "bin" / "python")
