# SPDX-License-Identifier: Apache-2.0
"""What of this machine goes with a call: environment, folder and variables, when they are sent, and what is said about them."""

from __future__ import annotations

import io
import os
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from fake_controller import FakeController
from serverless_gpu import air, distributed
from serverless_gpu._internal.api.controller import connect
from serverless_gpu._internal.messages import Messages
from serverless_gpu._internal.pack import environment, folder, packaging
from serverless_gpu._internal.pack.environment import Local, Lock
from serverless_gpu._internal.pack.payload import Payload
from serverless_gpu._internal.pack.requirements import RequirementsError
from serverless_gpu.accelerate import notebook_launcher
from serverless_gpu.errors import InvalidJob
from serverless_gpu.ray import ray_launch

PYTHON = "{}.{}".format(*sys.version_info[:2])


@pytest.fixture
def project(clean: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a module in it and one in a folder of it; an environment of one package; nothing was said yet."""
    folder = tmp_path / "project"
    (folder / "src").mkdir()
    (folder / "helper.py").write_text("x = 1\n")
    (folder / "src" / "inner.py").write_text("x = 1\n")
    monkeypatch.setattr(environment, "lock", lambda: Lock("numpy==2.1.0\n", []))
    monkeypatch.setattr(packaging, "_said", set())
    return folder


def newest(fake: FakeController) -> dict[str, Any]:
    return list(fake.jobs.values())[-1].spec


def call(fake: FakeController, **options: Any) -> dict[str, Any]:
    """The job of a call with these options."""
    assert distributed(gpus=1, **options)(len).distributed("four") == [4]
    return newest(fake)


def names(fake: FakeController, sent: dict[str, Any]) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(fake.blobs[sent["bundle"]["blob"]])) as archive:
        return archive.getnames()


# --- when ---


def test_with_remote_environment_and_folder_travel(fake: FakeController, project: Path) -> None:
    sent = call(fake, remote=True)
    assert sent["environment"].keys() == {"blob", "python"} and sent["environment"]["python"] == PYTHON
    assert fake.blobs[sent["environment"]["blob"]] == b"numpy==2.1.0\n"
    assert names(fake, sent) == ["helper.py", "src", "src/inner.py"] and sent["bundle"].keys() == {"blob"}
    assert "workdir" not in sent and "env" not in sent


def test_what_the_controller_has_is_not_sent_again(fake: FakeController, project: Path) -> None:
    call(fake, remote=True)
    fake.requests.clear()
    call(fake, remote=True)
    assert [line.split(" ")[0] for line in fake.requests if not line.startswith("GET")] == ["POST"]


def test_on_this_machine_variables_go_along_and_the_rest_where_it_is_named(
    fake: FakeController, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", "/models")
    sent = call(fake)
    assert "environment" not in sent and "bundle" not in sent and sent["workdir"] == str(project)
    assert sent["env"]["HF_HOME"] == "/models"
    sent = call(fake, requirements=["six"], working_dir="src")
    assert fake.blobs[sent["environment"]["blob"]] == b"six\n" and names(fake, sent) == ["inner.py"] and "workdir" not in sent


@pytest.mark.parametrize("nothing", [None, False])
def test_nothing_travels_where_nothing_is_wanted(fake: FakeController, project: Path, nothing: Any) -> None:
    sent = call(fake, remote=True, requirements=nothing, working_dir=nothing, inherit_env=False)
    assert sent.keys() == {"gpus", "remote", "name", "retries", "function"}


def test_an_empty_environment_and_an_empty_folder_are_not_sent(
    fake: FakeController, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "lock", lambda: Lock("", []))
    (tmp_path / "empty").mkdir()
    sent = call(fake, remote=True, working_dir=tmp_path / "empty")
    assert "environment" not in sent and "bundle" not in sent


@pytest.mark.parametrize("place", ["home", "/"])
def test_the_home_folder_never_travels_by_itself_and_it_is_said_once(
    fake: FakeController, project: Path, clean: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    (clean / "notes.txt").touch()
    monkeypatch.chdir(clean if place == "home" else "/")
    for _ in range(2):
        assert "bundle" not in call(fake, remote=True)
    assert capsys.readouterr().err.count("does not travel, because it is no project's; working_dir=PATH") == 1
    if place == "home":
        assert "notes.txt" in names(fake, call(fake, remote=True, working_dir="~"))


def test_other_decorators_take_the_same_options(fake: FakeController, project: Path) -> None:
    fake.program = lambda controller, job: (controller.leave(job, 0, b"N."), controller.end(job))  # type: ignore[assignment, func-returns-value]
    wanted: dict[str, Any] = {"requirements": ["six"], "working_dir": "src", "env": {"A": "b"}, "inherit_env": False}
    ray_launch(1, remote=True, **wanted)(len).distributed("")
    notebook_launcher(print, num_processes=1, remote=True, **wanted)
    air.distributed(1, remote=True, **wanted)(len).distributed("")
    for job in fake.jobs.values():
        assert fake.blobs[job.spec["environment"]["blob"]] == b"six\n" and names(fake, job.spec) == ["inner.py"]
    assert len(fake.jobs) == 3


# --- modules ---


def test_folders_of_the_path_below_the_working_folder_are_on_the_path_there(
    fake: FakeController, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "lib").mkdir()
    (project / "ignored").mkdir()
    (project / ".gitignore").write_text("/ignored/\n")
    for entry in (tmp_path, project, project / "ignored", project / "lib", project / "src"):
        monkeypatch.syspath_prepend(str(entry))
    assert call(fake, remote=True)["bundle"]["python_path"] == ["src", "lib"]


def test_a_package_of_this_machine_travels_with_the_folder_or_is_named_once(
    fake: FakeController, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    local = [Local("mine", str(project), [str(project / "src")]), Local("far", "/opt/far", ["/opt/far/src"])]
    monkeypatch.setattr(environment, "lock", lambda: Lock("numpy==2.1.0\n", local))
    for _ in range(2):
        assert call(fake, remote=True)["bundle"]["python_path"] == ["src"]
    said = [line for line in capsys.readouterr().err.splitlines() if "package" in line]
    assert len(said) == 1 and "the package far, which was installed from /opt/far, has no files that could travel" in said[0]
    assert "git repository" in said[0]


def write(root: Path, *paths: str) -> None:
    """Empty files."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


def test_packages_that_only_this_machine_has_travel_beside_the_folder(
    fake: FakeController, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An editable one whose built extension git ignores, one of a source tree that names no modules, and one of a wheel."""
    site, far, bare = tmp_path / "site", tmp_path / "far", tmp_path / "bare"
    write(far, "pkg/main.py", "pkg/built.so", "pkg/__pycache__/main.pyc", "other.py", ".gitignore")
    (far / ".gitignore").write_text("*.so\n")
    write(bare, "space/inner/mod.py", "single.py", ".venv/pyvenv.cfg", ".venv/lib/x.py")
    write(site, "far.dist-info/METADATA", "far.dist-info/top_level.txt", "bare.dist-info/METADATA", "whl.dist-info/METADATA", "whl/code.py")
    (site / "far.dist-info" / "top_level.txt").write_text("pkg\n")
    (site / "whl.dist-info" / "RECORD").write_text('whl/code.py,,\n../../bin/run,,\n"whl.dist-info/METADATA",,\ngone.py,,\n')
    local = [
        Local("far", str(far), [str(far)], str(site / "far.dist-info"), True),
        Local("bare", str(bare), [str(bare)], str(site / "bare.dist-info"), True),
        Local("whl", "/tmp/whl-1-py3-none-any.whl", [], str(site / "whl.dist-info")),
    ]
    monkeypatch.setattr(environment, "lock", lambda: Lock("numpy==2.1.0\n", local))
    sent = call(fake, remote=True)
    assert sent["bundle"]["python_path"] == [".gpuctl-packages"]
    travelled = {name.partition("/")[2] for name in names(fake, sent) if name.startswith(".gpuctl-packages/")}
    assert {name for name in travelled if not name.endswith("-info") and "." in name} == {
        "pkg/main.py", "pkg/built.so", "single.py", "space/inner/mod.py", "whl/code.py",
        "far.dist-info/METADATA", "far.dist-info/top_level.txt", "bare.dist-info/METADATA", "whl.dist-info/METADATA",
    }  # fmt: skip
    assert names(fake, call(fake, remote=True, working_dir=False))[0] == ".gpuctl-packages"
    assert "package" not in capsys.readouterr().err


def test_a_package_of_this_machine_that_is_too_large_is_named(
    fake: FakeController, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    info = tmp_path / "site" / "whl.dist-info"
    write(tmp_path / "site", "whl/code.py", "whl.dist-info/RECORD")
    (info / "RECORD").write_text("whl/code.py,,\n")
    (tmp_path / "site" / "whl" / "code.py").write_text("#" * 100)
    monkeypatch.setattr(environment, "lock", lambda: Lock("numpy==2.1.0\n", [Local("whl", "/tmp/whl.whl", [], str(info))]))
    monkeypatch.setattr(folder, "LIMIT_BYTES", 99)
    assert "python_path" not in call(fake, remote=True)["bundle"]
    assert "the package whl, which was installed from /tmp/whl.whl, has more than" in capsys.readouterr().err


def test_a_version_that_no_index_is_known_for_is_told_once(
    fake: FakeController, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """G6: the label was dropped without a word."""
    monkeypatch.setattr(environment, "lock", lambda: Lock("flash-attn==2.5.0\n", [], ("flash-attn==2.5.0+cu118torch2.1",)))
    for _ in range(2):
        call(fake, remote=True)
    said = [line for line in capsys.readouterr().err.splitlines() if "flash-attn" in line]
    assert len(said) == 1 and "no index is known for flash-attn==2.5.0+cu118torch2.1" in said[0] and "--extra-index-url" in said[0]


# --- refused before anything is sent ---


def test_what_cannot_travel_is_refused_before_anything_is_sent(fake: FakeController, project: Path) -> None:
    for options in ({"requirements": ["-e ."]}, {"requirements": "none.txt"}):
        with pytest.raises(RequirementsError, match="^requirements: "):
            call(fake, remote=True, **options)
    with pytest.raises(ValueError, match="^working_dir: there is no folder"):
        call(fake, remote=True, working_dir="none")
    assert fake.requests == []


@pytest.mark.parametrize(
    "options", [{"requirements": 1}, {"requirements": [1]}, {"working_dir": 1}, {"working_dir": ""}, {"inherit_env": None}]
)
def test_options_of_the_wrong_kind_are_refused_when_the_function_is_decorated(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=next(iter(options))):
        distributed(gpus=1, **options)


def test_no_message_shows_the_value_of_a_variable(fake: FakeController, project: Path) -> None:
    with pytest.raises(TypeError, match=r"env\['TOKEN'\] must be a text, not a value of type bytes") as raised:
        distributed(gpus=1, env={"TOKEN": b"hunter2"})  # type: ignore[dict-item]
    assert "hunter2" not in str(raised.value)


def test_a_refusal_by_the_controller_names_the_field(fake: FakeController, project: Path) -> None:
    fake.refusals.append((422, {"code": "invalid_field", "detail": "is not allowed", "field": "environment.python", "retryable": False}))
    with pytest.raises(InvalidJob, match=r"environment\.python: is not allowed"):
        call(fake, remote=True)


# --- variables ---


def test_variables_travel_beside_the_explicit_ones(fake: FakeController, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MY_FLAG", "OTHER", "GONE"):
        monkeypatch.setenv(name, "notebook")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", fake.url)
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "mine")
    sent = call(fake, remote=True, env={"OTHER": "explicit", "GONE": None})
    assert sent["env"] == {"MY_FLAG": "notebook", "OTHER": "explicit", "GONE": None}
    assert "env" not in call(fake, remote=True, inherit_env=False)
    monkeypatch.setenv("KEY_FILE", "of the notebook")
    sent = call(fake, remote=True, secrets=["MY_FLAG", "A=OTHER", "KEY:file", "B=GONE:file"])
    assert "env" not in sent and sent["secrets"] == ["MY_FLAG", "A=OTHER", "KEY:file", "B=GONE:file"]


def test_what_is_said_about_variables_has_no_values(
    fake: FakeController, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MY_TOKEN", "hunter2" * 10_000)
    assert "env" not in call(fake, remote=True)
    said = capsys.readouterr().err
    assert "do not travel: MY_TOKEN (it is larger than 32 KiB)" in said and "hunter2" not in said


def test_a_large_folder_says_that_it_is_sent(
    fake: FakeController, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("serverless_gpu._internal.api.controller.SAID_BYTES", 3 * 2**19)
    (project / "model.bin").write_bytes(os.urandom(2 * 2**20))
    sent = call(fake, remote=True)
    assert len(fake.blobs[sent["bundle"]["blob"]]) > 2 * 2**20
    assert capsys.readouterr().err.splitlines() == ["gpuctl: sending 2 MiB (bundle.blob)"]


def test_a_person_at_a_terminal_sees_how_much_was_sent_and_a_quiet_call_shows_nothing(
    fake: FakeController, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("serverless_gpu._internal.api.controller.SAID_BYTES", 3 * 2**19)
    controller = connect(Messages())
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    controller.put_blob(Payload([os.urandom(4 * 2**20)]), "data")
    said = capsys.readouterr().err
    first = "gpuctl: sending 4 MiB (data)\n\rgpuctl: sent 1 of 4 MiB (data)\rgpuctl: sent 2 of 4"
    assert said.startswith(first) and said.endswith("sent 4 of 4 MiB (data)\n")
    connect(Messages(quiet=True)).put_blob(Payload([os.urandom(4 * 2**20)]), "data")
    assert capsys.readouterr().err == "" and sorted(map(len, fake.blobs.values())) == [4 * 2**20] * 2


def test_a_function_that_refers_to_much_says_that_it_is_sent(
    fake: FakeController, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("serverless_gpu._internal.api.controller.SAID_BYTES", 3 * 2**19)
    table = os.urandom(2 * 2**20)
    assert distributed(gpus=1)(lambda: len(table)).distributed() == [2 * 2**20]
    assert "sending 2 MiB (the function, with its arguments and the variables that it refers to)" in capsys.readouterr().err
