# SPDX-License-Identifier: Apache-2.0
"""What torture.c is told and tells: which call of a program fails, which calls it made, and from where.

A site is a place in the code from which such calls come. Its name has functions of our programs, for people who read what failed.
"""

from __future__ import annotations

import bisect
import ctypes
import mmap
import re
import subprocess
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path

from harness import BUILD
from preloaded import preload

LIBRARY = BUILD / "tests" / "faults" / "libtorture.so"
SITES = 16384
WRAPPERS = 128
WHERE = 128

NOMEM, IOERR = 7, 10  # of SQLite

#: The address sanitizer's allocator stays, and sees what calls that fail leave behind.
SANITIZED = b"libasan" in subprocess.run(["ldd", str(BUILD / "daemon" / "gpuctld")], capture_output=True, check=True).stdout

#: Functions that allocate for whoever calls them: their callers are the sites.
WRAPPER = re.compile(
    r"(x(alloc|zalloc|realloc|strdup|strndup|printf)|text_\w+|print_at_end|append_escape|json_text|connection_(step|run|set|text|blob)|there"
    r"|bind\w*|read_(int|int_or|real|text|text_of|blob|digest|digest_or_null)|database_(step|run|query)|column_text)(\.\w+)*"
)


class Kind(IntEnum):
    MEMORY = 0
    DATABASE = 1
    TRANSPORT = 2


#: What can be made to fail in this build.
FAILING = [kind for kind in Kind if not (SANITIZED and kind == Kind.MEMORY)]


class SiteRow(ctypes.Structure):
    _fields_ = [
        ("key", ctypes.c_uint64), ("first", ctypes.c_int64), ("number", ctypes.c_int64), ("times", ctypes.c_int64),
        ("where", ctypes.c_char * WHERE),
    ]  # fmt: skip


class Control(ctypes.Structure):
    """struct control of torture.c."""

    _fields_ = [
        ("program", ctypes.c_char * 32),
        ("kind", ctypes.c_int64), ("number", ctypes.c_int64), ("code", ctypes.c_int64), ("lasting", ctypes.c_int64),
        ("site", ctypes.c_uint64), ("from_site", ctypes.c_int64),
        ("calls", ctypes.c_int64 * len(Kind)),
        ("struck", ctypes.c_int64),
        ("where", ctypes.c_char * WHERE),
        ("recording", ctypes.c_int64),
        ("seed", ctypes.c_uint64),
        ("wrapper_count", ctypes.c_int64),
        ("wrappers", (ctypes.c_uint64 * 2) * WRAPPERS),
        ("site_count", ctypes.c_int64), ("sites_lost", ctypes.c_int64),
        ("sites", SiteRow * SITES),
    ]  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """The call of that kind and number fails, of those from a site where one is named, and all that follow where it lasts."""

    kind: Kind
    number: int
    code: int = NOMEM  # what SQLite says
    lasting: bool = False
    site: int = 0


@dataclass(frozen=True)
class Site:
    """A place that calls; number is that of one of its calls among all, first that of its first."""

    key: int
    first: int
    number: int
    times: int
    name: str


@cache
def functions(program: Path) -> tuple[list[int], list[tuple[str, int]]]:
    """The functions of a program by their addresses: (beginnings, (name, end) of each)."""
    lines = subprocess.run(["nm", "-n", "-S", str(program)], capture_output=True, text=True, check=True).stdout.splitlines()
    rows = [line.split() for line in lines]
    found = sorted((int(row[0], 16), int(row[0], 16) + int(row[1], 16), row[3]) for row in rows if len(row) == 4 and row[2] in "tT")
    return [begin for begin, _, _ in found], [(name, end) for _, end, name in found]


class Torture:
    """The memory that is shared with the one program of that path which is started with `environment`."""

    def __init__(self, folder: Path, program: Path, seed: int = 1):
        self.program = program
        self.path = folder / f"torture.{program.name}"
        self.path.write_bytes(bytes(ctypes.sizeof(Control)))
        with self.path.open("r+b") as file:
            self.memory = mmap.mmap(file.fileno(), 0)
        self.control = Control.from_buffer(self.memory)
        self.control.program = program.name.encode()
        self.control.seed = seed
        begins, names = functions(program)
        wrappers = [(begin, end) for begin, (name, end) in zip(begins, names, strict=True) if WRAPPER.fullmatch(name)]
        self.control.wrapper_count = len(wrappers)
        for at, pair in enumerate(wrappers):
            self.control.wrappers[at][0], self.control.wrappers[at][1] = pair

    def environment(self) -> dict[str, str]:
        return preload(LIBRARY, GPUCTL_TORTURE=str(self.path))

    def arm(self, fault: Fault) -> None:
        """From now on calls are counted anew, and that one fails."""
        self.disarm()
        self.control.kind, self.control.code, self.control.lasting = fault.kind, fault.code, fault.lasting
        self.control.site = fault.site
        self.control.number = fault.number  # last: from now on it counts

    def disarm(self) -> None:
        self.control.number = 0
        self.control.struck = 0
        self.control.where = b""
        self.control.from_site = 0
        for kind in Kind:
            self.control.calls[kind] = 0

    def struck(self) -> str | None:
        """Where the first call failed since the last `arm`; None: none did."""
        return (self.name_of(self.control.where.decode()) or "no known place") if self.control.struck else None

    def record(self, kind: Kind) -> None:
        """From now on sites of that kind are told."""
        self.disarm()
        ctypes.memset(ctypes.addressof(self.control.sites), 0, ctypes.sizeof(SiteRow) * SITES)
        self.control.site_count = self.control.sites_lost = 0
        self.control.recording = kind + 1

    def recorded(self) -> dict[int, Site]:
        """The sites since then."""
        self.control.recording = 0
        assert self.control.sites_lost == 0
        rows = [row for row in self.control.sites if row.key]
        return {row.key: Site(row.key, row.first, row.number, row.times, self.name_of(row.where.decode())) for row in rows}

    def numbers(self, kind: Kind, sites: list[Site]) -> list[int]:
        """The calls that were recorded, from the first that the program itself made: libraries make thousands before it begins."""
        ours = [site.first for site in sites if not site.name.startswith("lib") or " < " in site.name]
        return list(range(min(ours, default=1), self.calls(kind) + 1))

    def calls(self, kind: Kind) -> int:
        return self.control.calls[kind]

    def name_of(self, where: str) -> str:
        """The site with the functions of the program in place of their addresses."""
        return " < ".join(self.frame(part) for part in where.split())

    def frame(self, text: str) -> str:
        module, _, offset = text.partition("+")
        if module != self.program.name:
            return module
        begins, names = functions(self.program)
        at = bisect.bisect_right(begins, int(offset, 16)) - 1
        return f"{names[at][0]}+{int(offset, 16) - begins[at]}" if at >= 0 else text
