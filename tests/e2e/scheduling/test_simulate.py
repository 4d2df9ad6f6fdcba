# SPDX-License-Identifier: Apache-2.0
"""`gpuctl simulate`, as a person types it."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import subprocess
import threading
import urllib.parse
import xml.etree.ElementTree
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness import GPUCTL, Cluster, run_gpuctl
from paper_node import PaperNode

TRACE = "job_id,submit_s,duration_s,gpus\na,0,100,2\nb,50,100,2\nc,100,100,1\n"
SACCT = """JobID|User|Submit|ElapsedRaw|Timelimit|AllocTRES|State
7|ann|2026-11-21T09:30:00|100|01:00:00|cpu=2,gres/gpu:a100=2,gres/gpu=2|COMPLETED
7.batch||2026-11-21T09:30:00|100||cpu=2,gres/gpu:a100=2,gres/gpu=2|COMPLETED
8|ann|2026-11-21T09:30:50|100|UNLIMITED|gres/gpu:a100=2|CANCELLED by 1001
9|bob|2026-11-21T09:31:00|100||cpu=2|COMPLETED
10|bob|2026-11-21T09:31:40|0|||PENDING
"""
SWF = "; Computer: paper\n1 0 -1 100 2 -1 -1 2 600 -1 1 3 1 1 1 -1 -1 -1\n2 50 -1 100 2 -1 -1 2 600 -1 1 4 1 1 1 -1 -1 -1\n"
POLICIES = ["fifo", "easy", "sjf", "srtf", "srsf", "default"]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "trace.csv"
    path.write_text(TRACE)
    return str(path)


def access(cluster: Cluster) -> dict[str, str]:
    """The environment in which gpuctl speaks to the cluster as its administrator."""
    return {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}


@contextlib.contextmanager
def listing(pages: list[list[dict[str, Any]]]) -> Iterator[str]:
    """The URL of a controller of paper that lists these pages of jobs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            number = int(urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("cursor", ["0"])[0])
            following = str(number + 1) if number + 1 < len(pages) else None
            reply = json.dumps({"jobs": pages[number], "next": following}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_the_figures_are_one_document_or_a_table(trace: str) -> None:
    usual = run_gpuctl("simulate", trace, "--nodes", "1x2", "-o", "json")
    assert usual.returncode == 0 and json.loads(usual.stdout)["policy"] == "default", usual.stderr
    ran = run_gpuctl("simulate", trace, "--nodes", "1x2", "--policy", "fifo", "-o", "json")
    figures = json.loads(ran.stdout)
    assert (figures["policy"], figures["jobs"], figures["preemptions"], figures["refused"]) == ("fifo", 3, 0, 0)
    assert figures["avg_jct_s"] == 150 and figures["p99_jct_s"] == 200 and figures["avg_wait_s"] == 50
    assert figures["utilization"] == 1 and figures["makespan_s"] == 300
    table = run_gpuctl("simulate", trace, "--nodes", "1x2", "--policy", "fifo").stdout.splitlines()
    assert table[0].split()[:2] == ["POLICY", "JOBS"] and table[1].split()[:4] == ["fifo", "3", "150", "s"]


def test_policies_are_compared_in_rows_a_list_or_lines(trace: str) -> None:
    asked = ["simulate", trace, "--nodes", "1x2", "--limits", "exact", "--policy"]
    table = run_gpuctl(*asked, "srsf,fifo,srsf").stdout.splitlines()
    assert [line.split()[0] for line in table] == ["POLICY", "srsf", "fifo"]
    documents = json.loads(run_gpuctl(*asked, "all", "-o", "json").stdout)
    assert [document["policy"] for document in documents] == POLICIES
    keys = {"policy", "jobs", "avg_jct_s", "p99_jct_s", "avg_wait_s", "utilization", "makespan_s", "preemptions"}
    assert all(keys <= set(document) and document["jobs"] == 3 and document["limits"] == "exact" for document in documents)
    lines = run_gpuctl(*asked, "easy,sjf", "-o", "jsonl").stdout.splitlines()
    assert [json.loads(line)["policy"] for line in lines] == ["easy", "sjf"]
    assert json.loads(run_gpuctl(*asked, "easy", "-o", "jsonl").stdout)["policy"] == "easy"


def test_the_help_names_every_policy() -> None:
    shown = run_gpuctl("simulate", "--help").stdout
    assert all(f"\n  {policy}: " in shown for policy in POLICIES)


def test_a_trace_may_come_by_standard_input() -> None:
    ran = subprocess.run([str(GPUCTL), "simulate", "-", "--nodes", "1x2", "-o", "json"], input=TRACE, capture_output=True, text=True)
    assert json.loads(ran.stdout)["jobs"] == 3, ran.stderr


def test_what_sacct_prints_is_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "sacct.txt"
    path.write_text(SACCT)
    ran = run_gpuctl("simulate", str(path), "--nodes", "1x2:a100", "-o", "json")
    figures = json.loads(ran.stdout)
    assert (figures["jobs"], figures["avg_jct_s"], figures["makespan_s"]) == (2, 125, 200)
    assert "left out: 2 jobs without GPUs, 0 that never ran" in ran.stderr


def test_the_standard_workload_format_is_a_trace(tmp_path: Path) -> None:
    path, saved = tmp_path / "log.swf", tmp_path / "log.csv"
    path.write_text(SWF)
    ran = run_gpuctl("simulate", str(path), "--nodes", "1x2", "-o", "json", "--save", str(saved))
    assert json.loads(ran.stdout)["avg_jct_s"] == 125, ran.stderr
    assert [(row["owner"], row["limit_s"]) for row in rows(saved)] == [("3", "600"), ("4", "600")]


def test_a_packed_trace_is_unpacked_and_one_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv.gz"
    packed = gzip.compress(b"submit_s,duration_s,gpus\n" + b"".join(b"%d,%d,1\n" % (i, 7919 * i % 1013) for i in range(5000)))
    path.write_bytes(packed)
    ran = run_gpuctl("simulate", str(path), "--nodes", "64x8", "-o", "json")
    assert json.loads(ran.stdout)["jobs"] == 5000, ran.stderr
    for wrong in (packed[: len(packed) // 2], packed[:-6] + b"\0\0" + packed[-4:]):
        path.write_bytes(wrong)
        ran = run_gpuctl("simulate", str(path), "--nodes", "64x8")
        assert ran.returncode != 0 and "trace.csv.gz is no whole gzip file" in ran.stderr, ran.stderr


def test_what_was_read_is_saved_as_csv_with_a_simulation_or_without(tmp_path: Path) -> None:
    source, saved, packed = tmp_path / "sacct.txt", tmp_path / "saved.csv", tmp_path / "saved.csv.gz"
    source.write_text(SACCT)
    ran = run_gpuctl("simulate", str(source), "--save", str(saved))
    assert ran.returncode == 0 and ran.stdout == "", ran.stderr
    assert [(row["submit_s"], row["gpu_type"], row["owner"], row["limit_s"]) for row in rows(saved)] == [
        ("1795253400", "a100", "ann", "3600"),
        ("1795253450", "a100", "ann", ""),
    ]
    assert run_gpuctl("simulate", str(saved), "--save", str(packed)).returncode == 0
    assert gzip.decompress(packed.read_bytes()) == saved.read_bytes()
    both = [run_gpuctl("simulate", str(path), "--nodes", "1x2:a100", "-o", "json").stdout for path in (source, packed)]
    assert both[0] == both[1] != ""


def test_jobs_that_never_fit_are_told_with_the_reason(trace: str) -> None:
    ran = run_gpuctl("simulate", trace, "--nodes", "1x1", "-o", "json")
    assert json.loads(ran.stdout)["refused"] == 2
    assert "2 of 3 jobs could never run" in ran.stderr and "needs 2 GPUs" in ran.stderr


@pytest.mark.parametrize("policies", ["fifo", "fifo,easy,srsf"])
def test_the_plot_has_two_panels_a_policy_and_one_for_completion_times(trace: str, tmp_path: Path, policies: str) -> None:
    plot, count = tmp_path / "plot.svg", len(policies.split(","))
    ran = run_gpuctl("simulate", trace, "--nodes", "1x2", "--policy", policies, "--plot", str(plot))
    assert ran.returncode == 0, ran.stderr
    root = xml.etree.ElementTree.parse(plot).getroot()
    texts = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    assert "GPUs in use" in texts and "jobs that wait" in texts
    assert len(list(root.iter(f"{SVG}rect"))) == 1 + 2 * count
    lines = [line.get("points", "").split() for line in root.iter(f"{SVG}polyline")]
    assert len(lines) == count
    for name, points in zip(policies.split(","), lines, strict=True):
        assert any(text.startswith(f"{name}: 100.0 % used") for text in texts)
        assert any(text.startswith(f"{name}: median ") for text in texts)
        heights = [float(point.split(",")[1]) for point in points]
        assert heights == sorted(heights, reverse=True) and len(set(heights)) == 4  # 0, 1, 2 and 3 of 3 jobs


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["TRACE"], "--nodes is missing"),
        (["TRACE", "--save", "/no/such/folder/x.csv", "--plot", "x.svg"], "--nodes is missing"),
        (["TRACE", "--save", "/no/such/folder/x.csv"], "/no/such/folder"),
        (["--nodes", "1x1"], "name a file with a trace, or --history"),
        (["TRACE", "--history"], "not both"),
        (["TRACE", "--nodes", "1x1", "--since", "1d"], "--since goes with --history"),
        (["TRACE", "--nodes", "8"], "does not say what nodes there are"),
        (["/no/such/trace", "--nodes", "1x1"], "cannot open /no/such/trace"),
        (["/no/such/trace.gz", "--nodes", "1x1"], "cannot open /no/such/trace.gz"),
        (["BAD", "--nodes", "1x1"], "bad.csv:2: duration_s is not a number"),
        (["TRACE", "--nodes", "1x1", "--policy", "fifo,lifo"], 'no policy "lifo"; there are fifo, easy,'),
        (["TRACE", "--nodes", "1x1", "--policy", ""], 'no policy ""'),
        (["TRACE", "--nodes", "1x1", "--limits", "some"], "limits"),
    ],
)
def test_a_wrong_use_names_the_remedy(trace: str, tmp_path: Path, arguments: list[str], said: str) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("submit_s,duration_s,gpus\n0,later,1\n")
    named = [{"TRACE": trace, "BAD": str(bad)}.get(word, word) for word in arguments]
    ran = run_gpuctl("simulate", *named)
    assert ran.returncode not in (0, 125) and said in ran.stderr, ran.stderr


