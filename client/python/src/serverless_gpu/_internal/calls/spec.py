# SPDX-License-Identifier: Apache-2.0
"""Builds a job as the controller takes it, from the options of a decorated function and from the place where this process runs.

Only options that the caller has set become fields, so that the defaults are the controller's. The call adds the function itself, and
packaging.py collects the files and packages of this machine.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import sysconfig
from pathlib import Path
from typing import Any, Callable

from serverless_gpu._internal.calls import host
from serverless_gpu.launcher import Options

NAME_CHARACTERS = 63


def name_of(function: Callable[..., Any]) -> str | None:
    """Return the function's name as the name of a job: letters, digits, '.', '_' and '-', a letter or digit first. None if no such
    character is left.
    """
    function = getattr(function, "func", function)  # of a partial
    name = getattr(function, "__name__", None) or type(function).__name__
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-")
    return plain.lstrip("._-")[:NAME_CHARACTERS] or None


def _use_reserved_pool() -> bool | None:
    """Return False if the environment says no; None leaves the choice to the controller. Raises ValueError for other words."""
    word = os.environ.get("DATABRICKS_USE_RESERVED_GPU_POOL", "").strip()
    if word.lower() in ("false", "0", "no", "off"):
        return False
    if word.lower() in ("", "true", "1", "yes", "on"):
        return None
    raise ValueError(f"DATABRICKS_USE_RESERVED_GPU_POOL must be true or false, it is {word!r}")


def _named_by_pth(folder: str) -> list[str]:
    """Return the folders that the .pth files of a folder of packages add to sys.path."""
    found = []
    for file in Path(folder).glob("*.pth"):
        try:
            lines = file.read_text(errors="replace").splitlines()
        except OSError:
            continue
        named = [line.strip() for line in lines if line.strip() and not line.startswith(("#", "import ", "import\t"))]
        found += [os.path.join(folder, line) for line in named]
    return found


def _own_path() -> list[str]:
    """Return the entries of sys.path that a fresh Python of this environment lacks; PYTHONPATH would put them before its own ones."""
    import site

    stdlib = sysconfig.get_paths()["stdlib"]
    packages = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    usual = [stdlib, os.path.join(stdlib, "lib-dynload"), *packages]
    for folder in packages:
        usual += _named_by_pth(folder)
    known = {os.path.realpath(path) for path in usual}
    found: dict[str, None] = {}
    for entry in sys.path:
        path = os.path.abspath(entry)
        if os.path.realpath(path) not in known and os.path.isdir(path) and os.pathsep not in path:
            found[path] = None
    return list(found)


def _local(options: Options) -> dict[str, Any]:
    """Return the fields that let the ranks on this host see the files and modules of this process; in an image they do not."""
    if options.image is not None:
        return {"host_id": host.host_id()}
    path = os.pathsep.join([*filter(None, [options.env.get("PYTHONPATH")]), *_own_path()])
    fields: dict[str, Any] = {"host_id": host.host_id(), "env": {**options.env, **({"PYTHONPATH": path} if path else {})}}
    with contextlib.suppress(FileNotFoundError):  # the folder was deleted
        fields["workdir"] = os.getcwd()
    return fields


def build(options: Options, function: Callable[..., Any], own_host: bool) -> dict[str, Any]:
    """Return the job without its function. `own_host` says that all nodes of the controller are on this host."""
    python = options.python
    if python is None and options.image is None and (own_host or not options.remote):
        python = sys.executable or None
    fields: dict[str, Any] = {
        "name": options.name or name_of(function),
        "gpu_type": options.gpu_type,
        "cpus": options.cpus,
        "memory": options.memory,
        "use_reserved_pool": _use_reserved_pool(),
        "pool": options.pool or os.environ.get("DATABRICKS_REMOTE_GPU_POOL_ID"),
        "constraints": dict(options.constraints),
        "avoid": options.avoid,
        "exclude": options.exclude,
        "placement": options.placement,
        "nodes": options.nodes,
        "launch_mode": options.launch_mode,
        "env": dict(options.env),
        "secrets": options.secrets,
        "volumes": options.volumes,
        "checkpoint_volume": options.checkpoint_volume,
        "image": options.image,
        "worker_image": options.worker_image,
        "image_secret": options.image_secret,
        "inputs": options.inputs,
        "labels": dict(options.labels),
        "python": python,
        "project": options.project,
        "priority": options.priority,
        "time_limit_s": options.timeout_s,
        "keep_on_failure_s": options.keep_on_failure_s,
        "early_signal": options.early_signal,
        "retries": options.retries,
        "infra_retries": options.infra_retries,
        "after": list(options.after),
        "hold": options.hold or None,
        "notify": options.notify,
    }
    if not options.remote:
        fields.update(_local(options))
    asked = {name: value for name, value in fields.items() if value not in (None, "", {}, [])}
    return {"gpus": options.gpus, "remote": options.remote, **asked}
