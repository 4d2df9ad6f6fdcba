# SPDX-License-Identifier: Apache-2.0
"""The packages that no node can fetch, because they were installed from a folder or a file of this machine. Their files are sent in the
bundle, in a separate folder that is on the path of the job's Python.

Of a package that pip has copied, the files in its RECORD are sent; of an editable one, the modules in its source tree. Both include their
metadata, so that versions and entry points are found. Files in .gitignore are sent, too, because it lists built extensions.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from serverless_gpu._internal.pack.environment import Local, module_names
from serverless_gpu._internal.pack.folder import LEFT_OUT, Entry

FOLDER = ".gpuctl-packages"  # in the bundle
METADATA = ("METADATA", "entry_points.txt", "top_level.txt", "INSTALLER")


def _files(root: str, path: str) -> Iterator[str]:
    """Yield the file at a path of the root, or all files below it, as paths from the root."""
    full = os.path.join(root, path)
    if os.path.isfile(full):
        yield path
    for place, folders, names in os.walk(full):
        if os.path.exists(os.path.join(place, "pyvenv.cfg")):  # a Python environment of this machine
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        yield from (os.path.relpath(os.path.join(place, name), root) for name in sorted(names) if name not in LEFT_OUT)


def _recorded(local: Local) -> Iterator[tuple[str, str]]:
    """Yield (folder, path below it) for the files of a copied package; its programs lie elsewhere and are not included."""
    site = os.path.dirname(local.info)
    try:
        record = (Path(local.info) / "RECORD").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in record.splitlines():
        path = line.rpartition(",")[0].rpartition(",")[0].strip('"')
        if path and not os.path.isabs(path) and ".." not in Path(path).parts and not path.startswith("__editable__"):
            yield site, path


def _sources(local: Local) -> Iterator[tuple[str, str]]:
    """Yield the same for an editable package: its known modules, else everything in the folder from which it is imported."""
    names = module_names(local.info)
    for root in local.roots:
        for name in names or sorted(os.listdir(root)):
            for path in (name, f"{name}.py"):
                if os.path.exists(os.path.join(root, path)) and name not in LEFT_OUT:
                    yield from ((root, file) for file in _files(root, path))
    site = os.path.dirname(local.info)
    yield from ((site, os.path.join(os.path.basename(local.info), name)) for name in METADATA)


def entries(local: Local) -> list[Entry]:
    """Return the entries of a package to send; [] if its files cannot be found."""
    found: dict[str, Entry] = {}
    for root, path in _sources(local) if local.is_editable else _recorded(local):
        source = os.path.realpath(os.path.join(root, path))
        if path.endswith(".pyc") or not os.access(source, os.R_OK) or not os.path.isfile(source):
            continue
        status = os.stat(source)
        within = f"{FOLDER}/{path}"
        found[within] = Entry(within, status.st_mode, status.st_size, status.st_mtime_ns, "", source)
    code = any(not path.startswith(f"{FOLDER}/{os.path.basename(local.info)}/") for path in found)
    return list(found.values()) if code else []


def with_folders(files: list[Entry]) -> list[Entry]:
    """Return the files with their folders, each once, sorted; of two files with one path the first."""
    every: dict[str, Entry] = {}
    for file in files:
        every.setdefault(file.path, file)
    for path in list(every):
        above = os.path.dirname(path)
        while above and above not in every:
            every[above] = Entry(above, stat.S_IFDIR | 0o755, 0, 0, "")
            above = os.path.dirname(above)
    return [every[path] for path in sorted(every)]
