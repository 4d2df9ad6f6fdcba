# SPDX-License-Identifier: Apache-2.0
"""Draws docs/pictures/notebook.svg: `GPUCTL_BUILD=build .venv/bin/python docs/notebook_picture.py` runs a cell in a real kernel, on a
private controller and node, and draws what the cell shows: its output and the card of the job, as shapes and text.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "pictures" / "notebook.svg"

CODE = """\
from serverless_gpu import distributed, runtime

@distributed(gpus=4, gpu_type="A10", remote=True)
def train(epochs):
    for epoch in range(epochs):
        runtime.log_metric("loss", 2.3 * 0.8 ** epoch, step=epoch)
        runtime.progress((epoch + 1) / epochs, f"epoch {epoch + 1} of {epochs}")
    print("rank", runtime.get_global_rank(), "is done")
    return round(2.3 * 0.8 ** epochs, 4)

train.distributed(epochs=20)"""

WIDTH, LINE, LEFT = 920, 21, 76
SANS, MONO = "font-family='system-ui,Helvetica,Arial,sans-serif'", "font-family='ui-monospace,Menlo,Consolas,monospace'"


def run_cell() -> list[Any]:
    """The outputs of the cell, as a kernel gives them."""
    import nbformat
    from nbclient import NotebookClient

    programs = Path(os.environ.get("GPUCTL_BUILD", ROOT / "build")).resolve()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work"
        work.mkdir()
        path = [programs / "client/cli", Path(sys.executable).parent, os.environ["PATH"]]
        os.environ.update(GPUCTL_STATE=f"{folder}/state", PATH=":".join(map(str, path)))
        subprocess.run(["gpuctl", "up", "--cpu-slots", "4", "--gpu-type", "A10", "--devices", "none"], check=True)
        try:
            notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CODE) for _ in range(2)])  # once to send packages
            NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": work}}).execute()
        finally:
            subprocess.run(["gpuctl", "down", "--force"], check=True)
    return list(notebook.cells[1].outputs)


def width_of(text: str, mono: bool, bold: bool = False, size: float = 14) -> float:
    """About as wide as a browser draws it."""
    if mono:
        return len(text) * size * 0.602
    return sum(size * (0.3 if each in " .,:;il|'·()" else 0.62 if each.isupper() else 0.535) for each in text) * (1.05 if bold else 1)


def spans(node: ElementTree.Element, style: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The texts of a line of the card, each with how it is drawn."""
    own, css = dict(style), node.get("style", "")
    own |= {"bold": True} if node.tag == "b" else {}
    own |= {"mono": True} if node.tag in ("code", "pre") else {}
    own |= {"faint": True} if "opacity" in css else {}
    own |= {"size": 12} if "85%" in css else {}
    colour = re.search(r"background:(#\w+)", css)
    own |= {"chip": colour[1], "bold": True} if colour else {}
    own |= {"link": True} if node.tag == "a" else {}
    if node.text:
        yield node.text, own
    for child in node:
        yield from spans(child, own)
        if child.tail:
            yield child.tail, own if child.tag != "code" else style | own


def draw_line(parts: list[tuple[str, dict[str, Any]]], x: float, y: float) -> list[str]:
    drawn = []
    for text, style in parts:
        text = re.sub(r"\s+", " ", text)
        size, mono, bold = style.get("size", 14), style.get("mono", False), style.get("bold", False)
        width = width_of(text, mono, bold, size - 1 if mono else size)
        weight = " font-weight='600'" if bold else ""
        look = f"{MONO if mono else SANS} font-size='{size - 1 if mono else size}' xml:space='preserve'{weight}"
        if "chip" in style:
            drawn.append(f"<rect x='{x:.0f}' y='{y - 15:.0f}' width='{width + 14:.0f}' height='20' rx='3' fill='{style['chip']}'/>")
            drawn.append(f"<text x='{x + 7:.0f}' y='{y:.0f}' {look} fill='#fff'>{escape(text)}</text>")
            x += width + 18
        elif text.strip():
            fill = "#0969da" if style.get("link") else "#57606a" if style.get("faint") else "#1f2328"
            length = f" textLength='{width:.0f}' lengthAdjust='spacingAndGlyphs'"
            drawn.append(f"<text x='{x:.1f}' y='{y:.0f}' {look}{length} fill='{fill}'>{escape(text)}</text>")
            x += width
        else:
            x += 4
    return drawn


