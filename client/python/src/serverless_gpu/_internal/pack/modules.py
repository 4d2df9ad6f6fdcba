# SPDX-License-Identifier: Apache-2.0
"""The modules that are sent with every function: a zip of cloudpickle and of this package, which comes first on the ranks' path. It
includes our `databricks.air` if that is in use.

The same versions give the same bytes, so that the controller stores them once. Bytecode lies beside each source, so that a rank compiles
nothing. Python checks only the bytecode's version, and skips it if that does not match. The zip is cached in $XDG_CACHE_HOME/gpuctl.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import sys
import tempfile
from pathlib import Path

from serverless_gpu._internal.api.settings import xdg_folder
from serverless_gpu._internal.pack.payload import Payload

FORMAT = 2  # rises when the zip is built differently
EPOCH = (1980, 1, 1, 0, 0, 0)


def _names() -> tuple[str, ...]:
    """Return the packages that are sent."""
    air = sys.modules.get("databricks.air")
    is_ours = air is not None and getattr(getattr(air, "distributed", None), "__module__", "").startswith("serverless_gpu.")
    return ("cloudpickle", "serverless_gpu", *(["databricks.air"] if is_ours else []))


def _sources(names: tuple[str, ...]) -> list[tuple[str, Path]]:
    """Return (path in the zip, file) of all modules, sorted; [] if this package itself was imported from such a zip."""
    found = []
    for name in names:
        spec = importlib.util.find_spec(name)
        folders = list(spec.submodule_search_locations or ()) if spec is not None else []
        for folder in folders[:1]:
            found += [(f"{name.replace('.', '/')}/{file.relative_to(folder).as_posix()}", file) for file in Path(folder).rglob("*.py")]
    return sorted(found)


def _bytecode(name: str, source: bytes) -> bytes:
    """Return the content of a .pyc that is not compared with its source."""
    import marshal

    code = compile(source, name, "exec", dont_inherit=True)
    flags = 0b01  # by hash, unchecked
    body = marshal.dumps(code, 2)  # later formats depend on the number of references to an object
    return importlib.util.MAGIC_NUMBER + flags.to_bytes(4, "little") + importlib.util.source_hash(source) + body


def _build(sources: list[tuple[str, Path]]) -> bytes:
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted({name.split("/")[0] for name, _ in sources}):
            archive.writestr(zipfile.ZipInfo(f"{name}/", EPOCH), b"")  # zipimport needs it to recognise a namespace package
        for name, file in sources:
            source = file.read_bytes()
            for entry, content in ((name, source), (f"{name}c", _bytecode(name, source))):
                archive.writestr(zipfile.ZipInfo(entry, EPOCH), content)
    return buffer.getvalue()


def _version(sources: list[tuple[str, Path]]) -> str:
    """Return a key of all that decides the zip: names, sizes and times of the sources, and the Python that compiles them."""
    digest = hashlib.sha256(b"%d " % FORMAT + importlib.util.MAGIC_NUMBER)
    for name, file in sources:
        status = file.stat()
        digest.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:32]


def _read_kept(path: Path) -> bytes | None:
    """Return the cached zip; None if there is none or it is damaged. The file is the zip's SHA-256 in hex, then its bytes."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    data = content[64:]
    return data if hashlib.sha256(data).hexdigest().encode() == content[:64] else None


def _keep(path: Path, data: bytes) -> None:
    """Write the file completely or not at all: without a writable cache it only takes longer."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", delete=False) as file:
            file.write(hashlib.sha256(data).hexdigest().encode() + data)
        try:
            os.replace(file.name, path)
        except OSError:
            os.unlink(file.name)
    except OSError:
        pass


def _load(names: tuple[str, ...]) -> bytes:
    inherited = os.environ.get("GPUCTL_MODULES")
    if inherited and __file__.startswith(inherited):  # a function that calls another one passes on its own zip
        return Path(inherited).read_bytes()
    sources = _sources(names)
    path = xdg_folder("XDG_CACHE_HOME", ".cache") / f"modules-{_version(sources)}"
    data = _read_kept(path)
    if data is None:
        data = _build(sources)
        _keep(path, data)
    return data


_made: Payload | None = None
_made_of: tuple[str, ...] = ()


def modules() -> Payload:
    """Return the zip; built once per process, and again when `databricks.air` comes into use."""
    global _made, _made_of
    names = _names()
    if _made is None or _made_of != names:
        _made, _made_of = Payload([_load(names)]), names
    return _made
