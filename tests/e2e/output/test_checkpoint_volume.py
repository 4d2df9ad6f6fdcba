# SPDX-License-Identifier: Apache-2.0
"""Checkpoints on a volume: $GPUCTL_CHECKPOINT_DIR is a folder of the job that all its nodes see."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Api, Cluster, Problem, eventually, run_gpuctl
from owners import RUN_AS, needs_owners, passable_folder

#: Says where it begins, writes the next number and acknowledges it; then waits for GATE, and fails.
COUNT = """
import json, os, socket, sys, time
from pathlib import Path
folder, gate = Path(os.environ["GPUCTL_CHECKPOINT_DIR"]), Path(sys.argv[1])
rank = os.environ["RANK"]
last = folder / f"last.{rank}"
step = int(last.read_text()) if last.exists() else 0
print(folder, step, oct(folder.stat().st_mode), folder.stat().st_uid == os.getuid(), flush=True)
part = folder / f"new.{rank}"
part.write_text(str(step + 1))
part.rename(last)
line = json.dumps({"checkpoint": {"step": step + 1}, "rank": int(rank)})
where, name = os.path.split(os.environ["GPUCTL_SOCKET"])
os.chdir(where)  # the path may be longer than an address
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(line.encode(), name)
while not gate.exists():
    time.sleep(0.01)
