# SPDX-License-Identifier: Apache-2.0
"""Jobs that do not succeed: what is raised, and what it is caused by."""

from __future__ import annotations

import builtins
import linecache
import pickle
import traceback
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from fake_controller import FakeController, Job
from serverless_gpu import distributed
from serverless_gpu._internal.calls import seal_keys
from serverless_gpu._internal.calls.failure import with_source
from serverless_gpu.errors import GpuctlError, JobFailed, RemoteError, RemoteTraceback


class Unlucky(Exception):
    """An exception of the notebook's own."""


def fail(fake: FakeController, **options: Any) -> JobFailed:
    with pytest.raises(RuntimeError) as raised:
        distributed(gpus=1, remote=True, **options)(len).distributed("x")
    assert isinstance(raised.value, JobFailed)
    return raised.value


def test_the_ranks_own_exception_is_the_cause_and_its_traceback_the_cause_of_that(fake: FakeController) -> None:
    @distributed(gpus=3, remote=True, name="training")
    def train() -> None:
        raise Unlucky("number", 2)

    with pytest.raises(JobFailed, match=r"job job0 \(training\) failed: rank 0 on node node0 exited with 1: Unlucky") as raised:
        train.distributed()
    error = raised.value
    assert (error.job_id, error.state, error.rank, error.node) == ("job0", "FAILED", 0, "node0")
    assert isinstance(error, GpuctlError) and isinstance(error.__cause__, Unlucky) and error.__cause__.args == ("number", 2)
    assert isinstance(error.__cause__.__cause__, RemoteTraceback)
    shown = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    assert 'raise Unlucky("number", 2)' in shown and "in train" in shown and shown.rstrip().splitlines()[-1].endswith(str(error))


class Coded(OSError):
    """With arguments and an attribute of its own."""

    def __init__(self, code: int, where: str):
        super().__init__(code, where)
        self.code = code


class Final(Exception):
    """That cannot be a base."""

    def __init_subclass__(cls) -> None:
        raise TypeError("final")


@pytest.mark.parametrize(
    ("raised", "types"),
    [
        (ValueError("bad"), (ValueError,)),
        (KeyError("missing"), (KeyError, LookupError)),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), (UnicodeDecodeError, ValueError)),
        (FileNotFoundError(2, "no", "x"), (FileNotFoundError,)),
        (Coded(7, "here"), (Coded, OSError)),
        (Unlucky("two"), (Unlucky,)),
        (RuntimeError("plain"), (RuntimeError,)),
        (Final("end"), ()),
        (StopIteration(1), ()),
        (SystemExit(3), ()),
    ],
)
def test_what_is_raised_is_of_the_ranks_type_too(fake: FakeController, raised: BaseException, types: tuple[type, ...]) -> None:
    """P13: `except ValueError` around a call catches it, as with the original's client."""
    left = {"type": "X", "message": "said", "traceback": "", "frames": [], "exception": raised}

    def program(controller: FakeController, job: Job) -> None:
        controller.leave(job, 0, cloudpickle.dumps(left), kind="exception", error={"message": {"message": "X: said"}})
        controller.end(job, "FAILED", reason="rank 0 on node node0 exited with 1", cause="RANK_FAILED", failed_rank=0)

    fake.program = program
    error = fail(fake)
    assert all(isinstance(error, each) for each in types)
    assert str(error).endswith("exited with 1: X: said") and error.rank == 0 and type(error).__name__ == "JobFailed"
    assert type(error.__cause__).__name__ == type(raised).__name__
    if isinstance(error, OSError) and isinstance(raised, OSError):
        assert error.errno == raised.errno and getattr(error, "code", 7) == 7
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is JobFailed and str(again) == str(error)


def test_an_exception_that_cannot_be_rebuilt_here_is_told_by_its_text(fake: FakeController) -> None:
    told = {"message": {"message": "Odd: one", "extraInfo": {"py_callstack": "Traceback of the rank\nOdd: one\n"}}}
    left: dict[str, Any] = {"type": "Odd", "message": "one", "traceback": "Traceback of the rank, whole\n", "frames": [], "exception": None}
    for data in (b"cmodule_of_the_node\nOdd\n.", cloudpickle.dumps(left), b""):

        def program(controller: FakeController, job: Job, data: bytes = data) -> None:
            controller.leave(job, 0, data, kind="exception", error=told)
            if not data:  # only the error file arrived
                job.rows[0]["sha256"] = None
                del job.rows[0]["base64"]
            controller.end(job, "FAILED", reason="rank 0 on node node0 exited with 1: Odd: one", cause="RANK_FAILED", failed_rank=0)

        fake.program = program
        error = fail(fake)
        assert isinstance(error.__cause__, RemoteError) and str(error.__cause__) == "Odd: one"
        assert "Traceback of the rank" in str(error.__cause__.__cause__)
        assert str(error).count("Odd: one") == 1


