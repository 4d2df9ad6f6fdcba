# SPDX-License-Identifier: Apache-2.0
"""The list of jobs on the web page: very long, always new, sorted, and used without a mouse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from harness import Api, Cluster, eventually
from reader import Reader, in_chromium, opened

pytestmark = in_chromium

MANY = 2500  #: jobs: twelve answers and a half
ROW = 38  #: pixels
DRAWN = 120  #: the most rows that exist at a time, in a window of 1,000 pixels


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A controller with many jobs of ann's that are held, named in the order in which they came."""
    ours = Cluster(tmp_path_factory.mktemp("many"), [1]).start()
    ann = ours.user("ann")
    for begin in range(0, MANY, 500):
        lines = "".join(json.dumps(spec(number)) + "\n" for number in range(begin, begin + 500))
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": f"from {begin}"}
        status, _, answer = ann.raw("POST", "/v1/jobs:batch", lines.encode(), headers)
        assert status == 200, answer
    yield ours
    ours.controller.kill()  # it would take a while to cancel them one by one
    ours.stop()


def spec(number: int, hold: bool = True) -> dict[str, Any]:
    return {"command": ["true"], "gpus": 1, "name": f"job-{number:05}", "hold": hold, "priority": -(number % 7)}


def count(reader: Reader) -> int:
    return int(reader.tab.get_by_role("table").get_attribute("aria-rowcount")) - 1


def shown(reader: Reader) -> list[str]:
    """The names in the rows that exist."""
    return [text.split()[-1] for text in reader.tab.locator("tbody td:nth-child(2)").all_inner_texts()]


def open_all(reader: Reader) -> None:
    older = reader.tab.get_by_role("button", name="Show older jobs")
    while older.is_visible():
        before = count(reader)
        older.click()
        eventually(lambda before=before: count(reader) > before, "older jobs")


def ids(api: Api) -> dict[str, str]:
    """The list as the API has it: ids by name."""
    found: dict[str, str] = {}
    cursor = ""
    while cursor is not None:
        page = api.get(f"/v1/jobs?limit=200{cursor and '&cursor=' + cursor}")
        found.update((job["name"], job["id"]) for job in page["jobs"])
        cursor = page["next"]
    return found


def scrolled(reader: Reader) -> list[str]:
    """All names, read while somebody scrolls from the top to the end."""
    found: dict[str, None] = {}
    for first in range(0, count(reader), 20):
        reader.tab.evaluate(f"scrollTo(0, {ROW * first})")
        for number in (first, min(first + 20, count(reader)) - 1):
            wanted = reader.tab.locator(f"tbody tr[aria-rowindex='{number + 2}']")
            eventually(lambda wanted=wanted: wanted.count() == 1, "the rows that are seen now")
        found.update(dict.fromkeys(shown(reader)))
    return list(found)


@pytest.mark.thorough
def test_of_a_long_list_the_rows_exist_that_are_seen_and_it_stays_whole_while_jobs_come_go_and_change(many: Cluster, browser: Any) -> None:
    ann = many.user("ann")
    reader = opened(browser, ann, many.url, "/jobs")
    eventually(lambda: count(reader) == 1000, "the newest thousand")
    open_all(reader)
    assert count(reader) == MANY
    assert len(shown(reader)) < DRAWN
    assert scrolled(reader) == list(ids(ann))
    assert len(shown(reader)) < DRAWN
    # Jobs come, and some of those far below are no more of the list's.
    for number in range(MANY, MANY + 30):
        ann.post("/v1/jobs", spec(number))
    gone = ids(ann)["job-00003"]
    ann.post(f"/v1/jobs/{gone}/cancel")
    many.api.call("DELETE", f"/v1/jobs/{gone}")
    eventually(lambda: count(reader) == MANY + 29, "the list to be renewed")
    eventually(lambda: "job-00003" not in shown(reader), "the job that was removed to go from the rows that somebody looks at")
    assert scrolled(reader) == list(ids(ann))
    changed = ids(ann)["job-01200"]
    ann.post(f"/v1/jobs/{changed}/cancel")
    reader.tab.evaluate(f"scrollTo(0, {ROW * (MANY + 29 - 1200)})")
    row = reader.tab.locator("tbody tr", has_text="job-01200")
    eventually(lambda: "CANCELED" in row.inner_text(), "the job far from the top to be renewed")
    assert reader.said == []
    reader.shoot("page-jobs-many")
    reader.context.close()


