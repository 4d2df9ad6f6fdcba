# SPDX-License-Identifier: Apache-2.0
"""`gpuctl simulate`, as a person types it."""

from __future__ import annotations

import json
import subprocess
import xml.etree.ElementTree
from pathlib import Path

import pytest

from harness import GPUCTL, run_gpuctl

TRACE = "job_id,submit_s,duration_s,gpus\na,0,100,2\nb,50,100,2\nc,100,100,1\n"


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return str(path)


def test_the_figures_are_one_document_or_a_table(trace: str) -> None:
    ran = run_gpuctl("simulate", trace, "--nodes", "1x2", "-o", "json")
    assert ran.returncode == 0, ran.stderr
    figures = json.loads(ran.stdout)
    assert (figures["policy"], figures["jobs"], figures["preemptions"], figures["refused"]) == ("fifo", 3, 0, 0)
    assert figures["avg_jct_s"] == 150 and figures["p99_jct_s"] == 200 and figures["avg_wait_s"] == 50
    assert figures["utilization"] == 1 and figures["makespan_s"] == 300
    table = run_gpuctl("simulate", trace, "--nodes", "1x2").stdout.splitlines()
    assert table[0].split()[:2] == ["POLICY", "JOBS"] and table[1].split()[:4] == ["fifo", "3", "150", "s"]


def test_a_trace_may_come_by_standard_input() -> None:
    ran = subprocess.run([str(GPUCTL), "simulate", "-", "--nodes", "1x2", "-o", "json"], input=TRACE, capture_output=True, text=True)
    assert json.loads(ran.stdout)["jobs"] == 3, ran.stderr


def test_jobs_that_never_fit_are_told_with_the_reason(trace: str) -> None:
    ran = run_gpuctl("simulate", trace, "--nodes", "1x1", "-o", "json")
    assert json.loads(ran.stdout)["refused"] == 2
    assert "2 of 3 jobs could never run" in ran.stderr and "needs 2 GPUs" in ran.stderr


def test_the_plot_is_a_drawing(trace: str, tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    assert run_gpuctl("simulate", trace, "--nodes", "1x2", "--plot", str(plot)).returncode == 0
    root = xml.etree.ElementTree.parse(plot).getroot()
    texts = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "GPUs in use" in texts and "jobs that wait" in texts
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["TRACE"], "--nodes is missing"),
        (["TRACE", "--nodes", "8"], "does not say what nodes there are"),
        (["/no/such/trace", "--nodes", "1x1"], "cannot open /no/such/trace"),
        (["BAD", "--nodes", "1x1"], "bad.csv:2: duration_s is not a number"),
        (["TRACE", "--nodes", "1x1", "--policy", "lifo"], "policy"),
    ],
)
def test_a_wrong_use_names_the_remedy(trace: str, tmp_path: Path, arguments: list[str], said: str) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("submit_s,duration_s,gpus\n0,later,1\n")
    named = [{"TRACE": trace, "BAD": str(bad)}.get(word, word) for word in arguments]
    ran = run_gpuctl("simulate", *named)
    assert ran.returncode not in (0, 125) and said in ran.stderr, ran.stderr
