# SPDX-License-Identifier: Apache-2.0
"""How the tests of this folder run programs and notebooks: as processes of their own, on a cluster of tests/e2e's harness or on none."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "e2e"))

from harness import GPUCTL, PYTHON, ROOT, Cluster  # noqa: E402
from slowness import patient  # noqa: E402

PROGRAMS = HERE / "programs"

#: Seconds that a job may take: several ranks import large packages on few cores, under sanitized daemons.
PATIENCE_S = patient(240.0)

Ran = subprocess.CompletedProcess[str]
Run = Callable[..., Ran]
Plain = Callable[[str], list[str]]


def plain_environment(folder: Path) -> dict[str, str]:
    """What a person's shell has, without a cluster; caches are in the folder, and nothing is fetched."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUCTL_", "DATABRICKS_"))}
    own = {"XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": str(ROOT / "client" / "python" / "src")}
    return {**kept, **own, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def environment(cluster: Cluster, folder: Path) -> dict[str, str]:
    """The same of a person who works with this cluster."""
    token = folder / "token"
    if not token.exists():
        token.touch(0o600)
        token.write_text(cluster.admin_token + "\n")
    return {**plain_environment(folder), "GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token)}


def completed(arguments: list[str], env: dict[str, str], folder: Path) -> Ran:
    """A process that ended well, with its output as text."""
    ran = subprocess.run(arguments, env=env, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-8000:]
    return ran


def run_plain(program: str, folder: Path) -> list[str]:
    """The results that a program of this folder prints as one process without gpuctl."""
    return results(completed([PYTHON, str(PROGRAMS / program)], plain_environment(folder), folder).stdout)


def run_notebook(cluster: Cluster, folder: Path, script: str) -> Ran:
    """A script that is a notebook's cells."""
    path = folder / "notebook.py"
    path.write_text(textwrap.dedent(script))
    return completed([PYTHON, str(path)], environment(cluster, folder), folder)


def run_gpuctl(cluster: Cluster, folder: Path, *arguments: str) -> Ran:
    """The command line: `gpuctl run`, with one thread a rank, as there may be more ranks than cores."""
    return completed([str(GPUCTL), "run", "--env", "OMP_NUM_THREADS=1", *arguments], environment(cluster, folder), folder)


def said(output: str, word: str) -> list[str]:
    """What follows the word on the lines that have it, sorted: lines of several ranks, each after its number in brackets."""
    return sorted(line.split(f"{word} ", 1)[1] for line in output.splitlines() if f"{word} " in line)


def results(output: str) -> list[str]:
    """What the programs of this folder print as their result."""
    return said(output, "result")
