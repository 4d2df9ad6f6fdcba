# SPDX-License-Identifier: Apache-2.0
"""What the views look like, in both themes, against what they looked like: looks.txt. It has the mean colour of each cell of a coarse grid
over the first screen of a view, with 16 levels of red, green and blue. That changes when a column, a card or a colour does, and not with a
minute, a digit or the shape of a letter. Charts are left out, because the hours of the day move along under them. GPUCTL_RENEW=1 writes the
file anew: look at the pictures first (GPUCTL_SCREENSHOTS).
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from day import Day
from harness import eventually
from reader import Reader, in_chromium, opened

LOOKS = Path(__file__).parent / "looks.txt"
HEAD = "# SPDX-License-Identifier: Apache-2.0\n# Made by test_looks.py: name of a view, and red, green and blue of each cell.\n"
COLUMNS, ROWS = 24, 20
#: A cell counts as another one from this many levels on, and a look as another one from this many cells.
LEVELS, CELLS = 2, 12

#: Address and something that the view says once it is there.
VIEWS = {
    "overview": ("/", "Who uses GPUs now"),
    "jobs": ("/jobs", "SUCCEEDED"),
    "queue": ("/queue", "Why it waits"),
    "nodes": ("/nodes", "GPU by GPU"),
    "node": ("/nodes/h100-03", "What it used"),
    "usage": ("/usage?span=1+day", "GPU hours in each hour"),
    "experiments": ("/experiments", "pretrain-vit"),
    "webhooks": ("/webhooks", "Webhooks"),
    "submit": ("/submit", "GPUs"),
}

MEANS = """async ([picture, columns, rows]) => {
    const bytes = Uint8Array.from(atob(picture), (one) => one.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
    canvas.drawImage(image, 0, 0);
    let found = "";
    for (let row = 0; row < rows; row++) {
        for (let column = 0; column < columns; column++) {
            const [left, right] = [column, column + 1].map((at) => Math.round((at * image.width) / columns));
            const [top, bottom] = [row, row + 1].map((at) => Math.round((at * image.height) / rows));
            const { data } = canvas.getImageData(left, top, right - left, bottom - top);
            for (let part = 0; part < 3; part++) {
                let sum = 0;
                for (let at = part; at < data.length; at += 4) {
                    sum += data[at];
                }
                found += Math.round((sum / (data.length / 4) / 255) * 15).toString(16);
            }
        }
    }
    return found;
}"""


def known() -> dict[str, str]:
    return dict(line.split() for line in LOOKS.read_text().splitlines() if not line.startswith("#")) if LOOKS.exists() else {}


def differing(look: str, other: str) -> list[tuple[int, int]]:
    """Column and row of the cells that differ."""

    def differs(at: int) -> bool:
        return any(abs(int(a, 16) - int(b, 16)) >= LEVELS for a, b in zip(look[at : at + 3], other[at : at + 3], strict=True))

    return [(cell % COLUMNS, cell // COLUMNS) for cell in range(COLUMNS * ROWS) if differs(3 * cell)]


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    made = Day(tmp_path_factory.mktemp("looks"))
    yield made.start()
    made.stop()


def look_at(reader: Reader, blank: Any) -> str:
    """The look of the first screen, once it stays the same."""
    looks = [""]

    def is_still() -> bool:
        picture = reader.tab.screenshot(mask=[reader.tab.locator("canvas")], mask_color="#808080", animations="disabled")
        looks.append(blank.evaluate(MEANS, [base64.b64encode(picture).decode(), COLUMNS, ROWS]))
        return looks[-1] == looks[-2]

    eventually(is_still, "the view to be drawn")
    return looks[-1]


@pytest.mark.thorough
@in_chromium
def test_every_view_looks_as_it_did_in_both_themes(day: Day, browser: Any) -> None:
    before, now, wrong = known(), {}, []
    blank = browser.new_page()
    for view, (address, word) in VIEWS.items():
        for dark in (False, True):
            name = f"{view}-{'dark' if dark else 'light'}"
            reader = opened(browser, day.api, day.cluster.url, address, width=1200, dark=dark)
            reader.sees(word)
            now[name] = look_at(reader, blank)
            reader.shoot(f"look-{name}")
            reader.context.close()
            cells = differing(now[name], before[name]) if name in before else []
            if len(cells) >= CELLS or name not in before:
                wrong.append(f"{name}: {len(cells)} of {COLUMNS * ROWS} cells, as (column, row): {cells[:20]}")
    blank.close()
    if "GPUCTL_RENEW" in os.environ:
        LOOKS.write_text(HEAD + "".join(f"{name} {look}\n" for name, look in now.items()))
    assert not wrong or "GPUCTL_RENEW" in os.environ, "\n".join(wrong)
    assert now.keys() == before.keys() or "GPUCTL_RENEW" in os.environ


def test_a_look_differs_by_a_card_and_not_by_a_digit() -> None:
    look = "f" * (3 * COLUMNS * ROWS)
    digit = "e" * 30 + look[30:]
    card = "".join("c" if 6 <= at // 3 % COLUMNS < 12 and 4 <= at // 3 // COLUMNS < 8 else "f" for at in range(len(look)))
    assert len(differing(look, digit)) == 0 and len(differing(look, card)) == 24 >= CELLS
