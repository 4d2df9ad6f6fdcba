# SPDX-License-Identifier: Apache-2.0
"""MLflow's own server: jobs that track there, and one script whose traces are the same there and here."""

from __future__ import annotations

import importlib.metadata
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import PYTHON, Cluster, Program, eventually
from slowness import patient
from test_functions import Notebook, notebook  # noqa: F401
from test_mlflow import API, CLIENT_PATIENCE, error_of, submit, tracking


def _has_server() -> bool:
    """Whether all of MLflow is here, not its client alone."""
    try:
        return bool(importlib.metadata.version("mlflow"))
    except importlib.metadata.PackageNotFoundError:
        return False


pytestmark = pytest.mark.skipif(not _has_server(), reason="MLflow's server could not be installed")

#: It makes its tables and imports most of what Python knows.
SERVER_PATIENCE = patient(180.0)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real server with a database and artifacts of its own."""
    folder = tmp_path_factory.mktemp("mlflow")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", "ASAN_"))}
    program = Program(
        [
            sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
            "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", str(folder / "artifacts"),
        ],
        folder / "server.log",
        {**environment, "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "HOME": str(folder)},
    )  # fmt: skip
    program.start()
    try:
        eventually(lambda: answers(url) or not program.alive(), "MLflow's server", SERVER_PATIENCE)
        assert program.alive(), program.said()
        yield url
    finally:
        program.kill(signal.SIGTERM)


def there(server: str, name: str, body: dict[str, Any] | None = None) -> Any:
    """A method of the real server."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{server}{API}/{name}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.loads(reply.read())


def runs_there(server: str, experiment: str) -> list[Any]:
    found = there(server, f"experiments/get-by-name?experiment_name={experiment}")["experiment"]["experiment_id"]
    return list(there(server, "runs/search", {"experiment_ids": [found]}).get("runs", []))


def metrics_of(run: Any) -> dict[str, float]:
    return {item["key"]: item["value"] for item in run["data"].get("metrics", [])}


# --- jobs ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_ranks_on_two_nodes_track_at_the_server_and_in_the_experiment_that_the_job_names(server: str, cluster: Cluster) -> None:
    text = """
        import os, mlflow
        if os.environ["RANK"] == "0":
            mlflow.log_metric("loss", 0.5)
            mlflow.log_text("hello", "hello.txt")
        elif os.environ["RANK"] == "3":                # on the other node
            with mlflow.start_run(run_name="second"):
                mlflow.log_param("rank", os.environ["RANK"])
        """
    env = {"MLFLOW_TRACKING_URI": server, "MLFLOW_EXPERIMENT_NAME": "outside"}
    job = submit(cluster, text, gpus=4, name="outside", env=env)
    view = cluster.api.wait(job, CLIENT_PATIENCE)
    assert view["state"] == "SUCCEEDED", cluster.api.log(job, stream="stderr") + cluster.api.log(job, 3, "stderr")
    (run,) = runs_there(server, "outside")
    assert run["info"]["status"] == "FINISHED" and metrics_of(run) == {"loss": 0.5}
    assert {item["key"]: item["value"] for item in run["data"]["params"]} == {"rank": "3"}
    assert there(server, f"artifacts/list?run_id={run['info']['run_id']}")["files"][0]["path"] == "hello.txt"
    assert error_of(cluster.api, "GET", f"{API}/experiments/get-by-name?experiment_name=outside")[0] == 404, "the job has a run here, too"
    assert cluster.api.get(f"/v1/jobs/{job}/runs")["runs"] == []


def test_all_ranks_log_into_the_run_that_the_job_names_there(server: str, cluster: Cluster) -> None:
    made = there(server, "runs/create", {"experiment_id": "0", "run_name": "mine", "start_time": 1})["run"]["info"]["run_id"]
    text = """
        import os, pathlib, time, mlflow
        rank, flag = os.environ["RANK"], pathlib.Path(os.environ["FLAG"])
        mlflow.log_metric("rank" + rank, 1)
        run = mlflow.active_run().info.run_id
        if rank == "3":                                # logs on, from the other node, after another rank's client has ended the run
            flag.touch()
            while mlflow.MlflowClient().get_run(run).info.status != "FINISHED":
                time.sleep(0.05)
            mlflow.log_metric("late", 2)
            mlflow.log_text("late", "late.txt")
        while not flag.exists():                       # a client that begins after the last one's end opens the run again
            time.sleep(0.05)
        """
    env = {"MLFLOW_TRACKING_URI": server, "MLFLOW_RUN_ID": made, "MLFLOW_EXPERIMENT_ID": "0", "FLAG": str(cluster.folder / "flag")}
    job = submit(cluster, text, gpus=4, name="named-there", env=env)
    assert cluster.api.wait(job, CLIENT_PATIENCE)["state"] == "SUCCEEDED", cluster.api.log(job, 3, "stderr")
    run = there(server, f"runs/get?run_id={made}")["run"]
    assert metrics_of(run) == {**{f"rank{rank}": 1 for rank in range(4)}, "late": 2} and run["info"]["status"] == "FINISHED"
    assert [file["path"] for file in there(server, f"artifacts/list?run_id={made}")["files"]] == ["late.txt"]
    (shown,) = cluster.api.get(f"/v1/jobs/{job}/runs")["runs"]
    assert shown["url"] == f"{server}/#/experiments/0/runs/{made}" and shown["tracking_uri"] == server


