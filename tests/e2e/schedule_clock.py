# SPDX-License-Identifier: Apache-2.0
"""What tests of schedules share: the clock is that of the wall, so a stopped controller is told that a run was due."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from harness import Api
from slowness import patient

#: A page of the database has a sum that SQLite alone does not write, so nothing may move from the log into it: no connection is closed.
EDIT = """
import json, os, sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("PRAGMA wal_autocheckpoint = 0")
for statement, values in json.loads(sys.argv[2]):
    database.execute(statement, values)
database.commit()
os._exit(0)
"""


def edit(state: Path, *statements: tuple[str, list[Any]]) -> None:
    """Change rows of a controller that is not running."""
    command = [sys.executable, "-c", EDIT, str(state / "controller" / "gpuctl.db"), json.dumps(statements)]
    subprocess.run(command, check=True, timeout=patient(60))


def set_due(state: Path, seconds_ago: float, name: str | None = None) -> None:
    """Their next runs were due so long ago; of all schedules, or of one."""
    due_ms = int((time.time() - seconds_ago) * 1000)
    edit(state, ("UPDATE schedules SET next_ms = ?1 WHERE ?2 IS NULL OR name = ?2", [due_ms, name]))


def jobs_of(api: Api, name: str) -> list[Any]:
    listed: list[Any] = api.get(f"/v1/jobs?label=schedule%3D{name}&limit=200")["jobs"]
    return listed


def yearly(api: Api, name: str, command: list[str] | None = None, **more: Any) -> str:
    """A schedule whose own next run is never during a test."""
    spec = {"command": command or ["true"], "gpus": 1, **more.pop("spec", {})}
    made: str = api.post("/v1/schedules", {"name": name, "cron": "0 0 29 2 *", "spec": spec, **more})["id"]
    return made
