# SPDX-License-Identifier: Apache-2.0
"""Ray Train and Ray Jobs beside gpuctl.

Ray: one node on loopback with the dashboard, which Ray Jobs needs, told of four CPUs, so that a driver's own needs keep no worker
waiting; it runs while ours is measured, too, as ours does while Ray is. `train`: two workers of a TorchTrainer with gloo to their first
all-reduce, from before fit() of a driver that is connected, against the same function called from a notebook on a node that has warm
workers, and on one that has not (as in first-step). `jobs`: a program from before submit_job() to its first instruction, against a
submission to gpuctl (as in start). One of each first, which does not count, then rounds in turns; medians.

dstack and SkyPilot run jobs in containers of a cloud, of Kubernetes or of hosts behind SSH, none of which is here: they are not
measured. There is no gate.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from common import BUILD, PROGRAMS, ROOT, Chart, Goal, cluster, figures_of, peer, prepare, said
from gangs import gangs
from harness import PYTHON

GOALS: tuple[Goal, ...] = ()
CHARTS = (
    Chart(
        "two ranks from the call to their first all-reduce",
        "ms",
        {"gpuctl, warm": "train.warm_ms", "gpuctl, cold": "train.cold_ms", "Ray Train": "train.ray_ms"},
    ),
    Chart("submission to first instruction", "ms", {"gpuctl": "jobs.ours_ms", "Ray Jobs": "jobs.ray_ms"}),
)
ROUNDS = 5
STARTS = 100
PORT, DASHBOARD = 6399, 8275
URL = f"http://127.0.0.1:{DASHBOARD}"
STAMP = BUILD / "tests/bench/bench-stamp"


@contextlib.contextmanager
def running() -> Iterator[None]:
    """Ray's node. Its folder is below /tmp, for the paths of its sockets are long."""
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    program = Path(PYTHON).with_name("ray")
    command = [
        str(program), "start", "--head", "--block", "--node-ip-address", "127.0.0.1", "--port", str(PORT), "--num-cpus", "4",
        "--dashboard-host", "127.0.0.1", "--dashboard-port", str(DASHBOARD), "--temp-dir", folder, "--disable-usage-stats",
    ]  # fmt: skip
    try:
        with peer(command, f"curl -sf {URL}/api/version", end_s=120):
            yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def side(*arguments: object) -> Iterator[Callable[[], float]]:
    """Each call is one run of Ray, and returns its milliseconds."""
    command = [PYTHON, str(PROGRAMS / "ray_side.py"), *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:

        def call() -> float:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            for line in process.stdout:
                if line.startswith("result "):
                    return float(line.split()[1])
            raise AssertionError(f"Ray's side ended with {process.wait()}")

        yield call
        assert process.stdin is not None
        process.stdin.close()


def train() -> dict[str, float]:
    times: dict[str, list[float]] = {"warm_ms": [], "cold_ms": [], "ray_ms": []}
    with gangs("first", warm=True) as warm, gangs("first", warm=False) as cold, side("train", f"127.0.0.1:{PORT}") as theirs:
        theirs()
        for _ in range(ROUNDS):
            for name, measure in (("warm_ms", warm), ("cold_ms", cold), ("ray_ms", theirs)):
                times[name].append(measure())
            print({name: round(values[-1]) for name, values in times.items()}, flush=True)
    found = {name: round(statistics.median(values), 1) for name, values in times.items()}
    return {**found, "ratio": round(found["ray_ms"] / found["warm_ms"], 1), "cold_ratio": round(found["ray_ms"] / found["cold_ms"], 2)}


def jobs() -> dict[str, float]:
    times: dict[str, list[float]] = {"ours_ms": [], "ray_ms": []}
    with cluster([1]) as ours:
        token, fifo = ours.folder / "controller" / "admin.token", ours.folder / "fifo.ray"
        os.mkfifo(fifo)
        with side("jobs", URL, STAMP, fifo) as theirs:
            theirs()
            for number in range(ROUNDS):
                folder = ours.folder / f"start{number}"
                folder.mkdir()
                own = figures_of("bench-start", ours.port, token, STAMP, folder, 1, STARTS)
                times["ours_ms"].append(own["p50_ms"])
                times["ray_ms"].append(theirs())
                print({name: round(values[-1], 2) for name, values in times.items()}, flush=True)
    found = {name: round(statistics.median(values), 2) for name, values in times.items()}
    return {**found, "ratio": round(found["ray_ms"] / found["ours_ms"])}


def run() -> dict[str, object]:
    prepare("curl", targets=("bench-start", "bench-stamp"))
    said([ROOT / "deploy" / "python-environment", "--tests"])
    with running():
        figures = {"train": train(), "jobs": jobs()}
    version = said([PYTHON, "-c", "from importlib.metadata import version; print(version('ray'))"]).strip()
    return {"ratio": figures["train"]["ratio"], **figures, "ray": version}
