# SPDX-License-Identifier: Apache-2.0
"""The runs of jobs: the job's own metrics in them, what is measured of the nodes, and where a person is told of them."""

from __future__ import annotations

import importlib.util
import itertools
import json
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from harness import Cluster, eventually, run_gpuctl
from test_functions import Notebook, environment, notebook  # noqa: F401
from test_mlflow import API, CLIENT_PATIENCE, ask, error_of, job_runs, submit, values

needs_client = pytest.mark.skipif(importlib.util.find_spec("mlflow") is None, reason="MLflow's client could not be installed")

MEASURE = """
import os, sys
sys.path.insert(0, os.environ["CLIENT"])
from serverless_gpu import runtime
"""
CLIENT = {"CLIENT": str(Path(__file__).resolve().parents[3] / "client" / "python" / "src")}


def measure(cluster: Cluster, text: str, **spec: Any) -> str:
    """Submit a command whose ranks log metrics of the job, and have no MLflow."""
    env = {**CLIENT, **spec.pop("env", {})}
    return submit(cluster, MEASURE + text, env=env, **spec)


def ended_run(cluster: Cluster, job: str, experiment: str, status: str = "FINISHED") -> Any:
    """The only run of a job, once it has its final status."""

    def there() -> Any:
        runs = job_runs(cluster, job, experiment)
        assert len(runs) <= 1, runs
        return runs and runs[0]["info"]["status"] == status and runs[0]

    return eventually(there, f"the run of {job} to be {status}")


def history(cluster: Cluster, run: Any, name: str) -> list[tuple[float, int]]:
    points = ask(cluster.api, "metrics/get-history", run_id=run["info"]["run_id"], metric_key=name)["metrics"]
    return [(point["value"], point["step"]) for point in points]


# --- the job's own metrics -----------------------------------------------------------------------------------------------------


def test_metrics_of_the_runtime_are_in_the_run_of_the_attempt(cluster: Cluster) -> None:
    text = """
rank = runtime.get_global_rank()
for step in range(200):
    runtime.log_metric("loss", rank * 1000 + step, step=step)
runtime.log_metrics({"nan": float("nan"), "no step": 0.5, "50 %/..": 1, "..": 2, "system/node/cpu": rank})
"""
    job = measure(cluster, text, gpus=4, name="measured")
    assert cluster.api.wait(job)["state"] == "SUCCEEDED", cluster.api.log(job, stream="stderr")
    run = ended_run(cluster, job, "measured")
    assert history(cluster, run, "loss") == [(step, step) for step in range(200)]
    for rank in (1, 2, 3):
        assert history(cluster, run, f"loss/rank_{rank}") == [(rank * 1000 + step, step) for step in range(200)]
    found = values(run, "metrics")
    assert (found["nan"], found["no step"], found["no step/rank_3"], found["50 __.."], found["_.."]) == ("NaN", 0.5, 0.5, 1, 2)
    assert sorted(history(cluster, run, "system/node/cpu")) == [(rank, 0) for rank in range(4)]
    tags = values(run, "tags")
    assert (tags["gpuctl.job_id"], tags["gpuctl.attempt"], tags["gpuctl.nodes"], tags["gpuctl.gpus"]) == (job, "1", "2", "4")
    assert (tags["mlflow.source.name"], tags["mlflow.source.type"], tags["mlflow.user"]) == ("measured", "JOB", "admin")


def test_each_attempt_has_its_metrics_in_its_own_run(cluster: Cluster) -> None:
    text = """
attempt = int(os.environ["GPUCTL_ATTEMPT"])
runtime.log_metric("attempt", attempt)
raise SystemExit(attempt == 1)
"""
    job = measure(cluster, text, name="measured-twice", retries=1)
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"

    def ends() -> Any:
        found = {values(run, "metrics").get("attempt"): run["info"]["status"] for run in job_runs(cluster, job, "measured-twice")}
        return found == {1: "FAILED", 2: "FINISHED"}

    eventually(ends, "a failed and a finished run with their metrics")