# --- one run an attempt, whoever starts its processes and in whatever order they begin ------------------------------------------

WORKER = """
    import os, mlflow
    mlflow.log_metric("rank" + os.environ["RANK"], 1)
    """
#: Logs in two processes of its own.
PARENT = """
    import multiprocessing, os
    def work(number):
        import mlflow
        with mlflow.start_run(nested=True):
            mlflow.log_metric(f"rank{os.environ['RANK']}.{number}", 1)
    if __name__ == "__main__":
        workers = [multiprocessing.get_context("spawn").Process(target=work, args=(number,)) for number in range(2)]
        [worker.start() for worker in workers]
        [worker.join() for worker in workers]
    """


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("launcher", "text", "logged"),
    [
        (["torchrun", "--nproc-per-node", "2"], WORKER, [f"rank{rank}" for rank in range(4)]),
        (["python"], PARENT, [f"rank{node}.{number}" for node in range(2) for number in range(2)]),
    ],
    ids=["torchrun", "processes of its own"],
)
def test_one_process_a_node_and_what_it_starts_log_into_one_run(
    server: str, cluster: Cluster, tmp_path: Path, launcher: list[str], text: str, logged: list[str]
) -> None:
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(text))
    experiment = f"nodes with {launcher[0]}"  # which is not there: they make it at once
    env = {"MLFLOW_TRACKING_URI": server, "MLFLOW_EXPERIMENT_NAME": experiment}
    job = cluster.api.submit([*launcher, str(path)], gpus=4, launch_mode="node", env=env)
    view = cluster.api.wait(job, CLIENT_PATIENCE)
    assert view["state"] == "SUCCEEDED", cluster.api.log(job, stream="stderr") + cluster.api.log(job, 1, "stderr")
    (run,) = runs_there(server, urllib.parse.quote(experiment))
    assert metrics_of(run) == dict.fromkeys(logged, 1) and run["info"]["status"] == "FINISHED"
    assert not [path for path in cluster.folder.glob("*.run/*") if path.name.isdigit()], "run folders of jobs that have ended"


@pytest.mark.thorough
def test_a_first_node_that_logs_after_all_others_takes_their_run(server: str, cluster: Cluster, tmp_path: Path) -> None:
    text = """
        import os, pathlib, time, mlflow
        rank, sign = os.environ["RANK"], pathlib.Path(os.environ["SIGN"])
        while rank == "0" and not sign.exists():
            time.sleep(0.05)
        mlflow.log_metric("rank" + rank, 1)
        sign.touch()
        """
    env = {"MLFLOW_TRACKING_URI": server, "MLFLOW_EXPERIMENT_NAME": "late", "SIGN": str(tmp_path / "sign")}
    job = submit(cluster, text, gpus=2, nodes=2, env=env)
    assert cluster.api.wait(job, CLIENT_PATIENCE)["state"] == "SUCCEEDED", cluster.api.log(job, 1, "stderr")
    (run,) = runs_there(server, "late")
    assert metrics_of(run) == {"rank0": 1, "rank1": 1} and run["info"]["status"] == "FINISHED"


def test_a_rank_alone_whose_code_sets_the_server_has_its_run_there(server: str, cluster: Cluster) -> None:
    text = f"""
        import mlflow
        mlflow.set_tracking_uri("{server}")
        mlflow.set_experiment("alone")
        mlflow.start_run(run_name="first")
        """
    job = submit(cluster, text, name="alone")
    assert cluster.api.wait(job, CLIENT_PATIENCE)["state"] == "SUCCEEDED", cluster.api.log(job, stream="stderr")
    (run,) = runs_there(server, "alone")
    tags = {item["key"]: item["value"] for item in run["data"]["tags"]}
    assert run["info"]["run_name"] == "first" and tags["gpuctl.attempt"] == f"{job}/1"


