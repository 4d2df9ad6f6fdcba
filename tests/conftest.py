# SPDX-License-Identifier: Apache-2.0
"""The options of all tests in Python."""

from __future__ import annotations

import pytest

#: Option, which is also the mark of tests that are left to it, and what it adds.
KINDS = {"thorough": "minutes", "long": "and full volumes: minutes to hours"}


def pytest_addoption(parser: pytest.Parser) -> None:
    for kind, what in KINDS.items():
        parser.addoption(f"--{kind}", action="store_true", help=f"also the tests marked so, {what}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave those to an option that are marked so. --long has all."""
    left = [kind for kind in KINDS if not config.getoption(f"--{kind}") and not config.getoption("--long")]
    gone = [item for item in items if any(item.get_closest_marker(kind) for kind in left)]
    config.hook.pytest_deselected(items=gone)
    items[:] = [item for item in items if item not in gone]
