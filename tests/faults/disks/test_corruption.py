# SPDX-License-Identifier: Apache-2.0
"""Damaged files under the real programs: a database or log that is not as it was written is refused with what to do about it, at the start
and while serving; damaged blobs never reach a job, and damaged output does no harm beyond itself. The many kinds of damage to databases
are corruption.c's.
"""

from __future__ import annotations

import hashlib
import http.client
import random
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Cluster, Problem, eventually
from slowness import patient

PAGE = 4096


def run_jobs(cluster: Cluster, count: int) -> dict[str, str]:
    """Jobs that have ended, with their output."""
    jobs = {cluster.api.submit(["echo", f"job {number}"]): f"job {number}\n" for number in range(count)}
    for job, output in jobs.items():
        assert cluster.api.wait(job)["state"] == "SUCCEEDED"
        assert cluster.api.log(job) == output
    return jobs


def refused(cluster: Cluster) -> str:
    """What the controller says, which does not start, or ends by itself."""
    done = subprocess.run(cluster.controller.arguments, capture_output=True, text=True, timeout=patient(60), check=False)
    assert done.returncode == 1, done
    return done.stderr


def flip(path: Path, at: int) -> None:
    """Turn one bit of the file around."""
    content = bytearray(path.read_bytes())
    content[at] ^= 0x10
    path.write_bytes(content)


def free_pages(database: bytes) -> set[int]:
    """Return the pages, from 0, that hold nothing: the leaves of SQLite's list of free pages."""
    leaves: set[int] = set()
    (trunk,) = struct.unpack_from(">I", database, 32)
    while trunk != 0:
        trunk, count, *numbers = struct.unpack_from(f">{PAGE // 4 - 2}I", database, (trunk - 1) * PAGE)
        leaves.update(number - 1 for number in numbers[:count])
    return leaves


