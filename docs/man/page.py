# SPDX-License-Identifier: Apache-2.0
"""Makes the man pages: page.py FOLDER VERSION CHANGELOG GPUCTL GPUCTLD GPUAGENT NAME.SECTION...

What a program says on --help is the source of its synopsis, its options and its verbs, so that no page can name an option that does not
exist, or miss one. What people write beside it is in this folder: PROGRAM.SECTION.scd for each program, where a line `@options@` or
`@verbs@` stands for what the program says, and verbs.scd, with a part `@ VERB` for each verb. scdoc makes the pages of both.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from calendar import timegm
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
SLURM = ("srun", "squeue", "scancel", "sinfo", "sacct")  # what gpuctl is by these names; sbatch is a verb, too
SHARED = {"--url", "--token-file", "--cacert", "--insecure-plain-http", "--help"}  # shown once where there are several verbs


@dataclass
class Help:
    """What --help says, taken apart."""

    usage: str
    summary: str
    options: list[tuple[str, str]] = field(default_factory=list)  # "-g, --gpus N", "GPUs over all nodes"
    verbs: list[tuple[str, str]] = field(default_factory=list)  # "drain", "Give a node no new work."
    details: list[str] = field(default_factory=list)  # lines
    examples: list[str] = field(default_factory=list)  # lines


def ask(*command: str) -> Help:
    """The help of a program or a verb: paragraphs, of which those with a known title are lists."""
    called = command[1:] if command[1:2] and command[1] in SLURM else command
    text = subprocess.run([*called, "--help"], executable=command[0], check=True, stdout=subprocess.PIPE, text=True).stdout
    paragraphs = text.rstrip("\n").split("\n\n")
    told = Help(usage=paragraphs[0].removeprefix("Usage: "), summary=paragraphs[1])
    for paragraph in paragraphs[2:]:
        title, *lines = paragraph.split("\n")
        if title in ("Options:", "On the command line only:"):
            told.options += list(rows(lines, r" {1,2}(-\S{1,2}, |    )(--\S+(?: \S+)*?)(?:  +(\S.*))?$"))
        elif title == "Verbs:":
            told.verbs = list(rows(lines, r"  ()(\S+) +(\S.*)$"))
        elif title == "Examples:":
            told.examples = lines
        else:
            told.details += [*([""] if told.details else []), title, *lines]
    return told


def rows(lines: list[str], pattern: str) -> list[tuple[str, str]]:
    """(label, help) of each row; a help that does not fit beside its label is the next line."""
    found: list[tuple[str, str]] = []
    for line in lines:
        match = re.match(pattern, line)
        if match:
            found.append((match[1].strip() + (" " if match[1].strip() else "") + match[2], match[3] or ""))
        else:
            label, text = found[-1]
            found[-1] = label, f"{text} {line.strip()}".strip()
    return found


def plain(text: str) -> str:
    """Text as scdoc shows it unchanged."""
    escaped = re.sub(r"([\\*_`])", r"\\\1", text)
    return re.sub(r"^([#|\-.:+>])", r"\\\1", escaped)


def option(row: tuple[str, str]) -> str:
    """Its long name."""
    return re.sub(r"^-\S, ", "", row[0]).split(" ")[0]


def show_label(label: str) -> str:
    """Options bold, values underlined: "-g, --gpus N"."""
    words = re.split(r"( )", label)
    return "".join(word if word == " " else show_word(word.rstrip(","), word.endswith(",")) for word in words)


def show_word(word: str, comma: bool) -> str:
    return (f"*{word}*" if word[0] == "-" else f"_{plain(word)}_") + ("," if comma else "")


def show_rows(listed: list[tuple[str, str]], label: str = "{}") -> list[str]:
    lines: list[str] = []
    for name, text in listed:
        lines += [show_label(name) if name[0] == "-" else label.format(name), f"\t{plain(text)}", ""]
    return lines


def show_text(lines: list[str]) -> list[str]:
    """Paragraphs; those with an indented line keep their lines."""
    shown: list[str] = []
    for paragraph in "\n".join(lines).split("\n\n"):
        if paragraph and re.search(r"^ ", paragraph, re.MULTILINE):
            shown += ["```", paragraph, "```", ""]
        elif paragraph:
            shown += [*map(plain, paragraph.split("\n")), ""]
    return shown


def show_usage(told: Help) -> list[str]:
    program = re.match(r"[a-z ]*[a-z]", told.usage)
    assert program is not None, told.usage
    return [f"*{program[0]}*{plain(told.usage[program.end() :]) if told.usage[program.end() :] else ''}", ""]


def show_nested(gpuctl: str, words: list[str], told: Help) -> list[str]:
    """A subsection for each verb of a group."""
    lines: list[str] = []
    for name, _ in told.verbs:
        inner = ask(gpuctl, *words, name)
        if inner.verbs:
            lines += show_nested(gpuctl, [*words, name], inner)
            continue
        lines += [f"## {' '.join([*words, name])}", "", *show_usage(inner), plain(inner.summary), "", *show_text(inner.details)]
        lines += show_rows([row for row in inner.options if option(row) not in SHARED])
    return lines


def first_verb(gpuctl: str, group: str) -> str:
    return ask(gpuctl, group).verbs[0][0]


def verb_page(gpuctl: str, verb: str, own: dict[str, str]) -> str:
    told = ask(gpuctl, verb)
    description, _, examples = own.get(verb, "").partition("# EXAMPLES\n")
    parts = ["# NAME", "", f"gpuctl-{verb} - {plain(told.summary[0].lower() + told.summary[1:].rstrip('.'))}", "", "# SYNOPSIS", ""]
    parts += [*show_usage(told), "# DESCRIPTION", "", plain(told.summary), "", *show_text(told.details), description.strip(), ""]
    if told.verbs:
        parts += ["# VERBS", "", *show_nested(gpuctl, [verb], told)]
    options = told.options or [row for row in ask(gpuctl, verb, first_verb(gpuctl, verb)).options if option(row) in SHARED]
    parts += ["# OPTIONS", "", *(["Of all of these verbs:", ""] if told.verbs else []), *show_rows(options)]
    if examples or told.examples:
        parts += ["# EXAMPLES", "", *(["```", *told.examples, "```", ""] if told.examples else []), examples.strip(), ""]
    return "\n".join([*parts, "# SEE ALSO", "", "*gpuctl*(1), *gpuctl-config*(5)", ""])


def program_page(name: str, programs: dict[str, str]) -> str:
    lines: list[str] = []
    program = programs.get(name.rsplit(".", 1)[0])
    for line in (HERE / f"{name}.scd").read_text().splitlines():
        if line in ("@options@", "@verbs@"):
            assert program is not None, f"{name} has no --help"
            told = ask(program)
            lines += show_rows(told.options) if line == "@options@" else show_rows(told.verbs, "*gpuctl-{}*(1)")
        elif not line.startswith(";"):
            lines.append(line)
    return "\n".join([*lines, ""])


def written_for_verbs() -> dict[str, str]:
    parts = re.split(r"^@ (\S+)\n", (HERE / "verbs.scd").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def released(changelog: Path, version: str) -> int:
    """The day of the version, in seconds: a page's date must not be that of its making."""
    match = re.search(rf"^## \[?{re.escape(version)}\]? - (\d{{4}}-\d\d-\d\d)$", changelog.read_text(), re.MULTILINE)
    assert match is not None, f"{changelog} does not tell the day of {version}"
    return timegm(time.strptime(match[1], "%Y-%m-%d"))