@pytest.mark.thorough
def test_calls_of_a_notebook_that_tracks_there_have_one_run_each(server: str, cluster: Cluster, notebook: Notebook) -> None:  # noqa: F811
    notebook(f"""
        import os
        import mlflow
        from serverless_gpu import distributed

        def log():
            mlflow.log_metric("rank" + os.environ["RANK"], 1)
            return mlflow.active_run().info.run_id

        @distributed(gpus=2, gpu_type="cpu", remote=True)
        def chooses(experiment):
            mlflow.set_tracking_uri("{server}")
            mlflow.autolog()
            mlflow.set_experiment(experiment)
            with mlflow.start_run():
                return log()

        @distributed(gpus=2, gpu_type="cpu", remote=True)
        def starts():
            with mlflow.start_run(run_name="inside"):
                return log()

        @distributed(gpus=2, gpu_type="cpu", remote=False)
        def logs():
            return log()

        seen = chooses.distributed("in the function")
        assert len(set(seen)) == 1, seen
        mlflow.set_tracking_uri("{server}")
        mlflow.set_experiment("in the notebook")
        seen += starts.distributed()
        with mlflow.start_run() as around:
            seen += logs.distributed()
        assert len(set(seen) | {{around.info.run_id}}) == 4, seen
        """)
    both = {"rank0": 1, "rank1": 1}
    assert [metrics_of(run) for run in runs_there(server, "in%20the%20function")] == [both]
    assert [metrics_of(run) for run in runs_there(server, "in%20the%20notebook")] == [both, {}, both]  # the newest first


# --- the same there and here ---------------------------------------------------------------------------------------------------

PREAMBLE = """
    import json, sys, mlflow
    from mlflow.exceptions import MlflowException

    client = mlflow.MlflowClient()
    seen = []
    def refused(action):
        try:
            action()
        except MlflowException as error:
            seen.append(["refused", error.error_code])
        else:
            seen.append(["taken"])
    """

