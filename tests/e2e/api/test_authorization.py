# SPDX-License-Identifier: Apache-2.0
"""Who may do what: every route with every principal, and for jobs with each relation to them, against the contract; and cells of that table
that matter, as a person would write them down. The contract's `security` is held against the routes by tests/unit/http/test_router.c.
"""

from __future__ import annotations

import http.client
import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import contract as contracts
from contract import Contract, Operation
from harness import ROOT, Api, Cluster, Problem, eventually

CONTRACT = Contract(contracts.load())
PEOPLE = ["viewer", "user", "operator", "admin"]
HELD = {"command": ["true"], "gpus": 1, "gpu_type": "cpu", "hold": True}

#: name: the owner of the token, its role, and what the owner is in the project vision.
PRINCIPALS = {
    "nobody": ("", "", ""),
    "guesser": ("", "", ""),
    "node": ("nodes", "node", ""),
    "monitor": ("probe", "monitor", ""),
    "ranks": ("", "ranks", ""),
    "vic, a viewer": ("vic", "viewer", ""),
    "uma's token to look": ("uma", "viewer", "user"),
    "vera, viewer of vision": ("vera", "user", "viewer"),
    "uma, user of vision": ("uma", "user", "user"),
    "mia, user of vision": ("mia", "user", "user"),
    "olga, operator of vision": ("olga", "user", "operator"),
    "eve, a user": ("eve", "user", ""),
    "ci, a service of vision": ("service:ci", "user", "user"),
    "oscar, an operator": ("oscar", "operator", ""),
    "admin": ("admin", "admin", ""),
}
#: name: the owner and the project of a job.
JOBS = {"uma's in vision": ("uma", "vision"), "uma's": ("uma", "public"), "eve's": ("eve", "public")}


class Scene:
    """A cluster with all principals, and jobs of others for them."""

    def __init__(self, cluster: Cluster, folder: Path):
        self.cluster = cluster
        members = {owner: role for owner, _, role in PRINCIPALS.values() if role and ":" not in owner}
        cluster.api.call("PUT", "/v1/accounts/projects/vision", {"members": members, "max_priority": 5})
        cluster.api.call("PUT", "/v1/accounts/projects/public", {})
        self.tokens: dict[str, str | None] = {"nobody": None, "guesser": "gct_abcdefgh_" + "A" * 43, "ranks": self.rank_token(folder)}
        for name, (owner, role, _) in PRINCIPALS.items():
            if name not in self.tokens:
                service = {"service": owner.removeprefix("service:"), "project": "vision"} if ":" in owner else {"owner": owner}
                self.tokens[name] = cluster.api.post("/v1/tokens", {"role": role, **service})["secret"]
        self.link = cluster.api.connection(60)

    def rank_token(self, folder: Path) -> str:
        """Of a rank that lives as long as the scene."""
        told = folder / "token"
        self.cluster.api.submit(["sh", "-c", f"echo $MLFLOW_TRACKING_TOKEN >{told}.part; mv {told}.part {told}; exec sleep 1000"])
        eventually(told.exists, "the rank to tell its token")
        return told.read_text().strip()

    def api(self, principal: str) -> Api:
        return Api(self.cluster.url, self.tokens[principal])

    def ask(self, principal: str, method: str, path: str, document: Any = None) -> tuple[int, Any]:
        token = self.tokens[principal]
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if document is not None:
            headers["Content-Type"] = "application/json"
        try:
            self.link.request(method.upper(), path, None if document is None else json.dumps(document), headers)
            reply = self.link.getresponse()
        except (http.client.HTTPException, ConnectionError):  # it is kept only as long as the server likes
            self.link.close()
            self.link.request(method.upper(), path, None if document is None else json.dumps(document), headers)
            reply = self.link.getresponse()
        body = reply.read()
        return reply.status, json.loads(body) if body and reply.getheader("Content-Type", "").endswith("json") else None

    def job(self, which: str, **more: Any) -> str:
        """A new one that waits."""
        owner, project = JOBS[which]
        name = next(name for name, (its, role, _) in PRINCIPALS.items() if its == owner and role == "user")
        status, job = self.ask(name, "post", "/v1/jobs", {**HELD, "project": project, **more})
        assert status == 201, job
        return str(job["id"])


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("authorization")
    cluster = Cluster(folder, [2]).start()
    try:
        yield Scene(cluster, folder)
    finally:
        cluster.stop()


