# SPDX-License-Identifier: Apache-2.0
"""MLflow's own client against the controller: what it is told to log comes back, from a shell and from the ranks of jobs."""

from __future__ import annotations

import base64
import importlib.util
import json
import math
import subprocess
import textwrap
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import PYTHON, Api, Cluster, eventually
from slowness import patient
from test_functions import Notebook, environment, notebook  # noqa: F401
from test_training import MLP

#: The client is imported once a process, by sanitized neighbours on few cores.
CLIENT_PATIENCE = patient(180.0)

API = "/api/2.0/mlflow"
FILES = "/api/2.0/mlflow-artifacts/artifacts"

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mlflow") is None, reason="MLflow's client could not be installed")

Script = Callable[..., subprocess.CompletedProcess[str]]


def tracking(cluster: Cluster, folder: Path) -> dict[str, str]:
    """What a person's shell has who tracks with this cluster."""
    kept = {name: value for name, value in environment(cluster, folder).items() if not name.startswith("MLFLOW_")}
    return {
        **kept,
        "MLFLOW_TRACKING_URI": cluster.url,
        "MLFLOW_TRACKING_TOKEN": cluster.admin_token,
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }


@pytest.fixture
def script(cluster: Cluster, tmp_path: Path) -> Script:
    """Run a script that tracks with the shared cluster, in a process of its own."""

    def run(text: str, env: dict[str, str] | None = None, good: bool = True) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "script.py"
        path.write_text(textwrap.dedent(text))
        merged = {**tracking(cluster, tmp_path), **(env or {})}
        ran = subprocess.run(
            [PYTHON, str(path)], env=merged, cwd=tmp_path, capture_output=True, text=True, timeout=CLIENT_PATIENCE
        )
        if good:
            assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-8000:]
        return ran

    return run


def ask(api: Api, name: str, **query: str) -> Any:
    return api.get(f"{API}/{name}?{urllib.parse.urlencode(query)}")


def runs_of(api: Api, experiment: str, **body: Any) -> list[Any]:
    """All runs of an experiment, in the order in which the server gives them."""
    found = ask(api, "experiments/get-by-name", experiment_name=experiment)["experiment"]
    return api.post(f"{API}/runs/search", {"experiment_ids": [found["experiment_id"]], **body}).get("runs", [])


def values(run: Any, kind: str) -> dict[str, Any]:
    return {item["key"]: item["value"] for item in run["data"].get(kind, [])}


def logged(run: Any) -> dict[str, Any]:
    """Its metrics without those that nodes measure, which are there after 10 s."""
    return {name: value for name, value in values(run, "metrics").items() if not name.startswith("system/")}


# --- the client, from a shell --------------------------------------------------------------------------------------------------


def test_what_the_fluent_client_logs_is_what_it_reads_back(script: Script, cluster: Cluster) -> None:
    script("""
        import mlflow
        mlflow.set_experiment("fluent")
        with mlflow.start_run(run_name="outer") as outer:
            mlflow.log_metric("loss", 0.5, step=1)
            mlflow.log_metric("loss", 0.25, step=2)
            mlflow.log_metrics({"a": 1.0, "b": 2}, step=3)
            mlflow.log_metric("odd", float("nan"))
            mlflow.log_metric("high", float("inf"))
            mlflow.log_param("lr", 1e-3)
            mlflow.log_params({"depth": 4, "name": "x y"})
            mlflow.set_tag("colour", "blue")
            mlflow.set_tags({"shape": "round"})
            with mlflow.start_run(nested=True) as inner:
                mlflow.log_metric("loss", 9)

        from mlflow.tracking import MlflowClient
        import math
        client = MlflowClient()
        run = client.get_run(outer.info.run_id)
        assert run.info.status == "FINISHED" and run.info.run_name == "outer" and run.info.end_time >= run.info.start_time
        assert run.data.params == {"lr": "0.001", "depth": "4", "name": "x y"}, run.data.params
        metrics = dict(run.data.metrics)
        assert math.isnan(metrics.pop("odd")) and metrics.pop("high") > 1e300
        assert metrics == {"loss": 0.25, "a": 1.0, "b": 2.0}, metrics
        assert run.data.tags["colour"] == "blue" and run.data.tags["shape"] == "round"
        history = client.get_metric_history(outer.info.run_id, "loss")
        assert [(m.value, m.step) for m in history] == [(0.5, 1), (0.25, 2)]
        assert client.get_run(inner.info.run_id).data.tags["mlflow.parentRunId"] == outer.info.run_id
        client.delete_tag(outer.info.run_id, "colour")
        assert "colour" not in client.get_run(outer.info.run_id).data.tags
        """)
    assert {run["info"]["status"] for run in runs_of(cluster.api, "fluent")} == {"FINISHED"}


