# SPDX-License-Identifier: Apache-2.0
"""The page of a job in a real browser: its output searched, what went wrong, and the job submitted again.

With GPUCTL_SCREENSHOTS=FOLDER the tests leave pictures.
"""

from __future__ import annotations

import subprocess
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import GPUCTL, Cluster, eventually
from reader import IMAGE, environment_of, in_chromium, legend, opened, with_axe

pytestmark = in_chromium

#: Rank 1 fails by a signal in the middle of much output; the others are ended.
FAILS = """
i=0; while [ $i -lt 3000 ]; do echo "step $i of rank $RANK"; i=$((i + 1)); done
[ $RANK = 1 ] || exec sleep 600
echo "ValueError: the %s is too large" >&2
i=0; while [ $i -lt 3000 ]; do echo "after $i"; i=$((i + 1)); done
kill -SEGV $$
"""


@pytest.fixture(scope="module")
def failed(cluster: Cluster) -> str:
    """The id of a job of two ranks of which the second was the first to fail."""
    job = cluster.api.submit(["sh", "-c", FAILS % IMAGE], gpus=2, placement="spread", name="fails", env={"WORD": "two  words"}, retries=1)
    assert cluster.api.wait(job)["state"] == "FAILED"
    return job


def test_what_went_wrong_is_said_at_the_top_in_words(cluster: Cluster, browser: Any, failed: str) -> None:
    reader = opened(browser, cluster.api, cluster.url, f"/jobs/{failed}")
    node = cluster.api.job(failed)["failed_node"]
    reader.sees(
        f"Rank 1 on {node} failed first", "a rank failed (RANK_FAILED)", "signal 11, SIGSEGV: it used memory that is not its own",
        "Tried again 1 of 1 times", "What to do", "Its last lines on stderr", f"ValueError: the {IMAGE} is too large",
    )  # fmt: skip
    reader.shoot("job-failed")
    assert reader.tab.evaluate("window.ran") is None and reader.said == [] and reader.fits()
    reader.context.close()


def test_a_rank_that_ran_out_of_memory_has_figures(cluster: Cluster, browser: Any) -> None:
    gib = 1 << 30
    job = cluster.api.submit(["sh", "-c", "echo 'torch.OutOfMemoryError: CUDA out of memory.' >&2; kill -KILL $$"])
    view = cluster.api.wait(job)
    device = int(view["nodes"][0]["devices"])
    used = {"utilization_percent": [1, 1], "memory_bytes": [70 * gib, 78 * gib], "power_w": [1, 1], "temperature_c": [1, 1]}
    gpus = [{"index": index, "uuid": "u", **used} for index in range(2)]
    samples = {"node": "n", "at_ms": [1, 2], "cpu_percent": [1, 1], "memory_bytes": [gib, 3 * gib], "gpus": gpus}
    node = cluster.api.get(f"/v1/nodes/{view['failed_node']}")
    node["devices"] = [{**one, "memory_bytes": 80 * gib} for one in node["devices"]]
    reader = opened(browser, cluster.api, cluster.url, "/jobs")
    reader.sees("Jobs")
    reader.tab.route("**/samples?*", lambda route: route.fulfill(json=samples))
    reader.tab.route(f"**/v1/nodes/{view['failed_node']}", lambda route: route.fulfill(json=node))
    reader.tab.goto(f"{cluster.url}/#/jobs/{job}")
    reader.sees("signal 9, SIGKILL", f"GPU {device} had up to 78 GiB of 80 GiB in use; the node had up to 3.0 GiB of its own in use")
    assert f"GPU {1 - device} had" not in reader.text() and reader.said == []
    reader.context.close()


