# SPDX-License-Identifier: Apache-2.0
"""An agent that is told to get an environment ready until it says that it is.

The first time, with one small package to install; when it is there; and 150 packages that the node's Python has, without pip.

There is no peer and no gate.
"""

from __future__ import annotations

import statistics
import subprocess
import time

from common import ROOT, Goal, folder, prepare, said
from harness import PYTHON, eventually
from packages import make_wheel
from paper_controller import Node, Paper

GOALS: tuple[Goal, ...] = ()
PINS = "import importlib.metadata as m; print('\\n'.join({f'{d.metadata[\"Name\"]}=={d.version}' for d in m.distributions()}))"


def staged_ms(paper: Paper, key: str, requirements: str) -> float:
    """From the controller's wish to the node's word that it is ready."""
    begin = time.perf_counter()
    paper.want(key, requirements=requirements)
    while not paper.ends(key):
        time.sleep(0.0002)
    spent = (time.perf_counter() - begin) * 1000
    assert paper.ends(key)[0]["state"] == "ready", paper.ends(key)
    paper.change(wanted=[])
    return spent


def run() -> dict[str, object]:
    prepare()
    subprocess.run([ROOT / "deploy" / "python-environment"], check=True)
    pins = said([PYTHON, "-I", "-c", PINS])
    with folder() as state:
        paper = Paper()
        node = Node(state, paper)
        try:
            make_wheel(node.wheels, "extra", "1.0")
            eventually(lambda: paper.registered, "the agent")
            first = staged_ms(paper, "first", "extra==1.0\n")
            again = [staged_ms(paper, f"again-{i}", "extra==1.0\n") for i in range(100)]
            met = staged_ms(paper, "met", pins)
        finally:
            node.stop()
            paper.stop()
    figures = {"first_ms": round(first), "again_ms": round(statistics.median(again), 2), "again_max_ms": round(max(again), 2)}
    return {**figures, "met_pins": len(pins.splitlines()), "met_ms": round(met)}
