# SPDX-License-Identifier: Apache-2.0
"""A checker of histories: could one job, changed by one thing after the other, have given these answers?

It owns a small sequential model of a job and the search for an order. Each job is checked by itself, which is enough: linearizability
is local. The controller numbers the changes of a job (seq) and tells them all, so the order of the changes is given, and what is left to
find is a place in it for every operation: after all operations that had ended before it began, and where the job was as the answer says.
The smallest place is always as good as any other. What nobody answered may have happened at any time since, or never.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

TERMINAL = {"SUCCEEDED", "FAILED", "CANCELED", "TIMED_OUT"}
LIVE = {"QUEUED", "HELD", "STAGING", "PLACED", "RUNNING"}

#: The model: from which states an event may come, and to which it leads; None: it stays.
EDGES: dict[str, tuple[set[str], str | None]] = {
    "held": ({"QUEUED", "STAGING"}, "HELD"),
    "released": ({"HELD"}, "QUEUED"),
    "changed": (LIVE, None),
    "placed": ({"QUEUED", "STAGING"}, "PLACED"),
    "started": ({"PLACED"}, None),
    "running": ({"PLACED"}, "RUNNING"),
    "cancel_asked": (LIVE, None),
    "stopping": ({"PLACED", "RUNNING"}, None),
    "requeued": ({"PLACED", "RUNNING"}, "QUEUED"),
    "succeeded": ({"RUNNING"}, "SUCCEEDED"),
    "failed": ({"PLACED", "RUNNING"}, "FAILED"),
    "canceled": (LIVE, "CANCELED"),
}

#: What a person's request leaves in the history.
EFFECTS = {"hold": "held", "release": "released", "cancel": "cancel_asked", "change": "changed"}


@dataclass
class Operation:
    """What a client asked, and what it was told. end None: it was told nothing."""

    client: str
    kind: str  # submit, get, events, hold, release, cancel, change
    job: str
    begin: float
    end: float | None = None
    status: int = 0
    body: Any = None
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Version:
    """The job after its event number seq."""

    seq: int
    kind: str
    by: str | None
    state: str
    priority: int
    asked: bool  # its cancel was


class Anomaly(Exception):
    """What no job could have done."""


def versions_of(events: list[dict[str, Any]]) -> list[Version]:
    """The versions 0 (before it was there) to the last, from all events of a job in order."""
    versions = [Version(0, "", None, "", 0, False)]
    for number, event in enumerate(events, 1):
        last = versions[-1]
        kind, detail = event["kind"], event.get("detail") or {}
        if event["seq"] != number:
            raise Anomaly(f"event {number} has the seq {event['seq']}")
        if last.state in TERMINAL:
            raise Anomaly(f"event {number} ({kind}) comes after the end, {last.state}")
        sources, target = ({""}, "QUEUED") if kind == "submitted" else EDGES.get(kind, (set[str](), None))
        if last.state not in sources:
            raise Anomaly(f"event {number} ({kind}) comes in state {last.state or 'none'}")
        change = detail.get("priority") if kind == "changed" else None
        if change is not None and change["from"] != last.priority:
            raise Anomaly(f"event {number} changes the priority from {change['from']}, and it was {last.priority}")
        versions.append(
            Version(
                number,
                kind,
                detail.get("by"),
                target or last.state,
                change["to"] if change is not None else last.priority,
                last.asked or kind == "cancel_asked",
            )
        )
    return versions


class Job:
    """All that is known of one job."""

    def __init__(self, events: list[dict[str, Any]]):
        self.events = events
        self.versions = versions_of(events)
        self.owned: set[int] = set()
        self.ends: list[float] = []  # when operations ended, ascending; with the newest version that any of them had seen
        self.floors: list[int] = []

    def floor(self, begin: float) -> int:
        """The oldest version that an operation may see which began then."""
        at = bisect.bisect_left(self.ends, begin)
        return self.floors[at - 1] if at > 0 else 0

    def note(self, end: float, seq: int) -> None:
        at = bisect.bisect_right(self.ends, end)
        self.ends.insert(at, end)
        self.floors.insert(at, max(seq, self.floors[at - 1] if at > 0 else 0))
        for later in range(at + 1, len(self.floors)):
            self.floors[later] = max(self.floors[later], seq)

    def first(self, floor: int, holds: Any) -> int | None:
        """The first version from there on of which that is true."""
        return next((version.seq for version in self.versions[max(floor, 1) :] if holds(version)), None)

    def own(self, operation: Operation, floor: int, last: int) -> int | None:
        """An event that this operation made: nobody else's, after the floor."""
        effect = EFFECTS.get(operation.kind)
        for version in self.versions[floor + 1 : last + 1]:
            wanted = version.kind == effect and version.by == operation.client and version.seq not in self.owned
            if wanted and fits(operation, version):
                return version.seq
        return None


