# SPDX-License-Identifier: Apache-2.0
"""The skill file names verbs and options that gpuctl has, is short, and begins with what agents choose skills by."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from test_man import options, verbs

TEXT = (Path(__file__).resolve().parents[3] / "client" / "skill" / "SKILL.md").read_text()


def commands() -> list[list[str]]:
    """The words of each command of ours, in blocks and between backticks."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", TEXT, flags=re.MULTILINE | re.DOTALL))
    lines = [line for block in blocks for line in block.splitlines()] + spans
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("gpuctl ")]


@pytest.mark.parametrize("words", [words for words in commands() if words[0] != "VERB"], ids=" ".join)
def test_a_command_of_the_skill_file_exists(words: list[str]) -> None:
    verb, *rest = words
    assert verb in verbs()
    used = {word for word in " ".join(rest).split(" -- ")[0].split() if word.startswith("--")}
    assert used <= options("gpuctl", verb), used - options("gpuctl", verb)


def test_an_option_that_stands_alone_is_one_of_submit() -> None:
    alone = set(re.findall(r"`(--[a-z-]+)", TEXT))
    assert len(alone) > 5 and alone <= options("gpuctl", "submit")


def test_the_skill_file_begins_with_its_name_and_description_and_is_short() -> None:
    begin = re.match(r"---\n# SPDX-License-Identifier: Apache-2.0\nname: gpuctl\ndescription: .{50,1024}\n---\n", TEXT)
    assert begin is not None
    assert len(TEXT.splitlines()) <= 120
