# SPDX-License-Identifier: Apache-2.0
"""The trace that a job belongs to: of OpenTelemetry's current span where the program uses OpenTelemetry, else of the environment."""

from __future__ import annotations

import os
import re
import sys

_PARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_STATE = re.compile(r"[ -~]{1,512}")


def _current() -> tuple[str, str]:
    """Return traceparent and tracestate of the current span; "" where there is none. Nothing is imported for that."""
    api = sys.modules.get("opentelemetry.trace")
    span = api.get_current_span().get_span_context() if api is not None else None
    if span is None or not span.is_valid:
        return "", ""
    return f"00-{span.trace_id:032x}-{span.span_id:016x}-{span.trace_flags:02x}", span.trace_state.to_header()


def headers() -> dict[str, str]:
    """Return the headers of W3C Trace Context for a submission; none without a trace, or with one that is malformed."""
    parent, state = _current()
    if not parent:
        parent, state = os.environ.get("TRACEPARENT", ""), os.environ.get("TRACESTATE", "")
    if not _PARENT.fullmatch(parent):
        return {}
    return {"traceparent": parent, **({"tracestate": state} if _STATE.fullmatch(state) else {})}
