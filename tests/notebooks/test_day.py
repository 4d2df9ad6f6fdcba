# SPDX-License-Identifier: Apache-2.0
"""Every view of the web page with the data of a day: some 2,000 jobs on 38 nodes, decided by the real writer and core, told by a real
controller. What the page says is held against the API, and what that says of use against what the simulated nodes know.
"""

from __future__ import annotations

import collections
import datetime
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from day import BEAT_S, Day
from harness import eventually
from lab import SHOTS
from reader import Reader, in_chromium, legend, opened, point, rows, with_axe

#: What a person may hold in the hand, or have on the desk: width, and whether the page is dark.
SCREENS = [(1400, False), (900, True), (390, False), (390, True), (900, False), (1400, True)]


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    made = Day(tmp_path_factory.mktemp("day"))
    yield made.start()
    made.stop()


def all_jobs(day: Day, **asked: str) -> list[Any]:
    found: list[Any] = []
    cursor = ""
    query = "".join(f"&{name}={value}" for name, value in asked.items())
    while True:
        page = day.api.get(f"/v1/jobs?limit=200{query}{cursor}")
        found += page["jobs"]
        if page["next"] is None:
            return found
        cursor = f"&cursor={page['next']}"


def first(day: Day, state: str, fits: Callable[[Any], bool] = lambda job: True) -> str:
    return str(next(job["id"] for job in all_jobs(day, state=state) if fits(job)))


def experiment(day: Day, name: str) -> Any:
    found = day.api.get("/api/2.0/mlflow/experiments/search?max_results=1000")["experiments"]
    return next(one for one in found if one["name"] == name)


def runs_of(day: Day, name: str) -> list[Any]:
    asked = {"experiment_ids": [experiment(day, name)["experiment_id"]], "max_results": 1000}
    return list(day.api.post("/api/2.0/mlflow/runs/search", asked)["runs"])


# --- what happened ------------------------------------------------------------------------------------------


def test_the_day_has_jobs_of_all_kinds_that_a_cluster_sees(day: Day) -> None:
    jobs = all_jobs(day)
    states = {job["state"] for job in jobs}
    assert {"SUCCEEDED", "FAILED", "CANCELED", "TIMED_OUT", "RUNNING", "HELD", "QUEUED"} <= states
    assert len(day.jobs) + sum(job["tasks"] for job in day.jobs.values()) > 1900 and len(jobs) == len(day.jobs)
    causes = {job["cause"] for job in jobs}
    assert {"RANK_FAILED", "OUT_OF_MEMORY", "EXEC_FAILED", "TIME_LIMIT", "STAGE_FAILED"} <= causes
    nodes = {node["name"]: node for node in day.api.get("/v1/nodes")["nodes"]}
    assert (nodes["a100-07"]["state"], nodes["a100-04"]["state"]) == ("DRAINED", "SUSPECT")
    assert nodes["l4-05"]["unavailable_gpus"] == 1 and nodes["l4-15"]["window"] is not None


@pytest.mark.parametrize(("kind", "by"), [("owners", "owner"), ("projects", "project"), ("types", "gpu_type")])
def test_use_is_what_nodes_were_held_for(day: Day, kind: str, by: str) -> None:
    told = {row[by]: row["gpu_seconds"] for row in day.api.get(f"/v1/usage?by={by}")["usage"]}
    now = time.time()
    known = collections.defaultdict(float, {name: held_ms / 1000 for name, held_ms in day.held[kind].items()})
    slack: collections.Counter[str] = collections.Counter(known.keys())  # a second of each, and what passes between two questions
    for gpu in day.api.get("/v1/gpus?state=allocated&limit=1000")["gpus"]:
        name = gpu["gpu_type"] if by == "gpu_type" else gpu["holder"][by]
        known[name] += now - datetime.datetime.fromisoformat(gpu["holder"]["since"]).timestamp()
        slack[name] += BEAT_S
    assert told.keys() == known.keys()
    assert {name: (told[name], known[name]) for name in told if abs(told[name] - known[name]) > slack[name]} == {}
    total = day.api.get("/v1/usage")["total"]["gpu_seconds"]
    assert abs(sum(told.values()) - total) < sum(slack.values())


