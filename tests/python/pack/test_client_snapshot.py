# SPDX-License-Identifier: Apache-2.0
"""Which environment variables travel, and which never do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from serverless_gpu._internal.pack import snapshot

URL = "http://127.0.0.1:7070"
BOUND = (
    "PATH HOME LD_PRELOAD PYTHONPATH VIRTUAL_ENV CONDA_PREFIX XDG_RUNTIME_DIR SSH_AUTH_SOCK TERM JPY_PARENT_PID JUPYTER_TOKEN MPLBACKEND"
    " CUDA_VISIBLE_DEVICES NVIDIA_VISIBLE_DEVICES GPUCTL_URL DATABRICKS_USE_RESERVED_GPU_POOL SLURM_JOB_ID RANK WORLD_SIZE MASTER_ADDR"
    " TORCHELASTIC_RUN_ID KMP_INIT_AT_FORK NCCL_SOCKET_IFNAME LC_ALL CLICOLOR_FORCE GIT_PAGER _"
)


@pytest.fixture
def variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No variables at all, and a file in the place of /proc/self/environ, which says what the process was started with."""
    for name in list(os.environ):
        monkeypatch.delenv(name)
    initial = tmp_path / "environ"
    initial.write_bytes(b"SHELL=/bin/sh\0")
    monkeypatch.setattr(snapshot, "INITIAL", str(initial))
    monkeypatch.setattr(snapshot, "_AT_IMPORT", None)
    return initial


