# SPDX-License-Identifier: Apache-2.0
"""Webhooks on the web page: made, changed, tested and removed by a person, and what they were told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from harness import ROOT, Cluster, eventually
from reader import Reader, in_chromium, opened, rows, with_axe
from receiver import Receiver, signature

pytestmark = in_chromium


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that may tell receivers on the loopback, and tries again soon."""
    made = Cluster(tmp_path_factory.mktemp("told"), [2], controller=["--webhook-networks", "127.0.0.0/8", "--webhook-pause", "10ms"])
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


def button(reader: Reader, name: str) -> Any:
    return reader.tab.get_by_role("button", name=name, exact=True)


def field(reader: Reader, name: str) -> Any:
    return reader.tab.get_by_label(name, exact=True)


def test_a_webhook_is_made_tested_and_removed_by_keys_alone(told: Cluster, browser: Any, receiver: Receiver) -> None:
    ann = told.user("ann")
    reader = opened(browser, ann, told.url, "/")
    reader.sees("Overview")
    keys = reader.tab.keyboard
    keys.press("g")
    keys.press("w")
    reader.sees("There is none.", "A new webhook")
    field(reader, "URL").focus()
    keys.type(receiver.url)
    keys.press("Tab")
    keys.type("chat")
    keys.press("Enter")
    reader.sees("This secret is shown once", "chat", "none")
    secret = field(reader, "Secret").input_value()
    assert secret.startswith("whsec_") and field(reader, "URL").input_value() == ""
    (made,) = ann.get("/v1/webhooks")["webhooks"]
    assert (made["url"], made["name"], made["scope"], made["tasks"]) == (receiver.url, "chat", "own", False)
    assert made["events"] == ["succeeded", "failed", "canceled", "timed_out", "requeued", "idle"]
    button(reader, "I have it").press("Enter")
    eventually(lambda: secret not in reader.tab.content(), "the secret to go")
    reader.tab.get_by_role("link", name="chat").press("Enter")
    button(reader, "Send a test").press("Enter")
    eventually(lambda: receiver.got, "the test")
    headers, body = receiver.got[0]
    assert headers["webhook-signature"] == signature(secret, headers["webhook-id"], headers["webhook-timestamp"], body)
    reader.sees("test", "DELIVERED", "204")
    button(reader, "Delete").first.press("Enter")
    reader.sees("Delete the webhook chat?")
    assert reader.tab.evaluate("document.activeElement.innerText") == "Keep it"
    keys.press("Enter")
    assert ann.get("/v1/webhooks")["webhooks"] != []
    button(reader, "Delete").first.press("Enter")
    keys.press("Tab")
    keys.press("Enter")
    reader.sees("There is none.")
    assert ann.get("/v1/webhooks")["webhooks"] == [] and reader.said == [] and reader.fits()
    reader.context.close()


def test_the_secret_is_copied_by_a_button_and_is_not_shown_again(told: Cluster, browser: Any, receiver: Receiver) -> None:
    ann = told.user("ann")
    reader = opened(browser, ann, told.url, "/webhooks")
    reader.context.grant_permissions(["clipboard-read", "clipboard-write"])
    field(reader, "URL").fill(receiver.url)
    button(reader, "Make the webhook").click()
    reader.sees("This secret is shown once")
    secret = field(reader, "Secret").input_value()
    button(reader, "Copy").click()
    reader.sees("Copied")
    assert reader.tab.evaluate("navigator.clipboard.readText()") == secret
    reader.tab.reload()
    reader.sees(receiver.url)
    (made,) = ann.get("/v1/webhooks")["webhooks"]
    reader.tab.goto(f"{told.url}/#/webhooks/{made['id']}")
    reader.sees("Deliveries")
    assert secret not in reader.tab.content() and reader.said == []
    ann.call("DELETE", f"/v1/webhooks/{made['id']}")
    reader.context.close()