TRACES = PREAMBLE + """
    from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param, RunTag

    experiment = mlflow.set_experiment("parity")
    mlflow.set_experiment_tag("team", "a")
    names = {}
    for number in range(4):
        with mlflow.start_run(run_name=f"run {number}", tags={"half": "low" if number < 2 else "high"}, description="a run") as run:
            names[run.info.run_id] = f"run {number}"
            for step in range(3):
                mlflow.log_metric("loss", 1 / (number + step + 1), step=step)
            mlflow.log_metric("loss", 9.0, step=1)
            mlflow.log_metrics({"nan": float("nan"), "high": float("inf"), "low": float("-inf"), "a/b c:d-e_f.g": number}, step=number)
            mlflow.log_params({"number": number, "empty": "", "text": "x" * 6000, "unicode": "ü"})
            mlflow.set_tags({"t": number, "long": "y" * 8000})
            mlflow.log_text("hello", "notes/hello.txt")
            mlflow.log_dict({"a": 1}, "config.json")
            mlflow.log_text("", "empty.txt")
            if number == 3:
                client.delete_tag(run.info.run_id, "t")
                with mlflow.start_run(nested=True, run_name="inner") as child:
                    mlflow.log_metric("loss", 5)
                inner = child.info.run_id
                names[inner] = "inner"
                seen.append(names[client.get_run(inner).data.tags["mlflow.parentRunId"]])
    last = run.info.run_id
    client.log_batch(last, [Metric("m", i, 1000 + i, i) for i in range(1000)])
    client.log_batch(last, [], [Param(f"p{i}", "v") for i in range(100)], [RunTag(f"t{i}", "v") for i in range(100)])
    client.set_terminated(last, "KILLED")
    deleted = next(iter(names))
    client.delete_run(deleted)
    refused(lambda: client.log_param(last, "number", "7"))
    refused(lambda: client.log_metric(last, "bad/../name", 1))
    refused(lambda: client.log_metric(last, "bad#name", 1))
    refused(lambda: client.log_param(last, "k" * 251, 1))
    refused(lambda: client.log_metric(deleted, "m", 1))
    refused(lambda: client.log_batch("0" * 32, [Metric("m", 1, 1, 1)]))
    refused(lambda: client.get_run("0" * 32))
    refused(lambda: client.get_experiment("123456"))
    refused(lambda: client.create_experiment("parity"))
    refused(lambda: client.create_experiment(""))
    refused(lambda: client.delete_tag(last, "never"))
    refused(lambda: client.search_runs([experiment.experiment_id], "metrics.loss ~ 3"))
    refused(lambda: client.search_runs([experiment.experiment_id], "nothing.loss > 3"))
    refused(lambda: client.search_runs([experiment.experiment_id], order_by=["metrics.loss SIDEWAYS"]))
    refused(lambda: client.set_tag(last, "", "x"))
    refused(lambda: client.log_metric(last, "m", 1, timestamp=-1))
    refused(lambda: client.restore_experiment(experiment.experiment_id))

    refused(lambda: client.log_param(last, "number", "3"))
    refused(lambda: client.delete_run(deleted))
    refused(lambda: client.set_tag(deleted, "x", "y"))

    def plain(value):          # what is not finite is the largest number in the server's database, which MLflow leaves to the store
        return {"inf": "1.7976931348623157e+308", "-inf": "-1.7976931348623157e+308"}.get(repr(value), repr(value))
    def shown(run):
        info, data = run.info, run.data
        skipped = ("mlflow.source.git.commit", "mlflow.log-model.history")
        tags = {k: v for k, v in data.tags.items() if k not in skipped and k != "mlflow.parentRunId"}
        return [info.run_name, info.status, info.lifecycle_stage, info.end_time is not None, info.end_time >= info.start_time,
                {k: plain(v) for k, v in data.metrics.items()}, data.params, tags, info.user_id]
    def search(filter="", **how):
        return [run.info.run_name for run in client.search_runs([experiment.experiment_id], filter, **how)]
    for run in client.search_runs([experiment.experiment_id], order_by=["attributes.run_name ASC"], run_view_type=3):
        seen.append(shown(run))
        for key in ("loss", "nan", "high"):
            points = client.get_metric_history(run.info.run_id, key)
            seen.append(sorted([plain(p.value), p.step] for p in points))
        for folder in (None, "notes", "nothing", "config.json"):
            seen.append([[f.path, f.is_dir, f.file_size or None] for f in client.list_artifacts(run.info.run_id, folder)])
    for filter in ("", "metrics.loss < 0.3", "metrics.loss <= 0.25 and tags.half = 'high'", "params.number != '2'", "tags.half LIKE 'h%'",
                   "tags.half ILIKE 'H%'", "attributes.run_name = 'run 1'", "run_name LIKE '%1'", "attributes.status = 'KILLED'",
                   "attributes.status != 'KILLED'", "metrics.nan > 0", "metrics.`a/b c:d-e_f.g` >= 2", "tags.t = '1'", "params.empty = ''",
                   "metrics.high > 1e300", "tags.never IS NULL", "tags.t IS NOT NULL", "attributes.end_time > 0", "params.unicode = 'ü'",
                   "attributes.start_time > 0 AND attributes.run_name != 'inner'", "attributes.user_id = 'nobody'", "tags.`t` = '2'"):
        try:
            seen.append([filter, sorted(search(filter))])
        except MlflowException as error:
            seen.append([filter, error.error_code])
    seen.append(search("attributes.run_id IN ('" + last + "')"))
    for order in (["metrics.loss DESC", "attributes.run_name"], ["metrics.m ASC", "attributes.run_name"], ["params.number DESC"],
                  ["tags.t ASC", "attributes.run_name DESC"], ["metrics.nan ASC", "attributes.run_name"],
                  ["attributes.status", "run_name"]):
        seen.append([order, search(order_by=order), search(order_by=order, max_results=2)])
    seen.append([e.name for e in client.search_experiments(filter_string="tags.team = 'a'")])
    seen.append([e.name for e in client.search_experiments(filter_string="name LIKE 'par%'", order_by=["name DESC"])])
    table = mlflow.search_runs(experiment_names=["parity"], order_by=["run_name"])
    seen.append(sorted(c for c in table.columns if c not in ("tags.mlflow.source.git.commit", "tags.mlflow.parentRunId")))
    client.restore_run(deleted)
    client.rename_experiment(experiment.experiment_id, "parity 2")
    client.delete_experiment(experiment.experiment_id)
    refused(lambda: client.delete_experiment(experiment.experiment_id))
    refused(lambda: client.create_run(experiment.experiment_id))
    refused(lambda: client.set_experiment_tag(experiment.experiment_id, "x", "y"))
    seen.append([client.get_experiment(experiment.experiment_id).lifecycle_stage, client.get_run(last).info.lifecycle_stage])
    json.dump(seen, open(sys.argv[1], "w"))
    """

