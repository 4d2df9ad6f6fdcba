# SPDX-License-Identifier: Apache-2.0
"""What `databricks.air` offers, held against Databricks' own distribution from the Python index.

First names, arguments with their defaults, bases of exceptions, and whether something is a property, for which the original is read. Then
the uses in air_uses.py are done with both, and what comes of them is compared. Differences are few, known, and told in
client/air/README.md.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, SOURCES
from serverless_gpu import air, asynchronous, compute, data, exceptions, launcher, runtime

USES = Path(__file__).with_name("air_uses.py")
DISTRIBUTION = "databricks-sdk-air==0.1.1"

#: (module, class or "", name): what differs.
DIFFERENCES = {
    ("launcher", "", "distributed"): "remote=None, timeout=None",
    ("ray", "", "ray_launch"): "remote=None, timeout=None",
    ("compute", "GPUType", "H100"): "'H100'",
    ("compute", "GPUType", "A10"): "'A10'",
    ("compute", "GPUType", "B300"): "'B300'",
    ("compute", "DisplayGpuType", ""): "is not there",
    ("compute", "", "get_gpus_per_node"): "is not there",
    ("compute", "", "get_display_gpu_type"): "is not there",
    ("asynchronous", "UploadEnvTimeoutError", ""): "is not there",
    ("asynchronous", "", "upload_timeout_handler"): "is not there",
    ("asynchronous", "", "timeout_context"): "is not there",
    **{("asynchronous", "DistributedFunctionCall", name): "is not there"
       for name in ("get_client_for_run_id", "invalidate_skyrun_config_cache", "client", "instance", "workload_metadata", "cleanup",
                    "from_run_id", "dispatch")},
}  # fmt: skip

#: Use of air_uses.py: what client/air/README.md calls the difference.
DIFFERENT_USES = {
    "values_of_gpu_types": "values of `GPUType`",
    "names_of_gpu_types": "`names()` of `GPUType`",
    "ranks_of_the_environment_without_a_replica": "`get_replica_rank`",
    "two_processes_local_not_said": "`get_local_rank`",
    "a_dataset_outside_of_volumes": "`UCVolumeDataset`",
    "workers_by_default": "`DataLoader`",
    "workers_that_do_not_stay": "`persistent_workers=False`",
    "workers_that_are_not_forked": "`multiprocessing_context`",
    "an_earlier_type_that_is_unknown": "types, nodes and numbers of GPUs that Databricks does not offer",
    "nodes_of_a_kind_that_is_not_offered": "types, nodes and numbers of GPUs that Databricks does not offer",
    "a_part_of_a_node": "types, nodes and numbers of GPUs that Databricks does not offer",
    "several_nodes_of_one_gpu": "types, nodes and numbers of GPUs that Databricks does not offer",
    "a_number_is_left_out": "a number or a type that is left out",
    "a_type_is_left_out": "a number or a type that is left out",
    "a_plain_call": "a plain call",
    "what_is_seen_of_a_function": "`repr`",
}

OURS: dict[str, Any] = {
    "launcher": {"distributed": air.distributed, "DistributedFunction": launcher.DistributedFunction},
    "ray": vars(air), "compute": vars(compute), "runtime": vars(runtime), "asynchronous": vars(asynchronous),
    "exceptions": vars(exceptions),
    "data.uc_volume_dataset": data, "data.dcp_storage": data, "data.dataloader": data, "data.checkpoint": data,
}  # fmt: skip


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the original's modules."""
    folder = tmp_path_factory.mktemp("original")
    subprocess.run([sys.executable, "-m", "pip", "--quiet", "install", "--no-deps", "--target", folder, DISTRIBUTION], check=True)
    return folder / "databricks" / "air"