def test_what_is_refused_stands_at_its_field(told: Cluster, browser: Any, receiver: Receiver) -> None:
    ann = told.user("ann")
    ann.post("/v1/webhooks", {"url": receiver.url, "name": "taken"})
    reader = opened(browser, ann, told.url, "/webhooks")
    reader.sees("taken")

    def refused(name: str, *words: str) -> None:
        button(reader, "Make the webhook").click()
        reader.sees(*words)
        wrong = reader.tab.locator("[aria-invalid]")
        wrong.wait_for()
        assert wrong.count() == 1 and reader.tab.get_by_label(name, exact=True).get_attribute("aria-invalid") == "true"
        assert words[0] in reader.tab.locator(f"#{wrong.get_attribute('aria-describedby')}").inner_text()

    for url, words in {
        "": "must begin with https:// or http:// and a host",
        "https:///hook": "must begin with https:// or http:// and a host",
        "https://": "cannot be read",
        "ftp://example.com/": "http",
        "http://10.0.0.1/hook": "--webhook-networks",
    }.items():
        field(reader, "URL").fill(url)
        refused("URL", words)
    field(reader, "URL").fill(receiver.url)
    field(reader, "Name").fill("a b")
    refused("Name", "letters, digits")
    field(reader, "Name").fill("taken")
    refused("Name", "taken")
    field(reader, "Name").fill("free")
    field(reader, "Of this project alone").fill("/")
    refused("Of this project alone", "letters, digits")
    assert reader.tab.get_by_label("It is told of").locator("option").count() == 2  # all is an administrator's
    assert [hook["name"] for hook in ann.get("/v1/webhooks")["webhooks"]] == ["taken"]
    for hook in ann.get("/v1/webhooks")["webhooks"]:
        ann.call("DELETE", f"/v1/webhooks/{hook['id']}")
    assert all("422" in said or "409" in said for said in reader.said), reader.said  # Chromium's own lines about answers
    reader.context.close()


def test_a_webhook_is_changed_disabled_and_enabled(told: Cluster, browser: Any, receiver: Receiver) -> None:
    ann = told.user("ann")
    made = ann.post("/v1/webhooks", {"url": receiver.url, "name": "chat", "events": ["failed"]})
    path = f"/v1/webhooks/{made['id']}"
    reader = opened(browser, ann, told.url, f"/webhooks/{made['id']}")
    reader.sees("chat", "ok", "It was told nothing in the last week.")
    assert reader.tab.get_by_label("Name", exact=True).count() == 0  # the API changes neither it nor the scope
    field(reader, "URL").fill(receiver.url + "/2")
    field(reader, "idle").check()
    field(reader, "Also of each task of an array").check()
    reader.tab.get_by_text("Other events").click()
    with reader.tab.expect_response(lambda answer: answer.request.method == "GET" and answer.url.endswith(path)) as read:
        button(reader, "Save").click()
        eventually(lambda: ann.get(path)["tasks"], "the change")
    assert read.value.ok and (ann.get(path)["url"], ann.get(path)["events"]) == (receiver.url + "/2", ["failed", "idle"])
    for kind in ("failed", "idle"):
        field(reader, kind).uncheck()
    button(reader, "Save").click()
    reader.sees("events must be an array of 1 to")
    field(reader, "running").check()
    button(reader, "Save").click()
    eventually(lambda: ann.get(path)["events"] == ["running"], "the events")
    button(reader, "Disable").click()
    reader.sees("disabled", "Enable")
    assert not ann.get(path)["enabled"] and button(reader, "Send a test").is_disabled()
    button(reader, "Enable").click()
    reader.sees("ok")
    assert ann.get(path)["enabled"]
    ann.call("DELETE", path)
    reader.context.close()


def test_the_form_offers_every_kind_of_event(told: Cluster, browser: Any) -> None:
    reader = opened(browser, told.api, told.url, "/webhooks")
    reader.sees("A new webhook")
    reader.tab.get_by_text("Other events").click()
    kinds = yaml.safe_load((ROOT / "proto" / "openapi.yaml").read_text())["components"]["schemas"]["EventKind"]["enum"]
    boxes = [text.strip() for text in reader.tab.locator("fieldset label").all_inner_texts()]
    assert sorted(boxes) == sorted(kinds)
    reader.context.close()


