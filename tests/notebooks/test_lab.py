# SPDX-License-Identifier: Apache-2.0
"""The cell of a notebook as a person sees it: a real JupyterLab in a real browser, against real programs. Where either is missing, the
tests are skipped and say which. With GPUCTL_SCREENSHOTS=FOLDER they leave pictures there.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from harness import ROOT, Cluster, eventually
from lab import CHROMIUM, Lab, Page

pytest.importorskip("jupyterlab", reason="JupyterLab is not installed: deploy/python-environment --tests")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed: deploy/python-environment --tests")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH: apt-get install chromium")

Open = Callable[..., Page]

IMPORT = "from serverless_gpu import distributed, runtime\n"
UNTIL = """
def until(path):
    import os, time
    deadline = time.monotonic() + 100
    while not os.path.exists(path):
        assert time.monotonic() < deadline, path
        time.sleep(0.01)
"""

#: Parts of a cell's output that stick out of it to the right, by their text.
CUT_OFF = """cell => [...cell.querySelectorAll('.jp-RenderedHTML [role=group] *, .jp-RenderedHTML details')]
    .filter(part => part.getBoundingClientRect().right > cell.querySelector('.jp-OutputArea').getBoundingClientRect().right + 1)
    .filter(part => !part.closest('pre, summary'))
    .map(part => part.textContent)"""


@pytest.fixture(scope="module")
def lab(large_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A JupyterLab whose kernels know the cluster."""
    folder = tmp_path_factory.mktemp("lab")
    token = folder / "token"
    token.touch(0o600)
    token.write_text(large_cluster.admin_token + "\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUCTL_", "DATABRICKS_", "XDG_"))}
    settings = {
        "GPUCTL_URL": large_cluster.url,
        "GPUCTL_TOKEN_FILE": str(token),
        "PYTHONPATH": str(ROOT / "client" / "python" / "src"),
        "OMP_NUM_THREADS": "1",
    }
    with tempfile.TemporaryDirectory(prefix="kernel-") as short:  # the paths of sockets must be short
        made = Lab(folder, {**kept, **settings}, Path(short))
        try:
            yield made.start()
        finally:
            made.stop()


@pytest.fixture
def open_page(lab: Lab, browser: Any, request: pytest.FixtureRequest) -> Iterator[Open]:
    """Open a notebook of some cells in a tab of its own."""
    contexts: list[Any] = []

    def start(*cells: str, width: int = 1100, dark: bool = False) -> Page:
        lab.set("apputils-extension/themes", {"theme": "JupyterLab Dark" if dark else "JupyterLab Light"})
        contexts.append(browser.new_context(viewport={"width": width, "height": 1000}))
        return Page(contexts[-1].new_page(), lab, lab.write(f"{request.node.name}.ipynb", *cells))

    yield start
    for context in contexts:
        context.close()


