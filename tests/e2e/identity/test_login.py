# SPDX-License-Identifier: Apache-2.0
"""Logging in at a real identity provider: the device flow of gpuctl, groups as roles and members of projects, and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import GPUCTL, PATIENCE, ROOT, Api, Cluster, Problem, eventually
from provider import Person, Provider

ROLES = ["--oidc-role", "ml=user", "--oidc-role", "guests=viewer", "--oidc-role", "ops=operator"]
WHO = """
from serverless_gpu._internal.api import controller
from serverless_gpu._internal.messages import Messages
print(controller.connect(Messages()).get("/v1/session")["owner"])
"""
HELD = {"command": ["true"], "gpus": 1, "hold": True}


def person(name: str, *groups: str, **more: Any) -> dict[str, Any]:
    return {"preferred_username": name, "groups": list(groups), **more}


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    made = Provider(tmp_path).start()
    yield made
    made.stop()


def options(provider: Provider, *more: str, client: str = "gpuctl") -> list[str]:
    return ["--oidc-issuer", provider.issuer, "--oidc-client-id", client, "--oidc-scopes", "openid profile email groups", *ROLES, *more]


def trade(cluster: Cluster, id_token: str) -> Api:
    made = Api(cluster.url, None).post("/v1/login", {"id_token": id_token})
    return Api(cluster.url, made["secret"])


def token_id(api: Api) -> str:
    """The part of its token that is no secret."""
    assert api.token is not None
    return api.token.split("_")[1]


def refusal(cluster: Cluster, id_token: str) -> Problem:
    with pytest.raises(Problem) as refused:
        trade(cluster, id_token)
    return refused.value


class Terminal:
    """A home of its own, with gpuctl in it."""

    def __init__(self, home: Path):
        self.folder = home / "config" / "gpuctl"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GPUCTL_")},
            "XDG_CONFIG_HOME": str(home / "config"), "XDG_STATE_HOME": str(home / "state"), "HOME": str(home), "NO_COLOR": "1",
        }  # fmt: skip

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([GPUCTL, *arguments], env=self.environment, capture_output=True, text=True, timeout=PATIENCE)

    def begin_python(self) -> subprocess.Popen[str]:
        environment = {**self.environment, "PYTHONPATH": str(ROOT / "client" / "python" / "src")}
        return subprocess.Popen([sys.executable, "-c", WHO], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def python(self) -> subprocess.CompletedProcess[str]:
        program = self.begin_python()
        out, said = program.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(program.args, program.returncode, out, said)

    def login(self, url: str, answer: Callable[[str], None]) -> tuple[int, str]:
        """Run `gpuctl login`; `answer` is what the person does with the address that it shows."""
        program = subprocess.Popen([GPUCTL, "login", url], env=self.environment, stderr=subprocess.PIPE, text=True)
        assert program.stderr is not None
        said = ""
        for line in program.stderr:
            said += line
            if "or open http" in line:
                answer(line.split()[3].rstrip(","))
        return program.wait(PATIENCE), said

    @property
    def token(self) -> str:
        return (self.folder / "token").read_text().strip()


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    home = tmp_path / "home"
    home.mkdir()
    return Terminal(home)


# --- the flow -------------------------------------------------------------------------------------------------


def test_a_person_logs_in_works_and_logs_out(provider: Provider, terminal: Terminal, make_cluster: Callable[..., Cluster]) -> None:
    provider.people({"a1": person("ann", "ml", "elsewhere")})
    cluster = make_cluster(1, controller=options(provider))
    code, said = terminal.login(cluster.url, Person("a1").agree)
    assert code == 0, said
    assert f"open {provider.issuer}/device in a browser" in said and f"logged in at {cluster.url}" in said
    for name in ("token", "login.json", "config"):
        assert (terminal.folder / name).stat().st_mode & 0o777 == 0o600
    ran = terminal.run("submit", "--hold", "--", "true")
    assert ran.returncode == 0, ran.stderr
    assert cluster.api.job(ran.stdout.strip())["owner"] == "ann"
    token = next(token for token in cluster.api.get("/v1/tokens")["tokens"] if token["owner"] == "ann")
    assert (token["role"], token["subject"]) == ("user", f"{provider.issuer} a1") and token["groups"].split() == ["ml", "elsewhere"]
    row = next(row for row in cluster.api.get("/v1/audit?owner=ann")["audit"] if row["path"] == "/v1/login")
    assert (row["status"], row["subject"], json.loads(row["detail"])["subject"]) == (201, token["id"], token["subject"])
    old, ended = Api(cluster.url, terminal.token), terminal.run("logout")
    assert ended.returncode == 0, ended.stderr
    assert ["DELETE", "/v1/login"] in [[row["method"], row["path"]] for row in cluster.api.get("/v1/audit?owner=ann")["audit"]]
    assert not (terminal.folder / "token").exists() and not (terminal.folder / "login.json").exists()
    with pytest.raises(Problem) as refused:
        old.get("/v1/jobs")
    assert refused.value.status == 401


def test_a_login_that_is_refused_in_the_browser_says_so(
    provider: Provider, terminal: Terminal, make_cluster: Callable[..., Cluster]
) -> None:
    provider.people({"a1": person("ann", "ml")})
    code, said = terminal.login(make_cluster(1, controller=options(provider)).url, Person("a1").refuse)
    assert code == 4 and "the login was refused in the browser" in said
    assert not terminal.folder.joinpath("token").exists()


def test_a_code_that_nobody_enters_ends_the_login(tmp_path: Path, terminal: Terminal, make_cluster: Callable[..., Cluster]) -> None:
    provider = Provider(tmp_path, device_s=3).start()
    try:
        code, said = terminal.login(make_cluster(1, controller=options(provider)).url, lambda address: None)
    finally:
        provider.stop()
    assert code == 8 and "in time" in said and "gpuctl login" in said


def test_who_has_no_role_is_told_who_they_are_and_what_to_do(
    provider: Provider, terminal: Terminal, make_cluster: Callable[..., Cluster]
) -> None:
    provider.people({"a1": person("ann", "sales")})
    cluster = make_cluster(1, controller=options(provider))
    code, said = terminal.login(cluster.url, Person("a1").agree)
    assert code == 4 and "ann is in no group" in said and "--oidc-role" in said
    row = next(row for row in cluster.api.get("/v1/audit?owner=ann")["audit"] if row["path"] == "/v1/login")
    assert (row["status"], row["code"]) == (403, "forbidden")


def test_a_login_is_renewed_without_the_person(provider: Provider, terminal: Terminal, make_cluster: Callable[..., Cluster]) -> None:
    """Every command renews a login that lasts ten minutes; who has lost a role in between gets no new token. Within a second the provider
    gives the same ID token again, which serves once.
    """
    provider.people({"a1": person("ann", "ml")})
    cluster = make_cluster(1, controller=options(provider, "--login-life", "10m", client="renewing"))
    code, said = terminal.login(cluster.url, Person("a1").agree)
    assert code == 0, said
    tokens = {terminal.token}

    def renewed() -> bool:
        assert terminal.run("ps").returncode == 0
        tokens.add(terminal.token)
        return len(tokens) == 3

    eventually(renewed, "two new tokens")
    provider.people({"a1": person("ann", "sales")})
    assert terminal.run("ps").returncode == 0, "the token that there is serves until its end"
    assert terminal.token in tokens


def test_a_login_that_has_ended_asks_for_another(provider: Provider, terminal: Terminal, make_cluster: Callable[..., Cluster]) -> None:
    provider.people({"a1": person("ann", "ml")})
    cluster = make_cluster(1, controller=options(provider, "--login-life", "1s"))
    code, said = terminal.login(cluster.url, Person("a1").agree)
    assert code == 0, said
    over = eventually(lambda: "log in again" in (ran := terminal.run("ps")).stderr and ran, "the end of the token")
    assert over.returncode == 4 and f"gpuctl login {cluster.url}" in over.stderr
    with pytest.raises(Problem) as refused:
        Api(cluster.url, terminal.token).get("/v1/jobs")
    assert refused.value.status == 401


def test_the_python_package_renews_the_same_login(provider: Provider, terminal: Terminal, make_cluster: Callable[..., Cluster]) -> None:
    """It and gpuctl take turns, and stand in each other's way at once: the provider takes each refresh token once."""
    provider.people({"a1": person("ann", "ml")})
    cluster = make_cluster(1, controller=options(provider, "--login-life", "10m", client="renewing"))
    code, said = terminal.login(cluster.url, Person("a1").agree)
    assert code == 0, said
    tokens = {terminal.token}

    def renewed(how: Callable[[], subprocess.CompletedProcess[str]], count: int) -> bool:
        ran = how()
        assert ran.returncode == 0, ran.stderr
        tokens.add(terminal.token)
        return len(tokens) >= count

    eventually(lambda: renewed(terminal.python, 3), "two new tokens")
    assert terminal.python().stdout == "ann\n"
    eventually(lambda: renewed(lambda: terminal.run("ps"), len(tokens) + 1), "a new token by gpuctl")
    many = [terminal.begin_python() for _ in range(4)]
    eventually(lambda: renewed(lambda: terminal.run("ps"), len(tokens) + 1), "a new token beside the others")
    assert [one.communicate(timeout=PATIENCE)[0] for one in many] == ["ann\n"] * 4
    eventually(lambda: renewed(terminal.python, len(tokens) + 1), "a new token with what they have left")
    assert {name: (terminal.folder / name).stat().st_mode & 0o777 for name in ("token", "login.json", "login.lock")} == {
        "token": 0o600, "login.json": 0o600, "login.lock": 0o600,
    }  # fmt: skip
    assert sorted(path.name for path in terminal.folder.iterdir()) == ["config", "login.json", "login.lock", "token"]
    provider.people({"a1": person("ann", "sales")})
    assert terminal.python().stdout == "ann\n", "the token that there is serves until its end"


