# SPDX-License-Identifier: Apache-2.0
"""The charts of the web page in a real browser, what pointer and keys do with them, runs that are compared, and files that are shown."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from harness import PATIENCE, ROOT, Cluster, eventually
from reader import BLUE, IMAGE, ORANGE, SCRIPT, Reader, drag, drawn, in_chromium, legend, opened, point, rows, with_axe

pytestmark = in_chromium

MLFLOW = "/api/2.0/mlflow"
BEGIN_MS = 1_700_000_000_000
BLUE_AT_NIGHT = (125, 159, 255)


def experiment(cluster: Cluster, name: str) -> str:
    return str(cluster.api.post(f"{MLFLOW}/experiments/create", {"name": name})["experiment_id"])


def run(cluster: Cluster, inside: str, name: str, params: dict[str, str], metrics: dict[str, list[Any]], start: int = BEGIN_MS) -> str:
    """A run whose metrics have a value each second, from step 0 on."""
    made = cluster.api.post(f"{MLFLOW}/runs/create", {"experiment_id": inside, "run_name": name, "start_time": start})
    made_id = str(made["run"]["info"]["run_id"])
    points = []
    for key, values in metrics.items():
        points += [{"key": key, "value": value, "step": step, "timestamp": start + 1000 * step} for step, value in enumerate(values)]
    logged = {"run_id": made_id, "params": [{"key": key, "value": value} for key, value in params.items()], "metrics": points}
    cluster.api.post(f"{MLFLOW}/runs/log-batch", logged)
    cluster.api.post(f"{MLFLOW}/runs/update", {"run_id": made_id, "status": "FINISHED", "end_time": start + 60000})
    return made_id


def chart_of(reader: Reader, name: str) -> tuple[Any, Any]:
    """The picture of a chart and the figure around it."""
    chart = reader.tab.get_by_role("img", name=name)
    reader.awaits(chart, f"the chart {name}")
    return chart, reader.tab.locator("figure", has=chart)


def test_a_chart_shows_values_under_the_pointer_zooms_and_follows_the_keys(cluster: Cluster, browser: Any) -> None:
    inside = experiment(cluster, "charts")
    made = run(cluster, inside, "line", {}, {"loss": [100 - step for step in range(101)]})
    reader = opened(browser, cluster.api, cluster.url, f"/experiments/{inside}/runs/{made}")
    chart, figure = chart_of(reader, "loss over steps: last 0, from 0 to 100")
    eventually(lambda: drawn(chart, BLUE) > 100, "the line")
    assert legend(figure) == ["step 100", "0"]
    point(reader, chart, 0)
    eventually(lambda: legend(figure) == ["step 0", "100"], "the value on the left")
    drag(reader, chart, 0.5, 0.9)
    point(reader, chart, 0)
    eventually(lambda: legend(figure) == ["step 50", "50"], "the value on the left of what was dragged over")
    reader.tab.mouse.dblclick(*[figure.bounding_box()[side] + 120 for side in "xy"])
    point(reader, chart, 0)
    eventually(lambda: legend(figure) == ["step 0", "100"], "all to be shown again")
    reader.tab.mouse.move(0, 0)
    eventually(lambda: legend(figure) == ["step 100", "0"], "the last value without a pointer")
    drag(reader, chart, 0.5, 0.9)
    reader.tab.mouse.move(0, 0)
    chart.focus()
    chart.press("Escape")
    for _ in range(3):
        chart.press("ArrowRight")
    eventually(lambda: legend(figure) == ["step 2", "98"], "the third step")
    chart.press("ArrowLeft")
    eventually(lambda: legend(figure) == ["step 1", "99"], "the second step")
    reader.context.close()


def test_a_part_that_is_looked_at_stays_when_values_come(cluster: Cluster, browser: Any) -> None:
    inside = experiment(cluster, "live")
    made = run(cluster, inside, "live", {}, {"loss": list(range(101))})
    cluster.api.post(f"{MLFLOW}/runs/update", {"run_id": made, "status": "RUNNING"})
    reader = opened(browser, cluster.api, cluster.url, f"/experiments/{inside}/runs/{made}")
    chart, figure = chart_of(reader, "loss over steps: last 100,")
    drag(reader, chart, 0.5, 0.9)
    cluster.api.post(f"{MLFLOW}/runs/log-metric", {"run_id": made, "key": "loss", "value": 7, "step": 200, "timestamp": BEGIN_MS})
    chart, figure = chart_of(reader, "loss over steps: last 7,")
    reader.tab.mouse.move(0, 0)
    point(reader, chart, 0)
    eventually(lambda: legend(figure) == ["step 50", "50"], "the part that was dragged over")
    chart.press("Escape")
    point(reader, chart, 1)
    eventually(lambda: legend(figure) == ["step 200", "7"], "the value that came")
    reader.context.close()


def test_without_what_draws_charts_their_values_are_still_said(cluster: Cluster, browser: Any) -> None:
    inside = experiment(cluster, "undrawn")
    made = run(cluster, inside, "line", {}, {"loss": [3, 1, 2]})
    reader = Reader(browser)
    reader.tab.route("**/uPlot*", lambda route: route.abort())
    code = cluster.api.post("/v1/session/codes")["code"]
    reader.tab.goto(f"{cluster.url}/#code={code}&to=/experiments/{inside}/runs/{made}")
    reader.sees("What draws charts could not be fetched. Load the page again.")
    _, figure = chart_of(reader, "loss over steps: last 2, from 1 to 3")
    assert legend(figure) == ["step 2", "2"]
    reader.tab.unroute("**/uPlot*")
    reader.tab.reload()
    chart, _ = chart_of(reader, "loss over steps")
    eventually(lambda: drawn(chart, BLUE), "the line")
    reader.context.close()


def test_points_that_got_no_answer_are_asked_for_again(cluster: Cluster, browser: Any) -> None:
    inside = experiment(cluster, "unanswered")
    made = run(cluster, inside, "line", {}, {"loss": [3, 1, 2]})
    reader = opened(browser, cluster.api, cluster.url, "/jobs")
    reader.sees("jobs")
    refused: list[str] = []

    def answer(route: Any) -> None:
        if refused:
            route.continue_()
        else:
            refused.append(route.request.url)
            route.fulfill(status=503, json={"error_code": "TEMPORARILY_UNAVAILABLE", "message": "too many at once"})

    reader.tab.route("**/metrics/get-history?*", answer)
    reader.tab.goto(f"{cluster.url}/#/experiments/{inside}/runs/{made}")
    chart_of(reader, "loss over steps: last 2, from 1 to 3")
    assert len(refused) == 1
    reader.context.close()


def test_a_chart_follows_the_width_of_the_page_and_its_colours(cluster: Cluster, browser: Any) -> None:
    inside = experiment(cluster, "colours")
    made = run(cluster, inside, "line", {}, {"loss": [3, 1, 2]})
    reader = opened(browser, cluster.api, cluster.url, f"/experiments/{inside}/runs/{made}")
    chart, _ = chart_of(reader, "loss over steps")
    eventually(lambda: drawn(chart, BLUE), "the line")
    reader.tab.emulate_media(color_scheme="dark")
    eventually(lambda: drawn(chart, BLUE_AT_NIGHT) and not drawn(chart, BLUE), "the line in a colour for the dark")
    reader.tab.set_viewport_size({"width": 400, "height": 900})
    eventually(lambda: chart.locator("canvas").bounding_box()["width"] == chart.bounding_box()["width"], "a chart as wide as its place")
    assert reader.fits() and reader.said == [] and chart.locator("canvas").count() == 1
    reader.context.close()


def test_a_gap_stays_a_gap(cluster: Cluster, browser: Any) -> None:
    inside = experiment(cluster, "gaps")
    made = run(cluster, inside, "gap", {}, {"whole": [1] * 9, "holed": [1, 1, "NaN", "NaN", "NaN", "NaN", 1, 1, 1]})
    reader = opened(browser, cluster.api, cluster.url, f"/experiments/{inside}/runs/{made}")
    whole, _ = chart_of(reader, "whole over steps")
    holed, _ = chart_of(reader, "holed over steps: last 1, from 1 to 1")
    eventually(lambda: drawn(whole, BLUE) and drawn(holed, BLUE), "both lines")
    assert drawn(holed, BLUE) < 0.75 * drawn(whole, BLUE)
    reader.context.close()


def test_runs_are_selected_and_compared(cluster: Cluster, browser: Any) -> None:
    inside = experiment(cluster, "comparison")
    note = {"note": SCRIPT, "picture": IMAGE}
    first = run(cluster, inside, IMAGE, {"lr": "0.1", **note}, {"loss": [5, 4, 3], "alone": [1, 2]})
    second = run(cluster, inside, IMAGE, {"lr": "0.25", **note}, {"loss": [9, 8, 7, 6]}, start=BEGIN_MS + 5_000_000)
    run(cluster, inside, "other", {"lr": "7"}, {"loss": [1, 1]})
    reader = opened(browser, cluster.api, cluster.url, f"/experiments/{inside}")
    reader.sees("lr", "0.1", "0.25", SCRIPT[:24], "other")
    assert reader.tab.get_by_role("link", name="Compare").count() == 0
    for box in (1, 0):
        reader.tab.get_by_label(f"Select run {IMAGE}").nth(box).check()
    eventually(lambda: reader.tab.url.endswith(f"runs={first},{second}"), "the runs in the address")
    reader.shoot("page-runs-selected")
    reader.tab.reload()
    reader.sees("Compare 2")
    reader.tab.get_by_role("link", name="Compare 2").click()
    names = [f"{IMAGE} ({made[:8]})" for made in (first, second)]
    reader.sees("2 runs compared", *names)
    chart, figure = chart_of(reader, "loss over steps")
    eventually(lambda: drawn(chart, BLUE) and drawn(chart, ORANGE), "a line for each run")
    assert legend(figure) == ["step 3", f"{names[0]} 3", f"{names[1]} 6"]
    point(reader, chart, 0)
    eventually(lambda: legend(figure) == ["step 0", f"{names[0]} 5", f"{names[1]} 9"], "both values of a step")
    assert reader.tab.get_by_role("img", name="alone").count() == 0  # only one of them has it
    marked = reader.tab.locator("tr.marked").all_inner_texts()
    assert [row.split() for row in marked] == [["lr", "differs", "0.1", "0.25"]]
    assert any(row.split() == ["loss", "3", "6"] for row in rows(reader)) and any(row.split() == ["alone", "2"] for row in rows(reader))
    reader.tab.get_by_label("X axis").select_option("time")
    timed, figure = chart_of(reader, "loss over time")
    eventually(lambda: legend(figure)[0] == "after 3.0 s", "the time since the start of each")
    assert reader.tab.url.endswith("x=time")
    reader.shoot("page-compare")
    assert reader.said == [] and reader.fits() and reader.tab.evaluate("window.ran") is None
    assert reader.tab.locator("main script, main img").count() == 0
    reader.tab.get_by_role("link", name=names[0]).first.click()
    reader.sees("Parameters", first)
    reader.context.close()


def test_a_dozen_runs_are_compared_and_the_page_says_what_is_left_out(cluster: Cluster, browser: Any) -> None:
    inside = experiment(cluster, "dozens")
    made = [run(cluster, inside, f"run {number}", {"seed": str(number)}, {"loss": [number, number + 1]}) for number in range(13)]
    gone = "0" * 32
    reader = opened(browser, cluster.api, cluster.url, f"/experiments/{inside}/compare?runs={','.join(made)}", width=400, dark=True)
    reader.sees("12 runs compared", "13 runs are selected, and 12 are compared: the first ones.", "run 11")
    _, figure = chart_of(reader, "loss over steps")
    eventually(lambda: len(legend(figure)) == 13 and legend(figure)[12] == "run 11 12", "a line for each of twelve")
    assert "run 12" not in reader.text() and reader.fits()
    reader.shoot("page-compare-narrow")
    reader.tab.goto(f"{cluster.url}/#/experiments/{inside}/compare?runs={made[0]},{gone},'OR")
    reader.sees("1 run compared", "1 of the selected runs is not in this experiment, or deleted.")
    reader.tab.goto(f"{cluster.url}/#/experiments/{inside}/compare")
    reader.sees("No run is selected")
    assert reader.said == []
    reader.context.close()


MEASURE = """
import os, time
from serverless_gpu import runtime

