# SPDX-License-Identifier: Apache-2.0
"""Makes a notebook of a script in percent format, so that an example is written once: `python percent.py digits.py >digits.ipynb`.

A line "# %%" begins a cell of code and "# %% [markdown]" one of text, whose lines are comments. What stands before the first cell is left
out, but for the licence, which goes into the notebook's metadata. The same script gives the same bytes.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

_BEGIN = re.compile(r"^# %%(?P<text> \[markdown\])?$", re.MULTILINE)
_LICENCE = re.compile(r"^# SPDX-License-Identifier: (\S+)$", re.MULTILINE)


def _cell(number: int, is_text: bool, body: str) -> dict[str, Any]:
    lines = body.strip("\n").splitlines(keepends=True)
    common: dict[str, Any] = {"id": f"cell-{number:02d}", "metadata": {}}
    if is_text:
        return {"cell_type": "markdown", **common, "source": [re.sub(r"^# ?", "", line) for line in lines]}
    return {"cell_type": "code", "execution_count": None, **common, "outputs": [], "source": lines}


def notebook(script: str) -> str:
    """The notebook, as the text of its file. Raises ValueError for a script without a licence."""
    licence = _LICENCE.search(script)
    if licence is None:
        raise ValueError("the script has no line # SPDX-License-Identifier")
    begins = list(_BEGIN.finditer(script))
    ends = [begin.start() for begin in begins[1:]] + [len(script)]
    cells = [_cell(number, bool(begin["text"]), script[begin.end() : end]) for number, (begin, end) in enumerate(zip(begins, ends), 1)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}, "spdx": licence[1]}
    document = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write(notebook(file.read()))