@pytest.mark.parametrize("name", ["MLFLOW_TRACKING_URI", "MLFLOW_RUN_ID"])
def test_a_job_that_names_where_it_tracks_has_its_metrics_in_no_run_of_ours(cluster: Cluster, name: str) -> None:
    job = measure(cluster, "runtime.log_metric('x', 1)", name=f"own-{name}", env={name: ""})
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert cluster.api.get(f"/v1/jobs/{job}/metrics")["metrics"][0]["name"] == "x"
    status, _ = error_of(cluster.api, "GET", f"{API}/experiments/get-by-name?experiment_name=own-{name}")
    assert status == 404


def test_metrics_and_the_end_of_a_run_survive_kill_9_of_the_controller_without_doubles(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, 1)
    flag = cluster.folder / "flag"
    text = """
import pathlib, time
rank = runtime.get_global_rank()
flag = pathlib.Path(os.environ["FLAG"])
for step in range(3000):
    runtime.log_metric("x", step, step=step)
    if step == 1500:
        flag.with_suffix(f".{rank}").touch()
        while not flag.exists():
            time.sleep(0.02)
"""
    job = measure(cluster, text, gpus=2, name="measured-on", env={"FLAG": str(flag)})
    eventually(lambda: all(flag.with_suffix(f".{rank}").exists() for rank in (0, 1)), "both ranks to be half way")
    eventually(lambda: cluster.api.get(f"/v1/jobs/{job}/metrics?limit=1")["metrics"], "some metrics")
    for _ in range(3):
        cluster.controller.kill()
        cluster.start_controller()
    flag.touch()
    eventually(lambda: cluster.api.get(f"/v1/jobs/{job}/metrics?limit=10000")["metrics"][2000:], "more metrics")
    cluster.controller.kill()
    cluster.start_controller()
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    run = ended_run(cluster, job, "measured-on")
    for name in ("x", "x/rank_1"):
        assert history(cluster, run, name) == [(step, step) for step in range(3000)]


def test_a_run_whose_end_was_not_written_gets_it_at_the_next_start(make_cluster: Callable[..., Cluster]) -> None:
    import sqlite3

    cluster = make_cluster(1)
    job = measure(cluster, "runtime.log_metric('x', 1)", name="cut-off")
    cluster.api.wait(job)
    run = ended_run(cluster, job, "cut-off")
    cluster.controller.kill()
    with sqlite3.connect(cluster.folder / "controller" / "mlflow.db") as database:  # as if it had been killed before the end was written
        database.execute("UPDATE runs SET status = 'RUNNING', end_ms = NULL")
        database.execute("DELETE FROM points")
        database.execute("DELETE FROM metrics")
        database.execute("DELETE FROM copied")
    cluster.start_controller()
    again = ended_run(cluster, job, "cut-off")
    assert again["info"]["end_time"] == run["info"]["end_time"] and values(again, "metrics") == {"x": 1}


# --- what is measured of the nodes ---------------------------------------------------------------------------------------------

SYSTEM = """
    import json, os
    from serverless_gpu import distributed

    @distributed(gpus=4, remote=True)
    def train():
        import os, time
        import mlflow
        mlflow.log_metric(f"rank{os.environ['RANK']}", 1)
        run = mlflow.active_run().info.run_id
        client = mlflow.MlflowClient()
        if os.environ["LOCAL_RANK"] == "0" and "EXPECT" in os.environ:
            prefix = "system/" + os.environ["EXPECT"].replace("NODE", os.environ["GPUCTL_NODE"])
            deadline = time.monotonic() + 120
            while not any(name.startswith(prefix) for name in client.get_run(run).data.metrics):
                assert time.monotonic() < deadline, "no system metrics of this node"
                time.sleep(0.1)
        return os.environ.get("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING")

    print(json.dumps(train.distributed()))
    """


@needs_client
def test_the_run_of_a_function_has_what_the_agents_measure_and_mlflow_measures_nothing(
    notebook: Notebook,  # noqa: F811
    cluster: Cluster,
) -> None:
    program = SYSTEM.replace("remote=True", "remote=True, env={'EXPECT': 'NODE/cpu', 'MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL': '0.2'}")
    ran = notebook(program)
    assert ran.stdout.strip().splitlines()[-1] == "[null, null, null, null]"
    job = cluster.api.get("/v1/jobs?name=train")["jobs"][0]["id"]
    run = ended_run(cluster, job, "train")
    measured = {name.split("/")[1] for name in values(run, "metrics") if name.startswith("system/")}
    assert measured == {"node0", "node1"}
    assert not any("disk" in name or "network" in name for name in values(run, "metrics")), "MLflow has measured, too"


