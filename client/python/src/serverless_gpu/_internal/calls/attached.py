# SPDX-License-Identifier: Apache-2.0
"""Handles of jobs that another process has submitted, by their ids, and the list of the caller's jobs.

What a rank returned is unpickled only with the key of its call: from the file of this host, else from the function that the job's owner has
sent and reads back. Without it, values that JSON can express are known, and exceptions by their text.
"""

from __future__ import annotations

import html
import itertools
from typing import Any
from urllib.parse import quote

from serverless_gpu._internal.api.controller import Controller, connect
from serverless_gpu._internal.calls import failure, seal_keys
from serverless_gpu._internal.calls.call import DistributedFunctionCall
from serverless_gpu._internal.calls.mapping import Failure, MapCall
from serverless_gpu._internal.messages import Messages
from serverless_gpu._internal.pack.payload import Payload
from serverless_gpu.errors import ControllerError
from serverless_gpu.launcher import Options

KEY_BYTES = 32
STATES = ("QUEUED", "HELD", "BLOCKED", "STAGING", "PLACED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELED", "TIMED_OUT")
COLUMNS = ("id", "name", "state", "gpus", "gpu_type", "created_at", "reason")
REASON_CHARACTERS = 60


def _key(controller: Controller, view: dict[str, Any]) -> bytes:
    """Return the key of a job's call; b"" if it cannot be had, or the job is somebody else's, whose pickles are not opened."""
    job_id = view["array_id"] or view["id"]
    known = seal_keys.find(controller.context.state, job_id)
    if known or controller.get("/v1/session")["owner"] != view["owner"]:
        return known
    blob = view["spec"]["function"].get("blob")
    end = b""
    try:
        with controller.stream(f"/v1/blobs/{blob}" if blob else f"/v1/jobs/{job_id}/function", {}) as pieces:
            for piece in pieces:
                end = (end + piece)[-KEY_BYTES:]
    except ControllerError:  # a blob goes a day after the last job that names it; controllers of before have no such route
        return b""
    return end


def _exit_codes(controller: Controller, view: dict[str, Any]) -> list[int]:
    """Return the exit codes of the ranks of the newest attempt, by rank: 128 and the number of the signal that ended one."""
    attempts = controller.pages(f"/v1/jobs/{view['id']}/attempts", "attempts", "cursor")
    newest: list[dict[str, Any]] = next((attempt["ranks"] for attempt in attempts if attempt["attempt"] == view["attempt"]), [])
    ranks = sorted(newest, key=lambda row: int(row["rank"]))
    return [128 + row["signal"] if row["signal"] else row["exit_code"] for row in ranks]


class _Attached(DistributedFunctionCall):
    """A job that was not submitted here. Its key is looked for when a result is wanted."""

    def __init__(self, controller: Controller, view: dict[str, Any]):
        super().__init__(controller, _options(view), {}, Payload(), Messages(quiet=True))
        self._take(view)

    def _take(self, view: dict[str, Any]) -> None:
        self.job_id, self._view = str(view["id"]), view
        self._heard(view)

    def __repr__(self) -> str:
        name = f" ({self._view['name']})" if self._view["name"] else ""
        return f"<call of job {self.job_id}{name}: {self.state}>"

    def results(self) -> list[Any]:
        controller = self._asking()
        if "spec" not in self._view:  # of a list
            self._view = controller.get(self._path())
        if "function" in self._view["spec"]:
            self._options = _options(self._view)
            self._seal_key = self._seal_key or _key(controller, self._view)
            return super().results()
        self._view = controller.get(self._path())
        codes = _exit_codes(controller, self._view)
        if not codes or self.state not in ("SUCCEEDED", "FAILED"):
            raise failure.of(controller, str(self.job_id), b"")
        return codes


