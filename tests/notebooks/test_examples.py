# SPDX-License-Identifier: Apache-2.0
"""The example notebooks: how they are kept, as all notebooks are, and that each does what it says, with small sizes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import nbformat
import pytest

from harness import ROOT, Cluster
from kernel import Notebook, displays, errors, streams

EXAMPLES = ROOT / "client" / "examples"
NOTEBOOKS = sorted([*EXAMPLES.glob("*.ipynb"), *(ROOT / "tests" / "notebooks" / "foreign").glob("*.ipynb")])

Open = Callable[..., Notebook]


def outputs_of(open_notebook: Open, cluster: Cluster, name: str, sizes: dict[str, str]) -> list[list[Any]]:
    """Execute an example with some of its sizes made small; the outputs of each cell of code. No cell may fail."""
    document = nbformat.read(EXAMPLES / name, as_version=4)
    for large, small in sizes.items():
        (cell,) = [cell for cell in document.cells if cell.cell_type == "code" and large in cell.source]
        cell.source = cell.source.replace(large, small)
    notebook = open_notebook(cluster, document=document)
    found = [notebook.run(index) for index, cell in enumerate(document.cells) if cell.cell_type == "code"]
    assert not any(map(errors, found)), [errors(outputs) for outputs in found]
    return found


# --- how they are kept ---


def test_there_are_notebooks() -> None:
    assert {path.name for path in NOTEBOOKS} >= {"first_steps.ipynb", "digits.ipynb", "sweep.ipynb", "fine_tuning.ipynb"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_is_kept_without_outputs_with_stable_ids_and_a_licence(path: Any) -> None:
    document = json.loads(path.read_text())
    nbformat.validate(document)
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert document["metadata"]["spdx"] == "Apache-2.0"
    assert len({cell["id"] for cell in document["cells"]}) == len(document["cells"])
    for cell in document["cells"]:
        assert cell["metadata"] == {} and cell["source"], cell
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None, f"{path.name}: clear the outputs of {cell['id']}"
    assert path.read_text() == json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def test_the_digits_notebook_is_what_the_script_gives() -> None:
    made = subprocess.run([sys.executable, "percent.py", "digits.py"], cwd=EXAMPLES, capture_output=True, text=True, check=True).stdout
    assert made == (EXAMPLES / "digits.ipynb").read_text(), "make it anew: cd client/examples && python percent.py digits.py >digits.ipynb"


# --- what they do ---


def test_first_steps(cluster: Cluster, open_notebook: Open) -> None:
    _, hello, plain, _, descend, divide = outputs_of(open_notebook, cluster, "first_steps.ipynb", {"STEPS = 100": "STEPS = 60"})
    assert hello[-1].data["text/plain"] == "[0, 10]"
    assert sorted(streams(hello).splitlines()) == ["[0] hello from rank 0 of 2", "[1] hello from rank 1 of 2"]
    assert plain[-1].data["text/plain"] == "0" and not displays(plain)
    assert descend[-1].data["text/plain"] == "[3.01, 3.03]" and "step 60" in displays(descend)[0] and "<svg" in displays(descend)[0]
    assert re.search(r"rank 1 on node\d failed: ZeroDivisionError\('(float )?division by zero'\)", streams(divide))


def test_digits(cluster: Cluster, open_notebook: Open) -> None:
    outputs = outputs_of(open_notebook, cluster, "digits.ipynb", {"epochs=20": "epochs=3"})
    assert "epoch  3" in streams(outputs[-2]) and "SUCCEEDED" in displays(outputs[-2])[0]
    rows = streams(outputs[-1]).splitlines()
    assert len(rows) == 3 and all(float(row.split()[-1]) > 0.5 for row in rows[1:])


def test_sweep(cluster: Cluster, open_notebook: Open) -> None:
    *_, calls, table, metrics = outputs_of(open_notebook, cluster, "sweep.ipynb", {"STEPS = 200": "STEPS = 40"})
    assert len(displays(calls)) == 4 and all("SUCCEEDED" in html for html in displays(calls))
    rates = [row.split()[0] for row in streams(table).splitlines()]
    assert rates[:2] == ["rate", "0.5"] and sorted(rates[1:]) == ["0.02", "0.1", "0.5", "0.8"]
    assert streams(metrics).count(": 40 points") == 4