# --- all of it, by the contract -------------------------------------------------------------------------------


def roles_of(operation: Operation) -> set[str]:
    """Of tokens that its route takes; empty: none is needed."""
    security = operation.document.get("security", CONTRACT.document["security"])
    listed = {role for each in security for role in each["token"]}
    if not security:
        return set()
    if not listed:
        return {*PEOPLE, "node", "monitor"}
    people = [PEOPLE.index(role) for role in listed if role in PEOPLE]
    found = {role for role in listed if role not in PEOPLE} | set(PEOPLE[min(people, default=len(PEOPLE)) :])
    return found | {"ranks"} if "tracking" in operation.document["tags"] and operation.path.startswith("/api/2.0/") else found


def expected(operation: Operation, principal: str, job: str | None) -> str:
    """What the answer has to be: `token` (401), `role` (403), `hidden` (404), or `done`, which is anything else."""
    owner, role, in_vision = PRINCIPALS[principal]
    roles = roles_of(operation)
    if not roles:
        signs_in = (operation.method, operation.path) == ("post", "/v1/session")
        return "token" if signs_in else "done"  # its token is in the body, which has none here
    if role == "":
        return "token"
    if role not in roles:
        return "role"
    reaches_in = operation.path == "/v1/jobs/{id}/streams"  # for the owner and administrators alone
    own = operation.path == "/v1/jobs/{id}/function"  # for the owner alone
    whose, project = JOBS[job] if job is not None else ("", "")
    if own and owner != whose and role in ("admin", "operator"):
        return "role"
    if job is None or role == "admin" or (role == "operator" and not reaches_in):
        return "done"
    if role == "operator":
        return "role"
    member = in_vision if project == "vision" else ""
    if own and owner != whose and member:
        return "role"
    if owner != whose and not member:
        return "hidden"
    if operation.path.endswith("/clone") and member == "viewer":
        return "role"  # the clone would be of the project, too
    changes = operation.method not in ("get", "head") and not operation.path.endswith(("/retry", "/clone"))
    return "done" if not changes or owner == whose or (member == "operator" and not reaches_in) else "role"


def seen(status: int, about_a_job: bool) -> str:
    return {401: "token", 403: "role", 404: "hidden" if about_a_job else "done"}.get(status, "done")


def document_of(operation: Operation) -> Any:
    """One that changes nothing where it is taken, if there is one."""
    body = CONTRACT.follow(operation.document.get("requestBody"))
    if not body:
        return None
    return {"priority": 0} if operation.method == "patch" and operation.path == "/v1/jobs/{id}" else {}


def path_of(operation: Operation, job: str | None) -> str:
    path = operation.path
    for parameter in operation.parameters:
        if parameter["in"] == "path":
            value = job if job is not None and parameter["name"] == "id" else CONTRACT.example(parameter["schema"])
            path = path.replace("{" + parameter["name"] + "}", str(value))
    wanted = {p["name"]: CONTRACT.example(p["schema"]) for p in operation.parameters if p["in"] == "query" and p.get("required")}
    return path + ("?" + "&".join(f"{name}={value}" for name, value in wanted.items()) if wanted else "")


def test_every_route_answers_every_principal_as_the_contract_says(scene: Scene) -> None:
    wrong, cells = [], 0
    for operation in CONTRACT.operations:
        about_a_job = operation.path.startswith("/v1/jobs/{id}")
        changes = operation.method not in ("get", "head")
        for which in JOBS if about_a_job else [None]:
            kept = scene.job(which) if which is not None and not changes else None
            for principal in PRINCIPALS:
                job = kept if kept is not None or which is None else scene.job(which)
                status, answer = scene.ask(principal, operation.method, path_of(operation, job), document_of(operation))
                cells += 1
                if seen(status, about_a_job) != expected(operation, principal, which):
                    wrong.append(f"{operation}, {which}: {principal}: {status} {answer}, and not {expected(operation, principal, which)}")
    assert not wrong, f"{len(wrong)} of {cells}:\n" + "\n".join(wrong)
    assert cells > 1500


#: Calls of MLflow's API: method, path and effect.
CALLS = re.findall(r'X\((\w+), "([^"]+)", \w+, (\w+)\)', (ROOT / "daemon" / "mlflow" / "call" / "endpoints.h").read_text())


