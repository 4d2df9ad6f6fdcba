# SPDX-License-Identifier: Apache-2.0
"""A call that nobody waits for: what its handle tells, how it waits, and what it raises."""

from __future__ import annotations

import concurrent.futures
import math
import os
import threading
import time
from typing import Any

import cloudpickle
import pytest

from fake_controller import FakeController, Job, run_to_end
from serverless_gpu import asynchronous, distributed
from serverless_gpu._internal.api.context import Context
from serverless_gpu._internal.calls.call import DistributedFunctionCall
from serverless_gpu.errors import JobFailed


def runs_on(controller: FakeController, job: Job) -> None:
    """A job that ends only when a test says so."""


def start(fake: FakeController, program: Any = runs_on, **options: Any) -> DistributedFunctionCall:
    fake.program = program
    call: DistributedFunctionCall = distributed(gpus=1, remote=True, run_async=True, **options)(len).distributed("four")
    return call


def finish(fake: FakeController, call: DistributedFunctionCall, value: Any = 4) -> None:
    job = fake.jobs[str(call.job_id)]
    fake.leave(job, 0, cloudpickle.dumps(value))
    fake.end(job)


def test_a_call_comes_back_when_its_job_is_submitted(fake: FakeController) -> None:
    call = start(fake)
    assert isinstance(call, DistributedFunctionCall) and call.job_id == "job0" and call.state is None
    assert repr(call) == "<DistributedFunctionCall of job job0: not asked yet>"
    assert call.status() == "RUNNING" and not call.done()
    finish(fake, call)
    assert call.result() == call.get() == [4] and call.done() and call.exception() is None
    assert repr(call) == "<DistributedFunctionCall of job job0: SUCCEEDED>"


def test_a_state_is_a_property_as_with_the_original_and_may_be_called(fake: FakeController) -> None:  # P13
    call = start(fake)
    assert call.status == "RUNNING" == call.status() and f"{call.status}" == "RUNNING"
    finish(fake, call)
    assert call.result(logs=True) == [4] and call.status == "SUCCEEDED"
    with pytest.raises(ValueError, match="leave timeout out"):
        start(fake).result(3, logs=True)


