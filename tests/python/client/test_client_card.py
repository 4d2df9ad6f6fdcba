# SPDX-License-Identifier: Apache-2.0
"""What a card is made of: the board, the last lines of ranks, curves, and the HTML of them, within bounds."""

from __future__ import annotations

import os
import signal
import sys
import types
import xml.etree.ElementTree as xml
from typing import Any

import pytest

from serverless_gpu._internal import messages
from serverless_gpu._internal.show import card, cell, sparkline
from serverless_gpu._internal.show.board import POINTS, SERIES, Board
from serverless_gpu._internal.show.rate_limit import BURST_BYTES, JOB_BYTES, LAST_LINES, RATE_BYTES, Allowance, RateLimit
from serverless_gpu._internal.show.tails import CHARACTERS, LINES, Tail, Tails
from serverless_gpu.errors import JobFailed, RemoteTraceback


def view(state: str = "RUNNING", attempt: int = 1, seq: int = 1, **fields: Any) -> dict[str, Any]:
    nodes = [{"node": "node0", "node_rank": 0, "first_rank": 0, "local_ranks": 8, "devices": "0,1"}]
    return {
        "id": "job0", "name": "n", "state": state, "attempt": attempt, "seq": seq, "gpus": 8, "gpu_type": None, "reason": None,
        "nodes": nodes, "started_at": None, "ended_at": None, "failed_rank": None, **fields,
    }  # fmt: skip


def point(name: str, value: Any, rank: int | None = 0) -> dict[str, Any]:
    return {"name": name, "value": value, "rank": rank}


def said(rank: int, text: str, attempt: int = 1, stream: str = "stdout") -> dict[str, Any]:
    return {"rank": rank, "stream": stream, "attempt": attempt, "text": text}


# --- the card of a job that waits ---


@pytest.mark.parametrize("state", ["QUEUED", "STAGING"])
def test_a_job_that_waits_shows_why(state: str) -> None:
    board = Board()
    board.take_view(view(state, attempt=0, nodes=[], reason="node n1 builds the environment: Installing <torch> (34 s)"))
    html, text = card.card_html(board.facts(), "job0", "http://c"), card.card_text(board.facts(), "job0", "http://c")
    assert state in html and "Installing &lt;torch&gt; (34 s)" in html and "8 GPUs" in html
    assert text.splitlines()[1] == "node n1 builds the environment: Installing <torch> (34 s)"


# --- the board ---


def test_a_job_that_runs_shows_a_reason_only_while_its_gpus_are_idle() -> None:
    for since in ("2026-11-21T09:30:00.000Z", None):
        board = Board()
        board.take_view(view(idle_since=since, reason="its GPUs are idle"))
        assert ("its GPUs are idle" in card.card_html(board.facts(), "job0", "http://c")) == (since is not None)


def test_a_course_keeps_its_span_and_its_last_value_in_few_points() -> None:
    board = Board()
    board.take_points([point("loss", value) for value in range(100_000)])
    (course,) = board.facts().courses
    assert course.last == 99_999 and course.points[0] == 0 and course.points[-1] == 99_999
    assert POINTS / 2 <= len(course.points) <= POINTS + 1
    steps = {round(after - before) for before, after in zip(course.points, course.points[1:-1])}
    assert len(steps) == 1


def test_metrics_and_progress_are_those_of_the_lowest_rank_that_reports() -> None:
    board = Board()
    board.take_points([point("loss", 7, rank=2), point("loss", 9, rank=3), point("loss", 5, rank=1), point("loss", 8, rank=2)])
    for rank, fraction in ((2, 0.2), (1, 0.1), (3, 0.3)):
        board.take_progress({"rank": rank, "fraction": fraction, "text": None})
    facts = board.facts()
    assert [(course.rank, course.last, course.points) for course in facts.courses] == [(1, 5, [5.0])]
    assert facts.progress is not None and facts.progress[:2] == (1, 0.1)


def test_what_mlflow_logged_has_no_rank_and_is_shown_before_that_of_ranks() -> None:
    board = Board()
    board.take_points([point("loss", 7), point("loss", 5, rank=None), point("loss", 8), point("loss", 4, rank=None)])
    assert [(course.last, course.points) for course in board.facts().courses] == [(4, [5.0, 4.0])]
    assert "rank" not in card._course(board.facts().courses[0])


