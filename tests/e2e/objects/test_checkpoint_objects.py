# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of jobs that have ended go to the object store, and come back when a job goes on from them."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Api, Cluster, eventually
from rclone_server import S3Server
from recorder import EXPIRED, Recorded
from test_object_store import BYTES, gone, local, settled, status

SIZE = 9_000_000  # several pieces

# Says what it begins with. An attempt that begins with nothing makes a checkpoint.
TRAIN = f"""
import hashlib, os
from pathlib import Path
state = Path(os.environ["GPUCTL_CHECKPOINT_DIR"]) / "state"
print("begins with", hashlib.sha256(state.read_bytes()).hexdigest() if state.exists() else "nothing", flush=True)
if not state.exists():
    state.write_bytes(os.urandom({SIZE}))
    print("made", hashlib.sha256(state.read_bytes()).hexdigest(), flush=True)
raise SystemExit(3)
"""


def train(cluster: Cluster) -> tuple[str, str]:
    """A job that has failed with a checkpoint, and the hash of its state."""
    job = cluster.api.submit(["python3", "-c", TRAIN], gpu_type="cpu")
    assert cluster.api.wait(job)["state"] == "FAILED"
    return job, cluster.api.log(job).split()[-1]


def shown(cluster: Cluster, job: str) -> Any:
    return cluster.api.get(f"/v1/jobs/{job}/checkpoint")["checkpoint"]


def pieces(s3: S3Server, job: str) -> set[str]:
    return s3.keys(f"checkpoints/{job}/pieces/")


def pieces_here(cluster: Cluster, job: str) -> list[Path]:
    return local(cluster, f"checkpoints/{job}/pieces")


def await_move(cluster: Cluster, job: str) -> None:
    eventually(lambda: not pieces_here(cluster, job), "the pieces to leave the disk")


def retry(cluster: Cluster, job: str) -> str:
    return str(cluster.api.post(f"/v1/jobs/{job}/retry")["id"])


def begun(cluster: Cluster, job: str) -> str:
    assert cluster.api.wait(job)["state"] == "FAILED", cluster.api.job(job)
    return str(cluster.api.log(job)).split()[2]


