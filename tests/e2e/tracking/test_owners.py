# SPDX-License-Identifier: Apache-2.0
"""Experiments, runs, models and their files belong to people and projects: what others, and the ranks of others' jobs, reach of them."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness import Api, Cluster, eventually

CALL = "/api/2.0/mlflow/"
FILES = "/api/2.0/mlflow-artifacts/artifacts"

#: name: the owner of the token, its role, and what the owner is in the project vision.
PRINCIPALS = {
    "ann, user of vision": ("ann", "user", "user"),
    "a rank of ann's": ("ann", "rank", "user"),
    "bob, user of vision": ("bob", "user", "user"),
    "vera, viewer of vision": ("vera", "user", "viewer"),
    "olga, operator of vision": ("olga", "user", "operator"),
    "eve": ("eve", "user", ""),
    "a rank of eve's": ("eve", "rank", ""),
    "ann's token to look": ("ann", "viewer", "user"),
    "oscar, an operator": ("oscar", "operator", ""),
}


class Scene:
    """What ann has: runs and models of her own, and of the project."""

    def __init__(self, cluster: Cluster, folder: Path):
        self.cluster = cluster
        members = {owner: role for owner, _, role in PRINCIPALS.values() if role}
        cluster.api.call("PUT", "/v1/accounts/projects/vision", {"members": members})
        tokens = {name: cluster.user(owner, role) for name, (owner, role, _) in PRINCIPALS.items() if role != "rank"}
        people = {owner: tokens[name] for name, (owner, role, _) in PRINCIPALS.items() if role == "user"}
        ranks = {name: self.rank(people[owner], folder / owner) for name, (owner, role, _) in PRINCIPALS.items() if role == "rank"}
        self.apis = {**tokens, **ranks}
        self.ann = people["ann"]
        self.shared, self.private = self.experiment("vision"), self.experiment("default")
        self.run = {"shared": self.make_run(self.shared), "private": self.make_run(self.private), "default": self.make_run("0")}
        for name, project in (("net", "vision"), ("own", "default")):
            self.ask(self.ann, "POST", CALL + "registered-models/create", {"name": name, "tags": tag(project)})
            self.ask(self.ann, "POST", CALL + "model-versions/create", {"name": name, "source": f"s3://bucket/{name}"})

    def rank(self, api: Api, told: Path) -> Api:
        """One that lives as long as the scene."""
        api.submit(["sh", "-c", f"echo $MLFLOW_TRACKING_TOKEN >{told}.part; mv {told}.part {told}; exec sleep 1000"])
        eventually(told.exists, "the rank to tell its token")
        return Api(self.cluster.url, told.read_text().strip())

    def ask(self, api: Api, method: str, path: str, document: Any = None) -> tuple[int, Any]:
        body = document if isinstance(document, bytes) else None if document is None else json.dumps(document).encode()
        headers = {"Content-Type": "application/json"} if not isinstance(document, bytes) else {}
        status, _, reply = api.raw(method, path, body, headers)
        return status, json.loads(reply) if reply[:1] == b"{" else reply

    def experiment(self, project: str) -> str:
        _, answer = self.ask(self.ann, "POST", CALL + "experiments/create", {"name": "mnist-" + project, "tags": tag(project)})
        return str(answer["experiment_id"])

    def make_run(self, experiment: str) -> dict[str, str]:
        _, answer = self.ask(self.ann, "POST", CALL + "runs/create", {"experiment_id": experiment})
        info: dict[str, str] = answer["run"]["info"]
        path = info["artifact_uri"].removeprefix("mlflow-artifacts:/")
        assert self.ask(self.ann, "PUT", f"{FILES}/{path}/model.pkl", b"hers")[0] == 200
        return {"id": info["run_id"], "path": path}


def tag(project: str) -> list[dict[str, str]]:
    return [{"key": "gpuctl.project", "value": project}]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("owners")
    cluster = Cluster(folder, [4]).start()
    try:
        yield Scene(cluster, folder)
    finally:
        cluster.stop()


#: A rank whose first call makes the run of its attempt.
ASKS = """
import os
import urllib.request
call = os.environ["MLFLOW_TRACKING_URI"] + "/api/2.0/mlflow/runs/get?run_id=" + os.environ["MLFLOW_RUN_ID"]
urllib.request.urlopen(urllib.request.Request(call, headers={"Authorization": "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"]}))
"""


@dataclass(frozen=True)
class Deed:
    """Something that somebody tries with a run (RUN, and PATH of its files), an experiment or a registered model."""

    name: str
    method: str
    path: str
    document: Any = None
    run: str = ""


DEEDS = [
    Deed("read a run of the project", "GET", CALL + "runs/get?run_id=RUN", None, "shared"),
    Deed("log into it", "POST", CALL + "runs/log-metric", {"run_id": "RUN", "key": "m", "value": 1, "timestamp": 1}, "shared"),
    Deed("fetch its model", "GET", FILES + "/PATH/model.pkl", None, "shared"),
    Deed("overwrite its model", "PUT", FILES + "/PATH/model.pkl", b"hers", "shared"),
    Deed("make a run beside it", "POST", CALL + "runs/create", {"experiment_id": "SHARED"}),
    Deed("tag its experiment", "POST", CALL + "experiments/set-experiment-tag", {"experiment_id": "SHARED", "key": "k", "value": "v"}),
    Deed("read her own run", "GET", CALL + "runs/get?run_id=RUN", None, "private"),
    Deed("delete it", "POST", CALL + "runs/delete", {"run_id": "RUN"}, "private"),
    Deed("restore it", "POST", CALL + "runs/restore", {"run_id": "RUN"}, "private"),
    Deed("list its files", "GET", FILES + "?path=PATH", None, "private"),
    Deed("delete a file that is gone", "DELETE", FILES + "/PATH/none", None, "private"),
    Deed("read her run in Default", "GET", CALL + "runs/get?run_id=RUN", None, "default"),
    Deed("its metrics", "GET", CALL + "metrics/get-history?run_id=RUN&metric_key=m", None, "default"),
    Deed("its files", "GET", CALL + "artifacts/list?run_id=RUN", None, "default"),
    Deed("see a model of the project", "GET", CALL + "registered-models/get?name=net"),
    Deed("add a version", "POST", CALL + "model-versions/create", {"name": "net", "source": "s3://bucket/other"}),
    Deed("say which is best", "POST", CALL + "registered-models/alias", {"name": "net", "alias": "best", "version": "1"}),
    Deed("see her own model", "GET", CALL + "registered-models/get?name=own"),
    Deed("list all files", "GET", FILES),
]
#: A column for each deed: + it is done, - refused, ? as if there were no such thing.
EXPECTED = {
    "ann, user of vision":      "+ + + +  + +  + + + + +  + + +  + + +  +  ?",
    "a rank of ann's":          "+ + + +  + +  + + + + +  + + +  + + +  +  ?",
    "bob, user of vision":      "+ - + -  + -  ? ? ? ? ?  ? ? ?  + + -  ?  ?",
    "vera, viewer of vision":   "+ - + -  - -  ? ? ? ? ?  ? ? ?  + - -  ?  ?",
    "olga, operator of vision": "+ + + +  + +  ? ? ? ? ?  ? ? ?  + + +  ?  ?",
    "eve":                      "? ? ? ?  ? ?  ? ? ? ? ?  ? ? ?  ? ? ?  ?  ?",
    "a rank of eve's":          "? ? ? ?  ? ?  ? ? ? ? ?  ? ? ?  ? ? ?  ?  ?",
    "ann's token to look":      "+ - + -  - -  + - - + -  + + +  + - -  +  ?",
    "oscar, an operator":       "+ + + +  + +  + + + + +  + + +  + + +  +  +",
}  # fmt: skip


def test_what_people_reach_of_anns_is_what_a_person_wrote_down(scene: Scene) -> None:
    wrong, cells = [], 0
    for principal, row in EXPECTED.items():
        for deed, wanted in zip(DEEDS, row.split(), strict=True):
            run = scene.run.get(deed.run, {"id": "", "path": ""})
            path = deed.path.replace("RUN", run["id"]).replace("PATH", run["path"])
            document = deed.document
            if isinstance(document, dict):
                document = json.loads(json.dumps(document).replace("RUN", run["id"]).replace("SHARED", scene.shared))
            status, answer = scene.ask(scene.apis[principal], deed.method, path, document)
            told = {200: "+", 403: "-", 404: "?"}.get(status, str(status))
            cells += 1
            if told != wanted:
                wrong.append(f"{principal}: {deed.name}: {status} {answer}, and not {wanted}")
    assert not wrong, f"{len(wrong)} of {cells}:\n" + "\n".join(wrong)
    assert cells == 9 * 19


def searched(scene: Scene, principal: str, call: str, member: str, **body: Any) -> list[Any]:
    status, answer = scene.ask(scene.apis[principal], "POST", CALL + call, body)
    assert status == 200, answer
    found: list[Any] = answer.get(member, [])
    return found


def test_a_search_finds_what_one_may_see(scene: Scene) -> None:
    all_three = {"experiment_ids": [scene.shared, scene.private, "0"]}
    for principal, names in (("bob, user of vision", {"mnist-vision"}), ("eve", set()), ("a rank of eve's", set())):
        experiments = {each["name"] for each in searched(scene, principal, "experiments/search", "experiments", max_results=100)}
        assert experiments & {"mnist-vision", "mnist-default"} == names
        runs = {each["info"]["run_id"] for each in searched(scene, principal, "runs/search", "runs", **all_three)}
        assert runs & {run["id"] for run in scene.run.values()} == ({scene.run["shared"]["id"]} if names else set())
    runs = {each["info"]["run_id"] for each in searched(scene, "oscar, an operator", "runs/search", "runs", **all_three)}
    assert runs >= {run["id"] for run in scene.run.values()}


def test_two_people_have_experiments_and_models_of_one_name(scene: Scene) -> None:
    name = uuid.uuid4().hex
    ids = []
    for principal in ("ann, user of vision", "eve", "oscar, an operator"):
        api = scene.apis[principal]
        assert scene.ask(api, "GET", CALL + f"experiments/get-by-name?experiment_name={name}")[0] == 404
        status, made = scene.ask(api, "POST", CALL + "experiments/create", {"name": name})
        assert status == 200, made
        _, found = scene.ask(api, "GET", CALL + f"experiments/get-by-name?experiment_name={name}")
        assert found["experiment"]["experiment_id"] == made["experiment_id"]
        ids.append(made["experiment_id"])
    assert len(set(ids)) == 3
    for principal in ("ann, user of vision", "eve"):
        assert scene.ask(scene.apis[principal], "POST", CALL + "registered-models/create", {"name": name})[0] == 200


def test_a_job_tracks_for_its_owner_and_into_its_project(scene: Scene) -> None:
    name = uuid.uuid4().hex
    for owner, project in (("ann", "vision"), ("bob", "vision"), ("eve", "default")):
        api = next(scene.apis[key] for key, (its, role, _) in PRINCIPALS.items() if its == owner and role == "user")
        job = api.wait(api.submit([sys.executable, "-c", ASKS], name=name, project=project))
        assert job["state"] == "SUCCEEDED", api.log(job["id"], stream="stderr")
    found = {}
    for principal in ("ann, user of vision", "bob, user of vision", "eve"):
        api = scene.apis[principal]
        status, answer = scene.ask(api, "GET", CALL + f"experiments/get-by-name?experiment_name={name}")
        assert status == 200, answer
        found[principal] = answer["experiment"]["experiment_id"]
    assert found["ann, user of vision"] == found["bob, user of vision"] != found["eve"]


def test_a_member_who_leaves_sees_nothing_of_the_project_from_then_on(scene: Scene) -> None:
    api = scene.cluster.api
    limits = api.get("/v1/accounts/projects/vision")["limits"]
    api.call("PUT", "/v1/accounts/projects/vision", {**limits, "members": {**limits["members"], "kim": "user"}})
    kim = scene.cluster.user("kim")
    path = CALL + f"runs/get?run_id={scene.run['shared']['id']}"
    assert scene.ask(kim, "GET", path)[0] == 200
    api.call("PUT", "/v1/accounts/projects/vision", limits)
    assert scene.ask(kim, "GET", path)[0] == 404
