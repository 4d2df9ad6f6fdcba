# SPDX-License-Identifier: Apache-2.0
"""A real agent before a controller of paper: what it prepares for jobs, and what their ranks then find."""

from __future__ import annotations

import base64
import io
import json
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import eventually
from packages import make_source, make_wheel
from paper_controller import Node, Paper


def output_of(report: dict[str, Any]) -> str:
    return b"".join(base64.b64decode(tail["base64"]) for tail in report.get("tails", []) if tail["stream"] == "stdout").decode()


def tar_of(**files: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(path.replace("__", "/").replace("_py", ".py"))
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return data.getvalue()


def make_endless(folder: Path, name: str, started: Path) -> None:
    """A source distribution whose build never ends."""
    backend = f"import pathlib, time\ndef build_wheel(*a, **k):\n    pathlib.Path({str(started)!r}).touch()\n    time.sleep(600)\n"
    make_source(folder, name, backend)


@pytest.fixture
def paper() -> Iterator[Paper]:
    made = Paper()
    yield made
    made.stop()


@pytest.fixture
def node(tmp_path: Path, paper: Paper) -> Iterator[Node]:
    made = Node(tmp_path, paper)
    yield made
    paper.change(live=[], orders=[], wanted=[])
    made.stop()


def test_a_job_finds_its_environment_and_its_bundle(node: Node, paper: Paper) -> None:
    make_wheel(node.wheels, "extra", "1.5")
    bundle = paper.put(tar_of(top_py="where = 'bundle'", src__inner_py="where = 'src'", replaced_txt="old"))
    paper.want("all", requirements="extra==1.5\n", blobs=(bundle,))
    assert paper.end_of("all")["state"] == "ready", paper.staged
    code = (
        "import os, sys, top, inner, extra, json; print(json.dumps([top.where, inner.where, extra.version, sys.prefix, "
        "os.environ['VIRTUAL_ENV'], os.environ['PATH'].split(':')[0], os.environ['PYTHONPATH'], os.getcwd(), open('mine/a').read()]))"
    )
    report = paper.run(
        (1 << 32) + 1,
        {
            "command": ["python", "-c", code],
            "environment": {"requirements": ["extra==1.5"]},
            "bundle": {"blob": bundle, "python_path": ["src", "."]},
            "files": [{"path": "mine/a", "text": "laid over"}],
            "env": {"PATH": "/bin:/usr/bin", "PYTHONPATH": "/own", "VIRTUAL_ENV": "/elsewhere"},
        },
    )
    assert report["kind"] == "exited" and report["ranks"][0]["code"] == 0, report
    top, inner, version, prefix, venv, path, python_path, cwd, text = json.loads(output_of(report))
    environment = next((node.environments / "names").iterdir()).resolve()
    assert (top, inner, version, text) == ("bundle", "src", "1.5", "laid over")
    assert Path(prefix) == Path(venv) == environment and path == f"{environment}/bin"
    assert python_path.partition("/watch:")[2] == f"{cwd}:{cwd}/src:/own", "gpuctl_site.py, the bundle's folders, then the job's"


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE], ids=["character", "block", "pipe"])
def test_a_bundle_with_a_device_or_a_pipe_ends_the_attempt(node: Node, paper: Paper, kind: bytes) -> None:
    """A17: an agent that is root would make the device."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        entry = tarfile.TarInfo("special")
        entry.type, entry.devmajor, entry.devminor, entry.mode = kind, 1, 3, 0o666
        archive.addfile(entry)
    report = paper.run((1 << 32) + 1, {"command": ["sh", "-c", "echo ran"], "bundle": {"blob": paper.put(data.getvalue())}})
    assert report["cause"] == "EXEC_FAILED" and "ran" not in output_of(report)
    # who is not root cannot make a device, and tar says so
    assert "the bundle cannot be unpacked" in report["text"]


def test_a_bundle_that_is_no_archive_ends_the_attempt_with_the_words_of_tar(node: Node, paper: Paper) -> None:
    bundle = paper.put(b"this is no archive" * 1000)
    report = paper.run((1 << 32) + 1, {"command": ["true"], "bundle": {"blob": bundle}})
    assert (report["kind"], report["cause"]) == ("exited", "EXEC_FAILED"), report
    assert "This does not look like a tar archive" in report["text"], report


def test_an_environment_that_is_gone_is_declined(node: Node, paper: Paper) -> None:
    report = paper.run((1 << 32) + 1, {"command": ["true"], "environment": {"requirements": ["extra==1.5"]}})
    assert report["kind"] == "declined" and "the environment is gone" in report["text"], report


def test_what_cannot_be_had_fails_with_pips_words(node: Node, paper: Paper) -> None:
    paper.want("a", requirements="not-to-be-had==1.0\n")
    end = paper.end_of("a")
    assert end["state"] == "failed" and end["by_user"] is True and "not-to-be-had==1.0" in end["text"]
    paper.want("b", blobs=("0" * 64,))
    end = paper.end_of("b")
    assert end["state"] == "failed" and not end.get("by_user") and not end.get("lasting") and "cannot be fetched" in end["text"]
    paper.want("c", requirements="\n", python_version="3.99")
    end = paper.end_of("c")
    assert end["state"] == "failed" and not end.get("by_user") and end["lasting"] and "the job needs 3.99" in end["text"]
    paper.want("d", requirements="\n", python="/no/such/python")
    end = paper.end_of("d")
    assert end["state"] == "failed" and not end.get("by_user") and end["lasting"] and "/no/such/python" in end["text"]


def test_what_is_not_wished_any_more_is_stopped_and_progress_is_told(node: Node, paper: Paper) -> None:
    started = node.folder / "started"
    make_endless(node.wheels, "endless", started)
    paper.want("a", requirements="endless==1.0\n")
    eventually(started.exists, "the build")
    eventually(lambda: any("endless" in row.get("text", "") for row in paper.staged), "progress")
    assert node.builders()
    for pid in node.builders():
        assert b"hunter2" not in Path(f"/proc/{pid}/environ").read_bytes()
    paper.change(wanted=[])
    eventually(lambda: not node.builders(), "the end of the build")
    assert not paper.ends("a")


def test_a_build_ends_with_its_agent_and_the_next_begins_it_again(node: Node, paper: Paper) -> None:
    started = node.folder / "started"
    make_endless(node.wheels, "endless", started)
    paper.want("a", requirements="endless==1.0\n")
    eventually(started.exists, "the build")
    node.agent.kill(signal.SIGKILL)
    eventually(lambda: not node.builders(), "the end of the build")
    (node.wheels / "endless-1.0.tar.gz").unlink()
    make_wheel(node.wheels, "endless", "1.0")
    node.agent.start()
    assert paper.end_of("a")["state"] == "ready"


def test_a_node_that_is_not_known_registers_and_says_it_again(node: Node, paper: Paper) -> None:
    eventually(lambda: paper.registered == 1, "the agent")
    paper.forgotten = True
    paper.want("a", requirements="\n")
    assert paper.end_of("a")["state"] == "ready"
    assert paper.registered == 2


def test_an_end_that_was_told_is_a_new_wish_when_it_is_wished_again(node: Node, paper: Paper) -> None:
    paper.want("a", requirements="extra==1.5\n")
    assert paper.end_of("a")["state"] == "failed"
    eventually(lambda: len(node.builders()) == 0, "the end of the build")
    make_wheel(node.wheels, "extra", "1.5")

    def again() -> bool:
        paper.change()
        return any(row["state"] == "ready" for row in paper.ends("a"))

    eventually(again, "another try")


def test_an_environment_that_a_rank_uses_stays_when_the_agent_is_gone(tmp_path: Path, paper: Paper) -> None:
    first = Node(tmp_path, paper, "--environments-limit", "1")
    paper.want("a", requirements="\n")
    assert paper.end_of("a")["state"] == "ready"
    paper.change(wanted=[])
    command = ["python", "-c", "import time; time.sleep(600)"]
    spec = {"gpus": 1, "gpu_type": "cpu", "command": command, "environment": {"requirements": [""]}}
    epoch = (1 << 32) + 1
    order = {
        "epoch": epoch, "phase": "run", "job_id": "j" * 16, "attempt": 1, "node_rank": 0, "nodes": 1, "first_rank": 0, "local_ranks": 1,
        "world": 1, "devices": [0], "spec": spec,
    }  # fmt: skip
    paper.change(live=[epoch], orders=[order])
    eventually(lambda: any(row["kind"] == "running" for row in paper.reports), f"the rank: {paper.reports}")
    first.agent.kill(signal.SIGKILL)
    environment = next((first.environments / "names").iterdir()).resolve()
    marker = json.loads((environment / "gpuctl.json").read_text())
    (environment / "gpuctl.json").write_text(json.dumps({**marker, "size_bytes": 1 << 60}))
    first.agent.start()
    eventually(lambda: paper.registered == 2, "the agent")
    assert environment.exists()
    paper.change(live=[], orders=[])
    eventually(lambda: not first.folder.joinpath("run", str(epoch)).exists(), "the end of the attempt")
    first.stop()
    first.agent.start()
    eventually(lambda: paper.registered == 3, "the agent")
    assert not environment.exists()
    paper.change(live=[], orders=[])
    first.stop()
