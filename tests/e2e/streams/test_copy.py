# SPDX-License-Identifier: Apache-2.0
"""gpuctl cp between this machine and a rank that runs: files come and go as cp -r copies them, whole or not at all."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import GPUCTL, Cluster, eventually
from joined import environment, gpuctl, running
from owners import cluster_of, needs_owners

CONFLICT = 5  # the exit code


@pytest.fixture(scope="module")
def job(cluster: Cluster) -> Iterator[str]:
    """A job of three ranks on two nodes, which leaves a slot to others."""
    job = running(cluster, ["sleep", "600"], gpus=3)
    yield job
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    cluster.api.wait(job)


def inside(cluster: Cluster, job: str, script: str, rank: int = 0) -> str:
    return gpuctl(cluster, "exec", "--rank", str(rank), job, "--", "sh", "-c", script).stdout.decode()


def test_files_and_folders_go_in_as_cp_copies_them(cluster: Cluster, job: str, tmp_path: Path) -> None:
    folder = tmp_path / "set é"
    (folder / "deep er").mkdir(parents=True)
    (folder / "deep er" / "data").write_bytes(content := os.urandom(3_000_000))
    script = folder / "run"
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o755)
    gpuctl(cluster, "cp", script, f"{job}:")
    gpuctl(cluster, "cp", script, f"{job}:deep/new/name")
    gpuctl(cluster, "cp", folder, f"{job}:")
    gpuctl(cluster, "cp", folder, f"{job}:copy")
    gpuctl(cluster, "cp", folder, f"{job}:copy")  # is there now, so it goes into it
    gpuctl(cluster, "cp", script, f"{job}.2:")
    gpuctl(cluster, "cp", script, f"{job}.1:-folder/-name")
    assert inside(cluster, job, "./-folder/-name", rank=1) == "ran\n"
    assert inside(cluster, job, "./run; deep/new/name; './set é/run'; copy/run; 'copy/set é/run'") == "ran\n" * 5
    assert inside(cluster, job, "cat 'set é/deep er/data' | wc -c") == f"{len(content)}\n"
    assert inside(cluster, job, "ls", rank=2) == "run\n"
    assert inside(cluster, job, "ls -A | grep gpuctl || true") == ""  # nothing is left of the way
    gpuctl(cluster, "cp", f"{job}:{inside(cluster, job, 'pwd').strip()}/copy/deep er/data", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == content


def test_files_and_folders_come_out_as_cp_copies_them(cluster: Cluster, job: str, tmp_path: Path) -> None:
    inside(cluster, job, "mkdir -p out/deep; echo one > out/deep/one; echo two > 'out/t wo'; ln -s 't wo' out/link", rank=2)
    there = tmp_path / "there"
    there.mkdir()
    gpuctl(cluster, "cp", f"{job}.2:out", there)
    gpuctl(cluster, "cp", f"{job}.2:out", tmp_path / "new")
    for copy in (there / "out", tmp_path / "new"):
        assert (copy / "deep" / "one").read_text() == "one\n" and os.readlink(copy / "link") == "t wo"
    (there / "out" / "mine").write_text("stays")
    gpuctl(cluster, "cp", f"{job}.2:./out/", there)  # goes over what is there
    assert sorted(path.name for path in (there / "out").iterdir()) == ["deep", "link", "mine", "t wo"]
    inside(cluster, job, "mkdir closed; chmod 555 closed", rank=2)
    plain = ["setpriv", "--bounding-set", "-dac_override", "--inh-caps", "-dac_override"] if os.geteuid() == 0 else []
    for _ in range(2):
        subprocess.run([*plain, str(GPUCTL), "cp", f"{job}.2:closed", str(there)], env=environment(cluster), check=True, timeout=60)
        assert (there / "closed").stat().st_mode & 0o777 == 0o555
    inside(cluster, job, "rmdir closed", rank=2)
    (there / "t wo").write_text("old")
    gpuctl(cluster, "cp", f"{job}.2:out/t wo", there)
    gpuctl(cluster, "cp", f"{job}.2:out/deep/one", tmp_path / "name")
    assert ((there / "t wo").read_text(), (tmp_path / "name").read_text()) == ("two\n", "one\n")
    assert gpuctl(cluster, "cp", f"{job}.2:out/deep/one", "-").stdout == b"one\n"
    gpuctl(cluster, "cp", f"{job}.2:.", tmp_path / "all")
    assert (tmp_path / "all" / "out" / "deep" / "one").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all", "name", "new", "there"]


def test_what_cannot_be_copied_gets_one_line_and_leaves_nothing(cluster: Cluster, job: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for words, said, code in [
        ([f"{job}.0:no-such", tmp_path], "there is no no-such beside the rank", CONFLICT),
        ([f"{job}.0:no-such", tmp_path / "new"], "copying failed beside rank 0 (exit code 1)", CONFLICT),
        ([f"{job}.9:x", tmp_path], "has no rank 9", 2),
        ([tmp_path / "no-such", f"{job}:"], "No such file or directory", 1),
        ([tmp_path / "file", f"{job}:/proc/x"], "copying failed beside rank 0", CONFLICT),
        ([f"{job}.0:x", f"{job}.1:x"], "are of jobs", 2),
        (["a", "b"], "JOB.RANK:PATH is of a rank that runs", 2),
        (["--attempt", "1", tmp_path / "file", f"{job}:"], "the attempt that runs alone", 2),
        ([f"{job}:no-such", tmp_path], f"{job}.RANK:PATH is a file of a rank that runs", 3),
    ]:
        got = gpuctl(cluster, "cp", *words, code=code)
        assert said in got.stderr.decode() and got.stderr.count(b"\n") <= 3, got.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_job_that_has_ended_takes_no_files(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.api.submit(["true"])
    cluster.api.wait(job)
    (tmp_path / "file").write_text("x")
    assert b"has ended" in gpuctl(cluster, "cp", tmp_path / "file", f"{job}:", code=CONFLICT).stderr
    assert b"has ended" in gpuctl(cluster, "cp", f"{job}.0:x", tmp_path / "new", code=CONFLICT).stderr
    assert not (tmp_path / "new").exists()


def archive_of(folder: Path, *members: tuple[str, bytes, str | bytes]) -> str:
    """A file with an archive of these names, kinds, and contents or targets."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, kind, what in members:
            member = tarfile.TarInfo(name)
            member.type, member.devmajor, member.devminor, member.mode, member.uid = kind, 1, 3, 0o4755, 12345
            member.linkname = what if isinstance(what, str) else ""
            member.size = len(what) if kind == tarfile.REGTYPE else 0
            tar.addfile(member, io.BytesIO(what if isinstance(what, bytes) else b""))
    file = folder / "archive"
    file.write_bytes(content.getvalue())
    return str(file)