sys.exit(4)
"""

VOLUME: dict[str, Any] = {"volumes": ["shared"], "checkpoint_volume": "shared"}


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared"


@pytest.fixture
def make(make_cluster: Callable[..., Cluster], shared: Path) -> Callable[..., Cluster]:
    return lambda *slots: make_cluster(*slots, agent=["--shared-memory", "host", f"--volume=shared={shared}"])


def count(api: Api, gate: Path, **more: Any) -> str:
    return api.submit(["python3", "-c", COUNT, str(gate)], gpu_type="cpu", **VOLUME, **more)


def began(api: Api, job: str, attempt: int | None = None) -> list[str]:
    return eventually(lambda: str(api.log(job, attempt=attempt) if attempt else api.log(job)).splitlines(), "a first line")[-1].split()


def step_of(api: Api, job: str) -> int | None:
    found = api.get(f"/v1/jobs/{job}/checkpoint")
    return found["checkpoint"]["step"] if found["checkpoint"] else None


def test_the_next_attempt_finds_the_folder_on_another_node(make: Callable[..., Cluster], shared: Path, tmp_path: Path) -> None:
    cluster = make(1, 1)
    job = count(cluster.api, tmp_path / "gate", retries=1)
    eventually(lambda: step_of(cluster.api, job) == 1, "the acknowledgement")
    assert began(cluster.api, job) == [f"{shared}/gpuctl-checkpoints/{job}", "0", "0o40700", "True"]
    first = cluster.api.get(f"/v1/jobs/{job}/attempts")["attempts"][0]["nodes"][0]["node"]
    cluster.api.post(f"/v1/nodes/{first}/drain", {})
    (tmp_path / "gate").touch()
    view = cluster.api.wait(job)
    attempts = cluster.api.get(f"/v1/jobs/{job}/attempts")["attempts"]
    assert view["attempt"] == 2 and len({one["nodes"][0]["node"] for one in attempts}) == 2
    assert began(cluster.api, job)[:2] == [f"{shared}/gpuctl-checkpoints/{job}", "1"]
    stored = cluster.folder / "controller" / "checkpoints" / job / "pieces"
    assert not stored.exists() or list(stored.iterdir()) == [], "nothing of the volume is sent"
    cluster.api.call("DELETE", f"/v1/jobs/{job}")
    assert (shared / "gpuctl-checkpoints" / job / "last.0").read_text() == "2", "the folder outlives its job"


def test_a_preempted_job_goes_on_in_its_folder(make: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make(1)
    job = count(cluster.api, tmp_path / "gate", grace_s=0)
    eventually(lambda: step_of(cluster.api, job) == 1, "the acknowledgement")
    cluster.api.post(f"/v1/jobs/{job}/preemption", {})
    eventually(lambda: step_of(cluster.api, job) == 2, "the next attempt to find the folder")
    (tmp_path / "gate").touch()
    cluster.api.wait(job)


def test_retries_go_on_in_the_first_folder_and_fresh_ones_do_not(make: Callable[..., Cluster], shared: Path, tmp_path: Path) -> None:
    cluster, gate = make(1), tmp_path / "gate"
    gate.touch()
    first = count(cluster.api, gate)
    cluster.api.wait(first)

    def retried(api: Api, job: str, **how: Any) -> tuple[str, list[str]]:
        again = api.post(f"/v1/jobs/{job}/retry", how)["id"]
        cluster.api.wait(again)
        return again, began(cluster.api, again)[:2]

    second, said = retried(cluster.api, first)
    assert said == [f"{shared}/gpuctl-checkpoints/{first}", "1"]
    third, said = retried(cluster.api, second)
    assert said == [f"{shared}/gpuctl-checkpoints/{first}", "2"], "the folder has the name of the job in which it began"
    shown = cluster.api.get(f"/v1/jobs/{third}/checkpoint")
    assert shown["folder"] == f"volume:shared/gpuctl-checkpoints/{first}"
    client = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}
    assert f"checkpoint folder: {shown['folder']}\n" in run_gpuctl("get", third, env=client).stdout
    fresh, said = retried(cluster.api, third, fresh=True)
    assert said == [f"{shared}/gpuctl-checkpoints/{fresh}", "0"]
    strangers, said = retried(cluster.user("eve", "admin"), third)
    assert said == [f"{shared}/gpuctl-checkpoints/{strangers}", "0"]
    cloned = cluster.api.post(f"/v1/jobs/{third}/clone", {})["id"]
    cluster.api.wait(cloned)
    assert began(cluster.api, cloned)[:2] == [f"{shared}/gpuctl-checkpoints/{cloned}", "0"]


def test_each_task_has_a_folder_of_its_own(make: Callable[..., Cluster], shared: Path, tmp_path: Path) -> None:
    cluster, gate = make(2), tmp_path / "gate"
    gate.touch()
    array = count(cluster.api, gate, array={"tasks": 2})
    cluster.api.wait(array)
    tasks = [one["id"] for one in cluster.api.get(f"/v1/jobs?array={array}")["jobs"]]
    assert sorted(os.listdir(shared / "gpuctl-checkpoints")) == sorted(tasks) and len(tasks) == 2
    again = cluster.api.post(f"/v1/jobs/{tasks[0]}/retry", {})["id"]
    cluster.api.wait(again)
    assert (shared / "gpuctl-checkpoints" / tasks[0] / "last.0").read_text() == "2", "a task alone goes on in its own"
    cluster.api.wait(cluster.api.post(f"/v1/jobs/{array}/retry", {})["id"])
    assert len(os.listdir(shared / "gpuctl-checkpoints")) == 4, "an array begins anew"


def test_a_gang_shares_one_folder_and_its_step_stays(make: Callable[..., Cluster], shared: Path, tmp_path: Path) -> None:
    cluster = make(1, 1)
    job = count(cluster.api, tmp_path / "gate", gpus=2, nodes=2)
    eventually(lambda: step_of(cluster.api, job) == 1, "the acknowledgement of both")
    (tmp_path / "gate").touch()
    assert cluster.api.wait(job)["cause"] == "RANK_FAILED"
    assert sorted(os.listdir(shared / "gpuctl-checkpoints" / job)) == ["last.0", "last.1"] and step_of(cluster.api, job) == 1


def test_the_command_line_and_the_fields_that_are_refused(make: Callable[..., Cluster], shared: Path) -> None:
    cluster = make(1)
    client = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}
    command = ["--checkpoint-volume", "shared", "--", "sh", "-c", "echo $GPUCTL_CHECKPOINT_DIR"]
    done = run_gpuctl("run", "--volume", "shared", *command, env=client)
    assert f"{shared}/gpuctl-checkpoints/" in done.stdout, done.stderr
    done = run_gpuctl("run", *command, env=client)
    assert done.returncode != 0 and "field: checkpoint_volume" in done.stderr and "add it to volumes" in done.stderr, done.stderr
    for volumes in (["shared:ro"], ["other"]):
        with pytest.raises(Problem) as caught:
            cluster.api.submit(["true"], volumes=volumes, checkpoint_volume="shared")
        assert caught.value.body["field"] == "checkpoint_volume" and caught.value.body["hint"], caught.value.body
    before = cluster.api.submit(["true"], **VOLUME)
    with pytest.raises(Problem, match="would give 2 tasks one folder on volume shared") as caught:
        cluster.api.submit(["true"], **VOLUME, checkpoint_of=before, array={"tasks": 2})
    assert caught.value.body["field"] == "checkpoint_of" and "array.only" in caught.value.body["hint"]
    alone = cluster.api.submit(["true"], **VOLUME, checkpoint_of=before, array={"tasks": 2, "only": "1"})
    assert cluster.api.wait(alone)["state"] == "SUCCEEDED"


# --- users, and folders that cannot be made


@pytest.fixture
def owners() -> Iterator[Callable[..., Cluster]]:
    """Makes clusters of one node with a volume for everybody at folder / "data", whose jobs run as a user of their owner or the agent's."""
    with passable_folder() as folder, contextlib.ExitStack() as undo:
        (folder / "data").mkdir()
        (folder / "data").chmod(0o777)

        def made(how: str, *more: str) -> Cluster:
            cluster = Cluster(folder, [1], agent=["--run-as", how, f"--volume=data={folder}/data{''.join(more)}"]).start()
            undo.callback(cluster.stop)
            return cluster

        yield made


