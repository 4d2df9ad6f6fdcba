# SPDX-License-Identifier: Apache-2.0
"""Lines about a job for the person who waits for it. They go to stderr, so that stdout holds the job's own output only."""

from __future__ import annotations

import sys


class Messages:
    """Says lines, or nothing at all when quiet."""

    def __init__(self, quiet: bool = False):
        self.quiet = quiet

    def say(self, text: str) -> None:
        """Show one line; control characters in it are shown as '?'."""
        if self.quiet:
            return
        line = "".join(character if character.isprintable() else "?" for character in text)
        sys.stderr.write(f"gpuctl: {line}\n")
        sys.stderr.flush()
