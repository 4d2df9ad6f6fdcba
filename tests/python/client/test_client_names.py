# SPDX-License-Identifier: Apache-2.0
"""The names of other systems: types in any spelling, databricks.air, PySpark's TorchDistributor; and what they do beside the originals."""

from __future__ import annotations

import base64
import io
import os
import subprocess
import sys
import tarfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, SOURCES
from fake_controller import FakeController, Job, run_to_end
from serverless_gpu import air, distributed, runtime
from serverless_gpu._internal.calls import host
from serverless_gpu._internal.calls.command import BESIDE, HIDING_GPUS
from serverless_gpu.compute import AcceleratorType, GPUType
from serverless_gpu.errors import JobFailed
from serverless_gpu.torch_distributor import TorchDistributor

AIR = ROOT / "client" / "air" / "src"
PYSPARK = ROOT / "client" / "pyspark" / "src" / "gpuctl_pyspark"


def node(gpus: int, gpu_type: str = "cpu", *, slots: bool = False, here: bool = True, state: str = "READY") -> dict[str, Any]:
    return {"gpus": gpus, "gpu_type": gpu_type, "slots": slots, "host_id": host.host_id() if here else "0" * 64, "state": state}


def newest(fake: FakeController) -> dict[str, Any]:
    return list(fake.jobs.values())[-1].spec


# --- types ---


def test_types_are_equal_to_texts_in_any_letter_case() -> None:
    assert GPUType.H100 == "h100" and GPUType.A10 == "A10" and GPUType.L40S == "l40s" and GPUType.H100 != "H200" and GPUType.H100 != 100
    assert GPUType("h100") is GPUType.H100 and f"{GPUType.H100}" == str(GPUType.H100) == "H100" and hash(GPUType.A10) == hash("A10")
    assert GPUType.H100 in ("a10", "h100") and GPUType.H100 is not GPUType.H200 and GPUType.H100 != GPUType.H200
    with pytest.raises(ValueError):
        GPUType("H1000")


def test_the_rank_of_a_replica_is_that_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_RANK", "3")
    assert runtime.get_replica_rank() == 3


# --- databricks.air ---


@pytest.mark.parametrize(
    ("arguments", "gpus", "gpu_type"),
    [
        ((8, "GPU_8xH100"), 8, "H100"),
        ((16, "GPU_8xH100"), 16, "H100"),
        ((None, "GPU_8xH100"), 8, "H100"),
        ((None, "gpu_1xa10"), 1, "a10"),
        ((2, None), 2, None),
        ((None, None), 4, None),
        ((None, AcceleratorType.GPU_1xH100), 1, "H100"),
    ],
)
def test_accelerators_become_gpus_and_none_means_a_whole_node(
    fake: FakeController, arguments: Any, gpus: int, gpu_type: str | None
) -> None:
    fake.nodes = [node(2), node(4, here=False), node(16, here=False, state="DRAINING")]
    assert len(air.distributed(*arguments)(len).distributed("x")) == gpus
    assert newest(fake)["gpus"] == gpus and newest(fake).get("gpu_type") == gpu_type and newest(fake)["remote"] is True


def test_earlier_names_of_arguments_and_types_are_taken(fake: FakeController) -> None:  # P13
    fake.nodes = [node(8)]
    for gpu_type, sent in ((GPUType.H100, "H100"), ("h100_80gb", "H100"), ("a10g", "A10G|A10")):
        air.distributed(gpus=3, gpu_type=gpu_type)(len).distributed("x")
        assert (newest(fake)["gpus"], newest(fake)["gpu_type"]) == (3, sent)
    with pytest.raises(TypeError, match="gpus is the earlier name"):
        air.distributed(2, gpus=2)
    with pytest.raises(TypeError, match="gpu_type is the earlier form"):
        air.distributed(2, "GPU_1xA10", gpu_type="A10")


