# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes the controller: it evaluates every query of deploy/grafana, and the alerts of deploy/alerts fire."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import ROOT, Cluster, Program, eventually
from test_gpus import GpuNode

pytestmark = pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs Debian's package prometheus")

RULES = ROOT / "deploy" / "alerts" / "gpuctl.rules.yml"
BOARD = ROOT / "deploy" / "grafana" / "gpuctl.json"
#: Have values only when something has happened, or where a driver says so.
MAY_BE_EMPTY = ("increase(gpuctl_gpu_energy_joules_total[1h])", "gpuctl_log_bytes", "gpuctl_blob_bytes")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Prometheus:
    """One that scrapes the controller each second, with the alerts; what they wait for is shortened."""

    def __init__(self, cluster: Cluster, folder: Path):
        target = urllib.parse.urlsplit(cluster.url)
        rules = folder / "rules.yml"
        rules.write_text(re.sub(r"for: \d+m", "for: 1s", RULES.read_text()))
        config = folder / "prometheus.yml"
        config.write_text(
            json.dumps({
                "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(rules)],
                "scrape_configs": [{
                    "job_name": "gpuctl",
                    "scheme": target.scheme,
                    "authorization": {"credentials": cluster.user("prometheus", "monitor").token},
                    "static_configs": [{"targets": [target.netloc]}],
                }],
            })
        )  # fmt: skip
        self.url = f"http://127.0.0.1:{free_port()}"
        address = self.url.removeprefix("http://")
        command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}", f"--web.listen-address={address}"]
        self.program = Program(command, folder / "prometheus.log", dict(os.environ))
        self.program.start()

    def ask(self, path: str) -> Any:
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}", timeout=10) as answer:
                return json.load(answer)["data"]
        except OSError:
            return None

    def query(self, expression: str) -> Any:
        data = self.ask(f"query?query={urllib.parse.quote(expression)}")
        return data["result"] if data else []

    def firing(self) -> set[str]:
        data = self.ask("alerts")
        return {alert["labels"]["alertname"] for alert in data["alerts"] if alert["state"] == "firing"} if data else set()


@pytest.fixture
def gpus(make_cluster: Callable[..., Cluster], tmp_path: Path) -> Iterator[GpuNode]:
    node = GpuNode(make_cluster(), tmp_path, "GPU-prometheus-")
    node.show("busy 0 97", "power 0 650250", "memory 0 1024", "temperature 0 64", "energy 0 5000000123")
    yield node
    node.show()


@pytest.fixture
def prometheus(gpus: GpuNode, tmp_path: Path) -> Iterator[Prometheus]:
    made = Prometheus(gpus.cluster, tmp_path)
    yield made
    made.program.kill()


def test_promtool_has_no_findings(gpus: GpuNode) -> None:
    _, _, page = gpus.api.raw("GET", "/metrics")
    for command, text in ((["check", "metrics"], page.decode()), (["check", "rules", str(RULES)], "")):
        checked = subprocess.run(["promtool", *command], input=text, capture_output=True, text=True, check=False)
        assert checked.returncode == 0 and not checked.stderr, checked.stdout + checked.stderr


def test_every_query_of_the_board_has_an_answer(gpus: GpuNode, prometheus: Prometheus) -> None:
    job = gpus.api.submit(["sleep", "600"], project="vision", gpus=2, name="held")
    gpus.cluster.wait_state(job, "RUNNING")
    board = json.loads(BOARD.read_text())
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(queries) > 20

    def answered(expression: str) -> bool:
        """Also when it is empty where that may be; a query that cannot be understood has no answer."""
        data = prometheus.ask(f"query?query={urllib.parse.quote(expression)}")
        return bool(data) and (bool(data["result"]) or any(part in expression for part in MAY_BE_EMPTY))

    left = queries
    while left:
        eventually(functools.partial(answered, left[0]), f"an answer to {left[0]}")
        left = left[1:]
    joined = "gpuctl_gpu_utilization_ratio * on (node, gpu, uuid) group_left (job_id, project) gpuctl_gpu_allocation_info"
    rows = prometheus.query(joined)
    assert len(rows) == 2 and {(row["metric"]["job_id"], row["metric"]["project"]) for row in rows} == {(job, "vision")}


def test_alerts_fire_for_what_matters_and_for_nothing_else(gpus: GpuNode, prometheus: Prometheus) -> None:
    eventually(lambda: prometheus.query("gpuctl_gpu_unavailable"), "the first scrape")
    calm = {"GpuctlBackupOld"}  # the controller is so young that it has none
    assert prometheus.firing() <= calm
    gpus.show("process 0 1", "temperature 1 95")
    eventually(lambda: {"GpuctlGpuUnavailable", "GpuctlGpuHot"} <= prometheus.firing(), "the alerts of GPUs")
    gpus.show()
    eventually(lambda: prometheus.firing() <= calm, "them to be over")
    gpus.agent.kill()
    eventually(lambda: "GpuctlNodeSilent" in prometheus.firing(), "the alert of the node")
    gpus.cluster.controller.kill()
    eventually(lambda: "GpuctlControllerDown" in prometheus.firing(), "the alert of the controller")


def test_each_alert_fires_on_its_own_condition(tmp_path: Path) -> None:
    """By promtool's clock, with the times that the rules have."""
    cases = {
        "GpuctlControllerDown": {'up{job="gpuctl"}': "0x60"},
        "GpuctlNodeSilent": {"gpuctl_nodes_silent": "1x60"},
        "GpuctlNodeLost": {'gpuctl_nodes{state="LOST"}': "2x60"},
        "GpuctlLeasesHeld": {"gpuctl_leases_held": "1x60"},
        "GpuctlQueueStuck": {'gpuctl_jobs{state="QUEUED"}': "3x60", "gpuctl_attempts": "0x60"},
        "GpuctlGpuUnavailable": {'gpuctl_gpu_unavailable{node="n",gpu="0",uuid="u"}': "1x60"},
        "GpuctlGpuHot": {'gpuctl_gpu_temperature_celsius{node="n",gpu="0",uuid="u"}': "95x60"},
        "GpuctlDiskLow": {"gpuctl_disk_free_bytes": "5x60", "gpuctl_disk_margin_bytes": "4x60"},
        "GpuctlBackupOld": {"gpuctl_backup_newest_timestamp_seconds": "-30000x60"},
        "GpuctlBoundNearlyReached": {'gpuctl_used{of="connections"}': "9x60", 'gpuctl_limit{of="connections"}': "10x60"},
        "GpuctlCommitsSlow": {'gpuctl_commit_seconds_bucket{le="0.1"}': "0+1x60", 'gpuctl_commit_seconds_bucket{le="1"}': "0+9x60",
                              'gpuctl_commit_seconds_bucket{le="+Inf"}': "0+9x60"},
    }  # fmt: skip
    assert set(cases) == set(re.findall(r"alert: (\w+)", RULES.read_text()))
    tests = []
    for name, series in cases.items():
        inputs = [{"series": key, "values": f"{values.split('x')[0]}x60" if "+" in values else values} for key, values in series.items()]
        tests.append({
            "interval": "1m",
            "input_series": inputs,
            "promql_expr_test": [{
                "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})', "eval_time": "40m",
                "exp_samples": [{"value": 1}],
            }, {
                "expr": 'count(ALERTS{alertstate="firing"})', "eval_time": "40m", "exp_samples": [{"value": 1}],
            }],
        })  # fmt: skip
    file = tmp_path / "tests.yml"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