def test_a_retry_goes_on_from_a_checkpoint_that_only_the_store_has(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(1, controller=s3.options("--object-store-after", "1s"))
    job, state = train(cluster)
    before = shown(cluster, job)
    assert before["bytes"] == SIZE and before["kind"] == "end"
    await_move(cluster, job)
    assert {hashlib.sha256(s3.file(key).read_bytes()).hexdigest() for key in pieces(s3, job)} == {key[-64:] for key in pieces(s3, job)}
    assert sum(s3.file(key).stat().st_size for key in pieces(s3, job)) == SIZE
    assert len(s3.keys(f"checkpoints/{job}/")) == len(pieces(s3, job)) + 1  # the manifest
    assert shown(cluster, job) == before
    assert begun(cluster, retry(cluster, job)) == state
    assert shown(cluster, job) == before
    await_move(cluster, job)  # again, without sending what the store has
    assert begun(cluster, retry(cluster, job)) == state


def test_the_checkpoint_of_a_job_that_runs_or_waits_stays(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(1, 1, controller=s3.options("--object-store-after", "1s"), agent=["--checkpoint-still", "1"])
    job = cluster.api.submit(["sh", "-c", 'echo x > "$GPUCTL_CHECKPOINT_DIR/x"; exec sleep 1000'], gpu_type="cpu")
    eventually(lambda: shown(cluster, job), "a checkpoint")
    other, _ = train(cluster)
    await_move(cluster, other)
    assert pieces_here(cluster, job) and not pieces(s3, job)
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    await_move(cluster, job)
    assert pieces(s3, job)


def test_a_retry_waits_for_a_store_that_is_away(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(1, controller=s3.options("--object-store-after", "1s"))
    job, state = train(cluster)
    before = shown(cluster, job)
    await_move(cluster, job)
    s3.stop()
    assert shown(cluster, job) == before  # this needs no store
    again = retry(cluster, job)
    eventually(lambda: status(cluster)["away_since"] is not None, "the controller to look for the store")
    s3.start()
    assert begun(cluster, again) == state


def test_a_piece_that_the_store_has_changed_is_not_handed_out(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(1, controller=s3.options("--object-store-after", "1s"))
    job, _ = train(cluster)
    await_move(cluster, job)
    s3.stop()
    damaged = s3.file(min(pieces(s3, job)))
    damaged.write_bytes(bytes(damaged.stat().st_size))
    s3.start()
    again = retry(cluster, job)
    ended = cluster.api.wait(again)
    assert ended["state"] == "FAILED" and "has not the bytes that were stored" in str(ended)
    assert "begins with" not in cluster.api.log(again)
    assert not pieces_here(cluster, job)


def test_what_a_node_sends_after_the_pieces_have_gone_is_added_to_them(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(1, controller=s3.options("--object-store-after", "1s"))
    job, state = train(cluster)
    stored = len(pieces_here(cluster, job))
    await_move(cluster, job)
    epoch = cluster.api.get(f"/v1/jobs/{job}/attempts")["attempts"][0]["epoch"]
    node = Api(cluster.url, (cluster.folder / "node.token").read_text().strip())
    late = os.urandom(1000)
    name = hashlib.sha256(late).hexdigest()

    def send() -> int:
        code, _, body = node.raw("POST", f"/v1/agent/checkpoints/pieces?node=node0&epoch={epoch}&sha256={name}", late, BYTES)
        assert code in (200, 503), body
        return code

    assert send() == 503
    eventually(lambda: send() == 200, "the late piece to be taken")
    eventually(lambda: f"checkpoints/{job}/pieces/{name}" in pieces(s3, job), "the late piece in the store")
    await_move(cluster, job)
    assert len(pieces(s3, job)) == stored + 1
    assert begun(cluster, retry(cluster, job)) == state


def test_retention_removes_checkpoints_from_the_store(make_cluster: Callable[..., Cluster], s3: S3Server) -> None:
    cluster = make_cluster(1, controller=s3.options("--object-store-after", "1s"))
    job, _ = train(cluster)
    await_move(cluster, job)
    orphan = f"checkpoints/{'a' * 16}/pieces/{'b' * 64}"
    s3.stop()
    s3.file(orphan).parent.mkdir(parents=True)
    s3.file(orphan).write_bytes(b"x")
    os.utime(s3.file(orphan), (1_500_000_000, 1_500_000_000))
    s3.start()
    eventually(lambda: status(cluster)["away_since"] is None, "the store to be back")
    cluster.api.call("DELETE", f"/v1/jobs/{job}")
    eventually(lambda: s3.keys("checkpoints/") <= {orphan}, "the objects of the job to go")
    cluster.api.post("/v1/retention")
    assert not s3.keys("checkpoints/")
    assert not (cluster.folder / "controller" / "checkpoints" / job).exists()


@pytest.mark.parametrize("lost", [False, True])
def test_checkpoints_move_back_to_files_even_if_their_folder_is_lost(
    make_cluster: Callable[..., Cluster], s3: S3Server, lost: bool
) -> None:
    cluster = make_cluster(1, controller=s3.options("--object-store-after", "1s"))
    job, state = train(cluster)
    before = shown(cluster, job)
    await_move(cluster, job)
    if lost:
        cluster.controller.kill(15)
        shutil.rmtree(cluster.folder / "controller" / "checkpoints")
        cluster.start_controller()
        assert shown(cluster, job) is None
    cluster.api.post("/v1/object-store", {"to": "files"})
    eventually(lambda: not s3.keys(), "an empty store")
    settled(cluster)
    s3.stop()
    after = shown(cluster, job)
    assert {**after, "taken_at": None} == {**before, "taken_at": None}
    assert begun(cluster, retry(cluster, job)) == state


def test_a_recall_that_is_killed_is_made_again(make_recorded: Callable[..., Recorded]) -> None:
    recorded = make_recorded(1, "--object-store-after", "1s")
    cluster, store = recorded.cluster, recorded.store
    job, state = train(cluster)
    await_move(cluster, job)
    store.instead = [EXPIRED] * 2  # the node has to ask the controller
    recorded.s3.pause(True)
    again = retry(cluster, job)
    arriving = cluster.folder / "controller" / "checkpoints" / "arriving"
    eventually(lambda: store.asked("GET ", f"prefix=some%2Fprefix%2Fcheckpoints%2F{job}"), "the controller to bring the pieces back")
    cluster.controller.kill(9)
    (arriving / "left" / "over").mkdir(parents=True)
    recorded.s3.pause(False)
    cluster.start_controller()
    assert begun(cluster, again) == state
    assert not (arriving / "left").exists()
    gone(cluster, "logs")
