# SPDX-License-Identifier: Apache-2.0
"""What the relays of webhooks share: a server that checks signatures and answers at once. Python's standard library alone.

A relay hears deliveries of gpuctl on LISTEN (default 127.0.0.1:8070), checks them with the secret in the file SECRET_FILE, and hands
each to a function, once. A delivery that the function fails on is answered with 500: gpuctl sends it again later.
"""

from __future__ import annotations

import base64
import collections
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import threading
import time
from collections.abc import Callable
from typing import Any

#: Older messages are refused: somebody may have recorded one.
TOLERANCE_S = 300
#: Ids that are remembered, so that a message which comes twice is told once.
REMEMBERED = 10_000
LIMIT_BODY_BYTES = 1 << 20


def verify(secret: str, headers: Any, body: bytes) -> bool:
    """Whether a message is gpuctl's and is new."""
    name, moment = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.new(key, f"{name}.{moment}.".encode() + body, hashlib.sha256).digest()
    expected = "v1," + base64.b64encode(digest).decode()
    known = any(hmac.compare_digest(expected, given) for given in headers.get("webhook-signature", "").split())
    return known and moment.isdecimal() and abs(time.time() - int(moment)) < TOLERANCE_S


def sentence(document: dict[str, Any]) -> str:
    """One line for people."""
    job, event = document["job"], document["event"]
    if job is None:
        return "gpuctl: a test"
    parts = [f"{job['name'] or job['id']} of {job['owner']}: {event['kind']}"]
    if job["reason"]:
        parts.append(job["reason"])
    elif job["exit_code"]:
        parts.append(f"exit code {job['exit_code']}")
    if job["url"]:
        parts.append(job["url"])
    return " - ".join(parts)


def serve(tell: Callable[[dict[str, Any]], None]) -> None:
    """Hear deliveries for ever."""
    secret = pathlib.Path(os.environ["SECRET_FILE"]).read_text().strip()
    host, _, port = os.environ.get("LISTEN", "127.0.0.1:8070").rpartition(":")
    told: collections.OrderedDict[str, None] = collections.OrderedDict()
    lock = threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length <= LIMIT_BODY_BYTES else b""
            status = 204
            if length > LIMIT_BODY_BYTES or not verify(secret, self.headers, body):
                status = 401
            else:
                with lock:
                    name = self.headers["webhook-id"]
                    try:
                        if name not in told:
                            tell(json.loads(body))
                        told[name] = None
                        if len(told) > REMEMBERED:
                            told.popitem(last=False)
                    except OSError as error:
                        self.log_message("%s was not forwarded: %s", name, error)
                        status = 500
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with http.server.ThreadingHTTPServer((host, int(port)), Handler) as server:
        print(f"hearing on {host}:{server.server_address[1]}", flush=True)
        server.serve_forever()
