# SPDX-License-Identifier: Apache-2.0
"""HyperQueue's side of the row `throughput`: so many tasks of /bin/true on one worker of two CPUs; prints how many a second.

It runs in a Python of its own that has HyperQueue, and where its server and worker may leave files.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig


def through(client: Any, count: int) -> float:
    """Seconds from before the job is made until its last task has ended."""
    begin = time.perf_counter()
    job = Job()
    for _ in range(count):
        job.program(["/bin/true"], stdout=None, stderr=None)
    submitted = client.submit(job)
    client.wait_for_jobs([submitted])
    return time.perf_counter() - begin


def main() -> None:
    count = int(sys.argv[1])
    with LocalCluster() as cluster:
        cluster.start_worker(WorkerConfig(cores=2))
        client = cluster.client()
        through(client, 10)
        print(count / through(client, count))


if __name__ == "__main__":
    main()
