# SPDX-License-Identifier: Apache-2.0
"""Decides by .gitignore rules which files of a folder are left out: the nearest file decides, and in it the last matching line. The content
of an excluded folder is never looked at. A .gpuctlignore takes precedence over the .gitignore beside it.

pathspec matches the globs. This module decides which entries a line applies to, one entry at a time and never through its parents, so that
negated lines work as in git with every version of pathspec.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

OWN = ".gpuctlignore"
FILES = (".gitignore", OWN)  # the later takes precedence
Matches = Callable[[str], Any]


class _Rule(NamedTuple):
    """One line. `by_path` tests the path below the line's folder, `by_name` its last part; None matches any."""

    leaves_out: bool
    folders_only: bool
    depth: int  # number of parts that the path must have; 0: any
    by_path: Matches | None
    by_name: Matches | None

    def speaks_of(self, path: str, name: str, is_folder: bool) -> bool:
        if self.folders_only and not is_folder:
            return False
        if self.by_name is not None and self.by_name(name) is None:
            return False
        if self.depth and path.count("/") + 1 != self.depth:
            return False
        return self.by_path is None or self.by_path(path) is not None


def _glob(body: str) -> Matches | None:
    """Return the test whether a path matches; None for patterns that git ignores, such as an invalid range."""
    import pathspec

    try:
        patterns = list(pathspec.GitIgnoreSpec.from_lines([f"/{body}"]).patterns)
    except ValueError:
        return None
    return patterns[0].match_file if patterns and patterns[0].include is not None else None


def _rule(line: str) -> _Rule | None:
    """Return the rule of a line; None for an empty line or a comment."""
    line = line.rstrip("\r\n")
    line = line if line.endswith("\\ ") else line.rstrip()
    negated = line.startswith("!")
    body = line[negated:]
    folders_only = body.endswith("/")
    body = body.rstrip("/")
    if not body or line.startswith("#"):
        return None
    if body.startswith("**/") and body.count("/") == 1:  # at any depth, as for a bare name
        body = body[len("**/") :]
    by_path = _glob(body.lstrip("/"))
    if by_path is None:
        return None
    if "/" not in body:
        return _Rule(not negated, folders_only, 0, None, by_path)
    if "**" not in body:
        return _Rule(not negated, folders_only, body.lstrip("/").count("/") + 1, by_path, None)
    last = body.rpartition("/")[2]
    return _Rule(not negated, folders_only, 0, by_path, None if last in ("*", "**") else _glob(last))


class _Level(NamedTuple):
    """The rules of one folder, the last line first, and the offset of paths below it."""

    begin: int  # length in characters of the path to the folder, with its slash
    rules: list[_Rule]


class Ignore:
    """The rules that apply in one folder: its own and those of the folders above it, nearest first."""

    def __init__(self, levels: tuple[_Level, ...] = ()):
        self._levels = levels

    def leaves_out(self, path: str, name: str, is_folder: bool) -> bool:
        """Return whether the entry is left out; `path` is relative to the topmost folder with rules, and `name` is its last part."""
        for level in self._levels:
            below = path[level.begin :]
            for rule in level.rules:
                if rule.speaks_of(below, name, is_folder):
                    return rule.leaves_out
        return False

    def within(self, folder: Path, path: str) -> Ignore:
        """Return the rules in the subfolder at `path`, which is "" at the top."""
        rules: list[_Rule] = []
        for name in FILES:
            try:
                text = (folder / name).read_text(encoding="utf-8", errors="surrogateescape")
            except OSError:
                continue
            rules += filter(None, map(_rule, text.split("\n")))
        if not rules:
            return self
        return Ignore((_Level(len(path) + 1 if path else 0, rules[::-1]), *self._levels))


def above(folder: Path) -> tuple[Ignore, str]:
    """Return the rules of the folders above, up to the top of the git repository, and the folder's path from there.

    There are no rules if there is no repository, or if they would exclude the folder itself, which the user has chosen.
    """
    for top in (folder, *folder.parents):
        if (top / ".git").exists():
            break
    else:
        return Ignore(), ""
    rules, at, path = Ignore(), top, ""
    for name in folder.relative_to(top).parts:
        rules = rules.within(at, path)
        at, path = at / name, f"{path}/{name}".lstrip("/")
        if rules.leaves_out(path, name, True):
            return Ignore(), ""
    return rules, path
