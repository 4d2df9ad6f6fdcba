# SPDX-License-Identifier: Apache-2.0
"""docs/reference/mlflow.md says which calls of MLflow's REST API are served: it says what the code says, the real client makes each call
that is served, and each other one is refused by its name.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

from harness import ROOT, Api, Cluster, Problem
from mlflow_calls import BEFORE, CALLS
from test_mlflow import Script, script  # noqa: F401

sys.path.insert(0, str(ROOT / "docs"))
import mlflow_page  # noqa: E402

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mlflow") is None, reason="MLflow's client could not be installed")
#: The list of its own calls is its server's.
whole = pytest.mark.skipif(importlib.util.find_spec("flask") is None, reason="MLflow's server could not be installed")

#: Writes [statement, ["METHOD path", status]...] of all that the client sends.
RECORDER = """
import requests
from urllib.parse import urlsplit

sent = []
send = requests.adapters.HTTPAdapter.send
def recorded(self, request, **how):
    answer = send(self, request, **how)
    sent.append([request.method + " " + urlsplit(request.url).path, answer.status_code])
    return answer
requests.adapters.HTTPAdapter.send = recorded
"""


def pattern(call: str) -> str:
    """An expression for the requests that are this call: a parameter is one part of the path, the path of an artifact any number."""
    return re.sub(r"\\{(\w+)\\}", lambda part: ".+" if part[1] == "path" else "[^/]+", re.escape(call))


def call_of(request: str) -> str:
    """The call that a request is, as the page has it; a request that is none, as it is."""
    request = request.replace(" " + mlflow_page.BASE, " ")
    return next((call for call in sorted(CALLS, key=lambda call: "{" in call) if re.fullmatch(pattern(call), request)), request)


@pytest.fixture(scope="module")
def api(cluster: Cluster) -> Api:
    return cluster.api


def test_the_real_client_makes_every_call_that_is_served(script: Script, tmp_path: Path) -> None:  # noqa: F811
    assert set(CALLS) == set(mlflow_page.served())
    lines = [RECORDER, BEFORE, "steps = []"]
    for call, statement in CALLS.items():
        lines += ["sent.clear()", statement, f"steps.append([{call!r}, list(sent)])"]
    script("\n".join([*lines, 'json.dump(steps, open("steps.json", "w"))']))
    steps = json.loads((tmp_path / "steps.json").read_text())
    seen = set()
    for call, sent in steps:
        answered = {call_of(request) for request, status in sent if status == 200}
        assert call in answered, (call, sent)
        seen |= answered
    assert seen == set(mlflow_page.served())


@whole
def test_the_page_says_what_the_code_says() -> None:
    assert (ROOT / "docs" / "reference" / "mlflow.md").read_text() == mlflow_page.page(), "docs/mlflow_page.py >docs/reference/mlflow.md"


@whole
def test_every_other_call_of_mlflow_is_refused_by_its_name(api: Api) -> None:
    calls = mlflow_page.unserved()
    assert len(calls) > 100
    for call in calls:
        method, path = call.split(" ", 1)
        path = re.sub(r"\{\w+\}", "x", path if path.startswith("/") else mlflow_page.BASE + path)
        with pytest.raises(Problem) as caught:
            api.call(method, path, {} if method in ("POST", "PUT", "PATCH") else None)
        assert caught.value.status == 404 and caught.value.body["error_code"] == "ENDPOINT_NOT_FOUND", call
        assert f"{method} {path}" in caught.value.body["message"], call