def test_a_run_that_raises_is_failed_and_one_that_is_forgotten_is_finished(script: Script, cluster: Cluster) -> None:
    script("""
        import mlflow
        mlflow.set_experiment("ends")
        try:
            with mlflow.start_run(run_name="raises"):
                raise ValueError
        except ValueError:
            pass
        mlflow.start_run(run_name="forgotten")
        """)
    ends = {run["info"]["run_name"]: run["info"]["status"] for run in runs_of(cluster.api, "ends")}
    assert ends == {"raises": "FAILED", "forgotten": "FINISHED"}


def test_runs_are_searched_by_filters_and_in_order(script: Script) -> None:
    script("""
        import mlflow
        experiment = mlflow.set_experiment("search")
        for i in range(5):
            with mlflow.start_run(run_name=f"run {i}"):
                mlflow.log_metric("score", i / 10)
                mlflow.log_param("even", i % 2 == 0)
                mlflow.set_tag("half", "low" if i < 2 else "high")

        def names(**how):
            found = mlflow.search_runs(experiment_names=["search"], output_format="list", **how)
            return [run.info.run_name for run in found]

        assert names(order_by=["metrics.score DESC"]) == [f"run {i}" for i in (4, 3, 2, 1, 0)]
        assert names(filter_string="metrics.score > 0.15", order_by=["metrics.score ASC"]) == ["run 2", "run 3", "run 4"]
        assert names(filter_string="params.even = 'True' and tags.half = 'high'", order_by=["metrics.score"]) == ["run 2", "run 4"]
        assert names(filter_string="attributes.run_name LIKE '%3'") == ["run 3"]
        assert names(filter_string="attributes.status = 'FAILED'") == []
        assert names(order_by=["metrics.score"], max_results=2) == ["run 0", "run 1"]
        table = mlflow.search_runs(experiment_names=["search"], order_by=["metrics.score"])
        assert list(table["metrics.score"]) == [0.0, 0.1, 0.2, 0.3, 0.4]
        client = mlflow.MlflowClient()
        page = client.search_runs([experiment.experiment_id], order_by=["metrics.score"], max_results=3)
        rest = client.search_runs([experiment.experiment_id], order_by=["metrics.score"], max_results=3, page_token=page.token)
        assert [run.info.run_name for run in page + rest] == [f"run {i}" for i in range(5)] and not rest.token
        try:
            names(filter_string="metrics.score ~ 3")
        except mlflow.exceptions.MlflowException:
            pass
        else:
            raise AssertionError("a filter that is none was taken")
        """)


def test_experiments_are_made_found_renamed_and_deleted(script: Script) -> None:
    script("""
        import mlflow
        client = mlflow.MlflowClient()
        made = client.create_experiment("first name", tags={"team": "a"})
        client.set_experiment_tag(made, "more", "b")
        found = client.get_experiment_by_name("first name")
        assert found.experiment_id == made and found.tags == {"team": "a", "more": "b"}, found.tags
        client.rename_experiment(made, "second name")
        assert client.get_experiment(made).name == "second name"
        assert "second name" in [e.name for e in client.search_experiments()]
        assert [e.name for e in client.search_experiments(filter_string="name = 'second name'")] == ["second name"]
        client.delete_experiment(made)
        assert client.get_experiment(made).lifecycle_stage == "deleted"
        client.restore_experiment(made)
        assert client.get_experiment(made).lifecycle_stage == "active"
        assert client.get_experiment_by_name("never made") is None
        assert client.get_experiment("0").name == "Default"
        try:
            client.create_experiment("second name")
        except mlflow.exceptions.RestException as error:
            assert error.error_code == "RESOURCE_ALREADY_EXISTS", error.error_code
        else:
            raise AssertionError("two experiments of one name")
        """)


