# SPDX-License-Identifier: Apache-2.0
"""A proxy that treats HTTP requests as a bad network might: late, twice, again much later, without a reply, or cut off half-way.

It owns what happens between a client and the controller, and promises that a reply which it does give is the controller's own, to that very
request. It understands no more of HTTP than where a message ends. What the faults must not do is for the tests to say.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections import Counter, deque
from dataclasses import dataclass

LATE_S = 0.05  # how long a request is held up so that others overtake it
KEPT = 200  # requests that may come again


@dataclass(frozen=True)
class Faults:
    """How often each happens to a request."""

    duplicate: float = 0.2
    reorder: float = 0.2
    replay: float = 0.05
    drop: float = 0.03
    cut: float = 0.03


NO_FAULTS = Faults(0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Message:
    """A request or a response as it stood on the wire."""

    head: bytes
    body: bytes

    def header(self, name: str) -> str | None:
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.decode().lower() == name:
                return value.strip().decode()
        return None

    @property
    def bytes(self) -> bytes:
        return self.head + self.body


class Cut(ConnectionError):
    """The connection is to be closed without another word."""


async def read_message(reader: asyncio.StreamReader) -> Message | None:
    """The next message; None when there is none any more."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    message = Message(head, b"")
    length = int(message.header("content-length") or 0)
    return Message(head, await reader.readexactly(length)) if length else message


class Proxy:
    """Listens on a port of its own until it is closed; runs on the event loop that started it."""

    def __init__(self, upstream: int, seed: int, faults: Faults | None = None):
        self.upstream = upstream
        self.faults = faults or Faults()
        self.chance = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.seen: deque[Message] = deque(maxlen=KEPT)
        self.aside: set[asyncio.Task[None]] = set()
        self.served: set[asyncio.Task[None]] = set()

    async def open(self) -> Proxy:
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", 0, backlog=512)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def settle(self) -> None:
        """No fault from now on, and nothing of the past is on its way any more."""
        self.faults = NO_FAULTS
        while self.aside:
            await asyncio.wait(set(self.aside))

    async def close(self) -> None:
        self.server.close()
        for task in self.served | self.aside:
            task.cancel()
        await asyncio.gather(*self.served, *self.aside, return_exceptions=True)

    def happens(self, name: str) -> bool:
        does = self.chance.random() < getattr(self.faults, name)
        self.counts[name] += does
        return does

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.served.add(task)
        try:
            while (request := await read_message(reader)) is not None:
                await self.carry(request, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.served.discard(task)
            writer.close()

    async def carry(self, request: Message, writer: asyncio.StreamWriter) -> None:
        """One request of a client, with what befalls it."""
        if request.header("accept") == "text/event-stream":
            await self.carry_stream(request, writer)
            return
        if self.happens("replay") and self.seen:
            self.send_aside(self.chance.choice(self.seen))
        self.seen.append(request)
        twice = self.happens("duplicate")
        if twice and self.chance.random() < 0.5:
            self.send_aside(request)
        if self.happens("reorder"):
            await asyncio.sleep(self.chance.uniform(0, LATE_S))
        if self.happens("cut"):
            await self.send_part(request)
            raise Cut
        reply = await self.ask(request)
        if twice:
            self.send_aside(request)
        if reply is None or self.happens("drop"):
            raise Cut
        if self.happens("cut"):
            writer.write(reply.bytes[: self.chance.randrange(len(reply.bytes))])
            await writer.drain()
            raise Cut
        writer.write(reply.bytes)
        await writer.drain()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.upstream)

    async def ask(self, request: Message) -> Message | None:
        """The controller's reply; None when there was none."""
        self.counts["requests"] += 1
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await self.connect()
            try:
                writer.write(request.bytes)
                await writer.drain()
                return await read_message(reader)
            finally:
                writer.close()
        return None

    async def send_part(self, request: Message) -> None:
        self.counts["requests"] += 1
        with contextlib.suppress(OSError):
            _, writer = await self.connect()
            writer.write(request.bytes[: self.chance.randrange(1, len(request.bytes))])
            await writer.drain()
            writer.close()

    def send_aside(self, request: Message) -> None:
        """Nobody gets the reply."""

        async def send() -> None:
            await self.ask(request)

        task = asyncio.create_task(send())
        self.aside.add(task)
        task.add_done_callback(self.aside.discard)

    async def carry_stream(self, request: Message, writer: asyncio.StreamWriter) -> None:
        """Bytes as they come, cut off somewhere now and then."""
        self.counts["requests"] += 1
        reader, upstream = await self.connect()
        left = self.chance.randrange(100, 3000) if self.happens("cut") else -1
        try:
            upstream.write(request.bytes)
            await upstream.drain()
            while left != 0 and (chunk := await reader.read(4096)):
                part = chunk if left < 0 else chunk[:left]
                left = left if left < 0 else left - len(part)
                writer.write(part)
                await writer.drain()
        finally:
            upstream.close()
        raise Cut


class ProxyThread:
    """The same for tests without an event loop: `with ProxyThread(port, seed) as proxy`."""

    def __init__(self, upstream: int, seed: int, faults: Faults | None = None):
        self.proxy = Proxy(upstream, seed, faults)
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="proxy")

    def __enter__(self) -> Proxy:
        self.thread.start()
        return asyncio.run_coroutine_threadsafe(self.proxy.open(), self.loop).result()

    def __exit__(self, *problem: object) -> None:
        asyncio.run_coroutine_threadsafe(self.proxy.close(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
