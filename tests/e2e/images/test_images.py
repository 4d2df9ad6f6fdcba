# SPDX-License-Identifier: Apache-2.0
"""Jobs in container images: what their ranks find there, as whom they run, and what stays of what they do."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Api, Cluster, eventually, make_tls, run_gpuctl
from owners import MAY_MOUNT, passable_folder
from registry import Registry, busybox, home, layer_of

#: Environments of the same functions: an agent that is root in both, with TLS in the second, and one that is not.
AGENTS = ["agent", "owner", "nobody"] if MAY_MOUNT else ["agent"]


def python_layer() -> bytes:
    """The Python of the tests with its standard library and its shared libraries: nothing of ours, and no packages."""
    program = Path(os.path.realpath(sys.executable))
    extensions = Path(sysconfig.get_paths()["stdlib"], "lib-dynload")
    libraries = set()
    for file in [program, *extensions.glob("*.so")]:
        said = subprocess.run(["ldd", file], capture_output=True, text=True).stdout
        libraries |= set(re.findall(r"(/\S+) \(0x", said))
    files: dict[str, bytes | str | Path] = {library[1:]: Path(os.path.realpath(library)).read_bytes() for library in libraries}
    files[str(program)[1:]] = program.read_bytes()
    files["bin/python3"] = str(program)
    stdlib = Path(sysconfig.get_paths()["stdlib"])
    for path in stdlib.iterdir():
        if path.name not in ("test", "site-packages", "dist-packages", "idlelib", "ensurepip", "tkinter"):
            files[str(path)[1:]] = Path(os.path.realpath(path))
    return layer_of(files)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    made = Registry(tmp_path_factory.mktemp("registry") / "registry")
    made.push("tools:1", [layer_of(busybox()), layer_of({"etc/second": b"of the second layer\n"})], Env=["PATH=/bin", "OF_IMAGE=yes"])
    yield made
    made.stop()


def start_as_nobody(cluster: Cluster) -> None:
    """An agent without rights from the beginning, whose programs it can execute wherever the build lies."""
    programs = cluster.folder / "programs"
    programs.mkdir()
    for program in (cluster.gpuagent, cluster.gpuagent.parent / "gpushim"):
        (programs / program.name).write_bytes(program.read_bytes())
        (programs / program.name).chmod(0o755)
    cluster.gpuagent = programs / "as-nobody"
    cluster.gpuagent.write_text(f'#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups {programs}/gpuagent "$@"\n')
    cluster.gpuagent.chmod(0o755)
    state = cluster.folder / "state"
    state.mkdir()
    os.chown(state, 65534, 65534)
    os.chown(cluster.folder / "node.token", 65534, 65534)
    cluster.add_agent("node0", 2, "--state", str(state / "agent"), "--run", str(state / "run"), "--python", "/usr/bin/python3")
    cluster.wait_ready()


@pytest.fixture(scope="module", params=AGENTS)
def cluster(request: pytest.FixtureRequest, registry: Registry) -> Iterator[Cluster]:
    with passable_folder() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", home(folder, registry.address))
        (folder / "data").mkdir()
        (folder / "data" / "set").write_text("of the volume\n")
        (folder / "data").chmod(0o777)
        options = [f"--volume=data={folder}/data"]
        if request.param == "nobody":
            shared = Cluster(folder, [], agent=options)
            shared.start()
            start_as_nobody(shared)
        else:
            tls = make_tls(folder) if request.param == "owner" else []
            shared = Cluster(folder, [2], tls, agent=[*options, "--run-as", request.param]).start()
        yield shared
        shared.stop()


def settings_of(cluster: Cluster, person: Api) -> dict[str, str]:
    file = cluster.folder / "person.token"
    file.touch(0o600)
    file.write_text(f"{person.token}\n")
    authority = {"GPUCTL_CACERT": str(cluster.cacert)} if cluster.cacert is not None else {}
    return {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(file), **authority}


def gpuctl(cluster: Cluster, person: Api, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_gpuctl(*arguments, env=settings_of(cluster, person))


def end_of(cluster: Cluster, registry: Registry, script: str, **spec: Any) -> tuple[Any, str]:
    api = cluster.user("ann-of-tests")
    job = api.submit(["sh", "-c", script], **{"image": f"{registry.address}/tools:1", **spec})
    return api.wait(job), job


def ran(cluster: Cluster, registry: Registry, script: str, **spec: Any) -> str:
    view, job = end_of(cluster, registry, script, **spec)
    assert view["state"] == "SUCCEEDED", (view, cluster.api.log(job, stream="stderr"))
    return cluster.api.log(job)


def test_a_job_sees_the_files_and_variables_of_its_image(cluster: Cluster, registry: Registry) -> None:
    said = ran(cluster, registry, "cat /etc/image /etc/second; echo $OF_IMAGE $PATH $RANK $GPUCTL_NODE; ls /usr /lib 2>/dev/null || true")
    assert said == "of the image\nof the second layer\nyes /bin 0 node0\n"


def test_the_spec_says_which_image_the_tag_was_and_all_later_attempts_have_that_one(cluster: Cluster, registry: Registry) -> None:
    image = registry.push("moves:latest", [layer_of(busybox())])
    first = registry.digest
    api = cluster.user("ann-of-tests")
    job = api.submit(["sh", "-c", "cat /etc/image; exit $((2 - GPUCTL_ATTEMPT))"], image=image, retries=1, hold=True)
    assert api.job(job)["spec"]["image"] == f"{image}@{first}"
    registry.push("moves:latest", [layer_of({**busybox(), "etc/image": b"another\n"})])
    api.post(f"/v1/jobs/{job}/release")
    view = api.wait(job)
    assert (view["state"], view["attempt"], api.log(job)) == ("SUCCEEDED", 2, "of the image\n")
    assert ran(cluster, registry, "cat /etc/image", image=image) == "another\n", "a later job has what the tag is now"


def test_ranks_share_what_they_write_and_the_image_stays_as_it_is(cluster: Cluster, registry: Registry) -> None:
    script = "test $RANK = 1 && touch /tmp/of-rank-1; while ! test -e /tmp/of-rank-1; do true; done; touch /dev/shm/x; pwd; touch here"
    ran(cluster, registry, script, gpus=2)
    assert "of-rank-1" not in ran(cluster, registry, "ls -a /tmp /dev/shm; ls")


def test_exit_codes_and_signals_are_those_of_the_program(cluster: Cluster, registry: Registry) -> None:
    assert end_of(cluster, registry, "exit 7")[0]["exit_code"] == 7
    killed, _ = end_of(cluster, registry, "kill -SEGV $$")
    assert killed["exit_code"] == 128 + signal.SIGSEGV and "killed by signal 11" in killed["reason"]
    api = cluster.user("ann-of-tests")
    missing = api.wait(api.submit(["no-such-program"], image=f"{registry.address}/tools:1"))
    assert missing["exit_code"] == 127 and "command not found: no-such-program" in missing["reason"]


def test_a_canceled_job_ends_by_its_own_handler(cluster: Cluster, registry: Registry) -> None:
    api = cluster.user("ann-of-tests")
    job = api.submit(
        ["sh", "-c", "trap 'echo saved; exit 3' TERM; echo ready; while true; do sleep 0.05; done"], image=f"{registry.address}/tools:1"
    )
    eventually(lambda: "ready" in api.log(job), "the job to run")
    api.post(f"/v1/jobs/{job}/cancel")
    assert api.wait(job)["state"] == "CANCELED" and api.log(job) == "ready\nsaved\n"


def test_what_a_job_has_without_an_image_it_has_in_one(cluster: Cluster, registry: Registry) -> None:
    api = cluster.user("ann-of-tests")
    api.call("PUT", "/v1/secrets/WORD", {"value": "secret-word"})
    script = (
        "cat /data/set $WORD_FILE | wc -c; test -S $GPUCTL_SOCKET && echo kept >$GPUCTL_OUTPUT_DIR/kept; cat in; id -u; "
        "head -1 /proc/self/comm; wc -c </etc/resolv.conf >/dev/null && echo names"
    )
    view, job = end_of(
        cluster, registry, script, volumes=["data:/data:ro"], secrets=["WORD:file"], files=[{"path": "in", "text": "file\n"}]
    )
    assert view["state"] == "SUCCEEDED", (view, api.log(job, stream="stderr"))
    lines = api.log(job).splitlines()
    assert [lines[0], lines[1], lines[3], lines[4]] == ["25", "file", "head", "names"] and len(lines) == 5
    owner = cluster.agents[0].arguments[-1] == "owner"
    assert (lines[2] != "0") == owner, "ranks are root in an image only where the agent's user is what they run as"
    files = api.get(f"/v1/jobs/{job}/files")
    assert "kept" in json.dumps(files)


def test_checkpoints_are_on_the_volume_where_the_image_has_it(cluster: Cluster, registry: Registry) -> None:
    script = (
        "echo $GPUCTL_CHECKPOINT_DIR; cd $GPUCTL_CHECKPOINT_DIR && cat step 2>/dev/null; echo $GPUCTL_ATTEMPT >step; "
        "exit $((2 - GPUCTL_ATTEMPT))"
    )
    view, job = end_of(cluster, registry, script, volumes=["data:/shared"], checkpoint_volume="data", retries=1)
    assert view["state"] == "SUCCEEDED", (view, cluster.api.log(job, stream="stderr"))
    assert cluster.api.log(job) == f"/shared/gpuctl-checkpoints/{job}\n1\n"
    assert (cluster.folder / "data" / "gpuctl-checkpoints" / job / "step").read_text() == "2\n"


@pytest.mark.skipif(not MAY_MOUNT, reason="to mount something in a volume takes the right to")
def test_a_volume_for_reading_is_so_with_all_that_is_mounted_in_it(cluster: Cluster, registry: Registry) -> None:
    below = cluster.folder / "data" / "below"
    below.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", below], check=True)
    try:
        (below / "file").write_text("of the file system in the volume\n")
        script = "cat /data/below/file; touch /data/below/of-job 2>&1 || true; touch /data/of-job 2>&1 || true"
        said = ran(cluster, registry, script, volumes=["data:/data:ro"])
        assert said.startswith("of the file system in the volume\n") and said.count("Read-only file system") == 2, said
        assert [path.name for path in below.iterdir()] == ["file"]
    finally:
        subprocess.run(["umount", "--lazy", below], check=True)
        below.rmdir()


def test_a_command_beside_a_rank_is_in_its_image(cluster: Cluster, registry: Registry) -> None:
    api = cluster.user("ann-of-tests")
    job = api.submit(["sh", "-c", "touch /tmp/mine; echo ready; sleep 600"], image=f"{registry.address}/tools:1")
    cluster.wait_state(job, "RUNNING")
    eventually(lambda: "ready" in api.log(job), "the job to run")
    done = gpuctl(cluster, api, "exec", job, "--", "sh", "-c", "cat /etc/image; ls /tmp; exit 5")
    assert (done.returncode, done.stdout.splitlines()) == (5, ["of the image", "mine"]), done
    assert gpuctl(cluster, api, "exec", job, "no-such-program").returncode == 127
    api.post(f"/v1/jobs/{job}/cancel")
    assert api.wait(job)["state"] == "CANCELED"


def test_a_command_in_a_job_that_is_kept_after_its_failure_is_in_its_image(cluster: Cluster, registry: Registry) -> None:
    api = cluster.user("ann-of-tests")
    image = f"{registry.address}/tools:1"
    job = api.submit(["sh", "-c", "touch /tmp/mine; exit 3"], image=image, keep_on_failure_s=3600)
    eventually(lambda: api.job(job)["kept_until"], "the job to be kept")
    done = gpuctl(cluster, api, "exec", job, "--", "sh", "-c", "cat /etc/image; ls /tmp; exit 5")
    assert (done.returncode, done.stdout.splitlines()) == (5, ["of the image", "mine"]), done
    api.post(f"/v1/jobs/{job}/release")
    assert (api.wait(job)["state"], api.job(job)["exit_code"]) == ("FAILED", 3)


def test_ssh_into_an_image_without_sshd_gets_one_line(cluster: Cluster, registry: Registry) -> None:
    api = cluster.user("ann-of-tests")
    job = api.submit(["sleep", "600"], image=f"{registry.address}/tools:1")
    cluster.wait_state(job, "RUNNING")
    done = gpuctl(cluster, api, "ssh", job)
    image = api.job(job)["spec"]["image"]
    assert (done.returncode, done.stderr.splitlines()) == (
        125,
        [
            f"gpuctl: there is no sshd in the job's container image {image}",
            "  remedy: use gpuctl exec -it and gpuctl cp, or an image with openssh-server and bash",
        ],
    ), done
    api.post(f"/v1/jobs/{job}/cancel")
    assert api.wait(job)["state"] == "CANCELED"


def test_inputs_files_and_the_checkpoint_are_there_in_an_image(cluster: Cluster, registry: Registry) -> None:
    """The first attempt fails after its checkpoint; the second one begins with it."""
    api = cluster.user("ann-of-tests")
    script = (
        "cat $GPUCTL_INPUT_SET /in/put/set $GPUCTL_INPUT_PLACED /etc/image given; touch $GPUCTL_INPUT_SET 2>/dev/null || echo unchanged; "
        "cat $GPUCTL_CHECKPOINT_DIR/step 2>/dev/null || { echo 7 >$GPUCTL_CHECKPOINT_DIR/step; exit 3; }"
    )
    job = api.submit(
        ["sh", "-c", script],
        image=f"{registry.address}/tools:1",
        inputs=["set=volume:data/set", "placed=volume:data/set:/in/put"],
        files=[{"path": "given", "text": "file\n"}],
        retries=1,
    )
    view = api.wait(job)
    assert (view["state"], view["attempt"]) == ("SUCCEEDED", 2), (view, api.log(job, stream="stderr"))
    assert api.log(job).splitlines() == [*["of the volume"] * 3, "of the image", "file", "unchanged", "7"]


def test_a_function_runs_in_an_image_that_has_python_and_nothing_of_ours(cluster: Cluster, registry: Registry) -> None:
    image = registry.push("python:1", [layer_of(busybox()), python_layer()], Env=["PATH=/bin"])
    script = (
        "import os, sys; from serverless_gpu import distributed\n"
        f"@distributed(gpus=2, remote=True, image={image!r}, quiet=True, inherit_env=False)\n"
        "def look(word):\n"
        "    import os, sys\n"
        "    return word, os.environ['RANK'], open('/etc/image').read(), 'cloudpickle' in sys.modules, os.path.exists('/usr/share')\n"
        "print(look.distributed('hello'))\n"
    )
    api = cluster.user("ann-of-tests")
    environment = {**os.environ, **settings_of(cluster, api)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, cwd=cluster.folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(repr([("hello", rank, "of the image\n", True, False) for rank in "01"])), done
