# SPDX-License-Identifier: Apache-2.0
"""What of a folder travels: its files, folders and inner links, without what .gitignore and .gpuctlignore name, and without what belongs to
this machine: repositories, environments, caches. Looking stops as soon as it is more than may travel. Reading files is bundle.py's.
"""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path
from typing import NamedTuple

from serverless_gpu._internal import ignore

LIMIT_BYTES = 256 * 1024 * 1024
LIMIT_FILES = 20_000
NAMED = 3  # of the largest entries, and of what is left out
LEFT_OUT = frozenset(
    (".git", ".hg", ".svn", "__pycache__", "node_modules", ".ipynb_checkpoints", "mlruns", ".mypy_cache", ".pytest_cache", ".ruff_cache",
     ".tox", ".nox", ".DS_Store")
)  # fmt: skip
REMEDY = (
    "name what is not needed in a .gitignore or .gpuctlignore file, choose another folder with working_dir=PATH, or send none with"
    " working_dir=False. To leave out the largest: echo {largest} >>{folder}"
)


class Entry(NamedTuple):
    """One entry. Of folders only the path and the mode count, of links only where they lead."""

    path: str  # from the folder, with slashes
    mode: int  # kind and permissions, as of lstat
    size: int  # bytes
    mtime_ns: int
    target: str  # of a link, else ""
    source: str = ""  # real path of the file, where that is not the path in the folder


class Listing(NamedTuple):
    """What travels, in the order of a walk, and what was left out that somebody may miss."""

    entries: list[Entry]
    missed: list[str]  # paths with the reason

    def folders(self) -> set[str]:
        """The paths of the folders below."""
        return {entry.path for entry in self.entries if stat.S_ISDIR(entry.mode)}


def _spell_size(size: int) -> str:
    return f"{size / 2**20:.1f} MiB" if size >= 2**20 else f"{size / 1024:.1f} KiB"


class _Walk:
    """One walk, which knows how much it has found."""

    def __init__(self, root: Path):
        self.root = root
        self.entries: list[Entry] = []
        self.missed: list[str] = []
        self._files = 0
        self._bytes = 0
        self._shares: dict[str, tuple[int, int]] = {}  # of what lies directly in the folder: files, bytes

    def run(self) -> Listing:
        rules, path = ignore.above(self.root)
        self._enter(self.root, "", rules, path)
        return Listing(self.entries, self.missed)

    def _enter(self, folder: Path, path: str, rules: ignore.Ignore, top_path: str) -> None:
        """One folder; `path` is from the root, `top_path` from where rules begin."""
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
        except OSError:  # it is gone
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
        """A link that leads to something inside, by a path that does so on a node, too."""
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
        """What to say, with the largest shares."""
        by_files = self._files > LIMIT_FILES
        what = f"{LIMIT_FILES} files" if by_files else _spell_size(LIMIT_BYTES)
        shares = sorted(self._shares.items(), key=lambda share: (-share[1][0 if by_files else 1], share[0]))[:NAMED]
        named = ", ".join(f"{name} ({files} files, {_spell_size(size)})" for name, (files, size) in shares)
        remedy = REMEDY.format(largest=shlex.quote(f"/{shares[0][0]}"), folder=shlex.quote(str(self.root / ignore.OWN)))
        return f"working_dir: {self.root} holds more than {what}, the most that travels; the largest found so far: {named}; {remedy}"


def listing(root: Path) -> Listing:
    """What of the folder travels; `root` is a real path. Raises ValueError, with the largest entries, where it is more than may."""
    return _Walk(root).run()