@pytest.mark.parametrize("how", RUN_AS)
def test_a_folder_is_its_users_alone(owners: Callable[..., Cluster], how: str) -> None:
    cluster = owners(how)
    script = 'stat -c "%a %u" "$GPUCTL_CHECKPOINT_DIR"; id -u; touch "$GPUCTL_CHECKPOINT_DIR/file"'
    for user in ("ann-of-tests", "bob-of-tests"):
        job = cluster.user(user).submit(["sh", "-c", script], gpu_type="cpu", volumes=["data"], checkpoint_volume="data")
        assert cluster.api.wait(job)["state"] == "SUCCEEDED", cluster.api.log(job, stream="stderr")
        mode, owner, own = cluster.api.log(job).split()
        assert (mode, owner) == ("700", own) and (own == "0") == (how == "agent" and os.geteuid() == 0)
    assert (cluster.folder / "data" / "gpuctl-checkpoints").stat().st_mode == 0o41777


@needs_owners
def test_the_folder_is_where_the_job_has_the_volume(owners: Callable[..., Cluster]) -> None:
    cluster = owners("owner")
    script = 'echo "$GPUCTL_CHECKPOINT_DIR"; echo 1 >"$GPUCTL_CHECKPOINT_DIR/file"'
    job = cluster.user("ann-of-tests").submit(
        ["sh", "-c", script], gpu_type="cpu", volumes=["data:/mnt/gpuctl-test-elsewhere"], checkpoint_volume="data"
    )
    assert cluster.api.wait(job)["state"] == "SUCCEEDED", cluster.api.log(job, stream="stderr")
    assert cluster.api.log(job) == f"/mnt/gpuctl-test-elsewhere/gpuctl-checkpoints/{job}\n"
    assert (cluster.folder / "data" / "gpuctl-checkpoints" / job / "file").read_text() == "1\n"


@needs_owners
def test_a_folder_that_cannot_be_made_ends_the_attempt_with_the_reason(owners: Callable[..., Cluster]) -> None:
    cluster = owners("owner")
    data = cluster.folder / "data"
    data.chmod(0o755)
    assert why_not(cluster) == "Permission denied"
    (data / "gpuctl-checkpoints").symlink_to(cluster.folder)
    assert why_not(cluster) == "Not a directory"
    (data / "gpuctl-checkpoints").unlink()
    with small(data):
        assert why_not(cluster) == "No space left on device"


def why_not(cluster: Cluster) -> str:
    view = cluster.api.wait(cluster.user("ann-of-tests").submit(["true"], gpu_type="cpu", volumes=["data"], checkpoint_volume="data"))
    begins = f"the folder for checkpoints cannot be made on volume data: {cluster.folder}/data/gpuctl-checkpoints/{view['id']}: "
    assert (view["state"], view["cause"], view["attempt"]) == ("FAILED", "EXEC_FAILED", 1) and begins in view["reason"], view
    return str(view["reason"]).split(begins)[1]


@contextlib.contextmanager
def small(folder: Path) -> Iterator[None]:
    """A file system with one inode."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=777,nr_inodes=1", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@needs_owners
def test_what_another_user_has_put_there_is_no_checkpoint(owners: Callable[..., Cluster]) -> None:
    """Whoever knows the id of a job that waits could make its folder, with something to unpickle."""
    cluster = owners("owner")
    ann = cluster.user("ann-of-tests")
    job = ann.submit(["true"], gpu_type="cpu", volumes=["data"], checkpoint_volume="data", hold=True)
    planted = f"cd $GPUCTL_VOLUME_DATA && umask 0 && mkdir -p gpuctl-checkpoints/{job}"
    eve = cluster.user("eve-of-tests").submit(["sh", "-c", planted], gpu_type="cpu", volumes=["data"])
    assert cluster.api.wait(eve)["state"] == "SUCCEEDED"
    ann.post(f"/v1/jobs/{job}/release")
    view = cluster.api.wait(job)
    assert view["state"] == "FAILED" and view["reason"].endswith(f"gpuctl-checkpoints/{job} belongs to another user"), view


@needs_owners
def test_a_volume_that_nodes_have_for_reading_is_refused(owners: Callable[..., Cluster]) -> None:
    cluster = owners("owner", ":ro")
    with pytest.raises(Problem) as caught:
        cluster.api.submit(["true"], volumes=["data"], checkpoint_volume="data")
    assert caught.value.body["field"] == "volumes" and "volume data" in caught.value.body["detail"]