def test_every_call_of_mlflow_answers_every_principal_by_its_effect(scene: Scene) -> None:
    wrong, cells = [], 0
    for method, path, effect in CALLS:
        looks = method == "GET" or effect in ("READS", "SEARCHES")
        for principal, (_, role, _) in PRINCIPALS.items():
            document: dict[str, Any] | None = None if method == "GET" else {}
            status, answer = scene.ask(principal, method, f"/api/2.0/mlflow/{re.sub('{.*?}', 'none', path)}", document)
            may = role in ("user", "operator", "admin", "ranks") or (role == "viewer" and looks)
            cells += 1
            if seen(status, False) != ("done" if may else "role" if role else "token"):
                wrong.append(f"{method} {path}: {principal}: {status} {answer}")
    assert not wrong, f"{len(wrong)} of {cells}:\n" + "\n".join(wrong)
    assert cells > 700


# --- what matters, by hand ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Deed:
    """Something that somebody tries."""

    name: str
    method: str
    path: str
    document: Any = None
    job: str | None = None


DEEDS = [
    Deed("see a job of vision", "GET", "/v1/jobs/JOB", None, "uma's in vision"),
    Deed("read its output", "GET", "/v1/jobs/JOB/events", None, "uma's in vision"),
    Deed("cancel it", "POST", "/v1/jobs/JOB/cancel", {}, "uma's in vision"),
    Deed("see a job of eve", "GET", "/v1/jobs/JOB", None, "eve's"),
    Deed("release it", "POST", "/v1/jobs/JOB/release", {}, "eve's"),
    Deed("submit to vision", "POST", "/v1/jobs", {**HELD, "project": "vision"}),
    Deed("submit to a project that is not set up", "POST", "/v1/jobs", {**HELD, "project": "mine"}),
    Deed("be before others in vision", "POST", "/v1/jobs", {**HELD, "project": "vision", "priority": 6}),
    Deed("drain a node", "POST", "/v1/nodes/none/drain", {}),
    Deed("make a token", "POST", "/v1/tokens", {"role": "admin"}),
    Deed("read metrics", "GET", "/metrics"),
    Deed("take orders", "POST", "/v1/agent/poll", {}),
    Deed("read who did what", "GET", "/v1/audit"),
    Deed("submit to a project of everybody", "POST", "/v1/jobs", {**HELD, "project": "public"}),
]
#: A column for each deed: + it is done, - refused, ? as if there were no such thing, ! not known who asks.
EXPECTED = {
    "nobody":                   "! ! ! ! ! ! ! ! ! ! ! ! ! !",
    "guesser":                  "! ! ! ! ! ! ! ! ! ! ! ! ! !",
    "node":                     "- - - - - - - - - - - + - -",
    "monitor":                  "- - - - - - - - - - + - - -",
    "ranks":                    "- - - - - - - - - - - - - -",
    "vic, a viewer":            "? ? - ? - - - - - - + - - -",
    "uma's token to look":      "+ + - ? - - - - - - + - - -",
    "vera, viewer of vision":   "+ + - ? ? - - - - - + - - +",
    "uma, user of vision":      "+ + + ? ? + - - - - + - - +",
    "mia, user of vision":      "+ + - ? ? + - - - - + - - +",
    "olga, operator of vision": "+ + + ? ? + - + - - + - - +",
    "eve, a user":              "? ? ? + + - - - - - + - - +",
    "ci, a service of vision":  "+ + - ? ? + - - - - + - - -",
    "oscar, an operator":       "+ + + + + + + + + - + - - +",
    "admin":                    "+ + + + + + + + + + + - + +",
}  # fmt: skip


def test_the_cells_that_matter_are_what_a_person_wrote_down(scene: Scene) -> None:
    assert set(EXPECTED) == set(PRINCIPALS)
    wrong, cells = [], 0
    for principal, row in EXPECTED.items():
        for deed, wanted in zip(DEEDS, row.split(), strict=True):
            job = scene.job(deed.job) if deed.job else ""
            status, answer = scene.ask(principal, deed.method, deed.path.replace("JOB", job), deed.document)
            told = {401: "!", 403: "-", 404: "?"}.get(status, "+")
            told = "+" if told == "?" and not deed.job else told  # there is no such node, and the question was allowed
            cells += 1
            if told != wanted:
                wrong.append(f"{principal}: {deed.name}: {status} {answer}")
    assert not wrong, "\n".join(wrong)
    assert cells > 100


