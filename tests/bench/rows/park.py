# SPDX-License-Identifier: Apache-2.0
"""10,000 agents that are parked: what they cost, how fast all are told, and how fast all are back after a restart.

Simulated agents (tests/bench/programs/agents.c) in one process, each with a connection of its own on which its poll waits, as agents hold
them; plain HTTP, and TLS 1.3 with a self-signed certificate of P-256. `kib_each`: growth of the controller's VmRSS from all registered to
all parked, after every poll has also been answered and put anew. `wake_ms`: from before POST /v1/shutdown, which tells every agent to end,
until the last has its answer. `back_s`: kill -9, then from before the start of the next controller until every agent has a poll parked
again; agents try again as real ones do, with full jitter from 200 ms on. Medians of three. Where the hard limit of descriptors allows fewer
agents, `agents` says how many there were.

Gates: 10 KiB each plain, 24 KiB with TLS (aim 6, 20); wake 250 ms (aim 130); back 15 s with TLS (aim 8).
"""

from __future__ import annotations

import statistics
import time

from common import Chart, Goal, cluster, controller_pid, cpu_s, prepare, resident_kib, worst
from harness import Cluster, eventually
from simulated import Agents, TlsCluster, agents, most_agents, node_token

GOALS = (
    Goal("plain.kib_each", "resident memory a parked agent, plain", "KiB", 10, 6),
    Goal("tls.kib_each", "resident memory a parked agent, TLS", "KiB", 24, 20),
    Goal("plain.wake_ms", "all are told, plain", "ms", 250, 130),
    Goal("tls.wake_ms", "all are told, TLS", "ms", 250, 130),
    Goal("tls.back_s", "all are back after a restart, TLS", "s", 15, 8),
)
CHARTS = (
    Chart(
        "resident memory of the controller for each parked agent",
        "KiB",
        {"gpuctl, plain HTTP": "plain.kib_each", "gpuctl, TLS": "tls.kib_each"},
    ),
)
AGENTS = 10_000
ROUNDS = 3
#: Time over which first polls are spread: the handshakes of TLS are a few hundred microseconds each.
SPREAD_MS = {False: 1000, True: 6000}


def boot_us() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


def memory_each(ours: Cluster, fleet: Agents, count: int, spread_ms: int) -> dict[str, float]:
    """KiB that a registered agent takes, and how many more once its poll is parked."""
    pid = controller_pid(ours)
    empty = resident_kib(pid)
    fleet.ask("register")
    registered = resident_kib(pid)
    polls = fleet.ask(f"park {spread_ms}")["polls"]
    eventually(lambda: fleet.ask("park 0")["polls"] >= polls + count, "every poll to be answered and put anew")
    return {"registered_kib_each": (registered - empty) / count, "kib_each": (resident_kib(pid) - registered) / count}


def wake_ms(ours: Cluster, fleet: Agents) -> float:
    """All are told to end, and the controller ends."""
    assert ours.controller.process is not None
    fleet.tell("told")
    begin = boot_us()
    ours.api.post("/v1/shutdown")
    done = fleet.answer()["at_us"]
    assert ours.controller.process.wait(30) == 0, ours.controller.said()
    return (done - begin) / 1000


def back_s(ours: Cluster, fleet: Agents) -> tuple[float, float]:
    """Until all are back, and the CPU time that the new controller took for it."""
    ours.controller.kill()
    fleet.ask("lost")
    begin = boot_us()
    ours.start_controller()
    done = fleet.ask("park 0")["at_us"]
    return (done - begin) / 1e6, cpu_s(controller_pid(ours))


def measure(tls: bool) -> dict[str, object]:
    count = most_agents(AGENTS)
    kind = TlsCluster if tls else Cluster
    with (
        cluster([], controller=["--beat", "60s", "--embedded"], kind=kind) as ours,
        agents(ours.port, node_token(ours), count, 1, tls) as fleet,
    ):
        each = memory_each(ours, fleet, count, SPREAD_MS[tls])
        wakes, backs = [], []
        for number in range(ROUNDS):
            backs.append(back_s(ours, fleet))
            wakes.append(wake_ms(ours, fleet))
            print(f"{'TLS' if tls else 'plain'}: back {backs[-1][0]:.2f} s, wake {wakes[-1]:.0f} ms", flush=True)
            if number + 1 < ROUNDS:
                ours.start_controller()
                fleet.ask(f"park {SPREAD_MS[tls]}")
    return {
        "agents": count,
        **{name: round(value, 1) for name, value in each.items()},
        "wake_ms": round(statistics.median(wakes), 1),
        "back_s": round(statistics.median(spent for spent, _ in backs), 2),
        "back_cpu_s": round(statistics.median(cpu for _, cpu in backs), 2),
    }


def run() -> dict[str, object]:
    prepare("openssl", targets=("bench-agents",))
    figures = {"plain": measure(tls=False), "tls": measure(tls=True)}
    return {"ratio": worst(GOALS, figures), **figures}
