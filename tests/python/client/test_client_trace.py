# SPDX-License-Identifier: Apache-2.0
"""A call's job belongs to the trace of the program that makes it: of OpenTelemetry's current span, else of the environment."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from opentelemetry import trace as api
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, TraceState

from fake_controller import FakeController
from serverless_gpu import distributed
from serverless_gpu._internal.api import trace

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SPAN = SpanContext(0xABC, 0xDEF, is_remote=False, trace_flags=TraceFlags(1), trace_state=TraceState([("congo", "t61")]))
CURRENT = {"traceparent": f"00-{0xABC:032x}-{0xDEF:016x}-01", "tracestate": "congo=t61"}


def test_the_variables_of_the_environment_are_sent(fake: FakeController, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", PARENT)
    monkeypatch.setenv("TRACESTATE", "a=b")
    assert trace.headers() == {"traceparent": PARENT, "tracestate": "a=b"}
    assert distributed(gpus=1, remote=True)(len).distributed("xy") == [2]
    assert {(sent["traceparent"], sent["tracestate"]) for sent in fake.submit_headers} == {(PARENT, "a=b")}


def test_the_current_span_counts_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", PARENT)
    with api.use_span(NonRecordingSpan(SPAN)):
        assert trace.headers() == CURRENT
    assert trace.headers() == {"traceparent": PARENT}


@pytest.mark.parametrize("parent", ["", "nonsense", PARENT + "\r\nX: y", PARENT.upper()])
def test_what_is_malformed_is_not_sent(monkeypatch: pytest.MonkeyPatch, parent: str) -> None:
    monkeypatch.setenv("TRACEPARENT", parent)
    monkeypatch.setenv("TRACESTATE", "a=b")
    assert trace.headers() == {}


def test_opentelemetry_is_not_imported_for_that() -> None:
    program = "import sys; from serverless_gpu._internal.api import trace; trace.headers(); assert 'opentelemetry' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "TRACEPARENT": PARENT})
