# SPDX-License-Identifier: Apache-2.0
"""Functions that notebooks call.

A call of `lambda: None` from Python until its value is back, over the same Python started by hand; a payload of 100 MB, and its two legs,
to the controller's disk and from there to the node; the import of the client (tests/bench/programs/function.py is the notebook's side).

There is no peer and no gate.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import subprocess
import time

from common import PROGRAMS, ROOT, Goal, cluster, environment_of, prepare
from harness import Cluster

GOALS: tuple[Goal, ...] = ()


def legs(ours: Cluster) -> dict[str, object]:
    """MB/s of a blob of 100 MB to the controller, durable, and from there into the folder of a job."""
    to_controller, to_node = [], []
    for _ in range(5):
        data = os.urandom(100_000_000)
        name = hashlib.sha256(data).hexdigest()
        begin = time.perf_counter()
        assert ours.api.raw("PUT", f"/v1/blobs/{name}", data, {"Content-Type": "application/octet-stream"})[0] == 201
        stored = time.perf_counter()
        ours.api.wait(ours.api.submit(["true"], files=[{"path": "data", "blob": name}]))
        fetched = time.perf_counter()
        ours.api.wait(ours.api.submit(["true"]))
        to_controller.append(100 / (stored - begin))
        to_node.append(100 / (fetched - stored - (time.perf_counter() - fetched)))
    return {
        "blob_to_controller_mb_per_s": round(statistics.median(to_controller)),
        "blob_to_node_mb_per_s": round(statistics.median(to_node)),
    }


def run() -> dict[str, object]:
    prepare()
    subprocess.run([ROOT / "deploy" / "python-environment"], check=True)
    with cluster([1]) as ours:
        command = [ROOT / ".venv/bin/python", PROGRAMS / "function.py"]
        empty = ours.folder / "empty"  # what the working folder costs depends on what is in it
        empty.mkdir()
        out = subprocess.run(command, check=True, env=environment_of(ours), cwd=empty, stdout=subprocess.PIPE, text=True).stdout
        return {**json.loads(out.splitlines()[-1]), **legs(ours)}
