# SPDX-License-Identifier: Apache-2.0
"""Durable submissions a second over HTTP.

64 connections with one request under way each, for 4 seconds, in turns with the peers, medians of three. Ours: POST /v1/jobs with token,
validation of the whole spec and an Idempotency-Key of its own, answered after the commit is on disk. Redis: LPUSH of 400 bytes by
redis-benchmark, appendfsync always. etcd: put of 400 bytes under keys of their own through its HTTP gateway.

`batch`: POST /v1/jobs:batch with 1,000 jobs in a request, each with a name and arguments of its own, over 8 connections; the controller
counts all of them as well. It runs on a controller of its own, after the peers.

Gates: 0.5x Redis (aim 0.7x), 3x etcd, and 100,000 jobs a second in batches.
"""

from __future__ import annotations

import contextlib
import os
import re
import statistics

from common import Chart, Goal, cluster, folder, hold_queue, load, peer, prepare, said

GOALS = (
    Goal("ratio", "submissions a second, of Redis'", "x", 0.5, 0.7, at_most=False),
    Goal(
        "etcd_ratio",
        "submissions a second, of etcd's",
        "x",
        3,
        at_most=False,
        why="by a profile half of the controller's time is the kernel's part of small HTTP requests, a sixth SQLite's; the machine is idle "
        "for a seventh of the time, waiting for the disk. Without peers on the same disk the same load makes some 34,000 a second.",
    ),
    Goal(
        "batch.per_second",
        "durable submissions a second in batches of 1,000",
        "/s",
        100000,
        at_most=False,
        why="a job costs some 52,000 instructions of the writer's thread, half of them SQLite's, and 63,000 of the HTTP thread, most of "
        "them the JSON library's (tests/bench/instructions, batch). Both threads and the load share the cores.",
    ),
)
CHARTS = (
    Chart(
        "durable submissions a second, 64 connections",
        "/s",
        {"gpuctl": "per_second.ours", "Redis, appendfsync always": "per_second.redis", "etcd, HTTP gateway": "per_second.etcd"},
    ),
)
CONNECTIONS = 64
ROUNDS = 3
BATCH_CONNECTIONS = 8
BATCH_JOBS = 1000
BATCHES = 200  # a round; all rounds together stay below the limit of live jobs


def redis_rate(port: int) -> float:
    command = ["redis-benchmark", "-p", port, "-c", CONNECTIONS, "-n", 200000, "-d", 400, "-t", "lpush", "--csv"]
    return float(next(line for line in said(command).splitlines() if line.startswith('"LPUSH')).split(",")[1].strip('"'))


def batch_rate() -> float:
    """Jobs a second in batches, the median of the rounds."""
    rates = []
    with cluster([1]) as ours:
        hold_queue(ours)
        for _ in range(ROUNDS):
            rates.append(load(ours.port, BATCH_CONNECTIONS, str(BATCHES), "batch", ours.admin_token, str(BATCH_JOBS)))
            print(f"batches: {rates[-1]:.0f} jobs/s", flush=True)
        made = re.search(r"^gpuctl_jobs_submitted_total (\d+)$", ours.api.raw("GET", "/metrics")[2].decode(), re.MULTILINE)
        assert made is not None and int(made[1]) == ROUNDS * BATCHES * BATCH_JOBS
    return statistics.median(rates)


def run() -> dict[str, object]:
    prepare("redis-server", "etcd-server", "curl", targets=("bench-load",))
    rates: dict[str, list[float]] = {"ours": [], "redis": [], "etcd": []}
    with contextlib.ExitStack() as stack:
        state = stack.enter_context(folder())
        os.makedirs(f"{state}/redis")
        stack.enter_context(
            peer(
                ["redis-server", "--port", "6390", "--bind", "127.0.0.1", "--dir", f"{state}/redis", "--appendonly", "yes",
                 "--appendfsync", "always", "--save", ""],
                "redis-cli -p 6390 ping",
            )
        )  # fmt: skip
        stack.enter_context(
            peer(
                ["etcd", "--data-dir", f"{state}/etcd", "--listen-client-urls", "http://127.0.0.1:2390", "--advertise-client-urls",
                 "http://127.0.0.1:2390", "--listen-peer-urls", "http://127.0.0.1:2391", "--log-level", "error"],
                "curl -sf http://127.0.0.1:2390/health",
            )
        )  # fmt: skip
        ours = stack.enter_context(cluster([1]))
        hold_queue(ours)
        for _ in range(ROUNDS):
            rates["ours"].append(load(ours.port, CONNECTIONS, "4s", "gpuctl", ours.admin_token))
            rates["redis"].append(redis_rate(6390))
            rates["etcd"].append(load(2390, CONNECTIONS, "4s", "etcd"))
            print({name: round(rate[-1]) for name, rate in rates.items()}, flush=True)
    middle = {name: statistics.median(rate) for name, rate in rates.items()}
    return {
        "ratio": round(middle["ours"] / middle["redis"], 3),
        "etcd_ratio": round(middle["ours"] / middle["etcd"], 2),
        "per_second": {name: round(rate) for name, rate in middle.items()},
        "batch": {"per_second": round(batch_rate())},
    }
