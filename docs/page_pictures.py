# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of the web page in docs/pictures: `GPUCTL_BUILD=build .venv/bin/python docs/page_pictures.py` opens its views in
Chromium on a controller that has served a cluster for a day (tests/sim/day), and draws what is there as SVG: boxes as
shapes, texts as texts. What uPlot draws on canvases is recorded as it is drawn.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "notebooks")]
from playwright.sync_api import sync_playwright  # noqa: E402

from day import Day  # noqa: E402
from harness import eventually  # noqa: E402
from lab import CHROMIUM  # noqa: E402
from reader import Reader, opened  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
WIDTH = 1200

#: Scripts that run in the page.
RECORDER, VIEW = ((ROOT / "docs" / "drawing" / f"{name}.js").read_text() for name in ("recorder", "view"))


def draw(browser: Any, day: Day, view: str, words: list[str], name: str, most: int) -> None:
    reader: Reader = opened(browser, day.api, day.cluster.url, view, width=WIDTH, before=RECORDER)
    reader.sees(*words)
    drawings = [""]

    def is_still() -> bool:
        drawings.append(reader.tab.evaluate(VIEW, most))
        return drawings[-1] == drawings[-2]

    eventually(is_still, f"{view} to be drawn")
    licence = "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
    (PICTURES / f"{name}.svg").write_text(licence + drawings[-1])
    reader.context.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        day = Day(Path(folder)).start()
        try:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            running = day.api.get("/v1/jobs?state=RUNNING&limit=200")["jobs"]
            job = next(job["id"] for job in running if job["gpus"] >= 16)
            draw(browser, day, "/", ["The last day", "Who uses GPUs now"], "overview", 1300)
            draw(browser, day, f"/jobs/{job}", ["Metrics", "loss", "Ranks"], "job", 1130)
            draw(browser, day, "/nodes", ["GPU by GPU"], "nodes", 900)
            browser.close()
        finally:
            day.stop()


if __name__ == "__main__":
    main()
