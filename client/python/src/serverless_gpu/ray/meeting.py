# SPDX-License-Identifier: Apache-2.0
"""Connects the nodes of a Ray job: node rank 0 listens on MASTER_PORT, the other nodes connect, and both sides exchange lines of JSON. A
connection lives as long as the job, so that its end tells each side that the other is gone. A connection whose first line lacks the job's
secret is closed.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import socket
import time
from typing import Any

START_S = 600.0  # from the first rank's start to the last node's, including imports of Ray from a cold disk
HELLO_S = 10.0  # for a peer's first message
PAUSE_S = 0.1  # between two attempts to connect
LINE_BYTES = 64 * 1024


class PeerGone(Exception):
    """The other end of a connection has closed it."""


class Peer:
    """A connection to another node. Messages are JSON objects."""

    def __init__(self, connection: socket.socket, node_rank: int):
        self.node_rank = node_rank  # of the other end
        self._connection = connection
        self._rest = b""

    def fileno(self) -> int:
        """Return the descriptor for select: readable when a message or the end has come."""
        return self._connection.fileno()

    def send(self, **message: Any) -> None:
        """Send one message. Raises PeerGone."""
        try:
            self._connection.settimeout(HELLO_S)
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise PeerGone(str(error)) from None

    def receive(self, within_s: float) -> dict[str, Any]:
        """Return the next message. Raises PeerGone, and TimeoutError if no message comes in time."""
        end = time.monotonic() + within_s
        while b"\n" not in self._rest:
            self._connection.settimeout(max(end - time.monotonic(), 0.001))
            try:
                piece = self._connection.recv(LINE_BYTES)
            except socket.timeout:  # a TimeoutError from Python 3.10 on
                raise TimeoutError(f"node rank {self.node_rank} said nothing for {within_s:.0f} s") from None
            except OSError as error:
                raise PeerGone(str(error)) from None
            if not piece or len(self._rest) > LINE_BYTES:
                raise PeerGone("the connection has ended")
            self._rest += piece
        line, self._rest = self._rest.split(b"\n", 1)
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):  # the latter for brackets in brackets without end
            raise PeerGone("it does not speak JSON") from None
        if not isinstance(message, dict):
            raise PeerGone("it does not speak as a node does")
        return message

    def close(self) -> None:
        """End the connection."""
        self._connection.close()


def address_of(host: str, port: int) -> tuple[socket.AddressFamily, Any]:
    """Return the family and address of a TCP endpoint."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return family, address


def own_address(host: str, port: int) -> str:
    """Return the address of this node by which it reaches another one; nothing is sent."""
    family, address = address_of(host, port)
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(address)
        return str(probe.getsockname()[0])


def _listener(host: str, port: int) -> socket.socket:
    """Return a socket that listens on MASTER_PORT, on the master's address alone if this node has it. The attempt's shim holds the port for
    this rank, so the socket needs SO_REUSEADDR to get it.
    """
    family, address = address_of(host, port)
    for target in (address, ("::" if family == socket.AF_INET6 else "", port)):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(target)
            listener.listen(1024)
            return listener
        except OSError:
            listener.close()
            if target is not address:
                raise
    raise AssertionError("one of two addresses was tried last")


class Host:
    """The side of node rank 0: listens from the beginning, and gathers all other nodes."""

    def __init__(self, host: str, port: int, nodes: int, secret: str):
        self._listener = _listener(host, port) if nodes > 1 else None
        self._nodes = nodes
        self._secret = secret
        self.peers: dict[int, Peer] = {}

    def gather(self) -> None:
        """Wait until every other node is connected. Raises TimeoutError."""
        end = time.monotonic() + START_S
        while self._listener is not None and len(self.peers) < self._nodes - 1:
            self._listener.settimeout(max(end - time.monotonic(), 0.001))
            try:
                connection, _ = self._listener.accept()
            except socket.timeout:
                missing = sorted(set(range(1, self._nodes)) - set(self.peers))
                raise TimeoutError(f"node rank {missing[0]} did not come in {START_S:.0f} s") from None
            self._admit(Peer(connection, -1))

    def _admit(self, peer: Peer) -> None:
        """Keep a connection whose first line proves that it belongs to this job; close any other."""
        rank = None
        with contextlib.suppress(PeerGone, TimeoutError):
            hello = peer.receive(HELLO_S)
            if hmac.compare_digest(str(hello.get("secret")).encode("utf-8", "surrogatepass"), self._secret.encode()):
                rank = hello.get("node_rank")
        if not isinstance(rank, int) or not 0 < rank < self._nodes or rank in self.peers:
            peer.close()
            return
        peer.node_rank = rank
        self.peers[rank] = peer

    def finish(self) -> None:
        """Tell all nodes that the driver has ended, and close the connections."""
        for peer in self.peers.values():
            with contextlib.suppress(PeerGone):
                peer.send(done=True)
        self.close()

    def close(self) -> None:
        """Close the connections without a message."""
        for peer in self.peers.values():
            peer.close()
        if self._listener is not None:
            self._listener.close()


def join(host: str, port: int, node_rank: int, secret: str) -> Peer:
    """Connect to node rank 0, which may not listen yet. Raises TimeoutError."""
    end = time.monotonic() + START_S
    while True:
        family, address = address_of(host, port)
        connection = socket.socket(family, socket.SOCK_STREAM)
        connection.settimeout(HELLO_S)
        try:
            connection.connect(address)
        except OSError as error:
            connection.close()
            if time.monotonic() >= end:
                raise TimeoutError(f"node rank 0 was not reached at {host}:{port} in {START_S:.0f} s: {error}") from None
            time.sleep(PAUSE_S)
            continue
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        peer = Peer(connection, 0)
        peer.send(secret=secret, node_rank=node_rank)
        return peer


def rendezvous() -> tuple[str, int]:
    """Return (MASTER_ADDR, MASTER_PORT)."""
    return os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
