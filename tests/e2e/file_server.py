# SPDX-License-Identifier: Apache-2.0
"""A real HTTP server of files, with entity tags and ranges, whose answers a test can break off, delay and count."""

from __future__ import annotations

import email.utils
import hashlib
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from slowness import patient


class FileServer:
    """Serves `files` by their paths. What has happened is in `requests`: (method, path, range or None, status)."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.files: dict[str, bytes] = {}
        self.redirects: dict[str, str] = {}
        self.statuses: dict[str, int] = {}
        #: Statuses of GETs alone, which are sent with the file.
        self.get_statuses: dict[str, int] = {}
        #: Paths without an entity tag, and without a time either.
        self.untagged: set[str] = set()
        self.nameless: set[str] = set()
        #: Paths whose HEAD is refused, as that of a presigned URL.
        self.no_head: set[str] = set()
        #: Bytes after which an answer breaks off, once each.
        self.breaks: dict[str, list[int]] = {}
        #: Bytes after which an answer waits for `go`.
        self.stops: dict[str, int] = {}
        self.tokens: dict[str, str] = {}
        self.go = threading.Event()
        self.stopped = threading.Event()
        self.requests: list[tuple[str, str, str | None, int]] = []
        self.authorizations: dict[str, list[str | None]] = {}
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                owner.serve(self, False)

            def do_GET(self) -> None:
                owner.serve(self, True)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))
        self.thread.start()

    def stop(self) -> None:
        self.go.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def gets(self, path: str) -> list[str | None]:
        """The ranges of the GETs of a path that were answered with its bytes."""
        return [asked for method, named, asked, status in self.requests if (method, named) == ("GET", path) and status in (200, 206)]

    def serve(self, handler: BaseHTTPRequestHandler, body: bool) -> None:
        path = handler.path.partition("?")[0]
        self.authorizations.setdefault(path, []).append(handler.headers.get("Authorization"))
        status, headers, content, first = self.answer(handler, path)
        self.requests.append((handler.command, path, handler.headers.get("Range"), status))
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        if body:
            self.send(handler, path, content, first)

    def answer(self, handler: BaseHTTPRequestHandler, path: str) -> tuple[int, dict[str, str], bytes, int]:
        if path in self.redirects:
            return 302, {"Location": self.redirects[path]}, b"", 0
        if path in self.tokens and handler.headers.get("Authorization") != f"Bearer {self.tokens[path]}":
            return 401, {}, b"", 0
        if path in self.statuses or path not in self.files or (path in self.no_head and handler.command == "HEAD"):
            return self.statuses.get(path, 403 if path in self.no_head else 404), {}, b"nothing", 0
        content = self.files[path]
        headers = {"Accept-Ranges": "bytes"}
        tag = f'"{hashlib.md5(content).hexdigest()}"'  # noqa: S324  (as servers of files do)
        if path not in self.nameless:
            headers["Last-Modified"] = email.utils.formatdate(1_700_000_000, usegmt=True)
        if path not in self.nameless | self.untagged:
            headers["ETag"] = tag
        if handler.command == "GET" and path in self.get_statuses:
            return self.get_statuses[path], headers, content, 0
        asked = handler.headers.get("Range", "")
        condition = handler.headers.get("If-Range")
        if not asked.startswith("bytes=") or condition not in (None, headers.get("ETag", headers.get("Last-Modified"))):
            return 200, headers, content, 0
        begin, _, end = asked.removeprefix("bytes=").partition("-")
        first, last = int(begin), int(end) if end else len(content) - 1
        if first >= len(content):
            return 416, {"Content-Range": f"bytes */{len(content)}"}, b"", 0
        headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        return 206, headers, content[first : last + 1], first

    def send(self, handler: BaseHTTPRequestHandler, path: str, content: bytes, first: int) -> None:
        if path in self.breaks and self.breaks[path]:
            content = content[: max(0, self.breaks[path].pop(0) - first)]
            handler.close_connection = True
        if path in self.stops and first < self.stops[path]:
            part = self.stops[path] - first
            handler.wfile.write(content[:part])
            handler.wfile.flush()
            self.stopped.set()
            self.go.wait(patient(120))
            content = content[part:]
        handler.wfile.write(content)
