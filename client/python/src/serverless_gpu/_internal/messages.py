# SPDX-License-Identifier: Apache-2.0
"""Lines about a job for the person who waits for it. They go to stderr, so that stdout holds the job's own output only."""

from __future__ import annotations

import sys


class Messages:
    """Prints lines, or nothing when quiet."""

    def __init__(self, quiet: bool = False):
        self.quiet = quiet

    def say(self, text: str) -> None:
        """Print one line; control characters appear as '?'."""
        if self.quiet:
            return
        line = "".join(character if character.isprintable() else "?" for character in text)
        sys.stderr.write(f"gpuctl: {line}\n")
        sys.stderr.flush()