def fits(operation: Operation, version: Version) -> bool:
    """Whether that event is what the operation asked for."""
    if operation.kind != "change":
        return True
    expected = operation.arguments.get("if_seq")
    return version.priority == operation.arguments["priority"] and (expected is None or expected == version.seq - 1)


def idle(operation: Operation, version: Version) -> bool:
    """Whether the operation changes nothing at that version, and is granted."""
    if operation.kind == "hold":
        return version.state == "HELD"
    if operation.kind == "release":
        return version.state in LIVE - {"HELD"}
    if operation.kind == "cancel":
        return version.asked
    expected = operation.arguments.get("if_seq")
    return version.priority == operation.arguments["priority"] and (expected is None or expected == version.seq)


def refused(operation: Operation, version: Version) -> bool:
    """Whether that status is right at that version."""
    if operation.status == 412:
        return version.state in LIVE and operation.arguments.get("if_seq") != version.seq
    if operation.kind == "hold":
        return version.state in TERMINAL | {"PLACED", "RUNNING"}
    if operation.kind == "cancel":
        return version.state in TERMINAL - {"CANCELED"}
    return version.state in TERMINAL


def shown(operation: Operation, job: Job) -> int:
    """The version that the answer shows, which must be right in all that it says."""
    view = operation.body
    seq = view["seq"]
    if not 1 <= seq < len(job.versions):
        raise Anomaly(f"{operation} shows the seq {seq}, of {len(job.versions) - 1}")
    version = job.versions[seq]
    if view["state"] != version.state or view.get("priority", version.priority) != version.priority:
        raise Anomaly(f"{operation} shows {view['state']} {view.get('priority')} at seq {seq}; the job was {version}")
    return seq


def place_page(operation: Operation, job: Job, floor: int) -> int:
    """A page of events is a piece of the history, up to where the job was."""
    after, page = operation.arguments["after"], operation.body["events"]
    if page != job.events[after : after + len(page)]:
        raise Anomaly(f"{operation} is not what the history has after {after}")
    last: int = page[-1]["seq"] if page else after
    return max(last, floor) if operation.body["next"] is not None else last


def place(operation: Operation, job: Job, floor: int) -> int:
    """The version after the operation."""
    if operation.kind == "events":
        seen = place_page(operation, job, floor)
    elif operation.status >= 400:
        at = job.first(floor, lambda version: refused(operation, version))
        if at is None:
            raise Anomaly(f"{operation} was refused, and at no version from {floor} on it should be")
        return at
    else:
        seen = shown(operation, job)
    if operation.kind in EFFECTS:
        made = job.own(operation, floor, seen)
        if made is not None:
            job.owned.add(made)
        elif not idle(operation, job.versions[seen]):
            raise Anomaly(f"{operation} was granted, and the history does not have it")
    if operation.kind == "submit":
        return max(seen, floor)  # with a key that was used before, the answer is the first one
    if seen < floor:
        raise Anomaly(f"{operation} saw version {seen} when version {floor} had been seen before it began")
    return seen


