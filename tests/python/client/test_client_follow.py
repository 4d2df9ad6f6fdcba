# SPDX-License-Identifier: Apache-2.0
"""Waiting for a job: its output, the reasons why it waits, interrupts, and a controller that goes away in between."""

from __future__ import annotations

import signal
import threading
from typing import Any

import cloudpickle
import pytest

from fake_controller import FakeController, Job
from serverless_gpu import distributed
from serverless_gpu._internal.api import watch
from serverless_gpu._internal.show.output import Output
from serverless_gpu.errors import ControllerError


def finish(fake: FakeController, job: Job, value: Any = None) -> None:
    for rank in range(job.spec["gpus"]):
        fake.leave(job, rank, cloudpickle.dumps(value))
    fake.end(job)


# --- output ---


def test_lines_are_whole_prefixed_and_keep_their_stream(fake: FakeController, capsys: pytest.CaptureFixture[str]) -> None:
    def program(controller: FakeController, job: Job) -> None:
        controller.say(job, "one\ntw", 0)
        controller.say(job, "first\n", 1)
        controller.say(job, "wrong\n", 1, "stderr")
        controller.say(job, "o\nthree\nlast", 0)
        finish(controller, job)

    fake.program = program
    assert distributed(gpus=2, remote=True)(len).distributed("x") == [None, None]
    shown = capsys.readouterr()
    assert shown.out == "[0] one\n[1] first\n[0] two\n[0] three\n[0] last\n"
    assert shown.err == "[1] wrong\n"


def test_the_output_of_a_single_rank_passes_as_it_is(fake: FakeController, capsys: pytest.CaptureFixture[str]) -> None:
    def program(controller: FakeController, job: Job) -> None:
        for piece in ("10%\r", "20%\r", "ünïcode ", "done"):
            controller.say(job, piece)
        finish(controller, job)

    fake.program = program
    distributed(gpus=1, remote=True)(len).distributed("x")
    assert capsys.readouterr().out == "10%\r20%\rünïcode done"


def test_quiet_shows_nothing_and_returns_the_same(fake: FakeController, capsys: pytest.CaptureFixture[str]) -> None:
    def program(controller: FakeController, job: Job) -> None:
        controller.say(job, "noise\n")
        finish(controller, job, 5)

    fake.program = program
    assert distributed(gpus=2, gpu_type="B200", remote=True, quiet=True)(len).distributed("x") == [5, 5]
    assert capsys.readouterr() == ("", "")
    assert fake.stream_headers == []