def test_the_rank_that_failed_first_is_the_cause_not_the_lowest(fake: FakeController) -> None:
    def program(controller: FakeController, job: Job) -> None:
        for rank in range(4):
            left = {"type": "ValueError", "message": str(rank), "traceback": "", "frames": [], "exception": ValueError(rank)}
            controller.leave(job, rank, cloudpickle.dumps(left), kind="exception", error={"message": {"message": f"ValueError: {rank}"}})
        controller.end(job, "FAILED", reason="rank 2 on node node0 exited with 1", cause="RANK_FAILED", failed_rank=2)

    fake.program = program
    error = fail(fake)
    assert isinstance(error.__cause__, ValueError) and error.__cause__.args == (2,) and error.__cause__.__cause__ is None
    assert str(error).endswith("rank 2 on node node0 exited with 1: ValueError: 2")


def test_a_rank_that_was_killed_has_no_cause(fake: FakeController) -> None:
    fake.program = lambda controller, job: controller.end(job, "FAILED", reason="rank 1 on node n was killed by SIGKILL", failed_rank=1)
    error = fail(fake)
    assert error.__cause__ is None and "SIGKILL" in str(error)


@pytest.mark.parametrize(
    ("fields", "options", "words"),
    [
        ({"state": "TIMED_OUT", "cause": "TIME_LIMIT"}, {"timeout": 30}, "ran longer than its timeout of 30 s"),
        ({"state": "CANCELED", "cause": "CANCELED", "reason": "canceled"}, {}, "was canceled"),
        (
            {"state": "FAILED", "cause": "RESULT_MISSING", "reason": "rank 0 on node node0 ended without a result", "failed_rank": 0},
            {},
            "rank 0 .*without a result",
        ),
        ({"state": "FAILED", "cause": "NODE_LOST", "reason": None}, {}, "failed"),
    ],
)
def test_each_end_has_its_own_sentence(fake: FakeController, fields: dict[str, Any], options: dict[str, Any], words: str) -> None:
    fake.program = lambda controller, job: controller.end(job, **fields)
    error = fail(fake, **options)
    assert error.state == fields["state"]
    with pytest.raises(JobFailed, match=words):
        raise error


def test_an_error_can_be_pickled_itself() -> None:
    again = pickle.loads(pickle.dumps(JobFailed("no", job_id="j", state="FAILED", rank=3, node="n")))
    assert (str(again), again.job_id, again.rank, again.node) == ("no", "j", 3, "n")


def test_lines_of_notebook_cells_are_found_here_and_others_left_alone() -> None:
    linecache.cache["<cell 7>"] = (12, None, ["a = 1\n", "    raise ValueError\n"], "<cell 7>")
    text = (
        'Traceback (most recent call last):\n  File "<cell 7>", line 2, in f\n  File "/lib/x.py", line 1, in g\n    known()\n'
        '  File "<cell 7>", line 1, in other\nValueError\n'
    )
    shown = with_source(text, [("<cell 7>", 2, "f"), ("/lib/x.py", 1, "g")])
    assert shown.splitlines()[1:] == [
        '  File "<cell 7>", line 2, in f',
        "    raise ValueError",
        '  File "/lib/x.py", line 1, in g',
        "    known()",
        '  File "<cell 7>", line 1, in other',
        "ValueError",
    ]


def test_a_group_of_exceptions_is_caught_as_one(fake: FakeController) -> None:
    def program(controller: FakeController, job: Job) -> None:
        group = vars(builtins)["ExceptionGroup"]("two", [ValueError(1), OSError(2, "no")])
        left = {"type": "ExceptionGroup", "message": "two", "traceback": "", "frames": [], "exception": group}
        controller.leave(job, 0, cloudpickle.dumps(left), kind="exception", error={"message": {"message": "ExceptionGroup: two"}})
        controller.end(job, "FAILED", reason="rank 0 on node node0 exited with 1", cause="RANK_FAILED", failed_rank=0)

    fake.program = program
    error: Any = fail(fake)
    assert isinstance(error, vars(builtins)["ExceptionGroup"]) and error.split(OSError)[0].exceptions[0].errno == 2
    assert str(error).startswith("job job0") and error.rank == 0


def test_the_file_of_keys_has_an_end_and_is_the_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "state"
    assert seal_keys.find(state, "a") == b""
    monkeypatch.setattr(seal_keys, "LIMIT_BYTES", 1000)
    for number in range(100):
        seal_keys.remember(state, f"job{number}", bytes([number]) * 32)
    file = state / seal_keys.NAME
    assert file.stat().st_mode & 0o777 == 0o600 and file.stat().st_size < 1100
    assert seal_keys.find(state, "job99") == bytes([99]) * 32 and seal_keys.find(state, "job0") == b""
    file.write_bytes(b"job1 zz\n\xff\xfe\n")
    assert seal_keys.find(state, "job1") == b""
    (tmp_path / "file").write_text("")
    seal_keys.remember(tmp_path / "file", "job1", b"k")
