# SPDX-License-Identifier: Apache-2.0
"""A call on its way to the controller and back: what is sent, what is refused before, and what the values come back as."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from fake_controller import FakeController, Job, digest, run_to_end
from serverless_gpu import distributed
from serverless_gpu._internal.calls import call, host, spec
from serverless_gpu.errors import ControllerError, ControllerUnreachable, InvalidJob, JobFailed, ResultUnreadable, SettingsError

LOCK = threading.Lock()


def only_job(fake: FakeController) -> Job:
    assert len(fake.jobs) == 1
    return next(iter(fake.jobs.values()))


# --- values ---


def test_values_come_back_by_rank_over_all_pages(fake: FakeController) -> None:
    def shuffled(controller: FakeController, job: Job) -> None:
        for rank in range(5):
            controller.leave(job, rank, cloudpickle.dumps(f"rank {rank}"))
        controller.end(job)

    fake.program = shuffled
    assert distributed(gpus=5, remote=True)(len).distributed("x") == [f"rank {rank}" for rank in range(5)]


def test_arguments_and_large_values_survive_the_way(fake: FakeController) -> None:
    @distributed(gpus=2, remote=True)
    def repeat(text: str, times: int = 1, *, end: str = "") -> str:
        return text * times + end

    assert repeat.distributed("ab", times=100_000, end="!") == ["ab" * 100_000 + "!"] * 2
    assert any(re.match("GET /v1/blobs/", line) for line in fake.requests)


def test_a_value_that_arrives_damaged_is_never_unpickled(fake: FakeController) -> None:
    def damaged(controller: FakeController, job: Job) -> None:
        data = controller.leave(job, 0, cloudpickle.dumps("x" * 100_000))
        controller.blobs[digest(data)] = data[:-1] + b"!"
        controller.end(job)

    fake.program = damaged
    with pytest.raises(ControllerError, match="damaged"):
        distributed(gpus=1, remote=True)(len).distributed("x")


OPENED: list[str] = []


class Forged:
    """A pickle of it leaves a word in whoever opens it."""

    def __reduce__(self) -> Any:
        return OPENED.append, ("opened",)


@pytest.mark.parametrize("size", [10, 100_000], ids=["inline", "blob"])
@pytest.mark.parametrize("how", ["without a seal", "by another key", "of another job", "of another rank", "of another kind", "changed"])
def test_a_value_that_the_calls_ranks_have_not_sealed_is_never_unpickled(fake: FakeController, how: str, size: int) -> None:
    def forged(controller: FakeController, job: Job) -> None:
        data = cloudpickle.dumps((Forged(), "x" * size))
        key, job_id, rank, kind = controller.key(job), job.id, 0, "value"
        if how == "by another key":
            key = bytes(32)
        elif how == "of another job":
            job_id = "job9"
        elif how == "of another rank":
            rank = 1
        elif how == "of another kind":
            kind = "exception"
        sealed = controller.seal(key, job_id, rank, kind, data) if how != "without a seal" else data
        controller.store(job, 0, sealed.replace(b"opened", b"OPENED") if how == "changed" else sealed)
        controller.end(job)

    fake.program = forged
    with pytest.raises(ResultUnreadable, match=r"rank 0 of job job0 has no seal .*was not unpickled"):
        distributed(gpus=1, remote=True)(len).distributed("x")
    assert OPENED == []


def test_a_value_whose_module_is_missing_here_says_so_and_where_its_bytes_are(fake: FakeController) -> None:
    def foreign(controller: FakeController, job: Job) -> None:
        controller.leave(job, 0, b"cmodule_of_the_node\nThing\n.")
        controller.end(job)

    fake.program = foreign
    with pytest.raises(ResultUnreadable, match=r"module_of_the_node.*gpuctl results job0 --rank 0 --save") as raised:
        distributed(gpus=1, remote=True)(len).distributed("x")
    assert (raised.value.job_id, raised.value.rank) == ("job0", 0)


def test_a_missing_result_is_an_error_even_if_the_job_succeeded(fake: FakeController) -> None:
    def lossy(controller: FakeController, job: Job) -> None:
        controller.leave(job, 0, cloudpickle.dumps(1))
        controller.end(job)

    fake.program = lossy
    with pytest.raises(JobFailed, match="rank 1"):
        distributed(gpus=2, remote=True)(len).distributed("x")


# --- what is sent ---


def test_modules_are_sent_when_the_controller_lacks_them_and_only_then(fake: FakeController) -> None:
    function = distributed(gpus=1, remote=True)(len)
    function.distributed("x")
    function.distributed("x")
    posts = [line for line in fake.requests if line == "POST /v1/jobs"]
    puts = [line for line in fake.requests if line.startswith("PUT")]
    assert len(posts) == 4 and len(puts) == 2 and len(fake.keys) == 2  # the environment, the modules
    sent = {(job.spec["function"]["modules"], job.spec["environment"]["blob"]) for job in fake.jobs.values()}
    assert len(sent) == 1 and set(*sent) == {line.rpartition("/")[2] for line in puts}


def test_a_payload_of_more_than_32_kib_goes_by_blob_and_once(fake: FakeController) -> None:
    function = distributed(gpus=1, remote=True, requirements=None)(len)
    assert function.distributed(bytes(40_000)) == [40_000] == function.distributed(bytes(40_000))
    assert function.distributed(bytes(20_000)) == [20_000]
    kinds = [set(job.spec["function"]) for job in fake.jobs.values()]
    assert kinds == [{"blob", "modules"}, {"blob", "modules"}, {"inline", "modules"}]
    assert sum(line.startswith("PUT") for line in fake.requests) == 2  # the payload, the modules


def test_a_payload_over_one_gib_is_refused_with_its_size_before_anything_is_sent(fake: FakeController) -> None:
    with pytest.raises(ValueError, match=r"1\.00 GiB.*limit is 1 GiB.*inside the function"):
        distributed(gpus=1, remote=True)(len).distributed(bytes(1024**3 + 1))
    assert fake.requests == []


def test_options_become_fields_and_defaults_are_left_to_the_controller(fake: FakeController) -> None:
    distributed(gpus=1, remote=True, requirements=None)(lambda: None).distributed()
    assert only_job(fake).spec.keys() == {"gpus", "remote", "name", "retries", "function"}
    assert only_job(fake).spec["name"] == "lambda"
    fake.jobs.clear()
    distributed(
        gpus=2, gpu_type=["CPU", "slot"], remote=True, name="n", project="p", pool="q", env={"A": "b"}, labels={"c": "d"},
        secrets="S:file", volumes=["data:/data:ro", "scratch"], checkpoint_volume="scratch", inputs="https://host/x",
        python="/usr/bin/python3", retries=2, infra_retries=0, timeout=90.5,
        keep_on_failure=3600, early_signal="USR1@30", priority=-3, launch_mode="process", requirements=False,
        constraints={"zone": ["a", "b"], "disk": {"not": "hdd"}}, avoid="n1", exclude=("n2", "n3"), placement="spread",
    )(lambda: None).distributed()  # fmt: skip
    sent = only_job(fake).spec
    del sent["function"]
    assert sent == {
        "gpus": 2, "gpu_type": "CPU|slot", "remote": True, "name": "n", "project": "p", "pool": "q", "env": {"A": "b"},
        "secrets": ["S:file"], "volumes": ["data:/data:ro", "scratch"], "checkpoint_volume": "scratch",
        "inputs": ["https://host/x"], "labels": {"c": "d"},
        "python": "/usr/bin/python3", "retries": 2, "infra_retries": 0, "time_limit_s": 90.5, "priority": -3,
        "launch_mode": "process", "constraints": {"zone": ["a", "b"], "disk": {"not": "hdd"}}, "avoid": ["n1"],
        "exclude": ["n2", "n3"], "placement": "spread",
        "early_signal": {"signal": "USR1", "before_s": 30}, "keep_on_failure_s": 3600,
    }  # fmt: skip


def test_jobs_to_follow_are_named_by_ids_handles_and_pairs(fake: FakeController) -> None:
    first = distributed(gpus=1, remote=True, run_async=True)(len).distributed("x")
    for after, sent in [
        ("a" * 16, [("a" * 16, "afterok")]),
        (first, [(first.job_id, "afterok")]),
        ((first, "after"), [(first.job_id, "after")]),
        ([first, ("a" * 16, "afterany")], [(first.job_id, "afterok"), ("a" * 16, "afterany")]),
    ]:
        call = distributed(gpus=1, remote=True, run_async=True, after=after, hold=True)(len).distributed("x")
        spec = fake.jobs[str(call.job_id)].spec
        assert [(item["job"], item["when"]) for item in spec["after"]] == sent and spec["hold"] is True
    wrongs: list[Any] = [3, [3], [(first, 3)], [None]]
    for wrong in wrongs:
        with pytest.raises(TypeError, match="after"):
            distributed(gpus=1, remote=True, after=wrong)


@pytest.mark.parametrize(
    ("options", "name"),
    [({"gpu_type": []}, "gpu_type"), ({"gpu_type": ["A10", 1]}, "gpu_type"), ({"constraints": ["zone=a"]}, "constraints"),
     ({"avoid": [1]}, "avoid"), ({"exclude": [""]}, "exclude"), ({"placement": 1}, "placement")],
)  # fmt: skip
def test_where_to_run_is_checked_by_form(options: dict[str, Any], name: str) -> None:
    with pytest.raises(TypeError, match=name):
        distributed(gpus=1, **options)


def test_remote_false_takes_along_what_this_host_shares(fake: FakeController, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    distributed(gpus=1, env={"PYTHONPATH": "/first"})(lambda: None).distributed()
    sent = only_job(fake).spec
    assert (
        sent["remote"] is False
        and sent["host_id"] == host.host_id()
        and sent["python"] == sys.executable
        and sent["workdir"] == str(tmp_path)
    )
    path = sent["env"]["PYTHONPATH"].split(":")
    assert path[:2] == ["/first", str(tmp_path)]
    fresh = subprocess.run(
        [sys.executable, "-I", "-c", "import sys; print(*sys.path, sep=':')"], capture_output=True, text=True, check=True
    )
    assert not set(path) & set(fresh.stdout.strip().split(":")), path


@pytest.mark.parametrize(
    ("word", "sent"), [("False", False), ("0", False), ("NO", False), ("off", False), ("true", None), ("", None), (None, None)]
)
def test_the_reserved_pool_is_declined_by_the_environment_of_the_call(
    fake: FakeController, monkeypatch: pytest.MonkeyPatch, word: str | None, sent: bool | None
) -> None:
    function = distributed(gpus=1, remote=True)(len)
    if word is not None:
        monkeypatch.setenv("DATABRICKS_USE_RESERVED_GPU_POOL", word)
    monkeypatch.setenv("DATABRICKS_REMOTE_GPU_POOL_ID", "fast")
    function.distributed("x")
    assert only_job(fake).spec.get("use_reserved_pool") is sent and only_job(fake).spec["pool"] == "fast"


def test_an_unknown_word_for_the_reserved_pool_is_refused_by_name(fake: FakeController, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_USE_RESERVED_GPU_POOL", "maybe")
    with pytest.raises(ValueError, match="DATABRICKS_USE_RESERVED_GPU_POOL must be true or false, it is 'maybe'"):
        distributed(gpus=1, remote=True)(len).distributed("x")
    assert not fake.jobs


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [("train", "train"), ("<lambda>", "lambda"), ("_private", "private"), ("größe", "gr-e"), ("ß", None), ("a" * 99, "a" * 63)],
)
def test_names_of_functions_become_names_of_jobs(name: str, cleaned: str | None) -> None:
    def function() -> None:
        pass

    function.__name__ = name
    assert spec.name_of(function) == cleaned


# --- refused before anything is sent ---


def test_arguments_that_do_not_fit_are_refused_here(fake: FakeController) -> None:
    @distributed(gpus=1, remote=True)
    def train(lr: float, *, steps: int) -> None:
        pass

    for args, kwargs in (((), {}), ((1,), {}), ((1, 2), {"steps": 3}), ((1,), {"steps": 3, "more": 4})):
        with pytest.raises(TypeError, match=r"train\(\) .*argument"):
            train.distributed(*args, **kwargs)
    assert fake.requests == []


class Holder:
    """Something with a part that cannot be pickled."""

    def __init__(self) -> None:
        self.name = "holder"
        self.guard = threading.Lock()


def test_what_cannot_be_pickled_is_named_with_its_place(fake: FakeController) -> None:
    connection = socket.socket()

    def by_global() -> None:
        LOCK.acquire()

    def by_closure() -> None:
        connection.close()

    def by_helper() -> None:
        by_closure()

    def by_default(lock: Any = LOCK) -> None:
        pass

    def takes(a: Any, *rest: Any, device: Any = None) -> None:
        pass

    cases: list[tuple[Any, tuple[Any, ...], dict[str, Any], str]] = [
        (by_global, (), {}, r"by_global\(\): the captured global 'LOCK'.*_thread\.lock"),
        (by_closure, (), {}, r"the captured variable 'connection'.*socket"),
        (by_helper, (), {}, r"the captured variable 'by_closure': the captured variable 'connection'"),
        (by_default, (), {}, r"the default of the parameter 'lock'"),
        (takes, (1,), {"device": LOCK}, r"the argument 'device' of takes\(\)"),
        (takes, (1, 2, LOCK), {}, r"the argument 'rest\[1\]'"),
        (takes, ({"model": [Holder()]},), {}, r"'a' of takes\(\): its item 'model': its item 0: its attribute 'guard'"),
    ]
    for function, args, kwargs, words in cases:
        with pytest.raises(TypeError, match=f"cannot pickle .*{words}.*inside the function"):
            distributed(gpus=1, remote=True)(function).distributed(*args, **kwargs)
    connection.close()
    assert fake.requests == []


class Tensor:
    """Stands for a tensor of torch."""

    def __init__(self, device: str):
        self.device = types.SimpleNamespace(type=device)
        self.is_cuda = device == "cuda"


class Model:
    """Something with a tensor in it."""

    def __init__(self, device: str):
        self._parameters = {"weight": Tensor(device)}


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch that is imported, as far as pickling looks at it."""
    module = types.ModuleType("torch")
    module.Tensor = Tensor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", module)


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_tensor_on_a_gpu_is_named_with_its_device_and_the_remedy(fake: FakeController, torch: None, device: str) -> None:
    weights = Tensor(device)

    def train(data: Any = None) -> None:
        assert weights

    def score(model: Any) -> None:
        pass

    cases: list[tuple[Any, tuple[Any, ...], str]] = [
        (train, (), r"train\(\): the captured variable 'weights'"),
        (score, ([weights],), r"the argument 'model' of score\(\): its item 0"),
        (score, (Model(device),), r"the argument 'model' of score\(\): its attribute '_parameters': its item 'weight'"),
    ]
    for function, args, words in cases:
        with pytest.raises(TypeError, match=rf"^cannot send {words}: it is a tensor on .*{device}.*, .*\.cpu\(\)") as raised:
            distributed(gpus=1, remote=True)(function).distributed(*args)
        assert "\n" not in str(raised.value)
    assert fake.requests == []


