# SPDX-License-Identifier: Apache-2.0
"""Which statement of a program with MLflow's client makes which call of its REST API: in this order one program, which test_mlflow_calls.py
runs against the controller. docs/reference/mlflow.md shows the statements, too (docs/mlflow_page.py).
"""

from __future__ import annotations

ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"

#: Runs before all others and makes no call. `call` is for calls that another client, or another version of it, makes by itself: it goes
#: through the client's own requests and parsers.
BEFORE = """
import json
import mlflow
from mlflow.entities import Dataset, DatasetInput, LoggedModelOutput, Metric
from mlflow.models import Model
from mlflow.protos.model_registry_pb2 import GetLatestVersions
from mlflow.protos.service_pb2 import ListArtifacts, SearchExperiments
from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
from mlflow.tracking._tracking_service.utils import get_default_host_creds
from mlflow.utils.rest_utils import call_endpoint
from mlflow.utils.server_info import fetch_server_info

client = mlflow.MlflowClient()
creds = get_default_host_creds(mlflow.get_tracking_uri())

def call(message, method, path, **body):
    return call_endpoint(creds, "/api/2.0/mlflow/" + path, method, json.dumps(body), message.Response())
"""

#: "METHOD path", the path below /api/2.0/mlflow/ where it does not begin with a slash: the statement.
CALLS = {
    "GET /api/3.0/mlflow/server-info": "fetch_server_info(creds)",
    "POST experiments/create": 'experiment = client.create_experiment("calls")',
    "GET experiments/get": "client.get_experiment(experiment)",
    "GET experiments/get-by-name": 'client.get_experiment_by_name("calls")',
    "POST experiments/search": "client.search_experiments()",
    "GET experiments/search": 'call(SearchExperiments, "GET", "experiments/search", max_results=5)',
    "POST experiments/update": 'client.rename_experiment(experiment, "renamed")',
    "POST experiments/set-experiment-tag": 'client.set_experiment_tag(experiment, "k", "v")',
    "POST experiments/delete-experiment-tag": 'client.delete_experiment_tag(experiment, "k")',
    "POST experiments/delete": "client.delete_experiment(experiment)",
    "POST experiments/restore": "client.restore_experiment(experiment)",
    "POST runs/create": "run = client.create_run(experiment).info",
    "GET runs/get": "client.get_run(run.run_id)",
    "POST runs/update": 'client.update_run(run.run_id, name="renamed")',
    "POST runs/delete": "client.delete_run(run.run_id)",
    "POST runs/restore": "client.restore_run(run.run_id)",
    "POST runs/search": "client.search_runs([experiment])",
    "POST runs/log-metric": 'client.log_metric(run.run_id, "m", 1.0)',
    "POST runs/log-parameter": 'client.log_param(run.run_id, "p", "v")',
    "POST runs/log-batch": 'client.log_batch(run.run_id, [Metric("m", 2.0, 3, 4)])',
    "POST runs/set-tag": 'client.set_tag(run.run_id, "k", "v")',
    "POST runs/delete-tag": 'client.delete_tag(run.run_id, "k")',
    "POST runs/log-inputs": 'client.log_inputs(run.run_id, [DatasetInput(Dataset("d", "digest", "local", "{}"))])',
    "POST runs/log-model": 'client._record_logged_model(run.run_id, Model(artifact_path="m", run_id=run.run_id))',
    "GET metrics/get-history": 'client.get_metric_history(run.run_id, "m")',
    "POST logged-models": 'logged = client.create_logged_model(experiment, "model", source_run_id=run.run_id)',
    "GET logged-models/{model_id}": "client.get_logged_model(logged.model_id)",
    "POST logged-models/search": "client.search_logged_models([experiment])",
    "PATCH logged-models/{model_id}": 'client.finalize_logged_model(logged.model_id, "READY")',
    "POST logged-models/{model_id}/params": 'client.log_model_params(logged.model_id, {"p": "v"})',
    "PATCH logged-models/{model_id}/tags": 'client.set_logged_model_tags(logged.model_id, {"k": "v"})',
    "DELETE logged-models/{model_id}/tags/{tag_key}": 'client.delete_logged_model_tag(logged.model_id, "k")',
    "POST runs/outputs": "client.log_outputs(run.run_id, [LoggedModelOutput(logged.model_id, 1)])",
    f"PUT {ARTIFACTS}/{{path}}": 'client.log_text(run.run_id, "text", "notes/a.txt")',
    "GET artifacts/list": 'call(ListArtifacts, "GET", "artifacts/list", run_id=run.run_id)',
    f"GET {ARTIFACTS}": "client.list_artifacts(run.run_id)",
    f"GET {ARTIFACTS}/{{path}}": 'client.download_artifacts(run.run_id, "notes/a.txt")',
    f"DELETE {ARTIFACTS}/{{path}}": 'get_artifact_repository(run.artifact_uri).delete_artifacts("notes/a.txt")',
    "POST registered-models/create": 'client.create_registered_model("m")',
    "GET registered-models/get": 'client.get_registered_model("m")',
    "GET registered-models/search": "client.search_registered_models()",
    "PATCH registered-models/update": 'client.update_registered_model("m", "what it does")',
    "POST registered-models/set-tag": 'client.set_registered_model_tag("m", "k", "v")',
    "DELETE registered-models/delete-tag": 'client.delete_registered_model_tag("m", "k")',
    "POST model-versions/create": 'client.create_model_version("m", f"models:/{logged.model_id}", model_id=logged.model_id)',
    "GET model-versions/get": 'client.get_model_version("m", "1")',
    "GET model-versions/search": "client.search_model_versions(\"name = 'm'\")",
    "GET model-versions/get-download-uri": 'client.get_model_version_download_uri("m", "1")',
    "PATCH model-versions/update": 'client.update_model_version("m", "1", "the first")',
    "POST model-versions/set-tag": 'client.set_model_version_tag("m", "1", "k", "v")',
    "DELETE model-versions/delete-tag": 'client.delete_model_version_tag("m", "1", "k")',
    "POST model-versions/transition-stage": 'client.transition_model_version_stage("m", "1", "Production")',
    "POST registered-models/get-latest-versions": 'client.get_latest_versions("m", ["Production"])',
    "GET registered-models/get-latest-versions": 'call(GetLatestVersions, "GET", "registered-models/get-latest-versions", name="m")',
    "POST registered-models/alias": 'client.set_registered_model_alias("m", "champion", "1")',
    "GET registered-models/alias": 'client.get_model_version_by_alias("m", "champion")',
    "DELETE registered-models/alias": 'client.delete_registered_model_alias("m", "champion")',
    "DELETE model-versions/delete": 'client.delete_model_version("m", "1")',
    "POST registered-models/rename": 'client.rename_registered_model("m", "n")',
    "DELETE registered-models/delete": 'client.delete_registered_model("n")',
    "DELETE logged-models/{model_id}": "client.delete_logged_model(logged.model_id)",
}  # fmt: skip
