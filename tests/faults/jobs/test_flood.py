# SPDX-License-Identifier: Apache-2.0
"""Ranks that write without end: they are never held up for long, keep their first and last bytes, fill no disk, and disturb nobody else."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Cluster, eventually
from raw_http import resident
from slow_clients import Pace
from slowness import patient

MIB = 1 << 20
RANKS = 8
#: What one stream may take here; in full as it is by default.
LIMIT_MIB = 8
RSS_LIMIT = 64 * MIB

#: Writes so many bytes of one kind as fast as it can, and tells on stderr the longest that one write took. Each 4 KiB begin with their
#: number, so that what was stored can be held against what was written.
FLOOD = r"""
import os, sys, time
kind, total = sys.argv[1], int(sys.argv[2])
fill = {"text": b"all work and no play\n" * 200, "line": b"x" * 4096, "binary": bytes(range(256)) * 16}[kind]
os.set_blocking(1, True)
longest, written, number = 0.0, 0, 0
begin = time.monotonic()
while written < total:
    block = b"".join((b"%015d " % (number + n) + fill)[:4096] for n in range(16))
    number += 16
    while block:
        before = time.monotonic()
        count = os.write(1, block)
        longest = max(longest, time.monotonic() - before)
        written += count
        block = block[count:]
took = time.monotonic() - begin
print(f"longest={longest:.3f} written={written} seconds={took:.2f}", file=sys.stderr)
os.write(1, b"the last words\n")
"""
BLOCK = 4096
MARKER = re.compile(rb"\[gpuctl: (\d+) bytes dropped: the limit of a stream is (\d+) MiB\]\n")
NOTICE = re.compile(rb"\n?\[gpuctl: output is at its limit; its last (\d+) KiB follow when it has ended\]\n")


def block(kind: str, number: int) -> bytes:
    fill = {"text": b"all work and no play\n" * 200, "line": b"x" * 4096, "binary": bytes(range(256)) * 16}[kind]
    return (b"%015d " % number + fill)[:BLOCK]


def written_at(kind: str, position: int, length: int) -> bytes:
    """What a rank wrote there."""
    first, last = position // BLOCK, (position + length) // BLOCK
    return b"".join(block(kind, number) for number in range(first, last + 1))[position % BLOCK :][:length]


def assert_written(kind: str, data: bytes, position: int) -> None:
    for start in range(0, len(data), 256 * BLOCK):
        piece = data[start : start + 256 * BLOCK]
        assert piece == written_at(kind, position + start, len(piece)), f"other bytes than were written from {position + start} on"


class Watch:
    """The largest memory that processes had, as long as it looks; by name."""

    def __init__(self, pids: Callable[[], dict[str, int]]):
        self.pids = pids
        self.largest: dict[str, int] = {}
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self._look)

    def __enter__(self) -> Watch:
        self.thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        self.stopping.set()
        self.thread.join()

    def _look(self) -> None:
        while not self.stopping.wait(0.1):
            for name, pid in self.pids().items():
                try:
                    self.largest[name] = max(self.largest.get(name, 0), resident(pid))
                except (FileNotFoundError, ProcessLookupError, AssertionError):
                    continue


def pids_of(cluster: Cluster) -> dict[str, int]:
    """Controller, agent and the shims below the cluster's folder."""
    assert cluster.controller.process is not None and cluster.agents[0].process is not None
    found = {"gpuctld": cluster.controller.process.pid, "gpuagent": cluster.agents[0].process.pid}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                mine = (entry / "cwd").readlink().is_relative_to(cluster.folder) and (entry / "exe").readlink().name == "gpushim"
            except OSError:
                continue
            if mine:
                found[f"gpushim {entry.name}"] = int(entry.name)
    return found


