# SPDX-License-Identifier: Apache-2.0
"""Chooses which environment variables of this process are sent to other machines: variables that the process has set or changed itself,
without those of this machine, and a few inherited ones that frameworks read.

A value is never shown; a variable that is left out is reported by name. Credentials other than a framework's own, such as a cloud's, are
sent only if the notebook sets them, or by `env=`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

INITIAL = "/proc/self/environ"
VALUE_BYTES = 32 * 1024
ALL_BYTES = 56 * 1024  # A job's variables may have 64 KiB; the rest is left for the node's own
ALL_VARIABLES = 448  # of 512

# Prefixes of inherited variables that are sent.
FRAMEWORKS = (
    "MLFLOW_", "HF_", "HUGGING", "TRANSFORMERS_", "DATASETS_", "TOKENIZERS_", "WANDB_", "COMET_", "NEPTUNE_",
    "NCCL_", "TORCH_", "PYTORCH_", "TORCHDYNAMO_", "TORCHINDUCTOR_", "ACCELERATE_", "DEEPSPEED_", "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "OMP_NUM_THREADS",
)  # fmt: skip

# Never sent: they belong to this machine, this process or this notebook.
MACHINE = frozenset(
    (
        "_", "PATH", "HOME", "PWD", "OLDPWD", "USER", "USERNAME", "LOGNAME", "MAIL", "SHELL", "SHLVL", "TMPDIR", "TMP", "TEMP", "HOSTNAME",
        "HOST", "LANG", "LANGUAGE", "TERM", "TERMCAP", "TERMINFO", "COLORTERM", "COLUMNS", "LINES", "LS_COLORS", "LESS", "LESSOPEN",
        "LESSCLOSE", "PAGER", "MANPATH", "MANPAGER", "EDITOR", "VISUAL", "BROWSER", "NO_COLOR", "FORCE_COLOR", "DISPLAY",
        "WAYLAND_DISPLAY", "WINDOWID", "XAUTHORITY", "MPLBACKEND", "VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "KMP_INIT_AT_FORK",
        "TORCHINDUCTOR_CACHE_DIR", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET",
        "INVOCATION_ID", "JOURNAL_STREAM", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE", "KRB5CCNAME", "RAY_ADDRESS",
        # set by the nodes
        "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "NNODES", "NUM_NODES", "NPROC_PER_NODE", "GROUP_RANK",
        "GROUP_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "CLUSTER_SPEC", "TF_CONFIG", "CUDA_VISIBLE_DEVICES", "CODE_SOURCE_PATH",
        "JAX_COORDINATOR_ADDRESS", "JAX_LOCAL_DEVICE_IDS",
        # sent as options of the call
        "DATABRICKS_USE_RESERVED_GPU_POOL", "DATABRICKS_USE_POOL", "DATABRICKS_REMOTE_GPU_POOL_ID",
    )
)  # fmt: skip
# Variables of MACHINE or MACHINE_PREFIXES that people set for their ranks: a message says that they are not sent.
ASKED_FOR = (
    "CUDA_VISIBLE_DEVICES", "GLOO_SOCKET_IFNAME", "LD_LIBRARY_PATH", "LD_PRELOAD", "MASTER_ADDR", "MASTER_PORT", "NCCL_SOCKET_IFNAME",
    "PATH", "PYTHONPATH", "TMPDIR", "WORLD_SIZE",
)  # fmt: skip
MACHINE_PREFIXES = (
    "_", "GPUCTL_", "LD_", "DYLD_", "PYTHON", "PYDEVD_", "PYCHARM_", "PYTEST_", "CONDA", "MAMBA_", "PIP_", "UV_", "XDG_", "SSH_", "GPG_",
    "DBUS", "LC_", "JPY_", "JUPYTER", "IPY", "VSCODE_", "GIT_", "CLICOLOR", "NVIDIA_", "SLURM", "SUDO_", "SYSTEMD_", "ROLE_",
    "TORCHELASTIC_",
)  # fmt: skip
EXPERIMENT_ID, EXPERIMENT_NAME = "MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME"
TRACKING = ("MLFLOW_TRACKING_URI", "MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD")
REGISTRY = "MLFLOW_REGISTRY_URI"

_AT_IMPORT = None if sys.platform == "linux" else dict(os.environ)


def _at_start() -> dict[str, str] | None:
    """Return the variables that this process was started with; None if their memory was overwritten, as by a process title."""
    if _AT_IMPORT is not None:
        return _AT_IMPORT
    try:
        with open(INITIAL, "rb") as file:
            items = [item for item in file.read().split(b"\0") if item]
    except OSError:
        return None
    found: dict[str, str] = {}
    for item in items:
        name, separator, value = item.partition(b"=")
        if not separator:
            return None
        found.setdefault(os.fsdecode(name), os.fsdecode(value))
    return found or None


def _is_of_machine(name: str) -> bool:
    return name in MACHINE or name.startswith(MACHINE_PREFIXES) or re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) is None


def _address(url: str) -> tuple[str, int | None]:
    """Return host and port of an address, with one name for this host."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return url, None
    return "localhost" if host in ("127.0.0.1", "::1") else host, port or {"http": 80, "https": 443}.get(parts.scheme)