def test_a_line_without_end_is_shown_in_parts(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(prefix=True)
    output.write(0, "stdout", "x" * 70_000)
    output.flush()
    assert capsys.readouterr().out == "[0] " + "x" * 70_000 + "\n"
    output.finish()
    assert capsys.readouterr().out == ""


def test_what_a_carriage_return_has_overwritten_is_left_out_and_the_prefix_stays(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(prefix=True)
    for piece in ("plain\r\n 10%\r", " 20%\r", " 30%", "\rdone\n", "\r" + "x" * 60_000, "\r" + "y" * 60_000, "\n"):
        output.write(0, "stdout", piece)
    output.flush()
    assert capsys.readouterr().out == "[0] plain\n[0] done\n[0] " + "y" * 60_000 + "\n"


def test_the_output_of_the_next_attempt_follows(fake: FakeController, capsys: pytest.CaptureFixture[str]) -> None:
    def program(controller: FakeController, job: Job) -> None:
        controller.say(job, "first atte", 1)
        with controller.change():
            job.attempt = 2
        controller.say(job, "second\n", 1)
        finish(controller, job)

    fake.program = program
    distributed(gpus=2, remote=True, retries=1)(len).distributed("x")
    assert capsys.readouterr().out == "[1] first atte\n[1] second\n"


# --- why it waits ---


def test_each_reason_to_wait_is_said_once_and_the_start_too(
    fake: FakeController, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "GRACE_S", 0.01)

    def looked(times: int) -> Any:
        return lambda: sum("GET /v1/jobs/job0?wait=" in line for line in fake.requests) >= times

    def program(controller: FakeController, job: Job) -> None:
        for reason, times in (
            ("needs 4 GPUs: 2 of 8 are free", 1),
            ("needs 4 GPUs: 2 of 8 are free", 2),
            ("needs 4 GPUs: 3 of 8 are free", 3),
        ):
            with controller.change():
                job.state, job.reason, job.attempt = "QUEUED", reason, 0
                job.seq += 1
            controller.until(looked(times))
        with controller.change():
            job.state, job.reason, job.attempt = "RUNNING", None, 1
            job.seq += 1
        controller.until(looked(4))
        finish(controller, job)

    fake.program = program
    distributed(gpus=1, remote=True)(len).distributed("x")
    said = [line.removeprefix("gpuctl: job job0 ") for line in capsys.readouterr().err.splitlines()]
    assert said == ["QUEUED: needs 4 GPUs: 2 of 8 are free", "QUEUED: needs 4 GPUs: 3 of 8 are free", "RUNNING: on node0"]


def test_what_nodes_do_to_get_ready_is_said_and_how_long_it_takes_is_not_news(
    fake: FakeController, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "GRACE_S", 0.01)

    def looked(times: int) -> Any:
        return lambda: sum("GET /v1/jobs/job0?wait=5&" in line for line in fake.requests) >= times

    def program(controller: FakeController, job: Job) -> None:
        try:
            for times, doing in enumerate(("Installing torch (3 s)", "Installing torch (34 s)", "Installing numpy (1 s)"), 1):
                with controller.change():
                    job.state, job.reason, job.attempt = "STAGING", f"node n1 builds the environment: {doing}", 1
                    job.attempts = [{"attempt": 1, "reason": "node n0 was lost", "cause": "NODE_LOST"}]
                    job.seq += 1
                controller.until(looked(times))
        finally:
            finish(controller, job)

    fake.program = program
    distributed(gpus=1, remote=True)(len).distributed("x")
    said = [line.removeprefix("gpuctl: job job0 ") for line in capsys.readouterr().err.splitlines()]
    words = "STAGING: node n1 builds the environment: Installing"
    assert said == ["attempt 1 ended: node n0 was lost; trying again", f"{words} torch (3 s)", f"{words} numpy (1 s)"]


def test_a_job_that_starts_again_says_why(
    fake: FakeController, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "GRACE_S", 0.01)

    def program(controller: FakeController, job: Job) -> None:
        controller.until(lambda: any("wait=60&seq=1" in line for line in controller.requests))
        with controller.change():
            job.attempts = [
                {"attempt": 2, "reason": None, "cause": None},
                {"attempt": 1, "reason": "node node0 was lost", "cause": "NODE_LOST"},
            ]
            job.attempt = 2
            job.seq += 1
        controller.until(lambda: any("wait=60&seq=2" in line for line in controller.requests))
        finish(controller, job)

    fake.program = program
    distributed(gpus=1, remote=True)(len).distributed("x")
    said = [line.removeprefix("gpuctl: job job0 ") for line in capsys.readouterr().err.splitlines()]
    assert said == ["attempt 1 ended: node node0 was lost; trying again", "RUNNING: on node0"]


def test_of_a_job_that_starts_at_once_nothing_is_said(fake: FakeController, capsys: pytest.CaptureFixture[str]) -> None:
    distributed(gpus=1, remote=True)(len).distributed("x")
    assert capsys.readouterr().err == ""


# --- away and back ---


def test_a_controller_that_goes_away_is_waited_for_and_no_line_is_lost_or_doubled(
    fake: FakeController, capsys: pytest.CaptureFixture[str]
) -> None:
    def program(controller: FakeController, job: Job) -> None:
        controller.say(job, "before\nhalf ")
        controller.until(lambda: controller.stream_headers)
        controller.stop()
        controller.start()
        controller.say(job, "a line\nafter\n")
        finish(controller, job, 7)

    fake.program = program
    assert distributed(gpus=2, remote=True)(len).distributed("x") == [7, 7]
    shown = capsys.readouterr()
    assert shown.out == "[0] before\n[0] half a line\n[0] after\n"
    assert shown.err.count("cannot be reached") == 1 and fake.url in shown.err and shown.err.count("answers again") == 1
    # whether the first line had arrived when the controller went, and is resumed behind, is a matter of chance
    assert fake.stream_headers[0] is None and len(fake.stream_headers) > 1


def test_a_stream_that_breaks_off_again_and_again_is_resumed_behind_the_last_event(
    fake: FakeController, capsys: pytest.CaptureFixture[str]
) -> None:
    def program(controller: FakeController, job: Job) -> None:
        for number in range(12):
            controller.say(job, f"line {number}\n")
        finish(controller, job)

    fake.program = program
    fake.break_after = 3
    distributed(gpus=1, remote=True)(len).distributed("x")
    assert capsys.readouterr().out == "".join(f"line {number}\n" for number in range(12))
    assert fake.stream_headers == [None, "3", "6", "9", "12"] or fake.stream_headers[:4] == [None, "3", "6", "9"]


def test_a_token_that_is_refused_in_the_middle_ends_the_wait(fake: FakeController, monkeypatch: pytest.MonkeyPatch) -> None:
    import fake_controller

    def program(controller: FakeController, job: Job) -> None:
        controller.until(lambda: controller.stream_headers)
        monkeypatch.setattr(fake_controller, "TOKEN", "gct_new")
        controller.stop()
        controller.start()

    fake.program = program
    with pytest.raises(ControllerError, match="refuses the token"):
        distributed(gpus=1, remote=True)(len).distributed("x")


# --- interrupts ---


def interrupt() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@pytest.mark.parametrize("quiet", [False, True])
def test_an_interrupt_cancels_the_job_and_waits_for_its_end(fake: FakeController, capsys: pytest.CaptureFixture[str], quiet: bool) -> None:
    def program(controller: FakeController, job: Job) -> None:
        controller.until(lambda: any("/logs" in line or "wait=" in line for line in controller.requests))
        interrupt()
        controller.until(lambda: job.state == "CANCELED")

    fake.program = program
    with pytest.raises(KeyboardInterrupt):
        distributed(gpus=1, remote=True, quiet=quiet)(len).distributed("x")
    assert fake.jobs["job0"].state == "CANCELED"
    said = capsys.readouterr().err
    assert said == "" if quiet else "canceling job job0" in said and "job job0 is CANCELED" in said


def test_an_interrupt_before_the_answer_cancels_the_job_that_was_made(fake: FakeController) -> None:
    original = fake.handlers.post_jobs

    def hesitant(handler: Any, parts: list[str], query: dict[str, str], body: bytes) -> None:
        answers: list[Any] = []
        if not fake.jobs:
            handler.reply = lambda *answer: answers.append(answer)
        original(handler, parts, query, body)
        if answers and fake.jobs:  # made, and not told
            interrupt()
            fake.until(lambda: fake.requests.count("POST /v1/jobs") == 3)
            handler.connection.shutdown(2)
        elif answers:
            del handler.reply
            handler.reply(*answers[0])

    fake.handlers.post_jobs = hesitant
    fake.program = lambda controller, job: None
    with pytest.raises(KeyboardInterrupt):
        distributed(gpus=1, remote=True)(len).distributed("x")
    assert [job.state for job in fake.jobs.values()] == ["CANCELED"] and len(fake.keys) == 1


def test_a_second_interrupt_leaves_at_once_and_says_how_to_cancel(fake: FakeController, capsys: pytest.CaptureFixture[str]) -> None:
    def program(controller: FakeController, job: Job) -> None:
        controller.until(lambda: controller.stream_headers)
        interrupt()
        controller.until(lambda: any("/cancel" in line for line in controller.requests))
        controller.until(lambda: len(controller.stream_headers) > 1)
        interrupt()

    def stubborn(handler: Any, job: Job) -> None:
        handler.reply(202, job.view())

    fake.handlers.cancel = stubborn
    fake.program = program
    with pytest.raises(KeyboardInterrupt):
        distributed(gpus=1, remote=True)(len).distributed("x")
    assert "left job job0; `gpuctl cancel job0` cancels it" in capsys.readouterr().err
    fake.end(fake.jobs["job0"])
