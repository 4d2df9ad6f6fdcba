# SPDX-License-Identifier: Apache-2.0
"""Clusters whose nodes reach controller and store through proxies that write down what goes by."""

from __future__ import annotations

import socket

from harness import Cluster
from http_fault import Proxy, close_after
from rclone_server import S3Server

#: What a store answers to a presigned URL after its time.
EXPIRED = b"<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"


class Recorder(Proxy):
    """Keeps the heads of requests, and counts the bytes of answers.

    It can refuse presigned requests, change the last byte of their answers, and change a text in answers.
    """

    def __init__(self, port: int):
        self.heads: list[str] = []
        self.sent = 0
        self.instead: list[bytes] = []
        self.spoils = False
        self.replaced = self.by = b""
        super().__init__(port)

    def _answer(self, connection: socket.socket, request: bytes) -> None:
        head = request.split(b"\r\n\r\n", 1)[0].decode("latin1")
        self.heads.append(head)
        presigned = "X-Amz-Signature=" in head
        spoils = self.spoils and presigned
        if self.instead and presigned:
            body = self.instead.pop()
            connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
            return
        with socket.create_connection(("127.0.0.1", self.upstream), timeout=120) as upstream:
            upstream.sendall(close_after(request))
            answer = b""
            while piece := upstream.recv(65536):
                self.sent += len(piece)
                if spoils:
                    answer += piece
                else:
                    connection.sendall(piece.replace(self.replaced, self.by) if self.replaced else piece)
            connection.sendall(answer[:-1] + bytes([answer[-1] ^ 1]) if spoils else b"")

    def asked(self, *texts: str) -> list[str]:
        """The requests with all these texts in their first line."""
        return [head for head in self.heads if all(text in head.split("\r\n", 1)[0] for text in texts)]


class Recorded:
    """A cluster whose nodes reach controller and store through recorders."""

    def __init__(self, cluster: Cluster, s3: S3Server, nodes: int, store: Recorder, environment: dict[str, str]):
        self.cluster, self.s3, self.store = cluster, s3, store
        self.controller = Recorder(cluster.port)
        cluster.url = self.controller.url
        cluster.agent_environment = environment
        for number in range(nodes):
            cluster.add_agent(f"node{number}", 1)
        cluster.wait_ready()
        self.nodes = nodes

    def said(self) -> str:
        return "".join(agent.said() for agent in self.cluster.agents)

    def close(self) -> None:
        self.controller.close()
        self.store.close()
