# SPDX-License-Identifier: Apache-2.0
"""One call of a program in place of a function: a Python file runs once per rank, and there are no values.

With remote=False it runs where it lies, in this process's working folder. Otherwise it travels with the working folder where it lies below
that, else with the folder that it lies in. Where no folder is to travel, or that one is no project's, it is a file of its own, and with
it, as one zip that is on the path of the ranks, go the modules and packages that lie beside it.
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

from serverless_gpu._internal import defaults, failure, packaging, spec
from serverless_gpu._internal.call import DistributedFunctionCall
from serverless_gpu._internal.controller import connect
from serverless_gpu._internal.messages import Messages
from serverless_gpu._internal.modules import EPOCH
from serverless_gpu._internal.payload import INLINE_BYTES, Payload
from serverless_gpu.launcher import Options

BESIDE = "gpuctl-beside.zip"
BESIDE_FILES = 2000  # more than a project has: the file lies in a folder of other things
BESIDE_BYTES = 64 * 1024 * 1024

# The node says which GPUs a rank sees; this comes after it.
HIDING_GPUS = "import os, sys; os.environ['CUDA_VISIBLE_DEVICES'] = ''; os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"


def _beside(folder: Path) -> Iterator[tuple[str, Path]]:
    """(path in the zip, file) of the modules of a folder and of the packages below it; hidden folders and environments are none."""
    for where, folders, files in os.walk(folder):
        here = Path(where)
        folders[:] = sorted(name for name in folders if name.isidentifier() and not (here / name / "pyvenv.cfg").exists())
        for name in sorted(files):
            if name.endswith(".py"):
                yield (here / name).relative_to(folder).as_posix(), here / name


def _zip_beside(file: Path) -> Payload | None:
    """The modules beside the file; None where there are none, or more than belong to one project, which is warned of."""
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
    """Options by which the folder of a file travels, where the working folder would and does not hold it."""
    try:
        here = Path(os.path.realpath(os.getcwd()))
    except FileNotFoundError:  # it was deleted under us
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
        """Read what travels, then find the controller; nothing is sent that changes anything. Raises FileNotFoundError."""
        path = Path(os.path.abspath(file))
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path} to run")
        messages = Messages(options.quiet)
        controller = connect(messages)
        options = defaults.resolve(controller, options)
        job = spec.build(options, lambda: None, own_host=controller.context.embedded)
        start = ["python", *(["-c", HIDING_GPUS] if hide_gpus else [])]  # "python" stands for that of the job
        if not options.remote:
            uploads = packaging.pack(job, options, controller.context, messages)
            job["command"] = [*start, str(path), *arguments]
            return cls(controller, options, job, Payload(), messages, uploads)
        try:
            uploads = packaging.pack(job, _in_its_folder(options, path), controller.context, messages)
        except ValueError as error:  # the folder holds more than a project, say
            uploads = packaging.pack(job, options, controller.context, messages)
            warnings.warn(f"{path.name} goes without the folder that it lies in: {error}", stacklevel=5)
        inside = packaging.path_within(uploads, path)
        call = cls(controller, options, job, Payload([path.read_bytes()]), messages, uploads)
        job["command"] = [*start, inside or path.name, *arguments]
        if inside is None:
            call._travel(path)
        return call

    def _travel(self, path: Path) -> None:
        """Name the files that travel; what is too large to ride in the job is sent before it."""
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
        """Nothing. Raises JobFailed where the job did not succeed."""
        assert self.job_id is not None and self.state is not None, "waiting comes first"
        if self.state != "SUCCEEDED":
            raise failure.of(self._asking(), self.job_id)
        return []