def test_a_search_finds_lines_of_all_ranks_and_leads_to_their_places(cluster: Cluster, browser: Any, failed: str) -> None:
    reader = opened(browser, cluster.api, cluster.url, f"/jobs/{failed}")
    reader.sees("fails")
    reader.tab.get_by_label("Search the output").fill("step 17 ")
    reader.tab.get_by_role("button", name="Search", exact=True).click()
    reader.sees("2 lines have it.", "0 step 17 of rank 0", "1 step 17 of rank 1")
    assert urllib.parse.urlsplit(reader.tab.url).fragment == f"/jobs/{failed}?q=step+17+"
    reader.shoot("job-search")
    reader.tab.get_by_role("button", name="step 17 of rank 1").click()
    reader.sees("Rank 1, stdout, from byte")
    assert reader.tab.locator("mark").inner_text() == "step 17 of rank 1"
    around = reader.tab.get_by_label("Output of rank 1 around")
    assert around.inner_text().startswith("step 0 of rank 1\nstep 1 of rank 1\n") and "rank 0" not in around.inner_text()
    before = len(around.inner_text())
    reader.tab.get_by_role("button", name="Show more around it").click()
    eventually(lambda: len(around.inner_text()) > before, "more of it")
    reader.tab.get_by_role("button", name="Back to the newest output").click()
    reader.sees("after 2999")

    reader.tab.get_by_role("button", name="First error").click()
    reader.sees("Rank 1, stderr, from byte")
    assert reader.tab.locator("mark").inner_text() == f"ValueError: the {IMAGE} is too large"
    reader.tab.get_by_role("combobox", name="Rank").select_option("0")
    reader.sees("1 line has it.")
    reader.tab.get_by_label("Regular expression").check()
    reader.tab.get_by_label("Search the output").fill("^step (1|2)7 ")
    reader.tab.get_by_role("button", name="Search", exact=True).click()
    reader.sees("2 lines have it.", "step 27 of rank 0")
    reader.tab.get_by_label("Search the output").fill("(")
    reader.tab.get_by_role("button", name="Search", exact=True).click()
    reader.sees("q is no regular expression")
    reader.said.clear()  # the refusal, as the browser says it
    link = reader.tab.url.replace("%28", "after+299%24")
    reader.tab.goto(link.replace("rank=0", "rank=1"))
    reader.sees("1 line has it.", "after 299")
    assert reader.tab.evaluate("window.ran") is None and reader.said == [] and reader.fits()
    reader.context.close()


def test_many_matches_come_a_piece_at_a_time(cluster: Cluster, browser: Any, failed: str) -> None:
    reader = opened(browser, cluster.api, cluster.url, f"/jobs/{failed}?q=STEP")
    for count in (50, 100, 150):
        eventually(lambda count=count: reader.tab.locator(".match").count() == count, f"{count} matches")
        reader.sees(f"{count} lines have it in the first")
        reader.tab.get_by_role("button", name="Search on").click()
    reader.context.close()