def test_batches_at_their_limits_and_logging_in_the_background_arrive_whole(script: Script) -> None:
    script("""
        import mlflow
        from mlflow.entities import Metric, Param, RunTag
        client = mlflow.MlflowClient()
        mlflow.set_experiment("batches")
        with mlflow.start_run() as run:
            client.log_batch(run.info.run_id, metrics=[Metric("m", i, 1000 + i, i) for i in range(1000)])
            client.log_batch(run.info.run_id, params=[Param(f"p{i}", "v") for i in range(100)],
                             tags=[RunTag(f"t{i}", "v") for i in range(100)])
            waits = [mlflow.log_metric("late", i, step=i, synchronous=False) for i in range(50)]
            mlflow.log_params({"q": 1}, synchronous=False).wait()
            for wait in waits:
                wait.wait()
        assert [m.value for m in client.get_metric_history(run.info.run_id, "m")] == list(range(1000))
        assert len(client.get_metric_history(run.info.run_id, "late")) == 50
        stored = client.get_run(run.info.run_id).data
        assert len(stored.params) == 101 and sum(name[0] == "t" for name in stored.tags) == 100
        """)


def test_batches_over_their_limits_are_refused_and_not_tried_again(cluster: Cluster) -> None:
    run = cluster.api.post(f"{API}/runs/create", {"experiment_id": "0", "start_time": 1})["run"]["info"]["run_id"]
    point = {"key": "m", "value": 1, "timestamp": 1, "step": 0}
    for body in (
        {"run_id": run, "metrics": [point] * 1001},
        {"run_id": run, "params": [{"key": f"p{i}", "value": ""} for i in range(101)]},
        {"run_id": run, "tags": [{"key": f"t{i}", "value": ""} for i in range(101)]},
    ):
        status, answer = error_of(cluster.api, "POST", f"{API}/runs/log-batch", json.dumps(body).encode())
        assert (status, answer["error_code"]) == (400, "INVALID_PARAMETER_VALUE") and "at most" in answer["message"]
    status, answer = error_of(cluster.api, "POST", f"{API}/runs/log-batch", b'{"x": "' + b"a" * (1 << 20) + b'"}')
    assert status == 413 and answer["error_code"] == "INVALID_PARAMETER_VALUE"


def test_a_parameter_is_written_once(script: Script) -> None:
    script("""
        import mlflow
        with mlflow.start_run():
            mlflow.log_param("lr", 1)
            mlflow.log_param("lr", 1)
            try:
                mlflow.log_param("lr", 2)
            except mlflow.exceptions.MlflowException as error:
                assert error.error_code == "INVALID_PARAMETER_VALUE"
            else:
                raise AssertionError("a parameter has changed")
        """)


def test_a_name_and_the_token_as_password_are_enough(script: Script, cluster: Cluster) -> None:
    basic = {"MLFLOW_TRACKING_TOKEN": "", "MLFLOW_TRACKING_USERNAME": "anna"}
    text = """
        import mlflow
        with mlflow.start_run() as run:
            mlflow.log_metric("x", 1)
        """
    script(text, env={**basic, "MLFLOW_TRACKING_PASSWORD": cluster.admin_token})
    ran = script(text, env={**basic, "MLFLOW_TRACKING_PASSWORD": "gct_aaaaaaaa_" + "a" * 43}, good=False)
    assert ran.returncode != 0 and "not valid" in ran.stderr


# --- artifacts -----------------------------------------------------------------------------------------------------------------


def test_artifacts_are_stored_listed_and_fetched(script: Script, cluster: Cluster) -> None:
    script("""
        import mlflow, os, pathlib
        big = os.urandom(3_000_000)
        pathlib.Path("model.bin").write_bytes(big)
        pathlib.Path("empty").touch()
        folder = pathlib.Path("plots/deep")
        folder.mkdir(parents=True)
        (folder / "loss curve (1) 50% ü+&.txt").write_text("curve")
        with mlflow.start_run() as run:
            mlflow.log_artifact("model.bin")
            mlflow.log_artifact("model.bin", "again")
            mlflow.log_artifact("empty")
            mlflow.log_artifacts("plots", "plots")
            mlflow.log_text("hello", "notes/hello.txt")
            mlflow.log_text("hello again", "notes/hello.txt")
            mlflow.log_dict({"a": [1]}, "config.json")
        run_id = run.info.run_id
        client = mlflow.MlflowClient()
        listed = {f.path: (f.is_dir, f.file_size) for f in client.list_artifacts(run_id)}
        assert listed == {"again": (True, None), "config.json": (False, listed["config.json"][1]), "empty": (False, 0),
                          "model.bin": (False, 3_000_000), "notes": (True, None), "plots": (True, None)}, listed
        assert [f.path for f in client.list_artifacts(run_id, "plots/deep")] == ["plots/deep/loss curve (1) 50% ü+&.txt"]
        assert client.list_artifacts(run_id, "nothing") == [] and client.list_artifacts(run_id, "model.bin") == []
        assert pathlib.Path(client.download_artifacts(run_id, "model.bin", ".")).read_bytes() == big
        whole = pathlib.Path(client.download_artifacts(run_id, "", "."))
        assert (whole / "again/model.bin").read_bytes() == big and (whole / "empty").read_bytes() == b""
        assert next((whole / "plots/deep").iterdir()).read_text() == "curve"
        assert mlflow.artifacts.load_text(f"runs:/{run_id}/notes/hello.txt") == "hello again"
        assert mlflow.artifacts.load_dict(f"runs:/{run_id}/config.json") == {"a": [1]}
        """)


