# SPDX-License-Identifier: Apache-2.0
"""One call of a program instead of a function: a Python file runs once per rank, and there are no values.

With remote=False the file runs in its place, in this process's working folder. Otherwise it is sent with the working folder if it lies
below that, else with its own folder. If no folder is to be sent, or that folder is not a project's, the file is sent by itself. The modules
and packages beside it are then sent as one zip, which is on the path of the ranks.
"""

from __future__ import annotations

import base64
import copy
import io
import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from serverless_gpu._internal.api.controller import connect
from serverless_gpu._internal.calls import defaults, failure, spec
from serverless_gpu._internal.calls.call import DistributedFunctionCall
from serverless_gpu._internal.messages import Messages
from serverless_gpu._internal.pack import packaging
from serverless_gpu._internal.pack.modules import EPOCH
from serverless_gpu._internal.pack.payload import INLINE_BYTES, Payload
from serverless_gpu.launcher import Options

BESIDE = "gpuctl-beside.zip"
BESIDE_FILES = 2000  # more than any project has: the folder holds other things
BESIDE_BYTES = 64 * 1024 * 1024

# Runs after the node has set the visible GPUs of a rank.
HIDING_GPUS = "import os, sys; os.environ['CUDA_VISIBLE_DEVICES'] = ''; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"


def _beside(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield (path in the zip, file) for the modules of a folder and of the packages below it, without hidden folders and environments."""
    for where, folders, files in os.walk(folder):
        here = Path(where)
        folders[:] = sorted(name for name in folders if name.isidentifier() and not (here / name / "pyvenv.cfg").exists())
        for name in sorted(files):
            if name.endswith(".py"):
                yield (here / name).relative_to(folder).as_posix(), here / name


def _zip_beside(file: Path) -> Payload | None:
    """Return the modules beside the file; None if there are none, or, with a warning, more than a project has."""
    import zipfile

    buffer = io.BytesIO()
    count = 0
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, source in _beside(file.parent):
            if source == file or not source.is_file():
                continue
            count += 1
            if count > BESIDE_FILES or buffer.tell() > BESIDE_BYTES:
                warnings.warn(
                    f"{file.parent} holds too many Python files to travel with {file.name}, which goes alone: give it a folder of its own",
                    stacklevel=2,
                )
                return None
            archive.writestr(zipfile.ZipInfo(name, EPOCH), source.read_bytes(), zipfile.ZIP_DEFLATED)
    return Payload([buffer.getvalue()]) if count else None


def _in_its_folder(options: Options, path: Path) -> Options:
    """Return options that send the file's folder, if the working folder would be sent and does not contain the file."""
    try:
        here = Path(os.path.realpath(os.getcwd()))
    except FileNotFoundError:  # the folder was deleted meanwhile
        here = Path("/nowhere")
    folder = Path(os.path.realpath(path)).parent
    if options.working_dir is not True or here in (folder, *folder.parents) or folder in (Path("/"), Path(os.path.realpath(Path.home()))):
        return options
    changed = copy.copy(options)
    changed.working_dir = str(folder)
    return changed


class ProgramCall(DistributedFunctionCall):
    """A call of a program under way."""

    @classmethod
    def of_file(cls, file: str, arguments: Sequence[str], options: Options, hide_gpus: bool = False) -> ProgramCall:
        """Read the files to send, then find the controller. Nothing is submitted yet. Raises FileNotFoundError."""
        path = Path(os.path.abspath(file))
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path} to run")
        messages = Messages(options.quiet)
        controller = connect(messages)
        options = defaults.resolve(controller, options)
        job = spec.build(options, lambda: None, own_host=controller.context.embedded)
        start = ["python", *(["-c", HIDING_GPUS] if hide_gpus else [])]  # "python" stands for the job's Python
        if not options.remote:
            uploads = packaging.pack(job, options, controller.context, messages)
            job["command"] = [*start, str(path), *arguments]
            return cls(controller, options, job, Payload(), messages, uploads)
        try:
            uploads = packaging.pack(job, _in_its_folder(options, path), controller.context, messages)
        except ValueError as error:  # for example because the folder is too large
            uploads = packaging.pack(job, options, controller.context, messages)
            warnings.warn(f"{path.name} goes without the folder that it lies in: {error}", stacklevel=5)
        inside = packaging.path_within(uploads, path)
        call = cls(controller, options, job, Payload([path.read_bytes()]), messages, uploads)
        job["command"] = [*start, inside or path.name, *arguments]
        if inside is None:
            call._travel(path)
        return call

    def _travel(self, path: Path) -> None:
        """Add the files to the job. Files that are too large for the job itself are uploaded first."""
        files: list[dict[str, str]] = []
        beside = _zip_beside(path)
        if beside is not None:
            env = self._job.setdefault("env", {})
            env["PYTHONPATH"] = os.pathsep.join(filter(None, [env.get("PYTHONPATH"), BESIDE]))
        for name, content in ((path.name, self._function), (BESIDE, beside)):
            if content is None:
                continue
            if content.size <= INLINE_BYTES:
                files.append({"path": name, "base64": base64.b64encode(content.joined()).decode()})
            else:
                self._uploads[f"files[{len(files)}].blob"] = content
                files.append({"path": name, "blob": content.sha256})
        self._job["files"] = files

    def _what(self) -> dict[str, Any]:
        self._absent = dict(self._uploads)
        return {}

    def results(self) -> list[Any]:
        """Return no values. Raises JobFailed if the job did not succeed."""
        assert self.job_id is not None and self.state is not None, "waiting comes first"
        if self.state != "SUCCEEDED":
            raise failure.of(self._asking(), self.job_id, self._seal_key)
        return []