class _AttachedMap(MapCall):
    """An array that was not submitted here: calls of `map`, whose arguments are not known here, or tasks of a command."""

    def __init__(self, controller: Controller, view: dict[str, Any]):
        super().__init__(controller, _options(view), {}, Payload(), Messages(quiet=True))
        self.expect(view["array"]["tasks"], None, ordered=True, return_exceptions=False)
        self.job_id = str(view["id"])
        self._heard(view)
        self._is_function = "function" in view["spec"]
        self._view = view

    def __repr__(self) -> str:
        return f"<{self._tasks} calls of job {self.job_id}: {self.state}>"

    def _look(self) -> None:
        if self._is_function and not self._seal_key:
            self._seal_key = _key(self._asking(), self._view)
        super()._look()

    def _value(self, row: dict[str, Any]) -> Any:
        if self._is_function:
            return super()._value(row)
        codes = _exit_codes(self._asking(), row)
        if not codes or row["state"] not in ("SUCCEEDED", "FAILED"):
            return Failure(failure.of(self._asking(), str(row["id"]), b""))
        return codes[0] if row["gpus"] <= 1 else codes


def _options(view: dict[str, Any]) -> Options:
    options = Options()
    options.gpus, options.gpu_type = int(view["gpus"]), view["gpu_type"]
    options.launch_mode = view.get("spec", {}).get("launch_mode")
    options.remote, options.run_async, options.quiet = True, True, True
    return options


def attach(job_id: str) -> DistributedFunctionCall:
    """Return the handle of a job by its id. The job may be an array, and may have ended."""
    if not isinstance(job_id, str) or not job_id:
        raise TypeError(f"job_id must be the id of a job, as in attach('mfrggzdfmztwq2lk'), not {job_id!r}; jobs() lists yours")
    controller = connect(Messages(quiet=True))
    view = controller.get(f"/v1/jobs/{quote(job_id, safe='')}")
    return _AttachedMap(controller, view) if view["array"] else _Attached(controller, view)


# --- the list ---


def _cells(view: dict[str, Any]) -> list[str]:
    texts = {name: "" if view[name] is None else str(view[name]) for name in COLUMNS}
    texts["created_at"] = texts["created_at"][:16].replace("T", " ")
    if len(texts["reason"]) > REASON_CHARACTERS:
        texts["reason"] = f"{texts['reason'][: REASON_CHARACTERS - 3]}..."
    return ["".join(character if character.isprintable() else "?" for character in texts[name]) for name in COLUMNS]


class JobList(list[DistributedFunctionCall]):
    """Handles of jobs, the newest first, which show themselves as a table."""

    def __init__(self, calls: list[DistributedFunctionCall], views: list[dict[str, Any]]):
        super().__init__(calls)
        self._rows = [_cells(view) for view in views]

    def __repr__(self) -> str:
        if not self._rows:
            return "no jobs"
        table = [list(COLUMNS), *self._rows]
        widths = [max(len(row[column]) for row in table) for column in range(len(COLUMNS))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in COLUMNS)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in self._rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def jobs(state: Any, name: Any, limit: Any) -> JobList:
    """Return handles of the caller's jobs, the newest first."""
    states = [] if state is None else [state] if isinstance(state, str) else list(state)
    for item in states:
        if not isinstance(item, str) or item.upper() not in STATES:
            raise ValueError(f"state must be one of {', '.join(STATES)}, or a list of them, not {item!r}")
    if name is not None and (not isinstance(name, str) or not name):
        raise TypeError(f"name must be the name of jobs, not {name!r}")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ValueError(f"limit must be a whole number of at least 1, not {limit!r}")
    controller = connect(Messages(quiet=True))
    query = f"?limit={min(limit, 200)}&owner={quote(controller.get('/v1/session')['owner'], safe='')}"
    query += f"&state={','.join(states).upper()}" if states else ""
    query += "" if name is None else f"&name={quote(name, safe='')}"
    views = list(itertools.islice(controller.pages(f"/v1/jobs{query}", "jobs", "cursor"), limit))
    calls = [attach(view["id"]) if view["array"] else _Attached(controller, view) for view in views]
    return JobList(calls, views)
