# SPDX-License-Identifier: Apache-2.0
"""Disks that are full, of the controller and of nodes: what was acknowledged stays, what ends work goes on, what adds to it is refused
with a reason, and with room again everything goes on by itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import PYTHON, Api, Cluster, Problem, eventually
from slowness import patient
from small_disk import MIB, SmallDisk, small_disk

#: Of these a quarter is the controller's margin.
DISK_MIB = 96
MARGIN = DISK_MIB * MIB // 4
RECOVERY_S = patient(5.0)
#: Numbered lines, some MiB a second, until it is told to end; then so many more.
FLOOD = """
import os, sys, time
number, more = 0, int(sys.argv[2])
while more > 0:
    sys.stdout.write(f"{number:07d} " + "x" * 119 + "\\n")
    number += 1
    if number % 256 == 0:
        sys.stdout.flush()
        time.sleep(0.02)
    if os.path.exists(sys.argv[1]):
        more -= 1
"""


#: Waits to be told to begin, says one line, logs one metric, waits to be told to end; then once more, and more than fits where the first
#: line is.
ENDER = """
import json, os, socket, sys, time
def tell(step, word):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as talk:
        talk.connect(os.environ["GPUCTL_SOCKET"])
        talk.send(json.dumps({"metric": "loss", "value": step, "step": step, "rank": 0, "time": time.time()}).encode() + b"\\n")
    print(word, flush=True)
