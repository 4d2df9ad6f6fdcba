# SPDX-License-Identifier: Apache-2.0
"""A call in a terminal: the line of progress, and that nothing else is shown otherwise than in a file."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Callable
from typing import Any

import cloudpickle
import pytest

from fake_controller import FakeController, Job
from serverless_gpu import distributed
from serverless_gpu._internal.show.board import Progress
from serverless_gpu._internal.show.terminal import bar


class Screen(io.StringIO):
    """A terminal in memory, for stdout and stderr at once."""

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """What a person sees in the end."""
        shown = []
        for line in self.getvalue().split("\n"):
            cells: list[str] = []
            for part in line.split("\r"):
                cells[: len(part)] = part
            shown.append("".join(cells).rstrip())
        return shown


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setenv("COLUMNS", "60")
    return Screen()


def call(fake: FakeController, screen: Screen, program: Callable[[FakeController, Job], None] | None = None, gpus: int = 1) -> list[Any]:
    """Call a function in the terminal; a program that fails fails its job."""

    def play(controller: FakeController, job: Job) -> None:
        try:
            program(controller, job) if program else finish(controller, job)
        except BaseException as error:
            controller.end(job, "FAILED", reason=repr(error))

    fake.program = play
    with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
        return distributed(gpus=gpus, remote=True)(len).distributed("x")


def finish(controller: FakeController, job: Job) -> None:
    for rank in range(job.spec["gpus"]):
        controller.leave(job, rank, cloudpickle.dumps(rank))
    controller.end(job)


def soon(condition: Any) -> None:
    """Poll from the thread of a program."""
    pause = threading.Event()
    for _ in range(2000):
        if condition():
            return
        pause.wait(0.005)
    raise AssertionError("it was not shown")


def test_the_line_of_progress_is_written_in_place_and_never_kept(fake: FakeController, screen: Screen) -> None:
    def program(controller: FakeController, job: Job) -> None:
        controller.say(job, "before\n")
        controller.measure(job, "progress", rank=0, fraction=0.25, text="first epoch", time="")
        soon(lambda: "25% first epoch" in screen.lines()[-1])
        controller.say(job, "between\n")
        soon(lambda: screen.lines()[-2:][0] == "between" and "25% first epoch" in screen.lines()[-1])
        controller.measure(job, "progress", rank=0, fraction=0.5, text=None, time="")
        soon(lambda: screen.lines()[-1].endswith("]  50%"))
        finish(controller, job)

    assert call(fake, screen, program) == [0]
    assert screen.lines() == ["before", "between", ""]
    assert "\x1b" not in screen.getvalue()


def test_no_line_is_written_into_a_line_that_has_not_ended(fake: FakeController, screen: Screen) -> None:
    def program(controller: FakeController, job: Job) -> None:
        controller.say(job, "half a ")
        controller.measure(job, "progress", rank=0, fraction=0.25, text=None, time="")
        soon(lambda: "half a " in screen.getvalue() and any("/metrics" in line for line in controller.requests))
        controller.say(job, "line\n")
        soon(lambda: "25%" in screen.lines()[-1])
        finish(controller, job)

    call(fake, screen, program)
    assert screen.lines() == ["half a line", ""]


def test_without_progress_a_terminal_gets_what_a_file_gets(fake: FakeController, screen: Screen) -> None:
    def program(controller: FakeController, job: Job) -> None:
        for rank in range(2):
            controller.say(job, f"rank {rank}\nno end", rank)
        finish(controller, job)

    assert call(fake, screen, program, gpus=2) == [0, 1]
    assert screen.getvalue() == "[0] rank 0\n[1] rank 1\n[0] no end\n[1] no end\n"


def test_where_nobody_looks_progress_is_not_asked_for(fake: FakeController, capsys: pytest.CaptureFixture[str]) -> None:
    def program(controller: FakeController, job: Job) -> None:
        controller.measure(job, "progress", rank=0, fraction=0.25, text="first epoch", time="")
        controller.say(job, "a line\n")
        finish(controller, job)

    fake.program = program
    distributed(gpus=1, remote=True)(len).distributed("x")
    assert capsys.readouterr() == ("a line\n", "")
    assert not any("/metrics" in line for line in fake.requests)


def test_a_controller_that_goes_away_is_waited_for_in_a_terminal_too(fake: FakeController, screen: Screen) -> None:
    def program(controller: FakeController, job: Job) -> None:
        controller.say(job, "before\n")
        controller.measure(job, "progress", rank=0, fraction=0.25, text=None, time="")
        soon(lambda: "25%" in screen.lines()[-1])
        controller.stop()
        soon(lambda: "cannot be reached" in screen.getvalue())
        controller.start()
        controller.say(job, "after\n")
        controller.measure(job, "progress", rank=0, fraction=0.75, text=None, time="")
        soon(lambda: "75%" in screen.lines()[-1])
        finish(controller, job)

    assert call(fake, screen, program) == [0]
    lines = screen.lines()
    assert lines.count("before") == 1 and lines.count("after") == 1 and "%" not in "".join(lines)
    assert sum("cannot be reached" in line for line in lines) == 1 and sum("answers again" in line for line in lines) == 1


def test_the_threads_of_a_call_end_with_it(fake: FakeController, screen: Screen) -> None:
    call(fake, screen)
    soon(lambda: not [thread for thread in threading.enumerate() if thread.name.startswith("gpuctl")])


@pytest.mark.parametrize(
    ("progress", "columns", "line"),
    [
        (Progress(0, 0.5, "epoch 1"), 80, "[" + "#" * 12 + "-" * 12 + "]  50% epoch 1"),
        (Progress(0, None, "loading\x1b[31m\n"), 80, "loading [31m "),
        (Progress(0, 1.0, None), 80, "[" + "#" * 24 + "] 100%"),
        (Progress(0, 1.0, "words"), 10, "[#########"),
    ],
)
def test_the_line_fits_and_holds_no_control_characters(progress: Progress, columns: int, line: str) -> None:
    assert bar(progress, columns) == line