def draw_card(html: str, top: float) -> tuple[list[str], float]:
    """The card from here on, and where it ends."""
    root = ElementTree.fromstring(html)  # noqa: S314  (our own page)
    drawn, y = [], top + 18
    for child in root:
        if child.tag == "table":
            for row in child:
                name, value, course = row
                drawn += draw_line(list(spans(name, {})), LEFT + 14, y) + draw_line(list(spans(value, {})), LEFT + 74, y)
                picture = course.find("svg") if course.find("svg") is not None else course.find("{http://www.w3.org/2000/svg}svg")
                assert picture is not None
                ElementTree.register_namespace("", "http://www.w3.org/2000/svg")
                picture.attrib |= {"x": str(LEFT + 160), "y": f"{y - 16:.0f}", "color": "#1f2328"}
                drawn.append(ElementTree.tostring(picture, encoding="unicode"))
                y += LINE + 4
        elif child.find("progress") is not None:
            bar = child.find("progress")
            assert bar is not None
            share = float(bar.get("value", "0"))
            drawn.append(f"<rect x='{LEFT + 14}' y='{y - 10:.0f}' width='240' height='10' rx='5' fill='#d0d7de'/>")
            drawn.append(f"<rect x='{LEFT + 14}' y='{y - 10:.0f}' width='{240 * share:.0f}' height='10' rx='5' fill='#0969da'/>")
            drawn += draw_line([(bar.tail or "", {})], LEFT + 262, y)
            y += LINE
        else:
            drawn += draw_line(list(spans(child, {})), LEFT + 14, y)
            y += LINE
    side = f"<rect x='{LEFT}' y='{top:.0f}' width='3' height='{y - top - 8:.0f}' fill='#808080' fill-opacity='.5'/>"
    return [side, *drawn], y


def plain(text: str, y: float) -> str:
    return f"<text x='{LEFT}' y='{y:.0f}' {MONO} font-size='13' xml:space='preserve' fill='#1f2328'>{escape(text)}</text>"


def prompt(text: str, y: float, colour: str) -> str:
    return f"<text x='10' y='{y:.0f}' {MONO} font-size='13' fill='{colour}'>{text}</text>"


def draw(outputs: list[Any]) -> str:
    lines = CODE.split("\n")
    drawn = [prompt("[2]:", 34, "#307fc1")]
    box = f"x='{LEFT - 6}' y='14' width='{WIDTH - LEFT - 8}' height='{len(lines) * 18 + 14}'"
    drawn.append(f"<rect {box} fill='#f5f5f5' stroke='#e0e0e0'/>")
    for number, line in enumerate(lines):
        drawn.append(plain(line, 34 + number * 18))
    y = 34 + len(lines) * 18 + 10.0
    for output in outputs:
        if "data" in output and "text/html" in output["data"] and "job " in output["data"]["text/html"]:
            card, y = draw_card(output["data"]["text/html"], y)
            drawn += card
        elif output["output_type"] == "stream":
            for line in output["text"].rstrip("\n").split("\n"):
                y += 18
                drawn.append(plain(line, y))
        elif output["output_type"] == "execute_result":
            y += 28
            drawn.append(prompt("[2]:", y, "#bf5b3d"))
            drawn.append(plain(output["data"]["text/plain"], y))
            y += 8
    height = int(y + 14)
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' width='{WIDTH}' height='{height}' role='img'>"
    title = "<title>A cell of a notebook: a decorated function, the card of its job, its output and its values</title>"
    licence = "<!-- SPDX-License-Identifier: Apache-2.0 - made by docs/notebook_picture.py -->"
    ground = f"<rect width='{WIDTH}' height='{height}' fill='#fff'/>"
    return "\n".join([head, licence, title, ground, *drawn, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw(run_cell()))
