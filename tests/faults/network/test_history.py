# SPDX-License-Identifier: Apache-2.0
"""Histories of many clients behind a bad network, with a controller that is killed in between: every answer must be one that a single job,
changed by one thing after the other, could have given. And agents behind the same network: work is done once, and no log byte is lost.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import random
import signal
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from clients import Client, Link, PaperWorker, Scene, follow
from harness import PATIENCE, PYTHON, TERMINAL, Api, Cluster
from history import Anomaly, Operation, check_feed, check_job, check_keys, told
from proxy import Faults, Proxy, ProxyThread

CLIENTS = 50
FOLLOWERS = 6
OPERATIONS = 3200  # of one history: some 5,000 requests with those that the network adds
KILL_EVERY_S = 2.0

# --- the checker itself --------------------------------------------------------------------------------------


def story(*kinds: str | tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Events of a job, numbered from 1."""
    pairs = [kind if isinstance(kind, tuple) else (kind, {}) for kind in kinds]
    return [{"seq": seq, "kind": kind, "detail": detail} for seq, (kind, detail) in enumerate(pairs, 1)]


def by(name: str) -> dict[str, Any]:
    return {"by": name}


def raised(start: int, to: int, name: str = "ann") -> tuple[str, dict[str, Any]]:
    return "changed", {"by": name, "priority": {"from": start, "to": to}}


def view(seq: int, state: str, priority: int = 0) -> dict[str, Any]:
    return {"seq": seq, "state": state, "priority": priority}


def asked(client: str, kind: str, begin: float, end: float | None, status: int = 200, body: Any = None, **arguments: Any) -> Operation:
    return Operation(client, kind, "job", begin, end, status, body, arguments)


HELD = story("submitted", ("held", by("ann")), ("released", by("bob")))
HOLD = asked("ann", "hold", 1, 2, body=view(2, "HELD"))
RELEASE = asked("bob", "release", 3, 4, body=view(3, "QUEUED"))
RAISED = story("submitted", raised(0, 5), raised(5, 7, "bob"))
RAISE = asked("ann", "change", 1, 2, body=view(2, "QUEUED", 5), priority=5, if_seq=1)

RIGHT: dict[str, tuple[list[dict[str, Any]], list[Operation]]] = {
    "nothing": (story("submitted"), []),
    "one after the other": (HELD, [HOLD, RELEASE]),
    "a read beside a write sees what was before": (HELD, [HOLD, RELEASE, asked("eve", "get", 1.5, 1.6, body=view(1, "QUEUED"))]),
    "a hold of what is held": (HELD, [HOLD, RELEASE, asked("eve", "hold", 2.1, 2.2, body=view(2, "HELD"))]),
    "no answer, and it happened": (HELD, [asked("ann", "hold", 1, None), RELEASE]),
    "no answer, and it did not happen": (HELD, [HOLD, RELEASE, asked("eve", "cancel", 1, None)]),
    "refused by the end": (story("submitted", ("cancel_asked", by("bob")), "canceled"), [
        asked("bob", "cancel", 1, 2, 202, view(3, "CANCELED")), asked("ann", "hold", 3, 4, 409),
    ]),
    "refused by the ETag": (RAISED, [
        RAISE, asked("bob", "change", 3, 4, body=view(3, "QUEUED", 7), priority=7, if_seq=2),
        asked("eve", "change", 3, 4, 412, priority=9, if_seq=1),
    ]),
    "a page of events": (HELD, [HOLD, RELEASE, asked("eve", "events", 5, 6, body={"events": HELD[1:], "next": None}, after=1)]),
}  # fmt: skip

