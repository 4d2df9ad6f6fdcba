# SPDX-License-Identifier: Apache-2.0
"""Bar charts as SVG in the manner of `gpuctl simulate --plot`: white, sans-serif, grey lines at round values, ours blue, peers orange."""

from __future__ import annotations

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

OURS, PEER, LINE, FRAME = "#3b7dd8", "#c8702a", "#ddd", "#999"
LETTER, WIDTH, RIGHT = 7, 460, 110
TOP, BAR, GAP, BELOW = 58, 18, 9, 34
MARKS = 5


@dataclass(frozen=True)
class Bar:
    """One value with its name; `gate` draws a line across the bar's row."""

    name: str
    value: float
    ours: bool
    label: str
    gate: float | None = None


def round_step(span: float) -> float:
    """1, 2 or 5 times a power of ten, so that about MARKS lines fit."""
    power = 10 ** math.floor(math.log10(span / MARKS))
    return next(step * power for step in (1, 2, 5, 10) if step * power * MARKS >= span)


def linear_marks(most: float) -> list[float]:
    step = round_step(most)
    return [step * i for i in range(int(most / step) + 1)]


def decades(least: float, most: float) -> list[float]:
    return [10.0**i for i in range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)]


def chart(title: str, unit: str, bars: list[Bar], logarithmic: bool = False) -> str:
    """The text of an SVG file; values are above zero where the axis is logarithmic."""
    reach = [value for bar in bars for value in (bar.value, bar.gate) if value]
    left = 20 + LETTER * max(len(bar.name) for bar in bars)
    marks = decades(min(reach), max(reach)) if logarithmic else linear_marks(max(reach) * 1.05)

    def at(value: float) -> float:
        if not logarithmic:
            return left + WIDTH * value / (max(reach) * 1.05)
        low, high = math.log10(marks[0]), math.log10(marks[-1])
        return left + WIDTH * (math.log10(value) - low) / max(high - low, 1e-9)

    bottom = TOP + len(bars) * (BAR + GAP)
    box = f"0 0 {left + WIDTH + RIGHT} {bottom + BELOW}"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{left}" y="28" font-weight="bold">{escape(title)}</text>',
    ]
    for mark in marks:
        out.append(f'<path stroke="{LINE}" d="M{at(mark):.1f} {TOP - 8}V{bottom}"/>')
        unit_text = f" {unit}" if mark == marks[-1] else ""
        out.append(f'<text x="{at(mark):.1f}" y="{bottom + 18}" text-anchor="middle">{mark:g}{escape(unit_text)}</text>')
    for number, bar in enumerate(bars):
        y = TOP + number * (BAR + GAP)
        start = at(marks[0]) if logarithmic else left
        width = max(at(bar.value) - start, 1)
        out.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{escape(bar.name)}</text>')
        out.append(f'<rect x="{start:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{OURS if bar.ours else PEER}"/>')
        out.append(f'<text x="{start + width + 6:.1f}" y="{y + 14}">{escape(bar.label)}</text>')
        if bar.gate:
            out.append(f'<path stroke="#b00" stroke-width="2" d="M{at(bar.gate):.1f} {y - 3}v{BAR + 6}"/>')
    out.append(f'<path stroke="{FRAME}" d="M{left} {TOP - 8}V{bottom}"/>')
    return "\n".join([*out, "</svg>", ""])