def test_the_history_of_a_controller_is_a_trace_on_its_own_nodes(cluster: Cluster, tmp_path: Path) -> None:
    env = access(cluster)
    none = run_gpuctl("simulate", "--history", env=env)
    assert none.returncode != 0 and "no job that ran and has ended" in none.stderr
    cluster.api.wait(cluster.api.submit(["true"], gpus=2, name="a", project="vision", priority=7, time_limit_s=90.5))
    failed = cluster.api.submit(["sh", "-c", "sleep 0.5; exit 1"], gpus=4)
    cluster.api.wait(failed)
    cluster.api.wait(cluster.api.submit(["sleep", "0.3"], gpus=1, gpu_type="cpu"))
    held = cluster.api.submit(["sleep", "60"], gpus=4)
    waiting = cluster.api.submit(["true"], gpus=1)
    cluster.wait_state(held, "RUNNING")
    for job in (waiting, held):  # the first of them never ran
        cluster.api.post(f"/v1/jobs/{job}/cancel")
    cluster.api.wait(waiting)
    cluster.api.wait(held)
    saved, plot = tmp_path / "history.csv", tmp_path / "plot.svg"
    ran = run_gpuctl("simulate", "--history", "--policy", "fifo,easy", "-o", "json", "--save", str(saved), "--plot", str(plot), env=env)
    assert ran.returncode == 0, ran.stderr
    assert "the cluster is the controller's: --nodes 2x2:cpu" in ran.stderr and "1 that never ran" in ran.stderr
    assert [document["jobs"] for document in json.loads(ran.stdout)] == [4, 4]
    assert plot.exists()
    listed = {job["id"]: job for job in cluster.api.get("/v1/jobs")["jobs"]}
    assert [job["time_limit_s"] for job in listed.values() if job["priority"] == 7] == [90.5]
    kept = rows(saved)
    assert [row["gpus"] for row in kept] == ["2", "4", "1", "4"]  # in the order in which they were submitted
    assert (kept[0]["name"], kept[0]["project"], kept[0]["priority"], kept[0]["limit_s"]) == ("a", "vision", "7", "90.5")
    assert (kept[1]["name"], kept[1]["project"], kept[1]["limit_s"], kept[2]["gpu_type"]) == ("", "default", "", "cpu")
    assert 0.3 <= float(kept[2]["duration_s"]) < 30
    again = run_gpuctl("simulate", str(saved), "--nodes", "2x2:cpu", "--policy", "fifo", "-o", "json")
    assert json.loads(again.stdout) == json.loads(ran.stdout)[0]
    long_ago = run_gpuctl("simulate", "--history", "--since", "1ms", env=env)
    assert long_ago.returncode != 0 and "look further back with --since" in long_ago.stderr