def test_a_job_is_submitted_again_by_a_button_by_its_line_and_by_others(cluster: Cluster, browser: Any) -> None:
    user = cluster.user("repeater")
    spec: dict[str, Any] = {
        "name": "again",
        "env": {"WORD": "two  words"},
        "labels": {"a": "b"},
        "time_limit_s": 90,
        "hold": True,
        "constraints": {"zone": {"not": ["x", "y"]}},
    }
    job = user.submit(["sh", "-c", "echo 'it is done'"], **spec)
    user.post(f"/v1/jobs/{job}/cancel")
    reader = opened(browser, user, cluster.url, f"/jobs/{job}")
    reader.sees("To submit it again", "gpuctl submit")
    line = reader.tab.get_by_label("What to run").text_content()
    ran = subprocess.run(
        ["sh", "-c", str(line).replace("gpuctl", str(GPUCTL), 1)], env={**environment_of(cluster), "GPUCTL_URL": cluster.url},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    twin = cluster.api.job(ran.stdout.strip())
    assert twin["spec"] == user.job(job)["spec"]
    cluster.api.post(f"/v1/jobs/{twin['id']}/cancel")
    reader.tab.get_by_role("button", name="Python", exact=True).click()
    reader.sees('"hold": True,', '"constraints": {"zone": {"not": ["x", "y"]}},')
    reader.context.grant_permissions(["clipboard-read", "clipboard-write"])
    reader.tab.get_by_role("button", name="Copy").click()
    reader.sees("Copied.")
    assert "requests.post" in reader.tab.evaluate("navigator.clipboard.readText()")
    reader.tab.get_by_role("button", name="Retry").click()
    reader.sees("HELD", "Repeats", job)
    new = urllib.parse.urlsplit(reader.tab.url).fragment.removeprefix("/jobs/")
    assert new != job and user.job(new)["spec"]["retry_of"] == job
    reader.shoot("job-retried")

    hidden = user.submit(["true"], hold=True, env={"API_TOKEN": "secret"})
    reader.tab.goto(f"{cluster.url}/#/jobs/{hidden}")
    reader.sees(f"gpuctl retry {hidden}")
    reader.tab.get_by_role("button", name="curl", exact=True).click()
    reader.sees(f"/v1/jobs/{hidden}/retry -X POST")
    for one in (new, hidden):
        user.post(f"/v1/jobs/{one}/cancel")
    assert reader.said == [] and reader.fits()
    reader.context.close()


def test_jobs_of_a_table_are_submitted_again_together(cluster: Cluster, browser: Any) -> None:
    user = cluster.user("tabler")
    jobs = [user.submit(["true"], name=f"of-table-{n}") for n in range(2)]
    for job in jobs:
        user.wait(job)
    reader = opened(browser, user, cluster.url, "/jobs")
    for job in jobs:
        reader.tab.get_by_label(f"Select job {job}").check()
    reader.tab.get_by_role("button", name="Retry 2").click()
    eventually(lambda: len(user.get("/v1/jobs")["jobs"]) == 4, "the new jobs")
    made = [job["id"] for job in user.get("/v1/jobs")["jobs"] if job["id"] not in jobs]
    assert {user.wait(job)["spec"]["retry_of"] for job in made} == set(jobs) and reader.said == []
    reader.context.close()


@with_axe
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_has_no_findings_in_a_failed_job_that_is_searched(cluster: Cluster, browser: Any, failed: str, dark: bool) -> None:
    reader = opened(browser, cluster.api, cluster.url, f"/jobs/{failed}?q=rank 1", dark=dark, width=390 if dark else 1300)
    reader.sees("Its last lines on stderr", "lines have it")
    reader.tab.get_by_role("button", name="First error").click()
    reader.sees("Rank 1, stderr, from byte")
    reader.shoot(f"job-first-error-{'dark-narrow' if dark else 'light'}")
    assert reader.findings() == []
    assert reader.said == [] and reader.fits()
    reader.context.close()


#: Writes a file to the disk until it may end.
WRITES = 'until [ -e "$GO" ]; do dd if=/dev/zero of="written.$RANK" bs=1M count=4 conv=fsync 2>/dev/null; done'


@pytest.fixture
def measured(tmp_path: Path) -> Iterator[Cluster]:
    """Two nodes that measure each second, the first with two slots."""
    made = Cluster(tmp_path, [2, 1], agent=["--sample-interval", "1"])
    try:
        yield made.start()
    finally:
        made.stop()


def test_what_the_job_itself_used_has_a_line_for_each_node_and_rank_and_what_is_not_known_no_chart(
    measured: Cluster, browser: Any, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    job = measured.api.submit(["sh", "-c", WRITES], gpus=3, env={"GO": str(go)})

    def both() -> Any:
        names = [point["name"] for point in measured.api.get(f"/v1/jobs/{job}/metrics?limit=10000")["metrics"]]
        ranks = all(names.count(f"system/node0/io_written_megabytes/rank_{rank}") >= 2 for rank in (0, 1))
        return ranks and all(names.count(f"system/node{node}/io_written_megabytes") >= 2 for node in (0, 1))

    eventually(both, "two samples of both nodes, and of the ranks that share one")
    reader = opened(browser, measured.api, measured.url, f"/jobs/{job}")
    reader.sees("What the job itself used", "CPU of its processes", "Memory of its processes", "Read from disks", "Written to disks")
    charts = reader.tab.get_by_role("figure").filter(has_text="Written to disks so far in MB")
    eventually(lambda: [line.split(" ")[0] for line in legend(charts.first)[1:]] == ["node0", "node1"], "a line for each node")
    reader.sees(*(f"{title}, by rank" for title in ("CPU of its processes in percent of the node", "Memory of its processes in MB")))
    eventually(lambda: [line[:6] for line in legend(charts.last)[1:]] == ["rank 0", "rank 1"], "a line for each rank of the first node")
    reader.shoot("page-job-own-use")

    def unknown(route: Any) -> None:
        reply = route.fetch()
        document = reply.json()
        data = document["run"]["data"]
        data["metrics"] = [metric for metric in data["metrics"] if "/io_" not in metric["key"]]
        route.fulfill(response=reply, json=document)

    reader.tab.route("**/runs/get?*", unknown)
    reader.tab.reload()
    reader.sees("What the job itself used", "Memory of its processes")
    assert "disks so far" not in reader.text()
    go.touch()
    measured.api.wait(job)
    assert reader.fits()
    reader.context.close()
