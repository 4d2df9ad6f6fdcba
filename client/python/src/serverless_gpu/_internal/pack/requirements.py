# SPDX-License-Identifier: Apache-2.0
"""Turns the parameter `requirements=` into the text of a requirements file: from the path of one, a pyproject.toml, or a list of lines.
Included files become part of it. A line that no node could fetch is refused with its number, and passwords are masked in messages.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

LIMIT_BYTES = 1024 * 1024
PARAMETER = "requirements"
INCLUDE = re.compile(r"(?:-r|--requirement)(?:\s*=\s*|\s+|(?<=-r))(?P<path>.+)")
CONSTRAINT = ("-c", "--constraint")
EDITABLE = ("-e", "--editable")
ARCHIVES = (".whl", ".zip", ".tar.gz", ".tar.bz2")
LINKS = re.compile(r"(?:-f|--find-links)(?:\s*=\s*|\s+)(?!https?:)")
LOCAL_REMEDY = "install it here, and leave requirements= out: then it travels as it is; or publish it to an index or a git repository"
WHEEL = re.compile(r"-(?P<python>[\w.]+)-(?P<abi>[\w.]+)-[\w.]+\.whl$")  # the end of a wheel's name


class RequirementsError(ValueError):
    """The requirements cannot be sent: a file is missing, a line cannot be parsed, or a node could not fetch it."""


def _shown(line: str) -> str:
    """Return a line for a message: short, and without a password."""
    return re.sub(r"://[^/@\s]*@", "://***@", line)[:120]


def _refuse(where: str, line: str, why: str) -> RequirementsError:
    return RequirementsError(f'{PARAMETER}: {where} "{_shown(line)}" {why}')


def _is_of_this_machine(line: str) -> bool:
    """Return whether a requirement is a path, or "name @ path"."""
    if line.startswith("-"):
        return False
    name, at, address = line.partition(";")[0].partition("@")
    if at and "://" not in name:
        return address.strip().startswith(("file:", "/", "./", "../", "~"))
    target = name.partition("[")[0].strip()
    if target.startswith("file:") or target in (".", "..") or target.endswith(ARCHIVES):
        return "://" not in target or target.startswith("file:")
    return "/" in target and "://" not in target


def _python_of_wheel(line: str) -> str | None:
    """Return the Python version of a wheel, "3.12", if it is for one minor version other than this Python's; else None."""
    target = line.partition(";")[0].rpartition("@")[2].partition("#")[0].strip()
    found = WHEEL.search(target)
    tags = re.findall(r"cp(3)(\d+)", found["python"]) if found is not None and "abi3" not in found["abi"] else []
    versions = [f"{major}.{minor}" for major, minor in tags]
    return versions[0] if versions and "{}.{}".format(*sys.version_info[:2]) not in versions else None


def _check(line: str, where: str) -> None:
    """Refuse a line that is valid only on this machine, or for another Python. `line` is without a comment. Raises RequirementsError."""
    other = _python_of_wheel(line)
    if other is not None:
        own = "{}.{}".format(*sys.version_info[:2])
        raise _refuse(where, line, f"is a wheel for Python {other}, and nodes run this one's version, {own}: name the wheel for {own}")
    if line.startswith(CONSTRAINT):
        raise _refuse(where, line, "names constraints, which do not travel: write the versions into the requirements")
    if line.startswith(EDITABLE):
        raise _refuse(where, line, f"is editable, as no copy can be: write the address of its repository without -e, or {LOCAL_REMEDY}")
    if _is_of_this_machine(line):
        raise _refuse(where, line, f"is installed from this machine, where no node can fetch it: {LOCAL_REMEDY}")
    if LINKS.match(line):
        raise _refuse(where, line, "looks for packages on this machine: name the address of a page, or an index by --extra-index-url")


def _joined(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield (number, original line, line without comment and continuation); lines continued by a backslash are one."""
    held: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        held.append(line)
        if line.endswith("\\"):
            continue
        plain = " ".join(re.sub(r"(^|\s)#.*$", "", part).rstrip("\\").strip() for part in held).strip()
        yield number - len(held) + 1, "\n".join(held), plain
        held.clear()
    if held:
        raise RequirementsError(f'{PARAMETER}: the last line ends with a backslash: "{_shown(held[-1])}"')


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        remedy = 'name one that is there, or write a package as a list of lines: requirements=["numpy==2.1.0"]'
        raise RequirementsError(f"{PARAMETER}: there is no file {path}; {remedy}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RequirementsError(f"{PARAMETER}: cannot read {path}: {error}") from error
    if len(text) > LIMIT_BYTES:
        raise RequirementsError(f"{PARAMETER}: {path} is larger than 1 MiB, which no requirements file is")
    return text


def _travelling(text: str, name: str, folder: Path, within: tuple[Path, ...]) -> Iterator[str]:
    """Yield the lines of a text, with included files in place of their lines. `within` are the files that led here."""
    for number, written, plain in _joined(text):
        where = f"{name}:{number}"
        include = INCLUDE.match(plain)
        if include is None:
            _check(plain, where)
            yield written
            continue
        if re.match("https?:", include["path"]):
            raise _refuse(where, plain, "includes a file of the network: fetch it, and name the copy")
        path = (folder / include["path"].strip("\"'")).resolve()
        if path in within:
            raise _refuse(where, plain, "includes a file that includes this one")
        yield from _travelling(_read(path), path.name, path.parent, (*within, path))


def _of_pyproject(path: Path) -> list[str]:
    """Return the lines of [project].dependencies."""
    try:
        import tomllib as toml  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        try:
            import tomli as toml  # type: ignore[import-not-found, no-redef, unused-ignore]
        except ImportError:
            remedy = "install tomli, or name a requirements.txt"
            raise RequirementsError(f"{PARAMETER}: reading {path} takes Python 3.11 or the package tomli: {remedy}") from None
    try:
        document: dict[str, Any] = toml.loads(_read(path))
    except toml.TOMLDecodeError as error:
        raise RequirementsError(f"{PARAMETER}: {path} is not TOML: {error}") from error
    lines = document.get("project", {}).get("dependencies")
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        remedy = "write them there, or name a requirements.txt"
        raise RequirementsError(f"{PARAMETER}: {path} has no list [project].dependencies: {remedy}")
    return lines


def check_form(value: Any) -> Any:
    """Raise TypeError if the parameter has a type that it must not have; return it, a list as a copy."""
    if value is None or isinstance(value, (bool, os.PathLike)) or (isinstance(value, str) and value):
        return value
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) and all(isinstance(line, str) for line in value):
        return list(value)
    raise TypeError(f"{PARAMETER} must be True, False, None, the path of a file, or a list of lines, not a {type(value).__name__}")


def text_of(value: str | os.PathLike[str] | list[str]) -> str:
    """Return the requirements file for a path or a list: each line ends with LF, "" for none. Raises RequirementsError."""
    lines: list[str]
    if isinstance(value, list):
        lines, name, folder = value, "line", Path.cwd()
        broken = [line for line in lines if len(line.splitlines()) > 1]
        if broken:
            first = _shown(broken[0].splitlines()[0])
            raise RequirementsError(f'{PARAMETER}: "{first}" goes on in another line: make that an item of its own')
    else:
        path = Path(os.path.abspath(os.path.expanduser(value)))
        name, folder = path.name, path.parent
        lines = _of_pyproject(path) if path.suffix == ".toml" else _read(path).splitlines()
    within = () if isinstance(value, list) else (path.resolve(),)
    found = list(_travelling("\n".join(lines), name, folder, within))
    return "".join(f"{line}\n" for line in found) if any(line.strip() for line in found) else ""
