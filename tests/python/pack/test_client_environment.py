# SPDX-License-Identifier: Apache-2.0
"""The environment as a requirements file: the lock of what is installed, and what `requirements=` may name."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from serverless_gpu._internal.pack import environment
from serverless_gpu._internal.pack.requirements import RequirementsError, check_form, text_of


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages, which is all that is on sys.path."""
    place = tmp_path / "site"
    place.mkdir()
    monkeypatch.setattr(sys, "path", [str(place)])
    monkeypatch.setattr(environment, "_kept", None)
    return place


def install(site: Path, folder: str, installer: str | None = "pip\n", direct: Any = None, **files: str) -> None:
    place = site / f"{folder}.dist-info"
    place.mkdir()
    if installer is not None:
        (place / "INSTALLER").write_text(installer)
    if direct is not None:
        (place / "direct_url.json").write_text(json.dumps(direct))
    for name, text in files.items():
        (place / name.replace("_txt", ".txt")).write_text(text)


def lines() -> list[str]:
    text = environment.lock().text
    assert text == "" or text.endswith("\n")
    return text.splitlines()


# --- the lock ---


def test_the_lock_names_what_installers_have_put_there_in_public_versions(site: Path) -> None:
    install(site, "torch-2.13.0+cpu")
    install(site, "Foo_Bar-1.0rc1", "uv")
    install(site, "apt_pkg-1.0", "debian")
    install(site, "unknown-1.0", None)
    install(site, "~umpy-2.0")
    for name in ("pip-23.2", "setuptools-68", "wheel-1", "gpuctl-0.1.0", "gpuctl_air-0.1.0", "gpuctl_pyspark-0.1.0", "serverless_gpu-1"):
        install(site, name)
    assert lines() == ["foo-bar==1.0rc1", "torch==2.13.0"]


def test_a_build_for_one_version_of_cuda_is_named_with_the_index_that_has_it(site: Path) -> None:
    """G6: the label was dropped, and the node got a build for another CUDA, which its driver may not take."""
    install(site, "torch-2.1.0+cu118")
    install(site, "torchvision-0.16.0+cu118")
    install(site, "numpy-1.26.4")
    index = "--extra-index-url https://download.pytorch.org/whl/cu118"
    assert lines() == [index, "numpy==1.26.4", "torch==2.1.0+cu118", "torchvision==0.16.0+cu118"]
    assert environment.lock().unlabelled == ()


def test_a_nightly_build_is_named_with_the_nightly_index(site: Path) -> None:
    install(site, "torch-2.6.0.dev20241112+cu124")
    index = "--extra-index-url https://download.pytorch.org/whl/nightly/cu124"
    assert lines() == [index, "torch==2.6.0.dev20241112+cu124"]


def test_a_label_that_no_index_is_known_for_is_dropped_and_told(site: Path) -> None:
    install(site, "flash_attn-2.5.0+cu118torch2.1")
    install(site, "torch-2.13.0+cpu")
    assert lines() == ["flash-attn==2.5.0", "torch==2.13.0"]
    assert environment.lock().unlabelled == ("flash-attn==2.5.0+cu118torch2.1",)


def test_a_folder_whose_name_does_not_tell_is_asked_for_its_metadata(site: Path) -> None:
    install(site, "odd", METADATA="Metadata-Version: 2.1\nName: Odd.Name\nVersion: 3.1+local\n\nName: not this\n")
    install(site, "broken", METADATA="nothing")
    assert lines() == ["odd-name==3.1"]


def test_the_first_on_the_path_is_the_one(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, "numpy-2.1.0")
    (tmp_path / "second").mkdir()
    install(tmp_path / "second", "numpy-1.0")
    install(tmp_path / "second", "scipy-1.0")
    monkeypatch.setattr(sys, "path", [str(site), str(tmp_path / "second"), str(tmp_path / "none"), str(tmp_path / "a.zip")])
    assert lines() == ["numpy==2.1.0", "scipy==1.0"]


