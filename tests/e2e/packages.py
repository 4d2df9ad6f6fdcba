# SPDX-License-Identifier: Apache-2.0
"""Small Python packages, made on the spot, and a pip that finds those alone."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

#: setup.py of a package whose installation tells that it goes on, and waits until somebody lets it end.
SLOW_SETUP = """
import pathlib, sys, time
from setuptools import setup
folder = pathlib.Path({folder!r})
with (folder / "begun").open("a") as begun:
    begun.write(" ".join(sys.argv) + "\\n")
while not (folder / "go").exists():
    time.sleep(0.02)
setup(name={name!r}, version="1.0", py_modules=[{name!r}])
"""


def make_wheel(house: Path, name: str, version: str, source: str | None = None) -> Path:
    """A wheel of one module of that name; without a source it says its version."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"version = {version!r}\n" if source is None else source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    path = house / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record += f"{file},sha256={digest},{len(text.encode())}\n"
        wheel.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return path


def make_slow(house: Path, name: str, folder: Path) -> Path:
    """A source archive whose installation appends lines to folder/begun, one a run of its setup.py, and ends once folder/go is there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = house / f"{name}-1.0.tar.gz"
    files = {
        "setup.py": SLOW_SETUP.format(folder=str(folder), name=name),
        f"{name}.py": "WORD = 'slow'\n",
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
    }
    with tarfile.open(path, "w:gz") as archive:
        for file, text in files.items():
            member = tarfile.TarInfo(f"{name}-1.0/{file}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def make_source(house: Path, name: str, backend: str) -> Path:
    """A source archive that builds itself: backend is the module that has build_wheel, and needs no other package."""
    path = house / f"{name}-1.0.tar.gz"
    project = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    with tarfile.open(path, "w:gz") as archive:
        for file, text in (("pyproject.toml", project), ("backend.py", backend)):
            member = tarfile.TarInfo(f"{name}-1.0/{file}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def pip_environment(house: Path) -> dict[str, str]:
    """What makes pip look into house and nowhere else, and build with what is installed."""
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(house), "PIP_NO_BUILD_ISOLATION": "0", "PIP_CONFIG_FILE": "/dev/null"}