def test_a_database_with_one_bit_turned_ends_the_controller_and_is_then_refused(
    make_cluster: Callable[..., Cluster], volume: Callable[[int, int], int]
) -> None:
    """Nobody asks for what the page has: the scrub finds it, and from then on each start does."""
    cluster = make_cluster(1)
    jobs = run_jobs(cluster, 5)
    cluster.controller.kill(15)
    files = {path: path.read_bytes() for path in (cluster.folder / "controller").glob("gpuctl.db*")}
    database = cluster.folder / "controller" / "gpuctl.db"
    whole = files[database]
    used = sorted(set(range(len(whole) // PAGE)) - free_pages(whole))
    chance = random.Random(1)
    for _ in range(volume(5, 200)):
        flip(database, chance.choice(used) * PAGE + chance.randrange(PAGE))
        for start in ("first", "second"):
            said = refused(cluster)
            assert "damaged" in said and "remedy: restore a backup: gpuctl admin restore" in said, said
            assert start == "first" or "controller serve" not in said, said
        for path, content in files.items():
            path.write_bytes(content)
    cluster.start_controller()
    for job, output in jobs.items():
        assert cluster.api.job(job)["state"] == "SUCCEEDED"
        assert cluster.api.log(job) == output


def test_a_log_of_a_killed_controller_with_one_bit_turned_is_refused(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    jobs = run_jobs(cluster, 5)
    cluster.controller.kill()
    log = cluster.folder / "controller" / "gpuctl.db-wal"
    whole = log.read_bytes()
    flip(log, 32 + (24 + PAGE) * 3 + 1000)
    said = refused(cluster)
    assert "gpuctl.db-wal is damaged" in said and "gpuctl admin restore" in said, said
    log.write_bytes(whole)
    cluster.start_controller()
    assert {job["id"] for job in cluster.api.get("/v1/jobs")["jobs"]} == set(jobs)


def test_damage_that_is_met_while_serving_ends_the_controller(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    jobs = run_jobs(cluster, 20)
    cluster.controller.kill(15)
    cluster.start_controller()  # with nothing in its caches, and all in the database
    database = cluster.folder / "controller" / "gpuctl.db"
    with database.open("r+b") as file:
        pages = database.stat().st_size // PAGE
        for page in range(1, pages):
            file.seek(page * PAGE + 2000)
            file.write(b"damage")

    def read() -> bool:
        for job in jobs:
            try:
                cluster.api.get(f"/v1/jobs/{job}/events")
            except Problem as problem:
                assert (problem.status, problem.code) == (503, "damaged"), problem
                assert "gpuctl admin restore" in problem.body["hint"]
            except (OSError, http.client.HTTPException):
                return True
        return not cluster.controller.alive()

    eventually(read, "the controller to end")
    eventually(lambda: not cluster.controller.alive(), "the controller to end")
    assert cluster.controller.process is not None and cluster.controller.process.returncode == 1
    assert "the database is damaged" in cluster.controller.said()


def test_a_damaged_blob_reaches_no_job(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    content = bytes(range(256)) * 1024
    name = hashlib.sha256(content).hexdigest()
    status, _, reply = cluster.api.raw("PUT", f"/v1/blobs/{name}", content)
    assert status == 201, reply
    stored = cluster.folder / "controller" / "blobs" / name
    flip(stored, 100_000)
    job = cluster.api.submit(["sh", "-c", "echo ran"], files=[{"path": "data", "blob": name}])

    eventually(lambda: "arrived with another content" in cluster.agents[0].said(), "the node to see that the blob is another one")
    view = cluster.api.job(job)
    assert (view["attempt"], cluster.api.log(job)) == (0, ""), view
    cluster.api.post(f"/v1/jobs/{job}/cancel")


def test_damaged_output_does_no_harm_beyond_itself(make_cluster: Callable[..., Cluster], volume: Callable[[int, int], int]) -> None:
    cluster = make_cluster(1)
    jobs = run_jobs(cluster, 2)
    spoiled = next(iter(jobs))
    folder = next((cluster.folder / "controller" / "logs").glob(f"*/{spoiled}"))
    files = {path: path.read_bytes() for path in folder.iterdir()}
    chance = random.Random(1)
    for _ in range(volume(60, 5000)):
        path = chance.choice(list(files))
        content = bytearray(files[path])
        for _ in range(chance.randrange(1, 5)):
            content[chance.randrange(len(content)) : chance.randrange(len(content)) + 1] = chance.randbytes(chance.randrange(1, 9))
        path.write_bytes(content[: chance.randrange(len(content) + 1)] if chance.random() < 0.3 else content)
        for query in ("", "?tail=3", "?follow=0"):
            headers = {"Accept": "text/event-stream"} if query == "?follow=0" else {}
            status, _, _ = cluster.api.raw("GET", f"/v1/jobs/{spoiled}/logs{query}", None, headers)
            assert status in (200, 404, 416, 500), status
        path.write_bytes(files[path])
        assert cluster.controller.alive()
    for job, output in jobs.items():
        assert cluster.api.log(job) == output


@pytest.mark.parametrize(
    "lost", ["gpuctl.db", "gpuctl.db and its log", "gpuctl.db and its lock", "gpuctl.db emptied", "mlflow.db", "mlflow.db emptied"]
)
def test_a_database_that_is_gone_is_missed(make_cluster: Callable[..., Cluster], lost: str) -> None:
    """A14: a controller that was killed, and whose database was deleted, began anew with an empty one and told nobody."""
    cluster = make_cluster()
    cluster.controller.kill()
    state = cluster.folder / "controller"
    database = state / lost.split()[0]
    whole = database.read_bytes()
    database.unlink()
    if lost.endswith("emptied"):
        database.touch(0o600)
    elif "and" in lost:
        (state / ("gpuctl.db-wal" if lost.endswith("log") else "gpuctl.db.lock")).unlink()
    said = refused(cluster)
    assert f"{database} is " in said or "the file is empty" in said, said
    assert "gpuctl admin restore" in said, said
    if "and" not in lost:
        database.write_bytes(whole)
        cluster.start_controller()
        assert cluster.api.get("/v1/jobs")["jobs"] == []


def test_folders_that_are_gone_are_told(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    cluster.controller.kill()
    for name in ("blobs", "logs"):
        shutil.rmtree(cluster.folder / "controller" / name)
    cluster.start_controller()
    assert cluster.controller.said().count("warning folder missing") == 2
