# SPDX-License-Identifier: Apache-2.0
"""The rows of tests/bench in the order in which they run and are reported, one module each."""

from __future__ import annotations

import importlib
from typing import cast

from common import Row

#: Name of a row and its module.
MODULES = {
    "submit": "submit",
    "unfair": "unfair",
    "start": "start",
    "isolation": "isolation",
    "first-step": "first_step",
    "recover": "recover",
    "throughput": "throughput",
    "park": "park",
    "streams": "streams",
    "memory": "memory",
    "scale": "scale",
    "pass": "passes",
    "wide": "wide",
    "pages": "pages",
    "array": "array",
    "restart": "restart",
    "old": "old",
    "logs": "logs",
    "tracking": "tracking",
    "training": "training",
    "ray": "ray",
    "function": "function",
    "stage": "stage",
}


def row(name: str) -> Row:
    return cast(Row, importlib.import_module(f"rows.{MODULES[name]}"))