def settle_unanswered(job: Job, operations: list[Operation]) -> None:
    """Every change that a person made was asked for by somebody who was not told no."""
    for operation in operations:
        made = job.own(operation, job.floor(operation.begin), len(job.versions) - 1)
        if made is not None:
            job.owned.add(made)
    for version in job.versions:
        if version.kind in EFFECTS.values() and version.seq not in job.owned:
            raise Anomaly(f"nobody who was not refused has asked for {version}")


def check_job(events: list[dict[str, Any]], operations: Iterable[Operation]) -> None:
    """Raise Anomaly unless one job could have done this; events are all that it has, read after the last operation."""
    job = Job(events)
    ordered = sorted(operations, key=lambda operation: operation.begin)
    waiting: list[tuple[float, int]] = []
    for operation in ordered:
        if operation.end is None:
            continue
        for end, seq in [entry for entry in waiting if entry[0] < operation.begin]:
            job.note(end, seq)
        waiting = [entry for entry in waiting if entry[0] >= operation.begin]
        waiting.append((operation.end, place(operation, job, job.floor(operation.begin))))
    for end, seq in waiting:
        job.note(end, seq)
    settle_unanswered(job, [operation for operation in ordered if operation.end is None and operation.kind in EFFECTS])


def told(events: list[dict[str, Any]], operations: Iterable[Operation]) -> str:
    """All that is known of a job, for people who look for the fault."""
    lines = [f"{event['seq']:3} {event['kind']} {event['detail']}" for event in events]
    for one in sorted(operations, key=lambda operation: operation.begin):
        end = f"{one.end:.4f}" if one.end is not None else "never"
        body = {name: one.body.get(name) for name in ("seq", "state", "priority", "detail") if name in one.body} if one.body else {}
        lines.append(f"{one.begin:.4f} to {end} {one.client} {one.kind} {one.arguments}: {one.status} {body}")
    return "\n".join(lines)


def check_key(submissions: list[Operation], jobs: set[str]) -> None:
    """All that was submitted with one key, and the jobs that bear it. The first body that arrives is the one that counts."""
    answered = [operation for operation in submissions if operation.end is not None]
    granted = [operation for operation in answered if operation.status == 201]
    bodies = {operation.arguments.get("other_body", False) for operation in granted}
    if len(bodies) > 1:
        raise Anomaly(f"one key was granted with two bodies: {granted}")
    for operation in answered:
        mine = operation.arguments.get("other_body", False) in bodies
        if operation.status not in (201, 409) or (operation.status == 409 and mine):
            raise Anomaly(f"{operation} was refused")
    ids = jobs | {operation.body["id"] for operation in granted}
    if len(ids) > 1 or (answered and not jobs) or not ids <= jobs:
        raise Anomaly(f"the jobs of one key are {sorted(ids)}, and there is {sorted(jobs)}: {answered}")


def check_keys(submissions: Iterable[Operation], jobs: dict[str, str]) -> None:
    """One key, one job. jobs: all that there are, id to name, which is the key that it was submitted with."""
    by_key: dict[str, list[Operation]] = defaultdict(list)
    for operation in submissions:
        by_key[operation.arguments["key"]].append(operation)
    for job, name in jobs.items():
        if name not in by_key:
            raise Anomaly(f"nobody has submitted job {job}, {name}")
    for key, operations in by_key.items():
        check_key(operations, {job for job, name in jobs.items() if name == key})


def check_feed(events: list[dict[str, Any]], heard: list[dict[str, Any]]) -> None:
    """A follower from the first event on, over however many connections, heard each once, in order, and all."""
    if heard != events:
        at = next((i for i, (a, b) in enumerate(zip(heard, events, strict=False)) if a != b), min(len(heard), len(events)))
        raise Anomaly(f"the feed differs from event {at + 1} on: {heard[at : at + 2]} instead of {events[at : at + 2]}")
