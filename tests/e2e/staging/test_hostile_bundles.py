# SPDX-License-Identifier: Apache-2.0
"""Bundles that were made to write or read where a job may not: beside its folder, through links, and over files of the node."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from harness import Cluster, eventually

Member = tuple[str, bytes, str, bytes]


def archive(*members: Member) -> bytes:
    """A tar of (name, type, link, content), as no well-meant program makes it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, kind, link, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size, info.mode = kind, link, len(content), 0o6777
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def file(name: str) -> Member:
    return name, tarfile.REGTYPE, "", b"hostile"


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> Member:
    return name, kind, target, b""


#: name: (members, other files of the job); OUT is a folder that is not the job's, with a file `kept` in it.
BUNDLES: dict[str, tuple[list[Member], list[str]]] = {
    "up": ([file("../../../../../../../../../../OUT/new"), file("a/../../../../../../../../../../../OUT/new")], []),
    "absolute": ([file("OUT/new"), file("OUT/kept")], []),
    "through a link": ([link("door", "OUT"), file("door/new"), file("door/kept")], []),
    "through a link upwards": ([link("door", "../../../../../../../../../../OUT"), file("door/new")], []),
    "through two links": ([link("a", "b"), link("b", "OUT"), file("a/new")], []),
    "over a link": ([link("door", "OUT/kept"), file("door")], []),
    "a hard link outside": ([link("hard", "OUT/kept", tarfile.LNKTYPE), file("hard")], []),
    "a hard link to a link": ([link("door", "OUT/kept"), link("hard", "door", tarfile.LNKTYPE), file("hard")], []),
    "a folder becomes a link": ([("d", tarfile.DIRTYPE, "", b""), link("d", "OUT"), file("d/new")], []),
    "files of the job through a link": ([link("door", "OUT")], ["door/new", "door/kept"]),
    "a file of the job over a link": ([link("door", "OUT/kept")], ["door"]),
    "a file of the job behind two links": ([link("a", "b"), link("b", "OUT")], ["a/new"]),
}


@pytest.mark.parametrize("how", BUNDLES)
def test_a_bundle_writes_nothing_beside_the_folder_of_its_job(cluster: Cluster, tmp_path: Path, how: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    kept = outside / "kept"
    kept.write_text("kept")
    before = kept.stat()
    members, files = BUNDLES[how]
    bundle = archive(
        *((name.replace("OUT", str(outside)), kind, to.replace("OUT", str(outside)), more) for name, kind, to, more in members)
    )
    blobs = {"bundle": bundle, "file": b"hostile"}
    names = {name: hashlib.sha256(content).hexdigest() for name, content in blobs.items()}
    for name, content in blobs.items():
        assert cluster.api.raw("PUT", f"/v1/blobs/{names[name]}", content)[0] in (200, 201)
    spec: dict[str, Any] = {"bundle": {"blob": names["bundle"]}, "files": [{"path": path, "blob": names["file"]} for path in files]}
    job = cluster.api.submit(["true"], **spec)
    ended = cluster.api.wait(job)
    after = kept.stat()
    assert sorted(path.name for path in outside.iterdir()) == ["kept"], ended
    assert kept.read_text() == "kept" and (after.st_mode, after.st_uid, after.st_ino) == (before.st_mode, before.st_uid, before.st_ino), (
        ended
    )
    assert after.st_nlink == 1, ended
    assert not files or ended["state"] == "FAILED", "the node declined, and another took it, for ever"
    assert not files or f"cannot make the file {files[0]}" in ended["reason"], ended
    eventually(lambda: all(agent.alive() for agent in cluster.agents), "the agents to live")
