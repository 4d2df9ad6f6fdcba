# SPDX-License-Identifier: Apache-2.0
"""The programs of a release build have what compiler and linker can do against those who would exploit a bug of them."""

from __future__ import annotations

import functools
import json
import os
import platform
import subprocess
from pathlib import Path

import pytest

from hardening import leaps, output, unguarded, wanted, weaknesses

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("GPUCTL_BUILD", ROOT / "build"))
STATIC = "gpushim"  # it has libc in it, which is not ours to judge: its object files are looked at


@functools.cache
def programs() -> dict[str, Path]:
    """Those that are installed, by name."""
    targets = json.loads(output("meson", "introspect", "--targets", BUILD))
    found = [Path(target["filename"][0]) for target in targets if target["type"] == "executable" and target["installed"]]
    return {path.name: path for path in found if path.name != "gpuprobe"}  # which is there only where CUDA is


def objects(name: str) -> list[Path]:
    return sorted(Path(f"{programs()[name]}.p").glob("*.o"))


def made(folder: Path, code: str, *options: str) -> Path:
    program = folder / "program"
    subprocess.run(["gcc", "-x", "c", "-", "-o", program, *options], input=code, text=True, check=True)
    return program


NAMES = ["gpuagent", "gpuctl", "gpuctld", "gpushim"]


def test_the_build_is_a_release_and_installs_these_programs() -> None:
    options = {option["name"]: option["value"] for option in json.loads(output("meson", "introspect", "--buildoptions", BUILD))}
    assert (options["buildtype"], options["b_sanitize"]) == ("release", "none"), "GPUCTL_BUILD is no release build"
    assert sorted(programs()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_linker_leaves_nothing_open(name: str) -> None:
    assert weaknesses(programs()[name]) == []


@pytest.mark.parametrize("name", NAMES)
def test_stacks_are_guarded_and_sizes_checked(name: str) -> None:
    names = wanted(objects(name), dynamic=False) if name == STATIC else wanted([programs()[name]], dynamic=True)
    assert unguarded(names) == []


@pytest.mark.skipif(platform.machine() != "x86_64", reason="it reads instructions of x86-64")
@pytest.mark.parametrize("name", NAMES)
def test_no_function_leaps_over_the_page_that_guards_its_stack(name: str) -> None:
    files = objects(name) if name == STATIC else [programs()[name]]
    assert files and [leap for file in files for leap in leaps(file)] == []


def test_what_the_linker_leaves_open_is_found(tmp_path: Path) -> None:
    code = "int main(void) { return 0; }"
    weak = made(tmp_path, code, "-no-pie", "-Wl,-z,norelro,-z,lazy,-z,execstack,-rpath,/build/lib")
    assert weaknesses(weak) == [
        "its address is fixed",
        "no part is read-only after relocation",
        "functions are bound late",
        "its stack is executable",
        "it looks for libraries in ['/build/lib']",
    ]
    strong = ["-pie", "-fPIE", "-Wl,-z,relro,-z,now"]
    assert weaknesses(made(tmp_path, code, *strong, "-Wl,-rpath,/lib/of/ours"), "/lib/of/ours") == []
    both = f'{code} __asm__(".section .both, \\"awx\\"; .byte 0; .text");'
    assert weaknesses(made(tmp_path, both, *strong)) == ["a part is both writable and executable"]
    if platform.machine() == "x86_64":
        address = f'{code} __asm__(".text; .quad main");'
        assert weaknesses(made(tmp_path, address, *strong, "-Wl,-z,notext")) == ["its code is relocated"]


def test_what_the_compiler_leaves_out_is_found(tmp_path: Path) -> None:
    code = """
        #include <stdio.h>
        #include <string.h>
        int main(int count, char **words) { char text[9000]; strcpy(text, words[count - 1]); return puts(text); }
    """
    off = ["-O2", "-U_FORTIFY_SOURCE", "-fno-stack-protector", "-fno-stack-clash-protection"]
    on = ["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-fstack-protector-strong", "-fstack-clash-protection"]
    assert unguarded(wanted([made(tmp_path, code, *off)], dynamic=True)) == ["no stack is guarded", "no size is checked"]
    assert platform.machine() != "x86_64" or leaps(tmp_path / "program") != []
    assert unguarded(wanted([made(tmp_path, code, *on)], dynamic=True)) == []
    assert platform.machine() != "x86_64" or leaps(tmp_path / "program") == []
