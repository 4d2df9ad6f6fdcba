# SPDX-License-Identifier: Apache-2.0
"""The web page as programs see it: its files and their headers, the link of a run, and `gpuctl open`. What a person sees in a browser is
tests/notebooks/test_browser.py.
"""

from __future__ import annotations

import gzip
import html
import json
import re
import stat
import subprocess
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import ROOT, Api, Cluster, run_gpuctl
from test_functions import environment
from test_runs import ended_run, measure

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
#: Writes down what it is called with, and what it finds in the file that the URL names.
BROWSER = """#!/usr/bin/env python3
import json, sys, urllib.parse
path = urllib.parse.unquote(urllib.parse.urlsplit(sys.argv[-1]).path)
json.dump({"argv": sys.argv[1:], "page": open(path).read() if sys.argv[-1].startswith("file:") else None}, open(__file__ + ".said", "w"))
"""


def files_of(anyone: Api) -> list[str]:
    """The paths of the page and of what it names."""
    page = anyone.raw("GET", "/")[2].decode()
    return ["/", *re.findall(r'(?:href|src)="([^"]+)"', page)]


def scripts_of(anyone: Api) -> list[str]:
    """The paths of scripts that the scripts of the page fetch when they need them."""
    texts = [anyone.raw("GET", path)[2].decode() for path in files_of(anyone) if path.endswith(".js")]
    return [f"/web/{name}" for text in texts for name in re.findall(r'import\("\./([^"]+)"\)', text)]


def test_the_files_of_the_page_are_for_anyone_and_reach_this_server_alone(cluster: Cluster) -> None:
    anyone = Api(cluster.url, None)
    types = {
        "html": "text/html; charset=utf-8",
        "js": "text/javascript; charset=utf-8",
        "css": "text/css; charset=utf-8",
        "svg": "image/svg+xml",
    }
    paths = files_of(anyone)
    assert [re.sub(r"-[A-Z0-9]{8}\.", "-X.", path) for path in paths] == ["/", "/web/icon.svg", "/web/main-X.css", "/web/main-X.js"]
    assert [re.sub(r"-[A-Z0-9]{8}\.", "-X.", path) for path in scripts_of(anyone)] == ["/web/uPlot.esm-X.js"]
    for path in paths + scripts_of(anyone):
        status, headers, body = anyone.raw("GET", path)
        assert status == 200 and headers["content-type"] == types[path.rpartition(".")[2] if path != "/" else "html"]
        assert headers["content-security-policy"] == CSP and headers["vary"] == "Accept-Encoding"
        assert headers["cache-control"] == ("public, max-age=31536000, immutable" if "-" in path else "no-cache")
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
        _, packed_headers, packed = anyone.raw("GET", path, headers={"Accept-Encoding": "deflate, gzip, br"})
        assert packed_headers["content-encoding"] == "gzip" and gzip.decompress(packed) == body and "content-encoding" not in headers
        assert packed_headers["etag"] != headers["etag"]
        again, headers, body = anyone.raw("GET", path, headers={"If-None-Match": headers["etag"]})
        assert (again, body) == (304, b"") and headers["content-security-policy"] == CSP
        assert anyone.raw("GET", path, headers={"If-None-Match": '"another"'})[0] == 200
    assert anyone.raw("GET", "/web/nothing.js")[0] == 404 and anyone.raw("GET", "/web/")[0] == 404
    assert anyone.raw("POST", "/")[0] == 405


def test_the_page_is_small(cluster: Cluster) -> None:
    anyone = Api(cluster.url, None)

    def sent(paths: list[str]) -> int:
        return sum(len(anyone.raw("GET", path, headers={"Accept-Encoding": "gzip"})[2]) for path in paths)

    assert sent(files_of(anyone)) < 60_000 and sent(scripts_of(anyone)) < 30_000


def test_the_files_of_the_page_name_no_other_place_and_hold_no_markup_that_runs(cluster: Cluster) -> None:
    anyone = Api(cluster.url, None)
    for path in files_of(anyone) + scripts_of(anyone):
        text = anyone.raw("GET", path)[2].decode()
        places = set(re.findall(r"https?://[^\s\"'`)]+", text))
        assert all(place.startswith("http://www.w3.org/") for place in places), (path, places)  # the names of SVG and its like
        assert not re.search(r"<style|<script(?! type=\"module\" src=)|javascript:", text), path
    for source in (ROOT / "client" / "web" / "src").rglob("*.ts*"):
        text = source.read_text()
        markup = r"[iI]nnerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|\bsrcdoc\b|\sstyle="
        assert not re.search(markup, text), source


@pytest.fixture(scope="module")
def job(cluster: Cluster) -> str:
    """A job that has ended and has a run."""
    made = measure(cluster, "runtime.log_metric('x', 1)", name="paged")
    cluster.api.wait(made)
    ended_run(cluster, made, "paged")
    return made


