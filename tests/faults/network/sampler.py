# SPDX-License-Identifier: Apache-2.0
"""Ground truth: which processes of which attempts live, seen in /proc every 10 ms and asked of nobody.

As a program (`sampler.py PREFIX`) it looks at all processes of the machine whose environment names a node that begins with PREFIX. A
stopped process lives; one that only waits for its parent to read its exit code does not. A line on its standard input is answered with
all that it has seen, as JSON; the end of its input ends it. Each process has the first and the last moment at which it was seen, so an
attempt may have lived a little longer at both ends than is said here, but never less. `Sampler` starts it and asks the questions.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACE_S = 0.01
#: For how long after its start a process may still be about to exec a rank: the fork of a shim on a loaded machine.
YOUNG_S = 3.0
NAMES = (b"GPUCTL_NODE", b"GPUCTL_JOB_ID", b"GPUCTL_ATTEMPT", b"GPUCTL_EPOCH")


def now() -> int:
    """CLOCK_BOOTTIME in nanoseconds, the clock of all that is compared here."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


# --- the program -------------------------------------------------------------------------------------------


def identity(pid: str) -> tuple[str, str] | None:
    """(state, start time) of a process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return words[0].decode(), words[19].decode()


def attempt_of(pid: str, prefix: bytes) -> dict[str, Any] | None:
    """What the environment of a process says of its attempt; None when it is no rank of ours."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return None
    said = dict(word.split(b"=", 1) for word in words if word.startswith(b"GPUCTL_") and b"=" in word)
    if not all(name in said for name in NAMES) or not said[b"GPUCTL_NODE"].startswith(prefix):
        return None
    return {
        "pid": int(pid),
        "node": said[b"GPUCTL_NODE"].decode(),
        "job": said[b"GPUCTL_JOB_ID"].decode(),
        "attempt": int(said[b"GPUCTL_ATTEMPT"]),
        "epoch": int(said[b"GPUCTL_EPOCH"]),
    }


class Looker:
    """What was seen so far."""

    def __init__(self, prefix: str):
        self.prefix = prefix.encode()
        self.strangers: set[str] = set()
        self.young: dict[str, float] = {}
        self.live: dict[str, tuple[str, dict[str, Any]]] = {}
        self.seen: list[dict[str, Any]] = []
        self.looks: list[int] = []

    def look(self) -> None:
        moment, clock = now(), time.monotonic()
        self.looks.append(moment)
        pids = {name for name in os.listdir("/proc") if name[0] in "123456789"}
        self.strangers &= pids
        for pid in pids - self.strangers:
            found = identity(pid)
            known = self.live.get(pid)
            if found is None or found[0] in "ZX" or (known is not None and known[0] != found[1]):
                self.live.pop(pid, None)
            elif known is not None:
                known[1]["last"] = moment
            else:
                self.meet(pid, found[1], moment, clock)
        for gone in self.live.keys() - pids:
            del self.live[gone]

    def meet(self, pid: str, started: str, moment: int, clock: float) -> None:
        """A process that was not known: a rank of ours, a stranger, or one that is too young to tell."""
        attempt = attempt_of(pid, self.prefix)
        if attempt is not None:
            record = {**attempt, "first": moment, "last": moment}
            self.live[pid] = (started, record)
            self.seen.append(record)
        elif clock - self.young.setdefault(pid, clock) > YOUNG_S:
            self.strangers.add(pid)
            del self.young[pid]

    def answer(self) -> str:
        gaps = [after - before for before, after in zip(self.looks, self.looks[1:], strict=False)]
        return json.dumps({"seen": self.seen, "gaps": sorted(gaps), "wall_less_boot": time.time_ns() - now()})


def main() -> None:
    with contextlib.suppress(OSError):
        os.nice(-10)  # what it watches may fill the machine
    looker = Looker(sys.argv[1])
    while True:
        begun = time.monotonic()
        looker.look()
        ready, _, _ = select.select([sys.stdin], [], [], max(0.0, PACE_S - (time.monotonic() - begun)))
        if ready:
            if not sys.stdin.readline():
                return
            print(looker.answer(), flush=True)


# --- who asks it -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Life:
    """From when to when processes of one attempt of a job were seen, in nanoseconds of CLOCK_BOOTTIME, and on which nodes."""

    attempt: int
    epoch: int
    first: int
    last: int
    nodes: frozenset[str]
    processes: frozenset[int]


class Sampler:
    """The sampler as a process beside the test; use it in a with statement."""

    def __init__(self, prefix: str):
        self.command = [sys.executable, "-S", str(Path(__file__)), prefix]

    def __enter__(self) -> Sampler:
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.ask()["seen"] == [], "ranks of this cluster lived before it"
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def ask(self) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def lives(self, job: str) -> list[Life]:
        """The attempts of a job that were seen, by number."""
        records = [record for record in self.ask()["seen"] if record["job"] == job]
        lives = []
        for attempt in sorted({record["attempt"] for record in records}):
            own = [record for record in records if record["attempt"] == attempt]
            lives.append(
                Life(
                    attempt, own[0]["epoch"], min(record["first"] for record in own), max(record["last"] for record in own),
                    frozenset(record["node"] for record in own), frozenset(record["pid"] for record in own),
                )
            )  # fmt: skip
        return lives


if __name__ == "__main__":
    main()
