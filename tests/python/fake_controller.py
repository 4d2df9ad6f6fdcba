# SPDX-License-Identifier: Apache-2.0
"""A small controller in a thread: what the client needs of the API, with functions run by the thread itself, and faults on demand."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import pickle
import threading
import traceback
import urllib.parse
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from slowness import patient

TOKEN = "gct_fake"
PATIENCE_S = patient(20.0)
COMMENTS_S = 1.0  #: between two of a stream that has nothing else to say
UNDER_WAY = ("RUNNING", "QUEUED", "STAGING")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Job:
    """One job: its spec, what its ranks have said so far, and how it ended."""

    def __init__(self, job_id: str, spec: dict[str, Any]):
        self.id = job_id
        self.spec = spec
        self.state = "RUNNING"
        self.reason: str | None = None
        self.cause: str | None = None
        self.failed_rank: int | None = None
        self.attempt = 1
        self.attempts: list[dict[str, Any]] = []
        self.runs: list[dict[str, Any]] = []
        self.seq = 1
        self.pieces: list[dict[str, Any]] = []
        self.points: list[dict[str, Any]] = []
        self.measured: list[tuple[str, dict[str, Any]]] = []  # the events "metric" and "progress"
        self.rows: list[dict[str, Any]] = []

    def view(self) -> dict[str, Any]:
        failed_node = None if self.failed_rank is None else "node0"
        return {
            "id": self.id, "state": self.state, "name": self.spec.get("name"), "gpus": self.spec["gpus"], "attempt": self.attempt,
            "seq": self.seq, "cause": self.cause, "reason": self.reason,
            "failed_rank": self.failed_rank, "failed_node": failed_node, "exit_code": None,
            "spec": self.spec, "nodes": [{"node": "node0"}],
        }  # fmt: skip


class FakeController:
    """The server. `program` decides what a new job does; the default calls the function once per rank and ends the job."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.jobs: dict[str, Job] = {}
        self.keys: dict[str, str] = {}
        self.blobs: dict[str, bytes] = {}
        self.nodes: list[dict[str, Any]] = []
        self.requests: list[str] = []  # "METHOD path?query"
        self.submit_headers: list[dict[str, str]] = []
        self.stream_headers: list[str | None] = []  # Last-Event-ID of each stream of output
        self.program: Callable[[FakeController, Job], None] = run_to_end
        self.refusals: list[tuple[int, dict[str, Any]]] = []  # answers to the next submissions
        self.break_after: int | None = None  # events, then each stream breaks off
        self.server: ThreadingHTTPServer | None = None
        self.port = 0
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def handlers(self) -> Any:
        """The class of the handlers, for tests that replace a route."""
        assert self.server is not None
        return self.server.RequestHandlerClass

    def start(self) -> None:
        fake = self

        class Bound(Handler):
            controller = fake

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64
            connections: set[Any] = set()

            def process_request(self, request: Any, address: Any) -> None:
                self.connections.add(request)
                super().process_request(request, address)

            def handle_error(self, request: Any, address: Any) -> None:
                pass  # a client that has gone

        self.server = Server(("127.0.0.1", self.port), Bound)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        """Go away: connections break, nobody listens."""
        server, self.server = self.server, None
        if server is not None:
            server.shutdown()
            server.server_close()
            for connection in list(server.connections):  # type: ignore[attr-defined]
                with contextlib.suppress(OSError):
                    connection.shutdown(2)
        with self.changed:
            self.changed.notify_all()

    @contextlib.contextmanager
    def change(self) -> Iterator[None]:
        """Change something that others wait for."""
        with self.changed:
            yield
            self.changed.notify_all()

    def comes(self, condition: Callable[[], Any], seconds: float) -> bool:
        with self.changed:
            return bool(self.changed.wait_for(condition, seconds))

    def until(self, condition: Callable[[], Any]) -> None:
        assert self.comes(condition, PATIENCE_S), "the awaited change did not come"

    # --- what ranks do ---

    def say(self, job: Job, text: str, rank: int = 0, stream: str = "stdout") -> None:
        with self.change():
            job.pieces.append({"rank": rank, "stream": stream, "attempt": job.attempt, "offset": 0, "text": text})

    def measure(self, job: Job, event: str, **fields: Any) -> None:
        with self.change():
            job.measured.append((event, fields))

    def end(self, job: Job, state: str = "SUCCEEDED", **fields: Any) -> None:
        with self.change():
            for name, value in fields.items():
                setattr(job, name, value)
            job.state = state
            job.seq += 1

    def leave(self, job: Job, rank: int, data: bytes, kind: str = "value", **fields: Any) -> bytes:
        """Store what a rank of the call left, and return it as it is stored: with the seal of the call."""
        sealed = self.seal(self.key(job), job.id, rank, kind, data) if "function" in job.spec else data
        self.store(job, rank, sealed, kind, **fields)
        return sealed

    @staticmethod
    def seal(key: bytes, job_id: str, rank: int, kind: str, data: bytes) -> bytes:
        seal = hmac.new(key, f"{job_id} {rank} {kind}\n".encode() + data, "sha256")
        return data + f"\ngpuctl-seal {seal.hexdigest()}\n".encode()

    def store(self, job: Job, rank: int, data: bytes, kind: str = "value", **fields: Any) -> None:
        """Store bytes as what a rank left: inline, or as a blob where they are large."""
        row = {"rank": rank, "kind": kind, "size": len(data), "sha256": digest(data), **fields}
        if len(data) <= 64 * 1024:
            row["base64"] = base64.b64encode(data).decode()
        else:
            self.blobs[digest(data)] = data
        job.rows.append(row)

    def sent(self, job: Job) -> bytes:
        function = job.spec["function"]
        return base64.b64decode(function["inline"]) if "inline" in function else self.blobs[function["blob"]]

    def payload(self, job: Job) -> tuple[Any, Any, Any]:
        header, _, body = self.sent(job).partition(b"\n")
        assert header.startswith(b"gpuctl-function 1 python="), header
        return pickle.loads(body)

    def key(self, job: Job) -> bytes:
        """With which the ranks of the call seal what they leave."""
        return self.sent(job)[-32:]


