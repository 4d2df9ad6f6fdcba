# SPDX-License-Identifier: Apache-2.0
"""Durable submissions a second over HTTP.

64 connections with one request under way each, for 4 seconds, in turns with the peers, medians of three. Ours: POST /v1/jobs with token,
validation of the whole spec and an Idempotency-Key of its own, answered after the commit is on disk. Redis: LPUSH of 400 bytes by
redis-benchmark, appendfsync always. etcd: put of 400 bytes under keys of their own through its HTTP gateway.

Gate: 0.5x Redis (aim 0.7x) and 3x etcd.
"""

from __future__ import annotations

import contextlib
import os
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


def redis_rate(port: int) -> float:
    command = ["redis-benchmark", "-p", port, "-c", CONNECTIONS, "-n", 200000, "-d", 400, "-t", "lpush", "--csv"]
    return float(next(line for line in said(command).splitlines() if line.startswith('"LPUSH')).split(",")[1].strip('"'))


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
    }