WRONG: dict[str, tuple[list[dict[str, Any]], list[Operation]]] = {
    "a stale read after an acknowledged write": (HELD, [HOLD, RELEASE, asked("eve", "get", 2.1, 2.2, body=view(1, "QUEUED"))]),
    "a read goes back behind another read": (HELD, [
        HOLD, RELEASE, asked("eve", "get", 5, 6, body=view(3, "QUEUED")), asked("eve", "get", 7, 8, body=view(2, "HELD")),
    ]),
    "a read from the future": (HELD, [HOLD, RELEASE, asked("eve", "get", 2.1, 2.2, body=view(3, "QUEUED"))]),
    "a read shows what never was": (RAISED, [RAISE, asked("eve", "get", 5, 6, body=view(3, "QUEUED", 5))]),
    "a lost update": (story("submitted", raised(0, 5)), [
        RAISE, asked("bob", "change", 3, 4, body=view(2, "QUEUED", 5), priority=7),
    ]),
    "two updates of the same version": (RAISED, [
        RAISE, asked("bob", "change", 1, 4, body=view(3, "QUEUED", 7), priority=7, if_seq=1),
    ]),
    "an update that overwrites another": (story("submitted", raised(0, 5), raised(0, 7, "bob")), [RAISE]),
    "an acknowledged hold that is not there": (story("submitted", ("released", by("bob"))), [RELEASE]),
    "granted, and only another has done it": (story("submitted"), [asked("ann", "hold", 1, 2, body=view(1, "QUEUED"))]),
    "refused, and done all the same": (HELD, [asked("ann", "hold", 1, 2, 409), RELEASE]),
    "refused for a reason, and done later": (story("submitted", "placed", "requeued", ("held", by("ann"))), [
        asked("ann", "hold", 1, 2, 409),
    ]),
    "refused without a reason": (HELD, [HOLD, RELEASE, asked("eve", "cancel", 5, 6, 409)]),
    "done by nobody": (HELD, [HOLD]),
    "done twice": (story("submitted", ("held", by("ann")), ("released", by("bob")), ("held", by("ann"))), [HOLD, RELEASE]),
    "asked later than it was done": (HELD, [
        asked("eve", "get", 0.1, 0.2, body=view(2, "HELD")), HOLD, RELEASE,
    ]),
    "the end is changed": (story("submitted", "placed", "running", "succeeded", "requeued"), []),
    "two ends": (story("submitted", ("cancel_asked", by("bob")), "canceled", "canceled"), [
        asked("bob", "cancel", 1, 2, 202, view(3, "CANCELED")),
    ]),
    "an edge that is not in the graph": (story("submitted", "running"), []),
    "a gap": ([*HELD[:1], *HELD[2:]], []),
    "a page with a hole": (HELD, [HOLD, RELEASE, asked("eve", "events", 5, 6, body={"events": HELD[2:], "next": None}, after=1)]),
    "a page that goes back": (HELD, [
        HOLD, RELEASE, asked("eve", "get", 5, 6, body=view(3, "QUEUED")),
        asked("eve", "events", 7, 8, body={"events": HELD[:2], "next": None}, after=0),
    ]),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_a_history_that_one_job_could_have_is_taken(name: str) -> None:
    check_job(*RIGHT[name])


@pytest.mark.parametrize("name", WRONG)
def test_a_history_that_no_job_could_have_is_refused(name: str) -> None:
    with pytest.raises(Anomaly):
        check_job(*WRONG[name])


def submitted(key: str, job: str, status: int = 201, **arguments: Any) -> Operation:
    return Operation("ann", "submit", job, 1, 2, status, {"id": job}, {"key": key, **arguments})


def test_one_key_is_one_job_to_the_checker() -> None:
    check_keys([submitted("k", "a"), submitted("k", "a"), submitted("k", "", 409, other_body=True)], {"a": "k"})
    lost = submitted("k", "")
    lost.end = None
    check_keys([lost, submitted("k", "a", 201, other_body=True)], {"a": "k"})  # the first never arrived
    check_keys([lost], {})
    for wrong, jobs in [
        ([submitted("k", "a"), submitted("k", "b")], {"a": "k", "b": "k"}),
        ([submitted("k", "a")], {"a": "k", "b": "k"}),
        ([submitted("k", "a")], {}),
        ([submitted("k", "a")], {"a": "k", "b": "l"}),
        ([submitted("k", "a"), submitted("k", "a", 201, other_body=True)], {"a": "k"}),
        ([submitted("k", "", 409, other_body=True)], {}),
        ([submitted("k", "a"), submitted("k", "", 409)], {"a": "k"}),
    ]:
        with pytest.raises(Anomaly):
            check_keys(wrong, jobs)


def test_a_feed_with_a_gap_a_repetition_or_another_order_is_refused() -> None:
    check_feed(HELD, list(HELD))
    for heard in (HELD[1:], HELD[:2], [*HELD[:2], *HELD[1:]], HELD[::-1], []):
        with pytest.raises(Anomaly):
            check_feed(HELD, heard)


# --- histories -----------------------------------------------------------------------------------------------


async def kill_and_start(cluster: Cluster, scene: Scene, chance: random.Random) -> int:
    """kill -9 of the controller, again and again while the clients work; how often."""
    kills = 0
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(chance.uniform(0.5, 1.5) * KILL_EVERY_S)
        if scene.left <= 0:
            return kills
        await loop.run_in_executor(None, cluster.controller.kill)
        await loop.run_in_executor(None, cluster.start_controller)
        kills += 1


async def follow_some(scene: Scene, api: Api, feeds: dict[str, list[dict[str, Any]]]) -> None:
    """One follower: a job, then another, as long as the clients work."""
    loop = asyncio.get_running_loop()
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        while scene.left > 0:
            job = scene.hot()
            if job is None or job in feeds:
                await asyncio.sleep(0.02)  # until there is another
                continue
            feeds[job] = []
            feeds[job] = await loop.run_in_executor(thread, follow, api, job, time.monotonic() + PATIENCE * 3)


async def release_all(api: Link, jobs: list[str]) -> None:
    for job in jobs:
        await api.request("POST", f"/v1/jobs/{job}/release")


async def play(cluster: Cluster, tokens: dict[str, str], node_token: str, seed: int) -> tuple[Scene, dict[str, int]]:
    """One history: clients behind a proxy, nodes of paper, kills; then rest."""
    chance = random.Random(seed)
    proxy = await Proxy(cluster.port, seed).open()
    scene = Scene(seed, OPERATIONS)
    direct = functools.partial(Link, lambda: cluster.port)
    workers = [
        asyncio.create_task(PaperWorker(f"paper{i}", 16, functools.partial(direct, node_token), seed + i).run()) for i in range(2)
    ]
    clients = [Client(scene, name, Link(lambda: proxy.port, token)) for name, token in tokens.items()]
    killer = asyncio.create_task(kill_and_start(cluster, scene, chance))
    through = Api(f"http://127.0.0.1:{proxy.port}", cluster.admin_token)
    followers = [asyncio.create_task(follow_some(scene, through, scene.feeds)) for _ in range(FOLLOWERS)]
    await asyncio.gather(*(client.run() for client in clients))
    counts = {**proxy.counts, "kills": await killer}
    await proxy.settle()
    await release_all(direct(cluster.admin_token), scene.jobs)
    await all_ended(direct(cluster.admin_token), scene.jobs)
    await asyncio.gather(*followers)
    for worker in workers:
        assert not worker.done() or worker.exception() is None, worker.exception()
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    await proxy.close()
    return scene, counts


async def all_ended(api: Link, jobs: list[str]) -> None:
    deadline = time.monotonic() + 60
    for job in jobs:
        while (await api.request("GET", f"/v1/jobs/{job}"))[1]["state"] not in TERMINAL:
            assert time.monotonic() < deadline, f"job {job} does not end: {(await api.request('GET', f'/v1/jobs/{job}'))[1]}"
            await api.request("GET", f"/v1/jobs/{job}?wait=1", patience=10)


def listed(api: Api) -> dict[str, str]:
    """All jobs that there are: id to name."""
    jobs: dict[str, str] = {}
    cursor = ""
    while True:
        page = api.get(f"/v1/jobs?limit=200{cursor}")
        jobs.update({job["id"]: job["name"] for job in page["jobs"]})
        if page["next"] is None:
            return jobs
        cursor = f"&cursor={page['next']}"


def all_events(api: Api, job: str) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    after = 0
    while after is not None:
        page = api.get(f"/v1/jobs/{job}/events?limit=200&after={after}")
        events += page["events"]
        after = page["next"]
    return events


def check(cluster: Cluster, scene: Scene, before: set[str]) -> None:
    """Every job of the scene; those of which no client has heard, too."""
    jobs = {job: name for job, name in listed(cluster.api).items() if job not in before}
    check_keys([operation for operation in scene.operations if operation.kind == "submit"], jobs)
    by_job: dict[str, list[Operation]] = defaultdict(list)
    for operation in scene.operations:
        if operation.job:
            by_job[operation.job].append(operation)
    for job in jobs:
        events = all_events(cluster.api, job)
        operations = [*by_job[job]]
        if events[-2:] and any(event["kind"] == "released" and (event["detail"] or {}).get("by") == "admin" for event in events):
            operations.append(Operation("admin", "release", job, 0.0))
        try:
            check_job(events, operations)
            if job in scene.feeds:
                check_feed(events, scene.feeds[job])
        except Anomaly as anomaly:
            pytest.fail(f"job {job}: {anomaly}\n{told(events, operations)}", pytrace=False)


def test_answers_are_those_of_one_job_after_the_other(make_cluster: Callable[..., Cluster], volume: Callable[[int, int], int]) -> None:
    cluster = make_cluster()
    names = [f"client{i}" for i in range(CLIENTS)]
    tokens = {name: str(cluster.user(name, role="admin").token) for name in names}
    node_token = str(cluster.user("paper", role="node").token)
    requests = kills = 0
    for seed in range(volume(2, 200)):
        before = set(listed(cluster.api))
        scene, counts = asyncio.run(play(cluster, tokens, node_token, seed))
        requests += counts["requests"]
        kills += counts["kills"]
        print(f"seed {seed}: {len(scene.operations)} operations, {len(scene.jobs)} jobs, {len(scene.feeds)} feeds, {counts}")
        check(cluster, scene, before)
    print(f"{volume(2, 200)} histories, {requests} requests, {kills} kills, 0 anomalies")


# --- agents --------------------------------------------------------------------------------------------------

GANG = 6  # of 4 + 4 slots: on both nodes
LINES = 400

#: Some lines at a time, so that they are sent in many pieces.
WRITER = f"""
import os, time
for number in range({LINES}):
    print(f"rank {{os.environ['RANK']}} line {{number}}", flush=True)
    if number % 20 == 0:
        time.sleep(0.05)
"""


def test_agents_behind_a_bad_network_do_everything_once(make_cluster: Callable[..., Cluster], volume: Callable[[int, int], int]) -> None:
    """Their messages come late, twice, and much later once more; and the agents are killed, so that they register again and again."""
    cluster = make_cluster()
    chance = random.Random(1)
    with ProxyThread(cluster.port, 1, Faults(replay=0.3)) as proxy:
        cluster.url = f"http://127.0.0.1:{proxy.port}"
        for number in range(2):
            cluster.add_agent(f"node{number}", 4)
        cluster.wait_ready()
        for _ in range(volume(3, 300)):
            job = cluster.api.submit([PYTHON, "-S", "-c", WRITER], gpus=GANG)
            cluster.wait_state(job, "RUNNING")
            agent = chance.choice(cluster.agents)
            agent.kill()
            agent.start()
            view = cluster.api.wait(job)
            assert (view["state"], view["attempt"]) == ("SUCCEEDED", 1), cluster.api.get(f"/v1/jobs/{job}/events")
            for rank in range(GANG):
                assert cluster.api.log(job, rank) == "".join(f"rank {rank} line {number}\n" for number in range(LINES))
        print(dict(proxy.counts))
        for agent in cluster.agents:
            agent.kill(signal.SIGTERM)