def test_the_card_shows_progress_and_metrics_and_stays_when_the_notebook_is_saved_and_opened_again(
    lab: Lab, open_page: Open, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    page = open_page(
        IMPORT
        + UNTIL
        + f"""
@distributed(gpus=2, remote=True, name="learn")
def work():
    for step in range(10):
        runtime.log_metric("loss", 1 / (step + 1), step=step)
    runtime.progress(0.42, "epoch 3")
    until({str(go)!r})
    return 1

work.distributed()
"""
    )
    page.begin(0)
    card = page.cell(0).locator("[role=group]")
    eventually(lambda: "42% epoch 3" in page.output(0) and card.locator("svg").count() == 1, "progress and a curve")
    assert card.count() == 1 and "RUNNING" in card.inner_text() and " UTC" in card.inner_text()
    bar = card.locator("progress")
    assert (bar.get_attribute("value"), bar.get_attribute("aria-label")) == ("0.4200", "epoch 3")
    assert "from 1 to 0.1" in card.locator("svg").get_attribute("aria-label")
    page.shoot("card-running")
    go.touch()
    page.wait(0)
    eventually(lambda: "SUCCEEDED" in card.inner_text(), "the end on the card")
    assert card.count() == 1 and " UTC" not in card.inner_text() and page.output(0).rstrip().endswith("[1, 1]")
    before = page.output(0)
    page.save()
    page.open()
    assert page.output(0) == before and page.cell(0).locator("svg").count() >= 1
    page.shoot("card-saved")

    document = lab.read(page.name)
    document.cells[0].outputs[0].data["text/html"] += "<script>window.ran = 1</script>"  # signed by nobody
    nbformat.write(document, lab.notebooks / "untrusted.ipynb")
    foreign = Page(page.tab, lab, "untrusted.ipynb")
    assert "SUCCEEDED" in foreign.output(0) and "loss" in foreign.output(0) and foreign.cell(0).locator("progress").count() == 1
    assert foreign.tab.evaluate("window.ran") is None
    foreign.shoot("card-untrusted")

    exported = tmp_path / "exported.html"
    from nbconvert import HTMLExporter

    exported.write_text(HTMLExporter().from_notebook_node(lab.read(page.name))[0])
    page.tab.goto(exported.as_uri())
    assert "SUCCEEDED" in page.tab.locator("[role=group]").inner_text() and page.tab.locator("progress").count() == 1
    page.shoot("card-exported")


@pytest.mark.parametrize(("width", "dark"), [(1100, False), (520, True)], ids=["light", "dark-and-narrow"])
def test_of_many_ranks_each_has_one_line_and_nothing_is_cut_off(open_page: Open, width: int, dark: bool) -> None:
    page = open_page(
        IMPORT
        + """
@distributed(gpus=16, remote=True, name="a-name-that-somebody-has-made-very-long-to-say-all-of-it")
def work():
    rank = runtime.get_global_rank()
    print(f"<u>line of {rank}", "words " * 50)
    runtime.log_metric("learning_rate_of_the_second_group_of_parameters", rank)
    if rank == 11:
        import time
        time.sleep(1)
        raise ValueError("x" * 300)
    import time
    time.sleep(600)

work.distributed()
""",
        width=width,
        dark=dark,
    )
    page.begin(0)
    page.wait(0)
    folded = page.cell(0).locator("details")
    eventually(lambda: folded.locator("visible=true").count() and "✗ rank 11 failed" in folded.first.inner_text(), "the rank that failed")
    assert folded.count() == 15 and page.cell(0).locator("details[open]").count() == 1
    heights = folded.locator("summary").evaluate_all("parts => parts.map(part => part.getBoundingClientRect().height)")
    assert max(heights) < 30, heights
    assert page.cell(0).evaluate(CUT_OFF) == []
    assert page.cell(0).locator("[role=group] td").nth(1).is_visible() and "ValueError" in page.output(0)
    folded.nth(2).locator("summary").click()
    assert folded.nth(2).locator("pre").is_visible() and "<u>line of" in folded.nth(2).inner_text()
    page.cell(0).locator(".jp-Cell-outputArea").scroll_into_view_if_needed()
    page.tab.evaluate("document.querySelector('.jp-Cell-outputWrapper').scrollIntoView()")
    page.shoot("ranks-dark-and-narrow" if dark else "ranks-light")


def test_the_stop_button_cancels_the_job_and_the_cell_runs_again(large_cluster: Cluster, open_page: Open, tmp_path: Path) -> None:
    go = tmp_path / "go"
    page = open_page(
        IMPORT
        + UNTIL
        + f"""
@distributed(gpus=2, remote=True, name="stopped")
def work():
    print("begun", flush=True)
    until({str(go)!r})
    return 7

work.distributed()
"""
    )
    page.begin(0)
    eventually(lambda: "RUNNING" in page.output(0) and page.output(0).count("] begun") == 2, "the job to run")
    page.stop()
    page.wait(0)
    eventually(lambda: "CANCELED" in page.output(0) and "KeyboardInterrupt" in page.output(0), "the end of it on the page")
    assert "work.distributed()" in page.output(0) and "live.py" not in page.output(0) and "call.py" not in page.output(0)
    (job,) = large_cluster.api.get("/v1/jobs?name=stopped")["jobs"]
    assert job["state"] == "CANCELED"
    page.shoot("stopped")
    go.touch()
    page.begin(0)
    page.wait(0)
    eventually(lambda: "[7, 7]" in page.output(0), "the values")
    assert page.cell(0).locator("[role=group]").count() == 1 and "CANCELED" not in page.output(0) and job["id"] not in page.output(0)


def test_a_flood_of_output_leaves_the_card_and_the_last_lines(open_page: Open) -> None:
    page = open_page(
        IMPORT
        + """
@distributed(gpus=2, remote=True)
def flood():
    if runtime.get_global_rank() == 0:
        for number in range(100_000):
            print(number, "x" * 90)

flood.distributed()
"""
    )
    page.begin(0)
    page.wait(0)
    shown = page.cell(0).locator(".jp-Cell-outputArea")
    eventually(lambda: "SUCCEEDED" in shown.locator("[role=group]").inner_text(), "the end on the card")
    eventually(lambda: "] 99999 " in str(shown.text_content()), "the last line")
    text = str(shown.text_content())
    assert "rate exceeded" not in text and "left out here, too much for a notebook: gpuctl logs" in text and len(text) < 3_000_000


def test_a_bar_that_a_rank_draws_is_on_the_card_while_it_grows(open_page: Open, tmp_path: Path) -> None:
    go = tmp_path / "go"
    page = open_page(
        IMPORT
        + UNTIL
        + f"""
@distributed(gpus=2, remote=True)
def work():
    import sys
    for share in (10, 20, 30):
        sys.stderr.write(f"\\repoch: {{share}}%|###")
        sys.stderr.flush()
    until({str(go)!r})
    sys.stderr.write("\\repoch: 100%|done\\n")

work.distributed()
"""
    )
    page.begin(0)
    card = page.cell(0).locator("[role=group]")
    eventually(lambda: card.count() and "[0] epoch: 30%|###" in card.inner_text(), "the bar on the card")
    page.shoot("bar")
    go.touch()
    page.wait(0)
    eventually(lambda: "SUCCEEDED" in card.inner_text(), "the end on the card")
    assert "epoch" not in card.inner_text()
    assert "[0] epoch: 100%|done" in page.output(0) and "[1] epoch: 100%|done" in page.output(0) and "30%" not in page.output(0)
