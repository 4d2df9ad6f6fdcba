# SPDX-License-Identifier: Apache-2.0
"""What the rows of tests/bench share: goals, the release build and its programs, packages of peers, a cluster, and readings of /proc.

A row is a module of tests/bench/rows. It has `GOALS`, the figures of its answer that are to be held, perhaps `CHARTS`, and `run()`, which
measures and returns the figures; `tests/bench/run` adds the row's name and prints them as the last line. A row that has peers measures
both sides in turns, in one run on one machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parents[2]
BENCH = Path(__file__).resolve().parent
#: What rows run.
PROGRAMS = BENCH / "programs"
BUILD = ROOT / "build-release"
os.environ["GPUCTL_BUILD"] = str(BUILD)
sys.path[:0] = [path for path in (str(BENCH), str(ROOT / "tests" / "e2e")) if path not in sys.path]

from harness import Cluster, eventually  # noqa: E402


class Skipped(Exception):
    """Something cannot be measured on this machine; the text says why."""


class Unready(Exception):
    """The programs of a row could not be built; the text says why, in a line, and what to do."""


@dataclass(frozen=True)
class Goal:
    """A figure to hold: its dotted path in the row's answer, what it is, its unit, the gate and the aim."""

    path: str
    what: str
    unit: str
    gate: float
    aim: float | None = None
    at_most: bool = True  #: else at least
    why: str = ""  #: what keeps the figure from its gate or its aim, where it does

    def value(self, figures: Mapping[str, Any]) -> float | None:
        """The figure, or None where this run has none."""
        found: Any = figures
        for name in self.path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        return float(found) if isinstance(found, (int, float)) else None

    def better(self, value: float, than: float) -> float:
        """How many times better a value is than another."""
        best, worst = (than, value) if self.at_most else (value, than)
        return best / max(worst, 1e-9)


@dataclass(frozen=True)
class Chart:
    """Bars of one unit: names, ours beginning with "gpuctl", and the dotted paths of their figures."""

    title: str
    unit: str
    bars: Mapping[str, str]


class Row(Protocol):
    """What a row's module has; CHARTS may be left out."""

    __doc__: str | None
    GOALS: tuple[Goal, ...]
    run: Callable[[], dict[str, object]]


def worst(goals: tuple[Goal, ...], figures: Mapping[str, Any]) -> float:
    """`ratio` of a row without a peer: gate over figure, or figure over gate, of the goal that is met by the least."""
    found = [goal.better(value, goal.gate) for goal in goals if (value := goal.value(figures)) is not None]
    return round(min(found), 2)


# --- programs ---


def prepare(*packages: str, targets: tuple[str, ...] = ()) -> None:
    """Install what the row needs and build in release; Unready where that is not to be had."""
    step([ROOT / "deploy" / "dependencies"])
    try:
        install("check", *packages)  # without Check meson knows none of the targets of the tests
    except Skipped as problem:
        raise Unready(f"{problem}; install {' '.join(('check', *packages))}") from None
    # one that is there may have been made where the tests could not be built
    verb: list[str | Path] = ["configure", BUILD] if (BUILD / "build.ninja").exists() else ["setup", BUILD, ROOT, "--buildtype=release"]
    step(["meson", *verb, "-Dtests=enabled"])
    programs = ("daemon/gpuctld", "agent/gpuagent", "agent/gpushim", "client/cli/gpuctl")
    step(["ninja", "-C", BUILD, *programs, *(f"tests/bench/{target}" for target in targets)])


def step(command: list[str | Path]) -> None:
    """Run a step of the build; Unready with what it said last."""
    name = " ".join(map(str, command[:2]))
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as problem:
        raise Unready(f"{name}: {problem.strerror}; deploy/dependencies --tests installs what is missing") from None
    if done.returncode != 0:
        last = ((done.stdout + done.stderr).strip().splitlines() or ["it said nothing"])[-1]
        raise Unready(f"{name} failed: {last}; deploy/dependencies --tests installs what is missing, then remove {BUILD.name}")