def test_a_hostile_archive_stays_in_its_folder_and_makes_no_device(cluster: Cluster, tmp_path: Path) -> None:
    """The tar beside the rank is whatever the job's PATH has first. Nothing comes of it but the thing that was asked for."""
    FILE, LINK = tarfile.REGTYPE, tarfile.SYMTYPE
    hostile = archive_of(tmp_path)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "tar").write_text(f"#!/bin/sh\nexec cat {hostile}\n")
    (bin_folder / "tar").chmod(0o755)
    job = running(cluster, ["sleep", "600"], env={"PATH": f"{bin_folder}:{os.environ['PATH']}"})
    inside(cluster, job, "echo > model; mkdir folder")
    target = tmp_path / "here" / "target"
    (target / ".ssh").mkdir(parents=True)
    (target / ".profile").write_text("mine")
    outside = [(name, FILE, b"x") for name in ("../outside", "link/outside", str(tmp_path / "outside"))]
    for asked, code, members in [
        (".", 1, [("device", tarfile.CHRTYPE, ""), ("link", LINK, str(tmp_path)), *outside]),
        ("model", 2, [("model", FILE, b"x"), (".bashrc", FILE, b"x")]),
        ("model", 2, [(".bashrc", FILE, b"x")]),
        ("model", 1, [("model", LINK, ".ssh"), ("model/authorized_keys", FILE, b"x")]),
        (".", CONFLICT, [(".ssh/authorized_keys", FILE, b"x")]),
        (".", CONFLICT, [(".profile", FILE, b"x")]),
    ]:
        archive_of(tmp_path, *members)
        gpuctl(cluster, "cp", f"{job}.0:{asked}", target, code=code)
        assert sorted(path.name for path in target.iterdir()) == [".profile", ".ssh"], members
        assert list((target / ".ssh").iterdir()) == [] and (target / ".profile").read_text() == "mine"
    assert not (tmp_path / "outside").exists() and not (tmp_path / "here" / "outside").exists()
    archive_of(tmp_path, ("model", FILE, b"x"))
    gpuctl(cluster, "cp", f"{job}.0:model", target)
    assert (target / "model").stat().st_uid == os.getuid() and (target / "model").stat().st_mode & 0o7000 == 0
    (target / "folder").mkdir()
    (target / "folder" / "link").symlink_to(target / ".ssh")
    archive_of(tmp_path, ("folder/link/authorized_keys", FILE, b"x"), ("folder/more", FILE, b"x"))
    gpuctl(cluster, "cp", f"{job}.0:folder/", target, code=1)  # a link of the person's does not become a folder
    assert list((target / ".ssh").iterdir()) == []
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    cluster.api.wait(job)