def test_a_function_says_what_it_wants_and_may_want_something_else(fake: FakeController) -> None:  # P13
    fake.nodes = [node(8)]
    plain = air.distributed(8, "GPU_8xH100", True, 60)(len)
    assert (plain.func, plain.gpus, plain.num_accelerators, plain.gpu_type, plain.remote) == (len, 8, 8, "H100", True)
    assert plain.accelerator_type is AcceleratorType.GPU_8xH100 and distributed(gpus=1, gpu_type="L4")(len).accelerator_type is None
    plain.with_overrides(num_accelerators=2, accelerator_type="GPU_1xA10", timeout=None).distributed("x")
    assert (newest(fake)["gpus"], newest(fake)["gpu_type"], newest(fake).get("time_limit_s")) == (2, "A10", None)
    plain.distributed("x")
    assert (newest(fake)["gpus"], newest(fake)["gpu_type"], newest(fake)["time_limit_s"]) == (8, "H100", 60)


def test_names_of_types_and_accelerators_are_listed() -> None:
    assert GPUType("h100_80gb") is GPUType.H100 and "H100" in GPUType.values() and "h100" in GPUType.names()
    assert AcceleratorType.GPU_8xB300.gpu_type is GPUType.B300 and AcceleratorType.GPU_8xB300.gpus_per_node == 8
    assert AcceleratorType.values() == ["GPU_1xA10", "GPU_1xH100", "GPU_8xH100", "GPU_8xB300"]
    assert AcceleratorType.from_gpu_type(GPUType.H100, 1) is AcceleratorType.GPU_1xH100
    assert AcceleratorType.from_gpu_type(GPUType.H100, 16) is AcceleratorType.GPU_8xH100
    with pytest.raises(ValueError, match="L4"):
        AcceleratorType.from_gpu_type(GPUType.L4, 1)


