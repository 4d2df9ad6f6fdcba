# SPDX-License-Identifier: Apache-2.0
"""The hostile jobs of tests/faults/neighbours against our packages, on a machine with systemd and all controllers of cgroups."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cluster import Cluster

TESTS = Path(__file__).resolve().parents[1]
THERE = "/srv/gpuctl"
#: Where the tests look for our programs in a build folder.
PROGRAMS = {"daemon/gpuctld": "/usr/bin/gpuctld", "agent/gpuagent": "/usr/bin/gpuagent", "client/cli/gpuctl": "/usr/bin/gpuctl"}
HOUR = 3600.0


def test_no_hostile_job_gets_through(cluster: Cluster, request: pytest.FixtureRequest) -> None:
    host = cluster.machine()
    long = bool(request.config.getoption("--long"))
    for folder in ("faults", "faults/neighbours", "e2e"):
        for source in sorted((TESTS / folder).glob("*.py")):
            host.write(f"{THERE}/tests/{folder}/{source.name}", source.read_text())
    host.write(f"{THERE}/tests/conftest.py", (TESTS / "conftest.py").read_text())
    host.write(f"{THERE}/pytest.ini", (TESTS.parent / "pytest.ini").read_text())
    for place, program in PROGRAMS.items():
        host.run(f"mkdir -p $(dirname {THERE}/build/{place}) && ln -s {program} {THERE}/build/{place}")
    variables = f"GPUCTL_BUILD={THERE}/build GPUCTL_TEST_SLOWNESS=10"  # a machine may be emulated
    said = host.run(
        f"cd {THERE} && {variables} python3 -m pytest -q -p no:cacheprovider {'--long' if long else ''} tests/faults/neighbours",
        patience=4 * HOUR if long else HOUR,
    )
    assert re.search(r"\n[1-9][0-9]* passed in ", said), said  # none failed, and none was skipped
