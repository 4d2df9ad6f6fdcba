# SPDX-License-Identifier: Apache-2.0
"""Partitions against ground truth: three hosts, real agents, shims and gangs, links that are cut, and programs that are stopped.

What is promised to whom: a job with on_disconnect=requeue never has two attempts alive at once, and loses nothing by a cut that heals
within three quarters of its lease; one with keep is never stopped for a cut; one with fail ends. Whether that holds is not asked of our
programs alone: see truth.py and sampler.py.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import hosts
from harness import PYTHON, TERMINAL, Program, eventually
from hosts import Host, HostCluster, Network
from sampler import Sampler
from slowness import patient
from truth import Gang, check_truth, check_untouched, warn_of_gaps

WHY_NOT = hosts.missing()
pytestmark = pytest.mark.skipif(WHY_NOT != "", reason=WHY_NOT)

LEASE_S = 3


class Stage:
    """A cluster on hosts, a sampler of its ranks, and a folder for its jobs."""

    def __init__(self, folder: Path, agents: int = 2, slots: int = 2):
        self.folder = folder
        folder.mkdir(parents=True)
        self.network = Network(folder / "network", agents + 1)
        self.slots = slots
        self.left = contextlib.ExitStack()

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the ranks first: a host is gone only when nothing runs on it."""
        self.left.close()

    def start(self) -> Stage:
        self.left.enter_context(self.network)
        self.cluster = HostCluster(self.network, self.folder, self.slots)
        self.left.callback(self.cluster.stop)
        self.left.callback(self.network.heal)
        self.cluster.start()
        self.sampler = self.left.enter_context(Sampler(self.cluster.prefix))
        self.home = self.cluster.home
        return self

    def gang(self, name: str, policy: str, torch: bool = False, **spec: Any) -> Gang:
        lease = {} if policy == "keep" else {"lease_s": LEASE_S}
        return Gang(self.cluster.api, self.folder / name, PYTHON, torch, on_disconnect=policy, **{**lease, **spec})

    def host_of(self, gang: Gang, rank: int) -> Host:
        return self.cluster.host_of(gang.node_of(rank))

    def shims(self, node: str) -> list[int]:
        """The supervisors of what runs on a node, by their process numbers."""
        found = []
        for path in (self.cluster.folder / f"{node}.run").glob("*/shim.pid"):
            with contextlib.suppress(OSError, IndexError):
                number = int(path.read_text().split()[0])
                if os.readlink(f"/proc/{number}/exe").endswith("/gpushim"):
                    found.append(number)
        return found

    def sees(self, gang: Gang) -> bool:
        """Whether the sampler, which may be late on a busy machine, has seen the newest attempt."""
        return self.cluster.api.job(gang.id)["attempt"] in {life.attempt for life in self.sampler.lives(gang.id)}

    def end_well(self, *gangs: Gang) -> None:
        for gang in gangs:
            eventually(lambda gang=gang: self.sees(gang), f"the sampler to see what runs of {gang.id}")
            gang.open_gate()
        for gang in gangs:
            view = self.cluster.api.wait(gang.id)
            assert view["state"] == "SUCCEEDED", f"{view['cause']}, {view['reason']}; {self.cluster.api.log(gang.id, 0, 'stderr')}"
        warn_of_gaps(self.sampler)


@contextlib.contextmanager
def making(folder: Path) -> Iterator[Callable[..., Stage]]:
    """Makes stages below a folder, and ends them."""
    with contextlib.ExitStack() as made:

        def make(**options: int) -> Stage:
            stage = made.enter_context(Stage(folder / f"stage{len(list(folder.glob('stage*')))}", **options))
            return stage.start()

        yield make