def public(body: list[ast.stmt]) -> list[Any]:
    return [node for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_")]


def arguments(node: ast.FunctionDef) -> list[tuple[str, str]]:
    """(name, default as it is written, or "") of each argument but self."""
    spec = node.args
    plain = [*spec.posonlyargs, *spec.args]
    defaults = [""] * (len(plain) - len(spec.defaults)) + [ast.unparse(default) for default in spec.defaults]
    named = [(each.arg, ast.unparse(default) if default else "") for each, default in zip(spec.kwonlyargs, spec.kw_defaults)]
    return [pair for pair in [*zip([each.arg for each in plain], defaults), *named] if pair[0] not in ("self", "cls")]


def is_property(node: ast.FunctionDef) -> bool:
    return any(getattr(decorator, "id", "") == "property" for decorator in node.decorator_list)


def function_differs(node: ast.FunctionDef, own: Any) -> str:
    """What a function of ours lacks of the original's, or has otherwise; "": nothing. It may take more."""
    taken = inspect.signature(own).parameters
    open_ended = any(each.kind is each.VAR_KEYWORD for each in taken.values())
    differing = []
    for name, default in arguments(node):
        if name not in taken:
            differing += [] if open_ended else [f"no {name}"]
        elif default and not default.startswith("_UNSET") and repr(taken[name].default) not in (default, ascii(default)):
            differing.append(f"{name}={taken[name].default!r}")
    return ", ".join(differing)


def member_differs(node: ast.FunctionDef, own: Any) -> str:
    if not hasattr(own, node.name):
        return "is not there"
    if isinstance(inspect.getattr_static(own, node.name), property) or is_property(node):
        same = isinstance(inspect.getattr_static(own, node.name), property) == is_property(node)
        return "" if same else "property"
    return function_differs(node, getattr(own, node.name))


def class_differs(node: ast.ClassDef, own: Any) -> dict[str, str]:
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")]
    found = {each.name: member_differs(each, own) for each in methods}
    bases = {ast.unparse(base).rpartition(".")[2].partition("[")[0] for base in node.bases} - {"Protocol"}
    lacking = bases - {kind.__name__ for kind in own.__mro__}
    if lacking:
        found[""] = f"is no {', '.join(sorted(lacking))}"
    if not any("Enum" in ast.unparse(base) for base in node.bases):
        return found
    members = [each for each in node.body if isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant)]
    for name, value in [(ast.unparse(each.targets[0]), ast.literal_eval(each.value)) for each in members]:
        found[name] = "" if getattr(own, name).value == value else repr(getattr(own, name).value)
    return found


def differences(folder: Path) -> dict[tuple[str, str, str], str]:
    found: dict[tuple[str, str, str], str] = {}
    for module, own in OURS.items():
        tree = ast.parse((folder / f"{module.replace('.', '/')}.py").read_text())
        for node in public(tree.body):
            mine = own.get(node.name) if isinstance(own, dict) else getattr(own, node.name, None)
            if isinstance(node, ast.FunctionDef):
                found[module, "", node.name] = "is not there" if mine is None else function_differs(node, mine)
            elif mine is None:
                found[module, node.name, ""] = "is not there"
            else:
                found.update({(module, node.name, name): what for name, what in class_differs(node, mine).items()})
    return {key: what for key, what in found.items() if what}


def test_what_the_original_offers_is_here_but_for_a_short_list(theirs: Path) -> None:
    assert differences(theirs) == DIFFERENCES


def done(folder: Path, *path: Path) -> dict[str, Any]:
    """What comes of the uses with these folders on the path."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DATABRICKS_", "GPUCTL_", "MLFLOW_"))}
    env.update(HOME=str(folder), PYTHONPATH=os.pathsep.join(map(str, path)))
    ran = subprocess.run([sys.executable, USES, folder], env=env, cwd=folder, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads((folder / "uses.json").read_text())
    return found


def same(theirs: Any, own: Any) -> bool:
    """Whether it is the same value, or an exception that each `except` for the original's catches."""
    if isinstance(theirs, dict) and isinstance(own, dict) and theirs.keys() == own.keys():
        if "raised" in own:
            return set(theirs["raised"]) <= set(own["raised"])
        return all(same(theirs[name], own[name]) for name in own)
    if isinstance(theirs, list) and isinstance(own, list) and len(theirs) == len(own):
        return all(map(same, theirs, own))
    return bool(theirs == own)


def test_what_people_do_with_the_original_comes_to_the_same_here_but_for_a_short_list(theirs: Path, tmp_path: Path) -> None:
    for module in ("torch", "mlflow", "databricks.sdk", "IPython"):  # the original imports them
        pytest.importorskip(module)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "own").mkdir()
    original = done(tmp_path / "theirs", theirs.parents[1])
    own = done(tmp_path / "own", SOURCES, ROOT / "client" / "air" / "src")
    assert original.keys() == own.keys() and len(own) > 80
    different = {name: (original[name], own[name]) for name in own if not same(original[name], own[name])}
    assert {name: both for name, both in different.items() if name not in DIFFERENT_USES} == {}
    assert different.keys() == DIFFERENT_USES.keys()


def test_each_difference_is_told_to_those_who_read_the_page() -> None:
    page = (ROOT / "client" / "air" / "README.md").read_text()
    assert [what for what in DIFFERENT_USES.values() if what not in page] == []
    assert [name or owner for _, owner, name in DIFFERENCES if (name or owner) not in page] == []
