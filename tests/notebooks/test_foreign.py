# SPDX-License-Identifier: Apache-2.0
"""Notebooks of kinds that people bring along, in tests/notebooks/foreign: each runs from its first to its last cell over two nodes, as it
is. They were written for these tests; where others would fetch a model or a dataset, they make a small one.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from harness import Cluster
from kernel import Notebook, displays, errors, streams

FOREIGN = Path(__file__).parent / "foreign"
PACKAGES = ("mlflow", "transformers", "accelerate", "optuna", "hyperopt", "ray")

pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, PACKAGES)), reason="the frameworks are not installed: deploy/python-environment --tests"
)

Open = Callable[..., Notebook]
#: The outputs of the cells of code, in order, once no cell has failed.
Execute = Callable[[Cluster, str], list[list[Any]]]


def labelled(folder: Path, slots: int) -> Iterator[Cluster]:
    """Two nodes with some slots each, that call these A10."""
    made = Cluster(folder, [slots, slots], agent=["--gpu-type", "A10"])
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two ranks are on two nodes here."""
    yield from labelled(tmp_path_factory.mktemp("pair"), 1)


@pytest.fixture(scope="module")
def two_pairs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four ranks are on two nodes here."""
    yield from labelled(tmp_path_factory.mktemp("two-pairs"), 2)


@pytest.fixture
def execute(open_notebook: Open, monkeypatch: pytest.MonkeyPatch) -> Execute:
    """execute(cluster, name): in a kernel that tracks with the cluster's controller, as README tells people to."""

    def run(cluster: Cluster, name: str) -> list[list[Any]]:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", cluster.url)
        monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", cluster.admin_token)
        document = nbformat.read(FOREIGN / name, as_version=4)
        notebook = open_notebook(cluster, document=document)
        found = []
        for index, cell in enumerate(document.cells):
            if cell.cell_type == "code":
                found.append(notebook.run(index))
                assert not errors(found[-1]), (cell.source, found[-1])
        return found

    return run


def value(outputs: list[Any]) -> Any:
    """What a cell evaluates to."""
    return ast.literal_eval(outputs[-1].data["text/plain"])


def cards(outputs: list[Any]) -> list[str]:
    """The cards of the calls of a cell."""
    return [html for html in displays(outputs) if 'role="group"' in html]


def table(outputs: list[Any]) -> list[list[str]]:
    """The rows of the data frame that a cell shows, without its index."""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", outputs[-1].data["text/html"], re.DOTALL)
    return [re.findall(r"<td>(.*?)</td>", row) for row in rows[1:]]


def nodes(cluster: Cluster, name: str) -> list[list[str]]:
    """The nodes of each job of that name, sorted; each has succeeded."""
    jobs = [cluster.api.job(job["id"]) for job in cluster.api.get(f"/v1/jobs?name={name}&limit=50")["jobs"]]
    assert jobs and all(job["state"] == "SUCCEEDED" for job in jobs), jobs
    return [sorted(node["node"] for node in job["nodes"]) for job in jobs]


@pytest.mark.thorough
def test_a_fine_tuning_notebook_has_one_run_of_its_experiment_with_the_model(pair: Cluster, execute: Execute) -> None:
    _, _, _, call, printed, runs, history, model = execute(pair, "fine_tuning.ipynb")
    (card,) = cards(call)
    assert "SUCCEEDED" in card and "tiny-fine-tuning" in card
    said = [line.split("] ", 1)[1] for line in streams(call).splitlines() if "steps, loss" in line]
    assert [line.split(":")[0] for line in sorted(said)] == ["rank 0 of 2", "rank 1 of 2"]
    first, second = (line.split() for line in streams(printed).splitlines())
    assert (first[0], second[0]) == ("0", "1") and first[1:] == second[1:] and int(first[1]) == 12
    ((_, status, run_name, rate, sentences, loss),) = table(runs)
    assert (status, run_name, float(rate), sentences) == ("FINISHED", "tiny-gpt2", 5e-3, "64") and float(loss) < 4
    course = [(int(step), float(loss)) for step, loss in table(history)]
    assert [step for step, _ in course] == [2, 4, 6, 8, 10, 12] and course[-1][1] < course[0][1]
    assert value(model) > 0
    assert nodes(pair, "fine_tune") == [["node0", "node1"]]


@pytest.mark.long
def test_a_search_notebook_has_a_job_for_each_trial(pair: Cluster, execute: Execute) -> None:
    _, _, study, frame, children, handles, best, losses = execute(pair, "hyper_parameters.ipynb")
    assert len(cards(study)) == 2 and all("SUCCEEDED" in card for card in cards(study))
    trials = table(frame)
    assert [row[0] for row in trials] == ["0", "1"] and all(row[3] == "COMPLETE" for row in trials)
    nested = table(children)
    assert sorted(row[0] for row in nested) == ["trial-0", "trial-1"]
    assert [float(row[2]) for row in nested] == sorted(float(row[1]) for row in trials)
    assert value(handles) == {"x": 0.5, "value": 0.0}
    assert set(value(best)) == {"kind", "width"} and len(value(losses)) == 3
    assert nodes(pair, "train") == [["node0", "node1"]] * 2 and len(nodes(pair, "evaluate")) == 4 and len(nodes(pair, "score")) == 3


@pytest.mark.long
def test_a_notebook_of_ray_has_a_dataset_training_and_a_search_over_both_nodes(two_pairs: Cluster, execute: Execute) -> None:
    *_, call, values = execute(two_pairs, "ray_train.ipynb")
    assert "nodes: ['ALIVE', 'ALIVE']" in streams(call) and re.search(r"dashboard: \S+:\d+", streams(call))
    found = value(values)
    assert found["rows"] == 64 and found["rate"] == 0.3 and found["loss"] < 0.5
    assert nodes(two_pairs, "drive") == [["node0", "node1"]]
