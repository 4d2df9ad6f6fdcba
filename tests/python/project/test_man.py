# SPDX-License-Identifier: Apache-2.0
"""The man pages of a build: one for each program and verb, with the options that there are, and in the form that man wants."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("GPUCTL_BUILD", ROOT / "build"))
PAGES = BUILD / "docs" / "man"
SLURM = ("srun", "squeue", "scancel", "sinfo", "sacct")  # what gpuctl is by these names
PROGRAMS = {"gpuctl": "client/cli/gpuctl", "gpuctld": "daemon/gpuctld", "gpuagent": "agent/gpuagent"}


@cache
def say(program: str, *words: str) -> str:
    called = words if words and words[0] in SLURM else (program, *words)
    return subprocess.run([*called, "--help"], executable=BUILD / PROGRAMS[program], check=True, stdout=subprocess.PIPE, text=True).stdout


def verbs(*group: str) -> list[str]:
    listed = re.search(r"\nVerbs:\n((?:  .*\n)+)", say("gpuctl", *group))
    return re.findall(r"^  (\S+)", listed[1], re.MULTILINE) if listed else []


def options(program: str, *words: str) -> set[str]:
    """Those of a program or a verb, of a group of verbs those of all."""
    found = set(re.findall(r"^ {2,6}(?:-\S, )?(--[a-z][a-z0-9-]+)", say(program, *words), re.MULTILINE))
    if program == "gpuctl" and words:
        for verb in verbs(*words):
            found |= options(program, *words, verb)
    return found


def show(page: str) -> str:
    """A page as a person reads it."""
    environment = {**os.environ, "MANWIDTH": "1000", "LC_ALL": "C.UTF-8", "MAN_KEEP_FORMATTING": ""}
    command = ["man", "--warnings=all", "--encoding=UTF-8", "--local-file", str(PAGES / page)]
    ran = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert ran.stderr == b"", f"{page}: {ran.stderr.decode()}"
    return re.sub(".\b|\x1b\\[[0-9;]*m", "", ran.stdout.decode()).replace("‐", "-").replace("−", "-")


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """The command lines of ours in a page, as (program, words)."""
    for match in re.finditer(r"^ +(?:\w+=\$\()?(gpuctl|gpuctld|gpuagent) ((?:[a-z]|--).*)$", text, re.MULTILINE):
        words = re.split(r" -- | \| |>", match[2])[0].split()
        if match[1] != "gpuctl" or words[0] in verbs():
            yield match[1], words


@pytest.mark.parametrize("page", ["gpuctl.1", "gpuctld.8", "gpuagent.8", "gpushim.8", "gpuctl-config.5"])
def test_each_program_and_the_settings_have_a_page(page: str) -> None:
    assert "DESCRIPTION" in show(page)


def test_each_verb_has_a_page_with_all_its_options_and_nothing_is_a_page_without_a_verb() -> None:
    assert {f"gpuctl-{verb}.1" for verb in (*verbs(), *SLURM)} == {path.name for path in PAGES.glob("gpuctl-*.1")}
    for verb in (*verbs(), *SLURM):
        text = show(f"gpuctl-{verb}.1")
        missing = {name for name in options("gpuctl", verb) if not re.search(rf"^ +(-\S, )?{name}\b", text, re.MULTILINE)}
        assert not missing, f"gpuctl-{verb}(1) lacks {missing}"


def test_no_page_names_an_option_that_does_not_exist() -> None:
    ours = set().union(*(options(program) for program in PROGRAMS), *(options("gpuctl", verb) for verb in (*verbs(), *SLURM)))
    ours |= options("gpuctld", "init") | options("gpuagent", "join")
    ours |= {name.replace("--", "--no-", 1) for name in ours}  # of flags
    others = {"--user", "--now", "--parsable2", "--lr"}  # of systemctl, of sacct, and of a program that is trained with
    for path in PAGES.glob("*.[158]"):
        text = re.sub(r" -- .*", "", show(path.name))  # without the commands of jobs
        unknown = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", text)) - ours - others
        assert not unknown, f"{path.name} names {unknown}"
        for program, words in commands(text):
            known = options(program, *words[:1]) if program == "gpuctl" or words[:1] in (["init"], ["join"]) else options(program)
            unknown = {word.split("=")[0] for word in words if re.match("--[a-z]", word)} - known
            assert not unknown, f"{path.name} shows {program} {' '.join(words)}"
