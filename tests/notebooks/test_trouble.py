# SPDX-License-Identifier: Apache-2.0
"""What happens under a page that is open: what it shows goes away, belongs to somebody else, or its session ends."""

from __future__ import annotations

from typing import Any

from harness import Cluster, eventually
from paper_node import registration
from reader import in_chromium, opened

pytestmark = in_chromium


def test_a_node_that_is_removed_under_its_page_is_said_to_be_gone(cluster: Cluster, browser: Any) -> None:
    cluster.user("nodes", "node").post("/v1/agent/register", registration("leaves", "boot-1", ["cpu"]))
    reader = opened(browser, cluster.api, cluster.url, "/nodes/leaves")
    reader.sees("leaves", "What it used")
    cluster.api.post("/v1/nodes/leaves/drain", {"reason": "it goes"})
    cluster.api.call("DELETE", "/v1/nodes/leaves")
    reader.sees("there is no node leaves")
    assert reader.tab.locator("main > *").count() == 1
    reader.tab.get_by_role("link", name="Overview").click()  # and the page goes on
    reader.sees("Who uses GPUs now")
    reader.context.close()


def test_a_job_of_somebody_else_is_as_one_that_is_not_there(cluster: Cluster, browser: Any) -> None:
    ann, newcomer = cluster.user("ann"), cluster.user("newcomer")  # who has no jobs of another test
    job = ann.submit(["true"], name="of-ann", hold=True)
    reader = opened(browser, newcomer, cluster.url, f"/jobs/{job}")
    reader.sees(f"no job {job}")
    assert "of-ann" not in reader.text()
    reader.tab.goto(f"{cluster.url}/#/jobs")
    reader.sees("There is no such job.")
    reader.context.close()
    ann.post(f"/v1/jobs/{job}/cancel")


def test_a_page_whose_token_is_revoked_says_so_and_shows_nothing_more(cluster: Cluster, browser: Any) -> None:
    leaver = cluster.user("leaver")
    job = leaver.submit(["true"], name="secret-work", hold=True)
    reader = opened(browser, leaver, cluster.url, "/jobs")
    reader.sees("secret-work")
    (token,) = [token["id"] for token in cluster.api.get("/v1/tokens")["tokens"] if token["owner"] == "leaver"]
    cluster.api.post(f"/v1/tokens/{token}/revoke")
    reader.sees("You are signed out", "Token")
    eventually(lambda: "secret-work" not in reader.text(), "what it showed to be gone")
    reader.context.close()
    cluster.api.post(f"/v1/jobs/{job}/cancel")