for step in range(5):
    runtime.log_metric("loss", 10 - step, step=step)
    time.sleep(0.3)
while not os.path.exists(os.environ["GO"]):
    time.sleep(0.05)
"""


def test_a_job_shows_its_metrics_and_its_nodes_over_one_time(cluster: Cluster, browser: Any, tmp_path: Path) -> None:
    def samples(route: Any) -> None:
        now = int(time.time() * 1000)
        gpu = {
            "index": 0,
            "uuid": "G0",
            "utilization_percent": [90, 80],
            "memory_bytes": [1, 1],
            "power_w": [1, 1],
            "temperature_c": [1, 1],
        }
        gpus = [gpu, {**gpu, "index": 1, "uuid": "G1"}]
        route.fulfill(json={"node": "node0", "at_ms": [now - 1000, now], "cpu_percent": [1, 2], "memory_bytes": [1, 2], "gpus": gpus})

    go = tmp_path / "go"
    path = os.pathsep.join([str(ROOT / "client" / "python" / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    job = cluster.api.submit([sys.executable, "-c", MEASURE], name="measures", env={"PYTHONPATH": path, "GO": str(go)})
    eventually(lambda: cluster.api.get(f"/v1/jobs/{job}/runs")["runs"], "the run", 3 * PATIENCE)
    reader = opened(browser, cluster.api, cluster.url, "/jobs")
    reader.tab.route("**/samples?*", samples)
    reader.tab.goto(f"{cluster.url}/#/jobs/{job}")
    loss, loss_figure = chart_of(reader, "loss over time")
    use, use_figure = chart_of(reader, "GPU utilization in percent over time")
    eventually(lambda: drawn(loss, BLUE) and drawn(use, BLUE), "both charts")
    assert loss_figure.bounding_box()["y"] < use_figure.bounding_box()["y"]
    go.touch()
    cluster.api.wait(job, 3 * PATIENCE)
    reader.sees("SUCCEEDED", "Where the time went")
    eventually(lambda: "last 6, from 6 to 10" in str(loss.get_attribute("aria-label")), "all that was logged")
    point(reader, loss, 0)
    eventually(lambda: legend(loss_figure)[1:] == ["10"] and legend(use_figure)[1].endswith(" 90"), "the values of one moment in both")
    begin = legend(loss_figure)[0]
    point(reader, loss, 1)
    end = eventually(lambda: legend(loss_figure)[0] != begin and legend(loss_figure)[0], "the last moment")
    point(reader, use, 1)
    eventually(lambda: legend(use_figure)[0] == legend(loss_figure)[0] == end, f"the same last moment in the other chart, {end}")
    reader.shoot("page-job-charts")
    assert reader.said == [] and reader.fits()
    reader.context.close()


def test_what_gpus_used_is_drawn_over_the_time(cluster: Cluster, browser: Any) -> None:
    def samples(route: Any) -> None:
        now = int(time.time() * 1000)
        gpus = [
            {"index": index, "uuid": f"G{index}", "utilization_percent": [10 * index, 50, None, 80, 90 - index],
             "memory_bytes": [1 << 30] * 5, "power_w": [None] * 5, "temperature_c": [60, 61, 62, 63, 64]}
            for index in range(2)
        ]  # fmt: skip
        times = [now - ago for ago in (120000, 90000, 60000, 30000, 0)]
        route.fulfill(json={"node": "node0", "at_ms": times, "cpu_percent": [1, 2, 3, 4, 5], "memory_bytes": [1, 2, 3, 4, 5], "gpus": gpus})

    reader = opened(browser, cluster.api, cluster.url, "/nodes")
    reader.tab.route("**/samples?*", samples)
    reader.tab.locator("tbody").get_by_role("link", name="node0").click()
    chart = reader.tab.get_by_role("img", name="GPU utilization in percent over time")
    eventually(lambda: all(drawn(chart, colour) for colour in (BLUE, ORANGE)), "a line for each GPU")
    assert reader.tab.get_by_role("img", name="GPU temperature in °C over time").count() == 1
    assert reader.tab.get_by_role("img", name="GPU power in watts over time").count() == 0
    reader.shoot("page-node-use")
    assert reader.said == [] and reader.fits()
    reader.context.close()


def test_files_are_shown_as_what_they_are(cluster: Cluster, browser: Any) -> None:
    inside = experiment(cluster, "files")
    made = run(cluster, inside, "filed", {}, {})
    uri = cluster.api.get(f"{MLFLOW}/runs/get?run_id={made}")["run"]["info"]["artifact_uri"].removeprefix("mlflow-artifacts:/").strip("/")
    files = {
        "cells.csv": f'name,"two ""words"""\r\n"{IMAGE}, and\na line",1\r\n' + "".join(f"row {number},{number}\n" for number in range(300)),
        "logged.json": json.dumps({"columns": ["prompt", "tokens"], "data": [[SCRIPT, 7], [None, 8]]}),
        "plain.json": '{"a":{"b":[1,2]}}',
        "long.txt": "0123456789abcde\n" * 20000,
        "bytes.bin": "\0\1\2",
    }
    for name, text in files.items():
        cluster.api.raw("PUT", f"/api/2.0/mlflow-artifacts/artifacts/{uri}/{name}", text.encode())
    reader = opened(browser, cluster.api, cluster.url, f"/experiments/{inside}/runs/{made}")
    reader.sees(*files)

    def show(name: str) -> Any:
        item = reader.tab.locator("li", has=reader.tab.get_by_text(name, exact=True))
        item.get_by_role("button", name="Show").click()
        eventually(lambda: item.locator(".shown").inner_text(), f"what is in {name}")
        return item.locator(".shown")

    cells = show("cells.csv")
    assert cells.locator("th").all_inner_texts() == ["name", 'two "words"']
    assert cells.locator("td").first.inner_text() == f"{IMAGE}, and\na line" and cells.locator("tbody tr").count() == 200
    assert "The first 200 rows and 2 columns." in cells.inner_text()
    table = show("logged.json")
    assert table.locator("td").all_inner_texts() == [SCRIPT, "7", "null", "8"]
    assert show("plain.json").locator("pre").inner_text() == json.dumps(json.loads(files["plain.json"]), indent=2).replace(
        "[\n      1", "[\n      1"
    )
    long = show("long.txt")
    assert len(long.locator("pre").inner_text()) <= 256 * 1024 and "The first 256 KiB of 313 KiB. A download has all." in long.inner_text()
    assert show("bytes.bin").inner_text() == "This file is no text."
    reader.shoot("page-files")
    with reader.tab.expect_download() as download:
        reader.tab.locator("li", has=reader.tab.get_by_text("long.txt", exact=True)).get_by_role("button", name="Download").click()
    assert Path(download.value.path()).read_text() == files["long.txt"]
    assert reader.said == [] and reader.fits() and reader.tab.evaluate("window.ran") is None
    reader.context.close()


