# SPDX-License-Identifier: Apache-2.0
"""Clients for histories: people who submit, look at and change jobs, all at once, and nodes of paper that run them.

It owns the load and the record of it. A client asks again with the same key, as ours do, until it has an answer or gives up, and has one
operation under way at a time; its name is the owner of its token, so that the history tells whose a change was. What the answers mean
is history.py's.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import http.client
import json
import random
import time
from collections.abc import Callable
from typing import Any

from harness import Api
from history import Operation
from proxy import Message, read_message
from slowness import patient

TRIES = 4
IMPATIENT = 0.15  # of the operations are given up after one try: nobody knows what became of them
REPLY_S = patient(5.0)  # after that a client takes the connection for dead
HOT_JOBS = 12  # that clients look at and change: few, so that they meet


class Link:
    """One keep-alive connection at a time, to a port that may change."""

    def __init__(self, port: Callable[[], int], token: str):
        self.port = port
        self.token = token
        self.writer: asyncio.StreamWriter | None = None

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.writer = None

    async def request(
        self, method: str, path: str, document: Any = None, headers: dict[str, str] | None = None, patience: float = REPLY_S
    ) -> tuple[int, Any]:
        """Status and document; OSError when there was no whole reply."""
        try:
            return await asyncio.wait_for(self.exchange(method, path, document, headers or {}), patience)
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.TimeoutError) as problem:
            self.close()
            raise OSError(f"no reply: {problem!r}") from problem

    async def exchange(self, method: str, path: str, document: Any, headers: dict[str, str]) -> tuple[int, Any]:
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port())
        body = b"" if document is None else json.dumps(document).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {self.token}", f"Content-Length: {len(body)}"]
        lines += ["Content-Type: application/json"] if body else []
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await self.writer.drain()
        reply: Message | None = await read_message(self.reader)
        if reply is None:
            raise ConnectionResetError("closed without a reply")
        return int(reply.head.split(b" ", 2)[1]), json.loads(reply.body) if reply.body else None


class Scene:
    """What the clients of one history share."""

    def __init__(self, seed: int, operations: int):
        self.seed = seed
        self.chance = random.Random(seed)
        self.left = operations
        self.jobs: list[str] = []
        self.operations: list[Operation] = []
        self.keys: list[tuple[str, Any]] = []
        self.feeds: dict[str, list[dict[str, Any]]] = {}  # what followers heard of a job
        self.seqs: dict[str, int] = {}  # as somebody saw it last: for If-Match

    def hot(self) -> str | None:
        return self.chance.choice(self.jobs[-HOT_JOBS:]) if self.jobs else None


class Client:
    """A person at a keyboard."""

    def __init__(self, scene: Scene, name: str, link: Link):
        self.scene = scene
        self.name = name
        self.link = link
        self.number = 0

    async def run(self) -> None:
        while self.scene.left > 0:
            self.scene.left -= 1
            await self.one()
        self.link.close()

    async def one(self) -> None:
        kinds = {"submit": 14, "get": 34, "events": 10, "hold": 9, "release": 13, "change": 15, "cancel": 5}
        job = self.scene.hot()
        kind = self.scene.chance.choices(list(kinds), list(kinds.values()))[0] if job else "submit"
        if kind == "submit" or job is None:
            await self.submit()
        elif kind == "get":
            await self.ask(Operation(self.name, kind, job, time.monotonic()), "GET", f"/v1/jobs/{job}")
        elif kind == "events":
            after = self.scene.chance.choice([0, max(self.scene.seqs.get(job, 0) - 1, 0)])
            operation = Operation(self.name, kind, job, time.monotonic(), arguments={"after": after})
            await self.ask(operation, "GET", f"/v1/jobs/{job}/events?after={after}")
        elif kind == "change":
            await self.change(job)
        else:
            await self.ask(Operation(self.name, kind, job, time.monotonic()), "POST", f"/v1/jobs/{job}/{kind}")

    async def submit(self) -> None:
        """Now and then with a key that somebody has used: with the same body, or with another."""
        chance, scene = self.scene.chance, self.scene
        self.number += 1
        key = f"{self.name}-{self.scene.seed}-{self.number}"
        document: dict[str, Any] = {"command": ["true"], "gpus": chance.choice([1, 1, 2]), "name": key, "retries": 1}
        other = False
        mine = [entry for entry in scene.keys if entry[0].startswith(f"{self.name}-")]
        if mine and chance.random() < 0.2:
            key, document = chance.choice(mine)
            other = chance.random() < 0.5
            document = {**document, "gpus": 3} if other else document
        else:
            scene.keys.append((key, document))
        operation = Operation(self.name, "submit", "", time.monotonic(), arguments={"key": key, "other_body": other})
        await self.ask(operation, "POST", "/v1/jobs", document, {"Idempotency-Key": key})
        if operation.end is not None and operation.status == 201:
            operation.job = operation.body["id"]
            if operation.job not in scene.jobs:
                scene.jobs.append(operation.job)

    async def change(self, job: str) -> None:
        chance = self.scene.chance
        arguments: dict[str, Any] = {"priority": chance.randint(-3, 3)}
        headers = {}
        if chance.random() < 0.6 and job in self.scene.seqs:
            arguments["if_seq"] = self.scene.seqs[job]
            headers["If-Match"] = f'"{arguments["if_seq"]}"'
        operation = Operation(self.name, "change", job, time.monotonic(), arguments=arguments)
        await self.ask(operation, "PATCH", f"/v1/jobs/{job}", {"priority": arguments["priority"]}, headers)

    async def ask(
        self, operation: Operation, method: str, path: str, document: Any = None, headers: dict[str, str] | None = None
    ) -> None:
        """Until there is an answer; 5xx is none."""
        self.number += 1
        sent = {"Idempotency-Key": f"{self.name}-{self.scene.seed}-op-{self.number}", **(headers or {})} if method != "GET" else {}
        self.scene.operations.append(operation)
        for attempt in range(1 if self.scene.chance.random() < IMPATIENT else TRIES):
            try:
                status, body = await self.link.request(method, path, document, sent)
            except OSError:
                await asyncio.sleep(0.02 * attempt)  # back-off: a controller may be on its way up
                continue
            if status < 500:
                operation.end, operation.status, operation.body = time.monotonic(), status, body
                if status < 400 and isinstance(body, dict) and "seq" in body:
                    self.scene.seqs[operation.job] = body["seq"]
                return


def follow(api: Api, job: str, deadline: float) -> list[dict[str, Any]]:
    """Every event of a job, heard over as many connections as it takes; each goes on where the last was cut off."""
    heard: list[dict[str, Any]] = []
    last: str | None = None
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, http.client.HTTPException, AssertionError):
            for fields in api.stream(f"/v1/jobs/{job}/events", last):
                if fields.get("event") == "end":
                    return heard
                heard.append(json.loads(fields["data"]))
                last = fields["id"]
    raise TimeoutError(f"the feed of job {job} does not end; heard {heard}")


class PaperWorker:
    """A node that runs whatever it is told for a moment. It speaks to the controller without a proxy."""

    def __init__(self, name: str, slots: int, link: Callable[[], Link], seed: int):
        self.name = name
        self.slots = slots
        self.polls, self.says = link(), link()
        self.chance = random.Random(seed)
        self.known: dict[int, asyncio.Task[None]] = {}
        self.version = 0
        self.lock = asyncio.Lock()

    def who(self) -> dict[str, Any]:
        return {"node": self.name, "boot_id": f"boot-of-{self.name}"}

    async def say(self, path: str, document: dict[str, Any]) -> int:
        """Again and again until it is answered."""
        while True:
            with contextlib.suppress(OSError):
                async with self.lock:
                    status, _ = await self.says.request("POST", f"/v1/agent/{path}", document)
                if status < 500:
                    return status
            await asyncio.sleep(0.02)

    async def register(self) -> None:
        devices = [{"index": i, "uuid": f"slot-{i}", "type": "cpu", "memory_bytes": 0} for i in range(self.slots)]
        message = {
            "name": self.name, "boot_id": f"boot-of-{self.name}", "host_id": hashlib.sha256(b"paper").hexdigest(), "version": "0.1.0",
            "address": "127.0.0.1", "slots": True, "isolation": "none", "devices": devices, "attempts": [],
        }  # fmt: skip
        assert await self.say("register", message) == 200

    async def beat(self) -> None:
        seq = 0
        while True:
            seq += 1
            await self.say("beat", {**self.who(), "seq": seq, "attempts": []})
            await asyncio.sleep(0.2)

    async def run(self) -> None:
        await self.register()
        heart = asyncio.create_task(self.beat())
        try:
            while True:
                try:
                    status, reply = await self.polls.request("POST", "/v1/agent/poll", {**self.who(), "version": self.version}, None, 40)
                except OSError:
                    await asyncio.sleep(0.05)
                    continue
                assert status == 200, reply
                self.take(reply)
        finally:
            for task in [heart, *self.known.values()]:
                task.cancel()
            self.polls.close()
            self.says.close()

    def take(self, reply: dict[str, Any]) -> None:
        self.version = reply["version"]
        for order in reply["orders"]:
            before = self.known.get(order["epoch"])
            if before is not None and order["phase"] == "stop":
                before.cancel()
            self.known[order["epoch"]] = asyncio.create_task(self.follow(before, order))

    async def follow(self, before: asyncio.Task[None] | None, order: dict[str, Any]) -> None:
        """An order after those that the attempt had before; one that comes again is worked in again."""
        if before is not None:
            await asyncio.wait([before])
        await self.work(order)

    async def work(self, order: dict[str, Any]) -> None:
        report = {**self.who(), "epoch": order["epoch"], "address": "127.0.0.1", "master_port": 29500}
        if order["phase"] == "stop":
            await self.end(order, 143, True)
            return
        if order["phase"] != "start" and self.chance.random() < 0.01:
            await self.say("report", {**report, "kind": "declined", "cause": "DECLINED", "text": "paper does not want to"})
            return
        if order["phase"] == "prepare":
            await self.say("report", {**report, "kind": "prepared"})
            return
        await self.say("report", {**report, "kind": "running", "at_ms": int(time.time() * 1000)})
        await asyncio.sleep(self.chance.uniform(0, 0.1))
        await self.end(order, self.chance.choice([0, 0, 0, 1]), False)

    async def end(self, order: dict[str, Any], code: int, by_us: bool) -> None:
        ranks = [
            {"rank": order["first_rank"] + i, "code": code, "signal": 0, "at_ms": int(time.time() * 1000), "by_us": by_us}
            for i in range(order["local_ranks"])
        ]
        await self.say("report", {**self.who(), "epoch": order["epoch"], "kind": "exited", "ranks": ranks, "flushed": True})
