# SPDX-License-Identifier: Apache-2.0
"""The id of this host, as agents compute it: the SHA-256 of the machine id, so that the machine id itself stays here."""

from __future__ import annotations

import hashlib
from pathlib import Path

MACHINE_ID = Path("/etc/machine-id")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def _first_word(path: Path) -> str:
    try:
        words = path.read_text(errors="replace").split(None, 1)
    except OSError:
        return ""
    return words[0] if words else ""


def host_id() -> str:
    """Return 64 hex digits. Without a machine id, the id of this boot takes its place."""
    word = _first_word(MACHINE_ID)
    if not word or word == "uninitialized":
        word = _first_word(BOOT_ID)
    return hashlib.sha256(word.encode()).hexdigest()