@pytest.mark.thorough
@with_axe
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_has_no_findings_in_runs_and_their_comparison(cluster: Cluster, browser: Any, dark: bool) -> None:
    inside = experiment(cluster, f"axe {dark}")
    made = [run(cluster, inside, f"run {number}", {"seed": str(number), "same": "yes"}, {"loss": [1, number]}) for number in range(10)]
    reader = opened(browser, cluster.api, cluster.url, f"/experiments/{inside}?runs={made[0]}", dark=dark)
    reader.sees("Compare 1")
    for view in (f"?runs={made[0]}", f"/runs/{made[0]}", f"/compare?runs={','.join(made)}"):
        reader.tab.goto(f"{cluster.url}/#/experiments/{inside}{view}")
        reader.sees("loss", "run 0")
        assert reader.findings() == []
    reader.context.close()


KEEPS = """
import os
from pathlib import Path
from serverless_gpu import runtime
runtime.log_metric("loss", 1.0)
kept = Path(os.environ["GPUCTL_OUTPUT_DIR"], "model")
kept.mkdir()
(kept / "config.json").write_text('{"layers": 12}')
"""


def test_the_page_of_a_run_has_what_its_ranks_kept_among_the_artifacts(cluster: Cluster, browser: Any) -> None:
    path = os.pathsep.join([str(ROOT / "client" / "python" / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    job = cluster.api.submit([sys.executable, "-c", KEEPS], name="keeps", env={"PYTHONPATH": path})
    assert cluster.api.wait(job)["state"] == "SUCCEEDED", cluster.api.log(job, stream="stderr")
    (run,) = eventually(lambda: cluster.api.get(f"/v1/jobs/{job}/runs")["runs"], "the run", 3 * PATIENCE)
    reader = opened(browser, cluster.api, cluster.url, f"/experiments/{run['experiment_id']}/runs/{run['run_id']}")
    reader.sees("Artifacts", "gpuctl.outputs")
    for folder in ("gpuctl.outputs", "0", "model"):
        reader.tab.locator("summary", has_text=re.compile(f"^{re.escape(folder)}$")).click()
    reader.sees("config.json", "14 B")
    reader.tab.get_by_role("button", name="Show").click()
    reader.sees('"layers": 12')
    with reader.tab.expect_download() as download:
        reader.tab.get_by_role("button", name="Download").click()
    assert Path(download.value.path()).read_text() == '{"layers": 12}'
    reader.shoot("page-run-kept")
    assert reader.said == [] and reader.fits()
    reader.context.close()