def test_a_whole_node_is_looked_for_where_the_function_will_run(fake: FakeController) -> None:
    fake.nodes = [node(2), node(4, here=False)]
    assert len(air.distributed(remote=False)(len).distributed("x")) == 2
    function = air.distributed()(len)
    fake.nodes.append(node(5, here=False))  # asked at each call
    assert len(function.distributed("x")) == 5 and "a node's GPUs" in repr(function)
    fake.nodes.clear()
    with pytest.raises(ValueError, match="no node at the controller"):
        function.distributed("x")


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ((len,), TypeError, "parentheses"),
        ((0,), ValueError, "num_accelerators"),
        ((1.5,), TypeError, "num_accelerators"),
        ((1, "H1000"), ValueError, "GPU_1xA10"),
        ((1, "GPU_0xA10"), ValueError, "GPU_1xA10"),
    ],
)
def test_wrong_accelerators_are_refused_when_the_function_is_decorated(arguments: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        air.distributed(*arguments)


def test_ray_is_asked_for_only_when_it_is_used(fake: FakeController, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert air.ray_launch(1, "GPU_1xA10", remote=True)(len)("four") == 4
    with pytest.raises(ImportError, match="ray"):
        air.ray_init()


def python(code: str, *path: Path) -> str:
    """What a fresh Python says that has these folders on its path."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


USE_AIR = """
from databricks.air import data, distributed, ray_init, ray_launch
from databricks.air.data import DataLoader
import databricks.air.data, serverless_gpu.data
assert databricks.air.data is serverless_gpu.data is data
"""


@pytest.mark.parametrize("ours_first", [True, False])
def test_the_namespace_is_shared_with_distributions_of_both_kinds(tmp_path: Path, ours_first: bool) -> None:
    other = tmp_path / "databricks" / "other"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("NAME = 'other'\n")
    order = [AIR, tmp_path] if ours_first else [tmp_path, AIR]
    use = USE_AIR + "import databricks.other; print(databricks.other.NAME)"
    assert python(use, SOURCES, *order) == "other"
    (tmp_path / "databricks" / "__init__.py").write_text('__path__ = __import__("pkgutil").extend_path(__path__, __name__)\n')
    assert python(use, SOURCES, *order) == "other"


def test_what_the_ranks_import_travels_where_it_is_used(tmp_path: Path) -> None:
    """Also to nodes that have a `databricks` of their own."""
    into = f"open({str(tmp_path / 'modules.zip')!r}, 'wb')"
    make = f"from serverless_gpu._internal.pack import modules; {into}.write(modules.modules().joined())"
    names = f"import zipfile; print(any('air/__init__' in name for name in zipfile.ZipFile({str(tmp_path / 'modules.zip')!r}).namelist()))"
    assert python(f"{make}; {names}", SOURCES, AIR) == "False"
    assert python(f"import databricks.air; {make}; {names}", SOURCES, AIR) == "True"
    assert python(USE_AIR + "print(data.__file__)", tmp_path / "modules.zip").startswith(str(tmp_path / "modules.zip"))
    (tmp_path / "node" / "databricks").mkdir(parents=True)
    (tmp_path / "node" / "databricks" / "__init__.py").write_text('__path__ = __import__("pkgutil").extend_path(__path__, __name__)\n')
    assert "modules.zip" in python(USE_AIR + "print(data.__file__)", tmp_path / "modules.zip", tmp_path / "node")


# --- PySpark's TorchDistributor ---


def test_a_function_gives_the_value_of_rank_0(fake: FakeController) -> None:
    fake.nodes = [node(8, "H100"), node(8, "H100", here=False)]
    assert TorchDistributor(4, False, True).run(len, "four") == 4
    assert newest(fake)["gpus"] == 4 and newest(fake)["remote"] is True and newest(fake)["name"] == "len"
    assert TorchDistributor(num_processes=2).run(lambda *, a, b: a - b, b=1, a=3) == 2
    assert newest(fake)["gpus"] == 2 and newest(fake)["remote"] is False
    assert TorchDistributor(num_workers=3, retries=1).run(distributed(gpus=1)(len), "") == 0
    assert newest(fake)["gpus"] == 3 and newest(fake)["retries"] == 1


def test_arguments_that_do_not_fit_the_function_are_refused_here(fake: FakeController) -> None:
    fake.nodes = [node(1, "H100")]
    with pytest.raises(TypeError, match="argument"):
        TorchDistributor().run(lambda a: a)
    assert not fake.jobs


@pytest.mark.parametrize("count", [0, -1])
def test_too_few_processes_are_refused_in_the_words_of_pyspark(count: int) -> None:
    with pytest.raises(ValueError, match="num_proccesses has to be a positive integer"):
        TorchDistributor(num_processes=count)


@pytest.mark.parametrize(
    ("options", "words"), [({"num_processes": 1.5}, "num_processes"), ({"what": 1}, "what"), ({"run_async": True}, "run_async")]
)
def test_options_that_nobody_knows_are_refused_when_it_is_made(options: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        TorchDistributor(**options)


def test_gpus_are_never_slots_and_their_lack_is_a_runtime_error(fake: FakeController) -> None:
    fake.nodes = [node(4, slots=True), node(4, "H100", here=False)]
    with pytest.raises(RuntimeError, match=r"GPUs were unable to be found on the driver\."):
        TorchDistributor().run(len, "")
    assert TorchDistributor(local_mode=False).run(len, "") == 0
    fake.nodes.pop()
    with pytest.raises(RuntimeError, match="GPUs were unable to be found"):
        TorchDistributor(local_mode=False).run(len, "")


def test_local_mode_starts_no_more_processes_than_there_are_gpus(fake: FakeController) -> None:
    fake.nodes = [node(2, "H100"), node(8, "H100", here=False)]
    with pytest.warns(UserWarning, match="3 processes are wanted, and this machine has 2 GPUs"):
        TorchDistributor(3).run(len, "")
    assert newest(fake)["gpus"] == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TorchDistributor(30, local_mode=False).run(len, "")
    assert newest(fake)["gpus"] == 30


def test_without_gpus_slots_are_taken_or_the_gpus_hidden(fake: FakeController, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    fake.nodes = [node(8, "H100"), node(4, "cpu4", slots=True)]
    assert TorchDistributor(use_gpu=False).run(os.getenv, "CUDA_VISIBLE_DEVICES") == "" and newest(fake)["gpu_type"] == "cpu4"
    fake.nodes.pop()
    assert TorchDistributor(use_gpu=False).run(os.getenv, "CUDA_VISIBLE_DEVICES") == "" and "gpu_type" not in newest(fake)


# --- files ---


@pytest.fixture
def project(tmp_path: Path, fake: FakeController, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a program and what lies beside it."""
    fake.nodes = [node(8, "H100")]
    fake.program = lambda controller, job: controller.end(job)
    folder = tmp_path / "project"
    for name in ("train.py", "helper.py", "parts/__init__.py", "parts/deep.py", ".git/hook.py", "env/lib/x.py", "data.bin"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"# {name}\n")
    (folder / "env" / "pyvenv.cfg").touch()
    monkeypatch.chdir(folder)
    yield folder


def test_a_file_travels_with_the_modules_beside_it(fake: FakeController, project: Path) -> None:
    assert TorchDistributor(2, local_mode=False, working_dir=False).run("train.py", "--lr=1", 2) is None
    sent = newest(fake)
    assert sent["command"] == ["python", "train.py", "--lr=1", "2"] and sent["env"] == {"PYTHONPATH": BESIDE} and sent["name"] == "train"
    program, beside = sent["files"]
    assert program["path"] == "train.py" and base64.b64decode(program["base64"]) == b"# train.py\n" and "workdir" not in sent
    names = zipfile.ZipFile(io.BytesIO(base64.b64decode(beside["base64"]))).namelist()
    assert beside["path"] == BESIDE and names == ["helper.py", "parts/__init__.py", "parts/deep.py"]


def test_a_file_in_the_working_folder_travels_with_that(fake: FakeController, project: Path) -> None:
    assert TorchDistributor(2, local_mode=False).run("parts/deep.py", "x") is None
    sent = newest(fake)
    assert sent["command"] == ["python", "parts/deep.py", "x"] and "files" not in sent and "PYTHONPATH" not in sent.get("env", {})
    with tarfile.open(fileobj=io.BytesIO(fake.blobs[sent["bundle"]["blob"]])) as bundled:
        names = bundled.getnames()
    assert names == ["data.bin", "helper.py", "parts", "parts/__init__.py", "parts/deep.py", "train.py"]
    (project / ".gitignore").write_text("train.py\n")
    TorchDistributor(2, local_mode=False).run("train.py")
    assert [file["path"] for file in newest(fake)["files"]] == ["train.py", BESIDE]  # it does not travel with the folder


def test_a_file_elsewhere_travels_with_the_folder_that_it_lies_in(
    fake: FakeController, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6: packages without __init__.py and files that are no modules stayed behind."""
    (project / "plain").mkdir()
    (project / "plain" / "module.py").touch()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    TorchDistributor(2, local_mode=False).run(project / "train.py", "x")
    sent = newest(fake)
    assert sent["command"] == ["python", "train.py", "x"] and "files" not in sent
    with tarfile.open(fileobj=io.BytesIO(fake.blobs[sent["bundle"]["blob"]])) as bundled:
        assert {"data.bin", "helper.py", "plain/module.py", "parts/deep.py", "train.py"} <= set(bundled.getnames())
    monkeypatch.setenv("HOME", str(project))
    TorchDistributor(2, local_mode=False).run(project / "train.py")
    assert [file["path"] for file in newest(fake)["files"]] == ["train.py", BESIDE]
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("serverless_gpu._internal.pack.folder.LIMIT_FILES", 3)
    with pytest.warns(UserWarning, match="train.py goes without the folder that it lies in"):
        TorchDistributor(2, local_mode=False).run(project / "train.py")
    assert [file["path"] for file in newest(fake)["files"]] == ["train.py", BESIDE]


def test_what_is_large_goes_by_blob(fake: FakeController, project: Path) -> None:
    (project / "train.py").write_bytes(os.urandom(100_000))
    TorchDistributor(local_mode=False, working_dir=False).run(project / "train.py")
    file = newest(fake)["files"][0]
    assert fake.blobs[file["blob"]] == (project / "train.py").read_bytes()


def test_a_file_alone_brings_nothing_else(fake: FakeController, project: Path) -> None:
    TorchDistributor(local_mode=False, env={"A": "b"}, working_dir=False).run("parts/deep.py")
    assert [file["path"] for file in newest(fake)["files"]] == ["deep.py", BESIDE]  # __init__.py lies beside it
    (project / "parts" / "__init__.py").unlink()
    TorchDistributor(local_mode=False, env={"A": "b"}, working_dir=False).run("parts/deep.py")
    assert [file["path"] for file in newest(fake)["files"]] == ["deep.py"] and newest(fake)["env"] == {"A": "b"}


def test_a_file_among_too_many_others_goes_alone_and_says_so(fake: FakeController, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serverless_gpu._internal.calls.command.BESIDE_FILES", 2)
    with pytest.warns(UserWarning, match="too many Python files"):
        TorchDistributor(local_mode=False, working_dir=False).run("train.py")
    assert len(newest(fake)["files"]) == 1


def test_a_host_without_a_node_is_told_of_in_the_words_of_the_distributor(fake: FakeController, project: Path) -> None:  # P11
    for run in (len, "train.py"):
        fake.refusals.append((422, {"code": "no_local_node", "detail": "none is registered there", "field": "remote", "hint": "x"}))
        with pytest.raises(ValueError, match="use local_mode=False for any nodes"):
            TorchDistributor(use_gpu=False).run(run, *(["x"] if run is len else []))


def test_in_local_mode_a_file_runs_where_it_lies(fake: FakeController, project: Path) -> None:
    TorchDistributor(use_gpu=False).run("train.py", "x")
    sent = newest(fake)
    assert sent["command"] == ["python", "-c", HIDING_GPUS, str(project / "train.py"), "x"] and "files" not in sent
    assert sent["remote"] is False and sent["workdir"] == str(project) and sent["python"] == sys.executable


def test_the_start_that_hides_gpus_gives_the_program_its_arguments(project: Path) -> None:
    (project / "train.py").write_text("import os, sys; print(sys.argv, repr(os.environ['CUDA_VISIBLE_DEVICES']))\n")
    command = [sys.executable, "-c", HIDING_GPUS, "train.py", "-c", "a b"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "CUDA_VISIBLE_DEVICES": "3"})
    assert ran.stdout == "['train.py', '-c', 'a b'] ''\n"


def test_a_file_takes_no_keywords_and_has_to_be_there(fake: FakeController, project: Path) -> None:
    with pytest.raises(ValueError, match=r"^Running pytorch file does not support key-word type arguments\.$"):
        TorchDistributor().run("train.py", lr=1)
    with pytest.raises(FileNotFoundError, match="no file .*none.py"):
        TorchDistributor().run("none.py")
    with pytest.raises(TypeError, match="path of a Python file"):
        TorchDistributor().run(5)  # type: ignore[arg-type]
    assert not fake.jobs


def test_a_file_that_fails_raises(fake: FakeController, project: Path) -> None:
    def fails(controller: FakeController, job: Job) -> None:
        controller.end(job, "FAILED", reason="rank 1 on node node0 exited with 3", cause="RANK_FAILED", failed_rank=1)

    fake.program = fails
    with pytest.raises(JobFailed, match="exited with 3") as raised:
        TorchDistributor(2).run("train.py")
    assert raised.value.rank == 1


# --- the module of PySpark's name ---


def test_pysparks_name_is_offered_and_a_real_pyspark_goes_before_it(tmp_path: Path) -> None:
    use = "from pyspark.ml.torch.distributor import TorchDistributor; print(TorchDistributor.__module__)"
    assert python(use, SOURCES, PYSPARK) == "serverless_gpu.torch_distributor"
    real = tmp_path / "pyspark" / "ml" / "torch"
    real.mkdir(parents=True)
    for folder in (real, real.parent, real.parent.parent):
        (folder / "__init__.py").touch()
    (real / "distributor.py").write_text("class TorchDistributor:\n    pass\n")
    for order in ([PYSPARK, tmp_path], [tmp_path, PYSPARK]):  # wherever ours is on the path
        assert python(use, SOURCES, *order) == "pyspark.ml.torch.distributor"


def test_a_function_of_air_runs_to_its_end(fake: FakeController) -> None:
    fake.program = run_to_end
    assert air.distributed(num_accelerators=1, name="n")(len).distributed("ab") == [2] and newest(fake)["name"] == "n"
