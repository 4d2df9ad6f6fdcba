# SPDX-License-Identifier: Apache-2.0
"""What another policy would have meant, on the page Queue: the form, the comparison, and what is said when there is none."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from harness import Cluster, eventually
from history import fill
from reader import Reader, in_chromium, opened, with_axe

pytestmark = in_chromium

OTHERS = ("easy", "fifo", "sjf")


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with some hundred jobs of two users in the last 20 days, and too few GPUs for them."""
    cluster = Cluster(tmp_path_factory.mktemp("past"), [2, 2]).start()
    cluster.api.wait(cluster.api.submit(["true"]))
    fill(cluster, 300, over=20, gpus=[1, 1, 1, 2, 4, 8], run_s=9000, owners=["ann", "bob"])
    yield cluster
    cluster.stop()


def button(reader: Reader, name: str) -> Any:
    return reader.tab.get_by_role("button", name=name, exact=True)


def compared(reader: Reader) -> list[list[str]]:
    """The table of policies, its cells as texts."""
    table = reader.tab.get_by_role("region", name="Comparison").locator("table").first
    table.wait_for()
    return [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]


def test_the_comparison_has_the_figures_of_the_controller_and_says_what_differs(past: Cluster, browser: Any) -> None:
    reader = opened(browser, past.api, past.url, "/queue")
    reader.sees("What another policy would have meant")
    reader.tab.get_by_label("Jobs of the last").select_option("30d")
    reader.tab.get_by_label("sjf: the shortest first").uncheck()
    button(reader, "Compare").focus()
    reader.tab.keyboard.press("Enter")
    cells = compared(reader)
    answer = past.api.post("/v1/simulations", {"policies": ["default", "easy", "fifo"], "since": "30d"})
    assert [row[0].splitlines() for row in cells] == [["default", "as it is"], ["easy"], ["fifo"]]
    assert all("\n" not in cell for cell in cells[0][1:])
    now, _, fifo = answer["results"]
    part = fifo["avg_wait_s"] / now["avg_wait_s"]
    expected = f"{part:.1f} times as long" if part >= 2 else f"{round(100 * abs(part - 1))} % {'longer' if part > 1 else 'shorter'}"
    assert cells[2][1].splitlines()[1] == expected and cells[2][7].startswith(f"{100 * fifo['utilization']:.1f} %")
    assert [row[8].splitlines() for row in cells] == [["0"], ["0", "the same"], ["0", "the same"]]
    reader.sees(
        "301 jobs of the last 30d, on the nodes that take work now (2x2:cpu)",
        f"{now['refused']} jobs could never run on these nodes, the first because",
        "user ann", "project of-bob",
    )  # fmt: skip
    drawn = reader.tab.get_by_role("img", name="Average wait: default")
    assert drawn.locator("rect").count() == 3
    widths = [float(bar.get_attribute("width") or 0) for bar in drawn.locator("rect").all()]
    waits = [result["avg_wait_s"] for result in answer["results"]]
    assert widths == pytest.approx([200 * wait / max(waits) for wait in waits], rel=0.01)
    assert button(reader, "Compare").evaluate("one => one === document.activeElement")
    reader.shoot("page-what-if")
    assert reader.fits() and reader.said == []
    reader.context.close()


def test_the_same_is_a_line_for_gpuctl_and_for_curl(past: Cluster, browser: Any) -> None:
    reader = opened(browser, past.api, past.url, "/queue")
    reader.sees("The same elsewhere")
    reader.tab.get_by_label("fifo: the oldest first").uncheck()
    assert reader.tab.get_by_label("Command").input_value() == "gpuctl simulate --history --since 7d --policy default,easy,sjf"
    words = shlex.split(reader.tab.get_by_label("The same with curl").input_value())
    assert words[:2] == ["curl", f"{past.url}/v1/simulations"]
    assert json.loads(words[-1]) == {"policies": ["default", "easy", "sjf"], "since": "7d"}
    button(reader, "Copy").first.click()
    reader.sees("Copied")
    for name in ("easy", "sjf"):
        reader.tab.get_by_label(f"{name}: ").uncheck()
    assert button(reader, "Compare").is_disabled()
    reader.context.close()


def test_too_few_jobs_are_not_compared(past: Cluster, browser: Any) -> None:
    reader = opened(browser, past.user("newcomer"), past.url, "/queue")
    button(reader, "Compare").click()
    reader.sees("No job of the last 7d ran and has ended: fewer than 20 are too few to compare.")
    reader.context.close()
    reader = opened(browser, past.user("admin"), past.url, "/queue")  # the owner of the one job that really ran
    button(reader, "Compare").click()
    reader.sees("Only 1 job of the last 7d ran and has ended: fewer than 20 are too few to compare.")
    assert reader.tab.get_by_role("region", name="Comparison").count() == 0
    reader.context.close()


def test_a_run_can_be_stopped_and_a_refusal_is_told(past: Cluster, browser: Any) -> None:
    reader = opened(browser, past.api, past.url, "/queue")
    ended: list[str] = []
    reader.tab.on("requestfailed", lambda request: ended.append(request.url))
    reader.tab.route("**/v1/simulations", lambda _: None)  # no answer comes
    button(reader, "Compare").click()
    reader.sees("The jobs are being replayed")
    assert reader.tab.get_by_label("Jobs of the last").is_disabled()
    button(reader, "Stop").click()
    button(reader, "Compare").wait_for()
    # the question to the page lets its events come
    eventually(lambda: reader.text() and any(url.endswith("/v1/simulations") for url in ended), "the request to be ended")
    assert "being replayed" not in reader.text()
    reader.tab.unroute("**/v1/simulations")
    problem = json.dumps({"status": 429, "detail": "the controller is busy with other simulations", "hint": "ask again in a minute"})
    refusal = {"status": 429, "body": problem, "content_type": "application/problem+json"}
    reader.tab.route("**/v1/simulations", lambda route: route.fulfill(**refusal))
    button(reader, "Compare").click()
    reader.tab.get_by_role("alert").wait_for()
    reader.sees("the controller is busy with other simulations")
    reader.context.close()


def test_what_was_left_out_is_told(past: Cluster, browser: Any) -> None:
    answer = past.api.post("/v1/simulations", {"policies": ["default", "easy"]})
    reader = opened(browser, past.api, past.url, "/queue")
    cut = {**answer, "more": True, "cut": ["fifo", "sjf"], "not_run": 3}
    reader.tab.route("**/v1/simulations", lambda route: route.fulfill(body=json.dumps(cut), content_type="application/json"))
    button(reader, "Compare").click()
    reader.sees(
        "Only the newest 301 are replayed: those since", "3 jobs that never ran are left out.",
        "The time was over before fifo and sjf could be replayed",
    )  # fmt: skip
    reader.context.close()


@with_axe
@pytest.mark.parametrize(("width", "dark"), [(1300, False), (390, True)])
def test_the_comparison_fits_a_phone_and_is_clear_to_all(past: Cluster, browser: Any, width: int, dark: bool) -> None:
    reader = opened(browser, past.user("ann"), past.url, "/queue", width=width, dark=dark)
    reader.tab.get_by_label("Jobs of the last").select_option("30d")
    button(reader, "Compare").click()
    assert len(compared(reader)) == 1 + len(OTHERS)
    reader.shoot(f"page-what-if-{width}")
    assert reader.fits() and reader.findings() == [] and reader.said == []
    reader.context.close()