def test_values_that_are_not_finite_are_told_and_not_drawn() -> None:
    board = Board()
    board.take_points([point("loss", value) for value in (1, "Infinity", 2, "NaN")])
    (course,) = board.facts().courses
    assert course.last == "NaN" and course.points == [1.0, 2.0]
    board.take_view(view())
    assert "<b>NaN</b>" in card.card_html(board.facts(), "job0", "http://c")


def test_what_is_measured_of_nodes_takes_no_place_from_what_the_job_logs() -> None:
    board = Board()
    board.take_view(view())
    board.take_points([point(f"system/node/ray_{number}", number) for number in range(SERIES)])
    assert "system/" not in card.card_html(board.facts(), "job0", "http://c")
    board.take_points([point("loss", 7)])
    assert [course.name for course in board.facts().courses] == ["loss"]
    assert f"{SERIES} more" in card.card_html(board.facts(), "job0", "http://c")


def test_only_a_few_names_are_kept_and_the_others_counted() -> None:
    board = Board()
    board.take_view(view())
    board.take_points([point(f"metric {number}", number) for number in range(5000)])
    facts = board.facts()
    assert len(facts.courses) == SERIES and facts.more_names == 1000
    assert "1000 more" in card.card_html(facts, "job0", "http://c")


def test_a_new_attempt_begins_anew_and_an_older_view_is_ignored() -> None:
    board = Board()
    board.take_view(view(seq=4))
    board.take_points([point("loss", 1)])
    board.take_progress({"rank": 0, "fraction": 0.9, "text": None})
    board.take_view(view(seq=3, state="QUEUED"))
    assert board.facts().view["state"] == "RUNNING" and board.facts().courses
    board.take_view(view(seq=5, attempt=2))
    assert board.facts().progress is None and not board.facts().courses
    assert "attempt 2" in card.card_html(board.facts(), "job0", "http://c")


# --- the last lines ---


def test_of_a_rank_the_last_lines_are_kept_within_bounds() -> None:
    tail = Tail()
    for number in range(10_000):
        tail.write("stdout", f"line {number}\n")
    assert tail.count == 10_000 and tail.last(1000, 10**6) == [f"line {number}" for number in range(10_000 - LINES, 10_000)]
    tail.write("stdout", "x" * 500_000 + "\n" + "y" * 300_000)
    tail.finish()
    assert sum(map(len, tail.last(1000, 10**6))) <= CHARACTERS
    assert tail.last(2, 10) == ["y" * 10]


def test_a_tail_shows_lines_as_a_terminal_would() -> None:
    tail = Tail()
    for piece in ("\x1b[31mred\x1b[0m\r\n", " 10%\r 2", "0%\r100%\nno ", "end"):
        tail.write("stdout", piece)
    tail.write("stderr", "wrong\n")
    tail.finish()
    assert tail.last(10, 1000) == ["red", "100%", "wrong", "no end"]


def test_the_lines_of_an_earlier_attempt_are_gone() -> None:
    tails = Tails()
    tails.take([said(1, "old\n"), said(2, "old\n"), said(1, "new\n", attempt=2)])
    assert list(tails.ranks) == [1] and tails.ranks[1].last(9, 99) == ["new"]


def test_the_bar_of_the_lowest_rank_is_shown_until_its_line_ends() -> None:
    tails = Tails()
    assert tails.bar() == ""
    tails.take([said(0, "words"), said(2, "\r 10%", stream="stderr"), said(1, "\r\x1b[32m 20%\r 30%", stream="stderr")])
    assert tails.bar() == "[1]  30%"
    tails.take([said(1, "\r100%\n", stream="stderr")])
    assert tails.bar() == "[2]  10%" and tails.ranks[1].last(9, 99) == ["100%"]
    tails.finish()
    assert tails.bar() == ""


# --- how much is shown ---


