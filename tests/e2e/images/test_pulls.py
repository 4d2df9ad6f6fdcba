# SPDX-License-Identifier: Apache-2.0
"""Images on their way to a node: whom registries let in, what is refused, and what kills leave behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Api, Cluster, Problem, eventually
from owners import MAY_MOUNT
from registry import Registry, busybox, home, layer_of

PASSWORD = "pass-of-tests"  # noqa: S105  (of a registry that ends with the test)
#: Its bcrypt hash, as htpasswd makes it.
USERS = "ann:$2y$05$abcdefghijklmnopqrstuuK/rT7VYCdeM4Is1/AI4QX6vhrgiP1bC\n"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    made = Registry(tmp_path_factory.mktemp("registry") / "registry")
    made.push("tools:1", [layer_of(busybox())], Env=["PATH=/bin"])
    yield made
    made.stop()


@pytest.fixture
def cluster(make_cluster: Callable[..., Cluster], registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("HOME", home(tmp_path, registry.address))
    return make_cluster(1)


def submit(api: Api, image: str, script: str = "echo ran", **spec: Any) -> str:
    return api.submit(["sh", "-c", script], image=image, **spec)


def refused(api: Api, image: Any, **spec: Any) -> Any:
    with pytest.raises(Problem) as caught:
        submit(api, image, **spec)
    return caught.value.body


def images(cluster: Cluster) -> list[str]:
    """Whole ones and others; not their locks, and not the folders of the store itself."""
    return sorted(
        path.name for path in (cluster.folder / "node0" / "images").iterdir() if path.is_dir() and path.name not in ("names", ".trash")
    )


def test_names_that_are_none_and_images_that_are_not_there_are_refused_at_once(cluster: Cluster, registry: Registry) -> None:
    api = cluster.api
    for image in ("", "-x", "a b", "docker://a", "a@sha256:12", "a:", "/a", "a//b", "x" * 600, 7):
        answer = refused(api, image)
        assert (answer["field"], answer["code"]) == ("image", "invalid_field"), (image, answer)
    assert refused(api, f"{registry.address}/tools:1", environment={"requirements": ["numpy"]})["field"] == "environment"
    gone = refused(api, f"{registry.address}/tools:none")
    assert gone["field"] == "image" and "manifest unknown" in gone["detail"] and "\n" not in gone["detail"]
    away = refused(api, "127.0.0.1:1/tools:1")
    assert away["retryable"] and "refused" in away["detail"] and "@sha256" in away["hint"]
    named = {"image": f"{registry.address}/tools@{registry.digests['tools:1']}", "worker_image": f"{registry.address}/tools:none"}
    assert refused(api, **named)["field"] == "worker_image"
    assert refused(api, None, worker_image=named["image"])["field"] == "worker_image"
    for spec in ({"image": f"{registry.address}/tools:1"}, named):
        batch = api.post("/v1/jobs:batch", [{"gpus": 1, "command": ["true"], **spec}])
        assert batch["jobs"][0]["error"]["field"] == list(spec)[-1]


def test_images_come_from_the_registries_of_the_operator_alone(make_cluster: Callable[..., Cluster], registry: Registry) -> None:
    cluster = make_cluster(controller=["--image-registry", "docker.io", "--image-registry", "Registry.Example.com:5000"])
    others = {
        f"{registry.address}/tools:1": registry.address,
        f"{registry.address}/x@sha256:{'0' * 64}": registry.address,
        "registry.example.com/docker.io/x": "registry.example.com",
        "DOCKER/x": "DOCKER",
        "localhost/x": "localhost",
    }
    for image, host in others.items():
        answer = refused(cluster.api, image)
        assert (answer["field"], answer["detail"]) == ("image", f"the operator lets no images come from {host}"), answer
        assert answer["hint"] == "name an image of docker.io, Registry.Example.com:5000"
    answer = refused(cluster.api, f"x@sha256:{'0' * 64}", worker_image=f"localhost/x@sha256:{'0' * 64}")
    assert (answer["field"], answer["detail"]) == ("worker_image", "the operator lets no images come from localhost")
    for image in ("x", "team/x", "docker.io/x", "registry.example.com:5000/x"):
        assert "operator" not in refused(cluster.api, f"{image}@sha256:{'0' * 64}")["detail"], "it may come, and there is no node for it"


def test_an_image_that_no_node_can_use_ends_its_jobs_or_says_why_they_wait(cluster: Cluster, registry: Registry) -> None:
    api = cluster.api
    ended = api.wait(submit(api, f"{registry.address}/tools@sha256:{'0' * 64}"))
    assert ended["state"] == "FAILED" and "manifest unknown" in ended["reason"] and "\n" not in ended["reason"]
    other = registry.push("other:1", [layer_of(busybox())], architecture="s390x")
    waits = submit(api, other)
    said = eventually(lambda: (reason := api.job(waits)["reason"]) and "s390x" in reason and reason, "the job to say why it waits")
    assert "and this node is linux/" in said
    damaged = registry.push("damaged:1", [layer_of(busybox()), layer_of({"lost": b"y" * 5000})])
    for digest in json.loads(registry.blob(registry.digest).read_text())["layers"][1:]:
        registry.blob(digest["digest"]).write_bytes(b"x" * digest["size"])
    ended = api.wait(submit(api, damaged, infra_retries=0))
    assert ended["state"] == "FAILED" and "image" in ended["reason"] and "digest" in ended["reason"].lower(), ended["reason"]
    assert images(cluster) == [], "nothing that is not whole is kept"


def test_a_private_image_needs_the_secret_of_its_job_even_where_it_is_on_the_node(
    make_cluster: Callable[..., Cluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = Registry(tmp_path / "private", USERS)
    try:
        image = private.push("mine:1", [layer_of(busybox())], "--dest-creds", f"ann:{PASSWORD}", Env=["PATH=/bin"])
        monkeypatch.setenv("HOME", home(tmp_path, private.address))
        cluster = make_cluster(1)
        api = cluster.api
        assert "image_secret" in refused(api, image)["hint"]
        assert refused(api, image, image_secret="NONE")["field"] == "image_secret"
        auth = str(tmp_path / "auth")
        login = ["skopeo", "login", "--tls-verify=false", "--authfile", auth, "-u", "ann", "--password-stdin", private.address]
        done = subprocess.run(login, input=PASSWORD, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
        api.call("PUT", "/v1/secrets/REGISTRY", {"value": (tmp_path / "auth").read_text()})
        job = submit(api, image, image_secret="REGISTRY")
        assert api.wait(job)["state"] == "SUCCEEDED" and api.log(job) == "ran\n"
        pinned = api.job(job)["spec"]["image"]
        ended = api.wait(submit(api, pinned))
        assert ended["state"] == "FAILED", ended
        assert "authentication required" in ended["reason"] or "unauthorized" in ended["reason"], ended["reason"]
        found = subprocess.run(["grep", "-rlF", PASSWORD, cluster.folder], capture_output=True, text=True)
        assert found.stdout == "", "the password is in no file of controller or node"
    finally:
        private.stop()


def pulling(cluster: Cluster) -> int:
    """The process of skopeo that the agent has started, once it is there."""

    def there() -> int:
        agent = cluster.agents[0].process
        children = Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split() if agent else []
        for child in children:
            if b"skopeo" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[0]:
                return int(child)
        return 0

    return int(eventually(there, "the pull to begin"))


@pytest.mark.parametrize("which", ["agent", "skopeo"])
def test_a_killed_pull_begins_anew_and_leaves_nothing(which: str, cluster: Cluster, registry: Registry) -> None:
    api, held = cluster.api, registry.program.process
    assert held is not None
    tools = registry.digests["tools:1"]
    held.send_signal(signal.SIGSTOP)
    try:
        job = submit(api, f"{registry.address}/tools@{tools}")
        skopeo = pulling(cluster)
        if which == "agent":
            cluster.agents[0].kill()
            eventually(lambda: not Path(f"/proc/{skopeo}").exists(), "the pull to end with its agent")
        else:
            os.kill(skopeo, signal.SIGKILL)
    finally:
        held.send_signal(signal.SIGCONT)
    if which == "agent":
        cluster.agents[0].start()
    assert api.wait(job)["state"] == "SUCCEEDED" and api.log(job) == "ran\n"
    assert len(images(cluster)) == 1 and len(images(cluster)[0]) == 64


def test_an_image_is_pulled_once_and_is_there_for_the_next_agent(cluster: Cluster, registry: Registry) -> None:
    image = f"{registry.address}/tools:1"
    assert cluster.api.wait(submit(cluster.api, image))["state"] == "SUCCEEDED"
    cluster.agents[0].kill()
    cluster.agents[0].start()
    assert cluster.api.wait(submit(cluster.api, image))["state"] == "SUCCEEDED"
    assert cluster.agents[0].said().count("image pulled") == 1


def test_the_nodes_but_that_of_rank_0_may_have_an_image_of_their_own(
    make_cluster: Callable[..., Cluster], registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", home(tmp_path, registry.address))
    api = make_cluster(1, 1, 1).api
    worker = registry.push("worker:1", [layer_of({**busybox(), "etc/image": b"of the workers\n"})], Env=["PATH=/bin"])
    job = submit(api, f"{registry.address}/tools:1", "cat /etc/image; echo $GPUCTL_IMAGE", gpus=3, worker_image=worker)
    ended = api.wait(job)
    assert ended["state"] == "SUCCEEDED", ended
    first, others = ended["spec"]["image"], ended["spec"]["worker_image"]
    assert (first, others) == (f"{registry.address}/tools:1@{registry.digests['tools:1']}", f"{worker}@{registry.digest}")
    assert [api.log(job, rank) for rank in range(3)] == [f"of the image\n{first}\n", *2 * [f"of the workers\n{others}\n"]]


def test_an_image_with_long_labels_is_kept(
    make_cluster: Callable[..., Cluster], registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", home(tmp_path, registry.address))
    image = registry.push("labels:1", [layer_of(busybox())], Env=["PATH=/bin"], Labels={"of.build": "x" * 300_000})
    api = make_cluster(1).api
    job = submit(api, image, "echo $PATH", infra_retries=0)
    view = api.wait(job)
    assert view["state"] == "SUCCEEDED" and api.log(job) == "/bin\n", view


@pytest.mark.skipif(not MAY_MOUNT, reason="to mount a small disk takes the right to")
def test_a_pull_does_not_fill_the_disk_and_goes_on_when_there_is_room(
    make_cluster: Callable[..., Cluster], registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", home(tmp_path, registry.address))
    disk, held = tmp_path / "disk", registry.program.process
    assert held is not None
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1060m", "tmpfs", disk], check=True)
    try:
        cluster = make_cluster()
        cluster.add_agent("node0", 1, "--state", str(disk / "node0"))
        cluster.wait_ready()
        (disk / "filler").write_bytes(bytes(40 * 2**20))
        tools = registry.digests["tools:1"]
        held.send_signal(signal.SIGSTOP)
        job = submit(cluster.api, f"{registry.address}/tools@{tools}")
        full = "the disk of this node is nearly full"
        eventually(lambda: full in (cluster.api.job(job)["reason"] or ""), "the pull to be given up")
        (disk / "filler").unlink()
        held.send_signal(signal.SIGCONT)
        assert cluster.api.wait(job)["state"] == "SUCCEEDED" and cluster.api.log(job) == "ran\n"
    finally:
        held.send_signal(signal.SIGCONT)
        subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_node_without_the_programs_is_not_taken_and_a_job_hears_which_are_missing(
    make_cluster: Callable[..., Cluster], registry: Registry, tmp_path: Path
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("python3", "skopeo", "umoci", "setpriv", "stat", "tar", "sh", "sleep"):
        (programs / name).symlink_to(str(shutil.which(name)))
    cluster = make_cluster(1, agent_environment={"PATH": str(programs)})
    answer = refused(cluster.api, f"x@sha256:{'0' * 64}")
    assert answer["field"] == "image" and "crun" in answer["hint"], answer
    assert "images" not in (cluster.nodes()["node0"]["labels"] or {})
    assert "crun is not installed" in cluster.agents[0].said()