MODELS = PREAMBLE + """
    import numpy
    from sklearn.linear_model import LogisticRegression

    experiment = mlflow.set_experiment("models")
    mlflow.sklearn.autolog()
    data, truth = numpy.array([[0.0], [1.0], [2.0], [3.0]]), numpy.array([0, 0, 1, 1])
    with mlflow.start_run() as run:
        LogisticRegression(C=2.0).fit(data, truth)
    mlflow.sklearn.autolog(disable=True)
    named = mlflow.sklearn.log_model(LogisticRegression().fit(data, truth), name="named", params={"a": 1}, tags={"t": "x"},
                                      pip_requirements=["scikit-learn"]).model_id
    mlflow.end_run()
    bare = client.create_logged_model(experiment.experiment_id, name="bare", model_type="agent", params={str(n): n for n in range(150)})
    client.set_logged_model_tags(bare.model_id, {"one": "1", "two": "2"})
    client.delete_logged_model_tag(bare.model_id, "two")
    client.log_model_params(bare.model_id, {"late": "3"})
    failed = client.create_logged_model(experiment.experiment_id, name="failed")
    client.finalize_logged_model(failed.model_id, "FAILED")

    def shown(model):
        tags = {k: v for k, v in model.tags.items() if k != "mlflow.source.git.commit"}
        return [model.name, str(model.status), model.model_type, model.params, tags, bool(model.source_run_id),
                model.artifact_location == f"mlflow-artifacts:/{experiment.experiment_id}/models/{model.model_id}/artifacts",
                model.last_updated_timestamp >= model.creation_timestamp]
    def search(filter=None, **how):
        found = mlflow.search_logged_models([experiment.experiment_id], filter, output_format="list", **how)
        return [[model.name, model.params.get("C")] for model in found]
    models = mlflow.search_logged_models([experiment.experiment_id], output_format="list")
    seen.append(sorted(map(shown, models), key=str))
    seen.append(shown(mlflow.get_logged_model(named)))
    for filter in ("name = 'model'", "name LIKE 'na%'", "params.C = '2.0'", "tags.one = '1'", "model_type = 'agent'",
                   "name = 'model' AND params.C = '2.0'", "source_run_id = '" + run.info.run_id + "'"):
        seen.append([filter.split("'")[0], sorted(search(filter), key=str)])
    seen.append(search(order_by=[{"field_name": "creation_timestamp", "ascending": True}]))
    seen.append(search(order_by=[{"field_name": "name", "ascending": False}, {"field_name": "creation_timestamp", "ascending": True}]))
    logged = client.get_run(run.info.run_id)
    seen.append([logged.info.status, logged.data.params["C"], sorted(logged.data.metrics), len(logged.outputs.model_outputs)])
    for model in models:
        seen.append(sorted(f.path for f in client.list_logged_model_artifacts(model.model_id)))
    seen.append([f.path for f in client.list_artifacts(run.info.run_id)])
    for uri in ("models:/" + named, f"runs:/{run.info.run_id}/model"):
        seen.append([int(value) for value in mlflow.sklearn.load_model(uri).predict(data)])
    refused(lambda: client.finalize_logged_model("m-" + "0" * 32, "READY"))
    refused(lambda: client.delete_logged_model_tag(bare.model_id, "two"))
    refused(lambda: client.create_logged_model(experiment.experiment_id, name="a/b"))
    refused(lambda: client.create_logged_model("123456", name="a"))
    refused(lambda: search("nothing = 'x'"))
    client.delete_logged_model(bare.model_id)
    refused(lambda: client.get_logged_model(bare.model_id))
    refused(lambda: client.delete_logged_model(bare.model_id))
    refused(lambda: client.set_logged_model_tags(bare.model_id, {"x": "y"}))
    seen.append(sorted(search(), key=str))
    json.dump(seen, open(sys.argv[1], "w"))
    """

