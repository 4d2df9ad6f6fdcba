# SPDX-License-Identifier: Apache-2.0
"""The instance of one's own, with the real programs: started by the first call, waited for when it dies and comes back elsewhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, SOURCES
from slowness import patient

BUILD = Path(os.environ.get("GPUCTL_BUILD", ROOT / "build"))
GPUCTL = BUILD / "client" / "cli" / "gpuctl"
PATIENCE_S = patient(60.0)

pytestmark = pytest.mark.skipif(not GPUCTL.exists(), reason="the programs are not built")


@pytest.fixture
def environment(clean: Path, kept_modules: Path) -> Iterator[dict[str, str]]:
    """What a person has who has configured nothing. Whatever was started ends with the test."""
    (clean / "run").mkdir(mode=0o700)
    env = {
        **os.environ,
        "XDG_RUNTIME_DIR": str(clean / "run"),
        "GPUCTL_LIBEXEC": str(GPUCTL.parent),
        "XDG_STATE_HOME": str(clean / "state"),
        "XDG_CACHE_HOME": str(kept_modules),
        "PYTHONPATH": str(SOURCES),
        "HERE": str(clean),
    }
    yield env
    subprocess.run([GPUCTL, "down", "--force"], env=env, capture_output=True, timeout=PATIENCE_S)


def eventually(condition: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.02)


def start(script: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_the_first_call_starts_an_instance_and_the_next_one_uses_it(environment: dict[str, str]) -> None:
    script = """
        import sys
        from serverless_gpu import distributed

        @distributed(gpus=1, remote=True, requirements=None)
        def where():
            return sys.executable

        assert where.distributed() == [sys.executable]
        assert distributed(gpus=1)(lambda: sys.executable).distributed() == [sys.executable]
        """
    for first in (True, False):
        ran = start(script, environment)
        _, said = ran.communicate(timeout=PATIENCE_S)
        assert ran.returncode == 0, said
        assert ("started a controller" in said) is first, said


def test_an_instance_that_dies_and_comes_back_on_another_port_is_found_again(environment: dict[str, str]) -> None:
    folder = Path(environment["HERE"])
    ran = start(
        """
        import os, time
        from serverless_gpu import distributed

        @distributed(gpus=1)
        def count(folder):
            for number in range(2):
                print("line", number, flush=True)
                while not os.path.exists(f"{folder}/go{number}"):
                    time.sleep(0.02)
            return "done"

        print(count.distributed(os.environ["HERE"]))
        """,
        environment,
    )
    endpoint = folder / "state" / "gpuctl" / "endpoint"
    assert ran.stdout is not None and ran.stderr is not None
    assert ran.stdout.readline() == "line 0\n", ran.stderr.read()
    before = json.loads(endpoint.read_text())
    os.kill(before["pid"], signal.SIGKILL)
    subprocess.run(["tail", "--pid", str(before["pid"]), "-f", "/dev/null"], check=True, timeout=60)  # until it has ended
    (folder / "go0").touch()
    said = ""
    while "cannot be reached" not in said:
        line = ran.stderr.readline()
        assert line, said
        said += line
    again = subprocess.run([GPUCTL, "up"], env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
    assert again.returncode == 0, again.stderr
    assert json.loads(endpoint.read_text())["pid"] != before["pid"]
    assert ran.stdout.readline() == "line 1\n"
    (folder / "go1").touch()
    out, rest = ran.communicate(timeout=PATIENCE_S)
    assert (ran.returncode, out) == (0, "['done']\n"), said + rest
    assert (said + rest).count("answers again") == 1 and before["url"] in said
