# SPDX-License-Identifier: Apache-2.0
"""Programs replaced while jobs run and wait: by other files, by those of a later revision, and on databases of earlier schemas."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gangs import Gang
from harness import GPUAGENT, GPUCTLD, TERMINAL, Cluster, Problem, Program

RECORDED = Path(__file__).parents[1] / "recorded"
SCHEMAS = sorted(folder.name for folder in RECORDED.glob("schema-*"))


def install(folder: Path, programs: Path | None = None) -> None:
    """Puts programs into a folder as a package does: each file is replaced in one step, those that run keep the old one. None: today's."""
    folder.mkdir(exist_ok=True)
    for source in (GPUCTLD, GPUAGENT, GPUAGENT.parent / "gpushim"):
        new = folder / f"{source.name}.new"
        shutil.copy2(programs / source.name if programs else source, new)
        new.rename(folder / source.name)


def program_of(pid: int) -> tuple[int, bool]:
    """The inode that a process was started from, and whether it is still in its place."""
    link = os.readlink(f"/proc/{pid}/exe")
    return os.stat(f"/proc/{pid}/exe").st_ino, not link.endswith(" (deleted)")


class Load:
    """Small jobs that come all the time, each known by a key that is sent again until there is an answer."""

    def __init__(self, cluster: Cluster, folder: Path):
        self.cluster = cluster
        self.folder = folder
        self.jobs: list[str] = []
        self.over = threading.Event()
        self.problem: BaseException | None = None
        folder.mkdir()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self) -> None:
        try:
            while not self.over.wait(0.05):
                self.jobs.append(self.submit(len(self.jobs)))
        except BaseException as problem:
            self.problem = problem

    def submit(self, number: int) -> str:
        key = uuid.uuid4().hex
        document = {"command": ["sh", "-c", f"echo $GPUCTL_ATTEMPT >>{self.folder}/{number}"], "gpus": 1}
        while True:
            try:
                return self.cluster.api.post("/v1/jobs", document, Idempotency_Key=key)["id"]
            except Problem as problem:
                assert problem.body["retryable"], problem
            except OSError:
                pass  # the controller is away
            assert not self.over.wait(0.02), "no answer"

    def stop(self) -> int:
        """All have succeeded, each by one start. Returns how many there were."""
        self.over.set()
        self.thread.join()
        if self.problem is not None:
            raise self.problem
        for number, job in enumerate(self.jobs):
            view = self.cluster.api.wait(job)
            assert view["state"] == "SUCCEEDED", view
            assert (self.folder / str(number)).read_text().split() == [str(view["attempt"])], view
        return len(self.jobs)


class Upgrade:
    """A cluster whose programs are in a folder of its own, with gangs that run, jobs that wait, and jobs that come."""

    def __init__(self, folder: Path, programs: Path | None):
        self.programs = folder / "programs"
        self.gate = folder / "gate"
        install(self.programs, programs)
        (folder / "cluster").mkdir()
        self.cluster = Cluster(folder / "cluster", [3, 3, 3], programs=self.programs)
        self.gangs: list[Gang] = []
        self.waiting: list[str] = []
        self.load: Load | None = None

    def begin(self) -> None:
        self.cluster.start()
        self.gangs = [Gang(self.cluster, self.gate) for _ in range(3)]
        for gang in self.gangs:
            gang.writes()
        self.waiting = [self.cluster.api.submit(["sleep", "0.2"]) for _ in range(30)]
        self.load = Load(self.cluster, self.cluster.folder / "load")

    def replace(self, programs: Path | None) -> None:
        install(self.programs, programs)

    def restart_controller(self) -> None:
        assert self.cluster.controller.kill(15) == 0
        self.cluster.start_controller()
        self.settle()

    def restart_agents(self) -> None:
        for agent in self.cluster.agents:
            assert agent.kill(15) == 0
            agent.start()
        self.settle()

    def settle(self) -> None:
        """Everybody is there, and works: the gangs go on, and a job that came just now ends."""
        self.cluster.wait_ready()
        for gang in self.gangs:
            gang.goes_on()
            gang.lives()
        job = self.cluster.api.submit(["true"])
        view = self.cluster.api.wait(job)
        assert view["state"] == "SUCCEEDED", view

    def finish(self) -> str:
        """Let all end, and check each; a sentence for people."""
        self.gate.touch()
        lines = sum(gang.assert_undisturbed() for gang in self.gangs)
        for job in self.waiting:
            view = self.cluster.api.wait(job)
            assert view["state"] == "SUCCEEDED", view
        assert self.load is not None
        return f"3 gangs with {lines} lines, {len(self.waiting)} jobs that waited and {self.load.stop()} that came"

    def stop(self) -> None:
        self.gate.touch()
        if self.load is not None:
            self.load.over.set()
        for gang in self.gangs:
            gang.stop_reading()
        self.cluster.stop()


