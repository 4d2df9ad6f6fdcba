# SPDX-License-Identifier: Apache-2.0
"""The folder that travels: what is in the tar, what is left out, its limits, and that nothing is read again for nothing."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from serverless_gpu._internal.pack import bundle, folder

OLD_S = 1_700_000_000


def write(root: Path, *names: str, text: str = "x") -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (OLD_S, OLD_S))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    return place


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the files that were read."""
    names: list[str] = []
    original = bundle._content

    def counted(path: Path, size: int) -> Any:
        names.append(path.name)
        return original(path, size)

    monkeypatch.setattr(bundle, "_content", counted)
    yield names


def members(found: bundle.Bundle) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(fileobj=io.BytesIO(b"".join(found))) as archive:
        return {member.name: member for member in archive.getmembers()}


def files(root: Path) -> set[str]:
    return {name for name, member in members(bundle.of(root)).items() if not member.isdir()}


# --- the tar ---


def test_the_tar_holds_files_folders_modes_and_times_and_nobodys_name(root: Path) -> None:
    write(root, "b.py", "deep/" * 60 + "long.py", "größe.txt", "script.sh")
    (root / "script.sh").chmod(0o755)
    (root / "empty").mkdir(mode=0o500)
    found = bundle.of(root)
    data = b"".join(found)
    assert len(data) == found.size == len(found) and hashlib.sha256(data).hexdigest() == found.sha256
    inside = members(found)
    assert inside["script.sh"].mode == 0o755 and inside["b.py"].mtime == OLD_S and inside["empty"].mode == 0o700
    assert "deep/" * 60 + "long.py" in inside and "größe.txt" in inside
    assert {(member.uid, member.gid, member.uname, member.gname) for member in inside.values()} == {(0, 0, "", "")}
    assert [name for name in inside if "/" not in name] == ["b.py", "deep", "empty", "größe.txt", "script.sh"]


def test_the_same_files_give_the_same_bytes_wherever_and_whenever_they_lie(root: Path, tmp_path: Path) -> None:
    hashes: set[str] = set()
    for place, names in ((root, ("a", "b/c")), (tmp_path / "other", ("b/c", "a"))):
        write(place, *names)
        os.utime(place / "b", (1, len(hashes)))
        hashes.add(bundle.of(place).sha256)
    assert len(hashes) == 1


def test_links_inside_stay_links_and_those_that_lead_outside_are_left_out_and_named(root: Path, tmp_path: Path) -> None:
    write(root, "data/a.txt")
    write(tmp_path, "secret")
    links = {"near": "data/a.txt", "absolute": str(root / "data"), "out": "../secret", "chain": "out", "gone": "data/none", "data/up": ".."}
    for name, target in links.items():
        (root / name).symlink_to(target)
    found = bundle.of(root)
    inside = {name: member.linkname for name, member in members(found).items() if member.issym()}
    assert inside == {"near": "data/a.txt", "absolute": "data", "gone": "data/none", "data/up": ".."}
    assert [line.split(" (")[0] for line in found.listing.missed] == ["chain", "out"] and "../secret" in found.listing.missed[1]


def test_what_is_no_file_is_left_out(root: Path) -> None:
    write(root, "a")
    os.mkfifo(root / "fifo")
    assert files(root) == {"a"}


# --- what stays at home ---


def test_what_belongs_to_this_machine_stays(root: Path) -> None:
    write(root, "a.py", "a.pyc", "__pycache__/a.pyc", ".git/config", "sub/.hg/x", "node_modules/m/i.js", "mlruns/0/meta", "env/pyvenv.cfg")
    write(root, "env/lib/x.py", ".ipynb_checkpoints/n.ipynb", ".mypy_cache/x", "venv/kept.py", ".DS_Store")
    assert files(root) == {"a.py", "venv/kept.py"}


CASES = {
    "all but some": "*\n!*/\n!*.py\n",
    "a tree but some": "data/**\n!data/**/\n!data/**/*.dvc\n",
    "one folder": "/*\n!/src/\n",
    "one folder of one": "/*\n!/src\n/src/*\n!/src/deep\n",
    "a name but one": "build/\n!keep/build/\n",
    "a child comes back": "foo/*\n!foo/bar\n",
    "by suffix but below": "*.txt\n!src/**/*.txt\n",
    "at any depth": "**/deep\n",
    "at any depth, of two parts": "**/src/deep\n",
    "in between": "foo/**/b*\n",
    "parents are not looked into": "data\n!data/x.dvc\n",
    "folders are not files": "a.py/\nsr?/\n",
    "anchored": "/a.*\n!a.py \n",
    "escapes": "\\!x\n# a comment\n\n\\#y\n[!a].txt\n",
    "no range": "*.[\n",
    "everything": "**\n!a.py\n",
}


