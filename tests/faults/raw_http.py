# SPDX-License-Identifier: Apache-2.0
"""Bytes to a controller and back, as a socket carries them: requests that no HTTP library would send, and replies counted one by one."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from dataclasses import dataclass, field

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
