# SPDX-License-Identifier: Apache-2.0
"""A cancel at any moment of a gang's life (I14): acknowledged before START is committed, no rank is ever started; later, the gang is gone
within its grace and 10 s, whatever its ranks make of it. The order of the two is read from the job's own history.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import chaos_gang
import leftovers
from chaos_gang import LOCAL, WORLD, Chaos
from harness import Cluster, Problem, eventually

GRACE_S = 1
AT_ONCE = 2
HELD_S = 0.05  # for so long a node does not answer

#: Nobody fails, and nobody ends by itself.
FOR_EVER = Chaos(0, WORLD, "absent")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("site"), [AT_ONCE * LOCAL, AT_ONCE * LOCAL]).start()
    yield cluster
    cluster.stop()


def submit(site: Cluster, mark: Path, chaos: Chaos = FOR_EVER) -> str:
    return chaos_gang.submit(site, chaos, mark, time_limit_s=0, grace_s=GRACE_S)


def started(mark: Path) -> list[str]:
    return sorted(path.name for path in mark.glob("*.started"))


def cancel_and_check(site: Cluster, job: str, mark: Path) -> bool:
    """Cancel it now; whether START had been committed by then. The rest of the test is here, for whatever moment this is."""
    asked = time.monotonic()
    try:
        site.api.post(f"/v1/jobs/{job}/cancel")
    except Problem as problem:
        assert problem.status == 409, problem  # it has ended by itself
    events = site.api.events(job)
    began = "started" in events[: events.index("cancel_asked")] if "cancel_asked" in events else "started" in events
    view = site.api.wait(job)
    took = time.monotonic() - asked
    told = f"{ {**view, 'spec': '...'} } {events}"
    assert took <= GRACE_S + 10, told
    assert view["state"] in ("CANCELED", "FAILED"), told
    assert began or started(mark) == [], f"started after a cancel was acknowledged: {told}"
    chaos_gang.check_nothing_left(site, job, mark, told)
    return began


def test_a_cancel_while_it_waits_for_room(site: Cluster, tmp_path: Path) -> None:
    full = site.api.submit(["sleep", "1000"], gpus=2 * AT_ONCE * LOCAL, placement="spread")
    job = submit(site, tmp_path / "mark")
    assert site.api.job(job)["state"] == "QUEUED"
    assert not cancel_and_check(site, job, tmp_path / "mark")
    site.api.post(f"/v1/jobs/{full}/cancel")
    site.api.wait(full)


def test_a_cancel_while_a_node_does_not_get_prepared(site: Cluster, tmp_path: Path) -> None:
    """The agent of one node is held, so that PREPARED never comes; let go, it must not start what is canceled."""
    mark = tmp_path / "mark"
    held = site.agents[1].process
    assert held is not None
    held.send_signal(signal.SIGSTOP)
    try:
        job = submit(site, mark)
        eventually(lambda: chaos_gang.attempts(site, job)[0]["state"] == "PREPARING", "one node to be prepared")
        site.api.post(f"/v1/jobs/{job}/cancel")
    finally:
        held.send_signal(signal.SIGCONT)
    assert not cancel_and_check(site, job, mark)


@pytest.mark.parametrize(
    "chaos",
    [FOR_EVER, Chaos(0, WORLD, "absent", manner="deaf", litter=["daemons", "children"])],
    ids=["ranks that take the hint", "ranks that do not, and have daemons"],
)
def test_a_cancel_while_it_runs(site: Cluster, tmp_path: Path, chaos: Chaos) -> None:
    mark = tmp_path / "mark"
    job = submit(site, mark, chaos)
    eventually(lambda: len(list(mark.glob("*.ready"))) == WORLD, "all ranks to be ready")
    site.wait_state(job, "RUNNING")
    assert cancel_and_check(site, job, mark)
    assert site.api.job(job)["state"] == "CANCELED"


def test_a_cancel_while_it_ends_by_itself(site: Cluster, tmp_path: Path) -> None:
    """One rank has failed, and the others are deaf: the attempt is STOPPING, with the grace of that."""
    mark = tmp_path / "mark"
    job = submit(site, mark, Chaos(0, 6, "kill", manner="deaf"))
    eventually(lambda: chaos_gang.attempts(site, job)[0]["state"] == "STOPPING", "the gang to be stopped")
    assert cancel_and_check(site, job, mark)
    assert leftovers.processes_of(job) == []


def test_a_cancel_at_any_moment(site: Cluster, tmp_path: Path, volume: Callable[[int, int], int]) -> None:
    """Some milliseconds after the submission, and around the moment at which the last node gets prepared, which is held until then: so at
    least one is before START, however fast a start is, and one after.
    """
    chance = random.Random(7)
    delays = [chance.choice([0, 0.005 * chance.random(), 0.05 * chance.random(), 0.3 * chance.random()]) for _ in range(volume(12, 1000))]

    def run(number: int) -> bool:
        mark = tmp_path / f"mark{number}"
        job = submit(site, mark)
        threading.Event().wait(delays[number])
        return cancel_and_check(site, job, mark)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        began = list(pool.map(run, range(len(delays))))
    held = site.agents[1].process
    assert held is not None
    for number, after_s in enumerate((-HELD_S, -0.002, 0.002, 0.01)):
        mark = tmp_path / f"held{number}"
        held.send_signal(signal.SIGSTOP)
        job = submit(site, mark)
        release = threading.Timer(HELD_S, held.send_signal, [signal.SIGCONT])
        release.start()
        threading.Event().wait(HELD_S + after_s)
        began.append(cancel_and_check(site, job, mark))
        release.join()
    assert 0 < sum(began) < len(began), "all fell on one side of START"
