# SPDX-License-Identifier: Apache-2.0
"""The lock of this Python's environment: a requirements file with the version of each package that an installer has put on sys.path, so
that a node can build the same. A package that does not come from an index is listed by its address.

Packages are found by the names of their .dist-info folders; none is imported and no metadata parsed. The lock is kept until one of the
folders of sys.path changes, so the next lock includes packages from `%pip install`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit, urlunsplit

SUFFIX = ".dist-info"
OURS = frozenset(("gpuctl", "gpuctl-air", "gpuctl-pyspark", "serverless-gpu"))  # their modules are sent with every function
TOOLS = frozenset(("pip", "setuptools", "wheel", "pkg-resources"))  # every environment has its own
NOT_INSTALLERS = ("", "debian")  # packages of the system come from the system
# Packages of PyTorch's own indexes, one index for each version of CUDA: torch==2.1.0+cu118 exists only there.
PYTORCH = frozenset(("torch", "torchvision", "torchaudio", "torchtext", "torchao", "torchrec", "fbgemm-gpu", "torch-tensorrt", "xformers"))
PYTORCH_INDEX = "https://download.pytorch.org/whl"
ROOTS = ("", "src", "lib", "python")  # folders of a source tree that may hold its modules


class Local(NamedTuple):
    """A package that was installed from a folder or a file of this machine, which no node can fetch."""

    name: str
    place: str  # the path from which it was installed
    roots: list[str]  # real paths of the folders from which its modules are imported, if they are read in place
    info: str = ""  # its .dist-info folder
    is_editable: bool = False


class Lock(NamedTuple):
    """A requirements file, "" if it is empty, and the packages that it cannot name."""

    text: str
    local: list[Local]
    unlabelled: tuple[str, ...] = ()  # packages whose version label belongs to no known index, as "name==1.0+label"


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _from_metadata(folder: str) -> tuple[str, str]:
    """Return name and version from the metadata, for a folder whose name lacks them; "" for missing ones."""
    head = _read(os.path.join(folder, "METADATA")).partition("\n\n")[0]
    found = dict(re.findall(r"^(Name|Version):[ \t]*(\S+)", head, re.MULTILINE))
    return found.get("Name", ""), found.get("Version", "")


def _name_and_version(folder: str) -> tuple[str, str]:
    """Return the name in the spelling of indexes, and the version, of a .dist-info folder."""
    parts = os.path.basename(folder)[: -len(SUFFIX)].split("-")
    name, version = parts if len(parts) == 2 and parts[1][:1].isdigit() else _from_metadata(folder)
    return re.sub(r"[-_.]+", "-", name).lower(), version.replace("_", "-")


def _index_of(name: str, version: str) -> str | None:
    """Return the index for a version with a label such as +cu118; None if none is known, or if its build does not use GPUs."""
    label = version.partition("+")[2]
    if name not in PYTORCH or re.fullmatch(r"cu\d+", label) is None:
        return None
    return f"{PYTORCH_INDEX}{'/nightly' if '.dev' in version else ''}/{label}"


def _direct(folder: str) -> dict[str, Any]:
    """Return the origin of a package that does not come from an index; {} otherwise."""
    try:
        found = json.loads(_read(os.path.join(folder, "direct_url.json")) or "{}")
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}


def _without_password(url: str) -> str:
    """Return the address without a password, which stays on this machine. Variables and bare user names are no secrets."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=host)) if at and ":" in user and "$" not in user else url


def _address(direct: dict[str, Any]) -> str | None:
    """Return the text behind the @ for a package that was installed from an address; None for one of this machine."""
    url = _without_password(str(direct.get("url", "")))
    if urlsplit(url).scheme in ("", "file"):
        return None
    fragments = []
    source = direct.get("vcs_info")
    if source:
        url = f"{source.get('vcs', 'git')}+{url}@{source.get('commit_id', '')}"
    else:
        hashes = (direct.get("archive_info") or {}).get("hashes") or {}
        fragments += [f"sha256={hashes['sha256']}"] if "sha256" in hashes else []
    fragments += [f"subdirectory={direct['subdirectory']}"] if direct.get("subdirectory") else []
    return "#".join([url, *(["&".join(fragments)] if fragments else [])])