Open = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def browser(tmp_path: Path) -> Path:
    path = tmp_path / "browser"
    path.write_text(BROWSER)
    path.chmod(0o755)
    return path


@pytest.fixture
def gpuctl_open(cluster: Cluster, tmp_path: Path) -> Open:
    """`gpuctl open` of somebody without a desktop; BROWSER as asked for."""
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)

    def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
        plain = {**environment(cluster, tmp_path), "XDG_RUNTIME_DIR": str(runtime), "BROWSER": "", "DISPLAY": "", "WAYLAND_DISPLAY": ""}
        ran = run_gpuctl("open", *arguments, env={**plain, **env})
        assert cluster.admin_token not in ran.stdout + ran.stderr
        return ran

    return run


def url_of(cluster: Cluster, job: str) -> str:
    return str(cluster.api.get(f"/v1/jobs/{job}/runs")["runs"][0]["url"])


def test_open_leads_the_browser_to_the_run_by_a_file_of_the_persons_own(
    cluster: Cluster, job: str, gpuctl_open: Open, browser: Path, tmp_path: Path
) -> None:
    url = url_of(cluster, job)
    ran = gpuctl_open(job[:6], BROWSER=f"{browser} --new %s:other")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, url + "\n", "")
    said = json.loads(browser.with_suffix(".said").read_text())
    file = tmp_path / "runtime" / "gpuctl" / "open.html"
    assert said["argv"] == ["--new", file.as_uri()]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    (link,) = re.findall(r'content="0; url=([^"]+)"', said["page"])
    base, fragment = html.unescape(link).split("#")
    assert base == cluster.url + "/"
    given = urllib.parse.parse_qs(fragment)
    assert given["to"] == [urllib.parse.urlsplit(url).fragment] and cluster.admin_token not in said["page"]
    assert Api(cluster.url, None).post("/v1/session", {"code": given["code"][0]})["owner"] == "admin"
    assert gpuctl_open(BROWSER=str(browser)).stdout == f"{cluster.url}/#/\n"
    assert 'to=%2F"' in file.read_text() and [path.name for path in file.parent.iterdir()] == ["open.html"]


def test_where_no_browser_starts_open_prints_the_address_and_how_to_sign_in(cluster: Cluster, job: str, gpuctl_open: Open) -> None:
    for env, why in (
        ({}, "this session has no browser"),
        ({"BROWSER": "false"}, "false has failed"),
        ({"BROWSER": "/no/such"}, "/no/such"),
    ):
        ran = gpuctl_open(job, **env)
        assert (ran.returncode, ran.stdout) == (0, url_of(cluster, job) + "\n")
        assert why in ran.stderr and "gpuctl open --link" in ran.stderr and ran.stderr.count("\n") == 1
    link = gpuctl_open("--link", job).stdout
    assert re.fullmatch(rf"{re.escape(cluster.url)}/#code=[0-9a-f]{{32}}&to=\S+\n", link)


def test_open_of_a_job_without_a_run_waits_for_one_and_of_one_elsewhere_goes_there_without_a_code(
    cluster: Cluster, gpuctl_open: Open, browser: Path
) -> None:
    silent = cluster.api.submit(["true"])
    assert gpuctl_open(silent).stdout == f"{cluster.url}/#/jobs/{silent}\n"
    env = {"MLFLOW_TRACKING_URI": "https://m.example/", "MLFLOW_RUN_ID": "r1", "MLFLOW_EXPERIMENT_ID": "7"}
    elsewhere = "https://m.example/#/experiments/7/runs/r1"
    job = cluster.api.submit(["true"], env=env)
    assert gpuctl_open(job, BROWSER=str(browser)).stdout == elsewhere + "\n"
    assert json.loads(browser.with_suffix(".said").read_text())["argv"] == [elsewhere]
    assert gpuctl_open("--link", job).stdout == elsewhere + "\n"
    job = cluster.api.submit(["true"], env={"MLFLOW_TRACKING_URI": "file:///x", "MLFLOW_RUN_ID": "r1"})
    ran = gpuctl_open(job)
    assert ran.returncode != 0 and "tracks at file:///x" in ran.stderr
    refused = gpuctl_open("zzzz")
    assert refused.returncode != 0 and "no job's id starts with" in refused.stderr


def test_the_link_of_a_run_has_the_name_by_which_it_was_asked_for(cluster: Cluster, job: str) -> None:
    port = urllib.parse.urlsplit(cluster.url).port
    by_name = Api(f"http://localhost:{port}", cluster.admin_token).get(f"/v1/jobs/{job}/runs")["runs"][0]["url"]
    assert by_name == url_of(cluster, job).replace("127.0.0.1", "localhost")