def test_all_pages_count_and_a_job_lasts_as_long_as_it_had_its_gpus(tmp_path: Path) -> None:
    def job(gpus: int, start: int, end: int, **more: Any) -> dict[str, Any]:
        moments = {"created_at": "2026-11-21T09:30:00Z", "started_at": f"2026-11-21T09:{start}:00Z", "ended_at": f"2026-11-21T09:{end}:00Z"}
        return {"id": "a" * 16, "state": "SUCCEEDED", "owner": "ann", "project": "p", "gpus": gpus, **moments, **more}

    pages = [[job(3, 31, 32), job(2, 40, 50, ran_s=90.5)], [job(1, 30, 31, ran_s=0)]]  # the newest first
    token, saved = tmp_path / "token", tmp_path / "history.csv"
    token.write_text("secret")
    with listing(pages) as url:
        ran = run_gpuctl(
            "simulate", "--history", "--nodes", "1x4", "-o", "json", "--save", str(saved), "--url", url, "--token-file", str(token)
        )
    assert json.loads(ran.stdout)["jobs"] == 3, ran.stderr
    assert [(row["gpus"], row["duration_s"]) for row in rows(saved)] == [("1", "60"), ("2", "90.5"), ("3", "60")]


def test_without_history_no_controller_is_asked(trace: str) -> None:
    env = {"GPUCTL_URL": "http://127.0.0.1:9", "GPUCTL_TOKEN_FILE": "/no/such/token"}
    assert run_gpuctl("simulate", trace, "--nodes", "1x2", env=env).returncode == 0
    refused = run_gpuctl("simulate", "--history", env=env)
    assert refused.returncode != 0 and "/no/such/token" in refused.stderr


