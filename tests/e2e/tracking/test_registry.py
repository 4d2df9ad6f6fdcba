# SPDX-License-Identifier: Apache-2.0
"""The registry of models: what a rank registers, the notebook loads by name, version and alias. That the registry answers as MLflow's own
does is tested in test_mlflow_server.py.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import pytest

from harness import Cluster
from test_functions import Notebook, notebook  # noqa: F401
from test_mlflow import API, Script, script  # noqa: F401

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("mlflow") is None, reason="MLflow's client could not be installed"),
    pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="scikit-learn could not be installed"),
]


def test_a_notebook_loads_what_a_rank_has_registered(notebook: Notebook, script: Script, cluster: Cluster) -> None:  # noqa: F811
    """As code for Databricks does it: with its registry named, and a name of three parts."""
    ran = notebook("""
        import json, mlflow, numpy
        from sklearn.linear_model import LogisticRegression
        from serverless_gpu import distributed
        mlflow.set_registry_uri("databricks-uc")

        @distributed(gpus=2, gpu_type="cpu", remote=True)
        def train():
            import os
            data, truth = numpy.array([[0.0], [1.0], [2.0], [3.0]]), numpy.array([0, 0, 1, 1])
            model = LogisticRegression().fit(data, truth)
            if os.environ["RANK"] == "0":
                with mlflow.start_run():
                    mlflow.sklearn.log_model(model, name="model", registered_model_name="main.ml.digits", pip_requirements=["scikit-learn"])
                mlflow.MlflowClient().set_registered_model_alias("main.ml.digits", "champion", 1)
            return data.tolist(), model.predict_proba(data).tolist()

        json.dump(train.distributed()[0], open("trained.json", "w"))
        """)
    assert "MLFLOW_REGISTRY_URI" in ran.stdout + ran.stderr
    script("""
        import json, mlflow, numpy
        data, answers = map(numpy.array, json.load(open("trained.json")))
        for uri in ("models:/main.ml.digits/1", "models:/main.ml.digits@champion", "models:/main.ml.digits/latest"):
            assert (mlflow.sklearn.load_model(uri).predict_proba(data) == answers).all(), uri
            assert mlflow.pyfunc.load_model(uri).predict(data).tolist() == [0, 0, 1, 1], uri
        version = mlflow.MlflowClient().get_model_version("main.ml.digits", "1")
        run = mlflow.get_run(version.run_id)
        assert run.data.tags["gpuctl.job_id"] and version.status == "READY" and list(version.aliases) == ["champion"], version
        mlflow.set_registry_uri("databricks-uc")        # asks Databricks, not the controller
        try:
            mlflow.pyfunc.load_model("models:/main.ml.digits/1")
        except mlflow.exceptions.MlflowException as error:
            assert "Databricks" in str(error), error
        else:
            raise AssertionError("there are credentials of Databricks here")
        """)


def test_the_registry_survives_kill_9_of_the_controller(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    for name in ("a", "b"):
        cluster.api.post(f"{API}/registered-models/create", {"name": name})
        cluster.api.post(f"{API}/model-versions/create", {"name": name, "source": "s3://bucket/model"})
    cluster.controller.kill()
    cluster.start_controller()
    found = cluster.api.get(f"{API}/model-versions/search")
    assert sorted(version["name"] for version in found["model_versions"]) == ["a", "b"]
