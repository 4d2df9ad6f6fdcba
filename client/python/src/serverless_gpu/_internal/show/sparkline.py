# SPDX-License-Identifier: Apache-2.0
"""Draws a small curve as an inline SVG: numbers from the oldest to the newest, scaled between the lowest and the highest."""

from __future__ import annotations

WIDTH = 120
HEIGHT = 20
MARGIN = 2


def svg(points: list[float]) -> str:
    """Return the curve in the colour of the surrounding text; "" for fewer than two points."""
    if len(points) < 2:
        return ""
    low, high = min(points), max(points)
    span = high - low
    step = (WIDTH - 2 * MARGIN) / (len(points) - 1)

    def height(value: float) -> float:
        share = (value / 2 - low / 2) / (span / 2) if 0 < span < float("inf") else 0.5
        return HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN)

    spots = [(MARGIN + index * step, height(value)) for index, value in enumerate(points)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    label = f"from {points[0]:.5g} to {points[-1]:.5g}, lowest {low:.5g}, highest {high:.5g}"
    return (
        f'<svg role="img" aria-label="{label}" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'style="vertical-align:middle">'
        f'<polyline points="{path}" fill="none" stroke="currentColor" stroke-width="1.3" stroke-linejoin="round"/>'
        f'<circle cx="{spots[-1][0]:.1f}" cy="{spots[-1][1]:.1f}" r="2" fill="currentColor"/></svg>'
    )
