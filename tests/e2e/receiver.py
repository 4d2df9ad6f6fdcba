# SPDX-License-Identifier: Apache-2.0
"""A receiver of webhooks that checks signatures with lines of its own, and answers as a test wants."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.server
import json
import threading
from collections.abc import Callable
from typing import Any


def signature(secret: str, name: str, moment: str, body: bytes) -> str:
    """As the specification of Standard Webhooks has it."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{name}.{moment}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode()


class Receiver:
    """An HTTP server: `got` has (headers, body) of each request, and `answer` gives the status of the next."""

    def __init__(self, answer: Callable[[dict[str, Any]], int] = lambda document: 204):
        self.answer = answer
        self.got: list[tuple[dict[str, str], bytes]] = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                status = receiver.answer(json.loads(body))
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"http://127.0.0.1:{receiver.port}/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/hook"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def documents(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in list(self.got)]

    def kinds(self, job: str) -> list[str]:
        return [d["event"]["kind"] for d in self.documents() if d["event"]["job_id"] == job]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