def install(*packages: str) -> None:
    """Debian packages, without starting their services; Skipped where they cannot be had."""
    missing = [p for p in packages if subprocess.run(["dpkg", "-s", p], capture_output=True).returncode != 0]
    if not missing:
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *missing]):
        done = subprocess.run(["apt-get", *command], env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise Skipped(f"apt-get {' '.join(command)}: {done.stderr.strip()[-300:]}")


def said(command: list[Any], **options: Any) -> str:
    """What a command prints; one that fails ends the row with what it said."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command[0]}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def figures_of(program: str, *arguments: object) -> Any:
    """The JSON that a bench program of ours prints."""
    return json.loads(said([BUILD / "tests" / "bench" / program, *arguments]))


def load(port: int, connections: int, amount: str, *arguments: str) -> float:
    """Requests a second that were answered with success; any other answer ends the row."""
    return float(said([BUILD / "tests/bench/bench-load", port, connections, amount, *arguments]))


# --- ours and peers ---


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder on the disk that the build is on, for as long as it is needed."""
    made = Path(tempfile.mkdtemp(prefix="gpuctl-bench-", dir=BUILD))
    try:
        yield made
    finally:
        shutil.rmtree(made)


@contextlib.contextmanager
def run_folders(state: Path, count: int) -> Iterator[None]:
    """The agents' run folders in memory, as those below /run are where systemd is; without root they are on the disk."""
    folders = [state / f"node{number}.run" for number in range(count if os.geteuid() == 0 else 0)]
    with contextlib.ExitStack() as stack:
        for made in folders:
            made.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700", "tmpfs", made], check=True)
            stack.callback(said, ["umount", "--lazy", made])
        yield


@contextlib.contextmanager
def cluster(
    slots: list[int],
    slow_disk: bool = False,
    controller: list[str] | None = None,
    agent: list[str] | None = None,
    kind: type[Cluster] = Cluster,
) -> Iterator[Cluster]:
    """A controller and one agent for each number of slots; on a slow disk every fsync and fdatasync takes 2 ms more."""
    with folder() as state, run_folders(state, len(slots)):
        preload = os.environ.get("LD_PRELOAD")
        if slow_disk:
            os.environ["LD_PRELOAD"] = str(BUILD / "tests" / "bench" / "libslowdisk.so")
        made = kind(state, slots, controller=controller, agent=agent)
        try:
            yield made.start()
        except BaseException:  # what lives is not worth to be waited for
            if made.controller.alive():
                made.controller.kill()
            raise
        finally:
            os.environ.pop("LD_PRELOAD", None)
            if preload:
                os.environ["LD_PRELOAD"] = preload
            made.stop()


@contextlib.contextmanager
def peer(arguments: list[str], ready: str, end_s: float = 30) -> Iterator[subprocess.Popen[bytes]]:
    """A program of a peer, once the shell command `ready` succeeds, until the end of the block; it has `end_s` seconds to end."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: subprocess.run(ready, shell=True, capture_output=True).returncode == 0, arguments[0])
        yield process
    finally:
        process.terminate()
        process.wait(end_s)


def environment_of(ours: Cluster) -> dict[str, str]:
    """What the command line and the Python package need to speak to that cluster."""
    return {
        **os.environ,
        "GPUCTL_URL": ours.url,
        "GPUCTL_TOKEN_FILE": str(ours.folder / "controller" / "admin.token"),
        "XDG_CACHE_HOME": str(ours.folder / "cache"),
    }


def hold_queue(ours: Cluster) -> None:
    """Jobs are taken, and wait."""
    for name in ours.nodes():
        ours.api.post(f"/v1/nodes/{name}/drain", {"reason": "bench: jobs are to queue"})


# --- readings ---


def controller_pid(ours: Cluster) -> int:
    assert ours.controller.process is not None
    return ours.controller.process.pid


def resident_kib(pid: int) -> int:
    """Memory of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def cpu_s(pid: int) -> float:
    """CPU time of a process so far, with that of children it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def medians(runs: list[dict[str, float]], digits: int = 1) -> dict[str, float]:
    """The median of each figure over runs that all have it."""
    return {name: round(statistics.median(run[name] for run in runs), digits) for name in runs[0]}


def spread(values: list[float], digits: int = 3) -> dict[str, float]:
    """Median, least and most."""
    return {"median": round(statistics.median(values), digits), "min": round(min(values), digits), "max": round(max(values), digits)}
