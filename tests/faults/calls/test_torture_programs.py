# SPDX-License-Identifier: Apache-2.0
"""Each call of gpuctl and gpuagent that can fail does so once: allocations, and calls of libcurl.

gpuctl shows what is so and ends as ever, or ends with a documented exit code and a sentence, or by SIGABRT after "out of memory"; it
submits nothing twice. gpuagent goes on, or ends cleanly; when it is started again the job that it had ends well, with all its output.

In short each place in the code from which such calls come fails once, of gpuagent a sample; in full every call of gpuctl does.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness import GPUAGENT, GPUCTL, Cluster, Problem, Program, eventually
from slowness import patient
from torture import FAILING, LIBRARY, Fault, Kind, Torture
from tortured import seed, unclean

Volume = Callable[[int, int], int]

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the thread sanitizer cannot be preloaded over")

#: Neither gpuctl nor gpuagent has a database.
CLIENT_KINDS = [kind for kind in FAILING if kind != Kind.DATABASE]

HANGS_S = patient(20)
#: How gpuctl ends when it cannot do what it was asked for; 125: it was `run` or `wait`, whose other codes are those of jobs.
GIVES_UP = {1, 2, 3, 4, 5, 6, 7, 8, 125}
AGENT_SAMPLE = 60
AGENT_STARTS = 15

JOB_FILE = """\
name: tortured
command: [sh, -c, "echo from the file"]
gpus: 1
env: {ONE: "1", TWO: "a b"}
labels: {team: torture}
"""


@dataclass
class Desk:
    """Where a person runs gpuctl."""

    cluster: Cluster
    torture: Torture
    environment: dict[str, str]
    folder: Path
    ended: str
    waiting: str

    def run(self, words: list[str]) -> subprocess.CompletedProcess[bytes]:
        environment = {**self.environment, **self.torture.environment()}
        command = [str(GPUCTL), *words]
        try:
            return subprocess.run(
                command, env=environment, cwd=self.folder, capture_output=True, timeout=HANGS_S, stdin=subprocess.DEVNULL, check=False
            )
        except subprocess.TimeoutExpired as hung:
            return subprocess.CompletedProcess(command, -signal.SIGKILL, hung.stdout or b"", b"it hung")


@pytest.fixture
def desk(tmp_path: Path, make_cluster: Callable[..., Cluster]) -> Iterator[Desk]:
    cluster = make_cluster(1)
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text(cluster.admin_token + "\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GPUCTL_")}
    environment = {**kept, "GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token), "NO_COLOR": "1", "TZ": "UTC"}
    ended = cluster.api.submit(["sh", "-c", "echo one; echo two; exit 3"])
    cluster.api.wait(ended)
    waiting = cluster.api.submit(["true"], hold=True)
    (tmp_path / "job.yaml").write_text(JOB_FILE)
    yield Desk(cluster, Torture(tmp_path, GPUCTL, seed()), environment, tmp_path, ended, waiting)


def commands(desk: Desk) -> dict[str, list[str]]:
    """What is asked; {key} is another one each time."""
    return {
        "get": ["get", desk.ended], "get json": ["get", "-o", "json", desk.ended], "logs": ["logs", desk.ended], "ps": ["ps", "--all"],
        "events": ["events", desk.ended], "wait": ["wait", desk.ended], "explain": ["explain", desk.waiting], "nodes": ["nodes"],
        "convert": ["convert", "job.yaml"], "submit": ["submit", "--key", "{key}", "--hold", "-f", "job.yaml"],
        "cancel": ["cancel", desk.ended], "usage": ["submit", "--no-such-option"],
    }  # fmt: skip


def judge(expected: subprocess.CompletedProcess[bytes], done: subprocess.CompletedProcess[bytes], moving: bool) -> str | None:
    """Why this is not how it may end; None: it is."""
    said = done.stderr.decode(errors="replace")
    if done.returncode == expected.returncode:
        return None if moving or done.stdout == expected.stdout else f"it showed {done.stdout[-600:]!r}"
    problem = unclean("gpuctl", done.returncode, said)
    if problem is not None:
        return problem
    if done.returncode > 0 and done.returncode not in GIVES_UP:
        return f"it ended with {done.returncode}: {said}"
    if not moving and not expected.stdout.startswith(done.stdout):
        return f"it ended with {done.returncode}, after it had shown {done.stdout[-600:]!r}"
    return None


def faults(desk: Desk, words: list[str], everything: bool, seen: set[str]) -> list[Fault]:
    """One at each place that has not failed before, or all."""
    found = []
    for kind in CLIENT_KINDS:
        desk.torture.record(kind)
        desk.run([word.format(key=f"record-{kind}-{len(seen)}") for word in words])
        sites = list(desk.torture.recorded().values())
        if everything:
            found += [Fault(kind, number) for number in desk.torture.numbers(kind, sites)]
        else:
            found += [Fault(kind, site.number) for site in sites if site.name not in seen]
            seen |= {site.name for site in sites}
    return found


def test_a_call_of_gpuctl_that_fails_shows_nothing_wrong(desk: Desk, volume: Volume) -> None:
    wrong, seen, strikes = [], set[str](), 0
    for name, words in commands(desk).items():
        moving = name in ("nodes", "submit", "get", "explain", "ps")
        expected = desk.run([word.format(key="first") for word in words])
        for fault in faults(desk, words, bool(volume(0, 1)), seen):
            key = f"{fault.kind.name}-{fault.number}-{name}"
            asked = [word.format(key=key) for word in words]
            desk.torture.arm(fault)
            done = desk.run(asked)
            where = desk.torture.struck()
            desk.torture.disarm()
            strikes += where is not None
            problem = judge(expected, done, moving)
            if name == "submit" and not problem:
                again = desk.run(asked)
                told = done.stdout.split()
                if again.returncode != 0 or (done.returncode == 0 and told != again.stdout.split()):
                    problem = f"it printed {told}, and when asked again under the same key {again}"
            if problem is not None:
                wrong.append(f"{name}, {fault.kind.name} {fault.number} at {where}: {problem}")
    print(f"gpuctl: {strikes} faults at {len(seen)} places, {len(wrong)} went wrong")
    assert strikes > 0
    assert not wrong, f"GPUCTL_SEED={seed()}: {len(wrong)} of {strikes}\n" + "\n".join(wrong)


#: Output of two streams, and some time in which the agent reports, beats and sends.
WORK = "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done; echo end >&2"
EXPECTED = "".join(f"line {number}\n" for number in range(2000))


@dataclass
class Farm:
    """A cluster whose one agent is tortured."""

    cluster: Cluster
    agent: Program
    torture: Torture
    said: int = 0

    def words(self) -> str:
        return self.agent.said()[self.said :]

    def revive(self, what: str) -> str | None:
        """Start the agent again where it has ended. What was wrong with that end."""
        if self.agent.alive():
            return None
        assert self.agent.process is not None
        problem = unclean("gpuagent", self.agent.process.wait(), self.words())
        self.said = len(self.agent.said())
        self.agent.start()
        return None if problem is None else f"{what}: {problem}"

    def registered(self) -> bool:
        return "node registered" in self.words()

    def restart(self) -> None:
        """End it by force, start it, and wait until it has registered or has ended."""
        if self.agent.alive():
            self.agent.kill(signal.SIGKILL)
        self.said = len(self.agent.said())
        self.agent.start()
        eventually(lambda: self.registered() or not self.agent.alive(), "the agent to register")

    def job(self, what: str) -> list[str]:
        """A job runs through, whatever that takes; what went wrong on the way."""
        wrong = []
        job = self.cluster.api.submit(["sh", "-c", WORK], on_disconnect="keep")

        def ended() -> bool:
            problem = self.revive(what)
            if problem:
                wrong.append(problem)
            return self.cluster.api.job(job)["state"] in ("SUCCEEDED", "FAILED", "CANCELED", "TIMED_OUT")

        eventually(ended, f"the job to end: {what}, {self.torture.struck()}")
        view = self.cluster.api.job(job)
        if view["state"] != "SUCCEEDED":
            wrong.append(f"{what} at {self.torture.struck()}: the job is {view['state']}: {view.get('reason')} {view.get('cause')}")
            return wrong
        try:
            if self.cluster.api.log(job) != EXPECTED or self.cluster.api.log(job, stream="stderr") != "end\n":
                wrong.append(f"{what} at {self.torture.struck()}: its output is not what it wrote: {len(self.cluster.api.log(job))} bytes")
        except Problem as problem:
            wrong.append(f"{what} at {self.torture.struck()}: {problem}")
        return wrong


@pytest.fixture
def farm(tmp_path: Path, make_cluster: Callable[..., Cluster]) -> Iterator[Farm]:
    torture = Torture(tmp_path, GPUAGENT, seed())
    cluster = make_cluster(1, agent_environment=torture.environment())
    made = Farm(cluster, cluster.agents[0], torture)
    yield made
    torture.disarm()
    made.revive("the end")


@pytest.mark.parametrize("kind", CLIENT_KINDS, ids=lambda kind: kind.name.lower())
def test_a_call_of_gpuagent_that_fails_costs_no_job(farm: Farm, kind: Kind, volume: Volume) -> None:
    assert farm.job("without a fault") == []
    farm.torture.record(kind)
    assert farm.job("recording") == []
    sites = list(farm.torture.recorded().values())
    chosen = random.Random(f"{seed()} agent").sample(sites, min(volume(AGENT_SAMPLE, len(sites)), len(sites)))
    wrong, struck = [], 0
    for site in chosen:
        farm.torture.arm(Fault(kind, 1, site=site.key))
        wrong += farm.job(f"{kind.name} at {site.name}")
        struck += farm.torture.struck() is not None
        farm.torture.disarm()
        assert farm.revive("after") is None
    print(f"gpuagent: {len(sites)} places, {struck} of {len(chosen)} faults struck, {len(wrong)} went wrong")
    assert struck > 0
    assert not wrong, f"GPUCTL_SEED={seed()}: {len(wrong)} of {struck}\n" + "\n".join(wrong)


@pytest.mark.skipif(Kind.MEMORY not in FAILING, reason="its allocations are the address sanitizer's")
def test_a_start_of_gpuagent_whose_call_fails_is_followed_by_one_that_works(farm: Farm, volume: Volume) -> None:
    running = farm.cluster.api.submit(["sleep", "1000"])
    farm.cluster.wait_state(running, "RUNNING")
    farm.torture.record(Kind.MEMORY)
    farm.restart()
    sites = list(farm.torture.recorded().values())
    wrong, struck = [], 0
    for site in random.Random(f"{seed()} start").sample(sites, min(volume(AGENT_STARTS, len(sites)), len(sites))):
        farm.torture.arm(Fault(Kind.MEMORY, site.number))
        farm.restart()
        where = farm.torture.struck()
        struck += where is not None
        farm.torture.disarm()
        problem = farm.revive(f"start, {site.number} at {where}")
        if problem:
            wrong.append(problem)
        eventually(farm.registered, f"the agent to register after {where}")
        assert farm.cluster.api.job(running)["state"] == "RUNNING", (where, farm.cluster.api.job(running))
    attempts = farm.cluster.api.get(f"/v1/jobs/{running}/attempts")["attempts"]
    print(f"gpuagent: {struck} faults of starts struck, {len(wrong)} went wrong")
    assert len(attempts) == 1, attempts
    assert struck > 0
    assert not wrong, f"GPUCTL_SEED={seed()}\n" + "\n".join(wrong)