def cpu_seconds(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / 100


def disk_of(folder: Path) -> int:
    """Bytes on disk below a folder from which files may go meanwhile."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.stat(os.path.join(parent, name)).st_blocks * 512
    return total


def head_bytes(limit: int) -> int:
    """How much of a stream is stored before its tail is kept aside; as proto/limits_agent.h has it."""
    rest = limit - 1024
    return rest - min(rest // 8, 4 * MIB)


def check_stream(cluster: Cluster, job: str, rank: int, kind: str, total: int, limit: int) -> None:
    """The stored stream is what was written, up to the limit, then a marker with the right count, then the end of what was written."""
    status, _, data = cluster.api.raw("GET", f"/v1/jobs/{job}/logs?rank={rank}", timeout=patient(300))
    assert status == 200 and len(data) <= limit
    first = head_bytes(limit)
    notice = NOTICE.match(data, first)
    assert notice is not None, data[first : first + 200]
    marker = MARKER.match(data, notice.end())
    assert marker is not None, data[notice.end() : notice.end() + 200]
    assert int(marker.group(2)) == limit // MIB
    head, tail, dropped = data[:first], data[marker.end() :], int(marker.group(1))
    words = b"the last words\n"
    assert tail.endswith(words)
    assert len(head) + dropped + len(tail) == total + len(words)
    assert_written(kind, head, 0)
    assert_written(kind, tail.removesuffix(words), len(head) + dropped)
    assert len(data) > limit * 3 // 4


def test_eight_ranks_flood_and_nobody_is_hurt(
    make_cluster: Callable[..., Cluster], volume: Callable[[int, int], int], tmp_path: Path
) -> None:
    limit_mib, total = volume(LIMIT_MIB, 1024), volume(48 * MIB, 10240 * MIB)
    total -= total % (16 * BLOCK)
    cluster = make_cluster(RANKS + 1, controller=["--log-limit", str(limit_mib)])
    program = tmp_path / "flood.py"
    program.write_text(FLOOD)
    kinds = ["text", "line", "binary"]
    command = ["sh", "-c", f'set -- {" ".join(kinds)}; shift $((RANK % 3)); exec {sys.executable} {program} "$1" {total}']
    ask = f"GET /v1/nodes HTTP/1.1\r\nHost: {cluster.api.address}\r\nAuthorization: Bearer {cluster.api.token}\r\n\r\n".encode()
    with Pace(cluster.port, ask) as before:
        eventually(lambda: len(before.samples) >= 200, "200 requests")
    assert cluster.controller.process is not None
    cpu, begin = cpu_seconds(cluster.controller.process.pid), time.monotonic()
    with Pace(cluster.port, ask) as during, Watch(lambda: pids_of(cluster)) as watch:
        job = cluster.api.submit(command, gpus=RANKS)
        other = cluster.api.submit(["echo", "undisturbed"])
        assert cluster.api.wait(other)["state"] == "SUCCEEDED"
        assert cluster.api.log(other) == "undisturbed\n"
        view = cluster.api.wait(job, patience=patient(3600))
        assert view["state"] == "SUCCEEDED", (view, cluster.api.log(job, stream="stderr"))
    took = time.monotonic() - begin
    used = cpu_seconds(cluster.controller.process.pid) - cpu
    longest = []
    for rank in range(RANKS):
        said = dict(word.split("=") for word in cluster.api.log(job, rank=rank, stream="stderr").split())
        assert int(said["written"]) == total
        longest.append(float(said["longest"]))
        check_stream(cluster, job, rank, kinds[rank % 3], total, limit_mib * MIB)
    stored = disk_of(cluster.folder / "controller" / "logs")
    eventually(lambda: disk_of(cluster.folder / "node0") < 16 * MIB, "the node to remove what the controller has")
    memory = {name: most // MIB for name, most in watch.largest.items() if most > 8 * MIB or not name.startswith("gpushim")}
    print(f"{RANKS} x {total // MIB} MiB written in {took:.1f} s, {stored / took / MIB:.0f} MB/s stored")
    print(f"the longest write took {max(longest) * 1e3:.0f} ms; controller: {used / took * 100:.0f} % of a core, memory in MiB: {memory}")
    print(f"others: {before.told()} before; {during.told()} during")
    assert max(longest) < 1.0
    assert stored <= RANKS * (limit_mib + 1) * MIB
    assert set(watch.largest) >= {"gpuctld", "gpuagent"} and len(watch.largest) > 2
    assert max(watch.largest.values()) <= RSS_LIMIT, memory
    assert during.failures == [] and during.percentile(0.99) < 1.0


def test_a_follower_sees_the_first_part_live_and_then_the_end(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    """Offsets of the events run on over marker and tail, and all of it is what the bytes are that are stored."""
    cluster = make_cluster(1, controller=["--log-limit", "1"])
    gate = tmp_path / "gate"
    job = cluster.api.submit(["sh", "-c", f"seq 1000000 1500000; while ! test -e {gate}; do sleep 0.05; done; echo last"])
    texts, offset = [], 0
    for event in cluster.api.stream(f"/v1/jobs/{job}/logs"):
        if event.get("event") == "end":
            break
        data = json.loads(event["data"])
        assert data["offset"] == offset
        offset += len(data["text"].encode())
        texts.append(data["text"])
        if "output is at its limit" in data["text"]:
            gate.touch()  # so the notice came while the job ran
    text = "".join(texts)
    assert text == cluster.api.log(job)
    assert text.endswith("1499999\n1500000\nlast\n") and "bytes dropped: the limit of a stream is 1 MiB]" in text


def test_the_smaller_limit_counts_and_a_node_that_passes_it_is_refused(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, controller=["--log-limit", "4"], agent=["--log-limit", "2"])
    job = cluster.api.submit(["sh", "-c", "yes | head -c 8000000"])
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    log = cluster.api.log(job)
    assert len(log) <= 2 * MIB and "the limit of a stream is 2 MiB" in log
    node = cluster.user("nodes", role="node")
    epoch = cluster.api.get(f"/v1/jobs/{job}/attempts")["attempts"][0]["epoch"]
    path = f"/v1/agent/logs?node=node0&epoch={epoch}&rank=0&stream=stdout&offset="
    offset = len(log)
    statuses: list[Any] = []
    while offset < 6 * MIB and statuses[-1:] != [413]:
        status, _, body = node.raw("POST", f"{path}{offset}", b"z" * MIB)
        statuses.append(status)
        offset = json.loads(body)["received"]
    assert statuses == [200, 200, 413], statuses
    assert offset <= 4 * MIB


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_a_flooding_rank_says_last_is_kept_when_it_fails(make_cluster: Callable[..., Cluster], stream: str) -> None:
    """The traceback at the end is what people look for."""
    cluster = make_cluster(1, controller=["--log-limit", "1"])
    code = f"import sys; out = sys.{stream}; out.write('noise ' * 1000000); raise RuntimeError('the reason')"
    job = cluster.api.submit([sys.executable, "-c", code])
    view = cluster.api.wait(job)
    assert view["state"] == "FAILED"
    kept = cluster.api.log(job, stream=stream)
    assert "the limit of a stream is 1 MiB" in kept
    assert cluster.api.log(job, stream="stderr").endswith("RuntimeError: the reason\n")
