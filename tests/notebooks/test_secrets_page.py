# SPDX-License-Identifier: Apache-2.0
"""Secrets on the web page: set, chosen for a job and removed by a person, who sees no value again. CPUs and memory of jobs and nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness import Cluster, eventually
from reader import Reader, in_chromium, opened, rows, with_axe

pytestmark = in_chromium

VALUE = "canary-3f9b1c7e55"


def button(reader: Reader, name: str) -> Any:
    return reader.tab.get_by_role("button", name=name, exact=True)


def field(reader: Reader, name: str) -> Any:
    return reader.tab.get_by_label(name, exact=True)


def names(reader: Reader) -> list[str]:
    return [row.split("\t")[0] for row in rows(reader)]


def test_a_secret_is_set_replaced_and_removed_and_its_value_is_not_shown(cluster: Cluster, browser: Any, tmp_path: Path) -> None:
    ann = cluster.user("ann")
    reader = opened(browser, ann, cluster.url, "/")
    reader.sees("Overview")
    reader.tab.keyboard.press("g")
    reader.tab.keyboard.press("c")
    reader.sees("There is none.", "Set a secret")
    field(reader, "Name").fill("HF_TOKEN")
    field(reader, "Value").fill(VALUE)
    assert field(reader, "Value").get_attribute("type") == "password"
    button(reader, "Set").click()
    reader.sees("HF_TOKEN", "17 B", "ann")
    assert field(reader, "Value").input_value() == "" and field(reader, "Name").input_value() == ""
    held = tmp_path / "key.json"
    held.write_bytes(b"\x00{}\xff")
    field(reader, "Name").fill("GCP_KEY")
    field(reader, "Or a file with the value").set_input_files(str(held))
    assert field(reader, "Value").is_disabled()
    button(reader, "Set").click()
    eventually(lambda: names(reader) == ["GCP_KEY", "HF_TOKEN"], "both")
    assert [one["bytes"] for one in ann.get("/v1/secrets")["secrets"]] == [4, 17]
    reader.shoot("page-secrets")
    field(reader, "Name").fill("1NAME")
    field(reader, "Value").fill(VALUE)
    button(reader, "Set").click()
    reader.tab.get_by_role("alert").wait_for()
    assert "letter" in reader.tab.get_by_role("alert").inner_text()
    button(reader, "Remove").first.click()
    reader.sees("Remove the secret GCP_KEY?")
    button(reader, "Keep it").first.click()
    assert names(reader) == ["GCP_KEY", "HF_TOKEN"]
    button(reader, "Remove").first.click()
    reader.tab.locator("dialog[open]").get_by_role("button", name="Remove").click()
    eventually(lambda: names(reader) == ["HF_TOKEN"], "one to be left")
    assert [one["name"] for one in ann.get("/v1/secrets")["secrets"]] == ["HF_TOKEN"]
    reader.tab.reload()
    reader.sees("HF_TOKEN")
    assert VALUE not in reader.tab.content() and reader.tab.evaluate("JSON.stringify([localStorage, sessionStorage])").find(VALUE) == -1
    ann.call("DELETE", "/v1/secrets/HF_TOKEN")
    assert all("422" in said for said in reader.said) and reader.fits(), reader.said  # Chromium's own lines about answers
    reader.context.close()


def test_secrets_of_a_project_are_its_users_alone(cluster: Cluster, browser: Any) -> None:
    ann, bob = cluster.user("ann"), cluster.user("bob")
    cluster.api.call("PUT", "/v1/accounts/projects/seen", {"members": {"ann": "user"}})
    reader = opened(browser, ann, cluster.url, "/secrets")
    field(reader, "Of a project").fill("seen")
    button(reader, "Show").click()
    reader.sees("Secrets of seen", "There is none.")
    field(reader, "Name").fill("SHARED")
    field(reader, "Value").fill(VALUE)
    button(reader, "Set").click()
    reader.sees("SHARED", "17 B")
    (made,) = ann.get("/v1/secrets?project=seen")["secrets"]
    assert made["project"] == "seen" and ann.get("/v1/secrets")["secrets"] == []
    stranger = opened(browser, bob, cluster.url, "/secrets?project=seen")
    stranger.sees("Secrets of seen", "project")
    stranger.tab.locator(".line.error").wait_for()
    assert "SHARED" not in stranger.text() and button(stranger, "Set").count() == 0
    watcher = opened(browser, cluster.user("watching", "viewer"), cluster.url, "/secrets")
    watcher.sees("have no secrets")
    ann.call("DELETE", "/v1/secrets/SHARED?project=seen")
    assert reader.said == [] and watcher.said == []
    for one in (reader, stranger, watcher):
        one.context.close()


def test_a_job_without_gpus_asks_for_cpus_memory_and_a_secret(cluster: Cluster, browser: Any) -> None:
    ann = cluster.user("ann")
    for name in ("HF_TOKEN", "OTHER"):
        ann.call("PUT", f"/v1/secrets/{name}", {"value": VALUE})
    reader = opened(browser, ann, cluster.url, "/submit")
    field(reader, "Command").fill("sh -c 'echo got ${#HF_TOKEN} bytes, ${OTHER-none}'")
    field(reader, "GPU type").fill("cpu")
    field(reader, "No GPU").check()
    assert field(reader, "GPUs").input_value() == "0" and field(reader, "GPU type").is_disabled()
    field(reader, "Name").fill("small")
    field(reader, "CPUs").fill("0.5")
    field(reader, "Memory").fill("64M")
    field(reader, "HF_TOKEN").check()
    reader.sees("It would start now.", "gpuctl submit --name small --gpus 0 --cpus 0.5 --memory 64M --secret HF_TOKEN -- sh")
    reader.shoot("page-submit-cpus")
    field(reader, "Memory").fill("much")
    reader.sees("memory must be")
    field(reader, "Memory").fill("64M")
    field(reader, "Command").fill("sh -c 'echo got ${#HF_TOKEN} bytes, ${OTHER-none}; sleep 1000'")
    reader.sees("It would start now.")
    button(reader, "Submit").click()
    reader.sees("RUNNING", "got 17 bytes, none", "64 MiB", "HF_TOKEN")
    (job,) = ann.get("/v1/jobs?name=small")["jobs"]
    facts = reader.tab.locator("dl").first.inner_text().split("\n")
    told = {facts[at]: facts[at + 1] for at in range(len(facts) - 1)}
    assert (told["GPUs"], told["CPUs"], told["Memory"], told["Secrets"]) == ("none", "0.5", "64M", "HF_TOKEN")
    (placed,) = ann.job(job["id"])["nodes"]
    assert [row.split("\t")[-1].split() for row in rows(reader) if row.startswith(placed["node"])] == [["0.5", "CPUs", "64", "MiB"]]
    reader.shoot("page-job-cpus")
    node = cluster.api.get(f"/v1/nodes/{placed['node']}")
    reader.tab.goto(f"{cluster.url}/#/nodes/{placed['node']}")
    reader.sees(f"{node['free_cpus']:g} of {node['cpus']:g} free", "small")
    assert node["free_cpus"] == node["cpus"] - 0.5
    jobs = reader.tab.locator("section", has_text="Jobs now").last.inner_text()
    assert job["id"] in jobs and "none" in jobs
    reader.shoot("page-node-cpus")
    reader.tab.goto(f"{cluster.url}/#/nodes")
    reader.sees("CPUs", f"{node['free_cpus']:g} of {node['cpus']:g}")
    reader.shoot("page-nodes-cpus")
    ann.post(f"/v1/jobs/{job['id']}/cancel")
    for name in ("HF_TOKEN", "OTHER"):
        ann.call("DELETE", f"/v1/secrets/{name}")
    assert all("422" in said for said in reader.said) and reader.fits()
    reader.context.close()


@with_axe
@pytest.mark.parametrize(("dark", "width"), [(False, 1300), (True, 400)], ids=["light", "dark-narrow"])
def test_axe_has_no_findings_on_secrets(cluster: Cluster, browser: Any, dark: bool, width: int) -> None:
    ann = cluster.user("ann")
    ann.call("PUT", "/v1/secrets/HF_TOKEN", {"value": VALUE})
    reader = opened(browser, ann, cluster.url, "/secrets", dark=dark, width=width)
    reader.sees("HF_TOKEN")
    reader.shoot(f"page-secrets-{width}")
    findings = reader.findings()
    assert reader.fits()
    reader.tab.goto(f"{cluster.url}/#/submit")
    reader.sees("Secrets, as variables")
    findings += reader.findings()
    ann.call("DELETE", "/v1/secrets/HF_TOKEN")
    assert findings == [] and reader.said == [] and reader.fits()
    reader.context.close()
