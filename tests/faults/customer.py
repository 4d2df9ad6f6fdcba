# SPDX-License-Identifier: Apache-2.0
"""A customer who remembers: all that was asked and answered, what must hold of it whenever the controller is there again.

A customer submits, cancels, holds and releases jobs, makes and revokes tokens, stores blobs, and has a node of paper that runs the jobs. An
answer of 2xx is a yes, one of 4xx a no; no answer, or 5xx, leaves the request open, to be asked again under the same key.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from harness import TERMINAL, Api

SLOTS = 2
LIVE_ATTEMPT = {"RESERVED", "PREPARING", "PREPARED", "STARTED", "KEPT", "STOPPING", "FLUSHING"}
ENDS = {"succeeded": "SUCCEEDED", "failed": "FAILED", "canceled": "CANCELED", "timed_out": "TIMED_OUT"}

#: The published graph, as events see it: what may follow what.
EDGES: dict[str | None, set[str]] = {
    None: {"submitted"},
    "submitted": {"placed", "started", "held", "cancel_asked"},
    "held": {"released", "cancel_asked"},
    "released": {"placed", "started", "held", "cancel_asked"},
    "placed": {"started", "cancel_asked"},
    "started": {"running", "stopping", "cancel_asked", "requeued", "succeeded", "failed"},
    "running": {"stopping", "cancel_asked", "requeued", "succeeded", "failed"},
    "cancel_asked": {"stopping", "running", "canceled"},
    "stopping": {"requeued", "failed", "canceled", "cancel_asked"},
    "requeued": {"placed", "started", "held", "cancel_asked"},
}


class Away(Exception):
    """The controller did not answer (status 0), or does not know."""

    def __init__(self, text: str, status: int = 0, code: str = ""):
        super().__init__(text)
        self.status = status
        self.code = code


@dataclass
class Request:
    """One change that was asked for."""

    kind: str
    method: str
    path: str
    body: bytes
    about: Any
    headers: dict[str, str]
    secret: str | None = None  # of the token; None: the administrator's
    status: int = 0  # 0: open
    reply: bytes = b""


@dataclass
class Job:
    """What is known of an accepted job."""

    name: str
    function: bool
    events: list[Any] = field(default_factory=list)
    end: Any = None
    held: bool = False
    cancel_at: int | None = None  # events that were known when its cancel was asked for


@dataclass
class Attempt:
    """What the node of paper has of one."""

    job: str
    function: bool
    running: bool = False
    stopped: bool = False
    gone: bool = False
    value: bytes = b""


class Customer:
    """One thread's worth of requests, by chance from a seed."""

    def __init__(self, api: Callable[[str | None], Api], name: str, seed: int):
        self.make_api = api
        self.name = name
        self.chance = random.Random(seed)
        self.asked: list[Request] = []
        self.jobs: dict[str, Job] = {}
        self.refused: set[str] = set()
        self.tokens: dict[str, str] = {}
        self.revoked: set[str] = set()
        self.blobs: dict[str, bytes] = {}
        self.attempts: dict[int, Attempt] = {}
        self.node_secret: str | None = None
        self.node_known = False
        self.numbers = 0
        self.answered = 0

    # --- asking ---

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def exchange(self, api: Api, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        try:
            status, sent, reply = api.raw(method, path, body, headers)
        except (OSError, http.client.HTTPException) as error:
            raise Away(str(error)) from error
        if status >= 500:
            raise Away(f"{status} {reply!r}", status, json.loads(reply).get("code", ""))
        return status, sent, reply

    def get(self, path: str) -> Any:
        status, _, reply = self.exchange(self.make_api(None), "GET", path, None, {})
        assert status == 200, (path, status, reply)
        return json.loads(reply)

    def ask(self, kind: str, method: str, path: str, document: Any = None, about: Any = None, data: bytes | None = None) -> Request:
        """Ask for a change, under a key of its own; Away leaves it open."""
        headers = {"Idempotency-Key": f"{self.name}-key-{self.number()}", "Content-Type": "application/json"}
        if data is not None:
            headers = {"Content-Type": "application/octet-stream"}
        body = data if data is not None else json.dumps({} if document is None else document).encode()
        secret = self.node_secret if path.startswith("/v1/agent/") else None
        self.asked.append(Request(kind, method, path, body, about, headers, secret))
        return self.send(self.asked[-1])

    def send(self, request: Request) -> Request:
        status, _, reply = self.exchange(self.make_api(request.secret), request.method, request.path, request.body, request.headers)
        request.status, request.reply = status, reply
        self.answered += 1
        getattr(self, f"learn_{request.kind}")(request, json.loads(reply) if reply else None)
        return request

    def settle(self) -> None:
        """Ask again what is open, in order."""
        for request in self.asked:
            if request.status == 0:
                self.send(request)

    # --- what answers teach ---

    def learn_submit(self, request: Request, reply: Any) -> None:
        name, function = request.about
        if request.status == 201:
            self.jobs[reply["id"]] = Job(name, function)
        else:
            assert request.status == 422, (request.status, reply)
            self.refused.add(name)

    def learn_cancel(self, request: Request, reply: Any) -> None:
        assert request.status in (202, 409), (request.status, reply)
        if request.status == 202:
            job, known = request.about
            self.jobs[job].cancel_at = known
            self.jobs[job].held = False

    def learn_hold(self, request: Request, reply: Any) -> None:
        assert request.status in (200, 409), (request.status, reply)
        self.jobs[request.about].held = request.status == 200

    def learn_release(self, request: Request, reply: Any) -> None:
        assert request.status in (200, 409), (request.status, reply)
        self.jobs[request.about].held = False

    def learn_token(self, request: Request, reply: Any) -> None:
        assert request.status == 201, (request.status, reply)
        self.tokens[reply["id"]] = reply["secret"]

    def learn_node_token(self, request: Request, reply: Any) -> None:
        assert request.status == 201, (request.status, reply)
        self.node_secret = reply["secret"]

    def learn_revoke(self, request: Request, reply: Any) -> None:
        assert request.status == 200, (request.status, reply)
        self.revoked.add(request.about)

    def learn_blob(self, request: Request, reply: Any) -> None:
        assert request.status in (200, 201), (request.status, reply)
        self.blobs[request.about] = request.body

    def learn_register(self, request: Request, reply: Any) -> None:
        assert request.status == 200, (request.status, reply)
        self.node_known = True

    def learn_beat(self, request: Request, reply: Any) -> None:
        assert request.status == 200, (request.status, reply)

    def learn_report(self, request: Request, reply: Any) -> None:
        """A fenced one is of an attempt that is over: an earlier report of the same was stored."""
        assert request.status in (200, 409), (request.status, reply)

    # --- what a customer does ---

    def step(self) -> None:
        """One operation or, of the node, a few."""
        if self.node_secret is None:
            self.ask("node_token", "POST", "/v1/tokens", {"role": "node", "owner": self.name})
        if not self.node_known:
            self.register()
        steps: list[tuple[int, Callable[[], None]]] = [
            (35, self.submit), (22, self.work), (10, self.cancel), (8, self.hold), (8, self.release), (5, self.blob), (4, self.token),
            (3, self.revoke), (2, self.beat),
        ]  # fmt: skip
        self.chance.choices([step for _, step in steps], [weight for weight, _ in steps])[0]()

    def submit(self) -> None:
        name = f"{self.name}-{self.number()}"
        function = self.chance.random() < 0.3
        document: dict[str, Any] = {"gpus": 1, "name": name, "retries": self.chance.randrange(2)}
        if function:
            document["function"] = {"inline": base64.b64encode(b"gpuctl-function 1 python=3.11\n" + name.encode()).decode()}
        else:
            document["command"] = ["true", name * self.chance.randrange(1, 40)]
        if self.chance.random() < 0.1:
            document["gpus"] = 10_000  # refused
        self.ask("submit", "POST", "/v1/jobs", document, (name, function))

    def some_job(self) -> str | None:
        live = [id for id, job in self.jobs.items() if job.end is None]
        return self.chance.choice(live) if live else None

    def cancel(self) -> None:
        job = self.some_job()
        if job is not None:
            self.look(job)
            self.ask("cancel", "POST", f"/v1/jobs/{job}/cancel", about=(job, len(self.jobs[job].events)))

    def hold(self) -> None:
        job = self.some_job()
        if job is not None:
            self.ask("hold", "POST", f"/v1/jobs/{job}/hold", about=job)

    def release(self) -> None:
        held = [id for id, job in self.jobs.items() if job.held]
        if held:
            job = self.chance.choice(held)
            self.ask("release", "POST", f"/v1/jobs/{job}/release", about=job)

    def blob(self) -> None:
        data = self.chance.randbytes(self.chance.choice([10, 5_000, 60_000, 150_000]))
        name = hashlib.sha256(data).hexdigest()
        self.ask("blob", "PUT", f"/v1/blobs/{name}", about=name, data=data)

    def token(self) -> None:
        self.ask("token", "POST", "/v1/tokens", {"role": "user", "owner": self.name})

    def revoke(self) -> None:
        left = [token for token in self.tokens if token not in self.revoked]
        if left:
            token = self.chance.choice(left)
            self.ask("revoke", "POST", f"/v1/tokens/{token}/revoke", about=token)

    # --- what its node does ---

    def who(self) -> dict[str, Any]:
        return {"node": f"{self.name}-node", "boot_id": f"boot-of-{self.name}"}

    def register(self) -> None:
        devices = [{"index": i, "uuid": f"{self.name}-{i}", "type": "cpu", "memory_bytes": 0} for i in range(SLOTS)]
        alive = [{"epoch": epoch, "state": "RUNNING"} for epoch, attempt in self.attempts.items() if attempt.running and not attempt.gone]
        document = {
            "name": f"{self.name}-node", "boot_id": f"boot-of-{self.name}", "host_id": hashlib.sha256(self.name.encode()).hexdigest(),
            "version": "0.1.0", "address": "127.0.0.1", "slots": True, "isolation": "none", "devices": devices, "attempts": alive,
        }  # fmt: skip
        self.ask("register", "POST", "/v1/agent/register", document)

    def beat(self) -> None:
        alive = [{"epoch": epoch, "state": "RUNNING"} for epoch, attempt in self.attempts.items() if attempt.running and not attempt.gone]
        self.ask("beat", "POST", "/v1/agent/beat", {**self.who(), "seq": self.number(), "attempts": alive})

    def work(self) -> None:
        """Take orders, start what is new, end some of what runs."""
        body = json.dumps({**self.who(), "version": 0}).encode()
        status, _, reply = self.exchange(
            self.make_api(self.node_secret), "POST", "/v1/agent/poll", body, {"Content-Type": "application/json"}
        )
        assert status == 200, reply
        told = json.loads(reply)
        for order in told["orders"]:
            self.obey(order)
        for epoch, attempt in list(self.attempts.items()):
            if epoch not in told["live"]:
                attempt.gone = True  # fenced, or its exit was heard
            elif attempt.stopped or (attempt.running and self.chance.random() < 0.6):
                self.end(epoch, attempt)

    def obey(self, order: Any) -> None:
        assert order["phase"] in ("run", "stop"), order
        attempt = self.attempts.get(order["epoch"])
        if attempt is None:
            job = self.jobs.get(order["job_id"])  # of another customer: it knows the function by its results
            attempt = self.attempts[order["epoch"]] = Attempt(order["job_id"], job.function if job else "function" in order.get("spec", {}))
            assert order["phase"] != "stop" or not attempt.running
        attempt.stopped = attempt.stopped or order["phase"] == "stop"
        if not attempt.running and not attempt.stopped:
            self.report(order["epoch"], "running", at_ms=1)
            attempt.running = True

    def end(self, epoch: int, attempt: Attempt) -> None:
        code = 143 if attempt.stopped else self.chance.choice([0, 0, 0, 1])
        ranks = [{"rank": 0, "code": code, "signal": 15 if attempt.stopped else 0, "at_ms": 2, "by_us": attempt.stopped}]
        more: dict[str, Any] = {"cause": "RANK_FAILED"} if code == 1 else {}
        if attempt.function and code == 0:
            attempt.value = attempt.value or self.chance.randbytes(self.chance.choice([20, 30_000]))
            more["results"] = [
                {
                    "rank": 0, "kind": "value", "size": len(attempt.value), "sha256": hashlib.sha256(attempt.value).hexdigest(),
                    "base64": base64.b64encode(attempt.value).decode(), "json": json.dumps(epoch),
                }
            ]  # fmt: skip
        self.report(epoch, "exited", ranks=ranks, flushed=True, **more)
        attempt.gone = True

    def report(self, epoch: int, kind: str, **more: Any) -> None:
        self.ask("report", "POST", "/v1/agent/report", {**self.who(), "epoch": epoch, "kind": kind, **more}, about=epoch)

    # --- what must hold ---

    def events(self, job: str) -> list[Any]:
        found: list[Any] = []
        while True:
            page = self.get(f"/v1/jobs/{job}/events?limit=200&after={len(found)}")["events"]
            found += page
            if len(page) < 200:
                return found

    def look(self, job: str) -> None:
        """The history has grown at its end alone, without a gap, along the published edges; what has ended stays as it was."""
        known = self.jobs[job]
        view = self.get(f"/v1/jobs/{job}")
        events = self.events(job)
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1)), events
        assert events[: len(known.events)] == known.events, (known.events, events)
        assert view["name"] == known.name and view["seq"] <= len(events), view
        before = None
        for event in events:
            assert event["kind"] in EDGES.get(before, set()), (job, before, event["kind"], events)
            before = event["kind"]
        if known.end is not None:
            assert (view, events) == (known.end, known.events), (known.end, view)
        if before in ENDS:
            assert view["state"] == ENDS[before] or view["seq"] < len(events), (view, events)
        if view["state"] in TERMINAL:
            known.end = view
        known.events = events

    def check_attempts(self, job: str) -> None:
        """Epochs grow with the numbers, one is live at most, and none lives beyond the end."""
        attempts = self.get(f"/v1/jobs/{job}/attempts")["attempts"]
        assert [attempt["attempt"] for attempt in attempts] == list(range(len(attempts), 0, -1)), attempts
        epochs = [int(attempt["epoch"]) for attempt in attempts]
        assert epochs == sorted(epochs, reverse=True) and len(set(epochs)) == len(epochs), attempts
        live = [attempt["state"] for attempt in attempts if attempt["state"] in LIVE_ATTEMPT]
        assert len(live) <= (0 if self.jobs[job].end else 1), attempts

    def check_cancel(self, job: str) -> None:
        """A cancel that was acknowledged wins; where nothing had started when it was asked for, nothing starts."""
        known = self.jobs[job]
        if known.cancel_at is None:
            return
        kinds = [event["kind"] for event in known.events]
        asked = min(kinds.index(kind) for kind in ("cancel_asked", "canceled") if kind in kinds)
        assert "started" not in kinds[asked:] and "placed" not in kinds[asked:], kinds
        assert known.end is None or known.end["state"] == "CANCELED", known.end

    def check_results(self, job: str, values: dict[int, bytes]) -> None:
        """A success has its result, and in one transaction with its state. Any result is what the rank left: also that of a rank that
        returned although its job had just been canceled, which the controller shows and does not count.
        """
        known = self.jobs[job]
        if not known.function:
            return
        rows = self.get(f"/v1/jobs/{job}/results?bytes=1")["results"]
        end = known.end["state"] if known.end is not None else None
        assert len(rows) == 1 or (not rows and end != "SUCCEEDED"), (known.end, rows)
        assert not rows or end in ("SUCCEEDED", "CANCELED"), (known.end, rows)
        for row in rows:
            value = values[int(self.get(f"/v1/jobs/{job}/attempts")["attempts"][0]["epoch"])]
            assert base64.b64decode(row["base64"]) == value
            assert row["sha256"] == hashlib.sha256(value).hexdigest()

    def check_replay(self, request: Request) -> None:
        """The same key gets the same answer again; with another body it is refused."""
        status, headers, reply = self.exchange(self.make_api(None), request.method, request.path, request.body, request.headers)
        assert (status, reply) == (request.status, request.reply), (request.reply, reply)
        assert headers.get("idempotency-replayed") == "true", headers
        other = json.dumps({**json.loads(request.body), "project": "other"}).encode()
        status, _, reply = self.exchange(self.make_api(None), request.method, request.path, other, request.headers)
        assert status == 409 and json.loads(reply)["code"] == "idempotency_mismatch", (status, reply)

    def check_tokens(self) -> None:
        for token, secret in self.tokens.items():
            status, _, reply = self.exchange(self.make_api(secret), "GET", "/v1/jobs?limit=1", None, {})
            assert status == (401 if token in self.revoked else 200), (token, status, reply)

    def check_blobs(self) -> None:
        for name, data in self.blobs.items():
            status, _, reply = self.exchange(self.make_api(None), "GET", f"/v1/blobs/{name}", None, {})
            assert status == 200 and reply == data, (name, status)

    def check(self, values: dict[int, bytes]) -> None:
        """All of it, when nothing is open."""
        assert all(request.status for request in self.asked)
        for job in self.jobs:
            self.look(job)
            self.check_attempts(job)
            self.check_cancel(job)
            self.check_results(job, values)
            if self.jobs[job].held:
                assert self.get(f"/v1/jobs/{job}")["state"] == "HELD"
        submissions = [request for request in self.asked if request.kind == "submit" and request.status == 201]
        for request in self.chance.sample(submissions, min(3, len(submissions))):
            self.check_replay(request)
        self.check_tokens()
        self.check_blobs()


def listed(api: Api) -> dict[str, list[str]]:
    """All jobs: ids by name."""
    found: dict[str, list[str]] = {}
    cursor = ""
    while cursor is not None:
        page = api.get(f"/v1/jobs?limit=200{cursor and '&cursor=' + cursor}")
        for job in page["jobs"]:
            found.setdefault(job["name"], []).append(job["id"])
        cursor = page["next"]
    return found


def check_all(api: Api, customers: list[Customer]) -> None:
    """What each customer expects, and that there is nothing that nobody asked for: one job for each key that was accepted."""
    values = {epoch: attempt.value for customer in customers for epoch, attempt in customer.attempts.items() if attempt.value}
    for customer in customers:
        customer.check(values)
    expected = {job.name: [id] for customer in customers for id, job in customer.jobs.items()}
    assert listed(api) == expected
