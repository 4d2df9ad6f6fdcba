# SPDX-License-Identifier: Apache-2.0
"""A reader of the web page in a real browser: what it says, what its charts have drawn, and what the browser complained of."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import PATIENCE, ROOT, Api, Cluster, eventually
from lab import CHROMIUM, SHOTS

#: Finds what people who use a screen reader or no mouse cannot use.
AXE = ROOT / "client" / "web" / "node_modules" / "axe-core" / "axe.min.js"

in_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH: apt-get install chromium")
with_axe = pytest.mark.skipif(not AXE.exists(), reason="the packages of the web page are missing: deploy/dependencies gets them")

#: Would run, if anything read it as HTML.
SCRIPT = "<script>window.ran = 1</script>"
IMAGE = "<img src=x onerror='window.ran = 2'>"

#: Of the first lines of a chart on a light page, as red, green and blue.
LINES = [(42, 91, 208), (217, 100, 30), (31, 146, 89), (160, 63, 192)]
BLUE, ORANGE = LINES[:2]

COUNT_PIXELS = """(box, [red, green, blue]) => {
    const canvas = box.querySelector("canvas");
    if (canvas === null) {
        return 0;
    }
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) {
        const distance = Math.abs(data[at] - red) + Math.abs(data[at + 1] - green) + Math.abs(data[at + 2] - blue);
        count += data[at + 3] > 200 && distance < 12;
    }
    return count;
}"""


class Reader:
    """A tab of the browser, and all that it complained of."""

    def __init__(self, browser: Any, width: int = 1300, dark: bool = False, before: str = ""):
        self.context = browser.new_context(viewport={"width": width, "height": 1000}, color_scheme="dark" if dark else "light")
        if before:  # a script that runs before those of the page
            self.context.add_init_script(before)
        self.tab = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.told: list[str] = []
        self.tab.set_default_timeout(PATIENCE * 1000)
        self.tab.on("console", lambda message: self.said.append(message.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.on("response", lambda reply: self.told.append(f"{reply.status} {reply.url}"))
        self.tab.on("requestfailed", lambda request: self.told.append(f"{request.failure} {request.url}"))

    def text(self) -> str:
        return str(self.tab.locator("body").inner_text())

    def sees(self, *words: str) -> None:
        self._until(lambda: all(word in self.text() for word in words), f"{words} on the page")

    def awaits(self, locator: Any, what: str) -> None:
        """Wait until it is there to be seen."""
        self._until(lambda: locator.count() > 0 and locator.is_visible(), what)

    def _until(self, holds: Callable[[], object], what: str) -> None:
        try:
            eventually(holds, what)
        except AssertionError as fault:
            raise AssertionError(f"{fault}, but the page says:\n{self.text()[:2000]}\nand was told {self.told[-20:]}") from None

    def sign_in(self, token: str) -> None:
        self.tab.get_by_label("Token").fill(token)
        self.tab.get_by_role("button", name="Sign in").click()

    def shoot(self, name: str) -> None:
        if SHOTS is not None:
            self.tab.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)

    def findings(self) -> list[str]:
        """What axe finds wrong with the view."""
        self.tab.evaluate(AXE.read_text())
        found = self.tab.evaluate("axe.run()")
        return [f"{self.tab.url}: {one['id']}: {one['nodes'][0]['html']}" for one in found["violations"]]

    def fits(self) -> bool:
        """Nothing sticks out to the right."""
        return bool(self.tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def environment_of(cluster: Cluster) -> dict[str, str]:
    """Of a program that acts as the administrator."""
    token = cluster.folder / "page.token"
    token.touch(0o600)
    token.write_text(cluster.admin_token)
    return {**os.environ, "GPUCTL_TOKEN_FILE": str(token)}


def opened(browser: Any, api: Api, url: str, view: str, **options: Any) -> Reader:
    """A reader who is signed in and looks at a view."""
    reader = Reader(browser, **options)
    reader.tab.goto(f"{url}/#code={api.post('/v1/session/codes')['code']}&to={urllib.parse.quote(view, safe='')}")
    reader.tab.wait_for_function("!location.hash.startsWith('#code=')")  # else another address could take its place before it is read
    return reader


def rows(reader: Reader) -> list[str]:
    return [str(row) for row in reader.tab.locator("tbody tr").all_inner_texts()]


def drawn(chart: Any, colour: tuple[int, int, int]) -> int:
    """How many pixels of a chart have a colour."""
    return int(chart.evaluate(COUNT_PIXELS, list(colour)))


def legend(figure: Any) -> list[str]:
    """What the legend of a chart says: of the x axis, and of each line."""
    return [str(text) for text in figure.locator(".legend > span").all_inner_texts()]


def place(chart: Any, fraction: float) -> tuple[float, float]:
    """Where on the page a fraction of the x axis is."""
    box = chart.locator(".u-over").bounding_box()
    return box["x"] + 0.5 + (box["width"] - 1) * fraction, box["y"] + box["height"] / 2


def point(reader: Reader, chart: Any, fraction: float) -> None:
    """Move the pointer to a fraction of the x axis, once the chart is drawn."""
    chart.locator("canvas").wait_for()
    chart.scroll_into_view_if_needed()
    reader.tab.mouse.move(*place(chart, fraction))


def drag(reader: Reader, chart: Any, begin: float, end: float) -> None:
    point(reader, chart, begin)
    reader.tab.mouse.down()
    reader.tab.mouse.move(*place(chart, end), steps=3)
    reader.tab.mouse.up()