# --- lists ----------------------------------------------------------------------------------------------------


def jobs_seen(api: Api, query: str) -> set[str]:
    return {job["id"] for job in api.get(f"/v1/jobs?limit=200&state=HELD{query}")["jobs"]}


def test_a_list_of_a_project_has_all_its_jobs_for_members_and_ones_own_for_others(scene: Scene) -> None:
    name = uuid.uuid4().hex[:8]
    uma, eve, mia = scene.api("uma, user of vision"), scene.api("eve, a user"), scene.api("mia, user of vision")
    inside, outside = (scene.job(which, name=name) for which in ("uma's in vision", "uma's"))
    assert jobs_seen(mia, f"&name={name}&project=vision") == {inside}
    assert jobs_seen(mia, f"&name={name}&project=vision&owner=uma") == {inside}
    assert jobs_seen(mia, f"&name={name}") == jobs_seen(mia, f"&name={name}&owner=uma") == set()
    assert jobs_seen(eve, f"&name={name}&project=vision") == jobs_seen(eve, f"&name={name}&project=public") == set()
    assert jobs_seen(uma, f"&name={name}") == jobs_seen(scene.api("oscar, an operator"), f"&name={name}") == {inside, outside}


def test_who_is_taken_out_of_a_project_sees_and_submits_nothing_there_from_then_on(scene: Scene) -> None:
    job, api = scene.job("uma's in vision"), scene.cluster.api
    limits = api.get("/v1/accounts/projects/vision")["limits"]
    api.call("PUT", "/v1/accounts/projects/vision", {**limits, "members": {**limits["members"], "kim": "operator"}})
    kim = scene.cluster.user("kim")
    assert kim.job(job)["owner"] == "uma"
    kim.post("/v1/jobs", {**HELD, "project": "vision"})
    api.call("PUT", "/v1/accounts/projects/vision", limits)
    for ask in (lambda: kim.job(job), lambda: kim.post("/v1/jobs", {**HELD, "project": "vision"})):
        with pytest.raises(Problem) as refused:
            ask()
        assert refused.value.status in (403, 404)


def test_a_priority_is_raised_to_the_bound_of_the_project_and_no_further(scene: Scene) -> None:
    job, uma = scene.job("uma's in vision"), scene.api("uma, user of vision")
    assert uma.call("PATCH", f"/v1/jobs/{job}", {"priority": 5})["priority"] == 5
    with pytest.raises(Problem, match="at most priority 5") as refused:
        uma.call("PATCH", f"/v1/jobs/{job}", {"priority": 6})
    assert (refused.value.status, refused.value.field) == (403, "priority")
    assert "quotas set project vision --max-priority 6" in refused.value.body["hint"]
    assert scene.api("oscar, an operator").call("PATCH", f"/v1/jobs/{job}", {"priority": 9})["priority"] == 9
    assert uma.call("PATCH", f"/v1/jobs/{job}", {"priority": 8})["priority"] == 8  # lower than it is


# --- reasons --------------------------------------------------------------------------------------------------


def test_a_reason_names_the_job_of_another_to_operators_alone(scene: Scene) -> None:
    eve, uma = scene.api("eve, a user"), scene.api("uma, user of vision")
    runs = eve.submit(["sleep", "1000"], gpus=1, time_limit_s=1000, project="public")
    scene.cluster.wait_state(runs, "RUNNING")
    waits = uma.submit(["true"], gpus=1, project="public")
    try:
        told = uma.get(f"/v1/jobs/{waits}/explanation")["reason"]["text"]
        assert runs not in told and "another user's job" in told
        assert runs not in uma.get(f"/v1/jobs/{waits}")["reason"]
        assert f"job {runs}" in scene.api("oscar, an operator").get(f"/v1/jobs/{waits}/explanation")["reason"]["text"]
        assert {victim["id"] for victim in uma.get(f"/v1/jobs/{waits}/preemption")["victims"]} <= {None}
    finally:
        for api, job in ((uma, waits), (eve, runs)):
            api.post(f"/v1/jobs/{job}/cancel")
            api.wait(job)
