# SPDX-License-Identifier: Apache-2.0
"""An agent is killed at its system calls, from the order to the forgetting of an attempt: strace kills it at the Nth call of a kind.

Whatever the moment, when the agent is back the job succeeds, each rank has run once, and nothing is left. Another attempt is made only
where the first had no shim yet.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from gangs import started_at
from harness import Cluster, Program, eventually
from leftovers import assert_no_files, assert_nothing_lives

ONCE = (Path(__file__).parents[1] / "programs" / "once.py").read_text()
LINES = {"stdout": "".join(f"out {n}\n" for n in range(100)), "stderr": "".join(f"err {n}\n" for n in range(100))}

#: What an agent does to the world: files, processes, sockets. Each is counted by itself.
CALLS = ("mkdir", "mkdirat", "openat", "rename", "renameat", "write", "unlinkat", "clone3", "socketpair", "sendto", "recvfrom", "epoll_ctl")

#: Where an attempt changes hands, for every run. An attempt alone takes 3 mkdir and about 20 sendto, one of a gang some more.
ALONE: dict[str, Sequence[int]] = {
    "mkdir": (1, 2), "openat": (1, 3, 5, 7, 11), "rename": (1,), "write": (1, 2, 3), "sendto": range(1, 15), "recvfrom": (2, 5),
    "epoll_ctl": (2, 8),
}  # fmt: skip
GANG: dict[str, Sequence[int]] = {"mkdir": (1,), "rename": (1,), "write": (2,), "sendto": range(2, 24, 2), "recvfrom": (3, 6)}


class Traced:
    """strace on a running agent; it kills the agent at the Nth call of a kind, or only counts them."""

    def __init__(self, agent: Program, call: str, number: int | None, folder: Path):
        assert agent.process is not None
        self.agent = agent
        self.call = call
        self.output = folder / "trace"
        inject = ["-e", f"inject={call}:signal=SIGKILL:when={number}"] if number is not None else []
        self.process = subprocess.Popen(
            ["strace", "-qq", "-o", str(self.output), "-e", f"trace={call}", *inject, "-p", str(agent.process.pid)], stderr=subprocess.PIPE
        )
        eventually(lambda: self.is_attached() or self.process.poll() is not None, "strace to attach")
        # The agent may have made the call, and be dead, before that was seen.
        assert self.process.poll() is None or not agent.alive(), self.process.stderr.read() if self.process.stderr else ""

    def is_attached(self) -> bool:
        assert self.agent.process is not None
        status = Path(f"/proc/{self.agent.process.pid}/status").read_text()
        return f"TracerPid:\t{self.process.pid}\n" in status

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)

    def calls(self) -> int:
        """How many there were; strace is over."""
        return len(re.findall(rf"^{self.call}\(", self.output.read_text(errors="replace"), re.MULTILINE))


def submit(cluster: Cluster, folder: Path, gpus: int) -> str:
    folder.mkdir()
    files = [{"path": "once.py", "text": ONCE}]
    return cluster.api.submit(["python", "-S", "once.py", str(folder)], gpus=gpus, files=files, placement="spread", infra_retries=3)


def assert_ran_once(cluster: Cluster, job: str, folder: Path, gpus: int, where: str) -> None:
    view = cluster.api.wait(job)
    starts = sorted((folder / "starts").read_text().splitlines()) if (folder / "starts").exists() else []
    assert view["state"] == "SUCCEEDED", (where, view, starts)
    assert not (folder / "twice").exists(), f"{where}: two attempts were live"
    assert starts == [f"{rank} {view['attempt']}" for rank in range(gpus)], f"{where}: {starts}"
    for rank in range(gpus):
        for stream, lines in LINES.items():
            assert cluster.api.log(job, rank, stream) == lines, f"{where}: {stream} of rank {rank}"
    assert_nothing_lives(cluster, job)


class Hunt:
    """Kills the agent of node0 at given calls, one job a time."""

    def __init__(self, cluster: Cluster, folder: Path, gpus: int, settles: bool):
        self.cluster = cluster
        self.settles = settles
        self.folder = folder
        self.gpus = gpus
        self.jobs = self.killed = self.again = 0

    @contextlib.contextmanager
    def traced(self, call: str, number: int | None) -> Iterator[Traced]:
        self.settle()
        traced = Traced(self.cluster.agents[0], call, number, self.folder)
        try:
            yield traced
        finally:
            traced.stop()

    def settle(self) -> None:
        """The agents are there. Where every call counts, they have forgotten all that is over: it takes them a second or two."""
        self.cluster.wait_ready()
        if self.settles:
            eventually(self.has_forgotten, "the agents to have forgotten")

    def run(self) -> tuple[str, Path]:
        self.jobs += 1
        folder = self.folder / f"job{self.jobs}"
        return submit(self.cluster, folder, self.gpus), folder

    def count(self, call: str) -> int:
        """How often the agent makes the call for one attempt, until it has forgotten it."""
        with self.traced(call, None) as traced:
            job, folder = self.run()
            assert_ran_once(self.cluster, job, folder, self.gpus, f"counting {call}")
            eventually(self.has_forgotten, "the agents to have forgotten")
        return traced.calls()

    def kill_at(self, call: str, number: int) -> None:
        """The attempt may be over before the Nth call: their number differs a little from one to the next."""
        agent = self.cluster.agents[0]
        with self.traced(call, number):
            job, folder = self.run()
            eventually(lambda: not agent.alive() or self.is_over(job), f"{call} {number}")
        if not agent.alive():
            self.killed += 1
            agent.start()
        assert_ran_once(self.cluster, job, folder, self.gpus, f"killed at {call} {number}")
        self.again += self.cluster.api.job(job)["attempt"] > 1

    def has_forgotten(self) -> bool:
        return not any(list((self.cluster.folder / agent.log.stem / "attempts").iterdir()) for agent in self.cluster.agents)

    def is_over(self, job: str) -> bool:
        return self.cluster.api.job(job)["state"] == "SUCCEEDED" and self.has_forgotten()


def every_call(hunt: Hunt) -> Iterator[tuple[str, range]]:
    """Of each kind all that there are, as counted in a run without a kill."""
    for call in CALLS:
        yield call, range(1, hunt.count(call) + 1)


@pytest.mark.parametrize("gpus", [1, 2], ids=["alone", "gang"])
def test_an_agent_killed_at_any_system_call_of_an_attempt_loses_nothing(
    gpus: int, make_cluster: Callable[..., Cluster], tmp_path: Path, volume: Callable[[int, int], int], capsys: pytest.CaptureFixture[str]
) -> None:
    """alone: one node and the order to run; gang: two nodes, so the orders to prepare and to start."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    long = volume(0, 1) == 1
    hunt = Hunt(make_cluster(*[1] * gpus), tmp_path, gpus, settles=long)
    for call, numbers in every_call(hunt) if long else (ALONE if gpus == 1 else GANG).items():
        for number in numbers:
            hunt.kill_at(call, number)
    assert_no_files(hunt.cluster)
    with capsys.disabled():
        print(f"\n{hunt.jobs} jobs, their agent killed {hunt.killed} times; {hunt.again} needed a second attempt, none a second start")
    assert hunt.killed >= 8