def main() -> None:
    folder, version, changelog, gpuctl, gpuctld, gpuagent, *pages = sys.argv[1:]
    own = written_for_verbs()
    verbs = [name for name, _ in ask(gpuctl).verbs]
    made = [page[len("gpuctl-") : -len(".1")] for page in pages if page.startswith("gpuctl-") and page.endswith(".1")]
    verbs += SLURM
    assert sorted(verbs) == sorted(made) == sorted(own), "docs/man/meson.build, docs/man/verbs.scd and gpuctl --help name other verbs"
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(released(Path(changelog), version))}
    programs = {"gpuctl": gpuctl, "gpuctld": gpuctld, "gpuagent": gpuagent}
    for page in pages:
        name, section = page.rsplit(".", 1)
        verb = name.removeprefix("gpuctl-")
        text = verb_page(gpuctl, verb, own) if verb in verbs else program_page(page, programs)
        whole = re.sub(r"\n{3,}", "\n\n", f'{name}({section}) "gpuctl {version}"\n\n{text}').rstrip("\n") + "\n"
        shown = subprocess.run(["scdoc"], input=whole.encode(), check=True, stdout=subprocess.PIPE, env=environment).stdout
        (Path(folder) / page).write_bytes(shown)


if __name__ == "__main__":
    main()