def test_the_python_package_asks_for_another_login(provider: Provider, terminal: Terminal, make_cluster: Callable[..., Cluster]) -> None:
    provider.people({"a1": person("ann", "ml")})
    cluster = make_cluster(1, controller=options(provider, "--login-life", "1s"))
    code, said = terminal.login(cluster.url, Person("a1").agree)
    assert code == 0, said
    over = eventually(lambda: "SettingsError" in (ran := terminal.python()).stderr and ran, "the end of the token")
    assert f"the login at {cluster.url} has ended at" in over.stderr and f"log in again with `gpuctl login {cluster.url}`" in over.stderr
    provider.stop()
    assert "log in again" in terminal.python().stderr


def test_without_a_provider_a_token_is_asked_for(terminal: Terminal, make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    assert Api(cluster.url, None).get("/v1/login") == {"issuer": None, "client_id": None, "scopes": None}
    code, said = terminal.login(cluster.url, lambda address: None)
    assert code == 2 and "--token-file" in said
    assert refusal(cluster, "x").status == 404
    ran = terminal.run("login", cluster.url, "--token-file", str(cluster.folder / "controller" / "admin.token"))
    assert ran.returncode == 0, ran.stderr
    ran = terminal.run("logout")
    assert ran.returncode == 5 and "gpuctl token revoke" in ran.stderr, "the first token of a controller stays"


# --- roles, groups and projects -------------------------------------------------------------------------------


def test_groups_are_roles_and_members_of_projects(provider: Provider, make_cluster: Callable[..., Cluster]) -> None:
    provider.people(
        {"a1": person("ann", "ml"), "g1": person("gus", "guests"), "o1": person("olga", "ml", "ops"), "b1": person("bob", "ml")}
    )
    cluster = make_cluster(1, controller=options(provider))
    members = {"group:guests": "viewer", "group:vision = 2": "user", "bob": "viewer"}
    cluster.api.call("PUT", "/v1/accounts/projects/vision", {"members": members})
    ann, gus, olga, bob = (trade(cluster, provider.id_token(who)) for who in ("a1", "g1", "o1", "b1"))
    assert [api.get("/v1/session")["role"] for api in (ann, gus, olga, bob)] == ["user", "viewer", "operator", "user"]
    inside = olga.post("/v1/jobs", {**HELD, "project": "vision"})["id"]
    assert gus.job(inside)["owner"] == "olga" and bob.job(inside)["owner"] == "olga"
    for ask in (lambda: ann.job(inside), lambda: ann.post("/v1/jobs", {**HELD, "project": "vision"})):
        with pytest.raises(Problem) as refused:
            ask()
        assert refused.value.status in (403, 404)
    provider.people({"a1": person("ann", "ml", "vision = 2")})
    ann = trade(cluster, provider.id_token("a1"))
    ann.post("/v1/jobs", {**HELD, "project": "vision"})
    assert ann.job(inside)["owner"] == "olga"
    provider.people({"a1": person("ann", "ml")})
    with pytest.raises(Problem):
        trade(cluster, provider.id_token("a1")).job(inside)


def test_ranks_of_a_member_by_group_reach_the_runs_of_the_project(provider: Provider, make_cluster: Callable[..., Cluster]) -> None:
    provider.people({"a1": person("ann", "ml"), "b1": person("bob", "ml")})
    cluster = make_cluster(1, controller=options(provider))
    cluster.api.call("PUT", "/v1/accounts/projects/vision", {"members": {"group:ml": "user"}})
    ann, bob = (trade(cluster, provider.id_token(who)) for who in ("a1", "b1"))
    script = (
        'curl -sf -H "Authorization: Bearer $MLFLOW_TRACKING_TOKEN" -H "Content-Type: application/json" '
        '"$MLFLOW_TRACKING_URI/api/2.0/mlflow/experiments/'
    )
    made = ann.submit(["sh", "-c", script + 'create" -d \'{"name": "shared"}\''], project="vision")
    assert ann.wait(made)["state"] == "SUCCEEDED", ann.log(made, stream="stderr")
    experiment = json.loads(ann.log(made))["experiment_id"]
    for project, state in (("vision", "SUCCEEDED"), ("default", "FAILED")):
        looked = bob.submit(["sh", "-c", script + f'get?experiment_id={experiment}"'], project=project)
        assert bob.wait(looked)["state"] == state, project


# --- what is refused ------------------------------------------------------------------------------------------


def test_an_id_token_serves_once_and_for_its_client_alone(provider: Provider, make_cluster: Callable[..., Cluster]) -> None:
    provider.people({"a1": person("ann", "ml")})
    cluster = make_cluster(1, controller=options(provider))
    token = provider.id_token("a1")
    header, payload, signature = token.split(".")
    none = "eyJhbGciOiJub25lIn0"  # {"alg":"none"}
    wrong = {
        f"{header}.{payload}.": "signature", f"{header}.{payload}": "whole", f"{none}.{payload}.": "signed with",
        f"{none}.{payload}.{signature}": "signed with", f"{header}.{payload[:-4]}AAAA.{signature}": "signature",
        token + "A": "signature", token + "=": "whole", "": "whole", "." * 5: "whole", "A" * 40000: "whole",
        provider.id_token("a1", "other"): "another client",
    }  # fmt: skip
    for forged, why in wrong.items():
        problem = refusal(cluster, forged)
        assert (problem.status, problem.field) == (401, "id_token") and why in problem.body["detail"], (forged[:80], problem)
    ann = trade(cluster, token)
    assert ann.get("/v1/session")["owner"] == "ann"
    assert "used already" in refusal(cluster, token).body["detail"]
    cluster.api.post(f"/v1/tokens/{token_id(ann)}/revoke")
    with pytest.raises(Problem) as refused:
        ann.get("/v1/session")
    assert refused.value.status == 401


@pytest.mark.parametrize("client", ["ps", "es", "ed"])
def test_each_algorithm_of_signatures_is_understood(provider: Provider, client: str, make_cluster: Callable[..., Cluster]) -> None:
    provider.people({"a1": person("ann", "ml")})
    cluster = make_cluster(1, controller=options(provider, client=client))
    assert trade(cluster, provider.id_token("a1", client)).get("/v1/session")["owner"] == "ann"


def test_a_name_belongs_to_one_account_of_the_provider(provider: Provider, make_cluster: Callable[..., Cluster]) -> None:
    provider.people({"a1": person("ann", "ml"), "m1": person("ann", "ml"), "r1": person("admin", "ml"), "w1": person("a b", "ml")})
    cluster = make_cluster(1, controller=options(provider))
    ann = trade(cluster, provider.id_token("a1"))
    assert ann.raw("DELETE", f"/v1/login?token={token_id(ann)}")[0] == 200, "and that does not free the name"
    problem = refusal(cluster, provider.id_token("m1"))
    assert problem.status == 403 and "another account" in problem.body["detail"]
    assert "controller's own" in refusal(cluster, provider.id_token("r1")).body["detail"]
    assert "characters" in refusal(cluster, provider.id_token("w1")).body["detail"]
    for token in cluster.api.get("/v1/tokens")["tokens"]:
        if token["owner"] == "ann":
            cluster.api.post(f"/v1/tokens/{token['id']}/revoke")
    assert trade(cluster, provider.id_token("m1")).get("/v1/session")["owner"] == "ann"


def test_the_domain_of_a_name_is_left_away_and_another_one_refused(provider: Provider, make_cluster: Callable[..., Cluster]) -> None:
    mail = {"email_verified": True}
    provider.people(
        {
            "a1": person("x", "ml", email="ann@example.org", **mail),
            "b1": person("x", "ml", email="bob@example.com", **mail),
            "c1": person("x", "ml", email="cam@example.org", email_verified=False),
        }
    )
    cluster = make_cluster(1, controller=options(provider, "--oidc-user-claim", "email", "--oidc-user-domain", "example.org"))
    assert trade(cluster, provider.id_token("a1")).get("/v1/session")["owner"] == "ann"
    assert "another domain" in refusal(cluster, provider.id_token("b1")).body["detail"]
    assert "not verified" in refusal(cluster, provider.id_token("c1")).body["detail"]


# --- a provider that goes and comes ---------------------------------------------------------------------------


def test_tokens_go_on_while_the_provider_is_away_and_new_keys_are_found(
    provider: Provider, terminal: Terminal, make_cluster: Callable[..., Cluster]
) -> None:
    provider.people({"a1": person("ann", "ml"), "b1": person("bob", "ml")})
    cluster = make_cluster(1, controller=options(provider))
    ann, old = trade(cluster, provider.id_token("a1")), provider.id_token("b1")
    provider.stop()
    code, said = terminal.login(cluster.url, lambda address: None)
    assert code == 7 and "does not answer" in said
    assert ann.get("/v1/session")["owner"] == "ann"
    provider.start()
    assert trade(cluster, provider.id_token("b1")).get("/v1/session")["owner"] == "bob", "with keys that the controller has not seen"
    assert refusal(cluster, old).status == 401, "a key that was withdrawn"


def test_a_controller_that_never_reached_the_provider_says_so(provider: Provider, make_cluster: Callable[..., Cluster]) -> None:
    provider.people({"a1": person("ann", "ml")})
    cluster = make_cluster(1, controller=options(provider))
    token = provider.id_token("a1")
    provider.stop()
    problem = refusal(cluster, token)
    assert problem.status == 503 and "identity provider" in problem.body["detail"] and "tokens that exist" in problem.body["hint"]
    provider.start()
    eventually(lambda: refusal(cluster, token).status == 401, "the provider to be asked again")
