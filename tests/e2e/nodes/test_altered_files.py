# SPDX-License-Identifier: Apache-2.0
"""What a node keeps and runs for later jobs (A4): who alters it there, or a disk that does, is noticed before a job gets it."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import GPUAGENT, Api, Cluster
from owners import PYTHON, RUN_AS, cluster_of, needs_owners, passable_folder
from slowness import patient

#: The hash of a blob, other bytes for its place, and what runs a job with it and returns what it said.
Kind = tuple[str, bytes, Callable[[], str]]


@pytest.fixture(scope="module", params=RUN_AS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with cluster_of([1], "--run-as", request.param) as shared:
        yield shared


def tar(text: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("said.txt")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    return packed.getvalue()


def function(text: str) -> bytes:
    return b"gpuctl-function 1 python=%d.%d\n" % sys.version_info[:2] + pickle.dumps((str, (text,), {}))


def cached(cluster: Cluster, name: str) -> Path:
    return cluster.folder / "node0" / "payloads" / name


def alter(cluster: Cluster, name: str, data: bytes) -> None:
    """Keeps owner, mode and place: what a job of another could do that writes there."""
    assert cached(cluster, name).exists(), "it was used once"
    cached(cluster, name).write_bytes(data)


def said(api: Api, **spec: Any) -> str:
    job = api.post("/v1/jobs", {"gpus": 1, **spec})["id"]
    view = api.wait(job)
    assert view["state"] == "SUCCEEDED", (view, api.log(job, stream="stderr"))
    return api.log(job)


def returned(api: Api, **spec: Any) -> Any:
    job = api.post("/v1/jobs", {"gpus": 1, "python": PYTHON, **spec})["id"]
    view = api.wait(job)
    assert view["state"] == "SUCCEEDED", (view, api.log(job, stream="stderr"))
    return api.get(f"/v1/jobs/{job}/results")["results"][0]["json"]


def with_bundle(api: Api, text: bytes) -> Kind:
    data = tar(text)
    name = api.blob(data)
    return name, tar(b"altered!"), lambda: said(api, command=["cat", "said.txt"], bundle={"blob": name})


def with_file(api: Api, text: bytes) -> Kind:
    name = api.blob(text)
    return name, b"altered!", lambda: said(api, command=["cat", "said.txt"], files=[{"path": "said.txt", "blob": name}])


def with_payload(api: Api, text: bytes) -> Kind:
    name = api.blob(function(text.decode()))
    return name, function("altered!"), lambda: returned(api, function={"blob": name})


def modules(text: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(zipfile.ZipInfo("of_tests.py"), f"def said():\n    return {text!r}\n")
    return packed.getvalue()


def with_modules(api: Api, text: bytes) -> Kind:
    """A function of a module that comes with it."""
    name = api.blob(modules(text.decode()))
    call = api.blob(b"gpuctl-function 1 python=%d.%d\n" % sys.version_info[:2] + b"(cof_tests\nsaid\n)}t.")
    return name, modules("altered!"), lambda: returned(api, function={"blob": call, "modules": name})


@pytest.mark.parametrize("kind", [with_bundle, with_file, with_payload, with_modules])
def test_an_altered_blob_is_fetched_again_and_never_given_to_a_job(cluster: Cluster, kind: Callable[[Api, bytes], Kind]) -> None:
    name, other, run = kind(cluster.user("ann-of-tests"), b"original")
    assert run() == "original"
    alter(cluster, name, other)
    assert run() == "original"
    assert hashlib.sha256(cached(cluster, name).read_bytes()).hexdigest() == name
    assert f"payload damaged hash={name}" in cluster.agents[0].said()


def test_an_altered_runner_is_written_again_before_a_job_runs_it(cluster: Cluster) -> None:
    _, _, run = with_payload(cluster.user("ann-of-tests"), b"with the runner")
    assert run() == "with the runner"
    (program,) = (cluster.folder / "node0" / "runner").glob("*/gpuctl_runner.py")
    original = program.read_bytes()
    program.write_bytes(b"raise SystemExit(3)\n" + original)
    assert run() == "with the runner"
    assert program.read_bytes() == original
    assert f"program altered path={program}" in cluster.agents[0].said()


def test_they_are_roots_where_jobs_run_as_their_owners(cluster: Cluster) -> None:
    api = cluster.user("ann-of-tests")
    name, _, run = with_bundle(api, b"whose")
    run()
    (program,) = (cluster.folder / "node0" / "runner").glob("*/gpuctl_runner.py")
    for path, mode in ((cached(cluster, name), 0o600), (program, 0o644)):
        assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (os.geteuid(), mode)
    if "owner" in cluster.agent_arguments:
        folder = cluster.folder / "node0"
        tries = 'for f; do (true >>"$f") 2>/dev/null && echo GOT $f; done; echo tried $#'
        files = [program, program.parent / "json.py", folder / "payloads" / name, folder / "payloads" / "x"]
        assert said(api, command=["sh", "-c", tries, "sh", *map(str, files)]) == "tried 4\n"


@needs_owners
@pytest.mark.parametrize("part", ["", "payloads", "runner"])
def test_an_agent_of_root_refuses_a_folder_that_others_may_write_to(tmp_path: Path, part: str) -> None:
    with passable_folder() as folder:
        state = folder / "state"
        (state / part).mkdir(parents=True)
        os.chown(state / part, 4711, 4711)
        (tmp_path / "token").write_text("gct_x\n")
        words = ["--controller", "http://127.0.0.1:1", "--token-file", str(tmp_path / "token"), "--name", "node", "--cpu-slots", "1"]
        agent = subprocess.run(
            [str(GPUAGENT), *words, "--run-as", "owner", "--state", str(state), "--run", str(folder / "run"), "--devices", "none"],
            capture_output=True, text=True, timeout=patient(20),
        )  # fmt: skip
    assert agent.returncode != 0 and f"{state}/{part} can be written by others than root" in agent.stderr, agent.stderr
    assert "remedy: move it away" in agent.stderr
