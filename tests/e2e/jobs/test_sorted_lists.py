# SPDX-License-Identifier: Apache-2.0
"""`gpuctl ps --sort`: by columns, by parameters of a sweep, and by the metrics that its tasks have logged."""

from __future__ import annotations

import json
import subprocess

import pytest

from harness import PYTHON, Cluster, eventually, run_gpuctl

#: Logs the loss of a task as a rank does: a line on the node's socket. The task with depth 3 logs none.
LOG = """
import json, os, socket, sys, time
lr, depth = float(sys.argv[1]), int(sys.argv[2])
if depth != 3:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as talk:
        talk.connect(os.environ["GPUCTL_SOCKET"])
        for step, value in enumerate((9.0, lr * depth)):
            talk.send(json.dumps({"metric": "loss", "value": value, "step": step, "rank": 0, "time": time.time()}).encode())
"""


def ps(cluster: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    env = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}
    return run_gpuctl("ps", "--all", *words, env=env)


def column(shown: str, title: str) -> list[str]:
    """The cells below a title, which stands where they begin."""
    head, *rows = shown.splitlines()
    at = head.index(title)
    return [row[at:].split(" ")[0] for row in rows]


def test_tasks_are_sorted_by_metrics_and_parameters(cluster: Cluster) -> None:
    spec = {"command": [PYTHON, "-c", LOG, "{lr}", "{depth}"], "gpus": 1, "sweep": {"lr": [0.5, 0.25], "depth": [1, 10, 3]}}
    array = cluster.api.post("/v1/jobs", spec)["id"]
    assert cluster.api.wait(array)["state"] == "SUCCEEDED"
    shown = eventually(lambda: (ran := ps(cluster, "--array", array, "--sort", "loss")).returncode == 0 and ran.stdout, "the metrics")
    assert column(shown, "loss") == ["0.25", "0.5", "2.5", "5", "-", "-"]
    assert column(shown, "TASK")[:4] == ["3", "0", "4", "1"]
    assert column(ps(cluster, "--array", array, "--sort", "-loss").stdout, "loss") == ["5", "2.5", "0.5", "0.25", "-", "-"]
    assert column(ps(cluster, "--array", array, "--sort", "depth").stdout, "depth") == ["1", "1", "3", "3", "10", "10"]
    assert column(ps(cluster, "--array", array, "--sort", "task").stdout, "TASK") == ["0", "1", "2", "3", "4", "5"]
    listed = json.loads(ps(cluster, "--array", array, "--sort", "loss", "-o", "json").stdout)["jobs"]
    assert [task["task"] for task in listed][:4] == [3, 0, 4, 1] and listed[0]["metrics"]["loss"] == 0.25
    refused = ps(cluster, "--array", array, "--sort", "accuracy")
    assert refused.returncode == 2 and "no metric of these tasks" in refused.stderr and "VALUES" in refused.stderr


def test_jobs_are_sorted_by_a_column_as_numbers_and_as_texts(cluster: Cluster) -> None:
    for gpus, name in ((1, "sort-b"), (2, "sort-c"), (4, "sort-a")):
        cluster.api.submit(["true"], gpus=gpus, name=name, labels={"sorted": "yes"}, hold=True)
    jobs = ["--label", "sorted=yes"]
    assert column(ps(cluster, *jobs, "--sort", "gpus").stdout, "GPUS") == ["1", "2", "4"]
    assert column(ps(cluster, *jobs, "--sort=-gpus").stdout, "GPUS") == ["4", "2", "1"]
    assert column(ps(cluster, *jobs, "--sort", "Name").stdout, "NAME") == ["sort-a", "sort-b", "sort-c"]
    assert "PROJECT" in ps(cluster, *jobs, "--wide").stdout and "PROJECT" not in ps(cluster, *jobs).stdout
    for job in ps(cluster, *jobs, "--quiet", "--sort", "created").stdout.split():
        cluster.api.post(f"/v1/jobs/{job}/cancel")


@pytest.mark.parametrize("words", [["--sort", "colour"], ["--sort", "loss"]])
def test_what_no_list_has_is_refused_with_its_columns(cluster: Cluster, words: list[str]) -> None:
    refused = ps(cluster, *words)
    assert refused.returncode == 2 and "is no column" in refused.stderr and "CREATED" in refused.stderr