def test_the_servers_own_listing_and_deletion_agree_with_the_files(cluster: Cluster) -> None:
    api = cluster.api
    info = api.post(f"{API}/runs/create", {"experiment_id": "0", "start_time": 1})["run"]["info"]
    root = info["artifact_uri"].removeprefix("mlflow-artifacts:/")
    for name in ("a/one.txt", "a/two.txt", "b.txt"):
        status, _, body = api.raw("PUT", f"{FILES}/{root}/{name}", b"12345")
        assert (status, body) == (200, b"{}")
    listed = ask(api, "artifacts/list", run_id=info["run_id"])
    assert listed["root_uri"] == info["artifact_uri"]
    assert listed["files"] == [{"path": "a", "is_dir": True}, {"path": "b.txt", "is_dir": False, "file_size": 5}]
    inner = ask(api, "artifacts/list", run_id=info["run_id"], path="a")["files"]
    assert [file["path"] for file in inner] == ["a/one.txt", "a/two.txt"]
    status, headers, body = api.raw("GET", f"{FILES}/{root}/b.txt")
    assert (status, headers["content-type"], body) == (200, "application/octet-stream", b"12345")
    assert api.raw("DELETE", f"{FILES}/{root}/a")[0] == 200
    assert api.raw("GET", f"{FILES}/{root}/a/one.txt")[0] == 404
    assert [file["path"] for file in ask(api, "artifacts/list", run_id=info["run_id"])["files"]] == ["b.txt"]
    assert api.raw("DELETE", f"{FILES}/{root}/a")[0] == 200, "what is gone may be deleted again"


@pytest.mark.parametrize(
    "path",
    [
        "../x", "a/../../x", "%2e%2e/x", "a/%2E%2E/x", "a/%2e/x", "/etc/x", "%2fetc", "a%2f..%2f..", "a//x", "a/..%2fx", "..%5cx",
        "a%00b", "a%0ab", "%zz", "%f", "a%ff", "a\\x", "a/",
    ],
)  # fmt: skip
def test_a_path_that_leads_elsewhere_is_refused_in_every_spelling(cluster: Cluster, path: str) -> None:
    for method in ("PUT", "GET", "DELETE"):
        status, answer = error_of(cluster.api, method, f"{FILES}/{path}", b"x" if method == "PUT" else None)
        assert (status, answer["error_code"]) == (400, "INVALID_PARAMETER_VALUE"), (method, answer)
    kept = cluster.folder / "controller" / "artifacts"
    assert not [file for file in cluster.folder.glob("controller/*") if file.name == "x"] and kept.is_dir()


@pytest.mark.parametrize("path", ["..", "/etc", "a/../..", "a//b", "a\nb", "\\"])
def test_a_folder_that_lies_elsewhere_is_not_listed(cluster: Cluster, path: str) -> None:
    run = cluster.api.post(f"{API}/runs/create", {"experiment_id": "0", "start_time": 1})["run"]["info"]["run_id"]
    quoted = urllib.parse.quote(path, safe="")
    for url in (f"{FILES}?path={quoted}", f"{API}/artifacts/list?run_id={run}&path={quoted}"):
        status, answer = error_of(cluster.api, "GET", url)
        assert (status, answer["error_code"]) == (400, "INVALID_PARAMETER_VALUE"), url


