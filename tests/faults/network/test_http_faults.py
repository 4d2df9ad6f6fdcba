# SPDX-License-Identifier: Apache-2.0
"""Each request of each of our programs goes wrong once in each way: no crash, no hang, no wrong answer, nothing submitted twice.

For every program and every fault the Nth request is struck, for N = 1, 2, ... until the program ends without having made that many.
In short a sample of the pairs, other ones with another GPUCTL_SEED; in full all of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness import GPUCTL, PYTHON, ROOT, TERMINAL, Cluster, eventually
from http_fault import PASSING, Fault, Proxy
from slowness import patient

#: A program that takes longer hangs: it may try again for 30 s.
HANGS_S = patient(60.0)
SAMPLE = 5
AGENT_REQUESTS = 20


@dataclass
class World:
    cluster: Cluster
    proxy: Proxy
    environment: dict[str, str]
    folder: Path
    ended: str  # a job that ended with 3 and said two lines
    ran: dict[str, int] = field(default_factory=dict)

    def jobs(self) -> int:
        """How many jobs there are, without the proxy."""
        count, cursor = 0, ""
        while True:
            page = self.cluster.api.get(f"/v1/jobs?limit=200{cursor}")
            count += len(page["jobs"])
            if page["next"] is None:
                return count
            cursor = f"&cursor={page['next']}"

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            list(words),
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=HANGS_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )


@dataclass(frozen=True)
class Program:
    """What is run, what it must end with, and how it ends when it gives up: then it says why."""

    words: list[str]
    stdout: str | None
    code: int
    gives_up: set[int]
    submits: int
    #: Whether a passing fault may end it: it asks once, and says that it can be tried again.
    asks_once: bool = False


SAYS = ["sh", "-c", "echo one; echo two; exit 3"]
CALL = """
from serverless_gpu import distributed

@distributed(gpus=2, gpu_type="cpu", remote=True)
def double(x):
    return 2 * x

