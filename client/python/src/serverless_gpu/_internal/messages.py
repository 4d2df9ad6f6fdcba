# SPDX-License-Identifier: Apache-2.0
"""Lines about a job for the person who waits for it. They go to stderr, so that stdout holds the job's own output only."""

from __future__ import annotations

import sys


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook. Does not import IPython: a kernel has imported it already."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


class Messages:
    """Prints lines, or nothing when quiet."""

    def __init__(self, quiet: bool = False):
        self.quiet = quiet
        self._width = 0  # of the unfinished line of progress

    def say(self, text: str) -> None:
        """Print one line; control characters appear as '?'."""
        if self.quiet:
            return
        self.finish_progress()
        sys.stderr.write(f"gpuctl: {_printable(text)}\n")
        sys.stderr.flush()

    def progress(self, text: str) -> None:
        """Show a line in the place of the last one, in terminals and notebooks only: a log would keep each of them."""
        if self.quiet or sys.stderr is None or not (sys.stderr.isatty() or in_notebook()):
            return
        line = f"gpuctl: {_printable(text)}"
        sys.stderr.write(f"\r{line:<{self._width}}")
        sys.stderr.flush()
        self._width = len(line)

    def finish_progress(self) -> None:
        """End the line of progress, if there is one."""
        if self._width:
            self._width = 0
            sys.stderr.write("\n")
            sys.stderr.flush()
