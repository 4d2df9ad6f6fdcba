# SPDX-License-Identifier: Apache-2.0
"""The results of the ranks: the rows of a job's results, and the objects in them. Every pickle is compared with its hash before it is
opened.
"""

from __future__ import annotations

import base64
import hashlib
import tempfile
from typing import Any

from serverless_gpu._internal.api.controller import Controller
from serverless_gpu._internal.pack import payload
from serverless_gpu.errors import ControllerError, ResultUnreadable

MEMORY_BYTES = 256 * 1024 * 1024  # of a download in memory; a larger one goes to a file


def rows(controller: Controller, job_id: str) -> list[dict[str, Any]]:
    """Return the results of the newest attempt, by rank: {"rank", "kind": "value" | "exception", "size", "sha256", ...}, with small pickles
    in "base64".
    """
    found = list(controller.pages(f"/v1/jobs/{job_id}/results?bytes=1&limit=200", "results", "after"))
    return sorted(found, key=lambda row: int(row["rank"]))


def _check(digest: str, row: dict[str, Any]) -> None:
    if digest != row["sha256"]:
        raise ControllerError(f"the result of rank {row['rank']} arrived damaged: its SHA-256 is {digest}, and should be {row['sha256']}")


def _download(controller: Controller, row: dict[str, Any]) -> Any:
    """Return the object in a blob. Raises ControllerError, and any exception of unpickling."""
    with tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES) as file:
        digest = hashlib.sha256()
        with controller.stream(f"/v1/blobs/{row['sha256']}", {}) as pieces:
            for piece in pieces:
                digest.update(piece)
                file.write(piece)
        _check(digest.hexdigest(), row)
        file.seek(0)
        return payload.load(file)


def load(controller: Controller, row: dict[str, Any]) -> Any:
    """Return the object of a row that has a pickle. Raises ControllerError, and any exception of unpickling."""
    encoded: str | None = row.get("base64")
    if encoded is None:
        return _download(controller, row)
    data = base64.b64decode(encoded)
    _check(hashlib.sha256(data).hexdigest(), row)
    return payload.loads(data)


def value(controller: Controller, job_id: str, row: dict[str, Any]) -> Any:
    """Return the value of a rank. Raises ResultUnreadable if this Python cannot rebuild it."""
    try:
        return load(controller, row)
    except ControllerError:
        raise
    except Exception as error:
        rank = row["rank"]
        lacks = (
            f"this Python has no module {error.name!r}" if isinstance(error, ModuleNotFoundError) else f"{type(error).__name__}: {error}"
        )
        keep = f"`gpuctl results {job_id} --rank {rank} --save FILE` keeps its bytes"
        message = f"what rank {rank} of job {job_id} returned cannot be unpickled here ({' '.join(lacks.split())}); {keep}"
        raise ResultUnreadable(message, job_id=job_id, rank=rank) from error
