# SPDX-License-Identifier: Apache-2.0
"""What the rows `first-step` and `recover` share: a cluster of one node, and the notebook (programs/gang.py) that calls gangs on it."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Callable, Iterator

from common import PROGRAMS, ROOT, cluster, environment_of
from harness import PYTHON, Cluster, eventually

WARM_PATIENCE_S = 120.0
REFILL_S = 1.0  # between two calls the workers that the first one took are made again


@contextlib.contextmanager
def notebook(ours: Cluster, what: str) -> Iterator[Callable[[], float]]:
    """Each call of the function is one of the notebook, and returns its milliseconds."""
    environment = {**environment_of(ours), "PYTHONPATH": str(ROOT / "client" / "python" / "src")}
    folder = ours.folder / "notebook"  # what lies in a notebook's folder travels with it
    folder.mkdir()
    process = subprocess.Popen(
        [PYTHON, str(PROGRAMS / "gang.py"), what], env=environment, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    lines = process.stdout

    def call() -> float:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        return float(lines.readline())

    try:
        yield call
    finally:
        process.stdin.close()
        process.wait(30)


@contextlib.contextmanager
def gangs(what: str, warm: bool) -> Iterator[Callable[[], float]]:
    """A node of two slots, once its gangs start as they shall; a call that starts otherwise ends the row."""
    attempts = 2 if what == "recover" else 1
    with cluster([2], agent=["--warm-memory", "2048" if warm else "0"]) as ours, notebook(ours, what) as call:

        def starts() -> list[str]:
            return re.findall(r'attempt started attempt_id=\d+ start="([a-z]*)', ours.agents[0].said())

        def checked() -> float:
            before = len(starts())
            time.sleep(REFILL_S)
            milliseconds = call()
            new = eventually(lambda: starts()[before + attempts - 1 :] and starts()[before:], "the agent to say how the gang started")
            assert warm == (set(new) == {"warm"}), new
            return milliseconds

        def is_warm() -> bool:
            before = len(starts())
            call()
            return not warm or set(starts()[before:]) == {"warm"}

        eventually(is_warm, "warm gangs" if warm else "a first gang", WARM_PATIENCE_S)
        yield checked
