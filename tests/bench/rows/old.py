# SPDX-License-Identifier: Apache-2.0
"""What a long history costs a controller with 10,000,000 ended jobs, 23 GB (GPUCTL_BENCH_OLD_JOBS: another number).

The rows are made by SQL (tests/bench/programs/old.c). For each filter of `gpuctl ps`, one answer after another is asked for, and the cursor
is followed until the list has 200 jobs or ends: how long an answer takes, which is how long the one HTTP thread serves nobody else, and how
long the list takes (`list_ms`). Then 200 connections ask for a name that no job has, without a pause, while another connection asks for
/healthz: what a beat of a node would wait. Jobs are asked for by their ids, too: the newest, the oldest, and one that is not there.

`start`: the controller is killed, and its next start has answered a list of one job; the median of five. `submit`: submissions of one after
the other, over those to a controller without a history, in turns. `beside`: the same while retention removes the oldest 20,000 jobs, or the
older half of fewer.

Gate: 20 ms for the slowest answer, by its 99th percentile (aim 5 ms), 10 ms for a job by its id (aim 1 ms), which takes at most four times
as long for the oldest job and for an unknown id as for the newest (aim 1.5), and 2 s for a beat in the crowd (aim 1 s); 500 ms for a start
(aim 200 ms); twice the time of a submission without a history (aim 1.2), and 20 ms for the slowest hundredth beside retention
(aim 5 ms).
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from typing import Any

from common import BUILD, Goal, cluster, hold_queue, prepare, said, worst
from harness import Cluster
from rows.restart import answered

GOALS = (
    Goal("slowest_p99_ms", "one answer of the slowest filter, 99th percentile", "ms", 20, 5),
    Goal("id_p99_ms", "the oldest job, or an id that no job has, 99th percentile", "ms", 10, 1),
    Goal("id_growth", "the same, median, over that of the newest job", "x", 4, 1.5),
    Goal("start_ms", "start of the process to the first answered GET", "ms", 500, 200),
    Goal("submit_growth", "a submission, over one without a history", "x", 2, 1.2),
    Goal("beside.p99_ms", "a submission while retention removes old jobs, 99th percentile", "ms", 20, 5),
    Goal("crowd_p99_ms", "/healthz beside 200 lists of a name that no job has, 99th percentile", "ms", 2000, 1000),
)
JOBS = int(os.environ.get("GPUCTL_BENCH_OLD_JOBS", "10000000"))
PAGE = 200
ANSWERS = 200
ENOUGH_S = 10.0
CROWD = 200
STARTS = 5
SUBMITS = 300
DAY_MS = 24 * 3600 * 1000
HISTORY_MIN = 20 * 24 * 60  # the jobs were submitted evenly in this time
REMOVED = min(20_000, JOBS // 2)
ENDED = "state=SUCCEEDED,FAILED,CANCELED,TIMED_OUT"
FILTERS = {
    "all": "",
    "live": "state=QUEUED,RUNNING",
    "name": "name=train-77",
    "no_such_name": "name=nope",
    "project": "project=project7",
    "ended": ENDED,
    "canceled": "state=CANCELED",
    "owner": "owner=user7",
    "owner_name": "owner=ann&name=nope",
    "rare_owner_name": "owner=user7&name=nope",  # each of the jobs lies in another page of the database
    "since": "since={now}",
    "since_name": "since={yesterday}&name=nope",
    "prefix": "id_prefix=abcdefg",
    "node": "node=node-7",
    "node_name": "node=node-7&name=nope",
    "node_live": "node=node-7&state=QUEUED,RUNNING",
    "no_such_node": "node=nope",
}


class Line:
    """One connection that is kept alive."""

    def __init__(self, ours: Cluster):
        self.connection = http.client.HTTPConnection("127.0.0.1", ours.port, timeout=600)
        self.headers = {"Authorization": f"Bearer {ours.admin_token}", "Content-Type": "application/json"}

    def get(self, path: str, method: str = "GET") -> tuple[float, Any]:
        """Milliseconds, and the document; None where there is no such thing."""
        begin = time.perf_counter()
        self.connection.request(method, path, "{}" if method == "POST" else None, self.headers)
        reply = self.connection.getresponse()
        text = reply.read()
        spent = 1000 * (time.perf_counter() - begin)
        assert reply.status in (200, 404), (path, reply.status, text)
        return spent, json.loads(text) if reply.status == 200 else None


def percentile(values: list[float], percent: int) -> float:
    return round(sorted(values)[(len(values) - 1) * percent // 100], 2)


def answers_of(times: list[float]) -> dict[str, float]:
    return {"p50_ms": percentile(times, 50), "p99_ms": percentile(times, 99)}


def listed(line: Line, path: str, times: list[float]) -> bool:
    """Go through a list to its end, or to the end of the page that a person asks for; False when that takes too long."""
    found, position, begin = 0, "", time.perf_counter()
    while time.perf_counter() - begin < ENOUGH_S:
        spent, page = line.get(path + position)
        times.append(spent)
        found += len(page["jobs"])
        if page["next"] is None or found >= PAGE:
            return True
        position = f"&cursor={page['next']}"
    return False


def filter_figures(line: Line, query: str) -> dict[str, float]:
    """Answers for one filter, until there are enough or it took long enough."""
    now = int(1000 * time.time())
    path = f"/v1/jobs?limit={PAGE}&{query.format(now=now, yesterday=now - DAY_MS)}"
    times: list[float] = []
    lists: list[float] = []
    begin = time.perf_counter()
    while len(times) < ANSWERS and time.perf_counter() - begin < ENOUGH_S:
        start = time.perf_counter()
        if listed(line, path, times):
            lists.append(1000 * (time.perf_counter() - start))
    return {**answers_of(times), "answers": len(times), **({"list_ms": percentile(lists, 50)} if lists else {})}


def by_id(line: Line) -> dict[str, dict[str, float]]:
    """Answers for jobs by their ids."""
    newest = line.get("/v1/jobs?limit=1")[1]["jobs"][0]["id"]
    oldest = line.get("/v1/jobs?limit=1&cursor=0200000000000000")[1]["jobs"][0]["id"]
    return {
        name: answers_of([line.get(f"/v1/jobs/{job}")[0] for _ in range(ANSWERS)])
        for name, job in {"newest": newest, "oldest": oldest, "unknown": "a" * 16}.items()
    }


def ask_without_pause(ours: Cluster, over: threading.Event, answered: list[int]) -> None:
    """Connections that each ask again as soon as they are answered."""
    request = f"GET /v1/jobs?limit=1&name=nope HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {ours.admin_token}\r\n\r\n".encode()
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(socket.create_connection(("127.0.0.1", ours.port))) for _ in range(CROWD)]
        while not over.is_set():
            for line in lines:
                line.sendall(request)
            for line in lines:
                if over.is_set():
                    return
                answer = b""
                while not answer.endswith(b"}"):
                    answer += line.recv(65536)
                assert answer.startswith(b"HTTP/1.1 200"), answer
                answered[0] += 1


@contextlib.contextmanager
def crowd(ours: Cluster) -> Iterator[list[int]]:
    over = threading.Event()
    answered = [0]
    thread = threading.Thread(target=ask_without_pause, args=(ours, over, answered))
    thread.start()
    yield answered
    over.set()
    thread.join()


def crowd_figures(ours: Cluster) -> dict[str, float]:
    line = Line(ours)
    with crowd(ours) as answered:
        begin = time.perf_counter()
        times: list[float] = []
        while time.perf_counter() - begin < ENOUGH_S or not times:
            start = time.perf_counter()
            line.connection.request("GET", "/healthz")
            line.connection.getresponse().read()
            times.append(1000 * (time.perf_counter() - start))
        rate = answered[0] / (time.perf_counter() - begin)
    return {"crowd_p50_ms": percentile(times, 50), "crowd_p99_ms": percentile(times, 99), "crowd_answers_per_s": round(rate)}


def grow(ours: Cluster) -> None:
    """The controller has the jobs once it serves again."""
    assert ours.controller.kill(signal.SIGTERM) == 0
    said([BUILD / "tests" / "bench" / "bench-old", ours.folder / "controller" / "gpuctl.db", JOBS])
    ours.start_controller()


def restart(ours: Cluster) -> float:
    """Milliseconds until the first answered GET after a kill."""
    ours.controller.kill()
    begin = time.perf_counter()
    ours.controller.start()
    return answered(ours.port, ours.admin_token, "GET", "/v1/jobs?limit=1", None, begin)


def start_ms(ours: Cluster) -> float:
    return round(statistics.median(restart(ours) for _ in range(STARTS)), 1)


def submit(ours: Cluster) -> float:
    """Milliseconds of one."""
    begin = time.perf_counter()
    ours.api.submit(["true"], gpu_type="cpu")
    return 1000 * (time.perf_counter() - begin)


def submit_growth(ours: Cluster, young: Cluster) -> dict[str, float]:
    pairs = [(submit(young), submit(ours)) for _ in range(SUBMITS)]
    young_ms, old_ms = (statistics.median(side) for side in zip(*pairs, strict=True))
    return {"submit_young_ms": round(young_ms, 2), "submit_ms": round(old_ms, 2), "submit_growth": round(old_ms / young_ms, 2)}


def beside_retention(ours: Cluster) -> dict[str, float]:
    ours.controller.arguments += ["--keep-jobs", f"{HISTORY_MIN - HISTORY_MIN * REMOVED // JOBS}m"]
    restart(ours)
    ended: list[tuple[float, Any]] = []
    thread = threading.Thread(target=lambda: ended.append(Line(ours).get("/v1/retention", "POST")))
    thread.start()
    took = []
    while thread.is_alive():
        took.append(submit(ours))
    thread.join()
    ((spent_ms, went),) = ended
    return {**answers_of(took), "submissions": len(took), "removed": went["jobs"], "removed_per_s": round(1000 * went["jobs"] / spent_ms)}


def run() -> dict[str, object]:
    prepare(targets=("bench-old",))
    with cluster([1]) as young, cluster([1]) as ours:
        for each in (young, ours):
            hold_queue(each)
        grow(ours)
        size = (ours.folder / "controller" / "gpuctl.db").stat().st_size
        line = Line(ours)
        filters = {}
        for name, query in FILTERS.items():
            filters[name] = filter_figures(line, query)
            print(json.dumps({name: filters[name]}), flush=True)
        slowest = max(figures["p99_ms"] for figures in filters.values())
        ids = by_id(line)
        figures: dict[str, object] = {
            "slowest_p99_ms": slowest,
            "id_p99_ms": max(ids[name]["p99_ms"] for name in ("oldest", "unknown")),
            "id_growth": round(max(ids[name]["p50_ms"] for name in ("oldest", "unknown")) / ids["newest"]["p50_ms"], 2),
            **crowd_figures(ours),
            "start_ms": start_ms(ours),
            **submit_growth(ours, young),
            "beside": beside_retention(ours),
            "jobs": JOBS,
            "database_gb": round(size / 1e9, 2),
            "filters": filters,
            "ids": ids,
        }
        return {"ratio": worst(GOALS, figures), **figures}
