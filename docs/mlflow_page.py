# SPDX-License-Identifier: Apache-2.0
"""Makes docs/reference/mlflow.md: mlflow_page.py >reference/mlflow.md

What is served is read from the C code: the table of endpoints, and the routes of artifacts. What MLflow itself has is asked of the
installed package. tests/e2e/tracking/test_mlflow_calls.py holds the page against both.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HTTP = ROOT / "daemon" / "http"
STORE = ROOT / "daemon" / "mlflow"
BASE = "/api/2.0/mlflow/"
TEST = "tests/e2e/tracking/test_mlflow_calls.py"

HEAD = f"""# MLflow's REST calls

This page is made by docs/mlflow_page.py from the code of the controller and from MLflow {{version}}. `{TEST}`
holds it against both: it runs the statements below as one program with MLflow's own client, and sees each call answered with 200.
What the answers are is compared with those of MLflow's own server in tests/e2e/tracking/test_mlflow_server.py.

## Served

Paths begin with `{BASE}` where they do not begin with a slash. `client` is an `mlflow.MlflowClient()`; `call`
makes, by the client's own requests and parsers, a call that this client makes only for another server or version.

| MLflow's name | call | statement of `{TEST}` that makes it |
|---|---|---|
"""
MIDDLE = """
## Whose experiments, runs and models are

An experiment, a run, a logged model and a registered model each have an owner, who is the sender of the call that made it or the
owner of the job whose rank sent it, and a project: that of the job; `default` for a call of a person; that of the experiment for
a person's run in it. Who sees what follows the rules for jobs: the owner, members of the project, operators and administrators.
To anybody else it does not exist.

- A member with role `user` or more makes runs, logged models and versions in what the project has. What one has made oneself one may
  change; operators of the project change all of it. A token of a viewer reads. The ranks of a job may what its owner may as a user.
- Who sees an experiment sees its runs. Experiment 0, `Default`, is everybody's: each person adds runs to it, and sees there those of
  their own and of their projects.
- The tag `gpuctl.project` of an experiment or a registered model names its project, when it is made or later: setting it moves
  the thing, and deleting the tag moves it to `default`.
- Two people may have experiments or models of one name. A name is looked for in the project of the job, or `default`, there first among
  one's own; then elsewhere among one's own and what is everybody's; and for a person, but not for a rank, also in the other projects of
  theirs. The name of another person's experiment does not lead operators to it; its id does.
- A file belongs to the run or the logged model in whose folder it is. Of a version of a registered model those may fetch the files
  who see the registered model.
- What is from before there were owners is for everybody to see and for operators to change, and everybody adds to it: experiments, runs
  that no job made, and registered models without a version.

`GET /health` answers `OK`, as MLflow's server does.

System metrics of a job's run (`system/<node>/cpu_utilization_percentage`, `system_memory_usage_megabytes`,
`gpu_0_utilization_percentage`, ...) are logged by the agents, not by a client. Those of CPU and memory are of the job, where
MLflow's client logs those of the whole node; GPUs are those of the job alone.

## Not served

Each is answered with status 404, `ENDPOINT_NOT_FOUND` and a text that names it. Paths below `/ajax-api`, which MLflow's own pages use, are
not served either.

| MLflow's name | call |
|---|---|
"""


def _c(name: str) -> str:
    return (HTTP / name).read_text()


def served() -> list[str]:
    """The calls that the controller serves, as "METHOD path", in the order of the code."""
    table = (STORE / "call" / "endpoints.h").read_text()
    methods = [f"{method} {path}" for method, path in re.findall(r'X\((\w+), "([^"]+)", \w+, \w+\)', table)]
    assert len(methods) == table.count("    X("), "a row of endpoints.h has another form"
    methods += [f"{method} {path}" for method, path in re.findall(r'\{"(\w+)", "([^"]+)", NULL', (STORE / "tracking.c").read_text())]
    files = re.search(r'#define GATE_FILES "([^"]+)"', _c("request/gate.h"))
    assert files is not None
    routes = re.findall(r'(?:PLAIN|SEND|OTHER)\((\w+),\s+(GATE_FILES )?"([^"]*)",', _c("request/routes.h"))
    paths = [(method, (files[1] if below else "") + path.replace("{+", "{")) for method, below, path in routes]
    return methods + [f"{method} {path}" for method, path in paths if path.startswith("/api/") and not path.startswith(BASE)]


def of_mlflow() -> dict[str, str]:
    """The calls that MLflow's own server has, in the same form, and their names."""
    from mlflow.server.handlers import get_endpoints

    found: dict[str, str] = {}
    endpoints: list[tuple[str, Any, list[str]]] = get_endpoints(lambda message: message)
    for path, handler, methods in endpoints:
        if path.startswith("/api/"):
            shown = re.sub(r"<(?:path:)?(\w+)>", r"{\1}", path).replace("{artifact_path}", "{path}").removeprefix(BASE)
            for method in methods:
                found[f"{method} {shown}"] = handler.__name__.removeprefix("_").removesuffix("Request")
    return found


def unserved() -> dict[str, str]:
    """The calls of MLflow's own server that the controller does not serve, with their names."""
    here = set(served())
    return {call: name for call, name in of_mlflow().items() if call not in here}


def _rows() -> Iterator[str]:
    from mlflow.version import VERSION

    sys.path.insert(0, str(ROOT / "tests" / "e2e" / "tracking"))
    from mlflow_calls import CALLS

    names = of_mlflow()
    yield HEAD.format(version=VERSION)
    for call in served():
        yield f"| {names[call]} | {call} | `{CALLS[call]}` |\n"
    yield MIDDLE
    for call, name in unserved().items():
        yield f"| {name} | {call} |\n"


def page() -> str:
    return "".join(_rows())


if __name__ == "__main__":
    sys.stdout.write(page())
