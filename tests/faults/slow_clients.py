# SPDX-License-Identifier: Apache-2.0
"""Clients that hold a connection and do next to nothing with it, by the hundred, all moved by one thread."""

from __future__ import annotations

import contextlib
import resource
import select
import socket
import threading
import time
from dataclasses import dataclass
from typing import Any


@dataclass
class Client:
    """One connection: what it says at once, what it drips a byte at a time, and whether it ever reads."""

    kind: str
    connection: socket.socket
    drip: bytes = b""
    reads: bool = True
    #: Of the clock when the connection was made, and when it was seen to have ended; 0: it has not.
    began: float = 0.0
    ended: float = 0.0


class Crowd:
    """Opens clients and looks after them until it is closed: drips their bytes, reads what they read, notes when they are cut off."""

    PAUSE_S = 0.1

    def __init__(self, port: int):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.port = port
        self.clients: list[Client] = []
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._look_after)
        self.thread.start()

    def open(self, kind: str, said: bytes = b"", drip: bytes = b"", *, reads: bool = True, address: str = "127.0.0.1") -> Client:
        connection = socket.socket()
        if not reads:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(30)
        connection.connect((address, self.port))
        connection.sendall(said)
        connection.setblocking(False)
        client = Client(kind, connection, drip, reads, time.monotonic())
        with self.lock:
            self.clients.append(client)
        return client

    def open_many(self, count: int, kind: str, **options: Any) -> list[Client]:
        return [self.open(kind, **options) for _ in range(count)]

    def held(self, kind: str) -> int:
        """How many of a kind are connected still."""
        with self.lock:
            return sum(client.kind == kind and client.ended == 0 for client in self.clients)

    def held_longest(self, kind: str) -> float:
        """How long the longest of a kind lasted."""
        with self.lock:
            return max(client.ended - client.began for client in self.clients if client.kind == kind)

    def _look_after(self) -> None:
        while not self.stopping.wait(self.PAUSE_S):
            with self.lock:
                living = [client for client in self.clients if client.ended == 0]
            for client in living:
                if client.drip:
                    self._drip(client)
            self._notice_ends(living)

    def _drip(self, client: Client) -> None:
        try:
            client.connection.send(client.drip[:1])
            client.drip = client.drip[1:]
        except BlockingIOError:
            pass
        except OSError:
            client.ended = time.monotonic()

    def _notice_ends(self, clients: list[Client]) -> None:
        """A cut connection hangs up, whether its owner reads or not."""
        poll = select.poll()
        of = {client.connection.fileno(): client for client in clients}
        for fd, client in of.items():
            poll.register(fd, select.POLLRDHUP | (select.POLLIN if client.reads else 0))
        for fd, events in poll.poll(0):
            client = of[fd]
            hung_up = bool(events & (select.POLLRDHUP | select.POLLHUP | select.POLLERR))
            if not hung_up and client.reads:
                with contextlib.suppress(OSError):
                    hung_up = client.connection.recv(65536) == b""
            if hung_up:
                client.ended = time.monotonic()

    def close(self) -> None:
        self.stopping.set()
        self.thread.join()
        for client in self.clients:
            client.connection.close()


class Pace:
    """How long a plain request takes, asked again and again on one connection by a thread of its own."""

    def __init__(self, port: int, request: bytes):
        self.port = port
        self.request = request
        self.samples: list[float] = []
        self.failures: list[str] = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Pace:
        self.thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        self.stopping.set()
        self.thread.join()

    def _ask(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            while not self.stopping.wait(0.005):
                begin = time.perf_counter()
                connection.sendall(self.request)
                reply = connection.recv(65536)
                self.samples.append(time.perf_counter() - begin)
                if not reply.startswith(b"HTTP/1.1 200"):
                    self.failures.append(repr(reply[:100]))
                    return

    def percentile(self, part: float) -> float:
        ordered = sorted(self.samples)
        return ordered[min(len(ordered) - 1, int(part * len(ordered)))]

    def told(self) -> str:
        return f"{len(self.samples)} requests, p50 {self.percentile(0.5) * 1e3:.1f} ms, p99 {self.percentile(0.99) * 1e3:.1f} ms"
