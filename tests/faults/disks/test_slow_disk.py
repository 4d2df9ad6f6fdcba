# SPDX-License-Identifier: Apache-2.0
"""A disk of the controller that takes its time for each sync: reads are not held up, no node is taken for silent, and what is acknowledged
comes late but right.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Api, eventually
from preloaded import SlowDisk, running

HELD_UP_AT_MOST = 0.05  # of the reads: what the machine is busy with may hold up a few for as long as a sync takes
DELAYS_MS = [10, 100, 500]
ALL_DELAYS_MS = [10, 30, 100, 500, 1000, 3000, 5000]


class Readers:
    """Threads that read all the time, and how long each read took."""

    def __init__(self, api: Api, paths: list[str]):
        self.times: list[float] = []
        self.end = threading.Event()
        self.threads = [threading.Thread(target=self.read, args=(api, path)) for path in paths]

    def read(self, api: Api, path: str) -> None:
        while not self.end.wait(0.005):
            begin = time.monotonic()
            api.get(path)
            self.times.append(time.monotonic() - begin)

    def __enter__(self) -> Readers:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.end.set()
        for thread in self.threads:
            thread.join()

    def percentile(self, part: float) -> float:
        return sorted(self.times)[int(part * (len(self.times) - 1))]


def submit_many(api: Api, count: int, ret_ids: list[str], ret_times: list[float]) -> None:
    for _ in range(count):
        begin = time.monotonic()
        ret_ids.append(api.submit(["true"], gpus=1))
        ret_times.append(time.monotonic() - begin)


@pytest.mark.parametrize("delay_ms", ALL_DELAYS_MS)
def test_a_slow_disk_holds_up_no_reads_and_silences_no_node(delay_ms: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if delay_ms not in DELAYS_MS and not request.config.getoption("--long"):
        pytest.skip("one of the full volume: --long")
    disk = SlowDisk(tmp_path / "delay")
    beat = ["--beat", "2s"] if delay_ms >= 3000 else []
    with running(tmp_path / "cluster", [2], disk.environment, arguments=beat) as cluster:
        api = cluster.api
        running_job = api.submit(["sleep", "600"], on_disconnect="requeue", lease_s=60)
        cluster.wait_state(running_job, "RUNNING")
        disk.delay(delay_ms)
        ids: list[str] = []
        times: list[float] = []
        paths = ["/v1/jobs", f"/v1/jobs/{running_job}", "/v1/nodes", f"/v1/jobs/{running_job}/events"]
        with Readers(api, paths) as readers:
            submit_many(api, 3 if delay_ms >= 500 else 10, ids, times)
            eventually(lambda: all(api.job(job)["state"] == "SUCCEEDED" for job in ids), "the jobs to end")
            assert {node["state"] for node in cluster.nodes().values()} == {"READY"}
        disk.delay(0)
        said = cluster.controller.said()
        assert "silent" not in said and "SUSPECT" not in said and "LOST" not in said, said
        assert (api.job(running_job)["state"], api.job(running_job)["attempt"]) == ("RUNNING", 1)
        assert [api.job(job)["attempt"] for job in ids] == [1] * len(ids)
        assert min(times) >= delay_ms / 1000, "an answer came before its sync"
        p99 = readers.percentile(0.99)
        reads = f"{len(readers.times)} reads, p50 {readers.percentile(0.5) * 1000:.1f} ms, p99 {p99 * 1000:.1f} ms"
        print(f"slow disk: {delay_ms} ms a sync: {reads}; submissions {min(times) * 1000:.0f} to {max(times) * 1000:.0f} ms")
        if delay_ms >= 100:
            held_up = [took for took in readers.times if took >= delay_ms / 1000]
            assert len(held_up) < HELD_UP_AT_MOST * len(readers.times), "reads wait for syncs"


def test_what_a_slow_disk_had_not_acknowledged_is_right_after_a_kill(tmp_path: Path, volume: Callable[[int, int], int]) -> None:
    disk = SlowDisk(tmp_path / "delay")
    with running(tmp_path / "cluster", [1], disk.environment) as cluster:
        for _ in range(volume(2, 50)):
            disk.delay(150)
            ids: list[str] = []
            thread = threading.Thread(target=submit_until_cut, args=(cluster.api, ids))
            thread.start()
            eventually(lambda ids=ids: len(ids) >= 3, "three submissions")
            cluster.controller.kill()
            thread.join()
            disk.delay(0)
            cluster.start_controller()
            for job in ids:
                assert cluster.api.wait(job)["state"] == "SUCCEEDED"


def submit_until_cut(api: Api, ret_ids: list[str]) -> None:
    """Submit until the controller is gone."""
    while True:
        try:
            ret_ids.append(api.submit(["true"]))
        except (OSError, http.client.HTTPException):
            return
