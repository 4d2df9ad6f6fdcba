# SPDX-License-Identifier: Apache-2.0
"""The map of GPUs on the web page: who holds each, what the colours show, and that a large cluster stays light."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness import Cluster, eventually
from reader import Reader, in_chromium, opened, with_axe

pytestmark = in_chromium

STATES = ("free", "allocated", "unavailable", "silent", "drained")
NODE_STATES = {"silent": "SUSPECT", "drained": "DRAINED"}


#: Counts what is changed in the map.
COUNT_CHANGES = """() => {
    window.changed = 0;
    const all = {subtree: true, childList: true, attributes: true, characterData: true};
    new MutationObserver((changes) => { window.changed += changes.length; }).observe(document.querySelector(".map"), all);
}"""


def made_gpu(node: int, index: int, state: str, use: int) -> dict[str, Any]:
    """A row of GET /v1/gpus."""
    owner = f"owner{(node + index) % 11}"
    holder = {"job": "aaaaaaaaaaaaaaaa", "name": None, "owner": owner, "project": "p", "rank": index, "since": "2026-11-27T06:00:00Z"}
    return {
        "node": f"node-{node:04}", "index": index, "uuid": f"GPU-{node}-{index}", "gpu_type": "H100", "slot": False,
        "pool": f"pool{node % 2}", "pool_kind": "on-demand", "node_state": NODE_STATES.get(state, "READY"), "state": state,
        "unavailable": "MIG is enabled" if state == "unavailable" else None, "holder": holder if state == "allocated" else None,
        "sample": {
            "age_s": 1, "utilization_percent": use % 101, "memory_bytes": use << 28, "memory_total_bytes": 80 << 30, "power_w": 300,
            "temperature_c": 30 + use % 65,
        } if state != "silent" else None,
    }  # fmt: skip


def state_of(node: int, index: int) -> str:
    """Of 40 nodes the first have all their GPUs in one state, each another."""
    return STATES[node % 40] if node % 40 < len(STATES) else STATES[(node + index) % 2]


class MadeGpus:
    """Answers of a cluster that there is not: nodes of 8 GPUs, some in each state, in pages of 1,000."""

    def __init__(self, nodes: int):
        self.nodes = nodes
        self.asked = 0  # first pages
        self.salt = 0  # another one: other figures

    def answer(self, route: Any) -> None:
        first = int(route.request.url.partition("cursor=")[2] or 0)
        self.asked += first == 0
        gpus = [
            made_gpu(node, index, state_of(node, index), 13 * node + 7 * index + self.salt)
            for node in range(first, min(first + 125, self.nodes))
            for index in range(8)
        ]
        later = first + 125
        route.fulfill(body=json.dumps({"gpus": gpus, "next": str(later) if later < self.nodes else None}), content_type="application/json")


def gpu(reader: Reader, name: str) -> Any:
    return reader.tab.get_by_role("link", name=name)


def test_the_map_shows_who_holds_a_gpu_and_its_colours_stand_in_the_address(cluster: Cluster, browser: Any, tmp_path: Path) -> None:
    go = tmp_path / "go"
    job = cluster.user("mapper").submit(["sh", "-c", f"until [ -e {go} ]; do sleep 0.05; done"], gpus=2, placement="pack", name="drawn")
    cluster.wait_state(job, "RUNNING")
    eventually(lambda: len(cluster.api.get("/v1/gpus?owner=mapper")["gpus"]) == 2, "the holders to be collected")
    node = cluster.api.get("/v1/gpus?owner=mapper")["gpus"][0]["node"]
    reader = opened(browser, cluster.api, cluster.url, "/nodes")
    reader.sees("GPU by GPU", "allocated: 2", "free: 2")
    held = gpu(reader, f"CPU slot 1 of {node}, cpu: allocated, job {job} (drawn) of mapper, rank 1")
    held.hover()
    assert held.get_attribute("data-sign") == "A" and held.get_attribute("title") == held.get_attribute("aria-label")
    reader.tab.get_by_label("Colour by").select_option("owner")
    reader.sees("mapper: 2", "nobody: 2")
    assert reader.tab.url.endswith("#/nodes?colour=owner") and held.get_attribute("data-sign") == "mr"
    reader.tab.reload()
    reader.sees("mapper: 2")
    reader.shoot("page-map")
    stranger = opened(browser, cluster.user("stranger"), cluster.url, "/nodes?colour=owner")
    stranger.sees("somebody else: 2", "nobody: 2")
    assert "mapper" not in stranger.text() and stranger.tab.locator(".map button").count() == 0
    reader.tab.goto(f"{cluster.url}/#/nodes/{node}")
    reader.sees("Jobs now", "drawn", "mapper", "0, 1")
    reader.tab.goto(f"{cluster.url}/#/nodes?colour=none")
    reader.sees("allocated: 2")
    held.click()
    reader.sees("drawn", "RUNNING", "Output")
    go.touch()
    cluster.api.wait(job)
    for one in (reader, stranger):
        assert one.said == [] and one.fits()
        one.context.close()


def test_a_node_is_drained_on_the_map_and_keys_lead_through_it(cluster: Cluster, browser: Any) -> None:
    first, second = sorted(cluster.nodes())
    window = cluster.api.post("/v1/windows", {"nodes": [first], "from": "2099-01-01T08:00:00Z", "until": "2099-01-01T10:00:00Z"})["id"]
    reader = opened(browser, cluster.api, cluster.url, "/nodes")
    reader.sees("GPU by GPU", "free: 4")
    reader.tab.get_by_role("button", name=f"Drain {first}", exact=True).click()
    reader.sees("free: 2", "its node takes no new work: 2")
    reader.tab.get_by_role("button", name=f"Resume {first}", exact=True).click()
    reader.sees("free: 4")
    focused = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText"
    reader.tab.locator(".node-box .name").first.focus()
    way = {"Right": [f"CPU slot 0 of {first}", f"CPU slot 1 of {first}", f"CPU slot 1 of {first}"], "Down": [f"CPU slot 1 of {second}"],
           "Left": [f"CPU slot 0 of {second}", second], "Up": [first]}  # fmt: skip
    for key, there in [(f"Arrow{key}", there) for key, places in way.items() for there in places]:
        reader.tab.keyboard.press(key)
        assert str(reader.tab.evaluate(focused)).startswith(there), key
    reader.tab.keyboard.press("Enter")
    reader.sees("Jobs now", "None.", "Window", "2099-01-01")
    cluster.api.call("DELETE", f"/v1/windows/{window}")
    assert reader.said == [] and reader.fits()
    reader.context.close()


@pytest.mark.thorough
@with_axe
@pytest.mark.parametrize(("dark", "width"), [(False, 1300), (True, 400)], ids=["light", "dark-narrow"])
def test_axe_has_no_findings_whatever_the_colours_show(cluster: Cluster, browser: Any, dark: bool, width: int) -> None:
    reader = opened(browser, cluster.api, cluster.url, "/", dark=dark, width=width)
    reader.sees("Overview")
    reader.tab.route("**/v1/gpus*", MadeGpus(44).answer)
    findings = []
    modes = {"health": "its node is silent: 16", "use": "90 % and more", "owner": "owner10", "temperature": "85 °C and more"}
    for colour, words in modes.items():
        reader.tab.goto(f"{cluster.url}/#/nodes?colour={colour}")
        reader.sees(words, "pool1 (on-demand): 176 on 22 nodes")
        reader.shoot(f"page-map-{colour}-{'dark' if dark else 'light'}")
        findings += reader.findings()
    assert findings == [] and reader.said == [] and reader.fits()
    reader.context.close()


@pytest.mark.thorough
def test_eight_thousand_gpus_are_drawn_once_and_later_only_what_changes(cluster: Cluster, browser: Any) -> None:
    reader = opened(browser, cluster.api, cluster.url, "/")
    reader.sees("Overview")
    made = MadeGpus(1000)
    reader.tab.route("**/v1/gpus*", made.answer)
    reader.tab.goto(f"{cluster.url}/#/nodes?colour=use")
    eventually(lambda: reader.tab.locator(".gpu[href]").count() == 8000, "all GPUs")
    reader.tab.evaluate(COUNT_CHANGES)
    asked = made.asked
    eventually(lambda: reader.tab.locator("h1").count() and made.asked == asked + 2, "two renewals")
    assert reader.tab.evaluate("window.changed") == 0
    made.salt = 1
    eventually(lambda: reader.tab.evaluate("window.changed") > 8000, "other figures to be drawn")
    assert reader.said == []
    reader.context.close()
