# SPDX-License-Identifier: Apache-2.0
"""P13: what `databricks.air` offers, held against Databricks' own distribution from the Python index, which is read and never executed.

Names, arguments with their defaults, and whether something is a property. Differences are few, known, and told in client/air/README.md.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from serverless_gpu import air, asynchronous, compute, data, launcher, runtime

ROOT = Path(__file__).resolve().parents[2]
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

OURS: dict[str, Any] = {
    "launcher": {"distributed": air.distributed, "DistributedFunction": launcher.DistributedFunction},
    "ray": vars(air), "compute": vars(compute), "runtime": vars(runtime), "asynchronous": vars(asynchronous),
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


def test_each_difference_is_told_to_those_who_read_the_page() -> None:
    page = (ROOT / "client" / "air" / "README.md").read_text()
    assert [name or owner for _, owner, name in DIFFERENCES if (name or owner) not in page] == []
