# SPDX-License-Identifier: Apache-2.0
"""Each call of the controller that can fail does so once: allocations, calls of SQLite, calls of the HTTP library.

It may then answer as ever, answer with 5xx, or end cleanly: with an exit status and a sentence, or by SIGABRT after "out of memory". It
never crashes, hangs or says what is not so, and when it is started again everything that was acknowledged is there once. Under the address
sanitizer, where its allocations do not fail, nothing leaks by the other calls.

In short each place in the code from which such calls come fails once; in full every call does, once and for good.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controller import Controller
from customer import check_all
from harness import GPUCTLD
from torture import FAILING, IOERR, LIBRARY, NOMEM, Fault, Kind, Site, Torture
from tortured import Visitor, World, seed

Volume = Callable[[int, int], int]

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="the thread sanitizer cannot be preloaded over")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    controller = Controller(tmp_path / "life")
    made = World(controller, Torture(tmp_path, GPUCTLD, seed()), Visitor(controller.api, "visitor", seed()))
    made.must_start()
    yield made
    controller.kill()


def furnish(visitor: Visitor) -> dict[str, str]:
    """Jobs that have ended, one that runs and has said something, one that waits; for the paths of what is read."""
    visitor.plain("POST", "/api/2.0/mlflow/experiments/create", (200,), {"name": "tortured"})
    while not (visitor.running() and any(job.end for job in visitor.jobs.values()) and visitor.jobs[list(visitor.jobs)[-1]].end is None):
        for _ in range(10):
            visitor.step()
        visitor.submit()
        for job in visitor.jobs:
            visitor.look(job)
    for _ in range(3):
        visitor.log()
    ended = next(id for id, job in visitor.jobs.items() if job.end)
    return {"ended": ended, "live": visitor.attempts[visitor.running()[0]].job, "last": list(visitor.jobs)[-1]}


#: Places of a start that fail in a short run: of each kind, in a new folder and in one that has work.
START_SAMPLE = 18


def ways(kind: Kind) -> list[tuple[int, bool]]:
    """In which it fails: (what SQLite says, whether it lasts)."""
    return [(NOMEM, False), (IOERR, False)] if kind == Kind.DATABASE else [(NOMEM, False)]


def chosen_calls(site: Site) -> list[int]:
    """The first call from a site; inside a library, which does many things at one place, a later one, too."""
    later = random.Random(f"{seed()} {site.name}").randint(1, site.times)
    return [1] if later == 1 or not site.name.startswith("lib") else [1, later]


def each_site(world: World, name: str, act: Callable[[], Any], kind: Kind) -> None:
    """Fail at each place that the operation calls from and that has not failed before."""
    world.torture.record(kind)
    act()
    for site in world.torture.recorded().values():
        if site.name not in world.struck:
            for number in chosen_calls(site):
                code, lasting = ways(kind)[(seed() + len(world.struck)) % len(ways(kind))]
                world.strike(name, act, Fault(kind, number, code, lasting, site.key))


def each_call(world: World, name: str, act: Callable[[], Any], kind: Kind) -> None:
    """Fail at the first call, the second, and so on, until it succeeds without."""
    for code, lasting in [*ways(kind), (NOMEM, True)]:
        number = 1
        while world.strike(name, act, Fault(kind, number, code, lasting)) is not None:
            number += 1


def changes(visitor: Visitor) -> dict[str, Callable[[], Any]]:
    """What changes something; each may be asked any number of times."""
    numbers = itertools.count()

    def limits() -> None:
        visitor.plain("PUT", f"/v1/accounts/projects/p{next(numbers) % 7}", (200,), {"max_queued_jobs": 5000})

    def window() -> None:
        document = {"all": True, "from": "2099-01-01T00:00:00Z", "until": "2099-01-01T01:00:00Z", "reason": "torture"}
        visitor.plain("POST", "/v1/windows", (201, 409), document)

    def drain() -> None:
        visitor.plain("POST", f"/v1/nodes/{visitor.name}-node/drain", (200, 409), {"reason": "torture"})
        visitor.plain("POST", f"/v1/nodes/{visitor.name}-node/resume", (200, 409))

    def experiment() -> None:
        visitor.plain("POST", "/api/2.0/mlflow/experiments/create", (200, 400), {"name": f"e{next(numbers)}"})

    def plan() -> None:
        visitor.plain("POST", "/v1/plan", (200,), {"command": ["true"], "gpus": 1})

    def refused() -> None:
        visitor.plain("POST", "/v1/jobs", (422,), {"command": ["true"], "gpus": 1, "array": {"count": 3}, "nonsense": True})

    acts: list[Callable[[], Any]] = [
        visitor.submit, visitor.work, visitor.log, visitor.cancel, visitor.hold, visitor.release, visitor.blob, visitor.token,
        visitor.revoke, visitor.beat, visitor.register, limits, window, drain, experiment, plan, refused,
    ]  # fmt: skip
    return {act.__name__: act for act in acts}


@pytest.mark.parametrize("kind", FAILING, ids=lambda kind: kind.name.lower())
def test_a_change_whose_call_fails_is_made_once_or_not_at_all(world: World, kind: Kind, volume: Volume) -> None:
    furnish(world.visitor)
    for name, act in changes(world.visitor).items():
        (each_call if volume(0, 1) else each_site)(world, name, act, kind)
    world.end()


#: What these say does not change by itself.
STEADY = [
    "/v1/jobs?limit=20", "/v1/jobs?state=SUCCEEDED,FAILED&limit=5", "/v1/jobs/{ended}", "/v1/jobs/{ended}/events?limit=50",
    "/v1/jobs/{ended}/attempts", "/v1/jobs/{ended}/results?bytes=1", "/v1/jobs/{live}/logs", "/v1/jobs/{live}/logs?tail=20",
    "/v1/jobs/{ended}/metrics", "/v1/jobs/{ended}/runs", "/v1/pools", "/v1/windows", "/v1/tokens", "/v1/backups",
    "/v1/lost", "/v1/openapi.yaml", "/healthz", "/v1/jobs/nonesuch", "/v1/nowhere",
    "/api/2.0/mlflow/experiments/get-by-name?experiment_name=tortured",
]  # fmt: skip
#: These tell times, what is placed meanwhile, and the number of the controller's life; the names in them stay.
MOVING = ["/v1/accounts", "/v1/nodes", "/v1/jobs/{last}", "/v1/jobs/{last}/explanation", "/version"]
STREAMS = ["/v1/jobs/{ended}/events", "/v1/jobs/{live}/logs?follow=0"]


def shape(value: Any) -> Any:
    """The names in a document."""
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else value is None


def reader(visitor: Visitor, path: str, moving: bool, accept: str | None) -> Callable[[], None]:
    """Reads it, and holds it against what it says now."""
    expected = visitor.read(path, accept)

    def read() -> None:
        status, body = visitor.read(path, accept)
        assert status == expected[0], (path, status, body[:500])
        if moving:
            assert shape(json.loads(body)) == shape(json.loads(expected[1])), (path, body, expected[1])
        else:
            assert body == expected[1], (path, body[:500], expected[1][:500])

    return read


@pytest.mark.parametrize("kind", FAILING, ids=lambda kind: kind.name.lower())
def test_a_read_whose_call_fails_shows_what_is_so_or_fails(world: World, kind: Kind, volume: Volume) -> None:
    names = furnish(world.visitor)
    paths = [(path, False, None) for path in STEADY] + [(path, True, None) for path in MOVING]
    for path, moving, accept in [*paths, *((path, False, "text/event-stream") for path in STREAMS)]:
        act = reader(world.visitor, path.format(**names), moving, accept)
        (each_call if volume(0, 1) else each_site)(world, path, act, kind)
    world.end()


def start_with(world: World, fault: Fault) -> str | None:
    """A start with a fault, and an end. Where it struck."""
    world.torture.arm(fault)
    served = world.start()
    where = world.strikes()
    if served:
        world.controller.kill()
    else:
        world.note_end(f"start, {fault.kind.name} {fault.number} at {where}")
    return where


def calls_of_a_start(world: World, kind: Kind, everything: bool) -> list[int]:
    world.torture.record(kind)
    world.must_start()
    sites = list(world.torture.recorded().values())
    world.controller.kill()
    if everything:
        return world.torture.numbers(kind, sites)
    numbers = sorted({site.number for site in sites})
    return random.Random(f"{seed()} {kind}").sample(numbers, min(START_SAMPLE, len(numbers)))


@pytest.mark.parametrize("kind", [kind for kind in FAILING if kind != Kind.TRANSPORT], ids=lambda kind: kind.name.lower())
@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_a_start_whose_call_fails_is_followed_by_one_that_serves(
    tmp_path: Path, world: World, first: bool, kind: Kind, volume: Volume
) -> None:
    if not first:
        furnish(world.visitor)
    world.controller.kill()
    numbers = []
    for life in itertools.count():
        if first or life == 0:  # else in the folder that has work
            controller = Controller(tmp_path / f"start{life}") if first else world.controller
            world.controller = controller
        if life == 0:
            numbers = calls_of_a_start(world, kind, bool(volume(0, 1)))
            continue
        if life > len(numbers):
            break
        for code, lasting in ways(kind):
            start_with(world, Fault(kind, numbers[life - 1], code, lasting))
        world.must_start()
        world.controller.kill()
    if first:
        world.visitor = Visitor(world.controller.api, "visitor", seed())
    else:
        world.visitor.make_api = world.controller.api
    world.must_start()
    world.end()


@pytest.mark.parametrize("kind", [kind for kind in FAILING if kind != Kind.TRANSPORT], ids=lambda kind: kind.name.lower())
def test_an_end_whose_call_fails_loses_nothing(world: World, kind: Kind) -> None:
    furnish(world.visitor)

    def end() -> None:
        assert world.controller.process is not None
        with contextlib.suppress(ProcessLookupError):
            world.controller.process.send_signal(signal.SIGTERM)
        world.note_end("end", well=True)

    world.torture.record(kind)
    end()
    for site in world.torture.recorded().values():
        world.must_start()
        world.torture.arm(Fault(kind, site.number))
        end()
        world.strikes()
    world.must_start()
    check_all(world.controller.api(), [world.visitor])
    assert not world.wrong, "\n".join(world.wrong)
