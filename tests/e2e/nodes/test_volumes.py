# SPDX-License-Identifier: Apache-2.0
"""Volumes: folders that operators name with gpuagent --volume, and that jobs ask for."""

from __future__ import annotations

import contextlib
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import GPUAGENT, Cluster, Problem, eventually, run_gpuctl
from owners import needs_owners, passable_folder


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with passable_folder() as folder, contextlib.ExitStack() as undo:
        for name in ("data", "models", "nested", "comes", "disk"):
            (folder / name).mkdir()
            (folder / name).chmod(0o777)
        (folder / "models" / "weights").write_text("w" * 10)
        (folder / "nested" / "below").mkdir()
        below = str(folder / "nested" / "below")
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", below], check=True)
        undo.callback(lambda: subprocess.run(["umount", below], check=True))
        options = [f"--volume=data={folder}/data", f"--volume=models={folder}/models:ro", f"--volume=nested={folder}/nested"]
        options += [f"--volume=comes={folder}/comes", f"--volume=disk={folder}/disk:mount"]
        shared = Cluster(folder, [2], agent=["--run-as", "owner", *options]).start()
        undo.callback(shared.stop)
        yield shared


@pytest.fixture
def place() -> Iterator[Path]:
    """A path at which nodes have no folder, and that the agent may make."""
    path = Path("/mnt", f"gpuctl-test-{uuid.uuid4().hex}")
    yield path
    with contextlib.suppress(FileNotFoundError):
        path.rmdir()  # and so it is empty on the host


def ran(cluster: Cluster, script: str, *volumes: str) -> str:
    job = cluster.user("ann-of-tests").submit(["sh", "-c", script], volumes=list(volumes))
    view = cluster.api.wait(job)
    assert view["state"] == "SUCCEEDED", (view, cluster.api.log(job, stream="stderr"))
    return cluster.api.log(job)


def refused(cluster: Cluster, volumes: object) -> Any:
    with pytest.raises(Problem) as caught:
        cluster.api.post("/v1/jobs", {"gpus": 1, "command": ["true"], "volumes": volumes})
    return caught.value.body


def labels(cluster: Cluster) -> dict[str, str]:
    return {key: value for key, value in cluster.nodes()["node0"]["labels"].items() if key.startswith("volume.")}


@needs_owners
def test_a_job_finds_its_volumes_where_it_wants_them(cluster: Cluster, place: Path) -> None:
    said = ran(cluster, f"echo $GPUCTL_VOLUME_DATA $GPUCTL_VOLUME_MODELS; echo made > {place}/made; cat $GPUCTL_VOLUME_MODELS/weights",
               f"data:{place}", "models")  # fmt: skip
    assert said == f"{place} {cluster.folder}/models\n" + "w" * 10
    assert (cluster.folder / "data" / "made").read_text() == "made\n"
    assert str(place) not in Path("/proc/mounts").read_text() and list(place.iterdir()) == []
    again = ran(cluster, f"ls {place}; grep -c {place} /proc/self/mounts || true")
    assert again == "0\n", "the next job, perhaps of the same supervisor, has no such volume"


@needs_owners
@pytest.mark.parametrize("volume", ["data:{}:ro", "models:{}", "models:{}:ro", "nested:{}:ro"])
def test_nobody_writes_to_a_volume_that_is_read_only(cluster: Cluster, place: Path, volume: str) -> None:
    script = f"for f in {place} {place}/below; do [ ! -d $f ] || touch $f/x 2>&1 || true; done; grep ' {place}[/ ]' /proc/self/mounts"
    refused, *mounts = ran(cluster, script, volume.format(place)).splitlines()
    assert "Read-only file system" in refused
    assert [line for line in mounts if "touch" not in line and not {"ro", "nosuid", "nodev"} <= set(line.split()[3].split(","))] == []


@needs_owners
def test_no_supervisor_that_waits_keeps_a_volume_in_use(cluster: Cluster, place: Path) -> None:
    ran(cluster, "true", f"data:{place}")

    def pinned() -> list[str]:
        found = []
        for mounts in Path("/proc").glob("[0-9]*/mounts"):
            with contextlib.suppress(OSError):
                found += [str(mounts)] if str(place) in mounts.read_text() else []
        return found

    eventually(lambda: not pinned(), "no process to have it mounted")


@needs_owners
@pytest.mark.parametrize(("volumes", "field", "said"), [
    (["data:/etc"], "volumes[0]", "folder of the system"),
    (["data:/usr/lib/x"], "volumes[0]", "folder of the system"),
    (["data:relative"], "volumes[0]", "no path"),
    (["data:/a/../b"], "volumes[0]", "no path"),
    (["a b"], "volumes[0]", "names no volume"),
    (["data", "data:/b"], "volumes[1]", "again"),
    (["data:/a", "models:/a/b"], "volumes[1]", "another volume"),
    ([7], "volumes[0]", "text"),
    ("data", "volumes", "array"),
    (["v"] * 9, "volumes", "at most 8"),
    (["unknown:/data"], "volumes", "volume unknown"),
    (["models:rw"], "volumes", "volume models"),
    (["models", "disk"], "volumes", "volume disk"),
])  # fmt: skip
def test_volumes_that_cannot_be_given_are_refused_at_once(cluster: Cluster, volumes: object, field: str, said: str) -> None:
    answer = refused(cluster, volumes)
    assert answer["field"] == field and said in answer["detail"] and answer["hint"], answer