@pytest.fixture
def make_stage(tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """Make stages that end with the test: make_stage(agents=3)."""
    with making(tmp_path) as make:
        yield make


def last(seconds: float) -> None:
    """Let a fault last so long: its length is what is tried, nothing is waited for."""
    threading.Event().wait(seconds)


def send(number: signal.Signals, *pids: int) -> None:
    """A signal to those that are still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def kill(program: Program) -> None:
    program.kill()


@contextlib.contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Processes that stand still meanwhile."""
    send(signal.SIGSTOP, *pids)
    try:
        yield
    finally:
        send(signal.SIGCONT, *pids)


def pid_of(program: Program) -> int:
    assert program.process is not None
    return program.process.pid


def leases_held(stage: Stage) -> bool:
    return bool(stage.cluster.api.get("/v1/nodes")["leases_held"])


def kinds(stage: Stage, gang: Gang) -> list[str]:
    return stage.cluster.api.events(gang.id)


# --- cuts --------------------------------------------------------------------------------------------------


def one_cut(folder: Path, to_controller: bool, to_agent: bool) -> None:
    """A host that is cut for longer than the lease, with a job of each policy on it."""
    with making(folder) as make:
        cut_longer_than_the_lease(make(slots=4), to_controller, to_agent)


def cut_longer_than_the_lease(stage: Stage, to_controller: bool, to_agent: bool) -> None:
    moves, stays, fails = (stage.gang(policy, policy) for policy in ("requeue", "keep", "fail"))
    for gang in (moves, stays, fails):
        gang.wait_runs()
    far = stage.host_of(moves, 0)
    if to_controller:
        stage.home.cut_from(far)
    if to_agent:
        far.cut_from(stage.home)
    moves.wait_runs(2)
    view = stage.cluster.api.wait(fails.id)
    assert (view["state"], view["cause"]) == ("FAILED", "NODE_LOST"), view
    assert stage.cluster.api.job(stays.id)["state"] == "RUNNING"
    stage.network.heal()
    stage.end_well(moves, stays)
    assert [life.attempt for life in check_truth(stage.sampler, moves)] == [1, 2]
    check_untouched(stage.sampler, stays)
    ended = next(life for life in check_truth(stage.sampler, fails))
    assert stage.cluster.api.job(fails.id)["attempt"] == ended.attempt == 1


def test_a_cut_longer_than_the_lease_does_to_each_job_what_its_policy_says(tmp_path: Path) -> None:
    """Cut both ways, and each way alone; side by side, for most of it is waiting."""
    ways = {"both": (True, True), "to the controller": (True, False), "to the agent": (False, True)}
    with ThreadPoolExecutor(len(ways)) as pool:
        for done in [pool.submit(one_cut, tmp_path / way, *cut) for way, cut in ways.items()]:
            done.result()


def test_cuts_that_heal_within_the_lease_stop_nothing(make_stage: Callable[..., Stage]) -> None:
    """Both ways, then of the answers alone, with no more between the cuts than one beat needs.

    What is sent at the beginning of a cut of 3.6 s is sent again by TCP 6.2 s after that, when the ranks of this lease would have been
    stopped for 1 s: beats must not wait for those before them. A busy machine has more than a second for its part.
    """
    stage = make_stage()
    gang = stage.gang("gang", "requeue", lease_s=7)
    gang.wait_runs()
    node = gang.node_of(0)
    far = stage.cluster.host_of(node)
    for cut in (lambda: stage.network.cut(far, stage.home), lambda: far.cut_from(stage.home)):
        cut()
        last(3.6)
        stage.network.heal()
        eventually(lambda: stage.cluster.nodes()[node]["beat_age_s"] < 0.1, "a beat after the cut")
        last(0.5)
    stage.end_well(gang)
    check_untouched(stage.sampler, gang)


def test_ranks_that_are_cut_from_each_other_go_on_when_they_are_not(make_stage: Callable[..., Stage]) -> None:
    """Also while nobody hears of anybody: with keep, a gang is its own business."""
    stage = make_stage()
    gang = stage.gang("gang", "keep", torch=True)
    gang.wait_runs()
    one, other = (stage.host_of(gang, rank) for rank in (0, 1))
    agent = stage.cluster.agent_of(gang.node_of(0))
    stage.network.cut(one, other)
    last(0.5)
    stage.network.cut(stage.home, one, other)
    agent.kill()
    last(0.5)
    agent.start()
    stage.network.heal()
    stage.end_well(gang)
    check_untouched(stage.sampler, gang)


# --- what stands still ------------------------------------------------------------------------------------


def test_a_stopped_agent_or_shim_does_not_keep_an_attempt_alive(make_stage: Callable[..., Stage]) -> None:
    """The shim ends what its agent cannot renew; the agent ends what its shim does not. On both nodes at once."""
    stage = make_stage(agents=4, slots=1)
    gang = stage.gang("gang", "requeue")
    gang.wait_runs()
    agent, shim = gang.node_of(0), gang.node_of(1)
    with stopped(pid_of(stage.cluster.agent_of(agent)), *stage.shims(shim)):
        stage.cluster.host_of(shim).cut_from(stage.home)
        eventually(lambda: "requeued" in kinds(stage, gang), "the requeue")
    stage.network.heal()
    gang.wait_runs(2)
    stage.end_well(gang)
    check_truth(stage.sampler, gang)


def test_a_controller_that_stands_still_gives_nothing_away_wrongly(make_stage: Callable[..., Stage]) -> None:
    """For less than a lease nothing happens at all, for more the nodes have ended what had one, and only that is tried again."""
    stage = make_stage()
    moves, stays = stage.gang("moves", "requeue"), stage.gang("stays", "keep")
    moves.wait_runs()
    stays.wait_runs()
    with stopped(pid_of(stage.cluster.controller)):
        last(0.5 * LEASE_S)
    eventually(lambda: all(node["beat_age_s"] < 0.5 for node in stage.cluster.nodes().values()), "all nodes to be heard")
    assert stage.cluster.api.job(moves.id)["attempt"] == 1
    with stopped(pid_of(stage.cluster.controller)):
        last(1.5 * LEASE_S)
    moves.wait_runs(2)
    stage.end_well(moves, stays)
    check_untouched(stage.sampler, stays)
    assert [life.attempt for life in check_truth(stage.sampler, moves)] == [1, 2]


# --- the end of a host ------------------------------------------------------------------------------------


def test_a_reboot_moves_a_gang_at_once(make_stage: Callable[..., Stage]) -> None:
    """With torch: the rank on the other host has lost its peer and failed by then; that is not the user's fault."""
    stage = make_stage()
    gang = stage.gang("gang", "keep", torch=True, retries=0)
    gang.wait_runs()
    node = gang.node_of(0)
    stage.cluster.go_down(node)
    eventually(lambda: "stopping" in kinds(stage, gang), "the other rank to fail")
    stage.cluster.come_up(node)
    gang.wait_runs(2)
    stage.end_well(gang)
    assert [life.attempt for life in check_truth(stage.sampler, gang)] == [1, 2]


def test_a_dead_host_keeps_its_gang_until_somebody_says_that_it_is_dead(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage()
    gang = stage.gang("gang", "keep")
    gang.wait_runs()
    dead = gang.node_of(1)
    stage.network.cut(stage.cluster.host_of(dead), stage.home, stage.host_of(gang, 0))
    stage.cluster.host_of(dead).kill()
    eventually(lambda: stage.cluster.nodes()[dead]["state"] == "SUSPECT", "the node to be SUSPECT")
    assert stage.cluster.api.job(gang.id)["attempt"] == 1
    stage.cluster.gpuctl("nodes", "fence", dead, "--i-assert-dead")
    gang.wait_runs(2)
    stage.end_well(gang)
    assert [life.attempt for life in check_truth(stage.sampler, gang)] == [1, 2]


def test_a_fenced_node_that_lives_serves_nothing_new_until_the_old_is_gone(make_stage: Callable[..., Stage]) -> None:
    """The operator was wrong, and the shim hangs, so that the old ranks live on for as long as the test wants."""
    stage = make_stage(agents=1)
    old = stage.gang("old", "keep", placement="pack")
    old.wait_runs()
    node = old.node_of(0)
    new = stage.gang("new", "keep", placement="pack")
    with stopped(*stage.shims(node)):
        stage.cluster.api.post(f"/v1/nodes/{node}/fence", {"assert_dead": True})
        eventually(lambda: kinds(stage, old).count("requeued") >= 2, "the node to decline what was placed on it anew")
    stage.end_well(old, new)
    held = sorted((life.first, life.last) for gang in (old, new) for life in stage.sampler.lives(gang.id))
    for (_, end), (begin, _) in zip(held, held[1:], strict=False):
        assert end < begin, f"two attempts were on the same devices: {held}"


# --- most nodes at once -----------------------------------------------------------------------------------


def test_nothing_is_given_away_while_most_nodes_are_silent(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(agents=3, slots=1)
    gang = stage.gang("gang", "requeue")
    gang.wait_runs()
    stage.home.cut_from(*stage.network.hosts[1:])
    eventually(lambda: leases_held(stage), "the controller to see that the fault is its own")
    assert "Most nodes are silent" in stage.cluster.gpuctl("nodes")
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in stage.sampler.lives(gang.id)[0].processes), "the end of the lease")
    last(0.5 * LEASE_S)
    assert kinds(stage, gang).count("requeued") == 0, "given away while all nodes were silent"
    stage.network.heal()
    gang.wait_runs(2)
    eventually(lambda: not leases_held(stage), "leases to count again")
    assert "Most nodes are silent" not in stage.cluster.gpuctl("nodes")
    stage.end_well(gang)
    check_truth(stage.sampler, gang)
    said = stage.cluster.controller.said()
    assert "leases held" in said, said
    assert "leases released" in said, said


# --- a volume of random faults ----------------------------------------------------------------------------


class Chaos:
    """Faults of one run: each begins and ends at a moment of the plan, and they overlap as the seed has it."""

    LENGTH_S = 10.0

    def __init__(self, stage: Stage, gang: Gang, seed: int):
        self.stage = stage
        self.gang = gang
        self.chance = random.Random(seed)
        self.told: list[str] = []
        self.plan = sorted(self.events(), key=lambda event: event[0])

    def events(self) -> list[tuple[float, str, Callable[[], None]]]:
        """(when, what, its doing): what hinders the guards of a node, two of which would be all, comes one at a time."""
        chance, events, free_s = self.chance, [], 0.0
        for _ in range(chance.randint(3, 6)):
            begin, length = chance.uniform(0, self.LENGTH_S * 0.8), chance.uniform(0.1, 1.6 * LEASE_S)
            name, start, end = self.cut()
            events += [(begin, f"cut {name}", start), (begin + length, f"heal {name}", end)]
        for _ in range(chance.randint(1, 3)):
            begin, length = free_s + chance.uniform(0, 2), chance.uniform(0.1, 1.6 * LEASE_S)
            name, start, end = self.hinder()
            events += [(begin, name, start), (begin + length, f"end of {name}", end)]
            free_s = begin + length
        return events

    def cut(self) -> tuple[str, Callable[[], None], Callable[[], None]]:
        one, other = self.chance.sample(self.stage.network.hosts, 2)
        return f"{one.address} from {other.address}", lambda: one.cut_from(other), lambda: one.hear_again(other)

    def hinder(self) -> tuple[str, Callable[[], None], Callable[[], None]]:
        """A program of ours that stands still, or is killed and started again."""
        nodes = [f"{self.stage.cluster.prefix}{number}" for number in range(2, len(self.stage.network.hosts) + 1)]
        node = self.chance.choice(nodes)
        agent, controller = self.stage.cluster.agent_of(node), self.stage.cluster.controller
        held: list[int] = []

        def stop_shims() -> None:
            held.extend(self.stage.shims(node))
            send(signal.SIGSTOP, *held)

        def start_controller() -> None:
            controller.start()
            eventually(self.answers, "the controller to answer")

        def stop(program: Program) -> tuple[Callable[[], None], Callable[[], None]]:
            return lambda: send(signal.SIGSTOP, pid_of(program)), lambda: send(signal.SIGCONT, pid_of(program))

        choices: list[tuple[str, Callable[[], None], Callable[[], None]]] = [
            (f"stop agent {node}", *stop(agent)),
            (f"stop shims {node}", stop_shims, lambda: send(signal.SIGCONT, *held)),
            ("stop controller", *stop(controller)),
            (f"kill agent {node}", lambda: kill(agent), agent.start),
            ("kill controller", lambda: kill(controller), start_controller),
        ]
        return self.chance.choice(choices)

    def answers(self) -> bool:
        with contextlib.suppress(OSError):
            return bool(self.stage.cluster.api.get("/v1/nodes"))
        return False

    def run(self) -> None:
        begun = time.monotonic()
        for when, what, work in self.plan:
            last(max(0.0, begun + when - time.monotonic()))
            self.told.append(f"{time.monotonic() - begun:.2f} {what}")
            work()
        self.stage.network.heal()


def one_run(folder: Path, seed: int) -> None:
    """A gang with random faults; it ends well when they are over, and at no time lived twice."""
    policy = ("requeue", "keep", "requeue")[seed % 3]
    with making(folder) as make:
        stage = make()
        gang = stage.gang("gang", policy, torch=True, retries=20)
        gang.wait_runs()
        chaos = Chaos(stage, gang, seed)
        try:
            chaos.run()
            gang.open_gate()
            view = eventually(lambda: terminal(stage, gang), "the end of the job", patience=patient(150))
            assert view["state"] == "SUCCEEDED", view
            check_truth(stage.sampler, gang)
            if policy == "keep":
                check_untouched(stage.sampler, gang)
        except Exception as problem:
            raise AssertionError(f"seed {seed}, {policy}: " + "; ".join(chaos.told)) from problem


def terminal(stage: Stage, gang: Gang) -> Any:
    view = stage.cluster.api.job(gang.id)
    return view if view["state"] in TERMINAL else None


def test_no_sequence_of_faults_makes_two_attempts_live_at_once(volume: Callable[[int, int], int], tmp_path: Path) -> None:
    """GPUCTL_SEED begins the seeds; a run that fails names its own."""
    first = int(os.environ.get("GPUCTL_SEED", "1"))
    with ThreadPoolExecutor(3) as pool:
        runs = [pool.submit(one_run, tmp_path / f"run{seed}", seed) for seed in range(first, first + volume(3, 500))]
        for run in runs:
            run.result()
