# SPDX-License-Identifier: Apache-2.0
"""Bytes to a controller and back, as a socket carries them: requests that no HTTP library would send, and replies counted one by one."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

STATUS = re.compile(rb"HTTP/1\.1 (\d\d\d) ")


@dataclass
class Exchange:
    """What came back: the replies in order, all bytes, those of no whole reply, and whether the controller ended the connection."""

    replies: list[Reply] = field(default_factory=list)
    raw: bytes = b""
    rest: bytes = b""
    closed: bool = False

    @property
    def statuses(self) -> list[int]:
        return [reply.status for reply in self.replies]


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes


def take_reply(data: bytes) -> tuple[Reply | None, bytes]:
    """The first whole reply of the bytes, and what follows it; None while it is not whole."""
    head, found, rest = data.partition(b"\r\n\r\n")
    if not found:
        return None, data
    lines = head.decode("latin1").split("\r\n")
    matched = STATUS.match(lines[0].encode() + b" ")
    assert matched, f"no reply begins so: {lines[0]!r}"
    status = int(matched.group(1))
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    length = 0 if status == 100 else int(headers.get("content-length", "0"))
    if len(rest) < length:
        return None, data
    return Reply(status, headers, rest[:length]), rest[length:]


def exchange(port: int, request: bytes, patience: float = 10.0, expected: int | None = None) -> Exchange:
    """Send the bytes and gather replies until the controller closes, until `expected` of them are there, or until the deadline."""
    result = Exchange()
    deadline = time.monotonic() + patience
    with socket.create_connection(("127.0.0.1", port), timeout=patience) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(request)  # where it is refused before all of it was sent, the reply is there all the same
        while expected is None or len(result.replies) < expected:
            connection.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                piece = connection.recv(65536)
            except TimeoutError:
                break
            except ConnectionResetError:
                piece = b""
            result.raw += piece
            result.rest += piece
            reply, result.rest = take_reply(result.rest)
            while reply is not None:
                result.replies.append(reply)
                reply, result.rest = take_reply(result.rest)
            if not piece:
                result.closed = True
                break
    return result


def resident(pid: int, what: str = "VmRSS") -> int:
    """Bytes of memory that a process holds now; VmHWM: that it ever held."""
    with open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith(f"{what}:"):
                return int(line.split()[1]) * 1024
    raise AssertionError(f"process {pid} has no {what}")


def queues(port: int) -> Iterator[tuple[bool, int, int]]:
    """Of each end of the connections to a port here: whether it is that of the port, the bytes it sent in vain, those it did not read."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        here, there = (int(words[at].partition(":")[2], 16) == port for at in (1, 2))
        if here or there:
            unsent, unread = (int(number, 16) for number in words[4].split(":"))
            yield here, unsent, unread


def unsent_bytes(port: int) -> int:
    """What the kernel holds of replies of this port that nobody reads: the most of any connection."""
    return max((unsent for served, unsent, _ in queues(port) if served), default=0)


def unread_bytes(port: int) -> int:
    """What the kernel holds of requests to this port, on all connections."""
    return sum(unread if served else unsent for served, unsent, unread in queues(port))