class Clock:
    """A time that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def rationed() -> tuple[RateLimit, list[str], list[str], Clock]:
    """A ration with what it has shown, what it has said, and its clock."""
    shown: list[str] = []
    said_lines: list[str] = []
    clock = Clock()
    ration = RateLimit("job0", lambda items: shown.extend(item["text"] for item in items), said_lines.append, Allowance(clock))
    return ration, shown, said_lines, clock


def test_output_that_is_not_too_much_is_shown_as_it_is() -> None:
    ration, shown, told, _ = rationed()
    pieces = ["a\nb", "c\r", "\n" * 9, "no end"]
    for piece in pieces:
        ration.take([said(0, piece)])
    ration.finish()
    assert (shown, told) == (pieces, [])


def test_of_a_flood_the_beginning_and_the_last_lines_are_shown_and_the_others_counted() -> None:
    ration, shown, told, _ = rationed()
    ration.take([said(0, f"line {number}\n") for number in range(500_000)])
    assert sum(map(len, shown)) <= BURST_BYTES and told == []
    begun = len(shown)
    ration.finish()
    assert shown[-1] == "".join(f"line {number}\n" for number in range(500_000 - LAST_LINES, 500_000))
    assert told == [f"{500_000 - begun - LAST_LINES} lines left out here, too much for a notebook: gpuctl logs job0"]


def test_output_is_shown_again_in_whole_lines_when_it_has_become_less() -> None:
    ration, shown, told, clock = rationed()
    ration.take([said(0, "begun")])
    ration.take([said(0, "x" * BURST_BYTES + "\ntorn")])
    assert shown == ["begun", "\n"]
    clock.now = BURST_BYTES / RATE_BYTES
    ration.take([said(0, " off\nnext\n"), said(1, "other\n")])
    ration.finish()
    assert shown[2:] == ["next\n", "other\n"] and told == ["1 line left out here, too much for a notebook: gpuctl logs job0"]


def test_a_job_that_writes_for_days_does_not_fill_the_notebook() -> None:
    ration, shown, told, clock = rationed()
    for hour in range(200):
        clock.now = hour * 3600.0
        ration.take([said(0, "x" * 999 + "\n") for _ in range(100)])
    ration.finish()
    assert JOB_BYTES * 0.9 < sum(map(len, shown)) < JOB_BYTES + 100_000 and len(told) == 1


# --- HTML ---


@pytest.mark.parametrize("state", [*card.COLOURS, "QUEUED"])
def test_the_state_can_be_read_on_its_colour(state: str) -> None:
    colour = card.COLOURS.get(state, card.OTHER_COLOUR)
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    assert 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05) >= 4.5  # of white on it, as WCAG counts contrast


@pytest.mark.parametrize(
    ("devices", "text"), [("0,1", "0,1"), ("0,1,2,3", "0-3"), ("0,2,3,4,7", "0,2-4,7"), ("3", "3"), ("a,b,1,2,3", "a,b,1-3")]
)
def test_numbers_of_devices_in_a_row_are_shortened(devices: str, text: str) -> None:
    nodes = [{"node": "node0", "first_rank": 0, "local_ranks": 8, "devices": devices}]
    board = Board()
    board.take_view(view(nodes=nodes))
    assert f"on node0 ({text})" in card.card_html(board.facts(), "job0", "http://c")


def test_a_card_that_may_become_old_says_when_it_was_made() -> None:
    board = Board()
    board.take_view(view())
    facts = board.facts()._replace(at=3661.0)
    for made in (card.card_html, card.card_text):
        assert "as of 01:01:01 UTC" in made(facts, "job0", "http://c")
        assert "as of" not in made(facts._replace(view=view("FAILED")), "job0", "http://c")


@pytest.mark.parametrize("points", [[1.0, 1.0], [0.0, 1e308, -1e308], [1e-300, 2e-300], list(map(float, range(121)))])
def test_a_curve_lies_within_its_picture(points: list[float]) -> None:
    picture = xml.fromstring(sparkline.svg(points))
    spots = [tuple(map(float, spot.split(","))) for spot in picture[0].attrib["points"].split()]
    assert len(spots) == len(points)
    assert all(0 <= x <= sparkline.WIDTH and 0 <= y <= sparkline.HEIGHT for x, y in spots)


def test_less_than_two_points_are_no_curve() -> None:
    assert sparkline.svg([]) == sparkline.svg([3.0]) == ""


def test_all_that_comes_from_outside_is_escaped_and_the_markup_is_whole() -> None:
    evil = "<script>&\"'</div>"
    board, tails = Board(), Tails()
    board.take_view(view("FAILED", name=evil, reason=evil, failed_rank=1, nodes=[{"node": evil, "first_rank": 0, "local_ranks": 9}]))
    board.take_points([point(evil, 1), point(evil, 2)])
    board.take_progress({"rank": 0, "fraction": 0.5, "text": evil})
    tails.take([said(rank, evil + "\n") for rank in range(9)])
    facts = board.facts()
    for html in (card.card_html(facts, "job0", evil, evil), card.ranks_html(tails, facts.view, "job0", 20)):
        assert "<script" not in html
        text = "".join(xml.fromstring(html.replace("<details open>", '<details open="">')).itertext())
        assert evil in text


def test_the_list_of_many_ranks_is_bounded_and_has_the_one_that_failed() -> None:
    tails = Tails()
    tails.take([said(rank, "x" * 2000 + "\n") for rank in range(1000) for _ in range(10)])
    html = card.ranks_html(tails, view("FAILED", failed_rank=777), "job0", LINES)
    assert html.count("<details") == card.FOLDED_RANKS + 1 and html.index("rank 777 failed") < html.index("rank 1 ")
    assert len(html) < 2 * card.FOLDED_CHARACTERS
    assert f"{999 - card.FOLDED_RANKS - 1} more ranks" in html


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0.0 s"), (0.44, "0.4 s"), (12.9, "12 s"), (185, "3 min 05 s"), (7620, "2 h 07 min"), (360000, "100 h 00 min")],
)
def test_durations_are_told_as_a_person_would(seconds: float, text: str) -> None:
    assert card.spell_duration(seconds) == text


def test_a_job_that_ended_tells_how_long_it_ran() -> None:
    board = Board()
    board.take_view(view("SUCCEEDED", started_at="2030-01-01T00:00:00.500Z", ended_at="2030-01-01T00:01:05.500Z"))
    assert "SUCCEEDED after 1 min 05 s" in card.card_text(board.facts(), "job0", "http://c")
    board.take_view(view("CANCELED", seq=2, reason="canceled by a person"))
    assert card.card_text(board.facts(), "job0", "http://c").startswith("job job0 (n): CANCELED, 8 GPUs on node0 (0,1)\ncanceled by")


# --- what is shown of an error, and where ---


def test_a_failed_job_is_shown_with_the_traceback_of_its_rank_once() -> None:
    failed = JobFailed("job job0 failed: bad", job_id="job0", rank=3, node="node1")
    failed.__cause__ = ValueError("bad")
    failed.__cause__.__cause__ = RemoteTraceback('Traceback (most recent call last):\n  File "a.py", line 3, in f\nValueError: bad\n')
    try:
        raise failed
    except JobFailed as caught:
        shown = caught._render_traceback_()
    assert "in test_a_failed_job_is_shown" in shown[0] and "raise failed" in shown[1]
    trace = ["Rank 3 on node node1:", "Traceback (most recent call last):", '  File "a.py", line 3, in f', "ValueError: bad"]
    assert shown[2:] == ["", *trace, "", "JobFailed: job job0 failed: bad"]
    assert JobFailed("job job0 was canceled")._render_traceback_() == ["", "JobFailed: job job0 was canceled"]


def test_a_process_without_a_kernel_is_no_notebook() -> None:
    assert not messages.in_notebook()


def test_an_interrupt_while_a_card_is_sent_comes_when_it_is_known_to_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []

    def publish(name: str) -> Any:
        def send(*_: Any, **__: Any) -> None:
            sent.append(name)
            if len(sent) == 1:
                os.kill(os.getpid(), signal.SIGINT)

        return send

    module = types.ModuleType("IPython.display")
    module.display, module.update_display = publish("display"), publish("update")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    output = cell._Output("id")
    with pytest.raises(KeyboardInterrupt):
        output.show("<b>1</b>", "1")
    output.show("<b>2</b>", "2")
    assert sent == ["display", "update"]