REGISTRY = PREAMBLE + """
    import time
    import numpy
    from sklearn.linear_model import LogisticRegression

    data, truth = numpy.array([[0.0], [1.0], [2.0], [3.0]]), numpy.array([0, 0, 1, 1])
    experiment = mlflow.set_experiment("registry")
    with mlflow.start_run() as run:
        logged = mlflow.sklearn.log_model(LogisticRegression().fit(data, truth), name="model", registered_model_name="main.ml.digits",
                                          pip_requirements=["scikit-learn"])
    run_id = run.info.run_id
    by_run = mlflow.register_model(f"runs:/{run_id}/model", "main.ml.digits", tags={"how": "by run"})
    by_id = mlflow.register_model(f"models:/{logged.model_id}", "other")
    seen.append([logged.registered_model_version, by_run.version, by_id.version, by_run.status, by_run.run_id == run_id])

    def version(found):
        return [found.name, str(found.version), found.current_stage, found.status, found.description, found.tags, found.run_id == run_id,
                found.run_link, found.source.replace(logged.model_id, "ID"), found.last_updated_timestamp >= found.creation_timestamp]
    def model(found):
        return [found.name, found.description or "", found.tags, {k: str(v) for k, v in found.aliases.items()},
                sorted(map(version, found.latest_versions), key=str), found.last_updated_timestamp >= found.creation_timestamp]
    def answer(uri):
        return [int(value) for value in mlflow.pyfunc.load_model(uri).predict(data)]

    client.set_registered_model_alias("main.ml.digits", "champion", 1)
    client.set_registered_model_alias("main.ml.digits", "champion", "2")
    client.set_registered_model_alias("main.ml.digits", "old-1", 1)
    for uri in ("models:/main.ml.digits/1", "models:/main.ml.digits@champion", "models:/main.ml.digits/latest", "models:/other/1"):
        seen.append([uri, answer(uri)])
    seen.append([int(value) for value in mlflow.sklearn.load_model("models:/main.ml.digits@old-1").predict(data)])
    seen.append(mlflow.models.get_model_info("models:/other/1").model_id == logged.model_id)

    client.update_registered_model("main.ml.digits", "tells digits apart")
    client.update_model_version("main.ml.digits", "1", "the first")
    client.set_registered_model_tag("main.ml.digits", "team", "a")
    client.set_registered_model_tag("main.ml.digits", "long", "z" * 5000)
    client.set_registered_model_tag("main.ml.digits", "gone", "b")
    client.delete_registered_model_tag("main.ml.digits", "gone")
    client.delete_registered_model_tag("main.ml.digits", "never")
    client.set_model_version_tag("main.ml.digits", "1", "passed", "yes")
    client.set_model_version_tag("main.ml.digits", "1", "gone", "b")
    client.delete_model_version_tag("main.ml.digits", "1", "gone")
    client.delete_model_version_tag("main.ml.digits", "1", "never")
    seen.append(model(client.get_registered_model("main.ml.digits")))
    for alias in ("champion", "old-1", "latest"):
        found = client.get_model_version_by_alias("main.ml.digits", alias)
        seen.append(version(found))
    seen.append([sorted(client.get_model_version("main.ml.digits", number).aliases) for number in ("1", 2)])

    copied = client.copy_model_version("models:/main.ml.digits@old-1", "copies")
    again = client.copy_model_version("models:/copies/1", "copies")
    seen.append([version(copied), version(again), answer("models:/copies/2")])
    uri = client.get_model_version_download_uri("main.ml.digits", "1")
    seen.append(uri.replace(logged.model_id, "ID").replace(experiment.experiment_id, "E", 1))
    seen.append([client.get_model_version_download_uri(*named) == uri for named in (("copies", "2"), ("other", "1"))])

    for stage, archives in (("staging", False), ("Production", False), ("Production", True), ("None", False)):
        for number in ("1", "2"):
            seen.append(version(client.transition_model_version_stage("main.ml.digits", number, stage, archives)))
        seen.append(sorted(map(version, client.get_latest_versions("main.ml.digits")), key=str))
    client.transition_model_version_stage("main.ml.digits", "1", "Production")
    seen.append([found.version for found in client.get_latest_versions("main.ml.digits", ["production"])])
    seen.append([answer("models:/main.ml.digits/Production")])

    client.create_registered_model("empty", {"team": "b"}, "nothing yet")
    client.create_registered_model("plain", description="nothing either")
    client.update_registered_model("plain", "")
    bare = client.create_model_version("plain", f"models:/{logged.model_id}", tags={"a": "1", "b": "2"}, description="by hand",
                                       model_id=logged.model_id, run_link="http://example.invalid/run")
    seen.append(version(bare))
    seen.append(model(client.create_registered_model("with space-and_more")))
    for filter in ("", "name = 'copies'", "name LIKE '%p%'", "name ILIKE 'MAIN.%'", "name != 'copies'", "name IN ('copies', 'other')",
                   "tags.team = 'a'", "tags.team != 'a'", "tags.team = 'a' AND name LIKE 'main.%'", "tag.`team` LIKE 'b%'",
                   "tags.never = 'x'"):
        found = mlflow.search_registered_models(filter_string=filter)
        seen.append([filter, [each.name for each in found]])
    for order in (["name DESC"], ["name ASC"], ["last_updated_timestamp ASC", "name"], ["timestamp DESC"]):
        seen.append([order[:1], len(client.search_registered_models(order_by=order))])
        if "name" in order[0]:
            seen.append([each.name for each in client.search_registered_models(order_by=order)])
    seen.append([model(each) for each in client.search_registered_models("name = 'main.ml.digits'")])
    def numbers(filter="", **how):
        return [[each.name, str(each.version)] for each in client.search_model_versions(filter, **how)]
    for filter in ("", "name = 'main.ml.digits'", "name LIKE 'main.%'", f"run_id = '{run_id}'", f"run_id IN ('{run_id}', 'x')",
                   "version_number > 1", "version_number = 1 AND name = 'copies'", "name != 'copies'", "tags.how = 'by run'",
                   "tags.passed = 'yes' and name = 'main.ml.digits'", "source_path LIKE 'models:/m-%'", "name = 'never'",
                   "tag.a = '1' and tag.b = '2'"):
        seen.append([filter.replace(run_id, "RUN"), sorted(numbers(filter))])
    for order in (["name DESC", "version_number ASC"], ["name ASC"], ["version_number DESC", "name ASC"], ["version_number ASC"]):
        seen.append([order, numbers(order_by=order)])
    newest = numbers(max_results=1)
    seen.append(newest)
    page = client.search_model_versions("name = 'copies'", max_results=1)
    rest = client.search_model_versions("name = 'copies'", max_results=1, page_token=page.token)
    seen.append([[each.version for each in page], bool(page.token), [each.version for each in rest], bool(rest.token)])
    page = client.search_registered_models(max_results=2)
    rest = client.search_registered_models(max_results=2, page_token=page.token)
    seen.append([[each.name for each in page], [each.name for each in rest]])

    long = "n" * 300
    refused(lambda: client.create_registered_model("other"))
    for name in ("", " ", "a/b", "a:b", ".", ".."):
        refused(lambda: client.create_registered_model(name))
    for action in (client.get_registered_model, client.delete_registered_model, client.get_latest_versions):
        refused(lambda: action("never"))
    refused(lambda: client.rename_registered_model("never", "x"))
    refused(lambda: client.rename_registered_model("other", "copies"))
    refused(lambda: client.rename_registered_model("other", "a/b"))
    refused(lambda: client.update_registered_model("never", "x"))
    refused(lambda: client.get_model_version("other", "9"))
    refused(lambda: client.get_model_version("other", "x"))
    refused(lambda: client.get_model_version("never", "1"))
    refused(lambda: client.update_model_version("other", "9", "x"))
    refused(lambda: client.delete_model_version("other", "9"))
    refused(lambda: client.get_model_version_download_uri("other", "9"))
    refused(lambda: client.get_model_version_by_alias("other", "never"))
    refused(lambda: client.get_model_version_by_alias("empty", "latest"))
    refused(lambda: client.set_registered_model_alias("other", "champion", "9"))
    for alias in ("", "a b", "latest", "LATEST", "v1", "V12", long):
        refused(lambda: client.set_registered_model_alias("other", alias, "1"))
    client.set_registered_model_alias("other", "v1a", "1")
    client.delete_registered_model_alias("other", "v1a")
    client.delete_registered_model_alias("other", "never")
    refused(lambda: client.delete_registered_model_alias("never", "x"))
    refused(lambda: client.set_registered_model_tag("never", "a", "b"))
    refused(lambda: client.set_registered_model_tag("other", "a#", "b"))
    refused(lambda: client.set_registered_model_tag("other", "a", "b" * 100001))
    refused(lambda: client.set_model_version_tag("other", "9", "a", "b"))
    refused(lambda: client.set_model_version_tag("other", "1", "k" * 251, "b"))
    refused(lambda: client.delete_model_version_tag("other", "9", "a"))
    refused(lambda: client.transition_model_version_stage("other", "1", "nowhere"))
    refused(lambda: client.get_latest_versions("other", ["nowhere"]))
    refused(lambda: client.search_registered_models("nothing = 'x'"))
    refused(lambda: client.search_registered_models("params.a = 'x'"))
    refused(lambda: client.search_registered_models("name > 'x'"))
    refused(lambda: client.search_registered_models(order_by=["nothing ASC"]))
    refused(lambda: client.search_registered_models(max_results=1001))
    refused(lambda: client.search_model_versions("nothing = 'x'"))
    refused(lambda: client.search_model_versions("metrics.a > 1"))
    refused(lambda: client.search_model_versions("version_number LIKE '1'"))
    refused(lambda: client.search_model_versions(order_by=["nothing ASC"]))
    refused(lambda: client.search_model_versions(max_results=200001))
    for source in ("/etc", "file:///etc", "etc", "mlflow-artifacts:/0", f"mlflow-artifacts:/{experiment.experiment_id}/../0",
                   "s3://bucket/../other", f"runs:/{run_id}/model", "models:/never/1", "models:/other/9", "models:/other@never",
                   "models:/" + logged.model_id, "models:/m-0"):
        refused(lambda: client.create_model_version("plain", source))
    refused(lambda: client.create_model_version("never", "s3://bucket/model"))
    refused(lambda: client.create_model_version("plain", "models:/other/1", run_id="0" * 32))
    refused(lambda: client.create_model_version("plain", "file:///etc", run_id))
    refused(lambda: client.create_model_version("plain", f"mlflow-artifacts:/{experiment.experiment_id}/other", run_id))
    artifacts = run.info.artifact_uri
    taken = [client.create_model_version("plain", source, run_id) for source in
             ("s3://bucket/a model", f"runs:/{run_id}/model", artifacts, artifacts + "/deep/model", "models:/copies/1")]
    seen.append([[each.version, each.run_id == run_id] for each in taken])

    client.delete_model_version("main.ml.digits", "2")
    refused(lambda: client.get_model_version("main.ml.digits", "2"))
    refused(lambda: client.get_model_version_by_alias("main.ml.digits", "champion"))
    seen.append(mlflow.register_model(f"models:/{logged.model_id}", "main.ml.digits").version)
    client.rename_registered_model("main.ml.digits", "main.ml.numbers")
    refused(lambda: client.get_registered_model("main.ml.digits"))
    seen.append(model(client.get_registered_model("main.ml.numbers")))
    seen.append([answer("models:/main.ml.numbers@old-1"), client.get_model_version("main.ml.numbers", "1").name])
    client.delete_run(run_id)
    client.delete_logged_model(logged.model_id)
    seen.append([version(client.get_model_version("main.ml.numbers", "1")), answer("models:/main.ml.numbers/1")])
    client.delete_registered_model("main.ml.numbers")
    refused(lambda: client.get_model_version("main.ml.numbers", "1"))
    seen.append(list(client.create_registered_model("main.ml.numbers").latest_versions))
    seen.append([model(client.get_registered_model("main.ml.numbers")), numbers("name = 'main.ml.numbers'")])
    seen.append(client.create_model_version("main.ml.numbers", "s3://bucket/new").version)

    if hasattr(mlflow, "genai") and hasattr(mlflow.genai, "register_prompt"):
        first = mlflow.genai.register_prompt(name="greeting", template="Hello {{name}}", commit_message="one", tags={"t": "x"})
        mlflow.genai.register_prompt(name="greeting", template="Hi {{name}}")
        mlflow.genai.set_prompt_alias("greeting", alias="live", version=1)
        seen.append([first.version, mlflow.genai.load_prompt("prompts:/greeting@live").template])
        seen.append(mlflow.genai.load_prompt("greeting", version=2).template)
        seen.append([each.name for each in mlflow.genai.search_prompts()])
        seen.append(["greeting" in [each.name for each in client.search_registered_models()], numbers("name = 'greeting'")])
        refused(lambda: client.create_registered_model("greeting"))
    json.dump(seen, open(sys.argv[1], "w"))
    """


