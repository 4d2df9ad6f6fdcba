# SPDX-License-Identifier: Apache-2.0
"""50 open pages, and one with 10,000 jobs: what they cost the controller while nothing happens, and how smoothly a person scrolls.

Real pages in Chromium, each a tab of its own that counts as seen: 20 show the overview, 20 the jobs, 10 the nodes. The controller has 1,000
simulated nodes (tests/bench/programs/agents.c, a heartbeat a minute) and 10,000 jobs that are held. `cpu_percent`: CPU time of the
controller over 60 s with the pages, less the same without them, of one core. `kib_minute`: what all pages together received in that time,
by page and minute. `commits`: how many more were made than without pages. Then one page shows all 10,000 jobs, and is scrolled by half a
window each frame for 300 frames; `frame_ms` is from frame to frame, as the page sees it, drawn without a graphics card.

Gates: 5 % of a core for 50 pages; 17 ms a frame, the median.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import statistics
import sys
import threading
from typing import Any

from common import ROOT, Goal, Skipped, cluster, controller_pid, cpu_s, prepare, worst
from harness import Api, Cluster, eventually
from simulated import agents, node_token

sys.path.append(str(ROOT / "tests" / "notebooks"))

NODES = 1000
JOBS = 10_000
BATCH = 1000
VIEWS = ["/"] * 20 + ["/jobs"] * 20 + ["/nodes"] * 10
WATCHED_S = 60
FRAMES = 300
GOALS = (
    Goal("cpu_percent", "50 open pages while nothing happens", "% of a core", 5, 2),
    Goal("frame_ms.p50", "a frame while 10,000 jobs are scrolled, p50", "ms", 17, 17),
)
SCROLL = """async (frames) => {
    const took = [];
    let before = await new Promise(requestAnimationFrame);
    for (let frame = 0; frame < frames; frame++) {
        scrollBy(0, (frame % 100 < 50 ? 1 : -1) * innerHeight / 2);
        const now = await new Promise(requestAnimationFrame);
        took.push(now - before);
        before = now;
    }
    return took;
}"""


def fill(ours: Cluster) -> None:
    for begin in range(0, JOBS, BATCH):
        lines = [json.dumps({"command": ["true"], "gpus": 1, "name": f"job-{begin + at}", "hold": True}) for at in range(BATCH)]
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": f"from {begin}"}
        status, _, answer = ours.api.raw("POST", "/v1/jobs:batch", "\n".join(lines).encode(), headers)
        assert status == 200, answer


def commits(api: Api) -> int:
    found = re.search(r"^gpuctl_commit_seconds_count (\d+)", api.raw("GET", "/metrics")[2].decode(), re.MULTILINE)
    assert found is not None, "the controller does not say how many commits it has made"
    return int(found[1])


def watched(ours: Cluster, wait: Any) -> tuple[float, int]:
    """CPU time and commits of the controller in WATCHED_S."""
    before, made = cpu_s(controller_pid(ours)), commits(ours.api)
    wait(WATCHED_S)
    return cpu_s(controller_pid(ours)) - before, commits(ours.api) - made


def count(tab: Any) -> int:
    table = tab.get_by_role("table")
    return int(table.get_attribute("aria-rowcount")) - 1 if table.count() == 1 else 0


def scroll(browser: Any, ours: Cluster, opened: Any) -> dict[str, float]:
    tab = opened(browser, ours.api, ours.url, "/jobs").tab
    older = tab.get_by_role("button", name="Show older jobs")
    while eventually(lambda: count(tab), "the jobs") < JOBS:
        before = count(tab)
        older.click()
        eventually(lambda before=before: count(tab) > before, "older jobs")
    took = tab.evaluate(SCROLL, FRAMES)
    return {"p50": round(statistics.median(took), 1), "p95": round(statistics.quantiles(took, n=20)[18], 1)}


def measure(ours: Cluster) -> dict[str, object]:
    chromium, opened = importlib.import_module("lab").CHROMIUM, importlib.import_module("reader").opened

    if chromium is None:
        raise Skipped("there is no Chromium on PATH")
    with importlib.import_module("playwright.sync_api").sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        alone = watched(ours, threading.Event().wait)
        tabs = [opened(browser, ours.api, ours.url, view).tab for view in VIEWS]
        for tab in tabs:
            tab.locator("table tbody tr").first.wait_for()
        received = [0.0]
        for tab in tabs:
            session = tab.context.new_cdp_session(tab)
            session.send("Network.enable")
            session.on("Network.loadingFinished", lambda event: received.__setitem__(0, received[0] + event["encodedDataLength"]))
        looked = watched(ours, lambda seconds: tabs[0].wait_for_timeout(1000 * seconds))
        for tab in tabs:
            tab.context.close()
        frames = scroll(browser, ours, opened)
        browser.close()
    return {
        "pages": len(VIEWS),
        "cpu_percent": round(100 * (looked[0] - alone[0]) / WATCHED_S, 2),
        "alone_percent": round(100 * alone[0] / WATCHED_S, 2),
        "kib_minute": round(received[0] / 1024 / len(VIEWS) * 60 / WATCHED_S, 1),
        "commits": looked[1] - alone[1],
        "frame_ms": frames,
    }


def run() -> dict[str, object]:
    prepare(targets=("bench-agents",))
    if importlib.util.find_spec("playwright") is None:
        raise Skipped("playwright is not installed: deploy/python-environment --tests")
    with cluster([], controller=["--beat", "60s"]) as ours, agents(ours.port, node_token(ours), NODES, 8) as fleet:
        fleet.ask("register")
        fleet.ask("park 1000")
        fill(ours)
        figures = measure(ours)
    return {"ratio": worst(GOALS, figures), **figures}