@needs_owners
def test_a_place_that_holds_anything_is_refused_by_the_node(cluster: Cluster) -> None:
    full, link = cluster.folder / "full", cluster.folder / "link"
    full.mkdir()
    (full / "file").touch()
    link.symlink_to(cluster.folder / "data")
    for at, why in ((full, "not empty"), (link, "Not a directory|symbolic"), (cluster.folder / "absent", "no such folder")):
        job = cluster.api.submit(["true"], volumes=[f"models:{at}"])
        view = cluster.api.wait(job)
        assert (view["state"], view["cause"]) == ("FAILED", "EXEC_FAILED"), view
        assert any(word in str(view) for word in why.split("|")) and str(at) in str(view), view


@needs_owners
def test_a_volume_that_goes_keeps_jobs_away_until_it_is_back(cluster: Cluster) -> None:
    assert labels(cluster) == {"volume.data": "rw", "volume.models": "ro", "volume.nested": "rw", "volume.comes": "rw"}
    running = cluster.api.submit(["sleep", "600"], volumes=["models"])
    eventually(lambda: cluster.api.get(f"/v1/jobs/{running}")["state"] == "RUNNING", "a job to run")
    gone = cluster.folder / "comes"
    waiting = cluster.api.submit(["true"], volumes=["comes"], gpus=2)
    gone.rename(cluster.folder / "away")
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", cluster.folder / "disk"], check=True)
    try:
        eventually(lambda: "volume.comes" not in labels(cluster) and labels(cluster).get("volume.disk") == "rw", "the agent to look")
        assert refused(cluster, ["comes"])["field"] == "volumes"
        assert cluster.api.get(f"/v1/jobs/{waiting}")["state"] == "QUEUED"
        assert "volume comes fails on 1 of 1 node" in cluster.api.get(f"/v1/jobs/{waiting}/explanation")["reason"]["text"]
        assert cluster.api.get(f"/v1/jobs/{running}")["state"] == "RUNNING", "it has another volume"
    finally:
        subprocess.run(["umount", cluster.folder / "disk"], check=True)
        (cluster.folder / "away").rename(gone)
        cluster.api.post(f"/v1/jobs/{running}/cancel")
    assert cluster.api.wait(waiting)["state"] == "SUCCEEDED"
    eventually(lambda: "volume.disk" not in labels(cluster), "nothing to be mounted there")


def test_where_the_agent_cannot_mount_a_volume_is_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    cluster = Cluster(tmp_path, [1], agent=["--shared-memory", "host", f"--volume=my-data={tmp_path}/data"]).start()
    try:
        assert labels(cluster) == {"volume.my-data": "rw-fixed"}
        client = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(tmp_path / "controller" / "admin.token")}
        done = run_gpuctl("run", "--volume", "my-data", "--", "sh", "-c", "echo made > $GPUCTL_VOLUME_MY_DATA/made", env=client)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "data" / "made").read_text() == "made\n"
        for volume in ("my-data:/mnt/data", "my-data:ro"):
            done = run_gpuctl("run", "--volume", volume, "--", "true", env=client)
            assert done.returncode != 0 and "volume my-data fails on 1 of 1 node" in done.stderr, done.stderr
    finally:
        cluster.stop()


@pytest.mark.parametrize(("option", "said"), [
    ("data", "names no volume and its folder"),
    ("data=relative", "names no volume and its folder"),
    ("data=/a/./b", "names no volume and its folder"),
    ("=/data", "names no volume and its folder"),
    ("a,b=/data", "names no volume and its folder"),
])  # fmt: skip
def test_the_agent_says_what_is_wrong_with_a_volume(tmp_path: Path, option: str, said: str) -> None:
    command = [str(GPUAGENT), "--controller", "http://127.0.0.1:1", "--token-file", str(tmp_path / "t"), "--cpu-slots", "1"]
    done = subprocess.run([*command, "--volume", option], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and said in done.stderr and "NAME=/PATH" in done.stderr, done.stderr
    twice = subprocess.run([*command, "--volume", "data=/a", "--volume", "data=/b:ro"], capture_output=True, text=True, timeout=60)
    assert twice.returncode == 2 and "data=/b:ro has the name of another volume" in twice.stderr
    labelled = subprocess.run([*command, "--label", "volume.data=rw"], capture_output=True, text=True, timeout=60)
    assert labelled.returncode == 2 and "--volume NAME=PATH" in labelled.stderr