def traces(script: str, env: dict[str, str], folder: Path) -> list[Any]:
    folder.mkdir()
    (folder / "traces.py").write_text(textwrap.dedent(script))
    ran = subprocess.run([PYTHON, "traces.py", "seen.json"], env=env, cwd=folder, capture_output=True, text=True, timeout=SERVER_PATIENCE)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-8000:]
    return list(json.loads((folder / "seen.json").read_text()))


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(TRACES, id="runs"),
        pytest.param(MODELS, id="models", marks=pytest.mark.long),  # test_mlflow_calls.py makes each call
        pytest.param(REGISTRY, id="registry", marks=pytest.mark.long),
    ],
)
def test_one_script_leaves_the_same_at_mlflows_server_and_here(script: str, server: str, cluster: Cluster, tmp_path: Path) -> None:
    if script is not TRACES:
        pytest.importorskip("sklearn", reason="scikit-learn is not installed: deploy/python-environment --tests")
    here = tracking(cluster, tmp_path)
    ours = traces(script, here, tmp_path / "a")
    theirs = traces(script, {**here, "MLFLOW_TRACKING_URI": server, "MLFLOW_TRACKING_TOKEN": ""}, tmp_path / "b")
    assert len(ours) == len(theirs)
    assert [pair for pair in zip(ours, theirs) if pair[0] != pair[1]] == []