def test_the_log_shows_what_became_of_each_delivery_and_replays_them(told: Cluster, browser: Any) -> None:
    ann = told.user("ann")
    failing = Receiver(lambda document: 410)
    made = ann.post("/v1/webhooks", {"url": failing.url, "name": "log"})
    path = f"/v1/webhooks/{made['id']}"
    job = ann.submit(["true"])
    eventually(lambda: not ann.get(path)["enabled"], "the end of the webhook")
    reader = opened(browser, ann, told.url, "/webhooks")
    reader.sees("log", "disabled", "410 Gone", "FAILED")
    assert rows(reader)[0].split("\t")[3] == "1"  # failures in a row
    reader.tab.get_by_role("link", name="log").click()
    reader.sees("succeeded", job, "FAILED", "410")
    failing.answer = lambda document: 200
    button(reader, "Enable").click()
    reader.sees("Disable")
    button(reader, "Replay all that failed").click()
    reader.sees("1 delivery is sent again.", "DELIVERED")
    reader.tab.get_by_role("button", name="Replay delivery").click()
    eventually(lambda: len(failing.got) == 3, "the replay of the one")
    reader.tab.get_by_label("State").select_option("FAILED")
    reader.sees("There is none that is FAILED.")
    assert reader.tab.url.endswith(f"#/webhooks/{made['id']}?state=FAILED")
    reader.tab.get_by_label("State").select_option("")
    reader.tab.get_by_role("link", name=job).click()
    reader.sees("Specification", "SUCCEEDED")
    failing.close()
    ann.call("DELETE", path)
    assert reader.said == [] and reader.fits()
    reader.context.close()


def test_older_deliveries_come_when_somebody_asks_for_them(told: Cluster, browser: Any, receiver: Receiver) -> None:
    ann = told.user("ann")
    made = ann.post("/v1/webhooks", {"url": receiver.url})
    path = f"/v1/webhooks/{made['id']}"
    for _ in range(53):
        ann.post(f"{path}/test")
    eventually(lambda: len(receiver.got) == 53, "the tests")
    reader = opened(browser, ann, told.url, f"/webhooks/{made['id']}")
    eventually(lambda: len(rows(reader)) == 50, "the newest page")
    button(reader, "Show older deliveries").click()
    eventually(lambda: len(rows(reader)) == 53, "all")
    assert button(reader, "Show older deliveries").count() == 0
    ann.call("DELETE", path)
    reader.context.close()


@with_axe
@pytest.mark.parametrize(("dark", "width"), [(False, 1300), (True, 400)], ids=["light", "dark-narrow"])
def test_axe_has_no_findings_on_webhooks(told: Cluster, browser: Any, dark: bool, width: int) -> None:
    failing = Receiver(lambda document: 500)
    hooks = [told.api.post("/v1/webhooks", {"url": failing.url, "scope": "all", "project": "vision", "name": name}) for name in ("a", "b")]
    for hook in hooks:
        told.api.post(f"/v1/webhooks/{hook['id']}/test")
    told.api.call("PATCH", f"/v1/webhooks/{hooks[1]['id']}", {"enabled": False})
    eventually(lambda: told.api.get(f"/v1/webhooks/{hooks[0]['id']}")["failures"] == 1, "a failure")
    reader = opened(browser, told.api, told.url, "/webhooks", dark=dark, width=width)
    reader.sees("failing", "disabled", "all, project vision")
    field(reader, "URL").fill("http://10.0.0.1/")
    button(reader, "Make the webhook").click()
    reader.sees("--webhook-networks")
    reader.shoot(f"page-webhooks-{'dark' if dark else 'light'}")
    findings = reader.findings()
    assert reader.fits()
    field(reader, "URL").fill(failing.url)
    button(reader, "Make the webhook").click()
    reader.sees("This secret is shown once")
    findings += reader.findings()
    reader.tab.goto(f"{told.url}/#/webhooks/{hooks[0]['id']}")
    reader.sees("Deliveries", "500")
    reader.shoot(f"page-webhook-{'dark' if dark else 'light'}")
    findings += reader.findings()
    assert reader.fits()
    button(reader, "Delete").first.click()
    findings += reader.findings()
    assert findings == []
    for hook in told.api.get("/v1/webhooks")["webhooks"]:
        told.api.call("DELETE", f"/v1/webhooks/{hook['id']}")
    failing.close()
    reader.context.close()
