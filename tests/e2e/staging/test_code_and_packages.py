# SPDX-License-Identifier: Apache-2.0
"""What gpuctl sends with a job: the packages that it needs and the folder of its code, as the controller receives them."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import GPUCTL, Cluster, run_gpuctl

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A controller whose node takes no work: what was submitted waits, and can be looked at."""
    shared = Cluster(tmp_path_factory.mktemp("bare"), [2]).start()
    shared.api.post("/v1/nodes/node0/drain", {"reason": "a test looks at what waits"})
    yield shared
    shared.stop()


@pytest.fixture
def gpuctl(bare: Cluster) -> Run:
    settings = {"GPUCTL_URL": bare.url, "GPUCTL_TOKEN_FILE": str(bare.folder / "controller" / "admin.token")}

    def run(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return run_gpuctl(*arguments, env={**settings, **(env or {})})

    return run


def spec_of(bare: Cluster, submitted: subprocess.CompletedProcess[str]) -> Any:
    assert submitted.returncode == 0, submitted.stderr
    return bare.api.job(submitted.stdout.strip())["spec"]


def blob(bare: Cluster, sha: str) -> bytes:
    status, _, body = bare.api.raw("GET", f"/v1/blobs/{sha}")
    assert status == 200 and hashlib.sha256(body).hexdigest() == sha
    return body


def archive_of(bare: Cluster, spec: Any) -> tarfile.TarFile:
    return tarfile.open(fileobj=io.BytesIO(blob(bare, spec["bundle"]["blob"])))


def write(path: Path, text: str = "") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A folder with what people have in theirs."""
    folder = tmp_path / "project"
    write(folder / ".gitignore", "# made\n*.log\n/data/\n!keep.log\n")
    write(folder / "train.py", "print('train')\n")
    write(folder / "src" / "lib" / "a.py", "A = 1\n")
    write(folder / "src" / ".gitignore", "!notes.log\ntmp*/\n")
    write(folder / "src" / "notes.log", "kept\n")
    write(folder / "src" / "tmp1" / "x")
    write(folder / "keep.log")
    write(folder / "run.log", "left out\n")
    write(folder / "data" / "large.bin", "left out\n")
    write(folder / "src" / "__pycache__" / "a.pyc")
    write(folder / "env" / "pyvenv.cfg")
    write(folder / "node_modules" / "x.js")
    write(folder / ".ipynb_checkpoints" / "n.ipynb")
    (folder / "empty").mkdir()
    (folder / "tool.sh").write_text("#!/bin/sh\n")
    (folder / "tool.sh").chmod(0o755)
    (folder / "link").symlink_to("src/lib")
    (folder / "outside").symlink_to("../../elsewhere")
    return folder


# --- bundles ---


def test_a_bundle_is_a_tar_of_the_folder_as_git_sees_it(bare: Cluster, gpuctl: Run, code: Path) -> None:
    submitted = gpuctl("submit", "--bundle", str(code), "--python-path", "src", "--python-path", "./src/lib/", "--", "true")
    assert "the link outside leads outside, to ../../elsewhere; it is left out" in submitted.stderr
    spec = spec_of(bare, submitted)
    assert spec["bundle"]["python_path"] == ["src", "src/lib"] and "workdir" not in spec
    with archive_of(bare, spec) as archive:
        members = {member.name: member for member in archive}
        assert list(members) == [
            ".gitignore", "empty", "keep.log", "link", "src", "src/.gitignore", "src/lib", "src/lib/a.py", "src/notes.log", "tool.sh",
            "train.py",
        ]  # fmt: skip
        file = archive.extractfile("src/lib/a.py")
        assert file is not None and file.read() == b"A = 1\n"
    assert members["tool.sh"].mode == 0o755 and members["empty"].isdir()
    assert members["link"].issym() and members["link"].linkname == "src/lib"
    assert members["train.py"].mtime == int((code / "train.py").stat().st_mtime)
    assert {(member.uid, member.gid, member.uname, member.gname) for member in members.values()} == {(0, 0, "", "")}


def test_the_files_are_those_that_git_would_add(bare: Cluster, gpuctl: Run, code: Path) -> None:
    for left_out in ("env", "node_modules", ".ipynb_checkpoints", "outside"):  # which git knows nothing of
        write(code / ".gitignore", (code / ".gitignore").read_text() + f"{left_out}\n")
    write(code / "src" / ".gitignore", "**/deep/**/x\n/[ab]?.py\nlib/*\n!lib/a.py\n__pycache__\n\\#y\n")
    for name in ("deep/1/2/x", "deep/x", "ab.py", "in/ab.py", "lib/b.py", "#y", "z ü"):
        write(code / "src" / name)
    with archive_of(bare, spec_of(bare, gpuctl("submit", "--bundle", str(code), "--", "true"))) as archive:
        sent = sorted(member.name for member in archive if not member.isdir())
    subprocess.run(["git", "init", "-q", str(code)], check=True)
    listed = ["git", "-C", str(code), "ls-files", "-z", "--others", "--exclude-standard"]
    known = subprocess.run(listed, check=True, capture_output=True, text=True).stdout
    assert sent == sorted(filter(None, known.split("\0")))


def test_a_folder_of_a_repository_heeds_the_rules_around_it(bare: Cluster, gpuctl: Run, code: Path) -> None:
    write(code / "src" / "run.log")
    write(code / "src" / ".gpuctlignore", "lib/\n")
    alone = spec_of(bare, gpuctl("submit", "--bundle", str(code / "src"), "--", "true"))
    (code / ".git").mkdir()
    inside = spec_of(bare, gpuctl("submit", "--bundle", str(code / "src"), "--", "true"))
    with archive_of(bare, alone) as archive:
        assert archive.getnames() == [".gitignore", ".gpuctlignore", "notes.log", "run.log"]
    with archive_of(bare, inside) as archive:
        assert archive.getnames() == [".gitignore", ".gpuctlignore", "notes.log"]


def test_names_of_any_length_and_letters_arrive(bare: Cluster, gpuctl: Run, tmp_path: Path) -> None:
    folder = tmp_path / "project"
    long = "n" * 200
    names = [f"{long}/{'m' * 90}", f"{long}/{'m' * 120}", "d" * 101, "p" * 99 + "/" + "q" * 50, "naïve ü.py", "a\nb"]
    deep = "/".join(["d" * 190] * 5) + "/"
    names += [deep + "e" * (length - len(deep)) for length in range(985, 997)]  # about where a record's length gets a digit more
    for name in names:
        write(folder / name, name)
    (folder / "link").symlink_to(f"{long}/{'m' * 120}")
    spec = spec_of(bare, gpuctl("submit", "--bundle", str(folder), "--", "true"))
    with archive_of(bare, spec) as archive:
        options: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(tmp_path / "out", **options)
    unpacked = tmp_path / "out"
    for name in names:
        assert (unpacked / name).read_text() == name
    assert os.readlink(unpacked / "link") == f"{long}/{'m' * 120}"
    tar = tmp_path / "bundle.tar"
    tar.write_bytes(blob(bare, spec["bundle"]["blob"]))
    (tmp_path / "again").mkdir()
    told = subprocess.run(["tar", "-xf", str(tar), "-C", str(tmp_path / "again")], check=True, capture_output=True, text=True)
    assert told.stderr == ""  # tar has nothing to complain about
    assert [(tmp_path / "again" / name).read_text() for name in names] == names


def test_an_unchanged_folder_is_the_same_blob_and_is_not_sent_again(bare: Cluster, gpuctl: Run, code: Path) -> None:
    write(code / "weights.bin", "x" * (1 << 21))
    first = gpuctl("submit", "--bundle", str(code), "--", "true")
    assert f"sending {code}: " in first.stderr
    write(code / "src" / "__pycache__" / "b.pyc", "running it makes this")
    again = gpuctl("submit", "--bundle", str(code), "--", "true")
    assert "sending" not in again.stderr
    assert spec_of(bare, first)["bundle"] == spec_of(bare, again)["bundle"]
    write(code / "train.py", "print('changed')\n")
    changed = spec_of(bare, gpuctl("submit", "--bundle", str(code), "--", "true"))
    assert changed["bundle"]["blob"] != spec_of(bare, first)["bundle"]["blob"]


def test_wrong_bundles_are_refused_before_anything_is_started(tmp_path: Path, code: Path) -> None:
    nowhere = {"GPUCTL_STATE": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path)}
    (tmp_path / "large").mkdir()
    with open(tmp_path / "large" / "disk.img", "wb") as file:
        file.truncate(300 << 20)
    cases = [
        (["--bundle", str(tmp_path / "none")], "cannot send the folder", "bundle"),
        (["--bundle", str(code / "train.py")], "Not a directory", "bundle"),
        (["--bundle", str(tmp_path / "large")], "has 300.0 MiB, the limit is 256.0 MiB; the largest in it: disk.img", "bundle"),
        (["--bundle", str(code), "--python-path", "../x"], 'the Python path "../x" is no folder inside of', "bundle.python_path"),
        (["--bundle", str(code), "--python-path", "data"], 'the Python path "data" is no folder in', "bundle.python_path"),
        (["--python-path", "src"], "--python-path is about a bundle, and there is none", "python-path"),
        (["--requirements", str(tmp_path / "none.txt")], "cannot open", "requirements"),
        (["--requirements", write(tmp_path / "e.txt", "numpy\n-e .\n")], 'e.txt:2: "-e ." is an editable installation', "requirements"),
    ]
    for options, text, field in cases:
        ran = run_gpuctl("submit", *options, "--", "true", env=nowhere)
        assert ran.returncode in (1, 2) and text in ran.stderr and f"field: {field}" in ran.stderr, ran.stderr
        run = run_gpuctl("run", *options, "--", "true", env=nowhere)
        assert run.returncode == 125, run.stderr
    assert not (tmp_path / "state").exists()


def test_what_cannot_be_read_is_left_out_with_a_note(bare: Cluster, gpuctl: Run, code: Path) -> None:
    os.mkfifo(code / "pipe")
    submitted = gpuctl("submit", "--bundle", str(code), "--", "true")
    assert "pipe is no regular file; it is left out" in submitted.stderr
    with archive_of(bare, spec_of(bare, submitted)) as archive:
        assert "pipe" not in archive.getnames()


# --- requirements ---


def test_requirements_travel_in_the_spec_or_as_the_same_text(bare: Cluster, gpuctl: Run, tmp_path: Path) -> None:
    write(tmp_path / "more.txt", "torch==2.13.0\r\n")
    few = write(tmp_path / "few.txt", "numpy==2.1.0  # arrays\r\n\r\n-r more.txt\n")
    spec = spec_of(bare, gpuctl("submit", "--requirements", few, "--python-version", "3.11", "--", "true"))
    assert spec["environment"] == {"requirements": ["numpy==2.1.0", "torch==2.13.0"], "python": "3.11"}
    lines = [f"package-{number}==1.0.{number}" for number in range(500)]
    many = write(tmp_path / "many.txt", "\n".join(lines))
    spec = spec_of(bare, gpuctl("submit", "--requirements", many, "--", "true"))
    assert blob(bare, spec["environment"]["blob"]).decode() == "".join(f"{line}\n" for line in lines)


def test_requirements_may_come_by_a_pipe(bare: Cluster, tmp_path: Path) -> None:
    ran = subprocess.run(
        [str(GPUCTL), "submit", "--requirements", "/dev/stdin", "--", "true"],
        input="numpy==2.1.0\n",
        env={**os.environ, "GPUCTL_URL": bare.url, "GPUCTL_TOKEN_FILE": str(bare.folder / "controller" / "admin.token")},
        capture_output=True,
        text=True,
    )
    assert spec_of(bare, ran)["environment"] == {"requirements": ["numpy==2.1.0"]}


def test_get_shows_the_environment_and_the_bundle(gpuctl: Run, code: Path, tmp_path: Path) -> None:
    requirements = write(tmp_path / "r.txt", "".join(f"p{number}\n" for number in range(12)))
    options = ["--requirements", requirements, "--python-version", "3.11", "--bundle", str(code)]
    job = gpuctl("submit", *options, "--", "true").stdout.strip()
    shown = gpuctl("get", job).stdout
    assert "p0, p1, p2, p3, p4, p5, p6, p7 and 4 more; Python 3.11" in shown
    assert "spec.bundle" in shown


# --- job files ---


def test_job_files_name_packages_and_folders_from_where_they_lie(bare: Cluster, gpuctl: Run, code: Path) -> None:
    write(code.parent / "requirements.txt", "numpy\n")
    job = write(
        code.parent / "job.yaml",
        "command: python train.py\nenvironment: {file: requirements.txt, python: 3.10}\nbundle: {source: project, python_path: [src]}\n",
    )
    spec = spec_of(bare, gpuctl("submit", "-f", job))
    assert spec["environment"] == {"requirements": ["numpy"], "python": "3.10"}
    assert spec["bundle"]["python_path"] == ["src"]
    with archive_of(bare, spec) as archive:
        assert "train.py" in archive.getnames()
    other = write(code.parent / "other" / "x.py")
    won = spec_of(bare, gpuctl("submit", "-f", job, "--bundle", str(Path(other).parent), "--python-version", "3.12"))
    assert won["environment"]["python"] == "3.12" and "python_path" not in won["bundle"]
    with archive_of(bare, won) as archive:
        assert archive.getnames() == ["x.py"]


def test_an_air_file_sends_its_dependencies_and_its_code(bare: Cluster, gpuctl: Run, code: Path) -> None:
    for number in range(100):
        write(code / "many" / f"{number}.py")
    write(code.parent / "r.txt", "torch\n")
    job = write(
        code.parent / "air.yaml",
        "experiment_name: first\ncompute: {accelerator_type: GPU_1xcpu, num_accelerators: 2}\n"
        "environment: {dependencies: [numpy==2.1.0, -r r.txt]}\ncode_source: {root_path: project}\n"
        "parameters: {lr: 0.1}\ncommand: python $CODE_SOURCE_PATH/train.py\n",
    )
    spec = spec_of(bare, gpuctl("submit", "-f", job))
    assert spec["environment"] == {"requirements": ["numpy==2.1.0", "torch"]}
    assert [file["path"] for file in spec["files"]] == ["parameters.json"]
    with archive_of(bare, spec) as archive:
        assert len([name for name in archive.getnames() if name.startswith("many/")]) == 100
    missing = write(code.parent / "missing.yaml", Path(job).read_text().replace("project", "none"))
    ran = gpuctl("submit", "-f", missing)
    assert ran.returncode == 1 and "missing.yaml:4: cannot send the folder" in ran.stderr, ran.stderr


def test_what_convert_writes_sends_the_same(bare: Cluster, gpuctl: Run, code: Path, tmp_path: Path) -> None:
    write(code.parent / "requirements.txt", "numpy # arrays\n")
    job = write(code.parent / "job.yaml", "command: [a]\nenvironment: {file: requirements.txt}\nbundle: project\n")
    for form in ("yaml", "json"):
        converted = gpuctl("convert", job, "-o", form)
        assert converted.returncode == 0 and str(code) in converted.stdout and "numpy" in converted.stdout, converted.stderr
        again = write(tmp_path / form / "job", converted.stdout)
        assert spec_of(bare, gpuctl("submit", "-f", again)) == spec_of(bare, gpuctl("submit", "-f", job))


def test_an_unpacked_bundle_can_be_filled_and_removed(bare: Cluster, gpuctl: Run, code: Path) -> None:
    (code / "src" / "lib").chmod(0o555)
    try:
        submitted = gpuctl("submit", "--bundle", str(code), "--", "true")
    finally:
        (code / "src" / "lib").chmod(0o755)
    with archive_of(bare, spec_of(bare, submitted)) as archive:
        assert stat.S_IMODE(archive.getmember("src/lib").mode) == 0o755


def test_completion_offers_folders_and_files_for_what_travels() -> None:
    for option in ("requirements", "bundle", "python-path"):
        assert run_gpuctl("--complete", "run", f"--{option}", "").stdout == ":files\n"
    assert run_gpuctl("--complete", "run", "--python-version", "").stdout == ""