def _is_of_this_machine(uri: str) -> bool:
    """Return whether a tracking store consists of files of this machine."""
    return uri == "" or "://" not in uri and not uri.startswith(("databricks", "uc")) or uri.startswith(("file:", "sqlite:"))


def _name_of_experiment(identifier: str) -> str | None:
    """Return the name of an experiment in the store of this process's MLflow; None if it is not known."""
    mlflow: Any = sys.modules.get("mlflow")
    try:
        return str(mlflow.get_experiment(identifier).name)
    except Exception:  # a store may raise any type
        return None


def _settle_registry(found: dict[str, str], explicit: Mapping[str, str | None], controller_url: str, here: bool) -> list[str]:
    """Drop the registry's address if the job tracks with the controller, so that models are registered there, too. Ranks reach neither
    files of this machine nor, without its credentials, Databricks' registry.

    Returns the name with the reason if the registry is out of reach, else an empty list.
    """
    uri = found.get(REGISTRY)
    if uri is None or REGISTRY in explicit:
        return []
    elsewhere = uri.startswith("databricks") or (not here and _is_of_this_machine(uri))
    if not elsewhere and _address(uri) != _address(controller_url):
        return []
    del found[REGISTRY]
    why = f"{uri.partition(':')[0]} is out of the ranks' reach, so they register models with the controller"
    return [f"{REGISTRY} ({why})"] if elsewhere else []


def _settle_tracking(found: dict[str, str], explicit: Mapping[str, str | None], controller_url: str, here: bool) -> list[str]:
    """If the controller is the job's tracking server, drop the variables that the nodes set: each attempt has its own run and token.

    The id of an experiment means nothing to another store, so its name is sent. Returns the lost names with the reasons.
    """
    own = found.get(TRACKING[0])
    local = own is not None and TRACKING[0] not in explicit and not here and _is_of_this_machine(own)
    uri = explicit.get(TRACKING[0], own)
    if uri is not None and not local and _address(uri) != _address(controller_url):
        return []
    for name in TRACKING:
        found.pop(name, None)
    lost = [f"{TRACKING[0]} (it names files of this machine, so the job tracks with its controller)"] if local and own else []
    lost += _settle_registry(found, explicit, controller_url, here)
    if EXPERIMENT_ID not in found or EXPERIMENT_ID in explicit or (own is not None and _address(own) == _address(controller_url)):
        return lost
    experiment = _name_of_experiment(found.pop(EXPERIMENT_ID))
    if experiment is None:
        return [*lost, f"{EXPERIMENT_ID} (it is of another tracking store; {EXPERIMENT_NAME} names an experiment in all of them)"]
    found[EXPERIMENT_NAME] = experiment
    return lost


def _wanted() -> dict[str, str]:
    start = _at_start()
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if not _is_of_machine(name) and (name.startswith(FRAMEWORKS) or (start is not None and start.get(name) != value))
    }


def _is_set_here(name: str) -> bool:
    """Return whether this process has set the variable itself."""
    start = _at_start()
    return start is not None and name in os.environ and start.get(name) != os.environ[name]


def _unfit(value: str) -> str | None:
    """Return why a value cannot be sent; None if it can."""
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        return "it is no UTF-8"
    if "\0" in value:
        return "it holds a NUL"
    return f"it is larger than {VALUE_BYTES // 1024} KiB" if size > VALUE_BYTES else None


def _size(name: str, value: str) -> int:
    return len(f"{name}={value}".encode(errors="replace")) + 1


def take(explicit: Mapping[str, str | None], controller_url: str, here: bool = False) -> tuple[dict[str, str], list[str]]:
    """Return the variables to send beside the `explicit` ones, and the names, each with the reason, of wanted ones that cannot be sent.

    A value of None in `explicit` means that the variable is not sent. `here` says that the ranks run on this machine.
    """
    found = _wanted()
    missed = _settle_tracking(found, explicit, controller_url, here)
    missed += [f"{name} (it is of this machine)" for name in ASKED_FOR if not here and name not in explicit and _is_set_here(name)]
    taken: dict[str, str] = {}
    total = sum(_size(name, value) for name, value in explicit.items() if value is not None)
    for name, value in found.items():
        if name in explicit:
            continue
        why = _unfit(value)
        size = _size(name, value)
        if why is None and (total + size > ALL_BYTES or len(explicit) + len(taken) >= ALL_VARIABLES):
            why = "all variables together are too large"
        if why is not None:
            missed.append(f"{name} ({why})")
            continue
        total += size
        taken[name] = value
    return taken, missed
