# SPDX-License-Identifier: Apache-2.0
"""GET /metrics is Prometheus' text format to the letter, its values are true, and docs/admin/monitoring.md lists all of it."""

from __future__ import annotations

import hashlib
import re
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from harness import ROOT, Api, Cluster, eventually

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\n"])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?\d+(?:\.\d+)?)")
ROW = re.compile(r"^\| `(gpuctl_\w+)` \| (\w+) \| (.+) \|$", re.MULTILINE)
ENDINGS = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}


@dataclass
class Metric:
    """One metric: its type, its help, and its samples by what follows its name."""

    type: str
    help: str
    samples: dict[str, float] = field(default_factory=dict)


def parse(text: str) -> dict[str, Metric]:
    """Every line of the page, strictly: HELP, TYPE, then all samples of that metric, none twice."""
    assert text.endswith("\n") and "\r" not in text
    found: dict[str, Metric] = {}
    lines = iter(text[:-1].split("\n"))
    name = ""
    for line in lines:
        if line.startswith("#"):
            about = re.fullmatch(rf"# HELP ({NAME}) (\S.*)", line)
            assert about, line
            name = about[1]
            kind = re.fullmatch(rf"# TYPE {name} (counter|gauge|histogram)", next(lines))
            assert kind and name not in found, line
            assert name.endswith("_total") == (kind[1] == "counter"), line
            found[name] = Metric(kind[1], about[2])
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, line
        ending = sample[1].removeprefix(name)
        assert sample[1].startswith(name) and ending in ENDINGS[found[name].type], line
        key = f"{ending}{{{sample[2] or ''}}}"
        assert key not in found[name].samples, line
        found[name].samples[key] = float(sample[3])
    for metric in found.values():
        if metric.type == "histogram":
            check_histogram(metric)
    return found


def check_histogram(metric: Metric) -> None:
    """Buckets rise up to +Inf, which is the count."""
    series: dict[str, list[tuple[float, float]]] = {}
    for key, value in metric.samples.items():
        bucket = re.fullmatch(r'_bucket\{(.*?),?le="([^"]+)"\}', key)
        if bucket:
            series.setdefault(bucket[1], []).append((float(bucket[2]), value))
    for labels, buckets in series.items():
        assert buckets == sorted(buckets) and buckets[-1][0] == float("inf")
        assert [value for _, value in buckets] == sorted(value for _, value in buckets)
        assert buckets[-1][1] == metric.samples[f"_count{{{labels}}}"]
        assert metric.samples[f"_sum{{{labels}}}"] >= 0


def metrics(api: Api) -> dict[str, Metric]:
    status, headers, body = api.raw("GET", "/metrics")
    assert status == 200 and headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return parse(body.decode())


def value(api: Api, name: str, labels: str = "") -> float:
    return metrics(api)[name].samples.get(f"{{{labels}}}", 0.0)


SUBMITTED = 'method="POST",route="/v1/jobs",class="2xx"'


def test_the_page_counts_what_was_asked_by_pattern_and_never_by_path(make_cluster: Callable[..., Cluster]) -> None:
    api = make_cluster(1).api
    before = value(api, "gpuctl_http_requests_total", SUBMITTED)
    jobs = [api.submit(["true"]) for _ in range(5)]
    for job in jobs:
        assert api.wait(job)["state"] == "SUCCEEDED"
    status, _, text = api.raw("GET", "/metrics")
    found = parse(text.decode())
    assert status == 200 and found["gpuctl_http_requests_total"].samples[f"{{{SUBMITTED}}}"] - before == 5
    assert found["gpuctl_http_request_seconds"].samples['_count{method="POST",route="/v1/jobs"}'] >= 5
    assert found["gpuctl_http_requests_total"].samples['{method="GET",route="/v1/jobs/{id}",class="2xx"}'] >= 5
    assert not any(job in text.decode() for job in jobs)
    api.raw("GET", "/no/such/path")
    assert value(api, "gpuctl_http_requests_total", 'method="none",route="none",class="4xx"') == 1


