# SPDX-License-Identifier: Apache-2.0
"""What travels: the payload of a call, and the zip of modules."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from serverless_gpu._internal.pack import modules, payload


def test_a_payload_names_its_python_and_then_holds_the_call() -> None:
    packed = payload.pack(len, ("x",), {"a": 1}, {})
    line, _, body = packed.joined().partition(b"\n")
    assert line == b"gpuctl-function 1 python=%d.%d" % sys.version_info[:2]
    assert pickle.loads(body) == (len, ("x",), {"a": 1})
    assert body.endswith(packed.seal_key) and len(packed.seal_key) == 32
    assert packed.sha256 == hashlib.sha256(packed.joined()).hexdigest() and packed.size == len(packed) == len(packed.joined())


def test_large_arguments_are_not_copied() -> None:
    data = os.urandom(10_000_000)
    packed = payload.pack(len, (data,), {}, {})
    assert any(piece is data for piece in packed)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and nothing kept in this process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(modules, "_made", None)
    return tmp_path / "gpuctl"


def test_the_zip_of_modules_is_the_same_each_time_and_holds_both_packages(cache: Path) -> None:
    script = "from serverless_gpu._internal.pack import modules; print(modules.modules().sha256)"
    runs = []
    for seed in ("1", "2"):
        env = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "XDG_CACHE_HOME": str(cache / seed), "PYTHONHASHSEED": seed}
        ran = subprocess.run([sys.executable, "-c", script], env={**os.environ, **env}, capture_output=True, text=True, check=True)
        runs.append(ran.stdout.strip())
    zipped = modules.modules()
    assert runs == [zipped.sha256] * 2
    archive = zipfile.ZipFile(io.BytesIO(zipped.joined()))
    names = set(archive.namelist())
    assert {"cloudpickle/__init__.py", "cloudpickle/cloudpickle.pyc", "serverless_gpu/runtime.py", "serverless_gpu/runtime.pyc"} <= names
    assert archive.read("serverless_gpu/runtime.pyc")[4:8] == b"\1\0\0\0"  # by hash, unchecked


def test_a_python_with_nothing_but_the_zip_runs_from_its_bytecode(cache: Path, tmp_path: Path) -> None:
    archive = tmp_path / "modules.zip"
    archive.write_bytes(modules.modules().joined())
    script = (
        f"import sys; sys.path.insert(0, {str(archive)!r}); import cloudpickle, serverless_gpu, serverless_gpu.runtime as rt;"
        "assert rt.get_world_size() == 1; print(rt.__spec__.origin, rt.__file__, cloudpickle.cloudpickle.__file__)"
    )
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert all(word.endswith(".pyc") for word in ran.stdout.split()[1:]), ran.stdout


def test_the_zip_is_kept_and_a_damaged_one_made_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = modules.modules()
    (kept,) = cache.iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(modules, "_made", None)
        patch.setattr(modules, "_build", lambda sources: pytest.fail("it was built again"))
        assert modules.modules().sha256 == first.sha256
    kept.write_bytes(kept.read_bytes()[:-1])
    monkeypatch.setattr(modules, "_made", None)
    assert modules.modules().sha256 == first.sha256
    assert [file.name for file in cache.iterdir()] == [kept.name]


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpuctl").write_text("a file in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(modules, "_made", None)
    assert modules.modules().size > 10_000
