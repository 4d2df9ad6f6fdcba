# SPDX-License-Identifier: Apache-2.0
"""The keys of the calls that were submitted on this host, in a file of the state folder that only its owner can read. With the key of its
call, another process can open the results of a job: see results.py.

Losing the file loses no result: values that JSON can express need no key. The file has an end: the older half goes when it is full.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

NAME = "call-keys"
LIMIT_BYTES = 1024 * 1024  # some 12,000 calls


def remember(state: Path, job_id: str, key: bytes) -> None:
    """Store the key of a job. A folder that cannot be written is no error: only processes that attach to the job lack the key then."""
    with contextlib.suppress(OSError):
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = os.open(state / NAME, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = os.fstat(file).st_size
            if size >= LIMIT_BYTES:
                kept = os.pread(file, size, size - LIMIT_BYTES // 2).partition(b"\n")[2]
                os.ftruncate(file, 0)
                os.write(file, kept)
            os.write(file, f"{job_id} {key.hex()}\n".encode())
        finally:
            os.close(file)


def find(state: Path, job_id: str) -> bytes:
    """Return the key of a job; b"" if it is not known here."""
    try:
        lines = (state / NAME).read_text(errors="replace").splitlines()
    except OSError:
        return b""
    for line in reversed(lines):
        name, _, key = line.partition(" ")
        if name == job_id:
            with contextlib.suppress(ValueError):
                return bytes.fromhex(key)
    return b""