def test_the_page_says_what_the_cluster_has(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, 1)
    api = cluster.api
    running = api.submit(["sleep", "600"])
    cluster.wait_state(running, "RUNNING")
    waiting = api.submit(["true"], gpus=2)
    held = api.submit(["true"], hold=True)

    def states() -> dict[str, float]:
        return {key[8:-2]: count for key, count in metrics(api)["gpuctl_jobs"].samples.items() if count}

    eventually(lambda: states() == {"RUNNING": 1, "QUEUED": 1, "HELD": 1}, "the jobs to be counted")
    found = metrics(api)
    assert found["gpuctl_attempts"].samples["{}"] == 1
    assert found["gpuctl_nodes"].samples['{state="READY"}'] == 2
    assert found["gpuctl_used"].samples['{of="live_jobs"}'] == 3
    assert found["gpuctl_used"].samples['{of="connections"}'] >= 3  # the agents' and this one
    assert set(found["gpuctl_used"].samples) == set(found["gpuctl_limit"].samples)
    assert all(used <= found["gpuctl_limit"].samples[key] for key, used in found["gpuctl_used"].samples.items())
    assert found["gpuctl_commit_seconds"].samples["_count{}"] >= 3
    assert found["gpuctl_scheduling_seconds"].samples["_count{}"] >= 1
    for job in (waiting, held, running):
        api.post(f"/v1/jobs/{job}/cancel")
    eventually(lambda: value(api, "gpuctl_jobs_ended_total", 'state="CANCELED"') == 3, "the ends to be counted")
    assert states() == {} and value(api, "gpuctl_jobs_submitted_total") == 3
    cluster.agents.pop().kill()
    eventually(lambda: value(api, "gpuctl_nodes_silent") == 1, "the dead agent's node to be silent")


def sizes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_the_page_says_what_is_on_the_disk_as_of_the_last_round_of_retention(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    api = cluster.api
    assert metrics(api)["gpuctl_log_bytes"].samples == metrics(api)["gpuctl_blob_bytes"].samples == {}
    assert api.wait(api.submit(["echo", "hello"]))["state"] == "SUCCEEDED"
    data = b"x" * 100_000
    assert api.raw("PUT", f"/v1/blobs/{hashlib.sha256(data).hexdigest()}", data, {"Content-Type": "application/octet-stream"})[0] == 201
    api.post("/v1/retention", {"dry_run": True})
    logs = sizes(cluster.folder / "controller" / "logs")
    assert logs > len("hello\n") and value(api, "gpuctl_log_bytes") == logs
    assert value(api, "gpuctl_blob_bytes") == len(data)
    disk = shutil.disk_usage(cluster.folder).total
    assert 0.49 * disk < value(api, "gpuctl_log_share_bytes") < 0.51 * disk


def test_the_page_tells_requests_that_wait_from_those_that_are_worked_on(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    api = cluster.api
    job = api.submit(["true"], hold=True)
    eventually(lambda: value(api, "gpuctl_http_requests_parked") == 1, "the agent's poll to be parked")
    waiting = threading.Thread(target=api.get, args=(f"/v1/jobs/{job}?wait=60",))
    waiting.start()
    eventually(lambda: value(api, "gpuctl_http_requests_parked") == 2, "the wait to be parked")
    api.post(f"/v1/jobs/{job}/cancel")
    waiting.join()
    eventually(lambda: value(api, "gpuctl_http_requests_parked") == 1, "the wait to be over")


def test_the_page_has_the_size_of_what_is_refused_at_its_bound(make_cluster: Callable[..., Cluster]) -> None:
    api = make_cluster(1, 1).api
    used = metrics(api)["gpuctl_used"].samples
    assert (used['{of="pools"}'], used['{of="gpu_types"}'], used['{of="windows"}'], used['{of="limited_accounts"}']) == (1, 1, 0, 0)
    api.post("/v1/windows", {"nodes": ["node0"], "from": "2090-01-01T00:00:00Z", "until": "2090-01-02T00:00:00Z"})
    api.call("PUT", "/v1/accounts/projects/vision", {"quota": {"cpu": 1}})
    used = metrics(api)["gpuctl_used"].samples
    assert (used['{of="windows"}'], used['{of="limited_accounts"}']) == (1, 1)


def test_users_may_read_it_and_nodes_and_strangers_may_not(cluster: Cluster) -> None:
    assert cluster.user("ann").raw("GET", "/metrics")[0] == 200
    assert cluster.user("nodes", "node").raw("GET", "/metrics")[0] == 403
    assert Api(cluster.url, None).raw("GET", "/metrics")[0] == 401


def test_the_page_of_the_documents_lists_every_metric(cluster: Cluster) -> None:
    listed = {row[1]: (row[2], row[3]) for row in ROW.finditer((ROOT / "docs/admin/monitoring.md").read_text(encoding="utf-8"))}
    assert listed == {name: (metric.type, metric.help) for name, metric in metrics(cluster.api).items()}