# --- what the page shows of it ------------------------------------------------------------------------------


def views_of(day: Day) -> dict[str, tuple[str, list[str]]]:
    """Addresses of views by their names, with something that each says once it is there."""
    sweep = next(job["id"] for job in all_jobs(day) if job["array"] is not None and job["name"].startswith("sweep"))
    trained = experiment(day, "pretrain-vit")["experiment_id"]
    runs = [run["info"]["run_id"] for run in runs_of(day, "pretrain-vit")]
    compared = "runs=" + ",".join(runs[:4])

    def failed(cause: str) -> str:
        return f"/jobs/{first(day, 'FAILED', lambda job: job['cause'] == cause)}"

    return {
        "overview": ("/", ["Who uses GPUs now", "The last day", "a fan of GPU 3"]),
        "jobs": ("/jobs", ["SUCCEEDED", "eval-nightly"]),
        "job-running": (f"/jobs/{first(day, 'RUNNING', lambda job: job['gpus'] >= 16)}", ["What its nodes used", "Metrics", "loss"]),
        "job-failed": (failed("RANK_FAILED"), ["failed first", "RuntimeError: loss is nan"]),
        "job-out-of-memory": (failed("OUT_OF_MEMORY"), ["CUDA out of memory"]),
        "job-without-environment": (failed("STAGE_FAILED"), ["torhc==2.4.0"]),
        "job-timed-out": (f"/jobs/{first(day, 'TIMED_OUT')}", ["ran longer than its time limit"]),
        "job-canceled": (f"/jobs/{first(day, 'CANCELED')}", ["CANCELED", "cancel_asked"]),
        "job-succeeded": (f"/jobs/{first(day, 'SUCCEEDED', lambda job: job['gpus'] >= 8)}", ["Where the time went", "What its nodes used"]),
        "job-function": (f"/jobs/{first(day, 'SUCCEEDED', lambda job: job['name'] == 'embed')}", ["Results", "returned"]),
        "job-queued": (f"/jobs/{first(day, 'QUEUED')}", ["Why it waits", "Ahead"]),
        "job-held": (f"/jobs/{first(day, 'HELD')}", ["held by"]),
        "array": (f"/jobs/{sweep}", ["task 0"]),
        "experiments": ("/experiments", ["pretrain-vit", "eval-nightly"]),
        "runs": (f"/experiments/{trained}", ["learning_rate", "FINISHED"]),
        "run": (f"/experiments/{trained}/runs/{runs[0]}", ["learning_rate", "loss"]),
        "compare": (f"/experiments/{trained}/compare?{compared}", ["learning_rate", "loss"]),
        "nodes": ("/nodes", ["a100-07", "h100-12", "GPU by GPU", "maintenance until"]),
        "node": ("/nodes/h100-03", ["What it used", "GPU utilization in percent", "80 GiB"]),
        "node-silent": ("/nodes/a100-04", ["SUSPECT", "GPU utilization in percent"]),
        "queue": ("/queue", ["jobs wait for GPUs", "Why it waits"]),
        "usage": ("/usage?span=1+day", ["GPU hours in each hour", "EUR"]),
        "webhooks": ("/webhooks", ["Webhooks"]),
        "submit": ("/submit", ["GPUs"]),
    }  # fmt: skip


@pytest.mark.thorough
@in_chromium
@with_axe
def test_no_view_of_a_day_is_complained_of(day: Day, browser: Any) -> None:
    for number, (name, (address, words)) in enumerate(views_of(day).items()):
        for width, dark in SCREENS if SHOTS is not None else [SCREENS[number % len(SCREENS)]]:
            reader = opened(browser, day.api, day.cluster.url, address, width=width, dark=dark)
            reader.sees(*words)
            reader.shoot(f"day-{name}-{width}-{'dark' if dark else 'light'}")
            assert reader.findings() == [], name
            assert reader.said == [], f"{name}: {reader.said}"
            assert reader.fits(), f"{name} sticks out at {width}"
            reader.context.close()


