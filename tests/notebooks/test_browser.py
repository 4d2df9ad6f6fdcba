# SPDX-License-Identifier: Apache-2.0
"""The web page as a person sees it: the link that MLflow's client prints, opened in a real browser, against real programs and a real gang.
Where the browser or MLflow's client is missing, the tests are skipped and say which. With GPUCTL_SCREENSHOTS=FOLDER they leave pictures.
"""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import GPUCTL, PATIENCE, ROOT, Cluster, eventually, run_gpuctl
from reader import BLUE, IMAGE, LINES, SCRIPT, Reader, drawn, environment_of, in_chromium, legend, opened, rows, with_axe

pytestmark = [
    in_chromium,
    pytest.mark.skipif(importlib.util.find_spec("mlflow") is None, reason="MLflow's client could not be installed"),
]

TRAIN = f"""
import os, time
import mlflow
from serverless_gpu import runtime

rank = int(os.environ["RANK"])
for step in range(50):
    runtime.log_metric("loss", 1 / (step + 1) + rank, step=step)
if rank == 0:
    with mlflow.start_run():
        mlflow.log_params({{"lr": 0.001, "note": {SCRIPT + IMAGE!r}}})
        mlflow.set_tag("purpose", {IMAGE!r})
        mlflow.set_tag("mlflow.runName", {"learn " + IMAGE!r})
        mlflow.log_metrics({{"accuracy": 0.5, "one value": 7}}, step=1)
        mlflow.log_text({SCRIPT!r}, {"notes/" + IMAGE.replace("'", "") + ".html"!r})
        mlflow.log_text("<svg xmlns='http://www.w3.org/2000/svg' width='8' height='8' onload='window.ran = 3'/>", "picture.svg")
        while not os.path.exists(os.environ["GO"]):
            time.sleep(0.05)
        mlflow.log_metric("accuracy", 0.875, step=2)
"""

LINK = re.compile(r"View run .* at: (http\S+)")