def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.05)
wait_for(sys.argv[1])
tell(1, "first")
wait_for(sys.argv[2])
tell(2, "last" * 3000)
"""

#: Before output fills the disk for good.
CYCLES_A_DISK = 5


@contextlib.contextmanager
def small(where: str, mib: int, slots: int = 3) -> Iterator[tuple[Cluster, SmallDisk]]:
    """A cluster of one node; the state of the controller or of the node is on a small disk.

    Its folder has a short name: that of the socket of a rank must fit into 107 bytes.
    """
    with tempfile.TemporaryDirectory(prefix="full-") as name, small_disk(Path(name) / where, mib) as disk:
        cluster = Cluster(Path(name), [slots])
        try:
            yield cluster.start(), disk
        finally:
            disk.make_room()
            cluster.stop()


def refusal(call: Callable[[], object]) -> Problem:
    """The problem that the call is refused with."""
    with pytest.raises(Problem) as caught:
        call()
    return caught.value


def refused(api: Api) -> Problem | None:
    """The problem that a submission is refused with; None: it is taken."""
    try:
        api.submit(["true"], gpus=3)
    except Problem as problem:
        return problem
    return None


class Cycle:
    """One time that the disk fills up under a working controller."""

    def __init__(self, cluster: Cluster, disk: SmallDisk, folder: Path):
        self.cluster, self.disk, self.api = cluster, disk, cluster.api
        self.flood_end, self.ender_end, self.late_begin = folder / "flood.end", folder / "ender.end", folder / "late.begin"
        self.told = cluster.controller.said().count("disk full")

    def start(self) -> None:
        """Jobs that run, one that waits."""
        for told in (self.flood_end, self.ender_end, self.late_begin):
            told.unlink(missing_ok=True)
        self.flood = self.api.submit([PYTHON, "-c", FLOOD, str(self.flood_end), "1"])
        self.ender = self.api.submit([PYTHON, "-c", ENDER, "/", str(self.ender_end)])
        self.late = self.api.submit([PYTHON, "-c", ENDER, str(self.late_begin), str(self.ender_end)])
        self.sleeper = self.api.submit(["sleep", "600"])
        for job in (self.flood, self.ender, self.late, self.sleeper):
            self.cluster.wait_state(job, "RUNNING")
        eventually(lambda: self.api.get(f"/v1/jobs/{self.ender}/runs")["runs"], "the run of the job that is to end")
        self.waiting = self.api.submit(["true"], gpus=4)
        self.acknowledged = [self.flood, self.ender, self.late, self.sleeper, self.waiting]

    def is_told(self) -> bool:
        return self.cluster.controller.said().count("disk full") > self.told

    def fill(self) -> int:
        """Fill the disk, and go on with what is small until the database needs room that is not there; how many changes that took."""
        self.disk.fill()
        deadline = time.monotonic() + 60
        changes = 0
        while not self.is_told():
            for verb in ("hold", "release"):
                self.api.post(f"/v1/jobs/{self.waiting}/{verb}")
                changes += 1
            assert time.monotonic() < deadline, f"the database still had room after {changes} changes"
        self.disk.fill()  # what the reserve file gave back, too
        return changes

    def check_refusals(self) -> None:
        """What adds is refused, and says why."""
        problem = refusal(lambda: self.api.submit(["true"]))
        assert (problem.status, problem.code) == (507, "disk_full"), problem
        assert "free space" in problem.body["hint"]
        blob = b"b" * 100_000
        status, _, reply = self.api.raw("PUT", f"/v1/blobs/{hashlib.sha256(blob).hexdigest()}", blob)
        assert status == 507 and b"disk_full" in reply, reply
        status, _, reply = self.api.raw("PUT", "/api/2.0/mlflow-artifacts/artifacts/0/run/model.bin", blob)
        assert status == 507 and b"RESOURCE_EXHAUSTED" in reply, reply
        body = b'{"name": "more"}'  # MLflow's client tries again what is unavailable
        status, _, reply = self.api.raw("POST", "/api/2.0/mlflow/experiments/create", body, {"Content-Type": "application/json"})
        assert status == 503 and b"TEMPORARILY_UNAVAILABLE" in reply, reply

    def check_ends(self) -> None:
        """What ends work goes on: a cancel, an end by itself; and the nodes live."""
        self.api.post(f"/v1/jobs/{self.sleeper}/cancel")
        assert self.api.wait(self.sleeper)["state"] == "CANCELED"
        self.ender_end.touch()
        self.late_begin.touch()  # its first metric and its end both meet the full disk
        for job in (self.ender, self.late):
            assert self.api.wait(job)["state"] == "SUCCEEDED"
        assert self.api.job(self.flood)["state"] == "RUNNING"
        assert {node["state"] for node in self.cluster.nodes().values()} == {"READY"}

    def is_tracked(self, job: str) -> bool:
        """The run of a job that ended has both points and its end."""
        runs = self.api.get(f"/v1/jobs/{job}/runs")["runs"]
        if not runs:
            return False
        (run,) = runs
        points = self.api.get(f"/api/2.0/mlflow/metrics/get-history?run_id={run['run_id']}&metric_key=loss")["metrics"]
        return run["status"] == "FINISHED" and [point["value"] for point in points] == [1.0, 2.0]

    def recover(self) -> float:
        """Make room; the seconds until a submission is taken."""
        self.disk.make_room()
        begin = time.monotonic()

        def taken() -> str | None:
            try:
                return self.api.submit(["true"])
            except Problem as problem:
                assert problem.code == "disk_full", problem
                return None

        self.acknowledged.append(eventually(taken, "a submission to be taken"))
        return time.monotonic() - begin

    def check_nothing_lost(self) -> None:
        """All that was acknowledged is there and ends, with all its output."""
        self.flood_end.touch()
        for job in self.acknowledged:
            wanted = "CANCELED" if job == self.sleeper else "SUCCEEDED"
            assert self.api.wait(job)["state"] == wanted
        for job in (self.ender, self.late):
            eventually(
                lambda job=job: self.api.log(job) == "first\n" + "last" * 3000 + "\n", f"the output of job {job}, which ended meanwhile"
            )
            eventually(lambda job=job: self.is_tracked(job), f"the run of job {job}, which ended meanwhile, to be whole")
        lines = self.api.log(self.flood).splitlines()
        assert lines and lines == [f"{number:07d} " + "x" * 119 for number in range(len(lines))]
        seqs = [event["seq"] for event in self.api.get(f"/v1/jobs/{self.flood}/events")["events"]]
        assert seqs == list(range(1, len(seqs) + 1))


def go_through(cycles: int, cluster: Cluster, disk: SmallDisk, folder: Path) -> list[float]:
    """So many cycles on one disk; how long after each it was that submissions were taken again."""
    jobs: list[str] = []
    recoveries = []
    changes = 0
    for _ in range(cycles):
        cycle = Cycle(cluster, disk, folder)
        cycle.start()
        changes += cycle.fill()
        cycle.check_refusals()
        cycle.check_ends()
        recoveries.append(cycle.recover())
        cycle.check_nothing_lost()
        jobs += cycle.acknowledged
    assert cluster.api.get("/version")["incarnation"] == 1
    assert {job["id"] for job in cluster.api.get("/v1/jobs?limit=200")["jobs"]} == set(jobs)
    print(f"disk full: {cycles} cycles, {changes} changes on a full disk, back after {max(recoveries):.1f} s at most")
    return recoveries


def test_a_full_disk_of_the_controller_loses_nothing_and_needs_no_restart(tmp_path: Path, volume: Callable[[int, int], int]) -> None:
    for _ in range(volume(1, 200 // CYCLES_A_DISK)):
        with small("controller", DISK_MIB, slots=4) as (cluster, disk):
            recoveries = go_through(CYCLES_A_DISK, cluster, disk, tmp_path)
            assert max(recoveries) <= RECOVERY_S, recoveries


def test_output_stops_before_submissions_do_and_arrives_when_there_is_room() -> None:
    with small("controller", DISK_MIB) as (cluster, disk):
        disk.fill(leave=MARGIN + MARGIN // 8)
        talker = cluster.api.submit(["sh", "-c", "echo here; sleep 600"])
        cluster.wait_state(talker, "RUNNING")
        quiet = cluster.api.submit(["true"])
        assert cluster.api.wait(quiet)["state"] == "SUCCEEDED"
        eventually(lambda: "disk low" in cluster.controller.said(), "an upload of output to be refused")
        assert cluster.api.log(talker) == ""
        disk.make_room()
        eventually(lambda: cluster.api.log(talker) == "here\n", "the output")


def test_below_the_margin_only_what_adds_is_refused() -> None:
    with small("controller", DISK_MIB) as (cluster, disk):
        job = cluster.api.submit(["sleep", "600"])
        cluster.wait_state(job, "RUNNING")
        disk.fill(leave=MARGIN // 2 + MIB)
        problem = eventually(lambda: refused(cluster.api), "a submission to be refused")
        assert problem.code == "disk_full" and "--min-free" in problem.body["hint"]
        cluster.api.post("/api/2.0/mlflow/experiments/create", {"name": "small"})  # what running jobs track has half the margin
        cluster.api.post(f"/v1/jobs/{job}/cancel")
        assert cluster.api.wait(job)["state"] == "CANCELED"
        assert "disk full" not in cluster.controller.said()


def test_a_node_whose_disk_is_full_ends_its_jobs_and_says_what_output_is_missing(tmp_path: Path) -> None:
    with small("node0", 24) as (cluster, disk):
        end = tmp_path / "end"
        job = cluster.api.submit(["sh", "-c", 'echo before; until [ -e "$0" ]; do sleep 0.05; done; seq 100000', str(end)])
        eventually(lambda: cluster.api.log(job) == "before\n" if cluster.api.job(job)["state"] == "RUNNING" else None, "the first line")
        disk.fill()
        end.touch()
        assert cluster.api.wait(job)["state"] == "SUCCEEDED"
        eventually(lambda: "bytes dropped" in cluster.api.log(job) or disk.is_full(), "the output")
        kept, _, marker = cluster.api.log(job).partition("[gpuctl: ")
        wanted = "before\n" + "".join(f"{number}\n" for number in range(1, 100001))
        assert wanted.startswith(kept) or wanted.startswith(kept[:-1])
        if marker:
            assert int(marker.split()[0]) > 0 and "No space left on device" in marker


def test_a_job_that_a_full_node_cannot_take_waits_with_the_reason_and_starts_when_there_is_room() -> None:
    with small("node0", 24) as (cluster, disk):
        disk.fill()
        job = cluster.api.submit(["echo", "made it"])

        def declined() -> bool:
            events = cluster.api.get(f"/v1/jobs/{job}/events")["events"]
            return "No space left on device" in str(events) + str(cluster.api.get(f"/v1/jobs/{job}/attempts"))

        eventually(declined, "the node to say why")
        assert cluster.api.job(job)["state"] in ("QUEUED", "PLACED")
        disk.make_room()
        assert cluster.api.wait(job)["state"] == "SUCCEEDED"
        eventually(lambda: cluster.api.log(job) == "made it\n", "its output")