assert double.distributed(21) == [42, 42]
print("the answer came back")
"""


def programs(world: World) -> dict[str, Program]:
    gpuctl = str(GPUCTL)
    call = world.folder / "call.py"
    call.write_text(CALL)
    return {
        "run": Program([gpuctl, "run", "--quiet", "--", *SAYS], "one\ntwo\n", 3, {125}, 1),
        "submit": Program([gpuctl, "submit", "--", "true"], None, 0, {1, 2, 7}, 1, asks_once=True),
        "wait": Program([gpuctl, "wait", world.ended], None, 3, {125}, 0),
        "logs": Program([gpuctl, "logs", world.ended], "one\ntwo\n", 0, {1, 2, 7}, 0, asks_once=True),
        "distributed": Program([PYTHON, str(call)], "the answer came back\n", 0, {1}, 1),
    }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("faults")
    desk = folder / "desk"
    desk.mkdir()
    cluster = Cluster(folder, [2]).start()
    proxy = Proxy(cluster.port)
    token = folder / "token"
    token.touch(0o600)
    token.write_text(cluster.admin_token + "\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUCTL_", "DATABRICKS_"))}
    environment = {
        **kept, "GPUCTL_URL": proxy.url, "GPUCTL_TOKEN_FILE": str(token), "XDG_CACHE_HOME": str(folder / "cache"), "NO_COLOR": "1",
        "PYTHONPATH": str(ROOT / "client" / "python" / "src"),
    }  # fmt: skip
    ended = cluster.api.submit(SAYS)
    cluster.api.wait(ended)
    yield World(cluster, proxy, environment, desk, ended)
    proxy.close()
    cluster.stop()


def seed() -> int:
    return int(os.environ.get("GPUCTL_SEED", "1"))


def requests_of(world: World, program: Program) -> int:
    """How many requests the program makes when nothing goes wrong, which is checked here, too."""
    world.proxy.arm(None)
    before = world.jobs()
    done = world.run(*program.words)
    assert (done.returncode, world.jobs() - before) == (program.code, program.submits), done
    assert program.stdout in (None, done.stdout), done
    return len(world.proxy.requests)


def judge(program: Program, fault: Fault, done: subprocess.CompletedProcess[str], submitted: int) -> str | None:
    """Why this is not how it may end; None: it is."""
    if submitted > program.submits:
        return f"{submitted} jobs were submitted"
    if done.returncode == program.code and program.stdout in (None, done.stdout):
        return None if submitted == program.submits else f"{submitted} jobs were submitted, though it ended well"
    if done.returncode not in program.gives_up:
        return f"it ended with {done.returncode}"
    if fault in PASSING and not program.asks_once:
        return f"it gave up with {done.returncode} on what passes"
    if program.stdout is not None and not program.stdout.startswith(done.stdout):
        return "it showed what is not so"
    return None if len(done.stderr.strip()) > 20 else f"it gave up with {done.returncode} without a word"


@pytest.mark.parametrize("name", ["run", "submit", "wait", "logs", "distributed"])
def test_a_request_that_goes_wrong_once_does_no_harm(world: World, name: str, volume: Callable[[int, int], int]) -> None:
    program = programs(world)[name]
    requests_of(world, program)  # the first time it may send blobs, which are there from then on
    count = requests_of(world, program)
    pairs = [(fault, number) for fault in Fault for number in range(1, count + volume(1, 2))]
    chosen = random.Random(f"{seed()} {name}").sample(pairs, volume(min(SAMPLE, len(pairs)), len(pairs)))
    wrong, struck, slowest = [], 0, 0.0
    for fault, number in chosen:
        before = world.jobs()
        world.proxy.arm(fault, number)
        begin = time.monotonic()
        done = world.run(*program.words)
        took = time.monotonic() - begin
        slowest, struck = max(slowest, took), struck + (world.proxy.struck is not None)
        problem = judge(program, fault, done, world.jobs() - before)
        if problem is not None:
            wrong.append(
                f"{fault.name} at request {number}, {world.proxy.struck}: {problem}\n  stdout {done.stdout!r}\n  stderr {done.stderr!r}"
            )
    print(f"{name}: {count} requests; {struck} of {len(chosen)} faults struck, {len(wrong)} did harm; the slowest run took {slowest:.1f} s")
    assert struck > 0
    assert not wrong, f"GPUCTL_SEED={seed()}\n" + "\n".join(wrong)


@contextlib.contextmanager
def node_behind(proxy: Proxy, folder: Path) -> Iterator[Cluster]:
    """A cluster whose one agent reaches its controller by the proxy."""
    cluster = Cluster(folder, [])
    cluster.start()
    proxy.upstream = cluster.port
    direct, cluster.url = cluster.url, proxy.url
    cluster.add_agent("node0", 2)
    cluster.url = direct
    cluster.wait_ready()
    try:
        yield cluster
    finally:
        proxy.arm(None)
        cluster.stop()


#: Output in two parts and a result, so that all kinds of requests are made: poll, report, logs, blob, beat.
WORK = "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo end >&2"


def run_job(cluster: Cluster) -> str | None:
    """Why a job of two ranks did not go as it must; None: it did."""
    job = cluster.api.submit(["sh", "-c", WORK], gpus=2)
    view = cluster.api.wait(job, HANGS_S)
    assert view["state"] in TERMINAL
    expected = "".join(f"line {n}\n" for n in range(20000))
    if view["state"] != "SUCCEEDED":
        return f"the job is {view['state']}: {view}"
    for rank in range(2):
        if cluster.api.log(job, rank=rank) != expected or cluster.api.log(job, rank=rank, stream="stderr") != "end\n":
            return f"the output of rank {rank} is not what it wrote: {len(cluster.api.log(job, rank=rank))} bytes of {len(expected)}"
    attempts = cluster.api.get(f"/v1/jobs/{job}/attempts")["attempts"]
    return None if len(attempts) == 1 else f"{len(attempts)} attempts: {json.dumps(attempts)}"


def test_a_request_of_an_agent_that_goes_wrong_once_does_no_harm(tmp_path: Path, volume: Callable[[int, int], int]) -> None:
    proxy = Proxy(0)
    wrong, struck, slowest = [], 0, 0.0
    with node_behind(proxy, tmp_path) as cluster:
        proxy.arm(None)
        assert run_job(cluster) is None
        count = min(len(proxy.requests), AGENT_REQUESTS)  # how many pieces the output is sent in is a matter of time
        pairs = [(fault, number) for fault in Fault for number in range(1, count + 1)]
        chosen = random.Random(f"{seed()} agent").sample(pairs, volume(12, len(pairs)))
        for fault, number in chosen:
            proxy.arm(fault, number)
            begin = time.monotonic()
            problem = run_job(cluster)
            slowest = max(slowest, time.monotonic() - begin)
            struck += proxy.struck is not None
            if problem is not None:
                wrong.append(f"{fault.name} at request {number}, {proxy.struck}: {problem}")
            assert cluster.agents[0].alive(), cluster.agents[0].said()
            eventually(lambda: cluster.nodes()["node0"]["state"] == "READY", "the node to be READY")
    proxy.close()
    print(f"agent: {count} requests; {struck} of {len(chosen)} faults struck, {len(wrong)} did harm; the slowest job took {slowest:.1f} s")
    assert struck > 0
    assert not wrong, f"GPUCTL_SEED={seed()}\n" + "\n".join(wrong)


def test_an_agent_that_cannot_register_at_first_does_so_in_the_end(tmp_path: Path, volume: Callable[[int, int], int]) -> None:
    for fault in random.Random(f"{seed()} register").sample(list(Fault), volume(2, len(Fault))):
        folder = tmp_path / fault.name
        folder.mkdir()
        proxy = Proxy(0)
        proxy.arm(fault, 1)
        with node_behind(proxy, folder) as cluster:
            assert proxy.struck is not None and run_job(cluster) is None
        proxy.close()