@needs_client
def test_the_node_is_measured_by_mlflow_into_a_run_that_the_job_names(notebook: Notebook, cluster: Cluster) -> None:  # noqa: F811
    """Of one rank: each that ends sets such a run to FINISHED, on which MLflow stops to measure for the others."""
    pytest.importorskip("psutil")
    named = cluster.api.post(f"{API}/runs/create", {"experiment_id": "0"})["run"]["info"]["run_id"]
    env = {"MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL": "0.2", "EXPECT": "NODE/cpu", "MLFLOW_RUN_ID": named}
    ran = notebook(SYSTEM.replace("gpus=4, remote=True", f"gpus=1, remote=True, env={env!r}"))
    assert ran.stdout.strip().splitlines()[-1] == '["true"]'
    run = ask(cluster.api, "runs/get", run_id=named)["run"]
    assert any(name.startswith("system/node") and "network" in name for name in values(run, "metrics")), run


@needs_client
def test_without_psutil_a_function_tracks_into_such_a_run_and_mlflow_measures_nothing(
    notebook: Notebook,  # noqa: F811
    cluster: Cluster,
    tmp_path: Path,
) -> None:
    lacking = tmp_path / "lacking"
    lacking.mkdir()
    (lacking / "sitecustomize.py").write_text(
        "import importlib.machinery as m, importlib.util as u\n"
        "real_find, real_spec = m.PathFinder.find_spec, u.find_spec\n"
        "m.PathFinder.find_spec = classmethod(lambda cls, name, *rest: None if name == 'psutil' else real_find(name, *rest))\n"
        "u.find_spec = lambda name, *rest: None if name == 'psutil' else real_spec(name, *rest)\n"
    )
    named = cluster.api.post(f"{API}/runs/create", {"experiment_id": "0"})["run"]["info"]["run_id"]
    env = {"PYTHONPATH": str(lacking), "MLFLOW_RUN_ID": named}
    program = SYSTEM.replace("gpus=4, remote=True", f"gpus=1, remote=True, env={env!r}")
    assert notebook(program).stdout.strip().splitlines()[-1] == "[null]"


@needs_client
def test_what_a_job_says_of_system_metrics_is_left_to_it(notebook: Notebook) -> None:  # noqa: F811
    program = SYSTEM.replace("gpus=4, remote=True", "gpus=1, remote=True, env={'MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING': 'false'}")
    assert notebook(program).stdout.strip().splitlines()[-1] == '["false"]'


@needs_client
def test_a_command_that_asks_for_system_metrics_gets_them_by_node(cluster: Cluster) -> None:
    pytest.importorskip("psutil")
    text = """
        import mlflow, time
        mlflow.log_metric("begun", 1)
        run, client = mlflow.active_run().info.run_id, mlflow.MlflowClient()
        deadline = time.monotonic() + 120
        while not any(name.startswith("system/node") for name in client.get_run(run).data.metrics):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        """
    env = {"MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING": "true", "MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL": "0.2"}
    job = submit(cluster, text, name="measured-command", env=env)
    assert cluster.api.wait(job, CLIENT_PATIENCE)["state"] == "SUCCEEDED", cluster.api.log(job, stream="stderr")


def is_logged(name: str) -> bool:
    """By the job, and not by its nodes, whose first sample comes after 10 s."""
    return not name.startswith("system/")


# --- what MLflow logged, among the job's metrics -------------------------------------------------------------------------------

BOTH = (
    MEASURE
    + """
import mlflow
runtime.log_metric("loss", 0.5, step=1)
if os.environ["RANK"] == "0":
    mlflow.log_metric("loss", 0.25, step=2)
    for step in range(30):
        mlflow.log_metric("accuracy", step / 30, step=step)
    mlflow.log_metric("odd name/x", float("nan"))
"""
)


