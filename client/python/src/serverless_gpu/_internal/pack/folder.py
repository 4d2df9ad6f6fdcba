# SPDX-License-Identifier: Apache-2.0
"""Lists the part of a folder that is sent: its files, folders and inner links, without the paths in .gitignore and .gpuctlignore, and
without files of this machine: repositories, environments, caches.

The walk stops as soon as it exceeds the limits. bundle.py reads the files.
"""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path
from typing import NamedTuple

from serverless_gpu._internal.pack import ignore

LIMIT_BYTES = 256 * 1024 * 1024
LIMIT_FILES = 20_000
NAMED = 3  # of the largest entries, and of left out ones
LEFT_OUT = frozenset(
    (".git", ".hg", ".svn", "__pycache__", "node_modules", ".ipynb_checkpoints", "mlruns", ".mypy_cache", ".pytest_cache", ".ruff_cache",
     ".tox", ".nox", ".DS_Store")
)  # fmt: skip
REMEDY = (
    "name what is not needed in a .gitignore or .gpuctlignore file, choose another folder with working_dir=PATH, or send none with"
    " working_dir=False. To leave out the largest: echo {largest} >>{folder}"
)


class Entry(NamedTuple):
    """One entry. A folder has only path and mode, a link only its target."""

    path: str  # from the folder, with slashes
    mode: int  # type and permissions, as in lstat
    size: int  # bytes
    mtime_ns: int
    target: str  # of a link, else ""
    source: str = ""  # real path of the file, if it differs from the path in the folder


class Listing(NamedTuple):
    """The entries to send, in the order of the walk, and left out ones that a person may miss."""

    entries: list[Entry]
    missed: list[str]  # paths with the reason

    def folders(self) -> set[str]:
        """Return the paths of the subfolders."""
        return {entry.path for entry in self.entries if stat.S_ISDIR(entry.mode)}


def _spell_size(size: int) -> str:
    return f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 1024:.1f} KiB"


class _Walk:
    """One walk, with the sums of its findings."""

    def __init__(self, root: Path):
        self.root = root
        self.entries: list[Entry] = []
        self.missed: list[str] = []
        self._files = 0
        self._bytes = 0
        self._shares: dict[str, tuple[int, int]] = {}  # by top-level entry: files, bytes

    def run(self) -> Listing:
        rules, path = ignore.above(self.root)
        self._enter(self.root, "", rules, path)
        return Listing(self.entries, self.missed)

    def _enter(self, folder: Path, path: str, rules: ignore.Ignore, top_path: str) -> None:
        """Walk one folder; `path` is relative to the root, `top_path` to the topmost folder with rules."""
        try:
            with os.scandir(folder) as found:
                inner = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self.missed.append(f"{path} ({error.strerror})")
            return
        rules = rules.within(folder, top_path)
        for entry in inner:
            below = f"{top_path}/{entry.name}" if top_path else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name in LEFT_OUT or entry.name.endswith(".pyc") or rules.leaves_out(below, entry.name, is_folder):
                continue
            where = f"{path}/{entry.name}" if path else entry.name
            if not is_folder:
                self._take(entry, where)
            elif not os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):
                self.entries.append(Entry(where, entry.stat(follow_symlinks=False).st_mode, 0, 0, ""))
                self._enter(folder / entry.name, where, rules, below)

    def _take(self, entry: os.DirEntry[str], path: str) -> None:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # the entry is gone
            return
        if stat.S_ISLNK(status.st_mode):
            self._take_link(entry, path, status.st_mode)
        elif stat.S_ISREG(status.st_mode):
            if os.access(entry.path, os.R_OK):
                self._count(path, status.st_size)
                self.entries.append(Entry(path, status.st_mode, status.st_size, status.st_mtime_ns, ""))
            else:
                self.missed.append(f"{path} (it cannot be read)")

    def _take_link(self, entry: os.DirEntry[str], path: str, mode: int) -> None:
        """Take a link to a target inside, by a path that leads there on a node, too."""
        target = os.readlink(entry.path)
        real, root = os.path.realpath(entry.path), str(self.root)
        if real != root and not real.startswith(f"{root.rstrip('/')}/"):
            self.missed.append(f"{path} (it leads to {target}, outside of the folder)")
            return
        own = os.path.dirname(entry.path)
        stays = not os.path.isabs(target) and os.path.normpath(os.path.join(own, target)).startswith(root)
        self._count(path, 0)
        self.entries.append(Entry(path, mode, 0, 0, target if stays else os.path.relpath(real, own)))

    def _count(self, path: str, size: int) -> None:
        self._files += 1
        self._bytes += size
        top = path.partition("/")[0]
        files, total = self._shares.get(top, (0, 0))
        self._shares[top] = files + 1, total + size
        if self._files > LIMIT_FILES or self._bytes > LIMIT_BYTES:
            raise ValueError(self._too_large())

    def _too_large(self) -> str:
        """Return the message for a folder that is too large, with its largest entries."""
        by_files = self._files > LIMIT_FILES
        what = f"{LIMIT_FILES} files" if by_files else _spell_size(LIMIT_BYTES)
        shares = sorted(self._shares.items(), key=lambda share: (-share[1][0 if by_files else 1], share[0]))[:NAMED]
        named = ", ".join(f"{name} ({files} files, {_spell_size(size)})" for name, (files, size) in shares)
        remedy = REMEDY.format(largest=shlex.quote(f"/{shares[0][0]}"), folder=shlex.quote(str(self.root / ignore.OWN)))
        return f"working_dir: {self.root} holds more than {what}, the most that travels; the largest found so far: {named}; {remedy}"


def listing(root: Path) -> Listing:
    """List the part of the folder that is sent; `root` is a real path. Raises ValueError, with the largest entries, if it exceeds the
    limits.
    """
    return _Walk(root).run()
