# SPDX-License-Identifier: Apache-2.0
"""Backups of a controller that is at work, and the way back from them with agents that have gone on meanwhile.

What a backup holds is what was acknowledged before it was asked for. After a restore each of those jobs reads back, what is over
is as it was to the letter, what runs goes on, and what came later is stopped and told of by id. No epoch is ever used twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pwd
import random
import shutil
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import GPUCTLD, TERMINAL, Api, Cluster, Problem, eventually, run_gpuctl
from slowness import patient

Volume = Callable[[int, int], int]
Make = Callable[..., Cluster]


def gpuctld(*arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """gpuctld where it does not serve; a failure is an error here unless check is false."""
    done = subprocess.run([str(GPUCTLD), *map(str, arguments)], capture_output=True, text=True, timeout=patient(120))
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def state_of(cluster: Cluster) -> Path:
    return cluster.folder / "controller"


def restore(cluster: Cluster, backup: Path) -> None:
    gpuctld("--restore", backup, "--state", state_of(cluster))


def look(path: Path, *arguments: str | Path) -> str:
    """The whole answer of a check that finds nothing."""
    said = gpuctld("--check", path, *arguments).stdout
    assert said.endswith("ok\n"), said
    return said


def all_jobs(api: Api) -> dict[str, Any]:
    found: dict[str, Any] = {}
    cursor = ""
    while True:
        page = api.get(f"/v1/jobs?limit=200{cursor}")
        found.update({job["id"]: job for job in page["jobs"]})
        if page["next"] is None:
            return found
        cursor = f"&cursor={page['next']}"


def history(api: Api, job: str) -> Any:
    return api.get(f"/v1/jobs/{job}/events?limit=200")["events"]


def epochs_of(api: Api, jobs: list[str]) -> set[int]:
    return {attempt["epoch"] for job in jobs for attempt in api.get(f"/v1/jobs/{job}/attempts")["attempts"]}


def lost(api: Api) -> dict[str, Any]:
    return {entry["job"]: entry for entry in api.get("/v1/lost")["lost"]}


class Load:
    """A person who submits short jobs one after the other, until told to stop, and keeps what was acknowledged, in order."""

    def __init__(self, api: Api):
        self.api = api
        self.acknowledged: list[str] = []
        self.enough = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        number = 0
        while not self.enough.is_set():
            number += 1
            with contextlib.suppress(OSError, Problem):  # the controller is away, or about to be: nothing was acknowledged
                self.acknowledged.append(self.api.submit(["sh", "-c", f"echo {number}; exit {number % 3}"]))

    def __enter__(self) -> Load:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.enough.set()
        self.thread.join()


@contextlib.contextmanager
def stopped(cluster: Cluster, how: int = signal.SIGKILL) -> Iterator[None]:
    """The controller is away; it is back afterwards."""
    cluster.controller.kill(how)
    yield
    cluster.start_controller()


def all_of(api: Api, jobs: set[str]) -> dict[str, Any]:
    """All that the API tells of jobs that are over, to be compared to the letter."""
    return {job: (api.job(job), history(api, job), api.get(f"/v1/jobs/{job}/attempts"), api.log(job)) for job in jobs}


def states_in(backup: Path) -> dict[str, str]:
    """The jobs of a backup and their states."""
    with contextlib.closing(sqlite3.connect(f"file:{backup / 'gpuctl.db'}?mode=ro", uri=True)) as copy:
        return dict(copy.execute("SELECT id, state FROM jobs"))


def note_epochs(api: Api, seen: dict[int, tuple[str, int]]) -> None:
    """Each epoch belongs to one attempt of one job, for ever."""
    for job in all_jobs(api):
        for attempt in api.get(f"/v1/jobs/{job}/attempts")["attempts"]:
            who = (job, attempt["attempt"])
            assert seen.setdefault(attempt["epoch"], who) == who


def test_restores_of_random_points_under_load_keep_what_was_acknowledged_and_never_use_an_epoch_twice(
    make_cluster: Make, volume: Volume
) -> None:
    chance = random.Random(17)
    cluster = make_cluster(2, 2)
    seen: dict[int, tuple[str, int]] = {}  # epoch: the job and attempt that have it
    for _ in range(volume(3, 100)):
        with Load(cluster.api) as load:
            target = chance.randrange(5, 25)
            eventually(lambda load=load, target=target: len(load.acknowledged) >= target, "the load")
            sure = list(load.acknowledged)
            name = cluster.api.post("/v1/backups")["name"]
            more = len(load.acknowledged) + chance.randrange(1, 15)
            eventually(lambda load=load, more=more: len(load.acknowledged) >= more, "jobs after the backup")
            later = load.acknowledged[-1]
        backup = state_of(cluster) / "backups" / name
        kept = states_in(backup)
        assert set(sure) <= set(kept)
        assert later not in kept
        note_epochs(cluster.api, seen)
        over = {job for job, state in kept.items() if state in TERMINAL}
        before = all_of(cluster.api, over)
        with stopped(cluster, chance.choice([signal.SIGKILL, signal.SIGTERM])):
            restore(cluster, backup)
        assert set(all_jobs(cluster.api)) == set(kept)
        assert all_of(cluster.api, over) == before
        for job in set(kept) - over:
            cluster.api.wait(job)
        note_epochs(cluster.api, seen)
        look(state_of(cluster))


def test_a_restore_under_live_agents_adopts_what_it_knows_and_has_the_rest_stopped_and_told(make_cluster: Make, tmp_path: Path) -> None:
    cluster = make_cluster(3, 3)
    api = cluster.api
    go = tmp_path / "go"
    script = f"echo begun; while [ ! -e {go} ]; do sleep 0.05; done; echo ended"
    known = api.submit(["sh", "-c", script])
    cluster.wait_state(known, "RUNNING")
    eventually(lambda: api.log(known) == "begun\n", "the first line")
    waits = api.submit(["sh", "-c", "echo waited"], gpus=6)
    name = api.post("/v1/backups")["name"]
    still_there = tmp_path / "still-there"
    runs = api.submit(["sh", "-c", f"echo $$ > {still_there}; exec sleep 600"], priority=1)
    cluster.wait_state(runs, "RUNNING")
    pid = int(eventually(lambda: still_there.exists() and still_there.read_text().strip(), "the pid"))
    ended = api.submit(["sh", "-c", "exit 3"], priority=1)
    api.wait(ended)
    old_epochs = epochs_of(api, [known, runs, ended])

    with stopped(cluster):
        restore(cluster, state_of(cluster) / "backups" / name)

    api = cluster.api
    told = eventually(lambda: len(lost(api)) == 2 and lost(api), "two lost attempts")
    assert set(told) == {runs, ended}
    assert told[ended]["exit_code"] == 3
    assert not told[ended]["job_known"] and not told[runs]["job_known"]
    assert {entry["epoch"] for entry in told.values()} == old_epochs - epochs_of(api, [known])
    for job in (runs, ended):  # nothing is run again because of that
        with pytest.raises(Problem) as problem:
            api.job(job)
        assert problem.value.status == 404
    eventually(lambda: not Path(f"/proc/{pid}").exists(), "the process of a job that is not known to be gone")
    assert api.job(known)["state"] == "RUNNING"
    go.touch()
    assert api.wait(known)["state"] == "SUCCEEDED"
    assert api.log(known) == "begun\nended\n"
    assert len(api.get(f"/v1/jobs/{known}/attempts")["attempts"]) == 1
    assert api.wait(waits)["state"] == "SUCCEEDED"
    assert not epochs_of(api, [waits]) & old_epochs
    shown = run_gpuctl("admin", "lost", "--url", cluster.url, "--token-file", str(state_of(cluster) / "admin.token"))
    assert shown.returncode == 0, shown.stderr
    assert runs in shown.stdout and ended in shown.stdout
    assert f"attempt lost job={runs}" in cluster.controller.said()


def test_a_job_that_ended_after_the_backup_is_named_as_known_and_ends_again(make_cluster: Make) -> None:
    cluster = make_cluster(1)
    api = cluster.api
    blocker = api.submit(["sleep", "600"])
    cluster.wait_state(blocker, "RUNNING")
    job = api.submit(["sh", "-c", "echo again"])
    name = api.post("/v1/backups")["name"]
    api.post(f"/v1/jobs/{blocker}/cancel")
    assert api.wait(job)["state"] == "SUCCEEDED"
    first = epochs_of(api, [job])
    with stopped(cluster):
        restore(cluster, state_of(cluster) / "backups" / name)
    api = cluster.api
    api.post(f"/v1/jobs/{blocker}/cancel")  # the first one was asked for after the backup, too
    assert api.wait(job)["state"] == "SUCCEEDED"
    told = eventually(lambda: lost(api), "the lost attempt")
    assert told[job]["job_known"] and told[job]["exit_code"] == 0
    assert {told[job]["epoch"]} == first
    assert not epochs_of(api, [job]) & first


@pytest.mark.parametrize("away", [True, False], ids=["it ends meanwhile", "it ends later"])
def test_a_backup_comes_back_on_a_new_machine_where_neither_logs_nor_mark_nor_token_are(
    make_cluster: Make, tmp_path: Path, away: bool
) -> None:
    cluster = make_cluster(2)
    api = cluster.api
    go = tmp_path / "go"
    job = api.submit(["sh", "-c", f"echo begun; while [ ! -e {go} ]; do sleep 0.05; done; echo ended; rm {go}"])
    cluster.wait_state(job, "RUNNING")
    eventually(lambda: api.log(job) == "begun\n", "the first line")
    backup = tmp_path / "backup"
    gpuctld("--backup", backup, "--state", state_of(cluster))
    with stopped(cluster):
        old = cluster.folder / "lost-machine"
        state_of(cluster).rename(old)
        said = gpuctld("--restore", backup, "--state", state_of(cluster)).stdout
        assert "a new token of an administrator" in said
        shutil.copy(old / "admin.token", tmp_path / "old.token")
        if away:  # its exit report has a last line whose first the new controller lacks
            go.touch()
            eventually(lambda: not go.exists(), "the job to end")
    assert cluster.admin_token != (tmp_path / "old.token").read_text().strip()
    assert Api(cluster.url, (tmp_path / "old.token").read_text().strip()).get("/v1/nodes")["nodes"], "the old token is good, too"
    if not away:
        go.touch()
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert cluster.api.log(job) == "begun\nended\n"  # the node had it all still
    look(state_of(cluster))


def test_the_controller_keeps_its_own_backups_and_no_more_than_it_should(make_cluster: Make) -> None:
    cluster = make_cluster(1, controller=["--backup-interval", "300ms", "--backup-keep", "2"])
    shelf = state_of(cluster) / "backups"

    def names() -> list[str]:
        return [backup["name"] for backup in cluster.api.get("/v1/backups")["backups"]]

    first = eventually(lambda: names() if len(names()) == 2 else None, "two backups")
    eventually(lambda: len(names()) == 2 and not set(names()) & set(first), "two newer ones")
    made = cluster.api.post("/v1/backups")["name"]
    eventually(lambda: sorted(names()) == sorted(p.name for p in shelf.iterdir()), "the list to be what there is")
    assert len(list(shelf.iterdir())) == 2
    with stopped(cluster):
        pass
    assert len(names()) == 2

    def listed() -> list[str]:
        told = run_gpuctl("admin", "backups", "-o", "json", "--url", cluster.url, "--token-file", str(state_of(cluster) / "admin.token"))
        return [backup["name"] for backup in json.loads(told.stdout)["backups"]]

    eventually(lambda: listed() == names(), "gpuctl to list the same, between one backup and the next")
    assert made <= names()[0]


def test_only_an_administrator_may_ask_for_backups(make_cluster: Make) -> None:
    cluster = make_cluster(1)
    for role in ("user", "node"):
        other = cluster.user("bob", role)
        for method, path in (("GET", "/v1/backups"), ("POST", "/v1/backups"), ("GET", "/v1/lost")):
            with pytest.raises(Problem) as problem:
                other.call(method, path)
            assert problem.value.status == 403
    with pytest.raises(Problem) as problem:
        cluster.user("eve").post("/v1/agent/journal", {"node": "node0", "boot_id": "x", "entries": []})
    assert problem.value.status == 403
    with pytest.raises(Problem) as problem:
        cluster.user("n", "node").post("/v1/agent/journal", {"node": "nobody", "boot_id": "x", "entries": []})
    assert problem.value.status == 404


def test_a_backup_never_takes_the_last_of_the_disk(make_cluster: Make) -> None:
    cluster = make_cluster(controller=["--min-free", "100000TiB"])
    with pytest.raises(Problem) as problem:
        cluster.api.post("/v1/backups")
    assert problem.value.code == "disk_full"
    assert "--backup-folder" in problem.value.body["hint"]
    assert list((state_of(cluster) / "backups").iterdir()) == []
    assert cluster.api.get("/v1/backups")["backups"] == []


def test_verbs_on_files_name_what_stands_in_their_way(make_cluster: Make, tmp_path: Path) -> None:
    cluster = make_cluster(1)
    state = str(state_of(cluster))
    made = run_gpuctl("admin", "backup", str(tmp_path / "one"), "--state", state)
    assert made.returncode == 0, made.stderr
    again = run_gpuctl("admin", "backup", str(tmp_path / "one"), "--state", state)
    assert again.returncode == 5 and "is there already" in again.stderr
    busy = run_gpuctl("admin", "restore", str(tmp_path / "one"), "--state", state)
    assert busy.returncode == 5 and "another gpuctld uses" in busy.stderr and "end it first" in busy.stderr
    assert run_gpuctl("admin", "check", str(tmp_path / "one"), "--state", state).stdout.endswith("ok\n")
    assert run_gpuctl("admin", "check", "--state", state).stdout.endswith("ok\n")
    manifest = tmp_path / "one" / "backup.json"
    whole = manifest.read_text()
    manifest.write_text(whole.replace('"sha256": "', '"sha256": "0'))
    found = run_gpuctl("admin", "check", str(tmp_path / "one"))
    assert found.returncode == 1 and "is not what the backup's manifest says" in found.stdout
    cluster.controller.kill(signal.SIGTERM)
    refused = run_gpuctl("admin", "restore", str(tmp_path / "one"), "--state", state)
    assert refused.returncode == 1 and "is not what the backup's manifest says" in refused.stderr
    nothing = run_gpuctl("admin", "restore", str(tmp_path / "two"), "--state", state)
    assert nothing.returncode == 1 and "cannot find the backup" in nothing.stderr
    cluster.start_controller()
    assert not (state_of(cluster) / "restoring.new").exists()


def test_a_check_finds_payloads_that_are_missing_or_changed(make_cluster: Make) -> None:
    cluster = make_cluster(1)
    hashes = []
    for letter in (b"a", b"b"):
        body = letter * 200_000
        digest = hashlib.sha256(body).hexdigest()
        status, _, _ = cluster.api.raw("PUT", f"/v1/blobs/{digest}", body)
        assert status == 201
        hashes.append(digest)
    blobs = state_of(cluster) / "blobs"
    assert "2 files, 400000 bytes" in look(state_of(cluster))
    with (blobs / hashes[0]).open("r+b") as file:
        file.seek(100_000)
        file.write(b"x")
    (blobs / hashes[1]).unlink()
    said = gpuctld("--check", state_of(cluster), check=False)
    assert said.returncode == 1
    assert f"payload {hashes[0]}: the file has 200000 bytes with the hash" in said.stdout
    assert hashes[1] in said.stdout and "No such file" in said.stdout
    assert "2 findings" in said.stdout
    assert not [p for p in state_of(cluster).iterdir() if p.name.startswith("checking")]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can restore for another user")
def test_what_root_restores_belongs_to_the_user_of_the_controller(make_cluster: Make, tmp_path: Path) -> None:
    cluster = make_cluster()
    gpuctld("--backup", tmp_path / "backup", "--state", state_of(cluster))
    cluster.controller.kill()
    (state_of(cluster) / "lock").unlink()
    user = pwd.getpwnam("nobody").pw_uid
    for path in [state_of(cluster), *state_of(cluster).rglob("*")]:
        os.chown(path, user, -1)
    restore(cluster, tmp_path / "backup")
    assert [path for path in state_of(cluster).rglob("*") if path.stat().st_uid != user] == []
    assert (state_of(cluster) / "lock").exists() and any(state_of(cluster).glob("replaced-*/gpuctl.db"))
    (tmp_path / "of root").touch()
    (state_of(cluster) / "lock").unlink()
    os.link(tmp_path / "of root", state_of(cluster) / "lock")  # by the controller's user, who wants it
    restore(cluster, tmp_path / "backup")
    assert (tmp_path / "of root").stat().st_uid == 0


STRACE = shutil.which("strace")


@pytest.mark.skipif(STRACE is None, reason="strace is not installed: deploy/dependencies --tests")
def test_a_restore_killed_at_any_step_leaves_the_old_or_the_new(make_cluster: Make, tmp_path: Path, volume: Volume) -> None:
    cluster = make_cluster()
    api = cluster.api
    api.post("/v1/tokens", {"role": "user", "owner": "kept"})
    backup = tmp_path / "backup"
    gpuctld("--backup", backup, "--state", state_of(cluster))
    api.post("/v1/tokens", {"role": "user", "owner": "later"})
    cluster.controller.kill()
    pristine = tmp_path / "pristine"
    shutil.copytree(state_of(cluster), pristine)
    outcomes = []
    for call in ("rename", "fsync", "unlinkat")[: volume(1, 3)]:  # each rename is a step that others can see
        for step in range(1, 200):
            shutil.rmtree(state_of(cluster))
            shutil.copytree(pristine, state_of(cluster))
            done = subprocess.run(
                [str(STRACE), "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={step}",
                 str(GPUCTLD), "--restore", str(backup), "--state", str(state_of(cluster))], capture_output=True, timeout=patient(60),
                env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"},  # which cannot look for leaks in what is traced
            )  # fmt: skip
            cluster.start_controller()
            restored = "later" not in {token["owner"] for token in cluster.api.get("/v1/tokens")["tokens"]}
            assert "kept" in {token["owner"] for token in cluster.api.get("/v1/tokens")["tokens"]}
            assert (cluster.api.get("/version")["incarnation"] > 65536) == restored
            assert not (state_of(cluster) / "restoring").exists()
            cluster.controller.kill()
            look(state_of(cluster))
            outcomes.append((done.returncode == 0, restored))
            if done.returncode == 0:
                break
    assert len(outcomes) > 5
    assert set(outcomes) == {(False, False), (False, True), (True, True)}  # the last: one that was not killed
    cluster.start_controller()


def test_a_controller_that_is_killed_while_it_makes_backups_leaves_whole_ones_alone(make_cluster: Make, volume: Volume) -> None:
    cluster = make_cluster(1, controller=["--backup-interval", "1ms", "--backup-keep", "3"])
    shelf = state_of(cluster) / "backups"

    def half() -> list[Path]:
        return [path for path in shelf.iterdir() if path.name.endswith(".arriving")]

    caught = 0
    for _ in range(volume(5, 200)):
        eventually(half, "a backup that is being made")
        with stopped(cluster):
            caught += len(half()) > 0
            for backup in set(shelf.iterdir()) - set(half()):
                look(backup)
        cluster.api.post("/v1/backups")  # whatever was left half made goes with the next
        assert len(half()) <= 1
    assert caught > 0
