# SPDX-License-Identifier: Apache-2.0
"""Secrets where jobs run as their owners, and in warm workers: they are the rank's alone, and gone with it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import Cluster, eventually
from owners import PYTHON, RUN_AS, cluster_of, needs_owners
from slowness import patient
from vault import digest, put, tells, told

WARM_PATIENCE = patient(120.0)


@pytest.fixture
def owners() -> Iterator[Cluster]:
    with cluster_of([2], "--run-as", "owner", "--python", PYTHON) as cluster:
        yield cluster


@needs_owners
def test_a_secret_as_a_file_is_its_owners_alone(owners: Cluster, tmp_path: Path) -> None:
    ann, eve, value = owners.user("ann"), owners.user("eve"), secrets.token_urlsafe(24)
    put(ann, "KEY", value)
    script = "import os, signal; print(os.environ['KEY_FILE'], flush=True); signal.pause()"
    job = ann.submit([PYTHON, "-c", script], secrets=["KEY", "KEY:file"])
    path = Path(eventually(lambda: owners.api.log(job).strip(), "the rank to say where its file is"))
    status = path.stat()
    assert status.st_mode & 0o777 == 0o400 and status.st_uid >= 1000
    thief = f"cat {path} || echo refused; ls {path.parent} || echo hidden; "
    thief += "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -c ^KEY="
    assert told(owners, eve.submit(["sh", "-c", f"({thief}) 2>/dev/null; true"])).split() == ["refused", "hidden", "0"]
    assert told(owners, ann.submit(tells("KEY_FILE", files=True), secrets=["KEY:file"])) == f"KEY_FILE 0o400 True {digest(value)}"
    owners.api.post(f"/v1/jobs/{job}/cancel")
    owners.api.wait(job)
    eventually(lambda: not path.exists(), "the file to go with the attempt")


@pytest.mark.parametrize("run_as", RUN_AS)
def test_warm_workers_get_secrets_when_they_become_ranks(run_as: str) -> None:
    with cluster_of([1], "--run-as", run_as, "--python", PYTHON, "--warm-memory", "2048", "--preload", "json") as cluster:
        ann, value = cluster.user("ann"), secrets.token_urlsafe(24)
        put(ann, "WARM", value)

        def warm() -> bool:
            job = ann.submit(["python3", *tells("WARM", "WARM_FILE")[1:]], secrets=["WARM", "WARM:file"])
            said = told(cluster, job).splitlines()
            assert said[0] == f"WARM {digest(value)}" and said[1] != "WARM_FILE none"
            return re.findall(r'attempt started attempt_id=\d+ start="([^"]*)"', cluster.agents[0].said())[-1:] == ["warm"]

        eventually(warm, "a warm start", WARM_PATIENCE)
        plain = told(cluster, ann.submit(["python3", *tells("WARM")[1:]]))
        assert plain == "WARM none"
