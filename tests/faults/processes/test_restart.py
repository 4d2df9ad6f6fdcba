# SPDX-License-Identifier: Apache-2.0
"""Agents and controller killed and ended under running gangs, as a seed chooses: no gang notices, and no line is lost or doubled."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gangs import Gang
from harness import Cluster, Program, eventually
from slowness import patient

SEED = int(os.environ.get("GPUCTL_SEED", "20261121"))

#: Promised of an agent that is started again while the controller serves.
AGENT_BACK_S = patient(3.0)
#: The most that an agent waits between two tries (BACKOFF_MAX_MS), and what a loaded machine needs on top.
CONTROLLER_FOUND_S = patient(7.0 + 3.0)
#: Up to so long after its start a program is killed again: an agent registers after about 10 ms, a controller serves after about 100 ms.
EARLY_S = {"agent": 0.04, "controller": 0.15}


class Restarts:
    """Restarts programs of a cluster in all ways that count, and keeps how long each took to be back."""

    def __init__(self, cluster: Cluster, seed: int):
        self.cluster = cluster
        self.chance = random.Random(seed)
        self.agents = self.controllers = 0
        self.agent_back_s: list[float] = []
        self.found_s: list[float] = []

    def pause(self, most_s: float) -> None:
        """A moment that nobody could foresee."""
        threading.Event().wait(self.chance.uniform(0, most_s))

    def _end(self, program: Program, running: bool = True) -> None:
        how = self.chance.choice((signal.SIGKILL, signal.SIGTERM))
        code = program.kill(how)
        good = {-signal.SIGKILL} if how == signal.SIGKILL else {0} if running else {0, -signal.SIGTERM}
        assert code in good, f"{program.log.name} ended with {code} by signal {how}\n{program.said()[-2000:]}"

    def _registrations(self, agent: Program) -> list[int]:
        return [int(number) for number in re.findall(r"node registered .*incarnation=(\d+)", agent.said())]

    def _wait_registered(self, agent: Program, before: int, what: str) -> float:
        begin = time.monotonic()
        eventually(lambda: len(self._registrations(agent)) > before, what)
        return time.monotonic() - begin

    def agent(self) -> None:
        """One agent goes and comes, the controller serves all the while."""
        agent = self.chance.choice(self.cluster.agents)
        self._end(agent)
        before = len(self._registrations(agent))
        agent.start()
        self.agents += 1
        self.agent_back_s.append(self._wait_registered(agent, before, f"{agent.log.stem} to register"))

    def agent_twice(self) -> None:
        """It is killed again while it starts."""
        agent = self.chance.choice(self.cluster.agents)
        self._end(agent)
        agent.start()
        self.pause(EARLY_S["agent"])
        self._end(agent, running=False)
        self.agents += 1
        before = len(self._registrations(agent))
        agent.start()
        self.agents += 1
        self.agent_back_s.append(self._wait_registered(agent, before, f"{agent.log.stem} to register"))

    def _start_controller(self) -> None:
        self.cluster.start_controller()
        self.controllers += 1
        begin = time.monotonic()

        def heard() -> bool:
            return all(node["beat_age_s"] is not None for node in self.cluster.nodes().values())

        eventually(heard, "the agents to find the controller")
        self.found_s.append(time.monotonic() - begin)

    def controller(self) -> None:
        self._end(self.cluster.controller)
        self._start_controller()

    def controller_twice(self) -> None:
        self._end(self.cluster.controller)
        self.cluster.controller.arguments = self.cluster.controller_command()
        self.cluster.controller.start()
        self.pause(EARLY_S["controller"])
        self._end(self.cluster.controller, running=False)
        self.controllers += 1
        self._start_controller()

    def all_at_once(self) -> None:
        """Agents come back before the controller or after it."""
        for program in (*self.cluster.agents, self.cluster.controller):
            self._end(program)
        late = [agent for agent in self.cluster.agents if self.chance.random() < 0.5]
        for agent in self.cluster.agents:
            if agent not in late:
                agent.start()

        def start_late() -> None:
            for agent in late:
                agent.start()

        starter = threading.Timer(self.chance.uniform(0, 0.2), start_late)
        starter.start()
        self._start_controller()
        starter.join()
        self.agents += len(self.cluster.agents)

    def step(self, agents: int, controllers: int) -> None:
        """The next one, of those whose number is not yet reached."""
        ways = [self.agent, self.agent, self.agent_twice] * (self.agents < agents)
        ways += [self.controller, self.controller, self.controller_twice] * (self.controllers < controllers)
        ways += [self.all_at_once] * (self.agents < agents and self.controllers < controllers)
        self.pause(0.1)
        self.chance.choice(ways)()


def test_gangs_do_not_notice_that_agents_and_controller_are_restarted(
    make_cluster: Callable[..., Cluster], tmp_path: Path, volume: Callable[[int, int], int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Eight gangs, half of them over two nodes; agents and controller go by SIGKILL and SIGTERM, alone, together, and while they start."""
    agents, controllers = volume(30, 1000), volume(15, 1000)
    cluster = make_cluster(4, 4, 4, 4)
    gate = tmp_path / "gate"
    gangs = [Gang(cluster, gate, placement=("pack", "spread")[number % 2]) for number in range(8)]
    restarts = Restarts(cluster, SEED)
    try:
        for gang in gangs:
            gang.writes()
        while restarts.agents < agents or restarts.controllers < controllers:
            restarts.step(agents, controllers)
            restarts.chance.choice(gangs).lives()
        for gang in gangs:
            gang.goes_on()
            gang.lives()
    finally:
        gate.touch()
    lines = sum(gang.assert_undisturbed() for gang in gangs)
    broken = sum(gang.logs.connections + gang.history.connections - 2 for gang in gangs)
    with capsys.disabled():
        print(
            f"\nseed {SEED}: {restarts.agents} agent and {restarts.controllers} controller restarts under 8 gangs, {lines} lines, "
            f"readers came back {broken} times; an agent was back after {max(restarts.agent_back_s):.2f} s at the most, "
            f"a controller was found after {max(restarts.found_s):.2f} s"
        )
    assert broken >= len(gangs) * restarts.controllers, "the readers were not cut off by every restart"
    assert max(restarts.agent_back_s) <= AGENT_BACK_S
    assert max(restarts.found_s) <= CONTROLLER_FOUND_S
