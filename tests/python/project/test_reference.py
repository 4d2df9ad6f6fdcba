# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/reference are what their generator makes of the programs and of the tables in the code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.append(str(ROOT / "docs"))

pytest.importorskip("yaml")

import reference_pages  # noqa: E402

ELSEWHERE = {"frameworks.md", "mlflow.md"}  # made by tests/frameworks/run and docs/mlflow_page.py


@pytest.mark.parametrize("name", reference_pages.PAGES)
def test_a_page_of_the_reference_is_what_the_code_says(name: str) -> None:
    written = (reference_pages.REFERENCE / name).read_text()
    assert written == reference_pages.PAGES[name](), "make them anew: GPUCTL_BUILD=build .venv/bin/python docs/reference_pages.py"


def test_each_page_of_the_reference_has_a_generator() -> None:
    assert {path.name for path in reference_pages.REFERENCE.glob("*.md")} == {*reference_pages.PAGES, *ELSEWHERE}


def test_rows_of_a_list_are_read_with_all_their_values() -> None:
    states = reference_pages.rows_of("states.h", "JOB_STATES")
    assert states[0] == {"0": "QUEUED", "1": "false", "2": "waits for GPUs", "comment": ""}
    phases = reference_pages.rows_of("states.h", "ORDER_PHASES")
    assert phases[1]["1"] == "start" and phases[1]["comment"].endswith(": start the ranks")


def test_a_limit_is_shown_in_the_unit_that_people_use() -> None:
    shown = [reference_pages.amount(*each) for each in (("A_BYTES", 1536 << 10), ("B_MS", 90_000), ("C_MS", 250), ("D", 65536))]
    assert shown == ["1,536 KiB", "90 s", "250 ms", "65,536"]
    assert reference_pages.number_of("4 * KIB + 2LL", {"KIB": 1024}) == 4098
