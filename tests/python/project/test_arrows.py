# SPDX-License-Identifier: Apache-2.0
"""Arrows between folders run one way: a source includes what its folder may use, as the tables here say and docs/architecture.md draws."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CORE = "daemon/core"

#: Folder, with those in it that are not named themselves: the folders that it uses.
ROOMS = {
    "proto": "",
    "daemon/core": "proto",
    "daemon/store": "daemon/core proto",
    "daemon/blob": "proto",
    "daemon/calendar": "proto",
    "daemon/mlflow": "proto",
    "daemon/vault": "proto",
    "daemon/backup": "daemon/store proto",
    "daemon/writer": "daemon/core daemon/store proto",
    "daemon/objects": "daemon/blob daemon/store proto",
    "daemon/retention": "daemon/blob daemon/mlflow daemon/objects daemon/store daemon/writer proto",
    "daemon/simulate": "daemon/core proto",
    "daemon/traces": "daemon/blob daemon/store proto",
    "daemon/identity": "proto",
    "daemon/notify": "daemon/core daemon/store daemon/writer proto",
    "daemon/http": (
        "daemon/backup daemon/blob daemon/calendar daemon/core daemon/identity daemon/mlflow daemon/notify daemon/objects daemon/retention "
        "daemon/simulate daemon/store daemon/traces daemon/vault daemon/writer proto"
    ),
    "daemon": (
        "daemon/backup daemon/blob daemon/http daemon/identity daemon/notify daemon/objects daemon/store daemon/traces daemon/writer proto"
    ),
    "agent": "proto",
    "client/cli": "daemon/simulate proto",
}
#: The same within a room, each folder above those that it uses. "." is the room's own files.
WITHIN = {
    CORE: {
        "": "explain inputs scheduler lifecycle queue webhooks quota fleet model",
        "explain": "scheduler lifecycle queue quota fleet model",
        "inputs": "scheduler lifecycle queue webhooks quota fleet model",
        "scheduler": "lifecycle queue quota fleet model",
        "lifecycle": "queue webhooks quota fleet model",
        "webhooks": "quota model",
        "queue": "quota fleet model",
        "quota": "fleet model",
        "fleet": "model",
        "model": "",
    },
    "proto/base": {
        "settings": "files text .",
        "http": "crypto text .",
        "files": "crypto text .",
        "crypto": "text .",
        "text": ".",
        "": "",
    },
    "daemon/store": {"reader": ". database", "": "database", "database": ""},
    "daemon/mlflow": {
        "": "runs database call",
        "registry": "runs database call",
        "runs": "database call",
        "search": "database call",
        "database": "call",
        "call": "",
    },
    "daemon/http": {
        "": "streams schedules submit logs mlflow objects queue events api audit usage samples orders secrets request base auth",
        "streams": "api orders request base auth",
        "schedules": "submit api request base auth",
        "submit": "api orders secrets request base auth",
        "webhooks": "api request base auth",
        "events": "request base",
        "agent": "logs mlflow objects api samples orders request base auth",
        "logs": "mlflow kept objects api orders request base auth",
        "mlflow": "kept objects api orders request base auth",
        "kept": "request",
        "queue": "api request base auth",
        "api": "objects audit usage samples orders secrets request base auth",
        "objects": "request base",
        "audit": "request base auth",
        "usage": "samples orders request base",
        "samples": "request base auth",
        "orders": "secrets request base auth",
        "secrets": "base auth",
        "request": "base auth",
        "base": "",
        "auth": "",
    },
    "agent": {
        "node": "stream attempt launch devices objects fetcher base slurm common",
        "stream": "attempt base common",
        "attempt": "launch output environment objects image devices reconciler base shim common",
        "launch": "output base slurm shim common",
        "output": "base shim common",
        "environment": "objects fetcher base common",
        "objects": "base",
        "fetcher": "",
        "image": "",
        "devices": "base",
        "reconciler": "",
        "base": "slurm shim",
        "slurm": "",
        "shim": "common",
        "common": "",
    },
    "client/cli": {
        "": "slurm/commands common controller transport frame show",
        "schedules": "jobs common controller show",
        "jobs": "stream slurm spec bundle common controller transport frame charts show",
        "slurm/commands": "stream slurm spec bundle common controller transport frame show",
        "cluster": "common controller transport login frame show",
        "doctor": "controller transport frame show",
        "contexts": "common transport login show",
        "files": "stream common transport frame show",
        "stream": "common transport frame show",
        "mcp": "common controller transport frame show",
        "top": "top/data common transport frame show",
        "top/data": "transport show",
        "simulate": "controller transport frame charts show",
        "slurm": "spec common transport frame show",
        "spec": "bundle common transport frame show",
        "bundle": "transport show",
        "common": "transport frame show",
        "controller": "transport login frame show",
        "transport": "login frame show",
        "login": "show",
        "frame": "show",
        "charts": "show",
        "show": "",
    },
}
#: What the rest of the daemon sees of the core.
FACE = {"daemon/core/core.h", "daemon/core/model/change.h", "daemon/core/model/rows.h"}

#: The rooms of the Python client's implementation, and those that each imports from: of later lines alone.
INTERNAL = "client/python/src/serverless_gpu/_internal"
IMPORTS = {
    "calls": "show pack api",
    "show": "api",
    "pack": "api",
    "api": "",
}

MOST_IN_A_CYCLE = 6
MOST_FILES = 25

INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def sources(*names: str) -> list[str]:
    """The sources of programs and tests, of names like "*.c"."""
    listed = subprocess.run(["git", "ls-files", *names], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("no checkout of git: the sources cannot be told from what was built")
    return listed.stdout.splitlines()


@pytest.fixture(scope="module")
def includes() -> dict[str, list[str]]:
    """Each source of the programs: the headers of ours that it includes."""
    programs = [path for path in sources("*.c", "*.h") if path.startswith(("proto/", "daemon/", "agent/", "client/"))]
    return {path: INCLUDE.findall((ROOT / path).read_text(encoding="utf-8")) for path in programs}


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """Each Python module of the programs: the rooms of the client's implementation that it imports from."""
    programs = [path for path in sources("*.py") if path.startswith(("agent/", "client/"))]
    return {path: set(re.findall(r"\bserverless_gpu\._internal\.(\w+)", (ROOT / path).read_text(encoding="utf-8"))) for path in programs}


def folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def room_of(path: str) -> str:
    """The innermost folder of ROOMS that the file is in."""
    return max((room for room in ROOMS if path.startswith(room + "/")), key=len)


def cycles_of(edges: dict[str, set[str]]) -> list[set[str]]:
    """Modules that reach each other, the sets with more than one of them."""

    def reached(module: str) -> set[str]:
        found: set[str] = set()
        ahead = [module]
        while ahead:
            for used in edges[ahead.pop()] - found:
                found.add(used)
                ahead.append(used)
        return found

    reach = {module: reached(module) for module in edges}
    groups = {frozenset({module, *(other for other in reach[module] if module in reach[other])}) for module in edges}
    return [set(group) for group in groups if len(group) > 1]


def cycles_in(folder: str, includes: dict[str, list[str]]) -> Iterable[set[str]]:
    """Cycles of modules of one folder: a module is a .c and its .h."""
    modules = {path[:-2] for path in includes if folder_of(path) == folder}
    edges: dict[str, set[str]] = {module: set() for module in modules}
    for path, used in includes.items():
        if path[:-2] in modules:
            edges[path[:-2]] |= {header[:-2] for header in used if header[:-2] in modules and header[:-2] != path[:-2]}
    return cycles_of(edges)


def test_a_folder_includes_what_it_may_use(includes: dict[str, list[str]]) -> None:
    arrows = {(room_of(path), room_of(header), path, header) for path, used in includes.items() for header in used}
    assert sorted(f"{path} includes {header}" for a, b, path, header in arrows if a != b and b not in ROOMS[a].split()) == []
    assert {(a, b) for a, uses in ROOMS.items() for b in uses.split()} == {(a, b) for a, b, _, _ in arrows if a != b}


@pytest.mark.parametrize("room", WITHIN)
def test_within_a_room_arrows_run_one_way(includes: dict[str, list[str]], room: str) -> None:
    def within(path: str) -> str:
        return folder_of(path).removeprefix(room).removeprefix("/")

    allowed = {(folder, used.removeprefix(".")) for folder, uses in WITHIN[room].items() for used in uses.split()}
    arrows = {
        (within(path), within(header), path, header)
        for path, used in includes.items()
        for header in used
        if path.startswith(room + "/") and header.startswith(room + "/")
    }
    assert sorted(f"{path} includes {header}" for a, b, path, header in arrows if a != b and (a, b) not in allowed) == []
    assert allowed == {(a, b) for a, b, _, _ in arrows if a != b}
    folders = list(WITHIN[room])
    assert [(a, b) for a, b in allowed if folders.index(a) >= folders.index(b)] == []


def test_outside_of_the_core_nobody_knows_its_folders(includes: dict[str, list[str]]) -> None:
    seen = {header for path, used in includes.items() for header in used if header.startswith(CORE + "/") and room_of(path) != CORE}
    assert seen == FACE


def test_modules_of_a_folder_include_each_other_in_small_cycles_at_most(includes: dict[str, list[str]]) -> None:
    largest = {folder: max(map(len, cycles_in(folder, includes)), default=1) for folder in {folder_of(path) for path in includes}}
    assert {folder: size for folder, size in largest.items() if size > MOST_IN_A_CYCLE} == {}


def test_a_folder_has_few_files() -> None:
    counts = Counter(folder_of(path) for path in sources("*.c", "*.h", "*.py"))
    assert {folder: count for folder, count in counts.items() if count > MOST_FILES} == {}


def test_the_rooms_of_the_python_client_import_each_other_one_way(imports: dict[str, set[str]]) -> None:
    inside = {path: path.removeprefix(INTERNAL + "/").split("/")[0] for path in imports if path.startswith(INTERNAL + "/")}
    arrows = {(room, used) for path, room in inside.items() if room in IMPORTS for used in imports[path] & IMPORTS.keys() if used != room}
    assert arrows == {(room, used) for room, uses in IMPORTS.items() for used in uses.split()}
    rooms = list(IMPORTS)
    assert [(a, b) for a, b in arrows if rooms.index(a) >= rooms.index(b)] == []


def test_no_cast_takes_const_from_what_the_core_decides_by(includes: dict[str, list[str]]) -> None:
    cast = re.compile(r"\(struct \w+ \*+\)\(uintptr_t\)")
    assert [path for path in includes if path.startswith(CORE + "/") and cast.search((ROOT / path).read_text())] == []
