# SPDX-License-Identifier: Apache-2.0
"""Gangs that number their lines, those who read them over the API meanwhile, and the proof that nothing of either was disturbed.

What is promised of a restart is what can be checked here: one attempt, no signal, the same processes, every line and every event once and
in order. Who restarts what, and when, is the test's.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import threading
from pathlib import Path
from typing import Any

from harness import Api, Cluster, eventually

SCRIBE = (Path(__file__).parents[1] / "programs" / "scribe.py").read_text()
RANKS = 2
STREAMS = {"stdout": "out", "stderr": "err"}


def started_at(pid: int) -> int | None:
    """In ticks since boot; with the pid it names a process. None: it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError):
        return None


class Reader:
    """Follows an event stream through any number of broken connections, each time from the last id that it has seen."""

    def __init__(self, api: Api, path: str):
        self.api = api
        self.path = path
        self.events: list[dict[str, str]] = []
        self.connections = 0
        self.problem: BaseException | None = None
        self.ended = False
        self.given_up = threading.Event()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self) -> None:
        last: str | None = None
        while not self.ended and not self.given_up.is_set():
            self.connections += 1
            try:
                for event in self.api.stream(self.path, last):
                    if event.get("event") == "end":
                        self.ended = True
                        break
                    self.events.append(event)
                    last = event.get("id", last)
            except (OSError, http.client.HTTPException):
                self.given_up.wait(0.02)  # the controller is away
            except BaseException as problem:
                self.problem = problem
                return

    def finish(self) -> list[dict[str, Any]]:
        """The data of all events, once the server has said that there is no more."""
        eventually(lambda: self.ended or self.problem is not None, f"the end of {self.path}")
        if self.problem is not None:
            raise self.problem
        return [json.loads(event["data"]) for event in self.events]


class Gang:
    """A job of two ranks, with one reader of its output and one of its history."""

    def __init__(self, cluster: Cluster, gate: Path, **spec: Any):
        self.cluster = cluster
        command = ["python", "-S", "scribe.py", str(gate)]
        files = [{"path": "scribe.py", "text": SCRIBE}]
        self.job = cluster.api.submit(command, gpus=RANKS, files=files, infra_retries=0, **spec)
        self.logs = Reader(cluster.api, f"/v1/jobs/{self.job}/logs")
        self.history = Reader(cluster.api, f"/v1/jobs/{self.job}/events")

    def writes(self) -> None:
        """Wait until both ranks write."""
        for rank in range(RANKS):
            eventually(lambda rank=rank: "out 3\n" in self.cluster.api.log(self.job, rank), f"rank {rank} of {self.job}")

    def lines(self, rank: int) -> int:
        return self.cluster.api.log(self.job, rank).count("\n")

    def goes_on(self) -> None:
        """New output of both ranks arrives."""
        before = [self.lines(rank) for rank in range(RANKS)]
        for rank in range(RANKS):
            eventually(lambda rank=rank: self.lines(rank) > before[rank], f"new output of rank {rank} of {self.job}")

    def processes(self) -> list[tuple[int, int]]:
        """Pid and start time of each rank, as it says itself."""
        found = [re.match(r"pid (\d+) (\d+)\n", self.cluster.api.log(self.job, rank)) for rank in range(RANKS)]
        return [(int(match[1]), int(match[2])) for match in found if match is not None]

    def lives(self) -> None:
        """Both ranks are the processes that they were."""
        processes = self.processes()
        assert len(processes) == RANKS
        for pid, started in processes:
            assert started_at(pid) == started, f"rank process {pid} of {self.job} is gone"

    def stop_reading(self) -> None:
        for reader in (self.logs, self.history):
            reader.given_up.set()

    def assert_undisturbed(self) -> int:
        """After its end: see the opening of this file. Returns how many lines the gang wrote in all."""
        view = self.cluster.api.wait(self.job)
        assert (view["state"], view["attempt"], view["exit_code"]) == ("SUCCEEDED", 1, 0), view
        wanted = {(rank, stream): self._written(rank, stream) for rank in range(RANKS) for stream in STREAMS}
        self._assert_read(wanted)
        self._assert_told()
        return sum(text.count("\n") for text in wanted.values())

    def _written(self, rank: int, stream: str) -> str:
        """A whole stream, checked to be all that the rank wrote."""
        text = self.cluster.api.log(self.job, rank, stream)
        last = re.search(r"wrote (\d+)\n\Z", self.cluster.api.log(self.job, rank))
        assert last is not None, text[-200:]
        counted = "".join(f"{STREAMS[stream]} {number}\n" for number in range(int(last[1])))
        if stream == "stdout":
            head = text.partition("\n")[0] + "\n"
            assert re.fullmatch(r"pid \d+ \d+\n", head), head
            counted = head + counted + last[0]
        assert text == counted, f"{stream} of rank {rank}: {first_difference(text, counted)}"
        return text

    def _assert_read(self, wanted: dict[tuple[int, str], str]) -> None:
        """The reader of the output has got each byte once, in order, from the one attempt."""
        read = dict.fromkeys(wanted, "")
        for piece in self.logs.finish():
            key = (piece["rank"], piece["stream"])
            assert piece["attempt"] == 1, piece
            assert piece["offset"] == len(read[key]), f"{key}: at {piece['offset']}, had {len(read[key])} bytes"
            read[key] += piece["text"]
        for key, text in wanted.items():
            assert read[key] == text, f"followed {key}: {first_difference(read[key], text)}"

    def _assert_told(self) -> None:
        """The reader of the history has heard each event once, in order, and they are the ones that are stored."""
        told = self.history.finish()
        stored = self.cluster.api.get(f"/v1/jobs/{self.job}/events?limit=200")["events"]
        assert [event["seq"] for event in told] == list(range(1, len(told) + 1)), told
        assert told == stored
        assert [event["kind"] for event in told].count("started") <= 1, told


def first_difference(text: str, wanted: str) -> str:
    """Where two texts part, for people."""
    at = len(os.path.commonprefix([text, wanted]))
    return f"has {len(text)} of {len(wanted)} bytes and differs at {at}: {text[at : at + 60]!r} for {wanted[at : at + 60]!r}"
