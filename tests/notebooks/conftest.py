# SPDX-License-Identifier: Apache-2.0
"""Fixtures: clusters as the end-to-end tests have them, and notebooks that a real kernel executes against them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests" / "e2e")]

from harness import Cluster  # noqa: E402
from kernel import Notebook  # noqa: E402
from lab import CHROMIUM  # noqa: E402


def _shared(folder: Path, slots: list[int]) -> Iterator[Cluster]:
    made = Cluster(folder, slots)
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes of two slots each; each test leaves it idle."""
    yield from _shared(tmp_path_factory.mktemp("cluster"), [2, 2])


@pytest.fixture(scope="session")
def large_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes of eight slots each."""
    yield from _shared(tmp_path_factory.mktemp("large"), [8, 8])


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: deploy/python-environment --tests")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def open_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Notebook]]:
    """Open a notebook of some cells, with a kernel of its own whose settings name the cluster."""
    opened: list[Notebook] = []
    with tempfile.TemporaryDirectory(prefix="kernel-") as short:  # the kernel's sockets lie here, and their paths must be short
        monkeypatch.setenv("JUPYTER_RUNTIME_DIR", short)
        monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))

        def start(cluster: Cluster, *cells: str, **options: Any) -> Notebook:
            token = tmp_path / "token"
            token.touch(0o600)
            token.write_text(cluster.admin_token + "\n")
            kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUCTL_", "DATABRICKS_"))}
            settings = {
                "GPUCTL_URL": cluster.url,
                "GPUCTL_TOKEN_FILE": str(token),
                "XDG_CACHE_HOME": str(tmp_path / "cache"),
                "PYTHONPATH": str(ROOT / "client" / "python" / "src"),
                "OMP_NUM_THREADS": "1",
            }
            opened.append(Notebook(list(cells), {**kept, **settings}, tmp_path, Path(short), **options))
            return opened[-1]

        yield start
        for notebook in opened:
            notebook.close()


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0:exitcode=99")
    os.environ.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