@needs_client
def test_what_ranks_log_by_mlflow_is_among_the_metrics_of_the_job_once(cluster: Cluster, tmp_path: Path) -> None:
    job = submit(cluster, BOTH, gpus=2, name="both-ways", env=CLIENT)
    assert cluster.api.wait(job, CLIENT_PATIENCE)["state"] == "SUCCEEDED", cluster.api.log(job, stream="stderr")
    ended_run(cluster, job, "both-ways")
    path = f"/v1/jobs/{job}/metrics"
    whole = cluster.api.get(path)
    shown = [(point["rank"], point["name"], point["value"], point["step"]) for point in whole["metrics"] if is_logged(point["name"])]
    own = sorted(point for point in shown if point[0] is not None)
    assert own == [(0, "loss", 0.5, 1), (1, "loss", 0.5, 1)] and whole["next"] is None
    tracked = [(None, "loss", 0.25, 2), *((None, "accuracy", step / 30, step) for step in range(30)), (None, "odd name/x", "NaN", 0)]
    assert shown[2:] == tracked

    pages, cursor = [], ""
    while cursor is not None:
        page = cluster.api.get(f"{path}?limit=7{cursor}")
        pages += page["metrics"]
        cursor = page["next"] and f"&cursor={page['next']}"
    assert pages == whole["metrics"]
    assert {point["name"] for point in cluster.api.get(f"{path}?name=accuracy")["metrics"]} == {"accuracy"}
    assert {point["name"] for point in cluster.api.get(f"{path}?rank=0")["metrics"]} == {"loss"}
    assert cluster.api.get(f"{path}?cursor=run-2-0")["metrics"] == []
    for wrong in ("run-x", "run-0-0", "run-1-0x"):
        assert cluster.api.raw("GET", f"{path}?cursor={wrong}")[0] == 422

    table = [line for line in gpuctl(cluster, tmp_path, "metrics", job).stdout.splitlines() if is_logged(line)]
    rows = {tuple(line.split()[:2]): line.split()[2] for line in table[1:]}
    assert rows[("accuracy", "-")] == "30" and {rows["loss", rank] for rank in "01-"} == {"1"} and len(table) == 6
    assert "accuracy: 0.966667 at step 29, 30 points" in gpuctl(cluster, tmp_path, "metrics", job, "--plot", "--name", "accuracy").stdout
    lines = gpuctl(cluster, tmp_path, "metrics", job, "-o", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == whole["metrics"]


# By the tracking interface itself: the ranks need no client.
TRACK = (
    MEASURE
    + """
import json, urllib.request
def track(name, value, step):
    body = {"run_id": os.environ["MLFLOW_RUN_ID"], "key": name, "value": value, "timestamp": 1000 - step, "step": step}
    headers = {"Authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"], "Content-Type": "application/json"}
    url = os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/runs/log-metric"
    urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)).close()
def reach(sign):
    import time
    open(f"{os.environ['SIGNS']}/{sign}.there", "w").close()
    while not os.path.exists(f"{os.environ['SIGNS']}/{sign}"):
        time.sleep(0.01)
"""
)


def points_of(events: Iterable[dict[str, str]]) -> list[tuple[int | None, str, float, int]]:
    points = [json.loads(event["data"]) for event in events if event.get("event") == "metric"]
    return [(point["rank"], point["name"], point["value"], point["step"]) for point in points]


def test_a_stream_of_metrics_has_what_mlflow_logs_as_it_comes_and_once(cluster: Cluster, tmp_path: Path) -> None:
    program = """
track("accuracy", 0.25, 1)
runtime.log_metric("loss", 4, step=1)
reach("first")
track("accuracy", 0.5, 2)
runtime.log_metric("loss", 3, step=2)
if os.environ["GPUCTL_ATTEMPT"] == "1":
    os._exit(3)
"""
    job = submit(cluster, TRACK + program, env={**CLIENT, "SIGNS": str(tmp_path)}, retries=1, name="live")
    path = f"/v1/jobs/{job}/metrics"
    stream = cluster.api.stream(path)
    begun = list(itertools.islice(stream, 2))
    assert sorted(points_of(begun), key=str) == [(0, "loss", 4, 1), (None, "accuracy", 0.25, 1)]
    assert cluster.api.job(job)["state"] == "RUNNING"
    (tmp_path / "first").touch()
    rest = list(stream)
    assert rest[-1]["event"] == "end"
    attempt = [(None, "accuracy", 0.25, 1), (None, "accuracy", 0.5, 2), (0, "loss", 4, 1), (0, "loss", 3, 2)]
    seen = points_of([*begun, *rest])
    for both in (seen[:4], seen[4:]):  # each attempt whole, and of one source in its order
        assert sorted(both, key=lambda point: point[1]) == attempt

    for index, event in enumerate([*begun, *rest[:-1]], 1):
        again = points_of(cluster.api.stream(path, last_id=event["id"]))
        assert sorted(again, key=str) == sorted(seen[index:], key=str), event
    assert points_of(cluster.api.stream(f"{path}?attempt=2&name=accuracy")) == attempt[:2]
    assert points_of(cluster.api.stream(f"{path}?rank=0")) == attempt[2:]  # of the newest attempt on
    lines = gpuctl(cluster, tmp_path, "metrics", "-f", job, "--name", "accuracy").stdout.splitlines()
    assert [line.split()[-1] for line in lines] == ["0.25", "0.5"], lines


def test_what_is_logged_into_a_run_that_the_job_names_is_among_its_metrics(cluster: Cluster, tmp_path: Path) -> None:
    run = cluster.api.post(f"{API}/runs/create", {"experiment_id": "0"})["run"]["info"]["run_id"]
    program = 'track("score", int(os.environ["GPUCTL_ATTEMPT"]), 0)\nos._exit(os.environ["GPUCTL_ATTEMPT"] == "1")'
    job = submit(cluster, TRACK + program, env={**CLIENT, "MLFLOW_RUN_ID": run}, retries=1)
    assert cluster.api.wait(job)["state"] == "SUCCEEDED", cluster.api.log(job, stream="stderr")
    points = [(None, "score", 1, 0), (None, "score", 2, 0)]
    assert points_of(cluster.api.stream(f"/v1/jobs/{job}/metrics?attempt=2")) == points
    assert points_of(cluster.api.stream(f"/v1/jobs/{job}/metrics")) == points  # of both attempts, and once
    assert [point["value"] for point in cluster.api.get(f"/v1/jobs/{job}/metrics")["metrics"]] == [1, 2]
    none = submit(cluster, "pass", env={"MLFLOW_RUN_ID": ""})
    cluster.api.wait(none)
    assert cluster.api.get(f"/v1/jobs/{none}/metrics")["metrics"] == points_of(cluster.api.stream(f"/v1/jobs/{none}/metrics")) == []


@needs_client
def test_the_handle_of_a_call_and_gpuctl_show_what_mlflow_alone_has_logged(notebook: Notebook, cluster: Cluster, tmp_path: Path) -> None:  # noqa: F811
    notebook("""
        from serverless_gpu import distributed

        @distributed(gpus=1, remote=True, run_async=True)
        def tracked_alone():
            import mlflow
            mlflow.log_metric("score", 0.25, step=3)

        call = tracked_alone.distributed()
        call.result()
        (point,) = [point for point in call.metrics() if not point["name"].startswith("system/")]
        assert (point["rank"], point["name"], point["value"], point["step"]) == (None, "score", 0.25, 3), point
        """)
    job = cluster.api.get("/v1/jobs?name=tracked_alone")["jobs"][0]["id"]
    ran = gpuctl(cluster, tmp_path, "metrics", job, "--name", "score")
    assert "score" in ran.stdout and ran.stderr == ""


def test_of_a_job_that_tracks_elsewhere_metrics_says_where_its_run_is_named(cluster: Cluster, tmp_path: Path) -> None:
    job = submit(cluster, "pass", env={"MLFLOW_TRACKING_URI": "https://m.example/"})
    cluster.api.wait(job)
    ran = gpuctl(cluster, tmp_path, "metrics", job)
    assert (ran.returncode, ran.stdout) == (0, "") and f"gpuctl get {job} names its run, where it tracks elsewhere" in ran.stderr


# --- where a person is told of a run -------------------------------------------------------------------------------------------


def test_the_runs_of_a_job_are_a_resource_of_it(cluster: Cluster) -> None:
    api = cluster.api
    job = measure(cluster, "runtime.log_metric('x', 1)", name="shown")
    assert api.wait(job)["state"] == "SUCCEEDED"
    run = ended_run(cluster, job, "shown")["info"]
    assert api.get(f"/v1/jobs/{job}/runs")["runs"] == [
        {
            "attempt": 1, "run_id": run["run_id"], "run_name": "shown", "experiment_id": run["experiment_id"], "experiment": "shown",
            "status": "FINISHED", "tracking_uri": None,
            "url": f"{cluster.url}/#/experiments/{run['experiment_id']}/runs/{run['run_id']}",
        }
    ]  # fmt: skip
    silent = submit(cluster, "print(1)", name="says-nothing")
    api.wait(silent)
    assert api.get(f"/v1/jobs/{silent}/runs")["runs"] == []
    assert api.raw("GET", "/v1/jobs/aaaaaaaaaaaaaaaa/runs")[0] == 404
    assert cluster.user("stranger").raw("GET", f"/v1/jobs/{job}/runs")[0] == 404


def test_a_run_that_the_jobs_environment_names_is_shown_as_it_says(cluster: Cluster) -> None:
    api = cluster.api
    mine = api.post(f"{API}/runs/create", {"experiment_id": "0", "run_name": "mine", "start_time": 1})["run"]["info"]["run_id"]
    job = submit(cluster, "pass", env={"MLFLOW_RUN_ID": mine})
    api.wait(job)
    (run,) = api.get(f"/v1/jobs/{job}/runs")["runs"]
    assert (run["attempt"], run["run_id"], run["run_name"], run["experiment"]) == (None, mine, "mine", "Default")
    for env, uri, url in (
        ({"MLFLOW_TRACKING_URI": "https://anna:secret@m.example/base/"}, None, None),
        (
            {"MLFLOW_TRACKING_URI": "https://anna:secret@m.example/base/", "MLFLOW_RUN_ID": "r1"},
            "https://m.example/base/",
            None,
        ),
        (
            {"MLFLOW_TRACKING_URI": "https://anna:secret@m.example/base/", "MLFLOW_RUN_ID": "r1", "MLFLOW_EXPERIMENT_ID": "7"},
            "https://m.example/base/",
            "https://m.example/base/#/experiments/7/runs/r1",
        ),
        ({"MLFLOW_TRACKING_URI": "file:///x", "MLFLOW_RUN_ID": "r1", "MLFLOW_EXPERIMENT_ID": "7"}, "file:///x", None),
    ):
        job = submit(cluster, "pass", env=env)
        api.wait(job)
        runs = api.get(f"/v1/jobs/{job}/runs")["runs"]
        assert [(run["run_id"], run["tracking_uri"], run["url"]) for run in runs] == ([] if uri is None else [("r1", uri, url)])


def gpuctl(cluster: Cluster, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_gpuctl(*arguments, env=environment(cluster, folder))


def test_gpuctl_get_tells_of_the_run(cluster: Cluster, tmp_path: Path) -> None:
    job = measure(cluster, "runtime.log_metric('x', 1)", name="told")
    cluster.api.wait(job)
    run = ended_run(cluster, job, "told")["info"]["run_id"]
    url = cluster.api.get(f"/v1/jobs/{job}/runs")["runs"][0]["url"]
    assert f"MLflow run {run} in experiment told at {url}" in gpuctl(cluster, tmp_path, "get", job).stdout
    silent = submit(cluster, "pass")
    cluster.api.wait(silent)
    assert "MLflow" not in gpuctl(cluster, tmp_path, "get", silent).stdout


LINE = """
    from serverless_gpu import distributed, runtime

    @distributed(gpus=1, remote=True)
    def told():
        runtime.log_metric("x", 1)

    @distributed(gpus=1, remote=True)
    def silent():
        print("nothing")

    told.distributed()
    silent.distributed()
    """


def test_a_caller_is_told_of_the_run_once(notebook: Notebook, cluster: Cluster) -> None:  # noqa: F811
    said = notebook(LINE).stderr
    job = cluster.api.get("/v1/jobs?name=told")["jobs"][0]["id"]
    run = ended_run(cluster, job, "told")["info"]["run_id"]
    url = cluster.api.get(f"/v1/jobs/{job}/runs")["runs"][0]["url"]
    assert said.count("MLflow run") == 1 and f"job {job} tracks with MLflow run {run} in experiment told: {url}" in said, said
