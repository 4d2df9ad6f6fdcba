# SPDX-License-Identifier: Apache-2.0
"""A folder as an uncompressed tar with the same bytes for the same files: sorted, without owners, and without the times of folders, which
change with files that are not sent.

The hash is remembered: while no path, size, time or mode has changed, no file is read again. The bytes wait in a temporary file until they
are sent, never completely in memory.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tarfile
import tempfile
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from serverless_gpu._internal.pack import folder
from serverless_gpu._internal.pack.folder import Entry, Listing

CHUNK_BYTES = 1024 * 1024
SPOOL_BYTES = 8 * 1024 * 1024  # of a tar that may stay in memory
FOLDERS = 8  # number of folders whose hashes are remembered
TICK_NS = 50_000_000  # a file that changed so shortly before the look may change again within the same time stamp
ATTEMPTS = 3  # for a folder whose files come and go while they are read
END = bytes(2 * tarfile.BLOCKSIZE)


class _Changed(Exception):
    """A file no longer matches the listing."""


class _Known(NamedTuple):
    entries: list[Entry]
    sha256: str
    size: int


def _header(entry: Entry) -> bytes:
    info = tarfile.TarInfo(entry.path)
    info.mode = entry.mode & 0o777
    if stat.S_ISDIR(entry.mode):
        info.type, info.mode = tarfile.DIRTYPE, info.mode | stat.S_IRWXU  # the unpacking user must be able to fill and to remove the folder
    elif stat.S_ISLNK(entry.mode):
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.target, 0o777
    else:
        info.size, info.mtime = entry.size, max(entry.mtime_ns // 10**9, 0)
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _content(path: Path, size: int) -> Iterator[bytes]:
    """Yield the bytes of a file of this size. Raises _Changed."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            while size > 0:
                piece = file.read(min(size, CHUNK_BYTES))
                if not piece:
                    raise _Changed(path)
                size -= len(piece)
                yield piece
    except OSError as error:
        raise _Changed(path) from error


def _pieces(root: Path, entries: list[Entry]) -> Iterator[bytes]:
    for entry in entries:
        yield _header(entry)
        if stat.S_ISREG(entry.mode):
            yield from _content(Path(entry.source) if entry.source else root / entry.path, entry.size)
            yield bytes(-entry.size % tarfile.BLOCKSIZE)
    yield END


class Bundle:
    """The tar of a folder, with its size and SHA-256. It can be iterated over repeatedly."""

    def __init__(self, root: Path, listing: Listing, known: _Known | None):
        self.root = root
        self.listing = listing
        self._spool: IO[bytes] | None = None
        self.sha256, self.size = (known.sha256, known.size) if known is not None else self._fill()

    def _fill(self) -> tuple[str, int]:
        """Read all files into the temporary file; return the hash and the size in bytes. Raises _Changed."""
        spool: IO[bytes] = tempfile.SpooledTemporaryFile(SPOOL_BYTES)  # noqa: SIM115  (it lives as long as the bundle)
        weakref.finalize(self, spool.close)
        digest = hashlib.sha256()
        for piece in _pieces(self.root, self.listing.entries):
            digest.update(piece)
            spool.write(piece)
        self._spool = spool
        return digest.hexdigest(), spool.tell()

    def __iter__(self) -> Iterator[bytes]:
        """Yield the tar in pieces. Raises ValueError if the files have changed since the hash was taken."""
        try:
            same = self._spool is not None or self._fill()[0] == self.sha256
        except _Changed:
            same = False
        if not same or self._spool is None:
            _known.pop(str(self.root), None)
            raise ValueError(f"working_dir: files in {self.root} change while they are sent: call again when they are at rest")
        self._spool.seek(0)
        while True:
            piece = self._spool.read(CHUNK_BYTES)
            if not piece:
                return
            yield piece

    def __len__(self) -> int:
        """Return the size in bytes, which an upload uses as its length."""
        return self.size

    def python_path(self) -> list[str]:
        """Return the subfolders, as paths from the folder, that are on this process's sys.path, in its order."""
        inner = self.listing.folders()
        found: dict[str, None] = {}
        for place in sys.path:
            path = os.path.relpath(os.path.realpath(place), self.root)
            if path in inner and os.pathsep not in path:
                found[path] = None
        return list(found)


_known: dict[str, _Known] = {}
_lock = threading.Lock()


def _remember(root: str, bundle: Bundle, looked_ns: int) -> None:
    """Remember the hash, unless a file may have changed after the look without a visible change of its time."""
    if any(entry.mtime_ns > looked_ns - TICK_NS for entry in bundle.listing.entries):
        return
    while len(_known) >= FOLDERS:
        del _known[next(iter(_known))]
    _known[root] = _Known(bundle.listing.entries, bundle.sha256, bundle.size)


def of(path: str | os.PathLike[str] | None, extra: Sequence[Entry] = ()) -> Bundle:
    """Return the bundle of a folder in its present state, with `extra` entries besides its own; None: of these alone.

    Raises ValueError if it is no folder, too large, or keeps changing.
    """
    root = Path(os.path.realpath(path)) if path is not None else Path(os.devnull)
    if path is not None and not root.is_dir():
        raise ValueError(f"working_dir: there is no folder {root}; name one that is there, or send none with working_dir=False")
    with _lock:
        for _ in range(ATTEMPTS):
            looked_ns = time.time_ns()
            own = folder.listing(root) if path is not None else Listing([], [])
            listing = Listing([*own.entries, *extra], own.missed)
            known = _known.get(str(root))
            if known is not None and known.entries == listing.entries:
                return Bundle(root, listing, known)
            _known.pop(str(root), None)
            try:
                bundle = Bundle(root, listing, None)
            except _Changed:
                continue
            _remember(str(root), bundle, looked_ns)
            return bundle
    raise ValueError(f"working_dir: files in {root} come and go while they are read: call again when they are at rest")