def test_tensors_that_lie_on_no_gpu_travel(fake: FakeController, torch: None) -> None:
    function = distributed(gpus=1, remote=True)(lambda *things: len(things))
    assert function.distributed(Tensor("cpu"), Model("meta")) == [2]


# --- refused by the controller ---


def test_a_refused_token_is_one_line_with_the_remedy_and_is_not_tried_again(fake: FakeController, clean: Path) -> None:
    (clean / "token").write_text("gct_other\n")
    with pytest.raises(ControllerError, match="refuses the token in .*token: .*GPUCTL_TOKEN_FILE") as raised:
        distributed(gpus=1, remote=True)(len).distributed("x")
    assert raised.value.status == 401 and "\n" not in str(raised.value)
    assert len(fake.requests) == 1


def test_a_missing_token_names_the_setting(fake: FakeController, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUCTL_TOKEN_FILE", "/nowhere/token")
    with pytest.raises(SettingsError, match="/nowhere/token.*GPUCTL_TOKEN_FILE"):
        distributed(gpus=1, remote=True)(len).distributed("x")


def test_a_refused_field_is_a_value_error_with_the_controllers_words(fake: FakeController) -> None:
    problem = {
        "code": "invalid_field",
        "detail": "priority must be at most 1000",
        "field": "priority",
        "hint": "take less",
        "retryable": False,
    }
    fake.refusals.append((422, problem))
    with pytest.raises(ValueError, match="^priority must be at most 1000; take less$") as raised:
        distributed(gpus=1, remote=True, priority=5000)(len).distributed("x")
    assert isinstance(raised.value, InvalidJob) and raised.value.field == "priority"


def test_a_host_without_a_node_names_remote_true(fake: FakeController) -> None:
    fake.refusals.append(
        (422, {"code": "no_local_node", "detail": "none is registered there", "field": "remote", "hint": "set remote=true"})
    )
    with pytest.raises(ValueError, match="remote=True") as raised:
        distributed(gpus=1)(len).distributed("x")
    assert "\n" not in str(raised.value)


def test_an_overloaded_controller_is_asked_again_under_the_same_key(fake: FakeController) -> None:
    fake.refusals += [(503, {"code": "unknown_outcome", "detail": "not known", "retryable": True})] * 2
    fake.program = run_to_end
    assert distributed(gpus=1, remote=True)(len).distributed("four") == [4]
    assert len(fake.keys) == 1


def test_a_controller_that_says_when_to_come_again_is_asked_no_sooner(fake: FakeController) -> None:
    fake.refusals.append((429, {"code": "too_many_requests", "detail": "too many", "retryable": True}))
    fake.program = run_to_end
    begin = time.monotonic()
    assert distributed(gpus=1, remote=True)(len).distributed("four") == [4]
    assert time.monotonic() - begin >= 1 and len(fake.keys) == 1


def test_what_is_no_controller_is_said_so(fake: FakeController, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUCTL_URL", f"{fake.url}/elsewhere")
    with pytest.raises(ControllerError, match="no controller of gpuctl.*GPUCTL_URL"):
        distributed(gpus=1, remote=True)(len).distributed("x")


def test_a_controller_that_never_answers_is_given_up_with_the_remedy(fake: FakeController, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call.DistributedFunctionCall.submit, "__defaults__", (0.3,))
    fake.stop()
    with pytest.raises(ControllerUnreachable, match=f"{fake.url} cannot be reached .connection refused.; is gpuctld running there"):
        distributed(gpus=1, remote=True)(len).distributed("x")
