# SPDX-License-Identifier: Apache-2.0
"""Turns an unsuccessful job into an exception: the controller's description of the failure, caused by the rank's exception, caused by the
rank's traceback.
"""

from __future__ import annotations

import linecache
import re
from typing import Any

from serverless_gpu._internal.api.controller import Controller
from serverless_gpu._internal.calls import results
from serverless_gpu.errors import GpuctlError, JobFailed, RemoteError, RemoteTraceback, job_failed

_FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+), in (?P<name>.+)$')
_SOURCE = " " * 4


def with_source(text: str, frames: Any) -> str:
    """Return the traceback with source lines that the rank could not read, such as those of notebook cells, if they are known here.

    `frames` are the (file, line, name) that the rank itself saw; other lines of the traceback stay unchanged.
    """
    known = {(str(file), int(line), str(name)) for file, line, name in frames or ()}
    lines = text.splitlines()
    shown = []
    for index, line in enumerate(lines):
        shown.append(line)
        match = _FRAME.match(line)
        if match is None or (match["file"], int(match["line"]), match["name"]) not in known:
            continue
        if index + 1 < len(lines) and lines[index + 1].startswith(_SOURCE):
            continue
        source = linecache.getline(match["file"], int(match["line"])).strip()
        if source:
            shown.append(f"{_SOURCE}{source}")
    return "\n".join(shown)


def _told(row: dict[str, Any]) -> tuple[str, str]:
    """Return (message, traceback) from the error file of a rank."""
    error = row.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    if not isinstance(message, dict):
        return str(message or "it raised an exception"), ""
    extra = message.get("extraInfo")
    return str(message.get("message") or ""), str(extra.get("py_callstack") or "") if isinstance(extra, dict) else ""


def _raised(controller: Controller, job_id: str, row: dict[str, Any], seal_key: bytes) -> BaseException:
    """Return the exception of a rank, caused by its traceback; a RemoteError if it cannot be rebuilt here."""
    message, trace = _told(row)
    exception: BaseException | None = None
    if row.get("sha256"):
        try:
            left = results.load(controller, job_id, row, seal_key)
            message = f"{left['type']}: {left['message']}" if left["message"] else str(left["type"])
            trace = with_source(left["traceback"], left["frames"])
            exception = left["exception"]
        except results.Unsealed:  # nothing of it is opened
            pass
        except Exception as error:  # rebuilding may need a missing module, or fail in any way; the text is known without it
            if isinstance(error, GpuctlError):
                raise
    raised = exception if isinstance(exception, BaseException) else RemoteError(message)
    raised.__cause__ = RemoteTraceback(trace) if trace else None
    raised.__suppress_context__ = True
    return raised


def _first_exception(rows: list[dict[str, Any]], rank: int | None) -> dict[str, Any] | None:
    exceptions = [row for row in rows if row["kind"] == "exception"]
    exact = [row for row in exceptions if row["rank"] == rank]
    return next(iter(exact or exceptions), None)


def _sentence(view: dict[str, Any], row: dict[str, Any] | None) -> str:
    state, reason = view["state"], view["reason"]
    title = f"job {view['id']}" + (f" ({view['name']})" if view["name"] else "")
    if state == "CANCELED":
        return f"{title} was canceled"
    if state == "TIMED_OUT":
        limit = (view.get("spec") or {}).get("time_limit_s")
        return f"{title} ran longer than its timeout" + (f" of {limit:g} s" if limit else "") + " and was stopped"
    if view["cause"] == "RESULT_MISSING" or not reason:
        reason = reason or "a rank failed"
    text = f"{title} failed: {reason}"
    if view["failed_rank"] is not None and f"rank {view['failed_rank']} " not in text:
        text += f" (rank {view['failed_rank']} on node {view['failed_node']})"
    if row is not None and _told(row)[0].split("\n")[0][:100] not in text:
        text += f": {_told(row)[0]}"
    return " ".join(text.split())


def of(controller: Controller, job_id: str, seal_key: bytes) -> JobFailed:
    """Return the exception for a job that has ended in another state than SUCCEEDED."""
    view = controller.get(f"/v1/jobs/{job_id}")
    state, rank = str(view["state"]), view["failed_rank"]
    row = _first_exception(results.rows(controller, job_id), rank) if state == "FAILED" else None
    failed = job_failed(_sentence(view, row), job_id, state, rank, view["failed_node"])
    if row is not None:
        raised = _raised(controller, job_id, row, seal_key)
        failed = failed.of_kind(raised)
        failed.__cause__ = raised
    return failed
