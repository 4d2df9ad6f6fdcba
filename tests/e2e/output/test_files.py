# SPDX-License-Identifier: Apache-2.0
"""The files that ranks keep: what is in $GPUCTL_OUTPUT_DIR when an attempt ends is listed, fetched and copied, and goes with its job."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import GPUCTL, Api, Cluster, eventually

BIG = 3_000_000  # bytes: more than one upload

KEEP = """
import os, sys, time
from pathlib import Path
kept = Path(os.environ["GPUCTL_OUTPUT_DIR"])
rank = os.environ["RANK"]
(kept / "check points").mkdir()
(kept / "rank").write_text(rank)
(kept / "check points" / "last é").write_bytes(bytes(range(256)) * (int(sys.argv[1]) // 256))
(kept / "empty").touch()
(kept / "passwd").symlink_to("/etc/passwd")
(kept / "run").write_text("#!/bin/sh")
(kept / "run").chmod(0o755)
while not all(os.access(kept.parent / f"{other}.files" / "run", os.X_OK) for other in range(int(os.environ["WORLD_SIZE"]))):
    time.sleep(0.01)  # who fails ends the others
sys.exit(int(sys.argv[2]))
"""


def keep(api: Api, gpus: int = 1, size: int = 1024, code: int = 0, **more: Any) -> str:
    """The id of a job that has kept files and has ended."""
    job = api.submit(["python3", "-c", KEEP, str(size), str(code)], gpu_type="cpu", gpus=gpus, **more)
    api.wait(job)
    return job


def listing(cluster: Cluster, job: str, query: str = "") -> dict[str, Any]:
    found: dict[str, Any] = cluster.api.get(f"/v1/jobs/{job}/files{query}")
    return found


def paths(cluster: Cluster, job: str, query: str = "") -> list[str]:
    return [file["path"] for file in listing(cluster, job, query)["files"]]


def gpuctl(cluster: Cluster, *words: str | Path, code: int = 0) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}
    done = subprocess.run([str(GPUCTL), *map(str, words)], env=environment, capture_output=True, timeout=60)
    assert done.returncode == code, done.stderr
    return done


def test_what_each_rank_keeps_is_listed_whatever_became_of_the_job(cluster: Cluster) -> None:
    job = keep(cluster.api, gpus=2, code=3)
    found = listing(cluster, job)
    names = ["check points/last é", "empty", "rank", "run"]
    assert [file["path"] for file in found["files"]] == [f"{rank}/{name}" for rank in range(2) for name in names]
    assert [file["size"] for file in found["files"]] == [1024, 0, 1, 9] * 2
    assert [file["executable"] for file in found["files"]] == [False, False, False, True] * 2
    assert found["complete"] is True and found["left_out"] == {"files": 2, "bytes": 0} and found["next"] is None
    assert cluster.api.get(f"/v1/jobs/{job}")["state"] == "FAILED"


def test_pages_of_the_list_follow_each_other(cluster: Cluster) -> None:
    job = keep(cluster.api, gpus=2)
    whole, walked, query = paths(cluster, job), [], "?limit=3"
    for _ in range(10):
        page = listing(cluster, job, query)
        walked += [file["path"] for file in page["files"]]
        if page["next"] is None:
            break
        query = f"?limit=3&cursor={page['next'].replace(' ', '%20').replace('é', '%C3%A9')}"
    assert walked == whole and len(whole) == 8


def test_a_large_file_comes_whole_and_in_ranges(cluster: Cluster, tmp_path: Path) -> None:
    job = keep(cluster.api, size=BIG)
    eventually(lambda: listing(cluster, job)["complete"], "all files to be there")
    content = bytes(range(256)) * (BIG // 256)
    gpuctl(cluster, "cp", f"{job}:0/check points/last é", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content
    path = f"/v1/jobs/{job}/files/content?path=0/check%20points/last%20%C3%A9"
    status, headers, body = cluster.api.raw("GET", path, headers={"Range": "bytes=1000000-1000009"})
    assert status == 206 and body == content[1000000:1000010]
    assert headers["content-range"] == f"bytes 1000000-1000009/{len(content)}"
    assert cluster.api.raw("GET", path, headers={"Range": f"bytes={len(content)}-"})[0] == 416


def test_folders_are_copied_like_cp_does(cluster: Cluster, tmp_path: Path) -> None:
    job = keep(cluster.api, gpus=2)
    gpuctl(cluster, "cp", f"{job}:", tmp_path / "all")
    assert (tmp_path / "all/1/rank").read_text() == "1" and (tmp_path / "all/0/empty").read_bytes() == b""
    assert os.access(tmp_path / "all/0/run", os.X_OK) and not os.access(tmp_path / "all/0/rank", os.X_OK)
    gpuctl(cluster, "cp", f"{job}:1/check points", tmp_path / "new")
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["last é"]
    gpuctl(cluster, "cp", f"{job}:1/check points/", tmp_path / "all")
    assert (tmp_path / "all/check points/last é").stat().st_size == 1024
    assert gpuctl(cluster, "cp", f"{job}:1/rank", "-").stdout == b"1"
    lines = gpuctl(cluster, "ls", "-q", f"{job}:1").stdout.decode().splitlines()
    assert lines == ["1/check points/last é", "1/empty", "1/rank", "1/run"]


def test_wrong_names_get_an_answer_that_helps(cluster: Cluster, tmp_path: Path) -> None:
    job, other = keep(cluster.api), cluster.api.submit(["true"], gpu_type="cpu")
    cluster.api.wait(other)
    assert b"has kept nothing at 0/none" in gpuctl(cluster, "ls", f"{job}:0/none", code=3).stderr
    assert b"GPUCTL_OUTPUT_DIR" in gpuctl(cluster, "ls", other, code=3).stderr
    assert b"JOB:RANK/PATH" in gpuctl(cluster, "cp", job, tmp_path / "x", code=2).stderr
    assert b"only one file" in gpuctl(cluster, "cp", f"{job}:", "-", code=2).stderr
    for path, status in (("0/none", 404), ("7/rank", 404), ("0/../rank", 422), ("rank", 422), ("x/rank", 422), ("0/passwd", 404)):
        assert cluster.api.raw("GET", f"/v1/jobs/{job}/files/content?path={path}")[0] == status
    assert cluster.api.raw("GET", f"/v1/jobs/{job}/files/content")[0] == 422
    assert cluster.api.raw("GET", f"/v1/jobs/{job}/files?attempt=2")[0] == 422


def test_a_running_job_says_that_its_files_come_at_its_end(cluster: Cluster) -> None:
    job = cluster.api.submit(["sleep", "600"], gpu_type="cpu")
    cluster.wait_state(job, "RUNNING")
    assert listing(cluster, job)["complete"] is False
    assert b"has not ended" in gpuctl(cluster, "ls", job, code=5).stderr
    cluster.api.post(f"/v1/jobs/{job}/cancel", {})


def test_files_of_a_removed_job_are_removed(cluster: Cluster) -> None:
    job = keep(cluster.api)
    folder = cluster.folder / "controller" / "files" / job[:2]
    assert [file.name for file in folder.rglob("*.files")] == ["1.0.files"]
    gpuctl(cluster, "rm", job)
    eventually(lambda: not list(folder.rglob("*.files")), "the files to be removed")


def test_strangers_see_none_of_them(cluster: Cluster) -> None:
    ann, eve = cluster.user("ann"), cluster.user("eve")
    job = keep(ann)
    assert len(ann.get(f"/v1/jobs/{job}/files")["files"]) == 4
    for rest in ("files", "files/content?path=0/rank"):
        assert eve.raw("GET", f"/v1/jobs/{job}/{rest}")[0] == 404


def test_each_task_of_an_array_keeps_its_own(cluster: Cluster) -> None:
    array = cluster.api.submit(["sh", "-c", 'echo {task} >"$GPUCTL_OUTPUT_DIR/task"'], gpu_type="cpu", array={"tasks": 2})
    cluster.api.wait(array)
    for task in range(2):
        assert paths(cluster, f"{array}.{task}") == ["0/task"]
        assert cluster.api.raw("GET", f"/v1/jobs/{array}.{task}/files/content?path=0/task")[2] == f"{task}\n".encode()
    assert cluster.api.raw("GET", f"/v1/jobs/{array}/files")[0] == 422
    assert b"name a task" in gpuctl(cluster, "ls", array, code=2).stderr


def test_each_attempt_keeps_its_own(cluster: Cluster) -> None:
    command = 'echo "$GPUCTL_ATTEMPT" >"$GPUCTL_OUTPUT_DIR/attempt"; test "$GPUCTL_ATTEMPT" = 2'
    job = cluster.api.submit(["sh", "-c", command], gpu_type="cpu", retries=1)
    cluster.api.wait(job)
    for attempt, query in (("1", "&attempt=1"), ("2", "")):
        assert cluster.api.raw("GET", f"/v1/jobs/{job}/files/content?path=0/attempt{query}")[2].decode() == f"{attempt}\n"


def test_an_agent_that_is_killed_while_it_sends_goes_on(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    size = 200_000_000
    job = cluster.api.submit(["sh", "-c", f'head -c {size} /dev/zero | tr "\\0" x >"$GPUCTL_OUTPUT_DIR/big"'], gpu_type="cpu")
    stored = cluster.folder / "controller" / "files" / job[:2] / job / "1.0.files"
    eventually(lambda: stored.exists() and stored.stat().st_size > 1_000_000, "the first bytes")
    cluster.agents[0].kill()
    assert not listing(cluster, job)["complete"]
    cluster.agents[0].start()
    eventually(lambda: listing(cluster, job)["complete"], "all files to be there")
    digest = hashlib.sha256(cluster.api.raw("GET", f"/v1/jobs/{job}/files/content?path=0/big")[2]).hexdigest()
    assert digest == hashlib.sha256(b"x" * size).hexdigest()