# --- a shim that is slow --------------------------------------------------------------------------------------------------------


def idle_shims(agent: Program) -> list[int]:
    """Those that wait for an attempt."""
    assert agent.process is not None
    children = Path(f"/proc/{agent.process.pid}/task/{agent.process.pid}/children").read_text().split()
    return [int(pid) for pid in children if os.readlink(f"/proc/{pid}/exe").endswith("/gpushim")]


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize("forgotten", [False, True], ids=["given-up", "forgotten"])
def test_a_shim_too_slow_for_the_next_agent_never_starts_what_that_one_has_given_up(
    forgotten: bool, make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    """It has its orders, and its agent dies before it wakes. The next one finds nobody; it wakes before the job runs again, or after."""
    cluster = make_cluster(1)
    agent = cluster.agents[0]
    shims = eventually(lambda: (found := idle_shims(agent)) and len(found) == 2 and found, "two idle shims")
    for pid in shims:
        os.kill(pid, signal.SIGSTOP)
    eventually(lambda: all(is_stopped(pid) for pid in shims), "them to stop")
    folder = tmp_path / "job"
    job = submit(cluster, folder, 1)
    eventually(lambda: list((cluster.folder / "node0.run").glob("*/launch")), "the launch file")
    agent.kill()
    if not forgotten:
        cluster.controller.kill()
    agent.start()
    if forgotten:
        cluster.api.wait(job)
    eventually(lambda: "attempt adopted" in agent.said(), "the agent to look for the shim")
    for pid in shims:
        os.kill(pid, signal.SIGCONT)
    eventually(lambda: not any(started_at(pid) for pid in shims), "the slow shims to end")
    if not forgotten:
        cluster.start_controller()
    assert_ran_once(cluster, job, folder, 1, "a slow shim")
    assert cluster.api.job(job)["attempt"] == 2
    assert_no_files(cluster)