@pytest.fixture
def reader(day: Day, browser: Any) -> Iterator[Callable[[str], Reader]]:
    """Opens a view."""
    readers: list[Reader] = []

    def look(view: str) -> Reader:
        readers.append(opened(browser, day.api, day.cluster.url, view, width=1400))
        return readers[-1]

    yield look
    for one in readers:
        assert one.said == []
        one.context.close()


def by_type(table: list[str]) -> dict[str, str]:
    """The numbers of rows of GPU types: of nodes, of GPUs, and of free ones."""
    return {row.split()[0]: " ".join(re.findall(r"\b\d+\b", row.partition(")")[2] or row.partition("default")[2])) for row in table}


@in_chromium
def test_overview_and_nodes_say_of_gpus_what_the_api_says(day: Day, reader: Callable[[str], Reader]) -> None:
    found = day.api.get("/v1/overview")
    expected = {one["gpu_type"]: f"{one['nodes']} {one['total']} {one['free']}" for one in found["gpus"]}
    for view in ("/", "/nodes"):
        page = reader(view)
        page.sees("H100")
        eventually(lambda page=page: by_type(rows(page)[:3]) == expected, f"{expected} in {view}")
    free = day.api.get("/v1/gpus?state=free&limit=1000")["gpus"]
    assert len(free) == sum(one["free"] for one in found["gpus"])
    assert not [gpu for gpu in free if gpu["node"] in ("a100-07", "l4-15", "l4-16")], "nobody can get these"


@in_chromium
def test_a_node_shows_its_gpus_a_line_each_and_the_hour_that_was_asked_for(day: Day, reader: Callable[[str], Reader]) -> None:
    page = reader("/nodes/a100-04")
    page.sees("GPU-")
    devices = page.tab.locator(".part", has=page.tab.get_by_role("heading", name="GPUs", exact=True)).locator("tbody tr")
    assert devices.count() == 8
    assert max(box["height"] for box in [row.bounding_box() for row in devices.all()]) < 60
    chart = page.tab.get_by_role("img", name=re.compile("^GPU utilization in percent"))
    point(page, chart, 0.99)  # it has been silent for 40 minutes

    def pointed_at() -> float:
        said = legend(page.tab.locator("figure", has=chart))[0]
        return datetime.datetime.fromisoformat(said).timestamp()

    eventually(lambda: time.time() - pointed_at() < 600, "the axis to go on until now")


@in_chromium
def test_usage_and_the_queue_show_the_figures_of_the_api(day: Day, reader: Callable[[str], Reader]) -> None:
    page = reader("/usage?span=1+day&by=owner")
    page.sees("All")
    told = day.api.get("/v1/usage?by=owner")["usage"]
    shown = {cells[0]: float(cells[1]) for cells in (row.split("\t") for row in rows(page))}
    assert shown.keys() == {"All", *(row["owner"] for row in told)}
    for row in told:
        assert abs(shown[row["owner"]] - row["gpu_seconds"] / 3600) < 0.1 + shown[row["owner"]] / 100
    assert abs(shown["All"] - sum(hours for name, hours in shown.items() if name != "All")) < 0.1

    page = reader("/queue")
    waiting = day.api.get("/v1/queue")
    page.sees(f"{waiting['count']} jobs wait for GPUs", f"{waiting['held']} held")


@in_chromium
def test_a_job_says_truly_why_it_waits_or_was_not_tried_again(day: Day, reader: Callable[[str], Reader]) -> None:
    waits = first(day, "QUEUED", lambda job: job["project"] == "interns")
    page = reader(f"/jobs/{waits}")
    page.sees("project interns uses", "when the limit allows it")
    assert "are silent" not in page.text() or "l4-15" not in page.text().partition("are silent")[2].partition(")")[0]
    broken = first(day, "FAILED", lambda job: job["cause"] == "STAGE_FAILED")
    page = reader(f"/jobs/{broken}")
    page.sees("Tried again 0 of 1 times", "once more would end alike")
    twice = next(job["id"] for job in all_jobs(day) if job["attempt"] == 2 and job["gpus"] >= 4 and job["array"] is None)
    page = reader(f"/jobs/{twice}")
    page.sees("attempt 2, attempt 1")