def pid_of(program: Program) -> int:
    assert program.process is not None
    return program.process.pid


def test_programs_replaced_on_disk_are_taken_over_by_new_ones_under_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The new ones are from other files; the shims of the gangs go on from files that are gone."""
    upgrade = Upgrade(tmp_path, None)
    try:
        upgrade.begin()
        shims = {pid: program_of(pid)[0] for gang in upgrade.gangs for pid in shims_with(gang)}
        assert len(shims) >= 3
        upgrade.replace(None)
        upgrade.restart_controller()
        upgrade.restart_agents()
        for program in (upgrade.cluster.controller, *upgrade.cluster.agents):
            assert program_of(pid_of(program))[1], "an old program still runs"
        assert {pid for gang in upgrade.gangs for pid in shims_with(gang)} == set(shims)
        assert all(program_of(pid) == (inode, False) for pid, inode in shims.items()), "a shim was replaced under its ranks"
        said = upgrade.finish()
    finally:
        upgrade.stop()
    with capsys.disabled():
        print(f"\nreplaced on disk under {said}")


def shims_with(gang: Gang) -> list[int]:
    """The parents of the ranks."""
    return sorted({int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid, _ in gang.processes()})


# --- the revision before ours ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def previous(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of the newest revision whose database was of the schema version before ours."""
    if not request.config.getoption("--long"):
        pytest.skip("builds an earlier revision: with --long only")
    built = subprocess.run(
        [str(Path(__file__).parents[1] / "previous"), os.environ.get("GPUCTL_PREVIOUS", str(tmp_path_factory.mktemp("previous")))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if built.returncode == 77:
        pytest.skip(built.stderr.strip())
    assert built.returncode == 0, built.stderr
    return Path(built.stdout.strip())


@pytest.mark.parametrize("first", ["controller", "agents"])
def test_an_upgrade_from_the_revision_before_disturbs_nothing(
    first: str, tmp_path: Path, previous: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both old, then one of them new, then both: with the other order that is all four pairs of old and new."""
    upgrade = Upgrade(tmp_path, previous)
    try:
        upgrade.begin()
        upgrade.settle()
        upgrade.replace(None)
        steps = [upgrade.restart_controller, upgrade.restart_agents]
        for step in steps if first == "controller" else reversed(steps):
            step()
        said = upgrade.finish()
    finally:
        upgrade.stop()
    with capsys.disabled():
        print(f"\nupgraded, {first} first, under {said}")


def test_an_older_controller_refuses_the_database_of_ours_and_leaves_it(tmp_path: Path, previous: Path) -> None:
    upgrade = Upgrade(tmp_path, None)
    try:
        upgrade.begin()
        assert upgrade.cluster.controller.kill(15) == 0
        database = upgrade.cluster.folder / "controller" / "gpuctl.db"
        before = database.read_bytes()
        upgrade.replace(previous)
        older = Program(upgrade.cluster.controller_command(), tmp_path / "older.log")
        older.start()
        assert older.process is not None
        assert older.process.wait(30) != 0
        assert "schema version" in older.said()
        assert database.read_bytes() == before
        upgrade.replace(None)
        upgrade.cluster.start_controller()
        upgrade.settle()
        upgrade.finish()
    finally:
        upgrade.stop()


# --- databases that were kept --------------------------------------------------------------------------------------------------


def restore(recorded: Path, state: Path) -> None:
    """The database that a controller of that version left when it was killed."""
    state.mkdir()
    state.chmod(0o700)
    database = state / "gpuctl.db"
    with sqlite3.connect(database) as db:
        db.executescript((recorded / "database.sql").read_text())
    database.chmod(0o600)


def rows_of(recorded: Path, table: str, columns: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(":memory:") as db:
        db.executescript((recorded / "database.sql").read_text())
        return db.execute(f"SELECT {columns} FROM {table}").fetchall()


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_database_of_an_earlier_version_is_taken_up_with_its_live_jobs(schema: str, tmp_path: Path) -> None:
    """What had ended is told as before, what ran is run again once its nodes are there and know nothing of it, what waited runs."""
    recorded = RECORDED / schema
    folder = tmp_path / "cluster"
    folder.mkdir()
    cluster = Cluster(folder, [2, 2])
    restore(recorded, folder / "controller")
    jobs = rows_of(recorded, "jobs", "id, name, state, exit_code, gpus, attempt, seq")
    cluster.start_controller()
    try:
        for id, name, state, code, gpus, attempt, _ in jobs:
            view = cluster.api.job(id)
            told = (view["name"], view["state"], view["gpus"], view["attempt"])
            assert told == (name, state, gpus, attempt), view
            assert view["exit_code"] == (code if state in TERMINAL else None)
            if attempt > 0:  # of the time of its start is told what its rows say
                moments = cluster.api.get(f"/v1/jobs/{id}/timing")["attempts"][0]["moments"]
                assert moments["received_ms"] == 0 and moments["placed_ms"] > 0 and moments["ordered_ms"] is None, moments
        for node in rows_of(recorded, "nodes", "name"):  # this is another machine than theirs, and somebody says that they are dead
            cluster.api.post(f"/v1/nodes/{node[0]}/fence", {"assert_dead": True})
        cluster.controller.kill(15)
        cluster.start()
        for id, name, state, _, _, attempt, seq in jobs:
            view = cluster.api.wait(id)
            ended = "SUCCEEDED" if state not in TERMINAL else state
            again = attempt + (state not in TERMINAL)
            assert (view["state"], view["attempt"]) == (ended, again), view
            seqs = [event["seq"] for event in cluster.api.get(f"/v1/jobs/{id}/events")["events"]]
            assert seqs == list(range(1, len(seqs) + 1)) and (len(seqs) == seq if state in TERMINAL else len(seqs) > seq), (name, seqs)
        assert "attempt 2\n" in cluster.api.log(next(id for id, name, *_ in jobs if name == "running"), 2)
    finally:
        cluster.stop()


def test_an_agent_that_is_too_new_is_told_what_to_upgrade(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    ours = cluster.api.get("/version")["protocol"]
    message = {**json.loads((RECORDED / SCHEMAS[-1] / "register_message.json").read_text()), "protocol": ours + 1, "version": "99.0"}
    nodes = cluster.user("nodes", "node")
    with pytest.raises(Problem) as refused:
        nodes.post("/v1/agent/register", message)
    assert (refused.value.status, refused.value.field) == (422, "protocol")
    assert f"gpuagent 99.0 speaks protocol {ours + 1}" in refused.value.body["detail"]
    assert "upgrade gpuctld first" in refused.value.body["hint"]
    assert list(cluster.nodes()) == ["node0"], "a node that was refused is listed"
    nodes.post("/v1/agent/register", {**message, "protocol": ours, "name": "other"})
    assert sorted(cluster.nodes()) == ["node0", "other"]
