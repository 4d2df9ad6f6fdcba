# SPDX-License-Identifier: Apache-2.0
"""CPUs and memory of jobs, and jobs without GPUs; on a node of two CPU slots, 8 CPUs and 32 GiB, as its agent says."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import PYTHON, Cluster, Problem, eventually, run_gpuctl

GIB = 1 << 30


@pytest.fixture(scope="module")
def sized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(Path(tmp_path_factory.mktemp("sized")), slots=[])
    cluster.start()
    cluster.add_agent("big", 2, "--cpus", "8", "--memory", "32G")
    cluster.wait_ready()
    yield cluster
    cluster.stop()


def environment(cluster: Cluster) -> dict[str, str]:
    token = cluster.folder / "controller" / "admin.token"
    return {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token)}


def gpuctl(cluster: Cluster, *arguments: str) -> Any:
    return run_gpuctl(*arguments, env=environment(cluster))


def held(cluster: Cluster) -> tuple[float, float]:
    node = cluster.nodes()["big"]
    return node["cpus"] - node["free_cpus"], (node["memory_bytes"] - node["free_memory_bytes"]) / GIB


def output(cluster: Cluster, program: str, **spec: Any) -> str:
    job = cluster.api.submit([PYTHON, "-c", program], **spec)
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    return cluster.api.log(job)


def end(cluster: Cluster, *jobs: str) -> None:
    for job in jobs:
        cluster.api.post(f"/v1/jobs/{job}/cancel")
        cluster.api.wait(job)


def sleeper(cluster: Cluster, **spec: Any) -> str:
    job = str(cluster.api.submit(["sleep", "600"], **spec))
    eventually(lambda: cluster.api.get(f"/v1/jobs/{job}")["state"] in ("RUNNING", "QUEUED"), "a decision")
    return job


def test_the_node_says_what_it_has(sized: Cluster) -> None:
    node = sized.nodes()["big"]
    assert (node["cpus"], node["free_cpus"], node["memory_bytes"], node["free_memory_bytes"]) == (8, 8, 32 * GIB, 32 * GIB)
    shown = gpuctl(sized, "nodes", "show", "big").stdout
    assert "8 of 8 free" in shown and "32.0 GiB of 32.0 GiB free" in shown, shown
    listed = gpuctl(sized, "nodes", "list", "-o", "wide").stdout
    assert "FREE CPUS" in listed and "FREE MEMORY" in listed and "32.0 GiB" in listed, listed


def test_a_gpu_comes_with_its_part_and_the_ranks_are_told(sized: Cluster) -> None:
    program = 'import os; print(os.environ["GPUCTL_CPUS"], os.environ["GPUCTL_MEMORY_BYTES"])'
    assert output(sized, program) == f"4 {16 * GIB}\n"
    assert output(sized, program, cpus=1.5, memory="512M") == f"1.5 {512 << 20}\n"


def test_a_job_without_gpus_runs_beside_them(sized: Cluster) -> None:
    jobs = [sleeper(sized, gpus=2, cpus=4, memory="8G"), sleeper(sized, gpus=0, cpus=3)]
    eventually(lambda: held(sized) == (7, 20), "both to hold their parts")
    view = sized.api.get(f"/v1/jobs/{jobs[1]}")
    assert view["gpus"] == 0 and view["gpu_type"] is None
    (part,) = view["nodes"]
    assert (part["devices"], part["local_ranks"], part["cpus"], part["memory_bytes"]) == ("", 1, 3, 12 * GIB)
    end(sized, *jobs)
    assert held(sized) == (0, 0)


def test_a_job_without_gpus_sees_none(sized: Cluster) -> None:
    names = ("CUDA_VISIBLE_DEVICES", "RANK", "WORLD_SIZE", "GPUCTL_NODES")
    program = f"import os; print([os.environ.get(name) for name in {names}])"
    assert output(sized, program, gpus=0) == "['', '0', '1', '1']\n"
    assert output(sized, program, gpus=0, launch_mode="node") == "['', '0', '1', '1']\n"


def test_what_is_missing_is_said(sized: Cluster) -> None:
    first = sleeper(sized, gpus=1, cpus=7)
    job = sleeper(sized, gpus=1)
    said = gpuctl(sized, "explain", job).stdout
    assert "waits for 1 GPU" in said and "big has most left, 1 CPU and 16.0 GiB of memory" in said, said
    assert json.loads(gpuctl(sized, "explain", job, "-o", "json").stdout)["reason"]["code"] == "CPU_MEMORY"
    end(sized, job, first)


@pytest.mark.parametrize(
    ("spec", "field", "said"),
    [
        ({"gpus": 1, "cpus": 9}, "cpus", "as many CPUs"),
        ({"gpus": 1, "memory": "33G"}, "memory", "as much memory"),
        ({"gpus": 0, "gpu_type": "cpu"}, "gpu_type", "without GPUs"),
        ({"gpus": 1, "memory": "1X"}, "memory", "512M"),
        ({"gpus": 1, "cpus": 0.0001}, "cpus", "three decimals"),
    ],
)
def test_what_cannot_be_is_refused(sized: Cluster, spec: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(Problem) as refusal:
        sized.api.submit(["true"], **spec)
    assert refusal.value.field == field
    assert said in refusal.value.body["detail"], refusal.value.body


def test_the_command_line_asks_for_them(sized: Cluster) -> None:
    ran = gpuctl(
        sized, "run", "--gpus", "0", "--cpus", "0.5", "--memory", "256M", "--", "sh", "-c", "echo $GPUCTL_CPUS $GPUCTL_MEMORY_BYTES"
    )
    assert (ran.returncode, ran.stdout) == (0, f"0.5 {256 << 20}\n"), ran
    wrong = gpuctl(sized, "submit", "--cpus", "many", "--", "true")
    assert wrong.returncode == 2 and "--cpus many is not a number" in wrong.stderr, wrong
    wrong = gpuctl(sized, "submit", "--memory", "much", "--", "true")
    assert wrong.returncode != 0 and "memory must be" in wrong.stderr, wrong


def test_limits_count_them(sized: Cluster) -> None:
    for arguments in (["--max-cpus", "2"], ["--max-memory", "4G"]):
        assert gpuctl(sized, "quotas", "set", "project", "small", *arguments).returncode == 0
    with pytest.raises(Problem) as refusal:
        sized.api.submit(["true"], gpus=0, cpus=3, memory="1G", project="small")
    assert (refusal.value.field, refusal.value.body["code"]) == ("cpus", "over_limit"), refusal.value.body
    assert "may use 2 at once" in refusal.value.body["detail"]
    sized.api.wait(sized.api.submit(["true"], gpus=0, cpus=2, memory="4G", project="small"))
    assert gpuctl(sized, "quotas", "unset", "project", "small").returncode == 0


def test_a_function_runs_without_a_gpu(sized: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "none.py"
    script.write_text(
        "import os\nfrom serverless_gpu import distributed\n\n\n"
        "@distributed(gpus=0, cpus=2, memory='1G')\ndef cpus():\n    return os.environ['GPUCTL_CPUS']\n\n\n"
        "print(cpus.distributed())\n"
    )
    ran = subprocess.run(
        [PYTHON, str(script)],
        env={**os.environ, **environment(sized)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.stdout.endswith("['2']\n"), ran


def test_a_project_is_kept_to_its_pools(sized: Cluster) -> None:
    assert gpuctl(sized, "quotas", "set", "project", "kept", "--pools", "elsewhere,other").returncode == 0
    with pytest.raises(Problem) as refusal:
        sized.api.submit(["true"], project="kept")
    assert (refusal.value.field, refusal.value.body["hint"]) == ("pool", "name one that it may use: elsewhere, other")
    assert gpuctl(sized, "quotas", "set", "project", "kept", "--pools", "none").returncode == 0
    assert sized.api.wait(sized.api.submit(["true"], project="kept"))["state"] == "SUCCEEDED"
    wrong = gpuctl(sized, "quotas", "set", "project", "kept", "--pools", "a b")
    assert wrong.returncode != 0 and "pools must be an array" in wrong.stderr, wrong


def test_users_jobs_of_a_project_may_be_kept_from_running_on_unheard_of(sized: Cluster) -> None:
    ann = sized.user("ann")
    assert gpuctl(sized, "quotas", "set", "project", "short", "--on-disconnect", "requeue,fail").returncode == 0
    said_nothing: dict[str, Any] = {}
    for spec in (said_nothing, {"on_disconnect": "keep"}):
        with pytest.raises(Problem) as refusal:
            ann.submit(["true"], project="short", **spec)
        assert (refusal.value.status, refusal.value.field) == (403, "on_disconnect")
        assert refusal.value.body["hint"] == "submit it with --on-disconnect requeue"
    assert ann.wait(ann.submit(["true"], project="short", on_disconnect="requeue"))["state"] == "SUCCEEDED"
    limits = sized.api.get("/v1/accounts/projects/short")["limits"]
    assert limits["on_disconnect"] == ["requeue", "fail"]
    assert gpuctl(sized, "quotas", "set", "project", "short", "--on-disconnect", "none").returncode == 0
    assert ann.wait(ann.submit(["true"], project="short"))["state"] == "SUCCEEDED"
    wrong = gpuctl(sized, "quotas", "set", "project", "short", "--on-disconnect", "stop")
    assert wrong.returncode != 0 and "on_disconnect must be an array of keep, requeue and fail" in wrong.stderr, wrong