def test_what_the_process_has_set_or_changed_travels_and_what_it_was_started_with_does_not(
    variables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables.write_bytes(b"INHERITED=1\0CHANGED=1\0MULTI=a=b\nc\0")
    for name, value in (("INHERITED", "1"), ("CHANGED", "2"), ("SET", "größe"), ("MULTI", "a=b\nc"), ("EMPTY", "")):
        monkeypatch.setenv(name, value)
    assert snapshot.take({}, URL) == ({"CHANGED": "2", "SET": "größe", "EMPTY": ""}, [])


def test_of_the_inherited_those_travel_that_frameworks_look_for(variables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("HF_TOKEN", "WANDB_API_KEY", "NCCL_DEBUG", "OMP_NUM_THREADS", "AWS_SECRET_ACCESS_KEY", "OPENAI_API_KEY", "DATABRICKS_TOKEN")
    variables.write_bytes(b"".join(f"{name}=x\0".encode() for name in names))
    for name in names:
        monkeypatch.setenv(name, "x")
    assert list(snapshot.take({}, URL)[0]) == ["HF_TOKEN", "NCCL_DEBUG", "OMP_NUM_THREADS", "WANDB_API_KEY"]


@pytest.mark.parametrize("name", [*BOUND.split(), "not a name", "a-b", "ä"])
def test_what_belongs_to_this_machine_never_travels(variables: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "changed")
    taken, missed = snapshot.take({}, URL)
    assert taken == {}
    assert missed == ([f"{name} (it is of this machine)"] if name in snapshot.ASKED_FOR else [])
    assert snapshot.take({name: "given"}, URL) == snapshot.take({}, URL, here=True) == ({}, [])


def test_explicit_variables_win_and_none_says_not_this_one(variables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("A", "B", "C"):
        monkeypatch.setenv(name, "notebook")
    assert snapshot.take({"A": "explicit", "B": None}, URL)[0] == {"C": "notebook"}


@pytest.mark.parametrize(
    ("uri", "travels"),
    [
        ("http://127.0.0.1:7070", False),
        ("http://localhost:7070/", False),
        (None, False),
        ("http://localhost:5000", True),
        ("https://127.0.0.1:7070", False),
        ("databricks", True),
        ("http://[broken", True),
    ],
)
def test_a_tracking_server_that_is_the_controller_is_left_to_the_nodes(
    variables: Path, monkeypatch: pytest.MonkeyPatch, uri: str | None, travels: bool
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "e")
    if uri is not None:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    taken = snapshot.take({}, URL)[0]
    assert taken.pop("MLFLOW_EXPERIMENT_NAME") == "e"
    assert taken == ({"MLFLOW_TRACKING_TOKEN": "t", "MLFLOW_TRACKING_URI": uri} if travels else {})


class Store:
    """A stand-in for the module mlflow, with one experiment."""

    @staticmethod
    def get_experiment(identifier: str) -> Any:
        if identifier != "7":
            raise ValueError(identifier)
        return types.SimpleNamespace(name="by the notebook")


@pytest.mark.parametrize(
    ("uri", "identifier", "travels", "lost"),
    [
        (None, "7", {"MLFLOW_EXPERIMENT_NAME": "by the notebook"}, []),
        (None, "8", {}, ["MLFLOW_EXPERIMENT_ID"]),
        ("sqlite:////home/ada/mlflow.db", "7", {"MLFLOW_EXPERIMENT_NAME": "by the notebook"}, ["MLFLOW_TRACKING_URI"]),
        ("./mlruns", "7", {"MLFLOW_EXPERIMENT_NAME": "by the notebook"}, ["MLFLOW_TRACKING_URI"]),
        (URL, "7", {"MLFLOW_EXPERIMENT_ID": "7"}, []),
        ("https://m.example", "7", {"MLFLOW_TRACKING_URI": "https://m.example", "MLFLOW_EXPERIMENT_ID": "7"}, []),
    ],
)
def test_the_experiment_of_a_notebook_travels_by_its_name_where_its_id_means_nothing(
    variables: Path, monkeypatch: pytest.MonkeyPatch, uri: str | None, identifier: str, travels: dict[str, str], lost: list[str]
) -> None:  # P1
    monkeypatch.setitem(sys.modules, "mlflow", Store)  # type: ignore[arg-type]
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", identifier)
    if uri is not None:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    taken, missed = snapshot.take({}, URL)
    assert taken == travels and [text.split(" ")[0] for text in missed] == lost


@pytest.mark.parametrize(
    ("tracking", "registry", "explicit", "travels", "lost"),
    [
        (None, "databricks-uc", {}, None, ["MLFLOW_REGISTRY_URI"]),
        (None, "databricks-uc", {"MLFLOW_REGISTRY_URI": "databricks-uc"}, None, []),
        (URL, "sqlite:////home/ada/registry.db", {}, None, ["MLFLOW_REGISTRY_URI"]),
        (URL, URL, {}, None, []),
        (None, "https://registry.example", {}, "https://registry.example", []),
        ("https://m.example", "databricks-uc", {}, "databricks-uc", []),
    ],
)
def test_a_registry_that_ranks_cannot_reach_is_left_out_where_the_job_tracks_with_its_controller(
    variables: Path,
    monkeypatch: pytest.MonkeyPatch,
    tracking: str | None,
    registry: str,
    explicit: dict[str, str | None],
    travels: str | None,
    lost: list[str],
) -> None:
    monkeypatch.setenv("MLFLOW_REGISTRY_URI", registry)
    if tracking is not None:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking)
    taken, missed = snapshot.take(explicit, URL)
    assert taken.get("MLFLOW_REGISTRY_URI") == travels and [text.split(" ")[0] for text in missed] == lost


def test_values_that_cannot_travel_are_named_and_never_shown(variables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LARGE", "secret" * 10_000)
    monkeypatch.setenv("RAW", os.fsdecode(b"secret\xff"))
    monkeypatch.setenv("FITS", "x" * 32 * 1024)
    monkeypatch.setenv("MORE", "secret" * 5_000)
    taken, missed = snapshot.take({}, URL)
    assert list(taken) == ["FITS"] and "secret" not in str(missed)
    assert missed == ["LARGE (it is larger than 32 KiB)", "MORE (all variables together are too large)", "RAW (it is no UTF-8)"]


def test_a_token_for_a_server_that_is_named_explicitly_travels(variables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t")
    assert snapshot.take({"MLFLOW_TRACKING_URI": "https://tracking.example.org"}, URL)[0] == {"MLFLOW_TRACKING_TOKEN": "t"}


@pytest.mark.parametrize("content", [b"", b"a title of the process\0A=1\0"])
def test_where_the_start_cannot_be_known_only_frameworks_variables_travel(
    variables: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    variables.write_bytes(content)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("HF_HOME", "/models")
    assert snapshot.take({}, URL)[0] == {"HF_HOME": "/models"}


def test_on_other_systems_the_start_is_that_of_the_import(variables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "_AT_IMPORT", {"OLD": "1"})
    monkeypatch.setenv("OLD", "1")
    monkeypatch.setenv("NEW", "1")
    assert snapshot.take({}, URL)[0] == {"NEW": "1"}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_real_process_knows_what_it_was_started_with() -> None:
    script = "import os; os.environ['SET'] = '1'; from serverless_gpu._internal.pack import snapshot; print(snapshot.take({}, '')[0])"
    env = {"INHERITED": "1", "HF_HOME": "/m", "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PATH": os.environ["PATH"]}
    ran = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "{'HF_HOME': '/m', 'SET': '1'}"


def test_the_page_lists_the_variables_that_travel_and_those_that_stay() -> None:
    page = (Path(__file__).parents[3] / "client" / "python" / "README.md").read_text()
    travel, stay = page.partition("## Variables that stay")[2].partition("\n## ")[0].split("`env=`")
    prefixes, rest = stay.partition("- names that begin with")[2].split(";\n", 1)
    names, told = rest.split("Told by name:")
    lists = {travel: snapshot.FRAMEWORKS, prefixes: snapshot.MACHINE_PREFIXES, names: snapshot.MACHINE, told: snapshot.ASKED_FOR}
    for text, known in lists.items():
        assert set(re.findall("`([A-Z0-9_]+)`", text)) == set(known)
