# SPDX-License-Identifier: Apache-2.0
"""The line that tells where a job tracks with MLflow: its words, and when it is said."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import serverless_gpu._internal.api.tracked
from fake_controller import FakeController, Job, run_to_end
from serverless_gpu import distributed
from serverless_gpu._internal.api import tracked
from serverless_gpu._internal.api.tracked import Run
from serverless_gpu._internal.show import card
from serverless_gpu._internal.show.board import Board
from test_client_terminal import Screen, call, finish


def run(**fields: Any) -> dict[str, Any]:
    return {
        "attempt": 1, "run_id": "r1", "run_name": "n", "experiment_id": "1", "experiment": "night", "status": "RUNNING",
        "tracking_uri": None, "url": None, **fields,
    }  # fmt: skip


def tracks(*runs: dict[str, Any]) -> Any:
    def program(fake: FakeController, job: Job) -> None:
        with fake.change():
            job.runs = list(runs)
        run_to_end(fake, job)

    return program


def nothing() -> None:
    pass


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (run(), "MLflow run r1 in experiment night"),
        (run(url="https://ours/#/x"), "MLflow run r1 in experiment night: https://ours/#/x"),
        (run(experiment=None, tracking_uri="https://m"), "MLflow run r1 at https://m"),
        (run(experiment=None, tracking_uri="https://m", url="https://m/#/x"), "MLflow run r1 at https://m: https://m/#/x"),
    ],
)
def test_the_newest_run_is_said_once(fake: FakeController, capsys: pytest.CaptureFixture[str], told: dict[str, Any], line: str) -> None:
    fake.program = tracks(told, run(run_id="older"))
    distributed(gpus=1, remote=True)(nothing).distributed()
    said = capsys.readouterr().err
    assert f"gpuctl: job job0 tracks with {line}\n" in said and said.count("MLflow") == 1


def test_a_job_without_a_run_has_no_line(fake: FakeController, capsys: pytest.CaptureFixture[str]) -> None:
    distributed(gpus=1, remote=True)(nothing).distributed()
    assert "MLflow" not in capsys.readouterr().err


def test_a_run_is_said_while_the_job_goes_on(
    fake: FakeController, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(serverless_gpu._internal.api.tracked, "FIRST_S", 0.01)
    told = threading.Event()

    def program(fake: FakeController, job: Job) -> None:
        with fake.change():
            job.runs = [run()]
        assert told.wait(30), "the run was not said"
        run_to_end(fake, job)

    line = tracked.line

    def spell(run: Run) -> str:
        told.set()
        return line(run)

    monkeypatch.setattr("serverless_gpu._internal.show.plain_renderer.line", spell)
    fake.program = program
    distributed(gpus=1, remote=True)(nothing).distributed()
    assert told.is_set() and capsys.readouterr().err.count("MLflow") == 1


def test_the_card_has_the_run_and_links_only_to_pages() -> None:
    board = Board()
    assert "MLflow" not in card.card_html(board.facts(), "job0", "http://c")
    board.take_run(Run("MLflow run <b>", "https://m/#/experiments/1/runs/r1?a=1&b=2"))
    html = card.card_html(board.facts(), "job0", "http://c")
    assert '<a href="https://m/#/experiments/1/runs/r1?a=1&amp;b=2" ' in html and "MLflow run &lt;b&gt;</a>" in html
    assert "MLflow run <b>: https://m/#" in card.card_text(board.facts(), "job0", "http://c")
    board.take_run(Run("MLflow run r1", "javascript:alert(1)"))
    assert "<a " not in card.card_html(board.facts(), "job0", "http://c")


def test_a_terminal_says_it_too(fake: FakeController) -> None:
    screen = Screen()

    def program(controller: FakeController, job: Job) -> None:
        job.runs = [run()]
        finish(controller, job)

    call(fake, screen, program)
    assert "job job0 tracks with MLflow run r1 in experiment night" in screen.getvalue()