def test_the_nodes_of_a_controller_count_by_size_and_type_while_they_take_work(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    cluster.api.wait(cluster.api.submit(["true"]))
    cluster.api.post("/v1/nodes/node0/drain", {"reason": "to be left out"})
    kinds = {"n1": ["A10"] * 4, "n2": ["A10"] * 4, "n3": ["A10", "H100", "A10"]}
    with contextlib.ExitStack() as stack:
        for name, types in kinds.items():
            node = PaperNode(cluster, name, len(types), types)
            stack.callback(cluster.api.post, f"/v1/nodes/{name}/fence", {"assert_dead": True})
            stack.callback(node.close)
        ran = run_gpuctl("simulate", "--history", "-o", "json", env=access(cluster))
        assert json.loads(ran.stdout)["jobs"] == 1, ran.stderr
        assert "--nodes 2x4:A10,1x2:A10,1x1:H100" in ran.stderr
    empty = run_gpuctl("simulate", "--history", env=access(cluster))
    assert empty.returncode != 0 and "no node with GPUs that takes work" in empty.stderr
    named = run_gpuctl("simulate", "--history", "--nodes", "1x1", "-o", "json", env=access(cluster))
    assert json.loads(named.stdout)["jobs"] == 1 and "the cluster is" not in named.stderr
