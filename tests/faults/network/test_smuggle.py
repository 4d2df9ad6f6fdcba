# SPDX-License-Identifier: Apache-2.0
"""Requests that two readers could understand differently get their exact status, and nothing behind them is read as a request.

Raw sockets, no HTTP library in between. The table is smuggle_cases.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Cluster
from raw_http import STATUS, Exchange, Reply, exchange
from smuggle_cases import Case, all_cases

#: Understood only where the request before it was: /version wants a token, which a healthz before it does not have.
BEHIND = "GET /version HTTP/1.1\r\nHost: H0ST\r\nAuthorization: Bearer T\r\nConnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One controller, no nodes."""
    cluster = Cluster(tmp_path_factory.mktemp("smuggle"), [])
    cluster.start_controller()
    yield cluster
    assert cluster.controller.alive(), cluster.controller.said()
    cluster.stop()


def fill(text: bytes, cluster: Cluster) -> bytes:
    """H0ST and T are the controller's name and a token."""
    return text.replace(b"H0ST", cluster.api.address.encode()).replace(b"Bearer T", f"Bearer {cluster.api.token}".encode())


def check_problem(case: Case, reply: Reply) -> str | None:
    """A refusal of ours is a problem document; one of MLflow's paths is as its clients expect it."""
    kind = reply.headers.get("content-type", "")
    if b"/api/2.0/mlflow" in case.request:
        return None if "error_code" in json.loads(reply.body) else f"not MLflow's error: {reply.body!r}"
    if kind != "application/problem+json":
        return f"a body of {kind!r}: {reply.body[:100]!r}"
    return None if json.loads(reply.body)["status"] == case.status else f"a problem that says {reply.body!r}"


def check_library(case: Case, found: Exchange) -> str | None:
    """The library's refusals are pages of HTML; for a wrong Content-Length it sends their head twice."""
    statuses = {int(status) for status in STATUS.findall(found.raw)}
    good = found.closed and statuses == {case.status} and b"<html>" in found.raw and b"problem+json" not in found.raw
    return None if good else f"closed={found.closed} {statuses}, not {case.status}: {found.raw[:300]!r}"


def check(case: Case, cluster: Cluster) -> str | None:
    """Why the case was not answered as it must be; None: it was."""
    found = exchange(cluster.port, fill(case.request, cluster) + fill(BEHIND.encode(), cluster), expected=2 if case.goes_on else None)
    if case.by_library:
        return check_library(case, found)
    expected = ([case.status] if case.status else []) + ([200] if case.goes_on else [])
    if found.statuses != expected:
        return f"{found.statuses}, not {expected}; {[reply.body[:200] for reply in found.replies]}"
    if not case.goes_on and not (found.closed and found.rest == b""):
        return f"closed={found.closed} rest={found.rest[:100]!r}"
    return check_problem(case, found.replies[0]) if case.status >= 400 else None


def test_each_request_of_the_table_gets_its_status_and_nothing_slips_past_behind_it(controller: Cluster) -> None:
    cases = all_cases()
    wrong = {case.name: problem for case in cases if (problem := check(case, controller)) is not None}
    print(f"{len(cases) - len(wrong)} of {len(cases)} requests answered as specified")
    assert len(cases) >= 300
    assert not wrong, "\n".join(f"{name}: {problem}" for name, problem in wrong.items())


def test_pipelined_requests_are_answered_in_order(controller: Cluster) -> None:
    lines = [f"GET /healthz HTTP/1.1\r\nHost: H0ST\r\nX-Number: {n}\r\n\r\n" for n in range(20)]
    mixed = "".join(lines[:10]) + "GET /nothing HTTP/1.1\r\nHost: H0ST\r\n\r\n" + "".join(lines[10:]) + BEHIND
    found = exchange(controller.port, fill(mixed.encode(), controller), expected=22)
    assert found.statuses == [200] * 10 + [404] + [200] * 11


def test_an_expected_body_is_asked_for_and_a_refused_one_is_not(controller: Cluster) -> None:
    start = "POST /v1/plan HTTP/1.1\r\nHost: H0ST\r\nAuthorization: Bearer T\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
    found = exchange(controller.port, fill(f"{start}Content-Length: 2\r\n\r\n{{}}".encode(), controller), expected=2)
    assert found.statuses == [100, 422]
    found = exchange(controller.port, fill(f"{start}Content-Length: 10737418240\r\n\r\n".encode(), controller))
    assert found.statuses == [413] and found.closed


def test_the_table_finds_an_answer_that_is_not_as_specified(controller: Cluster, tmp_path: Path) -> None:
    """The check itself can fail: a request that goes on must not pass for a refused one, nor the other way round."""
    good = b"GET /healthz HTTP/1.1\r\nHost: H0ST\r\n\r\n"
    assert check(Case("as it is", good, 200, goes_on=True), controller) is None
    assert check(Case("another status", good, 400), controller) is not None
    assert check(Case("cut off", good, 200), controller) is not None
    assert check(Case("by us", b"GET /healthz HTTP/2.0\r\nHost: H0ST\r\n\r\n", 505), controller) is not None
