# SPDX-License-Identifier: Apache-2.0
"""M16: time limits of the tests follow the speed of the machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from conftest import ROOT

#: A named limit of a wait that is a plain number: DEADLINE_S = 60.
FIXED = re.compile(r"^(?:\w*PATIENCE|DEADLINE|HANGS|CELL|RECOVERY|GONE)(?:_S)? = [0-9]", re.MULTILINE)


def test_a_machine_is_measured_as_a_whole_number_of_times_slower() -> None:
    measured = subprocess.run([ROOT / "tests" / "slowness"], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"[1-9][0-9]*\n", measured), measured


def test_limits_are_stretched_by_what_was_measured() -> None:
    ask = "import slowness, harness; print(slowness.patient(10), harness.PATIENCE)"
    said = {}
    for slowness in ("", "0.5", "3"):
        env = {**os.environ, "GPUCTL_TEST_SLOWNESS": slowness, "PYTHONPATH": str(ROOT / "tests" / "e2e")}
        said[slowness] = subprocess.run([sys.executable, "-c", ask], env=env, capture_output=True, text=True, check=True).stdout.split()
    assert said == {"": ["10.0", "60.0"], "0.5": ["10.0", "60.0"], "3": ["30.0", "180.0"]}


def test_no_test_has_a_limit_of_its_own_that_stays_as_it_is() -> None:
    folders = [ROOT / "tests" / name for name in ("e2e", "faults", "frameworks", "notebooks", "python")]
    fixed = [path.name for folder in folders for path in folder.rglob("*.py") if FIXED.search(path.read_text())]
    assert fixed == [], "write them as patient(SECONDS)"


def test_everything_that_has_limits_is_told_of_it() -> None:
    script = (ROOT / "tests" / "run").read_text()
    assert "export GPUCTL_TEST_SLOWNESS=$slowness CK_TIMEOUT_MULTIPLIER=$slowness" in script
    assert script.count("meson test -C") == script.count("--timeout-multiplier")
    alone = script[script.index("\ntold_beside ||") : script.index('tests "frameworks"')]
    assert not re.search(r"^ *beside ", alone, re.MULTILINE), "nothing that is not idle runs beside the frameworks"
    assert Path(ROOT / "tests" / "slowness").stat().st_mode & 0o111
