# SPDX-License-Identifier: Apache-2.0
"""A long history: jobs that have ended, written into the database of a controller that is not running."""

from __future__ import annotations

import random
import sqlite3
import time

from harness import Cluster

DAY_MS = 86400 * 1000


def fill(cluster: Cluster, jobs: int, *, over: float, gpus: list[int], run_s: float, owners: list[str] | None = None) -> None:
    """Stop the controller, add so many jobs of the last `over` days behind the newest job, which they are like, and start it again."""
    chance = random.Random(jobs)
    cluster.controller.kill()
    with sqlite3.connect(cluster.folder / "controller" / "gpuctl.db", timeout=60) as database:
        database.row_factory = sqlite3.Row
        newest = dict(database.execute("SELECT * FROM jobs ORDER BY key DESC LIMIT 1").fetchone())
        first_ms = time.time() * 1000 - over * DAY_MS
        created = sorted(int(first_ms + chance.random() * 0.9 * over * DAY_MS) for _ in range(jobs))
        rows = []
        for number, created_ms in enumerate(created, 1):
            ran_ms = int(chance.expovariate(1 / run_s) * 1000) + 1
            owner = chance.choice(owners or [newest["owner"]])
            changed = {
                "key": newest["key"] + number, "id": f"{number:016d}".translate(str.maketrans("0189", "abcd")), "owner": owner,
                "project": f"of-{owner}", "gpus": chance.choice(gpus), "created_ms": created_ms, "started_ms": created_ms,
                "ended_ms": created_ms + ran_ms, "ran_ms": ran_ms, "time_limit_ms": ran_ms * chance.randint(1, 5) * chance.randint(0, 1),
                "priority": chance.randint(0, 3),
            }  # fmt: skip
            rows.append({**newest, **changed})
        columns = list(newest)
        database.executemany(f"INSERT INTO jobs ({', '.join(columns)}) VALUES ({', '.join(f':{name}' for name in columns)})", rows)
    cluster.start_controller()
    cluster.wait_ready()
