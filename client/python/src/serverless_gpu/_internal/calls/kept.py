# SPDX-License-Identifier: Apache-2.0
"""The files that the ranks of a job kept ($GPUCTL_OUTPUT_DIR): a list of them, and copies in a folder of this machine."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

from serverless_gpu._internal.api.controller import Controller
from serverless_gpu.errors import ControllerError

LIMIT = 4096  # of a page


def rows(controller: Controller, job_id: str) -> list[dict[str, Any]]:
    """Return the files of the newest attempt, by rank and path."""
    return list(controller.pages(f"/v1/jobs/{job_id}/files?limit={LIMIT}", "files", "cursor"))


def complete(controller: Controller, job_id: str) -> bool:
    """Return whether the job has ended and all of its files have come."""
    return bool(controller.get(f"/v1/jobs/{job_id}/files?limit=1")["complete"])


def _place(folder: Path, path: str) -> Path:
    """Return where to write a file. Raises ControllerError for a path that leads out of the folder."""
    parts = PurePosixPath(path).parts
    if path.startswith("/") or len(parts) < 2 or any(part in ("", ".", "..") for part in path.split("/")) or "\0" in path:
        raise ControllerError(f"the controller names a file that cannot be written: {path!r}")
    return folder.joinpath(*parts)


def copy(controller: Controller, job_id: str, row: dict[str, Any], folder: Path) -> None:
    """Copy a file below the folder. It appears whole or not at all."""
    place = _place(folder, row["path"])
    place.parent.mkdir(parents=True, exist_ok=True)
    size = 0
    with tempfile.NamedTemporaryFile(dir=place.parent, prefix=f".{place.name[:200]}.", delete=False) as file:
        try:
            with controller.stream(f"/v1/jobs/{job_id}/files/content?path={quote(row['path'], safe='')}", {}) as pieces:
                for piece in pieces:
                    size += len(piece)
                    file.write(piece)
            if size != row["size"]:
                raise ControllerError(f"{size} bytes of {row['path']} have come, not {row['size']}")
            file.flush()
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(file.name, (0o777 if row["executable"] else 0o666) & ~umask)
            os.replace(file.name, place)
        except BaseException:
            os.unlink(file.name)
            raise
