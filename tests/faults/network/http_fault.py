# SPDX-License-Identifier: Apache-2.0
"""A proxy between one of our programs and the controller that makes one request, the Nth, go wrong in one way, and passes all others on.

It reads requests whole, answers one a connection, and passes replies on as they come, so that streams flow. It keeps what it saw.
"""

from __future__ import annotations

import contextlib
import enum
import socket
import struct
import threading
import time

RESET = struct.pack("ii", 1, 0)


class Fault(enum.Enum):
    """What happens to the request. Those of LOST were carried out all the same."""

    REFUSED = "the connection is reset, and the next one refused for a while"
    CLOSED = "the connection is closed before a reply"
    LOST = "the reply is lost: the connection is reset"
    CUT = "the connection is reset in the middle of the reply"
    ERROR = "500 without a problem document"
    BUSY = "503 with Retry-After"
    GARBAGE = "bytes that are no HTTP"
    CAPTIVE = "200 with a page of HTML"
    SHORT_JSON = "a reply whose JSON ends early"
    SLOW = "the reply comes late"


#: After these every client of ours tries again, until the controller has answered.
PASSING = {Fault.REFUSED, Fault.CLOSED, Fault.LOST, Fault.CUT, Fault.BUSY, Fault.SLOW}

CANNED = {
    Fault.ERROR: b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\noops",
    Fault.BUSY: b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n",
    Fault.GARBAGE: b"\x00\x01\x02 this is not HTTP \xff\xfe" * 20,
    Fault.CAPTIVE: b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 33\r\nConnection: close\r\n\r\n"
    b"<html><body>Log in</body></html>\n",
    Fault.CLOSED: b"",
}
LATE_S = 0.5
REFUSED_S = 0.3


class Proxy:
    """Listens on a port of its own; `arm` says which request goes wrong next, counted from then on."""

    def __init__(self, port: int):
        self.upstream = port
        self.lock = threading.Lock()
        self.requests: list[str] = []
        self.fault: Fault | None = None
        self.left = 0
        self.struck: str | None = None
        self.stopping = False
        self.listening = threading.Event()
        self.listening.set()
        self.listener = self._listen(0)
        self.port = int(self.listener.getsockname()[1])
        self.connections: set[socket.socket] = set()
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def arm(self, fault: Fault | None, number: int = 1) -> None:
        """From now on the request of this number, counted from 1, goes wrong so, once. What went wrong before is over."""
        assert self.listening.wait(30)
        with self.lock:
            self.requests, self.fault, self.left, self.struck = [], fault, number, None

    def close(self) -> None:
        self.stopping = True
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            living = list(self.connections)
        for connection in living:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)

    @staticmethod
    def _listen(port: int) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
        return listener

    def _accept(self) -> None:
        while not self.stopping:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                if self.stopping or not self._reopen():
                    return
                continue
            with self.lock:
                self.connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _reopen(self) -> bool:
        """After a time in which nobody listened."""
        time.sleep(REFUSED_S)
        while not self.stopping:
            with contextlib.suppress(OSError):
                self.listener = self._listen(self.port)
                self.listening.set()
                return True
            time.sleep(0.01)
        return False

    def _serve(self, connection: socket.socket) -> None:
        try:
            request = read_message(connection)
            if request is not None:
                self._answer(connection, request)
        except OSError:
            pass  # one side went away: the other sees the end of the connection
        finally:
            with self.lock:
                self.connections.discard(connection)
            connection.close()

    def _strikes(self, line: str) -> Fault | None:
        with self.lock:
            self.requests.append(line)
            if self.fault is None or self.struck is not None:
                return None
            self.left -= 1
            if self.left > 0:
                return None
            self.struck = line
            return self.fault

    def _answer(self, connection: socket.socket, request: bytes) -> None:
        fault = self._strikes(request.split(b"\r\n", 1)[0].decode("latin1"))
        if fault in CANNED:
            connection.sendall(CANNED[fault])
            return
        if fault == Fault.REFUSED:
            self.listening.clear()
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts
            self.listener.close()
            reset(connection)
            return
        if fault == Fault.SLOW:
            time.sleep(LATE_S)
        with socket.create_connection(("127.0.0.1", self.upstream), timeout=120) as upstream:
            upstream.sendall(close_after(request))
            if fault in (Fault.LOST, Fault.CUT, Fault.SHORT_JSON):
                spoil(connection, upstream, fault)
            else:
                relay(connection, upstream)


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    connection.close()


def relay(connection: socket.socket, upstream: socket.socket) -> None:
    while piece := upstream.recv(65536):
        connection.sendall(piece)


def spoil(connection: socket.socket, upstream: socket.socket, fault: Fault) -> None:
    """The reply, or what there is of it: of a stream its first piece."""
    reply = upstream.recv(65536)
    head, _, body = reply.partition(b"\r\n\r\n")
    while b"text/event-stream" not in head and (piece := upstream.recv(65536)):
        body += piece
    if fault == Fault.SHORT_JSON:
        short = body[: len(body) // 2]
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith((b"content-length:", b"transfer-encoding:"))]
        connection.sendall(b"\r\n".join([*lines, b"Content-Length: %d" % len(short), b"", short]))
        return
    if fault == Fault.CUT:
        whole = head + b"\r\n\r\n" + body
        connection.sendall(whole[: len(head) + 4 + len(body) // 2])
    reset(connection)


def close_after(request: bytes) -> bytes:
    """The request, and that the connection ends with its reply."""
    head, _, body = request.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    return b"\r\n".join([*lines, b"Connection: close", b"", body])


def read_message(connection: socket.socket) -> bytes | None:
    """A whole request; None when the client went away before its end."""
    data = bytearray()
    while b"\r\n\r\n" not in data:
        if not (piece := connection.recv(65536)):
            return None
        data += piece
    head, _, rest = bytes(data).partition(b"\r\n\r\n")
    body = bytearray(rest)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])}
    chunked = headers.get(b"transfer-encoding", b"").lower() == b"chunked"
    length = int(headers.get(b"content-length", b"0"))
    while not body.endswith(b"0\r\n\r\n") if chunked else len(body) < length:
        if not (piece := connection.recv(65536)):
            return None
        body += piece
    return head + b"\r\n\r\n" + bytes(body)
