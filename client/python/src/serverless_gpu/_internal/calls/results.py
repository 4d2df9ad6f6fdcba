# SPDX-License-Identifier: Apache-2.0
"""The results of the ranks: the rows of a job's results, and the objects in them. Before a pickle is opened it is compared with its hash,
and with the seal that only the ranks of the call can make: the call's key travels in its payload.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import os
import tempfile
from typing import Any, BinaryIO, cast

from serverless_gpu._internal.api.controller import Controller
from serverless_gpu._internal.pack import payload
from serverless_gpu.errors import ControllerError, ResultUnreadable

SEAL = b"\ngpuctl-seal "
SEAL_BYTES = len(SEAL) + 64 + 1  # with 64 hex digits and the end of the line
PIECE_BYTES = 1024 * 1024
MEMORY_BYTES = 256 * 1024 * 1024  # of a download in memory; a larger one goes to a file


def rows(controller: Controller, job_id: str) -> list[dict[str, Any]]:
    """Return the results of the newest attempt, by rank: {"rank", "kind": "value" | "exception", "size", "sha256", ...}, with small pickles
    in "base64".
    """
    found = list(controller.pages(f"/v1/jobs/{job_id}/results?bytes=1&limit=200", "results", "after"))
    return sorted(found, key=lambda row: int(row["rank"]))


class Unsealed(Exception):
    """A pickle that the ranks of the call have not sealed."""


def _check(digest: str, row: dict[str, Any]) -> None:
    if digest != row["sha256"]:
        raise ControllerError(f"the result of rank {row['rank']} arrived damaged: its SHA-256 is {digest}, and should be {row['sha256']}")


def _check_seal(file: BinaryIO, job_id: str, row: dict[str, Any], seal_key: bytes) -> None:
    """Read an open file to its end. Raises Unsealed unless a rank of the call has pickled what is in it, for this job, as this row."""
    seal = hmac.new(seal_key, f"{job_id} {row['rank']} {row['kind']}\n".encode(), "sha256")
    left = file.seek(0, os.SEEK_END) - SEAL_BYTES
    file.seek(0)
    while left > 0:
        piece = file.read(min(left, PIECE_BYTES))
        seal.update(piece)
        left -= len(piece)
    if not seal_key or left < 0 or not hmac.compare_digest(file.read(), SEAL + seal.hexdigest().encode() + b"\n"):
        raise Unsealed


def _open(file: BinaryIO, job_id: str, row: dict[str, Any], seal_key: bytes) -> Any:
    _check_seal(file, job_id, row, seal_key)
    file.seek(0)
    return payload.load(file)


def load(controller: Controller, job_id: str, row: dict[str, Any], seal_key: bytes) -> Any:
    """Return the object of a row that has a pickle. Raises ControllerError, Unsealed, and any exception of unpickling."""
    encoded: str | None = row.get("base64")
    if encoded is not None:
        data = base64.b64decode(encoded)
        _check(hashlib.sha256(data).hexdigest(), row)
        return _open(io.BytesIO(data), job_id, row, seal_key)
    with tempfile.SpooledTemporaryFile(max_size=MEMORY_BYTES) as file:
        _check(controller.fetch_blob(row["sha256"], cast(BinaryIO, file)), row)
        return _open(cast(BinaryIO, file), job_id, row, seal_key)


def value(controller: Controller, job_id: str, row: dict[str, Any], seal_key: bytes) -> Any:
    """Return the value of a rank. Raises ResultUnreadable if it is not of a rank of this call, or this Python cannot rebuild it.

    Without a key nothing is unpickled: the value is taken from the JSON of the row, if JSON can express it.
    """
    rank = row["rank"]
    if not seal_key and "json" in row:
        return row["json"]
    keep = f"`gpuctl results {job_id} --rank {rank} --save FILE` keeps its bytes"
    try:
        return load(controller, job_id, row, seal_key)
    except ControllerError:
        raise
    except Unsealed:
        lacking = f"the key of job {job_id} is not known here, so the value of rank {rank} was not unpickled"
        message = (
            f"{lacking}: attach to it as the user who submitted it; {keep}"
            if not seal_key
            else f"what is stored as the result of rank {rank} of job {job_id} has no seal of this call's ranks, so it was not unpickled: "
            f"somebody else has written it, or an agent that is older than this client; {keep}"
        )
        raise ResultUnreadable(message, job_id=job_id, rank=rank) from None
    except Exception as error:
        lacks = (
            f"this Python has no module {error.name!r}" if isinstance(error, ModuleNotFoundError) else f"{type(error).__name__}: {error}"
        )
        message = f"what rank {rank} of job {job_id} returned cannot be unpickled here ({' '.join(lacks.split())}); {keep}"
        raise ResultUnreadable(message, job_id=job_id, rank=rank) from error