def test_a_copy_that_is_interrupted_leaves_nothing_of_its_own(cluster: Cluster, job: str, tmp_path: Path) -> None:
    inside(cluster, job, "mkdir big; head -c 300000000 /dev/zero > big/zeros")
    copy = subprocess.Popen([str(GPUCTL), "cp", f"{job}.0:big", str(tmp_path / "new")], env=environment(cluster))
    eventually(lambda: any(path.name.startswith(".gpuctl-") for path in tmp_path.iterdir()), "the copy to begin")
    copy.send_signal(signal.SIGINT)
    assert copy.wait(60) == 1
    assert list(tmp_path.iterdir()) == []


@needs_owners
def test_files_belong_to_the_user_of_the_rank_and_others_copy_none(tmp_path: Path) -> None:
    with cluster_of([1], "--run-as", "owner", "--user-ids", "1900000000-1900001000") as cluster:
        ada, mallory = cluster.user("ada"), cluster.user("mallory")
        job = ada.submit(["sleep", "600"], gpu_type="cpu")
        cluster.wait_state(job, "RUNNING")
        (tmp_path / "file").write_text("x")
        gpuctl(cluster, "cp", tmp_path / "file", f"{job}:", token=ada.token)
        gpuctl(cluster, "cp", f"{job}.0:file", tmp_path / "back", token=ada.token)
        own = gpuctl(cluster, "exec", job, "--", "sh", "-c", "id -u; stat -c %u file", token=ada.token).stdout.split()
        assert own[0] == own[1] != b"0" and (tmp_path / "back").stat().st_uid == os.getuid()
        denied = gpuctl(cluster, "cp", f"{job}.0:/etc/shadow", tmp_path / "shadow", token=ada.token, code=CONFLICT)
        assert b"Permission denied" in denied.stderr and not (tmp_path / "shadow").exists()
        for source, target in ((f"{job}.0:file", str(tmp_path / "stolen")), (str(tmp_path / "file"), f"{job}:")):
            assert b"no job" in gpuctl(cluster, "cp", source, target, token=mallory.token, code=3).stderr
        assert not (tmp_path / "stolen").exists()