def run_to_end(fake: FakeController, job: Job) -> None:
    """Call the function for each rank; the first exception fails the job."""
    import cloudpickle

    function, args, kwargs = fake.payload(job)
    for rank in range(job.spec["gpus"]):
        try:
            value = function(*args, **kwargs)
        except Exception as error:
            told = {"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": {"py_callstack": "Traceback of the rank"}}}
            frames = [(frame.filename, frame.lineno, frame.name) for frame in traceback.extract_tb(error.__traceback__)[1:]]
            text = "Traceback (most recent call last):\n" + "".join(
                f'  File "{file}", line {line}, in {name}\n' for file, line, name in frames
            )
            text += f"{type(error).__name__}: {error}\n"
            left = {"type": type(error).__name__, "message": str(error), "traceback": text, "frames": frames, "exception": error}
            fake.leave(job, rank, cloudpickle.dumps(left), kind="exception", error=told)
            reason = f"rank {rank} on node node0 exited with 1: {type(error).__name__}: {error}"
            fake.end(job, "FAILED", reason=reason, cause="RANK_FAILED", failed_rank=rank)
            return
        fake.leave(job, rank, cloudpickle.dumps(value))
    fake.end(job)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    controller: FakeController
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        pass

    def reply(self, status: int, document: Any, body: bytes | None = None) -> None:
        data = json.dumps(document).encode() if body is None else body
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if status < 400 else "application/problem+json")
        self.send_header("Content-Length", str(len(data)))
        if status == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def refuse(self, status: int, code: str, detail: str, field: str | None = None, hint: str | None = None) -> None:
        problem = {
            "status": status,
            "code": code,
            "detail": detail,
            "field": field,
            "hint": hint,
            "retryable": status == 503,
            "title": code,
        }
        self.reply(status, problem)

    def handle_any(self) -> None:
        split = urllib.parse.urlsplit(self.path)
        query = {name: values[0] for name, values in urllib.parse.parse_qs(split.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.controller.change():
            self.controller.requests.append(f"{self.command} {self.path}")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self.refuse(401, "unauthenticated", "the token is not known")
            return
        parts = split.path.strip("/").split("/")[1:]
        route = getattr(self, f"{self.command.lower()}_{parts[0]}", None)
        if route is None:
            self.reply(404, None, b"<html>no such page</html>")
        else:
            route(parts[1:], query, body)

    do_GET = do_POST = do_PUT = do_HEAD = handle_any  # noqa: N815

    # --- routes ---

    def head_blobs(self, parts: list[str], query: dict[str, str], body: bytes) -> None:
        self.reply(200 if parts[0] in self.controller.blobs else 404, {})

    def put_blobs(self, parts: list[str], query: dict[str, str], body: bytes) -> None:
        if digest(body) != parts[0]:
            self.refuse(422, "invalid_field", "the bytes have another hash")
            return
        self.controller.blobs[parts[0]] = body
        self.reply(201, {"sha256": parts[0], "size": len(body)})

    def get_blobs(self, parts: list[str], query: dict[str, str], body: bytes) -> None:
        self.reply(200, None, self.controller.blobs[parts[0]])

    def get_nodes(self, parts: list[str], query: dict[str, str], body: bytes) -> None:
        self.reply(200, {"nodes": self.controller.nodes})

    def post_jobs(self, parts: list[str], query: dict[str, str], body: bytes) -> None:
        if parts:
            self.cancel(self.controller.jobs[parts[0]])
            return
        fake, key, spec = self.controller, self.headers["Idempotency-Key"], json.loads(body)
        fake.submit_headers.append(dict(self.headers.items()))
        if fake.refusals:
            status, problem = fake.refusals.pop(0)
            self.reply(status, problem)
            return
        for whole, member in (("function", "modules"), ("function", "blob"), ("environment", "blob"), ("bundle", "blob")):
            if spec.get(whole, {}).get(member, "") not in ("", *fake.blobs):
                self.refuse(422, "invalid_field", f"{whole}.{member} names a blob that you have not sent", f"{whole}.{member}")
                return
        for index, file in enumerate(spec.get("files", [])):
            if file.get("blob", "") not in ("", *fake.blobs):
                self.refuse(422, "invalid_field", f"files[{index}].blob names a blob that you have not sent", f"files[{index}].blob")
                return
        if key not in fake.keys:
            job = Job(f"job{len(fake.jobs)}", spec)
            fake.jobs[job.id] = job
            fake.keys[key] = job.id
            threading.Thread(target=fake.program, args=(fake, job), daemon=True).start()
        self.reply(201, {"id": fake.keys[key], "state": fake.jobs[fake.keys[key]].state, "seq": 1})

    def cancel(self, job: Job) -> None:
        if job.state == "SUCCEEDED":
            self.refuse(409, "conflict", "the job has ended")
            return
        self.controller.end(job, "CANCELED")
        self.reply(202, job.view())

    def get_jobs(self, parts: list[str], query: dict[str, str], body: bytes) -> None:
        job = self.controller.jobs[parts[0]]
        {1: self.show, 2: self.show_part}[len(parts)](job, parts[-1], query)

    def show(self, job: Job, _: str, query: dict[str, str]) -> None:
        if "wait" in query:
            with self.controller.changed:
                self.controller.changed.wait_for(
                    lambda: job.state in ("SUCCEEDED", "FAILED", "CANCELED", "TIMED_OUT") or job.seq > int(query.get("seq", 1 << 60)),
                    min(2, int(query["wait"][:-2]) / 1000 if query["wait"].endswith("ms") else int(query["wait"])),
                )
        self.reply(200, job.view())

    def show_part(self, job: Job, part: str, query: dict[str, str]) -> None:
        followed = self.headers.get("Accept") == "text/event-stream"
        if part == "logs" and followed:
            self.controller.stream_headers.append(self.headers.get("Last-Event-ID"))
            self.follow(job, lambda: [("message", piece) for piece in job.pieces])
        elif part == "logs":
            wanted = (int(query["rank"]), query["stream"])
            text = "".join(piece["text"] for piece in job.pieces if (piece["rank"], piece["stream"]) == wanted).encode()
            self.reply(200, None, text[-int(query["tail"]) :] if "tail" in query else text)
        elif part == "metrics" and followed:
            self.follow(job, lambda: job.measured)
        elif part == "metrics":
            first = int(query.get("cursor", 0))
            following = first + 2 if first + 2 < len(job.points) else None
            self.reply(200, {"attempt": job.attempt, "metrics": job.points[first : first + 2], "next": following})
        elif part == "attempts":
            self.reply(200, {"attempts": job.attempts, "next": None})
        elif part == "runs":
            self.reply(200, {"runs": job.runs})
        else:
            first = int(query.get("after", -1)) + 1
            page = [row for row in job.rows if row["rank"] >= first][:2]  # small pages show whether the client goes on
            last = page[-1]["rank"] if page and page[-1]["rank"] < job.rows[-1]["rank"] else None
            self.reply(200, {"attempt": job.attempt, "results": page, "next": last})

    def follow(self, job: Job, events: Callable[[], list[tuple[str, dict[str, Any]]]]) -> None:
        fake, after = self.controller, self.headers.get("Last-Event-ID")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        at = int(after) if after else 0
        sent = 0
        server = fake.server
        while True:
            due = lambda seen=at: len(events()) > seen or job.state not in UNDER_WAY or fake.server is not server  # noqa: E731
            while not fake.comes(due, COMMENTS_S):
                self.chunk(": a comment\n\n")  # also lets a reader notice a signal that came just before it began to read
            if fake.server is not server or (fake.break_after is not None and sent >= fake.break_after):
                self.connection.shutdown(2)
                return
            if len(events()) > at:
                name, data = events()[at]
                at += 1
                sent += 1
                kind = "" if name == "message" else f"event: {name}\n"
                self.chunk(f"id: {at}\n{kind}data: {json.dumps(data)}\n\n")
            else:
                self.chunk(f": a comment\n\nevent: end\ndata: {json.dumps({'state': job.state, 'exit_code': 0})}\n\n")
                self.wfile.write(b"0\r\n\r\n")
                return

    def chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