@pytest.mark.parametrize("case", CASES)
def test_what_git_ignores_is_left_out_at_every_level(root: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "a.txt", "a.py", "b.txt", "src/a.txt", "src/a.py", "src/deep/b.py", "src/deep/b.txt", "data/x.txt", "data/x.dvc")
    write(root, "!x", "#y", "data/sub/y.txt", "data/sub/y.dvc", "build/o", "foo/bar/baz", "foo/b", "keep/build/z", "keep/src/deep/k")
    write(root, ".gitignore", text=CASES[case])
    write(root, "data/.gitignore", text="!x.txt\n/sub/*.dvc\n")
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, os.devnull)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "-o", "--exclude-standard"], capture_output=True, text=True, check=True)
    assert files(root) == set(filter(None, listed.stdout.split("\0")))


def test_rules_of_the_repository_hold_in_a_folder_of_it_unless_they_leave_it_out(root: Path) -> None:
    write(root, ".gitignore", text="*.log\n/out/\n")
    write(root, ".git/HEAD", "sub/a.py", "sub/a.log", "out/b.py", "out/b.log")
    assert files(root / "sub") == {"a.py"}
    assert files(root / "out") == {"b.py", "b.log"}  # somebody has chosen it


def test_gpuctlignore_goes_before_gitignore(root: Path) -> None:
    write(root, "model.bin", "notes.md", "a.py")
    write(root, ".gitignore", text="*.bin\n")
    write(root, ".gpuctlignore", text="!model.bin\n*.md\n")
    assert files(root) == {"a.py", "model.bin", ".gitignore", ".gpuctlignore"}


# --- limits ---


def test_too_much_is_refused_with_the_largest_entries_and_the_ways_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "LIMIT_BYTES", 3 * 2**20)
    for name, size in (("data/a", 2 * 2**20), ("data/b", 2**19), ("model.bin", 2**20), ("tiny", 1)):
        write(root, name)
        os.truncate(root / name, size)
    words = r"more than 3\.0 MiB.*data \(2 files, 2\.5 MiB\), model.bin \(1 files, 1\.0 MiB\).*\.gitignore or \.gpuctlignore.*=PATH.*=False"
    with pytest.raises(ValueError, match=words) as raised:
        bundle.of(root)
    subprocess.run(["sh", "-c", str(raised.value).rpartition("the largest: ")[2]], check=True)  # as it is offered
    assert files(root) == {"model.bin", "tiny", ".gpuctlignore"}


def test_looking_stops_as_soon_as_it_is_too_much(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "LIMIT_FILES", 3)
    write(root, *(f"a/{index}" for index in range(5)), "z/never")
    looked: list[str] = []
    original = os.scandir

    def scandir(path: Path) -> Any:
        looked.append(path.name)
        return original(path)

    monkeypatch.setattr(folder.os, "scandir", scandir)
    with pytest.raises(ValueError, match=r"more than 3 files.*a \(4 files"):
        bundle.of(root)
    assert looked == ["work", "a"]


def test_a_folder_that_is_none_is_said_so(root: Path) -> None:
    with pytest.raises(ValueError, match="no folder .*none"):
        bundle.of(root / "none")


# --- what is remembered ---


def test_nothing_is_read_again_while_nothing_has_changed(root: Path, reads: list[str]) -> None:
    write(root, "a", "b")
    first = bundle.of(root)
    assert reads == ["a", "b"]
    assert bundle.of(root).sha256 == first.sha256 and reads == ["a", "b"]


@pytest.mark.parametrize(
    "change",
    [
        lambda root: write(root, "a", text="longer"),
        lambda root: os.utime(root / "a", ns=(0, OLD_S * 10**9 + 1)),
        lambda root: (root / "a").chmod(0o755),
        lambda root: write(root, "c"),
        lambda root: (root / "b").unlink(),
    ],
)
def test_any_change_is_noticed(root: Path, reads: list[str], change: Callable[[Path], None]) -> None:
    write(root, "a", "b")
    bundle.of(root)
    reads.clear()
    change(root)
    bundle.of(root)
    assert reads


def test_a_file_that_was_just_written_is_read_again(root: Path, reads: list[str]) -> None:
    write(root, "a")
    os.utime(root / "a", ns=(0, time.time_ns() + 10**9))  # it could change once more and keep its time
    bundle.of(root)
    bundle.of(root)
    assert reads == ["a", "a"]


def test_a_remembered_hash_is_sent_from_the_files_and_only_if_they_are_the_same(root: Path) -> None:
    write(root, "a", text="one")
    first = b"".join(bundle.of(root))
    again = bundle.of(root)
    assert b"".join(again) == first == b"".join(again)
    late = bundle.of(root)
    write(root, "a", text="two")  # of the same size and time
    with pytest.raises(ValueError, match="change while they are sent"):
        b"".join(late)
    assert b"two" in b"".join(bundle.of(root))


def test_a_file_that_goes_while_it_is_read_is_looked_for_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "a", "b")
    original = bundle._content

    def shrinking(path: Path, size: int) -> Any:
        if path.name == "b":
            path.unlink()
        return original(path, size)

    monkeypatch.setattr(bundle, "_content", shrinking)
    assert set(members(bundle.of(root))) == {"a"}