def test_more_new_jobs_than_an_answer_has_begin_the_list_anew(many: Cluster, browser: Any) -> None:
    ann = many.user("ann")
    reader = opened(browser, ann, many.url, "/jobs")
    eventually(lambda: count(reader) == 1000, "the newest thousand")
    reader.tab.evaluate("Object.defineProperty(document, 'visibilityState', {configurable: true, get: () => 'hidden'})")
    lines = "".join(json.dumps(spec(number)) + "\n" for number in range(3000, 3300))
    assert ann.raw("POST", "/v1/jobs:batch", lines.encode(), {"Content-Type": "application/x-ndjson", "Idempotency-Key": "more"})[0] == 200
    reader.tab.evaluate("delete document.visibilityState; document.dispatchEvent(new Event('visibilitychange'))")
    eventually(lambda: shown(reader)[:1] == ["job-03299"], "the newest")
    eventually(lambda: count(reader) >= 1000, "as many as before")
    assert scrolled(reader) == list(ids(ann))[: count(reader)]
    reader.context.close()


def test_a_column_sorts_and_the_order_stands_in_the_address(many: Cluster, browser: Any) -> None:
    reader = opened(browser, many.user("ann"), many.url, "/jobs")
    eventually(lambda: count(reader) == 1000, "the newest thousand")
    newest = shown(reader)
    header = reader.tab.get_by_role("columnheader").nth(1)
    header.get_by_role("button").click()
    eventually(lambda: header.get_attribute("aria-sort") == "ascending" and shown(reader) == sorted(shown(reader)), "the names to rise")
    assert reader.tab.url.endswith("#/jobs?sort=Job")
    header.get_by_role("button").click()
    eventually(lambda: reader.tab.url.endswith("#/jobs?sort=-Job"), "the other order")
    header.get_by_role("button").click()
    eventually(lambda: header.get_attribute("aria-sort") == "none" and shown(reader) == newest, "the order of the list")
    reader.context.close()


#: As where drawing takes longer than from one key to the next.
KEYS_WITHIN_A_FRAME = """async () => {
    for (let number = 0; number < 60; number++) {
        document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown", bubbles: true, cancelable: true}));
        await new Promise(resolve => { const {port1, port2} = new MessageChannel(); port1.onmessage = resolve; port2.postMessage(0); });
    }
}"""


def test_jobs_are_found_selected_and_left_without_a_mouse(many: Cluster, browser: Any) -> None:
    reader = opened(browser, many.user("ann"), many.url, "/")
    reader.sees("Who uses GPUs now")
    keys = reader.tab.keyboard
    keys.press("?")
    dialog = reader.tab.get_by_role("dialog", name="Keys")
    assert "g j" in dialog.inner_text()
    keys.press("Escape")
    eventually(lambda: dialog.count() == 0, "the list of keys to close")
    keys.press("g")
    keys.press("j")
    eventually(lambda: reader.tab.url.endswith("#/jobs") and reader.tab.locator("tbody tr").count() > 0, "the jobs")
    reader.tab.locator("tbody input").first.focus()
    for _ in range(60):  # beyond the rows that exist
        keys.press("ArrowDown")
    reader.tab.evaluate(KEYS_WITHIN_A_FRAME)
    keys.press("Space")
    focused = reader.tab.evaluate("document.activeElement.closest('tr').getAttribute('aria-rowindex')")
    assert (focused, reader.tab.evaluate("document.activeElement.checked")) == ("122", True)
    assert reader.tab.get_by_role("button", name="Cancel 1").is_enabled()
    keys.press("/")
    assert reader.tab.evaluate("document.activeElement.matches('main .tools select, main input[type=search]')")
    assert reader.said == []
    reader.context.close()