def test_packages_from_addresses_are_named_by_them_without_passwords(site: Path) -> None:
    vcs = {"vcs": "git", "commit_id": "abc123", "requested_revision": "main"}
    install(site, "a-1", direct={"url": "https://git.example.org/a", "vcs_info": vcs, "subdirectory": "py"})
    install(site, "b-1", direct={"url": "ssh://git@git.example.org/b", "vcs_info": vcs})
    archive = {"hashes": {"sha256": "ff"}}
    install(site, "c-1+cu12", direct={"url": "https://me:secret@example.org/c-1.whl", "archive_info": archive})
    install(site, "d-1", direct={"url": "https://${USER}:${TOKEN}@example.org/d.zip", "archive_info": {}})
    assert lines() == [
        "a @ git+https://git.example.org/a@abc123#subdirectory=py",
        "b @ git+ssh://git@git.example.org/b@abc123",
        "c @ https://example.org/c-1.whl#sha256=ff",
        "d @ https://${USER}:${TOKEN}@example.org/d.zip",
    ]


def test_what_conda_has_built_has_a_version_and_no_address(site: Path) -> None:
    install(site, "numpy-2.1.0", "conda", {"url": "file:///croot/numpy/work", "dir_info": {}})
    assert lines() == ["numpy==2.1.0"] and environment.lock().local == []


def test_packages_of_this_machine_are_left_out_with_where_their_modules_lie(site: Path, tmp_path: Path) -> None:
    for name in ("flat/flat", "nested/src/deep"):
        (tmp_path / name).mkdir(parents=True)
    editable = {"editable": True}
    install(site, "flat-1", direct={"url": f"file://{tmp_path}/flat", "dir_info": {}}, top_level_txt="flat\n")
    install(site, "nested-1", direct={"url": f"file://{tmp_path}/nested", "dir_info": editable}, RECORD="_nested.pth,,\nx/y,,\n")
    (site / "_nested.pth").write_text(f"{tmp_path}/nested/src\n")
    install(site, "wheel_of_mine-1", direct={"url": f"file://{tmp_path}/w%20x.whl", "archive_info": {}}, RECORD="w/__init__.py,,\n")
    found = environment.lock()
    assert found.text == ""
    assert [(local.name, local.place, local.roots) for local in found.local] == [
        ("flat", f"{tmp_path}/flat", [f"{tmp_path}/flat"]),
        ("nested", f"{tmp_path}/nested", [f"{tmp_path}/nested/src"]),
        ("wheel-of-mine", f"{tmp_path}/w x.whl", []),
    ]


def test_the_lock_is_kept_until_something_is_installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, "numpy-2.1.0")
    first = environment.lock()
    with monkeypatch.context() as patch:
        patch.setattr(environment, "_build", lambda places: pytest.fail("it was looked at again"))
        assert environment.lock() is first
    install(site, "scipy-1.0")
    os.utime(site, ns=(0, time.time_ns() + 1))
    assert lines() == ["numpy==2.1.0", "scipy==1.0"]


def test_the_lock_of_this_very_python_names_what_runs_this_test() -> None:
    assert f"pytest=={pytest.__version__}" in lines()
    assert lines() == sorted(lines(), key=lambda line: line.partition(" @")[0].partition("==")[0])


# --- what the parameter may be ---


def test_a_requirements_file_goes_as_it_is_with_what_it_includes(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "requirements.txt").write_bytes(b"# ours\r\nnumpy==2.1.0 \\\r\n    --hash=sha256:aa\r\n-r sub/more.txt\r\n")
    (tmp_path / "sub" / "more.txt").write_text("--extra-index-url https://example.org/simple\n-rlast.txt\nx @ git+https://h/x@v1\n")
    (tmp_path / "sub" / "last.txt").write_text("torch[opt]==2.13.0; python_version > '3.8'  # -e .")
    assert text_of(tmp_path / "requirements.txt") == (
        "# ours\nnumpy==2.1.0 \\\n    --hash=sha256:aa\n--extra-index-url https://example.org/simple\n"
        "torch[opt]==2.13.0; python_version > '3.8'  # -e .\nx @ git+https://h/x@v1\n"
    )


