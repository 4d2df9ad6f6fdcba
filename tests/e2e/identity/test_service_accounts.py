# SPDX-License-Identifier: Apache-2.0
"""Service accounts: tokens of programs, bound to a project. What else they may not do is in api/test_authorization.py."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Api, Cluster, Problem, run_gpuctl


@pytest.fixture
def gpuctl(cluster: Cluster) -> Callable[..., subprocess.CompletedProcess[str]]:
    token_file = str(cluster.folder / "controller" / "admin.token")
    return lambda *arguments: run_gpuctl(*arguments, "--url", cluster.url, "--token-file", token_file)


def test_a_service_account_works_in_its_project_and_leaves_its_name(
    cluster: Cluster, gpuctl: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    cluster.api.call("PUT", "/v1/accounts/projects/web", {"members": {"uma": "user"}})
    cluster.open_project("other")
    out = tmp_path / "ci.token"
    made = gpuctl("token", "create", "--service", "ci", "--project", "web", "--role", "user", "--expires", "1h", "--out", str(out))
    assert made.returncode == 0, made.stderr
    ci = Api(cluster.url, out.read_text().strip())
    job = ci.submit(["true"], project="web")
    assert (ci.wait(job)["state"], ci.job(job)["owner"]) == ("SUCCEEDED", "service:ci")
    hers = cluster.user("uma").submit(["true"], project="web")
    others = cluster.api.submit(["true"], project="other")
    assert ci.job(hers)["owner"] == "uma"
    for project in ("other", "default"):
        with pytest.raises(Problem, match="service account: web") as refused:
            ci.submit(["true"], project=project)
        assert (refused.value.status, refused.value.field) == (403, "project")
    with pytest.raises(Problem) as hidden:
        ci.job(others)
    assert hidden.value.status == 404
    assert [seen["id"] for seen in ci.get("/v1/jobs?owner=service:ci")["jobs"]] == [job]
    assert {seen["id"] for seen in ci.get("/v1/jobs?project=web")["jobs"]} == {job, hers}
    assert ci.get("/v1/jobs?project=other")["jobs"] == []
    rows = cluster.api.get("/v1/audit?owner=service:ci")["audit"]
    assert {row["owner"] for row in rows} == {"service:ci"} and any(row["path"] == "/v1/jobs" for row in rows)
    listed = gpuctl("token", "list", "-o", "json")
    token = next(token for token in json.loads(listed.stdout)["tokens"] if token["owner"] == "service:ci")
    assert (token["project"], token["role"]) == ("web", "user")
    assert "service:ci" in gpuctl("ps", "--all", "--owner", "service:ci", "-o", "wide").stdout


@pytest.mark.parametrize(
    ("order", "status", "field"),
    [
        ({"role": "operator", "service": "ci", "project": "web"}, 422, "role"),
        ({"role": "admin", "service": "ci", "project": "web"}, 422, "role"),
        ({"role": "user", "service": "ci"}, 422, "project"),
        ({"role": "user", "service": "ci", "project": "nowhere"}, 422, "project"),
        ({"role": "user", "service": "a:b", "project": "web"}, 422, "service"),
        ({"role": "user", "service": "s" * 56, "project": "web"}, 422, "service"),
        ({"role": "user", "service": "ci", "owner": "uma", "project": "web"}, 422, "owner"),
        ({"role": "user", "owner": "uma", "project": "web"}, 422, "project"),
        ({"role": "user", "owner": "service:ci"}, 422, "owner"),
        ({"role": "user"}, 422, "owner"),
    ],
)
def test_what_is_no_service_account_is_refused(cluster: Cluster, order: dict[str, str], status: int, field: str) -> None:
    cluster.open_project("web")
    with pytest.raises(Problem) as refused:
        cluster.api.post("/v1/tokens", order)
    assert (refused.value.status, refused.value.field) == (status, field)


def test_a_service_account_is_of_one_project_for_good(cluster: Cluster) -> None:
    cluster.open_project("web", "shop")
    first = cluster.api.post("/v1/tokens", {"role": "user", "service": "once", "project": "web"})
    cluster.api.post("/v1/tokens", {"role": "viewer", "service": "once", "project": "web"})
    cluster.api.post(f"/v1/tokens/{first['id']}/revoke")
    with pytest.raises(Problem) as refused:
        cluster.api.post("/v1/tokens", {"role": "user", "service": "once", "project": "shop"})
    assert (refused.value.status, refused.value.field) == (409, "service")
