# SPDX-License-Identifier: Apache-2.0
"""What a job brings with it: packages are installed and folders unpacked on its nodes, before it holds a GPU."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import subprocess
import tarfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import PYTHON, ROOT, Cluster, eventually
from packages import make_slow, make_wheel, pip_environment
from slowness import patient
from test_functions import environment

#: Environments are made under sanitized daemons on few cores.
BUILD_PATIENCE = patient(180.0)


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A folder of packages: the only ones that the agents' pip finds."""
    folder = tmp_path / "house"
    folder.mkdir()
    make_wheel(folder, "tinytool", "1.0", "WORD = 'one'\n")
    make_wheel(folder, "tinytool", "2.0", "WORD = 'two'\n")
    return folder


@pytest.fixture
def make_staged(make_cluster: Callable[..., Cluster], house: Path) -> Callable[..., Cluster]:
    """Like make_cluster; the agents' pip knows the house alone."""
    return lambda *slots, **options: make_cluster(*slots, agent_environment=pip_environment(house), **options)


def tar_of(files: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            member.mode = 0o755 if text.startswith("#!") else 0o644
            archive.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def put_blob(cluster: Cluster, content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    status, _, body = cluster.api.raw("PUT", f"/v1/blobs/{digest}", content)
    assert status in (200, 201), body
    return digest


# --- environments -------------------------------------------------------------------------------------------------------------


def test_packages_are_there_on_every_node(make_staged: Callable[..., Cluster]) -> None:
    cluster = make_staged(1, 1)
    command = ["python", "-c", "import tinytool, sys; print(tinytool.WORD, sys.prefix != sys.base_prefix)"]
    job = cluster.api.submit(command, 2, environment={"requirements": ["tinytool==1.0"]})
    assert cluster.api.wait(job, BUILD_PATIENCE)["state"] == "SUCCEEDED"
    assert [cluster.api.log(job, rank) for rank in (0, 1)] == ["one True\n", "one True\n"]
    assert cluster.api.events(job)[:3] == ["submitted", "staging", "placed"]
    again = cluster.api.submit(command, 2, environment={"requirements": ["tinytool==1.0"]})
    cluster.api.wait(again)
    assert "staging" not in cluster.api.events(again)
    other = cluster.api.submit(command, 1, environment={"requirements": ["tinytool>=2"]})
    assert cluster.api.wait(other, BUILD_PATIENCE)["state"] == "SUCCEEDED"
    assert cluster.api.log(other) == "two True\n"
    assert cluster.api.log(cluster_job(cluster, ["python", "-c", "import tinytool"]), stream="stderr").count("ModuleNotFoundError") == 1


def cluster_job(cluster: Cluster, command: list[str], **spec: Any) -> str:
    job = cluster.api.submit(command, **spec)
    cluster.api.wait(job, BUILD_PATIENCE)
    return job


def test_requirements_may_be_a_blob_and_functions_see_them(make_staged: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_staged(1)
    script = """
        from serverless_gpu import distributed

        @distributed(gpus=1, remote=True, requirements=["tinytool==2.0"], working_dir=False)
        def word():
            import tinytool
            return tinytool.WORD

        assert word.distributed() == ["two"]
        """
    path = tmp_path / "notebook.py"
    path.write_text(textwrap.dedent(script))
    ran = subprocess.run(
        [PYTHON, str(path)], env=environment(cluster, tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=BUILD_PATIENCE
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_no_gpu_is_held_and_progress_is_shown_while_an_environment_is_built(
    make_staged: Callable[..., Cluster], house: Path, tmp_path: Path
) -> None:
    cluster = make_staged(1)
    sign = tmp_path / "sign"
    make_slow(house, "slowtool", sign)
    job = cluster.api.submit(["python", "-c", "import slowtool; print(slowtool.WORD)"], environment={"requirements": ["slowtool"]})
    eventually((sign / "begun").exists, "the installation", BUILD_PATIENCE)
    view = eventually(lambda: "slowtool" in (cluster.api.job(job)["reason"] or "") and cluster.api.job(job), "progress")
    assert view["state"] == "STAGING" and "node0" in view["reason"], view
    assert not view["nodes"], view
    assert cluster.api.wait(cluster.api.submit(["true"]))["state"] == "SUCCEEDED", "the GPU is free for others"
    (sign / "go").touch()
    assert cluster.api.wait(job, BUILD_PATIENCE)["state"] == "SUCCEEDED"
    assert cluster.api.log(job) == "slow\n"


def test_agents_that_share_a_folder_build_an_environment_once(
    make_staged: Callable[..., Cluster], house: Path, tmp_path: Path
) -> None:
    cluster = make_staged(1, 1, agent=["--environments", str(tmp_path / "environments")])
    sign = tmp_path / "sign"
    make_slow(house, "slowtool", sign)
    spec = {"environment": {"requirements": ["slowtool"]}}
    wide = cluster.api.submit(["python", "-c", "import slowtool"], 2, **spec)
    narrow = cluster.api.submit(["python", "-c", "import slowtool"], 1, **spec)
    eventually((sign / "begun").exists, "the installation", BUILD_PATIENCE)
    (sign / "go").touch()
    assert cluster.api.wait(wide, BUILD_PATIENCE)["state"] == "SUCCEEDED"
    assert cluster.api.wait(narrow, BUILD_PATIENCE)["state"] == "SUCCEEDED"
    runs = [line.split() for line in (sign / "begun").read_text().splitlines()]
    assert len([words for words in runs if {"bdist_wheel", "install"} & set(words)]) == 1, runs  # an older pip installs without a wheel
    ready = [path for path in (tmp_path / "environments").iterdir() if (path / "bin" / "python").exists()]
    assert len(ready) == 1, ready


def test_what_pip_refuses_is_said_in_its_own_words(make_staged: Callable[..., Cluster]) -> None:
    cluster = make_staged(1)
    view = cluster.api.job(cluster_job(cluster, ["true"], environment={"requirements": ["nosuchtool==9.9"]}))
    assert (view["state"], view["cause"], view["exit_code"]) == ("FAILED", "STAGE_FAILED", 125), view
    assert view["reason"].startswith("node node0: ") and "No matching distribution found for nosuchtool==9.9" in view["reason"]
    assert "started" not in cluster.api.events(view["id"])


def test_a_python_that_no_node_has_is_refused_before_a_gpu_is_taken(make_staged: Callable[..., Cluster]) -> None:
    cluster = make_staged(1, 1)
    view = cluster.api.job(cluster_job(cluster, ["true"], environment={"requirements": [], "python": "2.6"}))
    assert (view["state"], view["cause"]) == ("FAILED", "STAGE_FAILED"), view
    assert "2.6" in view["reason"] and "--python" in view["reason"], view
    assert cluster.api.events(view["id"])[-1] == "failed" and "placed" not in cluster.api.events(view["id"])


def test_a_cancel_ends_the_installation(make_staged: Callable[..., Cluster], house: Path, tmp_path: Path) -> None:
    cluster = make_staged(1)
    sign = tmp_path / "sign"
    make_slow(house, "slowtool", sign)
    job = cluster.api.submit(["true"], environment={"requirements": ["slowtool"]})
    eventually((sign / "begun").exists, "the installation", BUILD_PATIENCE)
    assert cluster.api.post(f"/v1/jobs/{job}/cancel")["state"] == "CANCELED"
    eventually(lambda: not processes_naming(cluster.folder), "the installation to end")


def processes_naming(folder: Path) -> list[str]:
    """The command lines of processes that build environments below the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(folder) in line and ("gpuctl_environment" in line or "pip" in line.split()):
                found.append(line)
    return found


def test_a_killed_agent_and_a_killed_controller_go_on_with_it(
    make_staged: Callable[..., Cluster], house: Path, tmp_path: Path
) -> None:
    cluster = make_staged(1)
    sign = tmp_path / "sign"
    make_slow(house, "slowtool", sign)
    job = cluster.api.submit(["python", "-c", "import slowtool; print(slowtool.WORD)"], environment={"requirements": ["slowtool"]})
    eventually((sign / "begun").exists, "the installation", BUILD_PATIENCE)
    cluster.agents[0].kill(signal.SIGKILL)
    eventually(lambda: not processes_naming(cluster.folder), "the installation to end with its agent")
    (sign / "begun").unlink()
    cluster.agents[0].start()
    eventually((sign / "begun").exists, "another installation", BUILD_PATIENCE)
    cluster.controller.kill(signal.SIGKILL)
    cluster.start_controller()
    assert cluster.api.job(job)["state"] in ("QUEUED", "STAGING")
    (sign / "go").touch()
    assert cluster.api.wait(job, BUILD_PATIENCE)["state"] == "SUCCEEDED"
    assert cluster.api.log(job) == "slow\n"


def test_an_environment_that_was_removed_is_built_again(make_staged: Callable[..., Cluster], tmp_path: Path) -> None:
    folder = tmp_path / "environments"
    cluster = make_staged(1, agent=["--environments", str(folder)])
    spec = {"environment": {"requirements": ["tinytool==1.0"]}}
    cluster_job(cluster, ["true"], **spec)
    subprocess.run(["rm", "-rf", *map(str, folder.iterdir())], check=True)
    job = cluster_job(cluster, ["python", "-c", "import tinytool; print(tinytool.WORD)"], **spec)
    assert cluster.api.job(job)["state"] == "SUCCEEDED", cluster.api.job(job)
    assert cluster.api.log(job) == "one\n"


# --- bundles ------------------------------------------------------------------------------------------------------------------


def test_a_bundle_is_the_working_folder_of_every_node(make_staged: Callable[..., Cluster]) -> None:
    cluster = make_staged(1, 1)
    bundle = tar_of({
        "train.py": "import os, helper, inner\nprint(helper.WORD, inner.WORD, open('data/list.txt').read(), os.getcwd()[-4:])\n",
        "helper.py": "WORD = 'beside'\n",
        "src/inner.py": "WORD = 'inside'\n",
        "data/list.txt": "a b",
        "hello": "#!/bin/sh\necho hello\n",
    })  # fmt: skip
    spec: dict[str, Any] = {"bundle": {"blob": put_blob(cluster, bundle), "python_path": ["src"]}}
    job = cluster_job(cluster, ["python", "train.py"], gpus=2, **spec)
    assert [cluster.api.log(job, rank) for rank in (0, 1)] == ["beside inside a b work\n"] * 2, cluster.api.log(job, stream="stderr")
    job = cluster_job(cluster, ["./hello"], files=[{"path": "helper.py", "text": "laid over"}], **spec)
    assert cluster.api.log(job) == "hello\n"
    job = cluster_job(cluster, ["cat", "helper.py"], files=[{"path": "helper.py", "text": "laid over"}], **spec)
    assert cluster.api.log(job) == "laid over"


def test_a_bundle_that_is_no_archive_fails_the_job_in_the_words_of_tar(make_staged: Callable[..., Cluster]) -> None:
    cluster = make_staged(1, 1)
    blob = put_blob(cluster, b"this is no archive" * 100)
    for gpus in (1, 2):
        view = cluster.api.job(cluster_job(cluster, ["true"], gpus=gpus, bundle={"blob": blob}))
        assert (view["state"], view["cause"]) == ("FAILED", "EXEC_FAILED"), view
        assert "the bundle cannot be unpacked: tar: " in view["reason"], view


# --- from a notebook ----------------------------------------------------------------------------------------------------------


def test_the_notebooks_folder_and_variables_travel(make_staged: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_staged(1, 1)
    folder = tmp_path / "project"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "__init__.py").write_text("")
    (folder / "lib" / "steps.py").write_text("def double(x):\n    return 2 * x\n")
    (folder / "table.json").write_text("[1, 2, 3]")
    (folder / "secret.bin").write_bytes(os.urandom(100))
    (folder / ".gitignore").write_text("*.bin\n")
    (folder / "notebook.py").write_text(textwrap.dedent("""
        import json, os
        from lib.steps import double
        from serverless_gpu import distributed

        os.environ["MY_SETTING"] = "set in the notebook"
        os.environ["HF_TOKEN"] = "hf_verysecret"

        @distributed(gpus=2, remote=True)
        def work():
            with open("table.json") as file:
                table = json.load(file)
            return [double(x) for x in table], sorted(os.listdir(".")), os.environ["MY_SETTING"], os.environ["HF_TOKEN"]

        for value in work.distributed():
            assert value[0] == [2, 4, 6], value
            assert "table.json" in value[1] and "secret.bin" not in value[1], value
            assert value[2:] == ("set in the notebook", "hf_verysecret"), value
        """))
    ran = subprocess.run(
        [PYTHON, "notebook.py"], env=environment(cluster, tmp_path), cwd=folder, capture_output=True, text=True, timeout=BUILD_PATIENCE
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "hf_verysecret" not in ran.stdout + ran.stderr
    shown = json.dumps([cluster.api.job(job["id"]) for job in cluster.api.get("/v1/jobs")["jobs"]])
    assert "hf_verysecret" not in shown and "MY_SETTING" in shown
    for log in cluster.folder.glob("*.log"):
        assert "hf_verysecret" not in log.read_text(errors="replace"), log


def lend_client(site: Path) -> None:
    """What the client imports, without what would make it part of the notebook's list of packages."""
    packages = next((ROOT / ".venv" / "lib").glob("python3*/site-packages"))
    for name in ("cloudpickle", "requests", "urllib3", "idna", "certifi", "charset_normalizer", "pathspec"):
        (site / name).symlink_to(packages / name)


@pytest.mark.thorough
def test_the_notebooks_packages_are_there_when_the_nodes_have_another_python(
    make_staged: Callable[..., Cluster], house: Path, tmp_path: Path
) -> None:
    """The node's own Python is bare; the notebook's has a package of ours."""
    bare = tmp_path / "bare"
    subprocess.run([PYTHON, "-m", "venv", str(bare)], check=True)
    own = tmp_path / "own"
    subprocess.run([PYTHON, "-m", "venv", str(own)], check=True)
    pip = [str(own / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-index", "--find-links", str(house), "tinytool==1.0"]
    subprocess.run(pip, check=True)
    lend_client(next((own / "lib").glob("python3*/site-packages")))
    cluster = make_staged(1, agent=["--python", str(bare / "bin" / "python")])
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notebook.py").write_text(textwrap.dedent("""
        from serverless_gpu import distributed

        @distributed(gpus=1, remote=True)
        def word():
            import tinytool
            return tinytool.WORD

        assert word.distributed() == ["one"]
        """))
    ran = subprocess.run(
        [str(own / "bin" / "python"), "notebook.py"],
        env=environment(cluster, tmp_path), cwd=folder, capture_output=True, text=True, timeout=BUILD_PATIENCE,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
