# SPDX-License-Identifier: Apache-2.0
"""Small disks: a tmpfs of a few MiB at a folder, which can be filled to its last byte and given room again.

It needs the right to mount. Where that is missing, tests skip and say so.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

MIB = 1024 * 1024
FILLER = "filler"


class SmallDisk:
    """A file system of its own at a folder."""

    def __init__(self, folder: Path, mib: int):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=0700", "tmpfs", str(folder)]
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"cannot mount a small disk: {done.stderr.strip()}")

    def free(self) -> int:
        """How many bytes are free."""
        state = os.statvfs(self.folder)
        return state.f_bavail * state.f_frsize

    def fill(self, leave: int = 0) -> None:
        """Take all space but so many bytes, as another program on the machine would."""
        with (self.folder / FILLER).open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while (left := self.free() - leave) > 0:
                file.write(bytes(min(left, MIB)))

    def is_full(self) -> bool:
        """Whether not one more block can be had."""
        probe = self.folder / "probe"
        try:
            probe.write_bytes(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC, error
            return True
        finally:
            probe.unlink(missing_ok=True)
        return False

    def make_room(self) -> None:
        """Give back what fill took."""
        (self.folder / FILLER).unlink(missing_ok=True)

    def unmount(self) -> None:
        """Take it away; what is on it is gone."""
        subprocess.run(["umount", "--lazy", str(self.folder)], check=True)


@contextlib.contextmanager
def small_disk(folder: Path, mib: int) -> Iterator[SmallDisk]:
    """A disk of so many MiB at the folder while the context lasts."""
    disk = SmallDisk(folder, mib)
    try:
        yield disk
    finally:
        disk.unmount()
