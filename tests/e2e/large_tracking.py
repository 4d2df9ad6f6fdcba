# SPDX-License-Identifier: Apache-2.0
"""A tracking database with so many runs that searching it takes long, and such a search."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

SEARCH = "/api/2.0/mlflow/runs/search"


def fill(database: Path, runs: int, letters: int) -> None:
    """Add runs behind the controller's back, each with a tag of so many equal letters."""
    with sqlite3.connect(database, timeout=60) as connection:
        connection.executemany(
            "INSERT INTO runs VALUES (?1, printf('%032x', ?1), 0, 'r', 'ada', 'FINISHED', ?1, NULL, 0, '', '', 'default')",
            ((key,) for key in range(1_000_000, 1_000_000 + runs)),
        )
        connection.executemany(
            "INSERT INTO tags VALUES (?, 'note', ?)", ((key, "a" * letters) for key in range(1_000_000, 1_000_000 + runs))
        )


def slow_search(letters: int) -> dict[str, Any]:
    """Ask for notes that have as many letters and then another one: none has, which each letter of each note has to show."""
    return {"experiment_ids": ["0"], "filter": f"tags.note LIKE '%{'a' * letters}b%'"}
