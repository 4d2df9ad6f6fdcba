# SPDX-License-Identifier: Apache-2.0
"""A collector of traces that takes OTLP/HTTP in its JSON encoding to the letter, and can be away, busy or picky."""

from __future__ import annotations

import base64
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from google.protobuf import json_format  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

#: proto3's numbers of 64 bits are text in JSON.
WHOLE = re.compile(r"-?[0-9]+")


@dataclass
class Span:
    """A span as it was received. Times are ns since 1970."""

    trace: str
    id: str
    parent: str
    state: str
    name: str
    start: int
    end: int
    attributes: dict[str, str | int]
    events: list[tuple[str, int, dict[str, str | int]]]
    failed: bool
    message: str
    resource: dict[str, str | int] = field(repr=False)


def attributes_of(listed: list[Any]) -> dict[str, str | int]:
    """The attributes, none of which comes twice."""
    found: dict[str, str | int] = {}
    for attribute in listed:
        assert set(attribute) == {"key", "value"} and attribute["key"] not in found, listed
        ((kind, value),) = attribute["value"].items()
        assert isinstance(value, str) and kind in ("stringValue", "intValue"), attribute
        assert kind == "stringValue" or WHOLE.fullmatch(value), attribute
        found[attribute["key"]] = value if kind == "stringValue" else int(value)
    return found


def time_of(text: Any) -> int:
    assert isinstance(text, str) and re.fullmatch(r"[1-9][0-9]{18}", text), text
    return int(text)


def id_of(text: Any, digits: int) -> str:
    assert isinstance(text, str) and re.fullmatch(rf"[0-9a-f]{{{digits}}}", text) and set(text) != {"0"}, text
    return text


def span_of(raw: dict[str, Any], resource: dict[str, str | int]) -> Span:
    status = raw.get("status", {})
    assert status.get("code", 2) == 2, "only failures have a status"
    events = [(event["name"], time_of(event["timeUnixNano"]), attributes_of(event["attributes"])) for event in raw.get("events", [])]
    span = Span(
        trace=id_of(raw["traceId"], 32),
        id=id_of(raw["spanId"], 16),
        parent=id_of(raw["parentSpanId"], 16) if "parentSpanId" in raw else "",
        state=raw.get("traceState", ""),
        name=raw["name"],
        start=time_of(raw["startTimeUnixNano"]),
        end=time_of(raw["endTimeUnixNano"]),
        attributes=attributes_of(raw["attributes"]),
        events=events,
        failed=bool(status),
        message=status.get("message", ""),
        resource=resource,
    )
    assert raw["kind"] == 1 and span.start <= span.end, raw
    assert all(span.start <= at <= span.end for _, at, _ in events), raw
    return span


def check_by_protobuf(document: dict[str, Any]) -> None:
    """OpenTelemetry's own description takes it, without unknown members. Protobuf's JSON wants ids in base64, where OTLP has hex."""
    copied = json.loads(json.dumps(document))
    for resource in copied["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in {"traceId", "spanId", "parentSpanId"} & set(span):
                    span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    json_format.ParseDict(copied, ExportTraceServiceRequest())


class Collector:
    """Listens on a port of the loopback, which it keeps while it is away."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.batches: list[int] = []  # spans of each request that was taken
        self.headers: list[dict[str, str]] = []
        self.faults: list[str] = []
        self.statuses: list[int] = []  # of the next answers, before it takes requests again
        self.retry_after = ""
        self.reply: dict[str, Any] = {}
        self.asked = 0
        self.port = 0
        self._lock = threading.Lock()
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Collector:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = collector.take(self.path, dict(self.headers.items()), body)
                answer = json.dumps(collector.reply).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                if status == 429 and collector.retry_after:
                    self.send_header("Retry-After", collector.retry_after)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            allow_reuse_address = True
            daemon_threads = True

        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def take(self, path: str, headers: dict[str, str], body: bytes) -> int:
        with self._lock:
            self.asked += 1
            if self.statuses:
                return self.statuses.pop(0)
            try:
                assert path == "/v1/traces" and headers["Content-Type"] == "application/json", (path, headers)
                document = json.loads(body)
                check_by_protobuf(document)
                (resource,) = document["resourceSpans"]
                (scope,) = resource["scopeSpans"]
                assert scope["scope"]["name"] == "gpuctl"
                taken = [span_of(span, attributes_of(resource["resource"]["attributes"])) for span in scope["spans"]]
                assert 0 < len(taken) <= 512
            except Exception as error:
                self.faults.append(f"{type(error).__name__}: {error}")
                return 400
            self.spans += taken
            self.batches.append(len(taken))
            self.headers.append(headers)
            return 200

    def of_job(self, job: str) -> list[Span]:
        """The spans of a job that have come."""
        with self._lock:
            assert not self.faults, self.faults
            return [span for span in self.spans if span.attributes["gpuctl.job.id"] == job]