def test_a_list_of_lines_is_a_requirements_file_and_an_empty_one_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert text_of(["numpy==2.1.0", "https://example.org/a.whl"]) == "numpy==2.1.0\nhttps://example.org/a.whl\n"
    assert text_of([]) == text_of([" "]) == ""
    (tmp_path / "r.txt").write_text("six\n")
    monkeypatch.chdir(tmp_path)
    assert text_of(["-r r.txt"]) == text_of("r.txt") == "six\n"


def test_wheels_for_this_python_and_for_several_go_as_they_are() -> None:
    own = "cp{}{}".format(*sys.version_info[:2])
    for tags in (f"{own}-{own}", "py3-none", "py2.py3-none", "cp36-abi3", f"cp36.{own}-none"):
        line = f"a @ https://example.org/a-1-{tags}-any.whl"
        assert text_of([line]) == f"{line}\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("-e .", "editable.*without -e"),
        ("--editable=git+https://example.org/a", "editable"),
        (".", "this machine.*install it here"),
        ("a @ https://example.org/a-1-cp36-cp36m-linux_x86_64.whl#sha256=ff", "is a wheel for Python 3.6.*this one's version"),
        ("./pkg", "this machine"),
        ("../pkg[extra] ; python_version > '3'", "this machine"),
        ("sub/pkg", "this machine"),
        ("a-1.whl", "this machine"),
        ("file:///srv/a.whl", "this machine"),
        ("a @ file:///srv/a.whl", "this machine"),
        ("a @ ../a", "this machine"),
        ("-c constraints.txt", "constraints.*versions"),
        ("--constraint=c.txt", "constraints"),
        ("--find-links ./wheels", "extra-index-url"),
        ("-r none.txt", "there is no file .*none.txt"),
        ("-r https://example.org/r.txt", "network"),
        ("-r again.txt", "includes this one"),
        ("numpy \\", "backslash"),
    ],
)
def test_what_no_node_could_fetch_is_refused_with_its_line(tmp_path: Path, line: str, words: str) -> None:
    (tmp_path / "requirements.txt").write_text(f"six\n{line}\n")
    (tmp_path / "again.txt").write_text("-r requirements.txt\n")
    with pytest.raises(RequirementsError, match=f"^requirements: .*{words}") as raised:
        text_of(tmp_path / "requirements.txt")
    assert "\n" not in str(raised.value)


def test_a_refusal_shows_no_password(tmp_path: Path) -> None:
    with pytest.raises(RequirementsError) as raised:
        text_of(["six", "-e git+https://me:hunter2@example.org/a"])
    assert "line:2" in str(raised.value) and "hunter2" not in str(raised.value)


def test_lines_within_lines_and_what_is_missing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RequirementsError, match="item of its own"):
        text_of(["six\nnumpy"])
    with pytest.raises(RequirementsError, match=r'no file .*numpy.*list of lines: requirements=\["numpy==2.1.0"\]'):
        text_of("numpy")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs tomllib")
def test_a_pyproject_gives_its_dependencies(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text('[project]\nname = "x"\ndependencies = ["numpy>=2", "six"]\n')
    assert text_of(str(file)) == "numpy>=2\nsix\n"
    for text, words in (("[tool.poetry]\n", r"no list \[project\].dependencies"), ("[project\n", "is not TOML")):
        file.write_text(text)
        with pytest.raises(RequirementsError, match=words):
            text_of(file)


@pytest.mark.parametrize("value", [1, "", b"x", ["six", 1], {"six": "1"}, 1.5])
def test_what_the_parameter_cannot_be_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError, match="requirements must be"):
        check_form(value)