def test_calls_are_printed_and_stopped_together(fake: FakeController, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = start(fake), start(fake)
    finish(fake, first)
    asynchronous.print_runs([first, second])
    assert capsys.readouterr().out == "job0  SUCCEEDED\njob1  RUNNING\n"
    asynchronous.stop(second)
    asynchronous.stop([first, second])
    assert [call.wait() for call in (first, second)] == ["SUCCEEDED", "CANCELED"]


def test_a_result_is_fetched_once_for_all_threads(fake: FakeController) -> None:
    call = start(fake)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        waiting = [pool.submit(call.result) for _ in range(6)]
        fake.until(lambda: sum("?wait=" in line for line in fake.requests) >= 6)
        finish(fake, call, "value")
        assert [item.result(20) for item in waiting] == [["value"]] * 6
    assert sum("/results" in line for line in fake.requests) == 1
    call.result().append("another")
    assert call.result() == ["value"]


def test_a_timeout_raises_and_leaves_the_job_alone(fake: FakeController) -> None:
    call = start(fake)
    for wait in (call.wait, call.result, call.exception):
        begin = time.monotonic()
        with pytest.raises(TimeoutError, match="job0 has not ended within 0.2 s .it is RUNNING.; it runs on"):
            wait(timeout=0.2)
        assert 0.2 <= time.monotonic() - begin < 2
    with pytest.raises(TimeoutError):
        call.wait(0)
    assert fake.jobs["job0"].state == "RUNNING" and not any("cancel" in line for line in fake.requests)
    finish(fake, call)
    assert call.wait(0) == "SUCCEEDED"


@pytest.mark.parametrize(("timeout", "kind"), [("1", TypeError), (True, TypeError), (-1, ValueError), (math.nan, ValueError)])
def test_what_is_no_timeout_is_refused(fake: FakeController, timeout: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="timeout"):
        start(fake).wait(timeout)


def test_waiting_asks_the_controller_to_wait_and_not_again_and_again(fake: FakeController) -> None:
    call = start(fake)
    with pytest.raises(TimeoutError):
        call.wait(1)
    asked = [line for line in fake.requests if line.startswith("GET /v1/jobs/job0")]
    assert 1 <= len(asked) <= 3 and asked[0].startswith("GET /v1/jobs/job0?wait=") and asked[0].endswith("ms"), asked


def test_a_timeout_holds_while_the_controller_is_away(fake: FakeController) -> None:
    call = start(fake, quiet=True)
    fake.stop()
    begin = time.monotonic()
    with pytest.raises(TimeoutError, match="cannot be reached"):
        call.wait(0.3)
    assert time.monotonic() - begin < 5
    fake.start()
    finish(fake, call)
    assert call.result(20) == [4]


def test_a_canceled_call_raises_what_a_waiting_one_would(fake: FakeController) -> None:
    call = start(fake)
    assert call.cancel() is True
    with pytest.raises(JobFailed, match="job0 .len. was canceled") as raised:
        call.result()
    assert raised.value.state == "CANCELED" and call.exception() is raised.value and call.status() == "CANCELED"
    assert call.cancel() is False


def test_a_job_that_has_just_ended_is_not_canceled(fake: FakeController) -> None:
    call = start(fake)
    finish(fake, call)
    assert call.cancel() is False and call.result() == [4]


def test_a_failed_call_raises_with_the_exception_of_the_rank_as_its_cause(fake: FakeController) -> None:
    fake.program = run_to_end

    @distributed(gpus=2, remote=True, run_async=True)
    def divide(number: int) -> float:
        return 1 / number

    call = divide.distributed(0)
    failed = call.exception()
    assert isinstance(failed, JobFailed) and isinstance(failed.__cause__, ZeroDivisionError)
    with pytest.raises(JobFailed) as raised:
        call.result()
    assert raised.value is failed


def test_logs_are_the_text_of_one_stream_and_their_last_lines(fake: FakeController) -> None:
    call = start(fake)
    job = fake.jobs["job0"]
    fake.say(job, "grüße\n" * 30_000 + "end")
    fake.say(job, "of one", rank=1, stream="stderr")
    assert call.logs().endswith("grüße\nend") and len(call.logs()) == 6 * 30_000 + 3
    assert call.logs(tail=2) == "grüße\nend" and call.logs(tail=0) == "" and call.logs(tail=99_999) == call.logs()
    assert call.logs(tail=20_000) == "grüße\n" * 19_999 + "end"
    assert (call.logs(rank=1), call.logs(1, "stderr")) == ("", "of one")
    with pytest.raises(ValueError, match="stream"):
        call.logs(stream="stdin")


def test_metrics_are_the_points_of_all_pages_with_numbers_for_what_is_not_finite(fake: FakeController) -> None:
    call = start(fake)
    fake.jobs["job0"].points += [{"rank": 0, "name": "loss", "value": value, "time": "T"} for value in (0.5, "NaN", "-Infinity", 2, 3)]
    values = [point["value"] for point in call.metrics()]
    assert values[0] == 0.5 and math.isnan(values[1]) and values[2:] == [-math.inf, 2, 3]
    call.metrics(name="a b/ü", rank=3)
    assert fake.requests[-1].startswith("GET /v1/jobs/job0/metrics?limit=10000&name=a%20b%2F%C3%BC&rank=3")


def test_output_is_shown_only_where_it_was_asked_for(fake: FakeController, capsys: pytest.CaptureFixture[str]) -> None:
    def talks(controller: FakeController, job: Job) -> None:
        controller.say(job, "hello\n")
        controller.leave(job, 0, cloudpickle.dumps(0))
        controller.end(job)

    assert start(fake, talks).result() == [0]
    assert not fake.stream_headers and capsys.readouterr() == ("", "")
    call = start(fake, talks, quiet=False)
    assert call.result() == [0]
    for thread in threading.enumerate():
        if thread.name == f"gpuctl-output-{call.job_id}":
            thread.join(20)
    assert capsys.readouterr().out == "hello\n"


def test_a_handle_of_an_instance_that_has_ended_starts_it_again(fake: FakeController, monkeypatch: pytest.MonkeyPatch) -> None:
    call = start(fake)
    finish(fake, call)
    started: list[Any] = []
    monkeypatch.setattr("serverless_gpu._internal.api.embedded.running_url", lambda state: fake.url if started else None)
    monkeypatch.setattr("serverless_gpu._internal.api.embedded.start", started.append)
    call._context = Context("http://127.0.0.1:9", "gct_old", os.environ["GPUCTL_TOKEN_FILE"], None, call._context.state, embedded=True)
    assert call.result(20) == [4] and started == [call._context.state]


def test_a_handle_says_that_it_was_not_submitted(fake: FakeController) -> None:
    function = distributed(gpus=1, remote=True)(len)
    call = DistributedFunctionCall.prepare(len, function._options, ("x",), {})
    with pytest.raises(RuntimeError, match="not submitted"):
        call.logs()
    assert "not submitted" in repr(call)