class Training:
    """A gang over both nodes that has logged and waits; `go` lets it end."""

    def __init__(self, cluster: Cluster, folder: Path):
        self.cluster = cluster
        self._flag = folder / "go"
        path = os.pathsep.join([str(ROOT / "client" / "python" / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
        env = {"PYTHONPATH": path, "GO": str(self._flag), "MLFLOW_DISABLE_TELEMETRY": "true"}
        self.job = cluster.api.submit([sys.executable, "-c", TRAIN], gpus=4, placement="spread", name="learning", env=env)
        eventually(lambda: self.files() == ["notes", "picture.svg"], f"the artifacts; {self._stderr()}", 6 * PATIENCE)

    def _stderr(self) -> str:
        return self.cluster.api.log(self.job, stream="stderr")[-2000:]

    def run(self) -> Any:
        runs = self.cluster.api.get(f"/v1/jobs/{self.job}/runs")["runs"]
        return runs[0] if runs else None

    def files(self) -> list[str]:
        if self.run() is None:
            return []
        listed = self.cluster.api.get(f"/api/2.0/mlflow/artifacts/list?run_id={self.run()['run_id']}")["files"]
        return sorted(file["path"] for file in listed)

    def go(self) -> None:
        self._flag.touch()
        assert self.cluster.api.wait(self.job, 3 * PATIENCE)["state"] == "SUCCEEDED", self._stderr()


@pytest.fixture(scope="module")
def training(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    made = Training(cluster, tmp_path_factory.mktemp("training"))
    yield made
    made.go()


def test_the_page_of_a_run_shows_what_was_logged_renews_itself_and_runs_nothing(training: Training, browser: Any) -> None:
    reader = Reader(browser)
    url = training.run()["url"]
    reader.tab.goto(url)
    reader.sees("Sign in", "gpuctl open")
    reader.shoot("page-sign-in")
    reader.sign_in("gct_wrong")
    reader.sees("The controller refuses this token")
    assert reader.said == ["Failed to load resource: the server responded with a status of 401 (Unauthorized)"]
    reader.said.clear()
    reader.sign_in(training.cluster.admin_token)
    reader.sees(f"learn {IMAGE}", "RUNNING", training.job, "4 on 2 nodes", "one value", "0.001", SCRIPT + IMAGE, "picture.svg")
    chart = reader.tab.get_by_role(
        "img", name="loss over steps: rank 0 last 0.02, from 0.02 to 1; rank 1 last 1.02, from 1.02 to 2; rank 2"
    )
    eventually(lambda: chart.locator("canvas").count() == 1, "the canvas")
    loss = reader.tab.locator("figure", has=chart)
    assert legend(loss) == ["step 49", "rank 0 0.02", "rank 1 1.02", "rank 2 2.02", "rank 3 3.02"]
    eventually(lambda: all(drawn(chart, colour) for colour in LINES), "the line of each rank")

    training.go()
    assert LINK.findall(training.cluster.api.log(training.job)) == [url]  # as MLflow's client printed it at the end
    reader.sees("FINISHED", "0.875")
    accuracy = reader.tab.get_by_role("img", name="accuracy over steps: last 0.875, from 0.5 to 0.875")
    eventually(lambda: drawn(accuracy, BLUE), "the line of the metric that has two values now")

    reader.tab.get_by_text("notes", exact=True).click()
    name = IMAGE.replace("'", "") + ".html"
    file = reader.tab.locator(".file", has_text=name)
    file.get_by_role("button", name="Show").click()
    eventually(lambda: reader.tab.locator("pre").count() == 1, "the text of the file")
    assert reader.tab.locator("pre").inner_text() == SCRIPT
    with reader.tab.expect_download() as download:
        file.get_by_role("button", name="Download").click()
    assert Path(download.value.path()).read_text() == SCRIPT
    reader.tab.locator(".file", has_text="picture.svg").get_by_role("button", name="Show").click()
    eventually(lambda: reader.tab.evaluate("document.querySelector('.shown img')?.naturalWidth") == 8, "the picture")
    reader.shoot("page-run")
    assert reader.tab.evaluate("window.ran") is None and reader.said == []
    assert reader.tab.locator("main script, main img:not(.shown img)").count() == 0
    base = training.cluster.url
    assert all(asked.startswith((f"{base}/", f"blob:{base}/")) for asked in reader.asked), reader.asked
    (cookie,) = reader.context.cookies()
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict" and not reader.tab.evaluate("document.cookie")
    assert training.cluster.admin_token not in reader.tab.evaluate("JSON.stringify(localStorage)") + cookie["value"]
    reader.context.close()


def test_the_ways_through_the_page_lead_to_the_run_also_on_a_narrow_dark_screen(training: Training, browser: Any) -> None:
    reader = Reader(browser, width=390, dark=True)
    link = run_gpuctl("--url", training.cluster.url, "open", "--link", env=environment_of(training.cluster)).stdout.strip()
    reader.tab.goto(link)
    reader.sees("Overview", "Who uses GPUs now")
    reader.tab.get_by_role("link", name="Experiments").click()
    reader.sees("Experiments", "learning")
    assert "code" not in reader.tab.url and reader.tab.evaluate("history.length") == 3
    reader.shoot("page-experiments")
    reader.tab.get_by_role("link", name="learning").click()
    reader.sees("Status", f"learn {IMAGE}")
    reader.shoot("page-runs")
    reader.tab.get_by_role("link", name=f"learn {IMAGE}").click()
    reader.sees("Parameters", training.job)
    assert reader.fits() and reader.tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 29)"
    reader.shoot("page-narrow")
    address = urllib.parse.urlsplit(reader.tab.url).fragment
    reader.tab.goto(f"{training.cluster.url}/#{address}/artifacts/notes")
    reader.sees("Parameters", training.job)
    reader.tab.goto(f"{training.cluster.url}/#/jobs/{training.job}")
    reader.sees("node0", "node1", "placed")
    reader.tab.get_by_role("link", name="attempt 1").click()
    reader.sees("Parameters", training.job)
    assert reader.said == []
    reader.tab.get_by_role("button", name="Sign out").click()
    reader.sees("Sign in")
    reader.tab.reload()
    reader.sees("Sign in")
    assert reader.tab.evaluate("localStorage.length") == 0 and reader.context.cookies() == []
    reader.context.close()


def test_a_link_signs_in_once_and_the_session_ends_with_its_token(cluster: Cluster, browser: Any) -> None:
    user = cluster.user("ann")
    link = f"{cluster.url}/#code={user.post('/v1/session/codes')['code']}&to=/experiments"
    reader, late = Reader(browser), Reader(browser)
    reader.tab.goto(link)
    reader.sees("Experiments", "Default")
    late.tab.goto(link)
    late.sees("Sign in", "was used already")
    reader.tab.reload()
    reader.sees("Experiments", "Default")
    cluster.api.post(f"/v1/tokens/{str(user.token).split('_')[1]}/revoke")
    reader.tab.reload()
    reader.sees("You are signed out", "revoked", "Sign in")
    assert reader.tab.evaluate("localStorage.length") == 0
    for one in (reader, late):
        assert all("401" in said for said in one.said)
        one.context.close()


def test_jobs_are_listed_filtered_and_changed_together(cluster: Cluster, browser: Any) -> None:
    user = cluster.user("jobber")
    name = "sweep"
    waiting = [user.submit(["true"], name=name, hold=True) for _ in range(3)]
    array = user.post("/v1/jobs", {"command": ["sh", "-c", "exit {task}"], "gpus": 1, "name": "many", "array": {"tasks": 2}})["id"]
    user.wait(array)
    reader = opened(browser, user, cluster.url, f"/jobs/{array}")
    reader.sees("many", "task 0", "task 1", "exited with 1")
    reader.tab.get_by_role("link", name="task 1").click()
    reader.sees("FAILED", "Output", "node0")
    reader.tab.goto(f"{cluster.url}/#/jobs")
    reader.sees("Jobs", array, *waiting)
    assert len(rows(reader)) == 4
    bar = reader.tab.get_by_role("img", name="of 2: 1 succeeded, 1 failed")
    assert bar.locator("rect").count() == 2
    reader.tab.get_by_label("State").select_option("HELD")
    eventually(lambda: len(rows(reader)) == 3, "the jobs that are held")
    assert reader.tab.url.endswith("#/jobs?state=HELD")
    for job in waiting[:2]:
        reader.tab.get_by_label(f"Select job {job}").check()
    reader.shoot("page-jobs")
    reader.tab.get_by_role("button", name="Cancel 2").click()
    eventually(lambda: len(rows(reader)) == 1, "two jobs to be canceled")
    assert {user.job(job)["state"] for job in waiting[:2]} == {"CANCELED"} and user.job(waiting[2])["state"] == "HELD"
    reader.tab.get_by_label("State").select_option("all")
    reader.tab.get_by_label("Name").fill(name)
    user.submit(["true"], name="seen", hold=True)
    eventually(lambda: len(rows(reader)) == 5, "the table to be renewed")
    reader.tab.get_by_label("Name").press("Enter")  # what was typed is still there
    eventually(lambda: len(rows(reader)) == 3, "the jobs of that name")
    reader.tab.get_by_label(f"Select job {waiting[0]}").check()
    reader.tab.get_by_role("button", name="Hold 1").click()
    reader.sees(f"{waiting[0]}: ", "CANCELED")
    reader.tab.get_by_label("Owner").fill("nobody")
    reader.tab.get_by_label("Owner").press("Enter")
    reader.sees("There is no such job.")
    for job in user.get("/v1/jobs?state=HELD")["jobs"]:
        user.post(f"/v1/jobs/{job['id']}/cancel")
    assert all("409" in said for said in reader.said), reader.said
    reader.context.close()


def test_a_job_shows_its_output_as_it_comes_its_nodes_and_its_history(cluster: Cluster, browser: Any, tmp_path: Path) -> None:
    user = cluster.user("speaker")
    go = tmp_path / "go"
    script = f'echo "{IMAGE}"; printf "half of "; echo $RANK is here >&2; while [ ! -e {go} ]; do sleep 0.02; done; echo a line; exit 3'
    job = user.submit(["sh", "-c", script], gpus=2, placement="spread", name="talks", env={"NOTE": SCRIPT})
    reader = opened(browser, user, cluster.url, f"/jobs/{job}")
    reader.sees("talks", "RUNNING", SCRIPT, IMAGE, "0 half of", "1 half of", "0 0 is here", "1 1 is here", "node0", "node1", "running")
    assert reader.tab.locator(".output .error").count() == 2
    go.touch()
    reader.sees("half of a line", "FAILED", "Exit code", "exited with 3", "Where the time went", "waits for GPUs", "runs")
    assert reader.tab.locator(".ranks .bad").count() == 2
    assert reader.tab.get_by_role("button", name="Cancel").count() == 0 and reader.tab.evaluate("window.ran") is None
    reader.shoot("page-job")
    waiting = user.submit(["true"], hold=True)
    reader.tab.goto(f"{cluster.url}/#/jobs/{waiting}")
    reader.sees("HELD", "None yet.")
    reader.tab.get_by_role("button", name="Cancel").click()
    reader.sees("CANCELED", "Exit code", "130")
    assert reader.said == [] and reader.fits()
    reader.context.close()


def test_a_live_table_follows_its_jobs(cluster: Cluster, browser: Any) -> None:
    user = cluster.user("watcher")
    job = user.submit(["true"], hold=True)
    reader = opened(browser, user, cluster.url, "/jobs?owner=watcher", width=390, dark=True)
    eventually(lambda: [True for row in rows(reader) if job in row and "HELD" in row], "the job that is held")
    user.post(f"/v1/jobs/{job}/release")
    eventually(lambda: [True for row in rows(reader) if job in row and "SUCCEEDED" in row], "the end of the job")
    reader.shoot("page-jobs-narrow")
    assert reader.fits() and reader.said == []
    reader.context.close()


def test_nodes_are_listed_and_administrators_drain_them(cluster: Cluster, browser: Any) -> None:
    reader = opened(browser, cluster.api, cluster.url, "/nodes")
    names = list(cluster.nodes())
    reader.sees("Nodes", "GPU type", "READY", *names)
    reader.shoot("page-nodes")
    row = reader.tab.locator("tbody tr", has_text=names[0]).last
    row.get_by_role("button", name="Drain").click()
    eventually(lambda: "DRAINED" in row.inner_text(), "the node to be drained")
    row.get_by_role("button", name="Resume").click()
    eventually(lambda: "READY" in row.inner_text(), "the node to take work")
    user = opened(browser, cluster.user("looker"), cluster.url, "/nodes")
    user.sees("READY", *names)
    assert user.tab.get_by_role("button", name="Drain").count() == 0
    cluster.api.post(f"/v1/nodes/{names[0]}/drain", {"reason": "a fan"})
    cluster.api.post(f"/v1/nodes/{names[0]}/resume")
    history = opened(browser, cluster.api, cluster.url, f"/nodes/{names[0]}")
    history.sees("Drains and other changes", "reason: a fan")
    drains = history.tab.get_by_role("table").filter(has_text="a fan").inner_text()
    assert drains.index("resume") < drains.index("a fan") < drains.rindex("drain") and "admin" in drains
    watcher = opened(browser, cluster.user("watcher", "operator"), cluster.url, f"/nodes/{names[0]}")
    watcher.sees("Ran here")
    assert watcher.tab.get_by_text("Drains and other changes").count() == 0
    for one in (reader, user, history, watcher):
        assert one.said == [] and one.fits()
        one.context.close()


def test_the_overview_shows_what_is_free_who_uses_it_and_what_is_wrong(cluster: Cluster, browser: Any, tmp_path: Path) -> None:
    go = tmp_path / "go"
    user = cluster.user("eager")
    running = user.submit(["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.02; done"], gpus=3, placement="spread")
    cluster.wait_state(running, "RUNNING")
    waiting = user.submit(["true"], gpus=4)
    names = list(cluster.nodes())
    reader = opened(browser, cluster.api, cluster.url, "/")
    reader.sees("cpu", "default", "1 job waits for GPUs, the oldest for", "eager", "Nothing: all nodes take work.")
    reader.sees("GPU hours in each hour of the last day")
    assert reader.tab.get_by_role("img", name="of 4: 3 in use, 1 free").count() == 1
    cluster.api.post(f"/v1/nodes/{names[0]}/drain", {"reason": IMAGE})
    reader.sees("DRAIN", IMAGE)
    reader.shoot("page-overview")
    assert reader.said == [] and reader.fits() and reader.tab.evaluate("window.ran") is None
    reader.tab.get_by_role("link", name="eager").click()
    reader.sees(running, waiting)
    other = opened(browser, cluster.user("other"), cluster.url, "/", width=390, dark=True)
    other.sees("others")
    assert "eager" not in other.text() and other.fits()
    other.shoot("page-overview-narrow")
    cluster.api.post(f"/v1/nodes/{names[0]}/resume")
    go.touch()
    assert user.wait(waiting)["state"] == "SUCCEEDED"
    for one in (reader, other):
        one.context.close()


def soon(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def test_the_queue_shows_who_is_next_and_who_gets_which_nodes_when(cluster: Cluster, browser: Any, tmp_path: Path) -> None:
    go = tmp_path / "go"
    ann, bob = cluster.user("ann"), cluster.user("bob")
    cluster.open_project("vision", "speech")
    hang = ["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.02; done"]
    running = ann.submit(hang, gpus=3, name="running", project="vision", time_limit_s=3600)
    cluster.wait_state(running, "RUNNING")
    large = ann.submit(["true"], gpus=4, name="large", project="vision", time_limit_s=1800)
    behind = bob.submit(["true"], name="behind", project="speech", time_limit_s=7200)
    array = bob.submit(["true"], gpus=2, name="sweep", project="speech", array={"tasks": 7}, time_limit_s=3600)
    held = bob.submit(["true"], hold=True)
    cluster.api.call("PUT", "/v1/accounts/projects/vision", {"quota": {"cpu": 4}, "max_gpus": {"cpu": 8}})
    window = cluster.api.post("/v1/windows", {"nodes": ["node1"], "from": soon(5 * 3600), "until": soon(6 * 3600), "reason": IMAGE})["id"]
    reader = opened(browser, cluster.api, cluster.url, "/queue")
    reader.sees("3 jobs wait for GPUs. Not in the queue: 1 held.", "Policy default", "Who gets which nodes when", "Shares and quotas")
    texts = rows(reader)
    assert ["large" in texts[0], "sweep (7 tasks)" in texts[1], "behind" in texts[2]] == [True] * 3, texts
    assert "waits for 4 GPUs: 1 is free" in texts[0] and "Reserved: node0 node1" in texts[0]
    reader.sees("project vision", "3 cpu (quota 4, at most 8)", "user bob")
    drawn = reader.tab.locator("svg.schedule")
    assert drawn.get_by_role("link", name=re.compile("node0: job running of ann, 3 GPUs, until")).count() == 1
    assert drawn.get_by_role("link", name=re.compile("node1: 2 GPUs reserved for job large of ann, from .* in .* until")).count() == 1
    assert drawn.get_by_role("img", name=re.compile(re.escape(f"node1: what runs may end: {IMAGE}, from"))).count() == 1
    reader.shoot("page-queue")
    reader.tab.get_by_label("Pool").select_option("default")
    eventually(lambda: reader.tab.url.endswith("#/queue?pool=default"), "the address")
    reader.sees("large")
    other = opened(browser, bob, cluster.url, "/queue?pool=default", width=390, dark=True)
    other.sees("2 jobs wait for GPUs", "sweep")
    assert "vision" not in other.text() and "running" not in other.text()
    other.shoot("page-queue-narrow")
    assert other.fits() and reader.fits()
    ann.post(f"/v1/jobs/{large}/cancel")
    eventually(lambda: "large" not in rows(reader)[0], "the page to renew itself")
    go.touch()
    for job in (behind, array):
        assert bob.wait(job)["state"] == "SUCCEEDED"
    bob.post(f"/v1/jobs/{held}/cancel")
    reader.sees("No job waits for GPUs.")
    cluster.api.call("DELETE", "/v1/accounts/projects/vision")
    cluster.api.call("DELETE", f"/v1/windows/{window}")
    for one in (reader, other):
        assert one.said == [] and one.tab.evaluate("window.ran") is None
        one.context.close()


def test_a_job_that_waits_shows_why_as_a_picture(cluster: Cluster, browser: Any, tmp_path: Path) -> None:
    go = tmp_path / "go"
    user = cluster.user("patient")
    running = user.submit(["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.02; done"], gpus=4)
    cluster.wait_state(running, "RUNNING")
    waiting = user.submit(["true"], gpus=4)
    reader = opened(browser, user, cluster.url, f"/jobs/{waiting}")
    reader.sees("Why it waits", "waits for 4 GPUs", "2 are busy", "Starts", "Sooner")
    assert reader.tab.get_by_role("img", name="of 2 nodes 0 could take it now").locator("rect").count() == 1
    reader.shoot("page-waits")
    go.touch()
    reader.sees("SUCCEEDED")
    assert "Why it waits" not in reader.text() and reader.said == []
    reader.context.close()


def test_usage_is_divided_as_the_address_says(cluster: Cluster, browser: Any) -> None:
    ann, bob = cluster.user("spender"), cluster.user("saver")
    cluster.open_project("vision", "speech")
    for user, project in ((ann, "vision"), (ann, "speech"), (bob, "vision")):
        user.wait(user.submit(["sleep", "0.1"], project=project))
    reader = opened(browser, cluster.api, cluster.url, "/usage?span=1 day")
    reader.sees("spender", "saver", "GPU hours in each hour")
    reader.tab.get_by_label("Project").check()
    reader.sees("vision", "speech")
    assert "by=owner%2Cproject" in reader.tab.url and reader.tab.get_by_label("User").is_checked()
    reader.tab.get_by_label("Time").select_option("30 days")
    reader.sees("GPU hours in each day", "vision")
    with reader.tab.expect_download() as download:
        reader.tab.get_by_role("button", name="CSV").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0].startswith("at,owner,project,gpu_seconds,") and any(",spender,speech," in line for line in lines)
    reader.shoot("page-usage")
    mine = opened(browser, bob, cluster.url, "/usage")
    mine.sees("saver")
    assert "spender" not in mine.text()
    for one in (reader, mine):
        assert one.said == [] and one.fits()
        one.context.close()


def test_a_job_is_submitted_with_a_form_that_shows_the_same_for_programs(cluster: Cluster, browser: Any) -> None:
    user = cluster.user("clicker")
    reader = opened(browser, user, cluster.url, "/submit")
    reader.tab.get_by_role("button", name="Submit").click()
    reader.sees("Write a command.")
    reader.tab.get_by_label("Command").fill("sh -c 'echo \"two  words\"; exit 0'")
    reader.tab.get_by_label("Name", exact=True).fill("clicked")
    reader.tab.get_by_label("GPUs", exact=True).fill("2")
    reader.sees("It would start now.", "gpuctl submit --name clicked --gpus 2 -- sh -c")
    line = reader.tab.locator("pre", has_text="gpuctl submit").inner_text()
    for form, text in (("Python", '"command": ["sh", "-c", "echo'), ("curl", "curl http"), ("gpuctl", "gpuctl submit")):
        reader.tab.get_by_role("button", name=form, exact=True).click()
        reader.sees(text)
    reader.tab.get_by_label("GPU type").fill("X9")
    reader.sees("It would be refused", "X9")
    reader.tab.get_by_label("GPU type").fill("")
    reader.sees("It would start now.")
    reader.shoot("page-submit")
    reader.tab.get_by_role("button", name="Submit").click()
    reader.sees("clicked", "two  words", "SUCCEEDED")
    (job,) = user.get("/v1/jobs?name=clicked")["jobs"]
    environment = {**environment_of(cluster), "GPUCTL_URL": cluster.url}
    words = ["sh", "-c", line.replace("gpuctl", str(GPUCTL), 1)]
    again = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    twin = cluster.api.job(again.stdout.strip())
    assert twin["spec"]["command"] == user.job(job["id"])["spec"]["command"] and twin["gpus"] == 2
    reader.tab.goto(f"{cluster.url}/#/submit")
    reader.tab.get_by_label("Command").fill("echo 'no end")
    reader.tab.get_by_role("button", name="Submit").click()
    reader.sees("The command cannot be read: a ' has no end.")
    assert reader.said == [] and reader.fits()
    reader.context.close()


def test_a_node_shows_what_it_has_and_what_it_used(cluster: Cluster, browser: Any) -> None:
    name = next(iter(cluster.nodes()))
    reader = opened(browser, cluster.api, cluster.url, "/nodes")
    reader.tab.locator("tbody").get_by_role("link", name=name).click()
    reader.sees(name, "READY", "What it used", "2 of 2 cpu free")
    reader.tab.get_by_role("button", name="Drain").click()
    reader.sees("DRAINED")
    reader.tab.get_by_role("button", name="Resume").click()
    reader.sees("READY")
    reader.shoot("page-node")
    assert reader.said == [] and reader.fits()
    reader.context.close()


def test_a_node_shows_who_had_its_gpus_and_how_that_ended(cluster: Cluster, browser: Any) -> None:
    name = next(iter(cluster.nodes()))
    ann, bob = cluster.user("ann"), cluster.user("bob")
    bad = bob.submit(["false"], name="bad", constraints={"node": name})
    cluster.api.wait(bad)
    runs = ann.submit(["sleep", "600"], gpus=2, name="long", constraints={"node": name})
    cluster.wait_state(runs, "RUNNING")
    reader = opened(browser, cluster.api, cluster.url, f"/nodes/{name}")
    reader.sees("Ran here", runs, bad)
    table = reader.tab.locator("section", has=reader.tab.get_by_role("heading", name="Ran here"))
    first, second = (row.split("\t") for row in table.locator("tbody tr").all_inner_texts()[:2])
    assert first[:3] == [f"{runs} long", "ann", "0, 1"] and first[3] and not first[4] and first[5].startswith("RUNNING")
    assert second[:3] == [f"{bad} bad", "bob", "0"] and second[4] and second[5].startswith("FAILED")
    assert f"rank 0 on node {name} exited with 1" in second[5]
    ann.post(f"/v1/jobs/{runs}/cancel")
    eventually(lambda: "CANCELED" in table.inner_text(), "the end of the job")
    table.get_by_role("link", name=bad).click()
    reader.sees("FAILED", "exited with 1")
    reader.tab.go_back()
    reader.sees("Ran here")
    reader.shoot("page-node-jobs")
    assert reader.said == [] and reader.fits()
    reader.context.close()
    own = opened(browser, bob, cluster.url, f"/nodes/{name}")
    own.sees("Ran here", bad)
    assert runs not in own.text()
    own.context.close()


FUNCTION = f"""
from serverless_gpu import distributed, runtime

@distributed(gpus=2, remote=True)
def work():
    return {{"rank": runtime.get_global_rank(), "note": {IMAGE!r}}}

work.distributed()
"""


def test_what_a_function_returned_is_shown_by_rank(cluster: Cluster, browser: Any, tmp_path: Path) -> None:
    script = tmp_path / "work.py"
    script.write_text(FUNCTION)
    environment = {**environment_of(cluster), "GPUCTL_URL": cluster.url, "PYTHONPATH": str(ROOT / "client" / "python" / "src")}
    subprocess.run([sys.executable, str(script)], env=environment, check=True, capture_output=True, timeout=3 * PATIENCE)
    job = cluster.api.get("/v1/jobs?limit=1")["jobs"][0]["id"]
    reader = opened(browser, cluster.api, cluster.url, f"/jobs/{job}")
    reader.sees("Results", "returned", '{"rank":0,', '{"rank":1,', IMAGE)
    assert reader.tab.locator(".ranks .good").count() == 2
    assert reader.tab.evaluate("window.ran") is None and reader.said == []
    reader.context.close()


@pytest.mark.thorough
@with_axe
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_has_no_findings_in_any_view(cluster: Cluster, browser: Any, dark: bool) -> None:
    user = cluster.user("reader")
    array = user.post("/v1/jobs", {"command": ["sh", "-c", "exit {task}"], "gpus": 1, "name": "many", "array": {"tasks": 2}})["id"]
    user.wait(array)
    held = user.submit(["true"], hold=True, name="held")
    views = {
        "/": "Who uses GPUs now", "/jobs": "many", f"/jobs/{array}": "task 0", f"/jobs/{array}.1": "Output", f"/jobs/{held}": "HELD",
        "/nodes": "READY", "/nodes/node0": "What it used", "/usage": "GPU hours in each day", "/submit": "What it would meet",
        "/queue": "What another policy", "/experiments": "Default",
    }  # fmt: skip
    reader = opened(browser, cluster.api, cluster.url, "/", dark=dark)
    reader.sees("Overview")
    findings = []
    for view, words in views.items():
        reader.tab.goto(f"{cluster.url}/#{view}")
        reader.sees(words)
        findings += reader.findings()
    user.post(f"/v1/jobs/{held}/cancel")
    assert findings == [] and reader.said == []
    reader.context.close()


def test_the_overview_is_small_and_stays_so(cluster: Cluster, browser: Any) -> None:
    """At most 200 KB to begin with, and 20 KB a minute from then on: the renewals of one are counted, and six make a minute."""
    reader = Reader(browser)
    session = reader.context.new_cdp_session(reader.tab)
    sizes: list[float] = []
    addresses: dict[str, str] = {}
    renewed: list[float] = []
    session.send("Network.enable")
    session.on("Network.requestWillBeSent", lambda event: addresses.update({event["requestId"]: event["request"]["url"]}))

    def count(event: Any) -> None:
        sizes.append(event["encodedDataLength"])
        if addresses.get(event["requestId"], "").endswith("/v1/overview"):
            renewed.append(event["encodedDataLength"])

    session.on("Network.loadingFinished", count)
    reader.tab.goto(f"{cluster.url}/#code={cluster.api.post('/v1/session/codes')['code']}&to=/")
    reader.sees("Who uses GPUs now", "GPU hours")
    assert 0 < sum(sizes) <= 200_000, sizes
    eventually(lambda: reader.text() and len(renewed) >= 2, "a renewal")  # events come while the browser is asked something
    assert max(renewed) * 6 <= 20_000, renewed
    reader.context.close()


def test_a_page_that_is_open_goes_on_after_a_restart_of_the_controller(tmp_path: Path, browser: Any) -> None:
    cluster = Cluster(tmp_path, [1])
    try:
        cluster.start()
        reader = opened(browser, cluster.api, cluster.url, "/jobs")
        reader.sees("There is no such job.")
        cluster.controller.kill(signal.SIGKILL)
        reader.sees("The controller does not answer. Trying again.")
        cluster.start_controller()
        job = cluster.api.submit(["true"])
        reader.sees(job)
        assert "does not answer" not in reader.text()
        reader.context.close()
    finally:
        cluster.stop()


def test_older_runs_are_shown_when_asked_for(cluster: Cluster, browser: Any) -> None:
    api = "/api/2.0/mlflow"
    experiment = cluster.api.post(f"{api}/experiments/create", {"name": "many runs"})["experiment_id"]
    for number in range(101):
        cluster.api.post(f"{api}/runs/create", {"experiment_id": experiment, "run_name": f"run {number}", "start_time": 1000 + number})
    reader = Reader(browser)
    code = cluster.api.post("/v1/session/codes")["code"]
    reader.tab.goto(f"{cluster.url}/#code={code}&to=/experiments/{experiment}")
    reader.sees("run 100", "run 1")
    assert reader.tab.locator("tbody tr").count() == 100 and reader.tab.get_by_text("run 0", exact=True).count() == 0
    reader.tab.get_by_role("button", name="Show older runs").click()
    eventually(lambda: reader.tab.locator("tbody tr").count() == 101, "all runs")
    assert reader.tab.get_by_role("button", name="Show older runs").is_hidden()
    reader.context.close()


@pytest.mark.parametrize(
    ("address", "line"),
    [
        ("/experiments/0/runs/0123456789abcdef0123456789abcdef", "Run with id=0123456789abcdef0123456789abcdef not found"),
        ("/experiments/987654321", "No Experiment with id=987654321 exists"),
        ("/jobs/aaaaaaaaaaaaaaaa", "no job aaaaaaaaaaaaaaaa"),
        (f"/models/m-1{urllib.parse.quote(IMAGE)}", "It has no view for /models/m-1<img"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(cluster: Cluster, browser: Any, address: str, line: str) -> None:
    reader = Reader(browser)
    code = cluster.api.post("/v1/session/codes")["code"]
    reader.tab.goto(f"{cluster.url}/#code={code}&to={urllib.parse.quote(address, safe='')}")
    reader.sees(line)
    assert reader.tab.locator("main > *").count() == 1 and "\n" not in reader.tab.locator("main").inner_text().strip()
    assert reader.tab.evaluate("window.ran") is None
    reader.context.close()