def module_names(folder: str) -> list[str]:
    """Return the import names of a package, from its .dist-info folder; [] if that does not tell."""
    names = _read(os.path.join(folder, "top_level.txt")).split()
    if not names:
        first = {line.split(",")[0].split("/")[0] for line in _read(os.path.join(folder, "RECORD")).splitlines()}
        names = [name[:-3] if name.endswith(".py") else name for name in first if re.fullmatch(r"[A-Za-z_]\w*(\.py)?", name)]
    return sorted(name for name in names if not name.startswith("__editable__"))


def _import_root(name: str) -> str | None:
    """Return the folder in which a module is found, for a module outside its source tree."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    places = list(spec.submodule_search_locations or ()) or [spec.origin or ""]
    return os.path.dirname(places[0]) or None


def _roots(folder: str, direct: dict[str, Any], place: str) -> list[str]:
    """Return the folders from which a local package's modules are read: its source tree, by names or by its .pth file."""
    if not os.path.isdir(place):
        return []
    names = module_names(folder)
    roots = [os.path.join(place, root) for root in ROOTS]
    found = {root for root in roots for name in names if os.path.exists(os.path.join(root, name)) or os.path.exists(f"{root}/{name}.py")}
    if (direct.get("dir_info") or {}).get("editable"):
        found.update(root for root in map(_import_root, names) if not found and root is not None)
        for line in _read(os.path.join(folder, "RECORD")).splitlines():
            file = line.split(",")[0]
            if file.endswith(".pth"):
                lines = _read(os.path.join(os.path.dirname(folder), file)).splitlines()
                found.update(path for path in lines if os.path.isabs(path) and os.path.isdir(path))
    return sorted({os.path.realpath(root) for root in found})


def _folders(place: str) -> Iterator[str]:
    """Yield the .dist-info folders of an entry of sys.path."""
    try:
        with os.scandir(place) as found:
            yield from sorted(entry.path for entry in found if entry.name.endswith(SUFFIX) and entry.name[0] != "~")
    except OSError:
        return


def _build(places: list[str]) -> Lock:
    lines: dict[str, str | None] = {}
    local: list[Local] = []
    indexes: set[str] = set()
    unlabelled: list[str] = []
    for folder in (folder for entry in places for folder in _folders(entry)):
        installer = _read(os.path.join(folder, "INSTALLER")).strip()
        name, version = _name_and_version(folder)
        if installer.lower() in NOT_INSTALLERS or not name or not version or name in lines or name in OURS or name in TOOLS:
            continue
        direct = {} if installer == "conda" else _direct(folder)  # conda's direct_url.json names the place of its build
        address = _address(direct) if direct else None
        if not direct and "+" in version:
            index = _index_of(name, version)
            if index is not None:
                indexes.add(f"--extra-index-url {index}\n")
            else:
                unlabelled += [] if name in PYTORCH else [f"{name}=={version}"]
                version = version.partition("+")[0]
        lines[name] = f"{name} @ {address}" if address else None if direct else f"{name}=={version}"
        if lines[name] is None:
            place = unquote(urlsplit(str(direct.get("url", ""))).path)
            editable = bool((direct.get("dir_info") or {}).get("editable"))
            local.append(Local(name, place, _roots(folder, direct, place), folder, editable))
    text = "".join(f"{lines[name]}\n" for name in sorted(lines) if lines[name] is not None)
    return Lock("".join(sorted(indexes)) + text, local, tuple(unlabelled))


def _places() -> dict[str, int]:
    """Return the folders of sys.path in its order, with the time of their last change in ns."""
    found: dict[str, int] = {}
    for entry in sys.path:
        path = os.path.abspath(entry)
        try:
            status = os.stat(path)
        except OSError:
            continue
        if stat.S_ISDIR(status.st_mode):
            found.setdefault(path, status.st_mtime_ns)
    return found


_kept: tuple[list[tuple[str, int]], Lock] | None = None


def lock() -> Lock:
    """Return the present lock."""
    global _kept
    places = _places()
    key = list(places.items())
    if _kept is None or _kept[0] != key:
        _kept = key, _build(list(places))
    return _kept[1]


def is_read_from(local: Local, root: Path, inner: set[str]) -> list[str] | None:
    """Return the paths from `root`, among its `inner` folders, from which a package's modules are imported; None if one lies elsewhere."""
    paths = [os.path.relpath(path, root) for path in local.roots]
    return paths if paths and all(path == "." or path in inner for path in paths) else None
