# SPDX-License-Identifier: Apache-2.0
"""gpuctl notebook: JupyterLab of a node at a port of this machine, and for its owner alone."""

from __future__ import annotations

import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import GPUCTL, ROOT, Cluster, eventually
from joined import environment, gpuctl, running, start


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A node whose jobs find JupyterLab."""
    if not (ROOT / ".venv" / "bin" / "jupyter-lab").exists():
        pytest.skip(".venv was made from Debian's packages, which have no JupyterLab")
    folder = tmp_path_factory.mktemp("notebooks")
    cluster = Cluster(folder, [2], agent_environment={"HOME": str(folder)}).start()
    yield cluster
    cluster.stop()


def status(link: str, token: str) -> int:
    """What JupyterLab answers to a request with this token."""
    request = urllib.request.Request(f"{link.split('/lab')[0]}/api/status", headers={"Authorization": f"token {token}"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def leave(process: subprocess.Popen[bytes]) -> str:
    """Ctrl-C; what gpuctl said."""
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    return said.decode()


def test_a_notebook_is_a_job_whose_link_works_until_it_is_left(cluster: Cluster) -> None:
    first = start(cluster, "notebook", "--gpu-type", "cpu", "--link")
    assert first.stdout is not None
    link = first.stdout.readline().decode().strip()
    token = link.split("token=")[1]
    assert status(link, token) == 200 and status(link, "wrong") == 403
    job = cluster.api.get("/v1/jobs?limit=1")["jobs"][0]
    assert (job["name"], job["state"]) == ("notebook", "RUNNING")

    gpuctl(cluster, "update", job["id"], "--time-limit", "1h")  # what happens to a job that runs holds nobody up
    again = start(cluster, "notebook", job["id"][:12], "--link")
    assert again.stdout is not None
    other = again.stdout.readline().decode().strip()
    assert other != link and other.split("token=")[1] == token and status(other, token) == 200
    assert "Ctrl-C leaves the job alone" in leave(again)
    assert status(link, token) == 200

    assert f"ending job {job['id']}" in leave(first)
    assert cluster.api.wait(job["id"])["state"] == "CANCELED"
    assert token not in cluster.api.log(job["id"]) + cluster.api.log(job["id"], stream="stderr")


def test_a_notebook_with_two_gpus_is_one_notebook(cluster: Cluster) -> None:
    first = start(cluster, "notebook", "--gpus", "2", "--gpu-type", "cpu", "--link")
    assert first.stdout is not None
    link = first.stdout.readline().decode().strip()
    assert status(link, link.split("token=")[1]) == 200
    leave(first)


def test_what_is_no_notebook_is_not_waited_for(cluster: Cluster) -> None:
    job = running(cluster, ["sleep", "600"])
    said = gpuctl(cluster, "notebook", job, code=125).stderr.decode()
    assert f"job {job} is no job of gpuctl notebook\n  remedy: gpuctl port-forward" in said
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    assert "are for one job" in gpuctl(cluster, "notebook", "--array", "2", code=125).stderr.decode()
    ann, bob = cluster.user("ann"), cluster.user("bob")
    theirs = ann.submit(["sh", "-c", "sleep 600", "gpuctl-notebook"], gpu_type="cpu")
    cluster.wait_state(theirs, "RUNNING")
    gpuctl(cluster, "notebook", theirs, token=bob.token, code=125)
    ann.post(f"/v1/jobs/{theirs}/cancel")


def test_who_leaves_a_notebook_of_another_terminal_before_it_runs_leaves_it_alone(cluster: Cluster) -> None:
    job = cluster.api.submit(["sh", "-c", "sleep 600", "gpuctl-notebook"], gpu_type="cpu", hold=True)
    waits = start(cluster, "notebook", job, "--link")
    assert waits.stderr is not None
    waits.stderr.readline()  # why it waits
    assert "which goes on" in leave(waits) and cluster.api.job(job)["state"] == "HELD"
    cluster.api.post(f"/v1/jobs/{job}/cancel")


def test_a_forwarded_port_ends_with_its_job(cluster: Cluster) -> None:
    job = running(cluster, ["sleep", "600"])
    forward = subprocess.Popen([str(GPUCTL), "port-forward", job, "0:6006"], env=environment(cluster), stderr=subprocess.PIPE)
    assert forward.stderr is not None and b"leads to port 6006" in forward.stderr.readline()
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    _, said = forward.communicate(timeout=60)
    assert forward.returncode == 0 and said.decode() == f"gpuctl: job {job} has ended\n"


def test_a_node_without_jupyterlab_says_so(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    bare = make_cluster(1, agent=["--python", "/usr/bin/python3"], agent_environment={"PATH": "/usr/bin:/bin"})
    said = gpuctl(bare, "notebook", "--gpu-type", "cpu", code=1).stderr.decode()
    assert "gpuctl: there is no JupyterLab for this job on node node0\n  remedy: pip install jupyterlab there" in said
    eventually(lambda: bare.api.get("/v1/jobs?limit=1")["jobs"][0]["state"] == "FAILED", "the end of the job")
    missing = gpuctl(bare, "notebook", "aaaaaaaaaaaaaaaa", code=125).stderr.decode()
    assert missing.startswith("gpuctl: there is no job aaaaaaaaaaaaaaaa")
