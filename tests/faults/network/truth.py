# SPDX-License-Identifier: Apache-2.0
"""What must be true of the attempts of a job, whatever was cut, stopped or killed: held against a sampler and against the ranks' own words.

Three witnesses are heard. The sampler saw processes in /proc. The ranks wrote the time into a file, again and again. The controller's
events say when it granted an attempt. By all of them, nothing of one attempt runs any more when the next one is granted.
"""

from __future__ import annotations

import warnings
from datetime import datetime
from pathlib import Path

from harness import Api, eventually
from sampler import Life, Sampler

PROGRAM = Path(__file__).parents[1] / "programs" / "steady.py"


class Gang:
    """A job of two ranks, each on a node of its own, that runs until its gate opens."""

    def __init__(self, api: Api, folder: Path, python: str, torch: bool = False, **spec: object):
        self.api = api
        self.folder = folder
        self.torch = torch
        folder.mkdir()
        kind = [] if torch else ["plain"]
        command = [python, *([] if torch else ["-S"]), str(PROGRAM), str(folder), *kind]
        self.id = api.submit(command, **{"gpus": 2, "placement": "spread", "infra_retries": 50, **spec})  # type: ignore[arg-type]

    def lines(self) -> list[tuple[int, int, int]]:
        """(attempt, rank, nanoseconds), in the order of writing."""
        path = self.folder / "lines"
        words = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return [(int(attempt), int(rank), int(moment)) for attempt, rank, moment in words]

    def runs(self, attempt: int) -> bool:
        """Whether both ranks of the attempt run, and have met where they meet."""
        met = [(self.folder / f"met.{attempt}.{rank}").exists() for rank in (0, 1)]
        return {rank for number, rank, _ in self.lines() if number == attempt} == {0, 1} and (all(met) or not self.torch)

    def wait_runs(self, attempt: int = 1) -> None:
        eventually(lambda: self.runs(attempt), f"both ranks of attempt {attempt} of {self.id}")

    def node_of(self, rank: int) -> str:
        return next(node["node"] for node in self.api.job(self.id)["nodes"] if node["first_rank"] == rank)

    def open_gate(self) -> None:
        (self.folder / "gate").touch()


def moment_ns(text: str) -> int:
    """Wall clock, from the form of the API, which cuts it to milliseconds."""
    return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000) * 1_000_000


def grants(api: Api, job: str) -> dict[int, int]:
    """When each attempt was granted its GPUs, by the wall clock in nanoseconds, not earlier than it was."""
    events = api.get(f"/v1/jobs/{job}/events?limit=200")["events"]
    return {event["attempt"]: moment_ns(event["at"]) + 1_000_000 for event in events if event["kind"] == "placed"}


def check_order(gang: Gang, lives: list[Life], granted: dict[int, int], wall_less_boot: int) -> None:
    """No attempt was seen, or wrote, when a later one was granted."""
    lines = gang.lines()
    for life in lives:
        later = [at for attempt, at in granted.items() if attempt > life.attempt]
        end = min(later, default=None)
        if end is None:
            continue
        written = max((moment for attempt, _, moment in lines if attempt == life.attempt), default=0)
        for last, who in ((life.last, "the sampler saw"), (written, "a rank wrote in")):
            late = (last + wall_less_boot - end) / 1e6
            assert late <= 0, f"{who} attempt {life.attempt} of {gang.id} {late:.1f} ms after the next was granted: {lives}"
    for before, after in zip(lives, lives[1:], strict=False):
        assert before.last < after.first, f"attempts {before.attempt} and {after.attempt} of {gang.id} overlap: {lives}"
        assert before.epoch < after.epoch, lives


def check_truth(sampler: Sampler, gang: Gang) -> list[Life]:
    """The attempts of a job, when they are as they must be."""
    seen = sampler.ask()
    lives = sampler.lives(gang.id)
    assert lives, f"no process of {gang.id} was ever seen"
    check_order(gang, lives, grants(gang.api, gang.id), seen["wall_less_boot"])
    return lives


def warn_of_gaps(sampler: Sampler) -> None:
    """Between two looks the sampler is no witness; the lines of the ranks still are."""
    gaps = sampler.ask()["gaps"]
    if gaps[len(gaps) // 2] > 50_000_000:
        warnings.warn(f"the machine is busy: the sampler looked every {gaps[len(gaps) // 2] / 1e6:.0f} ms", stacklevel=2)


def check_untouched(sampler: Sampler, gang: Gang) -> None:
    """One attempt, all processes of which lived from the first moment to the last."""
    lives = check_truth(sampler, gang)
    view = gang.api.job(gang.id)
    assert [life.attempt for life in lives] == [1], lives
    assert (view["state"], view["attempt"]) == ("SUCCEEDED", 1), view
