# SPDX-License-Identifier: Apache-2.0
"""A rank of a function job as the agent starts it: a real process of agent/python/gpuctl_runner.py in a folder of its own."""

import io
import json
import os
import pickle
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from serverless_gpu._internal.pack.payload import dump
from slowness import patient

ROOT = Path(__file__).resolve().parents[3]
RUNNER = ROOT / "agent" / "python" / "gpuctl_runner.py"
LINE = "import sys; sys.path.insert(0, sys.argv[1]); import gpuctl_runner; gpuctl_runner.main()"
VERSION = "{}.{}".format(*sys.version_info[:2])
DEADLINE_S = patient(50.0)
HEADER = f"gpuctl-function 1 python={VERSION}\n".encode()


def payload_of(source: str, *args: object, **names: object) -> bytes:
    """The payload of a call of `call`, which the source defines as a notebook would: in `__main__`, among the names."""
    notebook: dict = {"__name__": "__main__", **names}
    exec(textwrap.dedent(source), notebook)
    args = tuple(notebook[arg.name]() if isinstance(arg, Made) else arg for arg in args)
    pickled = io.BytesIO()
    dump((notebook["call"], args, {}), pickled)
    return HEADER + pickled.getvalue()


class Made:
    """An argument: an instance of a class of the notebook."""

    def __init__(self, name: str) -> None:
        self.name = name


class Rank:
    """One rank in its own folder: its process, what it printed, and the files that it left."""

    def __init__(self, folder: Path, payload: bytes, *, rank: int = 0, python: str = sys.executable, fds: tuple = (), **env: str) -> None:
        self.rank = rank
        self.folder = folder
        self.results = folder / "results"
        self.errors = folder / f"errors-{rank}.json"
        (folder / f"function-{rank}").write_bytes(payload)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "GPUCTL_FUNCTION": str(folder / f"function-{rank}"),
            "GPUCTL_RESULT_DIR": str(self.results),
            "GPUCTL_RANK": str(rank),
            "GPUCTL_NODE": "node-seven",
            "TORCHELASTIC_ERROR_FILE": str(self.errors),
            "RANK": str(rank),
            **env,
        }
        self.process = subprocess.Popen(
            [python, "-c", LINE, str(RUNNER.parent)],
            env=self.environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=fds,
        )
        self.out = self.err = ""

    def wait(self) -> int:
        """The exit code; the rank is killed when it takes too long."""
        try:
            out, err = self.process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            pytest.fail(f"rank {self.rank} hangs: {err.decode()}")
        self.out, self.err = out.decode(), err.decode()
        return self.process.returncode

    def files(self) -> list:
        """The names of its result files."""
        return sorted(path.name for path in self.results.iterdir()) if self.results.exists() else []

    def value(self) -> Any:
        """What it returned."""
        assert self.process.returncode == 0, self.err
        return pickle.loads((self.results / f"{self.rank}.pickle").read_bytes())

    def error(self) -> dict:
        """What it raised."""
        return pickle.loads((self.results / f"{self.rank}.error.pickle").read_bytes())

    def error_file(self) -> dict:
        """The message of its file in torch elastic's form."""
        return json.loads(self.errors.read_text())["message"]


def ran(folder: Path, source: str, *args: object, **env: Any) -> Rank:
    """A rank that has ended."""
    rank = Rank(folder, payload_of(source, *args), **env)
    rank.wait()
    return rank


def eventually(what: Callable[[], object], subject: str) -> None:
    """Polls until what() is true."""
    end = time.monotonic() + DEADLINE_S
    while not what():
        assert time.monotonic() < end, f"never: {subject}"
        time.sleep(0.005)
