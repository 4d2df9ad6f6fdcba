# SPDX-License-Identifier: Apache-2.0
"""Bytes of users go to the object store and come back, as if they had always been files of the controller."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Api, Cluster, Problem, eventually, run_gpuctl
from rclone_server import S3Server

FILES = "/api/2.0/mlflow-artifacts/artifacts"
BYTES = {"Content-Type": "application/octet-stream"}


def status(cluster: Cluster) -> Any:
    return cluster.api.get("/v1/object-store")


def settled(cluster: Cluster) -> None:
    eventually(lambda: status(cluster)["complete"], "nothing to wait for the object store")


def fetch(cluster: Cluster, path: str) -> bytes:
    code, _, body = cluster.api.raw("GET", path)
    assert code == 200, body
    return body


def local(cluster: Cluster, *folders: str) -> list[Path]:
    """Files that hold bytes on the controller's disk: placeholders and marks do not."""
    found = []
    for folder in folders:
        for above, _, names in os.walk(cluster.folder / "controller" / folder):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    if os.stat(os.path.join(above, name)).st_blocks > 0:
                        found.append(Path(above, name))
    return found


def gone(cluster: Cluster, *folders: str) -> None:
    eventually(lambda: not local(cluster, *folders), f"no bytes in {folders}")


def test_a_payload_goes_to_the_store_and_comes_back_when_it_is_asked_for(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(controller=s3.options("--object-store-after", "1s"))
    content = os.urandom(300_000)
    name = cluster.api.blob(content)
    eventually(lambda: s3.keys("blobs/") == {f"blobs/{name}"}, "the blob in the store")
    assert s3.file(f"blobs/{name}").read_bytes() == content
    gone(cluster, "blobs")
    assert fetch(cluster, f"/v1/blobs/{name}") == content
    assert status(cluster)["away_since"] is None and status(cluster)["moved_files"] >= 1
    with pytest.raises(Problem, match="there is no blob"):
        cluster.api.get(f"/v1/blobs/{'0' * 64}")


def test_small_payloads_stay_in_the_database(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(controller=s3.options())
    name = cluster.api.blob(b"small")
    settled(cluster)
    assert s3.keys() == set() and fetch(cluster, f"/v1/blobs/{name}") == b"small"


def test_a_large_payload_goes_in_parts(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(controller=s3.options("--object-store-after", "1s"))
    content = os.urandom(1 << 20) * 37 + b"end"
    name = cluster.api.blob(content)
    gone(cluster, "blobs")
    assert hashlib.sha256(s3.file(f"blobs/{name}").read_bytes()).hexdigest() == name
    assert fetch(cluster, f"/v1/blobs/{name}") == content


def test_a_client_that_follows_redirects_is_sent_to_the_store(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(controller=s3.options())
    content = os.urandom(100_000)
    name = cluster.api.blob(content)
    eventually(lambda: cluster.api.raw("GET", f"/v1/blobs/{name}?redirect=1")[0] == 307, "a redirect")
    _, headers, _ = cluster.api.raw("GET", f"/v1/blobs/{name}?redirect=1")
    assert headers["cache-control"] == "no-store"
    with urllib.request.urlopen(headers["location"], timeout=30) as reply:  # without any credentials
        assert reply.read() == content
    assert fetch(cluster, f"/v1/blobs/{name}") == content
    code, _, body = cluster.user("eve").raw("GET", f"/v1/blobs/{name}?redirect=1")
    assert code == 404, body


def test_a_job_runs_from_a_payload_that_only_the_store_has(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(1, controller=s3.options("--object-store-after", "1s"))
    folder = cluster.folder / "work"
    folder.mkdir()
    (folder / "big").write_bytes(os.urandom(500_000))
    environment = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}
    command = ["submit", "--hold", "--bundle", str(folder), "--", "sh", "-c", "wc -c < big"]
    said = run_gpuctl(*command, env=environment)
    assert said.returncode == 0, said.stderr
    job = said.stdout.split()[-1]
    gone(cluster, "blobs")
    cluster.api.post(f"/v1/jobs/{job}/release")
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert cluster.api.log(job).strip() == "500000"


def test_output_and_kept_files_of_ended_jobs_go_and_come_back(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(1, controller=s3.options("--object-store-after", "1s"))
    script = "for i in 1 2 3; do echo line $i; done; echo oops >&2; "
    script += "head -c 200000 /dev/zero > $GPUCTL_OUTPUT_DIR/model; echo x > $GPUCTL_OUTPUT_DIR/y"
    job = cluster.api.submit(["sh", "-c", script])
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    eventually(lambda: s3.keys(f"logs/{job}/") and s3.keys(f"files/{job}/"), "output in the store")
    gone(cluster, "logs", "files")
    assert cluster.api.log(job) == "line 1\nline 2\nline 3\n"
    assert cluster.api.log(job, stream="stderr") == "oops\n"
    gone(cluster, "logs")
    matches = cluster.api.get(f"/v1/jobs/{job}/logs/search?q=line")["matches"]
    assert len(matches) == 3
    gone(cluster, "logs")
    events = [event["data"] for event in cluster.api.stream(f"/v1/jobs/{job}/logs") if "line 2" in event.get("data", "")]
    assert events
    listed = cluster.api.get(f"/v1/jobs/{job}/files")
    assert [file["path"] for file in listed["files"]] == ["0/model", "0/y"] and listed["complete"]
    gone(cluster, "files")
    assert fetch(cluster, f"/v1/jobs/{job}/files/content?path=0/model") == bytes(200_000)


def test_output_that_comes_late_is_added_to_what_has_gone(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(1, controller=s3.options("--object-store-after", "1s"))
    job = cluster.api.submit(["echo", "hello"])
    cluster.api.wait(job)
    gone(cluster, "logs")
    epoch = cluster.api.get(f"/v1/jobs/{job}/attempts")["attempts"][0]["epoch"]
    node = Api(cluster.url, (cluster.folder / "node.token").read_text().strip())

    def send() -> int:
        code, _, _ = node.raw("POST", f"/v1/agent/logs?node=node0&epoch={epoch}&rank=0&stream=stdout&offset=6", b"late\n", BYTES)
        assert code in (200, 503)
        return code

    assert send() == 503  # the node keeps it until the rest is back
    eventually(lambda: send() == 200, "the late output to be taken")
    gone(cluster, "logs")
    assert cluster.api.log(job) == "hello\nlate\n"


def test_artifacts_are_listed_fetched_replaced_and_deleted_while_they_are_in_the_store(
    make_cluster: Callable[..., Cluster], s3: S3Server
) -> None:
    cluster = make_cluster(controller=s3.options("--object-store-after", "1s"))
    content = os.urandom(150_000)
    for path in ("deep/er/one two & 50% ü.bin", "deep/other"):
        code, _, body = cluster.api.raw("PUT", f"{FILES}/{urllib.parse.quote(path)}", content, BYTES)
        assert code == 200, body
    gone(cluster, "artifacts")
    assert s3.keys("artifacts/") == {"artifacts/deep/er/one two & 50% ü.bin", "artifacts/deep/other"}
    s3.stop()  # lists need no store
    listed = {entry["path"]: entry.get("file_size") for entry in cluster.api.get(f"{FILES}?path=deep")["files"]}
    assert listed == {"er": None, "other": 150_000}
    s3.start()
    eventually(lambda: status(cluster)["away_since"] is None, "the store to be back")
    quoted = urllib.parse.quote("deep/er/one two & 50% ü.bin")
    assert fetch(cluster, f"{FILES}/{quoted}") == content
    code, _, _ = cluster.api.raw("PUT", f"{FILES}/deep/other", b"new" * 50_000, BYTES)
    assert code == 200
    gone(cluster, "artifacts")
    assert fetch(cluster, f"{FILES}/deep/other") == b"new" * 50_000
    cluster.api.call("DELETE", f"{FILES}/deep/other")
    assert s3.keys("artifacts/") == {"artifacts/deep/er/one two & 50% ü.bin"}
    cluster.api.call("DELETE", f"{FILES}/deep")
    assert s3.keys("artifacts/") == set()


def test_an_artifact_that_was_replaced_and_deleted_at_once_leaves_nothing_in_the_store(
    make_cluster: Callable[..., Cluster], s3: S3Server
) -> None:
    cluster = make_cluster(controller=s3.options())
    paths = [f"model-{i}" for i in range(8)]
    for path in paths:
        assert cluster.api.raw("PUT", f"{FILES}/{path}", b"first" * 20_000, BYTES)[0] == 200
    eventually(lambda: len(s3.keys("artifacts/")) == len(paths), "the artifacts in the store")
    settled(cluster)
    for path in paths:  # before the second version goes there, too
        assert cluster.api.raw("PUT", f"{FILES}/{path}", b"second" * 20_000, BYTES)[0] == 200
        cluster.api.call("DELETE", f"{FILES}/{path}")
    assert s3.keys("artifacts/") == set()


def test_retention_removes_objects_with_their_jobs(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(1, controller=s3.options("--object-store-after", "1s"))
    job = cluster.api.submit(["sh", "-c", "echo hello; echo kept > $GPUCTL_OUTPUT_DIR/x"])
    cluster.api.wait(job)
    gone(cluster, "logs", "files")
    assert s3.keys(f"logs/{job}/") and s3.keys(f"files/{job}/")
    cluster.api.call("DELETE", f"/v1/jobs/{job}")
    eventually(lambda: not s3.keys("logs/") and not s3.keys("files/"), "the objects to go")


def test_objects_that_nothing_names_are_found_and_removed(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(controller=s3.options("--object-store-after", "1s"))
    name = cluster.api.blob(os.urandom(100_000))
    gone(cluster, "blobs")
    s3.stop()
    old, young, foreign = f"blobs/{'a' * 64}", f"blobs/{'b' * 64}", "blobs/notes.txt"
    orphan = f"logs/{'a' * 16}/1.index"
    for key in (old, young, foreign, orphan):
        s3.file(key).parent.mkdir(parents=True, exist_ok=True)
        s3.file(key).write_bytes(b"x" * 100)
    for key in (old, foreign, orphan, f"blobs/{name}"):
        os.utime(s3.file(key), (1_500_000_000, 1_500_000_000))
    s3.start()
    cluster.api.post("/v1/retention", {"dry_run": True})
    assert s3.keys() == {old, young, foreign, orphan, f"blobs/{name}"}
    cluster.api.post("/v1/retention")
    assert s3.keys() == {young, foreign, f"blobs/{name}"}


def test_everything_moves_to_the_store_and_back_to_files_while_the_controller_serves(
    make_cluster: Callable[..., Cluster], s3: S3Server
) -> None:
    cluster = make_cluster(1)
    content = os.urandom(200_000)
    name = cluster.api.blob(content)
    job = cluster.api.submit(["sh", "-c", "echo hello"])
    cluster.api.wait(job)
    cluster.api.raw("PUT", f"{FILES}/a/b", content, BYTES)
    assert status(cluster)["kind"] == "files"
    with pytest.raises(Problem, match="no object store"):
        cluster.api.post("/v1/object-store", {"to": "s3"})
    cluster.controller.kill(15)
    cluster.controller_arguments = s3.options("--object-store-after", "1s")
    cluster.start_controller()
    gone(cluster, "blobs", "logs", "artifacts")

    def all_is_there() -> None:
        assert fetch(cluster, f"/v1/blobs/{name}") == content
        assert fetch(cluster, f"{FILES}/a/b") == content
        assert cluster.api.log(job) == "hello\n"

    all_is_there()
    environment = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}
    said = run_gpuctl("admin", "store", "migrate", "--to", "files", env=environment)
    assert said.returncode == 0, said.stderr
    eventually(lambda: not s3.keys() and status(cluster)["complete"], "an empty store")
    assert "files" in run_gpuctl("admin", "store", "status", env=environment).stdout
    all_is_there()
    cluster.controller.kill(9)
    cluster.start_controller()
    assert status(cluster)["to"] == "files"
    all_is_there()
    said = run_gpuctl("admin", "store", "migrate", "--to", "s3", env=environment)
    assert said.returncode == 0, said.stderr
    gone(cluster, "blobs", "logs", "artifacts")
    cluster.controller.kill(15)
    cluster.controller_arguments = []
    with pytest.raises(AssertionError, match="--object-store is missing"):
        cluster.start_controller()
    cluster.controller_arguments = s3.options("--object-store-after", "1s")
    cluster.start_controller()
    cluster.api.post("/v1/object-store", {"to": "files"})
    eventually(lambda: (cluster.folder / "controller" / "object-store").read_text() == "empty", "all to be back")
    eventually(lambda: not s3.keys() and status(cluster)["complete"], "an empty store")
    cluster.controller.kill(15)
    s3.stop()
    cluster.controller_arguments = []
    cluster.start_controller()
    all_is_there()


def test_a_move_back_is_complete_when_the_store_can_be_left(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(controller=s3.options("--object-store-after", "1s"))
    contents = [os.urandom(100_000) for _ in range(3)]
    names = [cluster.api.blob(content) for content in contents]
    gone(cluster, "blobs")
    cluster.api.post("/v1/object-store", {"to": "files"})
    settled(cluster)
    cluster.controller.kill(15)
    s3.stop()
    cluster.controller_arguments = []
    cluster.start_controller()
    assert [fetch(cluster, f"/v1/blobs/{name}") for name in names] == contents


def test_an_object_goes_when_its_file_is_on_disk_as_no_longer_stored(
    make_cluster: Callable[..., Cluster], s3: S3Server, tmp_path: Path
) -> None:
    """Else a power cut leaves a file that counts as stored, which the next move to the store removes."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed: deploy/dependencies --tests")
    cluster = make_cluster(1, controller=s3.options("--object-store-after", "1s"))
    name = cluster.api.blob(os.urandom(200_000))
    job = cluster.api.submit(["sh", "-c", "echo hello"])
    cluster.api.wait(job)
    cluster.api.raw("PUT", f"{FILES}/a/b", os.urandom(200_000), BYTES)
    gone(cluster, "blobs", "logs", "artifacts")
    cluster.controller.kill(15)
    cluster.controller_arguments = s3.options("--object-store-after", "600s")
    cluster.start_controller()
    assert len(fetch(cluster, f"/v1/blobs/{name}")) == len(fetch(cluster, f"{FILES}/a/b")) == 200_000  # they are here and there
    assert cluster.api.log(job) == "hello\n"
    calls = tmp_path / "calls"
    assert cluster.controller.process is not None
    pid = str(cluster.controller.process.pid)
    words = ["strace", "-f", "-y", "-s", "200", "-o", str(calls), "-e", "trace=fchmod,fsync,unlink,sendto", "-p", pid]
    tracer = subprocess.Popen(words, stderr=subprocess.PIPE)
    assert tracer.stderr is not None
    if b"attached" not in (said := tracer.stderr.readline()):
        pytest.skip(f"strace cannot attach here: {said!r}")
    cluster.api.post("/v1/object-store", {"to": "files"})
    eventually(lambda: not s3.keys(), "an empty store")
    tracer.send_signal(signal.SIGINT)
    tracer.wait(60)
    lines = calls.read_text().splitlines()

    def first(call: str, what: str) -> int:
        return next(i for i, line in enumerate(lines) if call in line and what in line)

    for path, key in ((f"blobs/{name}", f"blobs/{name}"), ("artifacts/kept/a/b", "artifacts/a/b")):
        assert first("fchmod(", f"{path}>") < first("fsync(", f"{path}>") < first("DELETE", key), lines
    assert first("unlink(", f"{job}/stored") < first("fsync(", f"{job}>") < first("DELETE", f"logs/{job}"), lines


def test_an_object_that_is_damaged_holds_up_no_other_on_its_way_back(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(controller=s3.options("--object-store-after", "1s"))
    names = sorted(cluster.api.blob(os.urandom(100_000)) for _ in range(3))
    gone(cluster, "blobs")
    damaged = s3.file(f"blobs/{names[0]}")
    good = damaged.read_bytes()
    damaged.write_bytes(b"x" * 100_000)
    cluster.api.post("/v1/object-store", {"to": "files"})
    eventually(lambda: s3.keys() == {f"blobs/{names[0]}"}, "the others to be back")
    eventually(lambda: names[0] in (status(cluster)["problem"] or ""), "the problem to be said")
    assert not status(cluster)["complete"]
    damaged.write_bytes(good)
    cluster.api.post("/v1/object-store", {"to": "files"})
    settled(cluster)
    assert not s3.keys() and fetch(cluster, f"/v1/blobs/{names[0]}") == good
