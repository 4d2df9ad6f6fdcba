# SPDX-License-Identifier: Apache-2.0
"""What stands in a program, a library or an object file against those who would exploit a bug of it, as binutils tell."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

PAGE_BYTES = 4096


def output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


def weaknesses(program: Path, search: str | None = None) -> list[str]:
    """What the linker has left open in a program. `search`: where alone it may look for libraries, beside the system's folders."""
    told = output("readelf", "--wide", "--file-header", "--program-headers", "--dynamic", program)
    segments = re.findall(r"^  ([A-Z_]+) +(?:0x[0-9a-f]+ +){5}([RWE ]{3}) 0x", told, re.MULTILINE)
    flags = " ".join(re.findall(r"\(FLAGS(?:_1)?\) +(.*)", told)).split()
    stacks = [access for name, access in segments if name == "GNU_STACK"]
    paths = re.findall(r"\((?:RPATH|RUNPATH)\) .*\[(.*)\]", told)
    found = {
        "its address is fixed": re.search(r"^ +Type: +DYN ", told, re.MULTILINE) is None or "PIE" not in flags,
        "no part is read-only after relocation": "GNU_RELRO" not in dict(segments),
        "functions are bound late": not {"NOW", "BIND_NOW"} & set(flags),
        "its stack is executable": stacks == [] or any("E" in access for access in stacks),
        "a part is both writable and executable": any(name == "LOAD" and {"W", "E"} <= set(access) for name, access in segments),
        "its code is relocated": "(TEXTREL)" in told or "TEXTREL" in flags,
        f"it looks for libraries in {paths}": set(paths) - {search} != set(),
    }
    return [text for text, weak in found.items() if weak]


def wanted(files: Iterable[Path], dynamic: bool) -> set[str]:
    """The functions that programs want of libraries, or object files of others."""
    told = output("nm", "--undefined-only", "--format=just-symbols", *(["--dynamic"] if dynamic else []), *files)
    return {line.split("@")[0] for line in told.splitlines()}


def unguarded(names: set[str]) -> list[str]:
    """What the compiler has left out of something that wants these functions."""
    checked = {name for name in names if re.fullmatch(r"__\w+_chk", name)}
    found = {"no stack is guarded": "__stack_chk_fail" not in names, "no size is checked": not checked}
    return [text for text, weak in found.items() if weak]


def leaps(file: Path) -> list[str]:
    """Instructions that move the stack of an x86-64 by more than a page, and so perhaps over the page that guards it."""
    code = output("objdump", "--disassemble", "--no-show-raw-insn", file)
    moves = re.findall(r"(sub +\$0x([0-9a-f]+),%rsp)", code)
    return [text for text, bytes_ in moves if PAGE_BYTES < int(bytes_, 16) < 1 << 63]  # those above move it back