def test_a_file_does_not_become_a_folder_nor_a_folder_a_file(cluster: Cluster) -> None:
    assert cluster.api.raw("PUT", f"{FILES}/clash/file", b"x")[0] == 200
    for path in ("clash", "clash/file/below"):
        status, answer = error_of(cluster.api, "PUT", f"{FILES}/{path}", b"y")
        assert (status, answer["error_code"]) == (400, "INVALID_PARAMETER_VALUE"), answer
    assert cluster.api.raw("GET", f"{FILES}/clash/file")[2] == b"x"


# --- errors and ways in --------------------------------------------------------------------------------------------------------


def error_of(api: Api, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json"} if body is not None else {}
    status, said, answer = api.raw(method, path, body, headers)
    assert status >= 400 and said["content-type"] == "application/json", (status, answer)
    parsed = json.loads(answer)
    assert set(parsed) == {"error_code", "message"}, parsed
    return status, parsed


def test_errors_have_the_form_that_the_client_reads(cluster: Cluster) -> None:
    api = cluster.api
    for method, path, body, status, code in (
        ("GET", f"{API}/runs/get?run_id={'0' * 32}", None, 404, "RESOURCE_DOES_NOT_EXIST"),
        ("GET", f"{API}/experiments/get-by-name?experiment_name=none", None, 404, "RESOURCE_DOES_NOT_EXIST"),
        ("GET", f"{FILES}/nothing/here", None, 404, "RESOURCE_DOES_NOT_EXIST"),
        ("POST", f"{API}/webhooks", b"{}", 404, "ENDPOINT_NOT_FOUND"),
        ("GET", f"{API}/logged-models/m-{'0' * 32}", None, 404, "RESOURCE_DOES_NOT_EXIST"),
        ("POST", f"{API}/logged-models", b'{"name": "a/b"}', 400, "INVALID_PARAMETER_VALUE"),
        ("PATCH", f"{API}/logged-models/", b"{}", 404, "ENDPOINT_NOT_FOUND"),
        ("GET", f"{API}/runs/create", None, 404, "ENDPOINT_NOT_FOUND"),
        ("GET", "/api/2.0/other", None, 404, "ENDPOINT_NOT_FOUND"),
        ("GET", "/api/3.0/mlflow/traces/1", None, 404, "ENDPOINT_NOT_FOUND"),
        ("PATCH", "/api/2.0/mlflow/registered-models/x", b"{}", 404, "ENDPOINT_NOT_FOUND"),
        ("POST", f"{API}/runs/log-metric", b"{", 400, "INVALID_PARAMETER_VALUE"),
        ("POST", f"{API}/runs/log-metric", b"{}", 400, "INVALID_PARAMETER_VALUE"),
        ("POST", f"{API}/runs/log-metric", b"[]", 400, "INVALID_PARAMETER_VALUE"),
    ):
        got, answer = error_of(api, method, path, body)
        assert (got, answer["error_code"]) == (status, code), (path, answer)
    got, answer = error_of(Api(cluster.url, None), "GET", f"{API}/experiments/get?experiment_id=0")
    assert (got, answer["error_code"]) == (401, "UNAUTHENTICATED")
    node = cluster.user("nodes", "node")
    got, answer = error_of(node, "GET", f"{API}/experiments/get?experiment_id=0")
    assert (got, answer["error_code"]) == (403, "PERMISSION_DENIED")


def test_basic_credentials_that_carry_no_token_are_refused(cluster: Cluster) -> None:
    stranger = Api(cluster.url, None)
    path = f"{API}/experiments/get?experiment_id=0"
    good = base64.b64encode(f"x:{cluster.admin_token}".encode()).decode()
    assert stranger.raw("GET", path, headers={"Authorization": f"Basic {good}"})[0] == 200
    for text in (b"x", b"x:", b":", b"\xff\xfe:", b"x:" + b"a" * 4000, cluster.admin_token.encode()):
        wrong = base64.b64encode(text).decode()
        assert stranger.raw("GET", path, headers={"Authorization": f"Basic {wrong}"})[0] == 401
    assert stranger.raw("GET", path, headers={"Authorization": "Basic ***"})[0] == 401


def test_the_version_is_text_for_mlflow_and_json_for_everyone_else(cluster: Cluster) -> None:
    status, headers, body = cluster.api.raw("GET", "/version", headers={"User-Agent": "mlflow-python-client/3.1.0"})
    assert (status, headers["content-type"]) == (200, "text/plain") and body.decode() == cluster.api.get("/version")["version"]
    stranger = Api(cluster.url, None)
    assert stranger.raw("GET", "/health")[2] == b"OK"
    assert stranger.get("/api/3.0/mlflow/server-info")["workspaces_enabled"] is False


# --- jobs ----------------------------------------------------------------------------------------------------------------------

LOG_ONE = """
import os, mlflow
mlflow.log_metric(f"rank{os.environ['RANK']}", 1.0)
"""


def job_runs(cluster: Cluster, job: str, experiment: str) -> list[Any]:
    """The runs of a job, the newest first."""
    return runs_of(cluster.api, experiment, filter=f"tags.`gpuctl.job_id` = '{job}'")


def submit(cluster: Cluster, text: str, **spec: Any) -> str:
    return cluster.api.submit(["python", "-c", textwrap.dedent(text)], **spec)


def test_a_rank_logs_with_nothing_but_the_client(cluster: Cluster) -> None:
    job = submit(cluster, LOG_ONE, gpus=2, name="two-ranks")
    view = cluster.api.wait(job)
    assert view["state"] == "SUCCEEDED", cluster.api.log(job, stream="stderr")
    (run,) = eventually(lambda: job_runs(cluster, job, "two-ranks"), "the job's run")
    assert logged(run) == {"rank0": 1.0, "rank1": 1.0} and values(run, "tags")["gpuctl.attempt"] == "1"
    eventually(lambda: job_runs(cluster, job, "two-ranks")[0]["info"]["status"] == "FINISHED", "the final status")


@pytest.mark.thorough
def test_the_mlp_of_the_serverless_gpu_api_logs_by_mlflow_unchanged(notebook: Notebook, cluster: Cluster) -> None:  # noqa: F811
    notebook(MLP)
    job = cluster.api.get("/v1/jobs?name=mlp")["jobs"][0]
    (run,) = job_runs(cluster, job["id"], "mlp")
    run_id = run["info"]["run_id"]
    points = {key: ask(cluster.api, "metrics/get-history", run_id=run_id, metric_key=key)["metrics"] for key in ("loss", "total_loss")}
    assert len(points["loss"]) == 4 * 3 * 125 and len(points["total_loss"]) == 4 * 3
    assert all(math.isfinite(point["value"]) for point in points["loss"])
    eventually(lambda: job_runs(cluster, job["id"], "mlp")[0]["info"]["status"] == "FINISHED", "the final status")


def test_the_first_ranks_exit_does_not_end_the_run_for_the_others(cluster: Cluster) -> None:
    text = """
        import os, time, pathlib, mlflow
        rank, flag = int(os.environ["RANK"]), pathlib.Path(os.environ["FLAG"])
        mlflow.log_metric("begun", rank)
        run = mlflow.active_run().info.run_id
        first = flag.with_suffix(".first")
        if rank == 0:
            flag.with_suffix(".part").write_text(str(os.getpid()))
            flag.with_suffix(".part").rename(first)
        else:
            while not first.exists() or os.path.exists("/proc/" + first.read_text()):
                time.sleep(0.05)
            assert mlflow.MlflowClient().get_run(run).info.status == "RUNNING"
            mlflow.log_metric("late", 7)
            mlflow.log_text("late", "late.txt")
            flag.touch()
            while flag.exists():
                time.sleep(0.05)
        """
    flag = cluster.folder / "late-flag"
    job = submit(cluster, text, gpus=2, name="late", env={"FLAG": str(flag)})
    eventually(flag.exists, "rank 1 to have logged after rank 0's end", CLIENT_PATIENCE)
    (run,) = job_runs(cluster, job, "late")
    assert values(run, "metrics")["late"] == 7
    assert [f["path"] for f in ask(cluster.api, "artifacts/list", run_id=run["info"]["run_id"])["files"]] == ["late.txt"]
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    cluster.api.wait(job)
    eventually(lambda: job_runs(cluster, job, "late")[0]["info"]["status"] == "KILLED", "the final status")


def test_each_attempt_has_a_run_and_its_own_end(cluster: Cluster) -> None:
    text = """
        import os, mlflow
        attempt = int(os.environ["GPUCTL_ATTEMPT"])
        mlflow.log_metric("attempt", attempt)
        mlflow.end_run()
        raise SystemExit(3 if attempt == 1 else 0)
        """
    job = submit(cluster, text, name="attempts", retries=1, env={"MLFLOW_EXPERIMENT_NAME": "of attempts"})
    assert cluster.api.wait(job, CLIENT_PATIENCE)["state"] == "SUCCEEDED"

    def ends() -> Any:
        runs = job_runs(cluster, job, "of attempts")
        found = {values(run, "tags")["gpuctl.attempt"]: run["info"]["status"] for run in runs}
        return found == {"1": "FAILED", "2": "FINISHED"}

    eventually(ends, "a failed and a finished run")


ORDERS = {
    "experiment, run": "mlflow.set_experiment('by code'); run = mlflow.start_run(run_name='one')",
    "autolog, experiment, run": "mlflow.autolog(); mlflow.set_experiment('by code'); run = mlflow.start_run()",
    "experiment, no run": "mlflow.set_experiment('by code'); mlflow.log_param('first', 1); run = mlflow.active_run()",
}


@pytest.mark.parametrize("order", ORDERS)
def test_an_experiment_that_the_code_of_ranks_names_has_the_attempts_one_run(make_cluster: Callable[..., Cluster], order: str) -> None:
    """P1: MLflow's client refused the run of the attempt, as it was in another experiment."""
    cluster = make_cluster(2)
    text = f"""
        import os, mlflow
        {ORDERS[order]}
        mlflow.log_metric("rank" + os.environ["RANK"], 1)
        print(run.info.run_id, mlflow.get_experiment_by_name("Default").name)
        """
    job = submit(cluster, text, gpus=2, name="of-the-job")
    assert cluster.api.wait(job, CLIENT_PATIENCE)["state"] == "SUCCEEDED", cluster.api.log(job, stream="stderr")
    (run,) = job_runs(cluster, job, "by code")  # and what looks up another experiment later does not take it there
    assert logged(run) == {"rank0": 1.0, "rank1": 1.0}
    assert {cluster.api.log(job, rank=rank).split()[0] for rank in (0, 1)} == {run["info"]["run_id"]}
    assert cluster.api.post(f"{API}/runs/search", {"experiment_ids": ["0"]}).get("runs", []) == []


def test_an_experiment_that_the_job_names_by_its_id_has_the_run(cluster: Cluster) -> None:
    made = cluster.api.post(f"{API}/experiments/create", {"name": "by its id"})["experiment_id"]
    job = submit(cluster, LOG_ONE, gpus=2, name="named-otherwise", env={"MLFLOW_EXPERIMENT_ID": made})
    assert cluster.api.wait(job)["state"] == "SUCCEEDED", cluster.api.log(job, stream="stderr")
    (run,) = job_runs(cluster, job, "by its id")
    assert logged(run) == {"rank0": 1.0, "rank1": 1.0}


def test_a_notebook_with_a_store_of_its_own_has_its_experiment_by_name(notebook: Notebook, cluster: Cluster, tmp_path: Path) -> None:  # noqa: F811
    """P1: the id of the notebook's own experiment went along, and meant another one to the controller, or none."""
    notebook(f"""
        import mlflow
        from serverless_gpu import distributed
        mlflow.set_tracking_uri("sqlite:///{tmp_path}/own.db")
        mlflow.set_experiment("unrelated")
        mlflow.set_experiment("/Users/ada/from the notebook")

        @distributed(gpus=2, gpu_type="cpu", remote=True)
        def train():
            import mlflow, os
            with mlflow.start_run():
                mlflow.log_metric("rank" + os.environ["RANK"], 1)

        train.distributed()
    """)
    job = cluster.api.get("/v1/jobs?name=train")["jobs"][0]
    (run,) = job_runs(cluster, job["id"], "/Users/ada/from the notebook")
    assert logged(run) == {"rank0": 1.0, "rank1": 1.0}


def test_a_run_that_the_job_names_is_honoured_and_left_alone(cluster: Cluster) -> None:
    api = cluster.api
    mine = api.post(f"{API}/runs/create", {"experiment_id": "0", "start_time": 1})["run"]["info"]["run_id"]
    text = """
        import mlflow, os, signal
        mlflow.log_metric("mine", 1)
        os._exit(3)
        """
    job = submit(cluster, text, name="named-run", env={"MLFLOW_RUN_ID": mine})
    assert api.wait(job)["state"] == "FAILED"
    run = ask(api, "runs/get", run_id=mine)["run"]
    assert logged(run) == {"mine": 1.0} and run["info"]["status"] == "RUNNING"
    assert "gpuctl.job_id" not in values(run, "tags")
    status, _ = error_of(api, "GET", f"{API}/experiments/get-by-name?experiment_name=named-run")
    assert status == 404, "the job has a second run"


def test_a_job_with_a_tracking_server_of_its_own_is_told_of_no_other(cluster: Cluster) -> None:
    names = "sorted(name for name in os.environ if name.startswith('MLFLOW_'))"
    job = submit(cluster, f"import os; print({names})", env={"MLFLOW_TRACKING_URI": "file:///tmp/x"})
    cluster.api.wait(job)
    assert cluster.api.log(job).strip() == "['MLFLOW_TRACKING_URI']"
    job = submit(cluster, f"import os; print({names})")
    cluster.api.wait(job)
    ours = ["MLFLOW_RUN_ID", "MLFLOW_SYSTEM_METRICS_NODE_ID", "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_URI"]
    assert cluster.api.log(job).strip() == str(ours)


def test_a_job_that_does_not_track_makes_no_run(cluster: Cluster) -> None:
    api = cluster.api
    job = submit(cluster, "print(1)", name="silent")
    assert api.wait(job)["state"] == "SUCCEEDED"
    status, answer = error_of(api, "GET", f"{API}/experiments/get-by-name?experiment_name=silent")
    assert (status, answer["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")


def test_a_ranks_token_reaches_tracking_alone_and_dies_with_the_attempt(cluster: Cluster) -> None:
    flag = cluster.folder / "token-flag"
    text = """
        import os, pathlib, time
        flag = pathlib.Path(os.environ["FLAG"])
        part = flag.with_suffix(".part")
        part.write_text(os.environ["MLFLOW_TRACKING_TOKEN"] + " " + os.environ["MLFLOW_RUN_ID"])
        part.rename(flag)
        while flag.exists():
            time.sleep(0.05)
        """
    job = submit(cluster, text, name="token", env={"FLAG": str(flag)})
    eventually(flag.exists, "the rank to have shown its token")
    token, run = flag.read_text().split()
    ranks = Api(cluster.url, token)
    assert ask(ranks, "runs/get", run_id=run)["run"]["info"]["status"] == "RUNNING"
    for path in ("/v1/jobs", f"/v1/jobs/{job}", "/v1/nodes", "/v1/tokens", "/v1/openapi.yaml", "/v1/blobs/" + "0" * 64):
        assert ranks.raw("GET", path)[0] in (401, 403), path
    assert ranks.raw("POST", "/v1/jobs", b"{}", {"Content-Type": "application/json"})[0] == 403
    assert token not in json.dumps(cluster.api.job(job))
    for wrong in (token[:-1] + ("0" if token[-1] != "0" else "1"), token[:5] + "f" + token[6:]):
        assert Api(cluster.url, wrong).raw("GET", f"{API}/runs/get?run_id={run}")[0] == 401
    flag.unlink()
    cluster.api.wait(job)
    status, answer = error_of(ranks, "GET", f"{API}/runs/get?run_id={run}")
    assert (status, answer["error_code"]) == (401, "UNAUTHENTICATED")


def test_runs_and_their_ends_survive_kill_9_of_the_controller(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    flag = cluster.folder / "flag"
    text = """
        import os, pathlib, time, mlflow
        flag = pathlib.Path(os.environ["FLAG"])
        mlflow.log_metric("before", 1)
        mlflow.log_text("before", "before.txt")
        flag.touch()
        while flag.exists():
            time.sleep(0.05)
        os._exit(0)
        """
    job = submit(cluster, text, name="survivor", env={"FLAG": str(flag)})
    eventually(flag.exists, "the rank to have logged", CLIENT_PATIENCE)
    cluster.controller.kill()
    cluster.start_controller()
    flag.unlink()
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    eventually(lambda: job_runs(cluster, job, "survivor")[0]["info"]["status"] == "FINISHED", "the final status")
    (run,) = job_runs(cluster, job, "survivor")
    assert logged(run) == {"before": 1.0}
    root = run["info"]["artifact_uri"].removeprefix("mlflow-artifacts:/")
    assert cluster.api.raw("GET", f"{FILES}/{root}/before.txt")[2] == b"before"
