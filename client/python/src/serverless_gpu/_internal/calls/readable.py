# SPDX-License-Identifier: Apache-2.0
"""Shortens tracebacks in notebooks. A failed job shows the place of the call, the rank's traceback once, and one line with the error. An
interrupt shows the place of the call. Frames of this package and of the kernel are left out, because they do not help the reader.
"""

from __future__ import annotations

import re
import sys
import traceback
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from serverless_gpu.errors import JobFailed

_HERE = str(Path(__file__).resolve().parents[2])
_KERNEL = re.compile(r"[/\\](?:IPython|ipykernel)[/\\]")
_FILE = re.compile(r'(?m)^(?P<start> +)File "(?P<file>[^"\n]+)", line')


def _name(file: str) -> str:
    """Return the name of the file as people know it: `Cell In[2]` for the source of a cell."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    told = getattr(getattr(shell, "compile", None), "format_code_name", lambda _: None)(file)
    return f'File "{file}"' if told is None else " ".join(told)


def _with_names(text: str) -> str:
    return _FILE.sub(lambda match: f"{match['start']}{_name(match['file'])}, line", text)


def _calls(raised: BaseException) -> str:
    """Return the frames of the person's own code that led to the call, without frames of libraries that this package called."""
    frames = traceback.extract_tb(raised.__traceback__)
    end = max((index for index, frame in enumerate(frames) if frame.filename.startswith(_HERE)), default=len(frames))
    own = [frame for frame in frames[:end] if not frame.filename.startswith(_HERE) and not _KERNEL.search(frame.filename)]
    return _with_names("".join(traceback.format_list(own)))


def lines(failed: JobFailed) -> list[str]:
    """Return the lines that replace Python's own traceback."""
    shown = [*_calls(failed).splitlines(), ""]
    raised = failed.__cause__
    trace = getattr(getattr(raised, "__cause__", None), "text", None)
    if raised is not None:
        where = ("A rank" if failed.rank is None else f"Rank {failed.rank}") + (f" on node {failed.node}" if failed.node else "")
        text = _with_names(trace.rstrip()) if trace else f"{type(raised).__name__}: {raised}"
        shown += [f"{where}:", *text.splitlines(), ""]
    return [*shown, f"JobFailed: {failed}"]


def shorten(interrupt: KeyboardInterrupt) -> None:
    """Make a notebook show the place of an interrupted call, instead of the interrupted line in this package."""
    vars(interrupt)["_render_traceback_"] = lambda: [*_calls(interrupt).splitlines(), "", "KeyboardInterrupt"]
