# SPDX-License-Identifier: Apache-2.0
"""Schemathesis against the controller: requests that it draws from proto/openapi.yaml, right ones and wrong ones. No answer is a defect,
and each has a status, a type and members that the contract says.

test_every_route.py asks plausible questions in every state; these are what nobody thought of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

schemathesis = pytest.importorskip("schemathesis")  # Debian has none

from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from requests import Session  # noqa: E402
from schemathesis import GenerationMode  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi import checks  # noqa: E402

from harness import ROOT, Cluster, eventually  # noqa: E402

SCHEMA = schemathesis.openapi.from_path(str(ROOT / "proto" / "openapi.yaml"))
#: It ends the controller.
ENDING = "/v1/shutdown"
#: Its only parameter may be any text.
ANY_TEXT = "/web/{name}"
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations() if found.ok().path != ENDING]
#: Each with what is right; and with what is wrong, where its contract has a parameter or a body that can be.
DRAWN = [(GenerationMode.POSITIVE, operation) for operation in OPERATIONS]
DRAWN += [
    (GenerationMode.NEGATIVE, operation)
    for operation in OPERATIONS
    if operation.path != ANY_TEXT and (list(operation.iter_parameters()) or len(operation.body))
]
CHECKS = [
    not_a_server_error, checks.status_code_conformance, checks.content_type_conformance, checks.response_headers_conformance,
    checks.response_schema_conformance,
]  # fmt: skip


class Site:
    """A controller with a node, a job that has ended, and a token for each kind of operation."""

    def __init__(self, cluster: Cluster):
        self.cluster = cluster
        self.admin = cluster.api
        self.node = cluster.user("nodes", role="node")
        self.session = Session()
        self.job = self.ended()

    def ended(self) -> str:
        job = self.admin.submit(["sh", "-c", "echo said"])
        self.admin.wait(job)
        return job

    def headers(self, operation: Any) -> dict[str, str]:
        token = (self.node if operation.path.startswith("/v1/agent/") else self.admin).token
        return {"Authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def site(cluster: Cluster) -> Iterator[Site]:
    made = Site(cluster)
    yield made
    made.session.close()
    for job in made.admin.get("/v1/jobs?limit=200&state=QUEUED,HELD,BLOCKED,STAGING,PLACED,RUNNING")["jobs"]:
        made.admin.post(f"/v1/jobs/{job['id']}/cancel")
    eventually(lambda: all(agent.alive() for agent in cluster.agents), "the agents to live")


@pytest.mark.parametrize(("mode", "operation"), DRAWN, ids=lambda drawn: getattr(drawn, "label", getattr(drawn, "value", None)))
def test_what_is_drawn_from_the_contract_is_answered_by_it(site: Site, operation: Any, mode: Any, request: pytest.FixtureRequest) -> None:
    long = request.config.getoption("--long")

    @settings(max_examples=200 if long else 5, derandomize=not long, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode), real=st.booleans())
    def holds(case: Any, real: bool) -> None:
        if real and operation.path.startswith("/v1/jobs/{id}") and operation.method != "delete":
            case.path_parameters = {**case.path_parameters, "id": site.job}
        reply = case.call(base_url=site.cluster.url, headers=site.headers(operation), session=site.session, timeout=30)
        if reply.status_code != 414:  # the HTTP library's own answer to a line of some 30 KiB, without a type
            case.validate_response(reply, checks=CHECKS)

    holds()
    assert site.cluster.controller.alive()
