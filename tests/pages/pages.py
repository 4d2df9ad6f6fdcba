# SPDX-License-Identifier: Apache-2.0
"""The blocks of our pages, as tests read them. A block of Markdown says behind its language how it is executed, where no reader sees it:

    ```sh on=checkout JOB="$(gpuctl submit -- sleep 600)"

or, where that would be a long line, in a comment above it, which may have several lines:

    <!-- block JOB="$(gpuctl submit -- sleep 600)" -->

Languages are sh; console, whose lines that begin with "$ " are commands and whose others are what these say; python; text; and those of
files. What stands behind them is split as a shell splits words. Any of these is a directive:

    on=PLACE        where it is executed: checkout (the folder of this checkout), controller, node (a machine of tests/machines);
                    without it, in the folder of the page's reader
    before=COMMANDS of a shell, which no reader sees; after=COMMANDS likewise, also when the block has failed
    file=NAME       the block is that file in the reader's folder
    output          of text: what the block before it says
    varies=A|B|...  of an output: what differs from one time to the next; "..." stands for any text, and does so in any output
    fails           its last command exits with another code than 0
    figure          of text: a drawing, or a form of something; there is nothing to execute
    later           executed behind all others of the page, as it shows what they prepare
    until=COMMAND   the block's commands do not end: they stay until the page does, and are up when this command succeeds
    skip=WHY        it cannot be executed in a test

Any other NAME=VALUE is a placeholder: where the block has NAME as a word, VALUE is executed, as a shell expands it between double quotes
just before the block is. A man page has the same in a comment, "; sh NAME=VALUE", above the block.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

COMMANDS = {"sh", "console", "python"}
FLAGS = {"output", "fails", "figure", "later"}
DIRECTIVES = {"on", "before", "after", "file", "varies", "until", "skip"}
PLACES = {"here", "checkout", "controller", "node"}


@dataclass
class Block:
    """One block of a page, and how it is executed."""

    page: str
    line: int
    language: str
    text: str
    flags: set[str] = field(default_factory=set)
    directives: dict[str, str] = field(default_factory=dict)
    placeholders: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def place(self) -> str:
        return self.directives.get("on", "here")

    @property
    def is_executed(self) -> bool:
        return self.language in COMMANDS and "skip" not in self.directives

    @property
    def varying(self) -> list[str]:
        return [text.strip() for text in self.directives.get("varies", "").split("|") if text.strip()]

    def filled(self, shell: Callable[[str], str]) -> str:
        """The text with its placeholders replaced by what a shell says that they stand for."""
        text = self.text
        for name, value in self.placeholders.items():
            meant = shell(f'meant="{value}"; printf %s "$meant"')
            text = re.sub(as_word(name), lambda _, meant=meant: meant, text)  # type: ignore[misc]
        return text

    @property
    def is_machine(self) -> bool:
        return self.place in ("controller", "node")


def block(page: str, line: int, info: str, text: str) -> Block:
    """The block with these words behind its fence. ValueError: they mean nothing."""
    words = shlex.split(info)
    made = Block(page, line, words[0] if words else "", text)
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if not equals and name in FLAGS:
            made.flags.add(name)
        elif equals and name in DIRECTIVES:
            made.directives[name] = value
        elif equals and name:
            made.placeholders[name] = value
        else:
            raise ValueError(f"{made.name}: {word!r} is neither a directive nor NAME=VALUE")
    if made.place not in PLACES:
        raise ValueError(f"{made.name}: no place is called {made.place}")
    if made.language not in COMMANDS and not made.flags & {"output", "figure"} and "file" not in made.directives:
        raise ValueError(f"{made.name}: say what it is: sh, console, python, text output, text figure, or file=NAME")
    for name in [*made.placeholders, *made.varying]:
        if not re.search(as_word(name), text):
            raise ValueError(f"{made.name}: {name!r} does not stand in the block")
    return made


def as_word(name: str) -> str:
    """A pattern for this text where it is no part of a longer word."""
    start = r"(?<![\w-])" if name[0].isalnum() else ""
    end = r"(?![\w-])" if name[-1].isalnum() else ""
    return f"{start}{re.escape(name)}{end}"


def read_markdown(path: Path) -> list[Block]:
    found: list[Block] = []
    info, begin, lines = None, 0, list[str]()
    comment: list[str] | None = None  # that says how the next block is executed
    blank, is_open = True, False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if info is None and line.startswith("```"):
            info, begin, lines = " ".join([line.removeprefix("```"), *(comment or [])]), number, []
            comment = None
        elif info is not None and line == "```":
            found.append(block(path.relative_to(ROOT).as_posix(), begin, info, "\n".join(lines) + "\n"))
            info = None
        elif info is not None:
            lines.append(line)
        elif is_open or line.startswith("<!-- block"):
            comment = [*(comment or []), line.removeprefix("<!-- block").removesuffix("-->").strip()]
            is_open = not line.endswith("-->")
        elif comment is not None and line.strip():
            raise ValueError(f"{path}:{number}: the comment above is of no block")
        elif blank and line.startswith("    "):
            raise ValueError(f"{path}:{number}: a block that is only indented cannot say how it is executed; use a fence")
        blank = not line.strip()
    if info is not None:
        raise ValueError(f"{path}:{begin}: the block has no end")
    return found


def read_manual(path: Path) -> list[Block]:
    """The examples of a page for scdoc. One without a comment is for a shell and has no placeholders."""
    found: list[Block] = []
    info, begin, inside, lines = "sh", 0, False, list[str]()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line == "```" and inside:
            found.append(block(path.relative_to(ROOT).as_posix(), begin, info, "\n".join(lines) + "\n"))
            info, inside = "sh", False
        elif line == "```":
            begin, inside, lines = number, True, []
        elif inside:
            lines.append(line)
        else:
            info = line.removeprefix("; ") if line.startswith("; ") else "sh"
    return found


def of_site() -> list[Path]:
    """The pages of the site in the order of its navigation, in which an administrator would read them."""
    named = re.findall(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    return [ROOT / "docs" / name for name in named]


def pages() -> dict[str, list[Block]]:
    """The blocks of each page that has any, by the page's path in the checkout."""
    ours = [ROOT / "README.md", *of_site(), ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
    markdown = [*ours, *sorted((ROOT / "client").glob("*/README.md"))]
    read = [*map(read_markdown, markdown), *map(read_manual, sorted((ROOT / "docs" / "man").glob("*.scd")))]
    return {blocks[0].page: blocks for blocks in read if blocks}
