# SPDX-License-Identifier: Apache-2.0
"""Verbs of people's day: who am I, which controller, what is wrong, and changes of many jobs at once."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness import GPUCTL, run_gpuctl

Ran = subprocess.CompletedProcess[str]


class Own(NamedTuple):
    """An instance with two slots, and how to reach it as its administrator."""

    state: Path
    url: str
    token: Path

    def __call__(self, *words: str, given: str = "", **env: str) -> Ran:
        return run_gpuctl(*words, given=given, env={"GPUCTL_STATE": str(self.state), "NO_COLOR": "1", **env})

    def json(self, *words: str) -> Any:
        """The document that the words print, which succeed."""
        ran = self(*words, "-o", "json")
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Own]:
    folder = tmp_path_factory.mktemp("own") / "state"
    up = run_gpuctl("up", "--state", str(folder), "--cpu-slots", "2", "--devices", "none", "-o", "json")
    assert up.returncode == 0, up.stderr
    told = json.loads(up.stdout)
    yield Own(folder, told["url"], Path(told["token_file"]))
    assert run_gpuctl("down", "--state", str(folder), "--force").returncode == 0


# --- who, and which controller ---


@pytest.fixture
def anna(own: Own, tmp_path: Path) -> Path:
    """The file of a user's token."""
    made = own("token", "create", "--owner", "anna", "--out", str(tmp_path / "anna.token"))
    assert made.returncode == 0, made.stderr
    return tmp_path / "anna.token"


Person = Callable[..., Ran]


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """gpuctl of somebody with a home of their own."""
    return lambda *words, **env: run_gpuctl(*words, env={"XDG_CONFIG_HOME": str(tmp_path), "GPUCTL_STATE": str(tmp_path / "none"), **env})


def test_whoami_names_the_person_the_rights_and_what_chose_the_controller(own: Own, anna: Path, person: Person, tmp_path: Path) -> None:
    shown = person("whoami", GPUCTL_URL=own.url, GPUCTL_TOKEN_FILE=str(anna))
    assert re.search(r"^user +anna$", shown.stdout, re.MULTILINE), shown
    assert "user: may submit jobs" in shown.stdout and f"{own.url}, from GPUCTL_URL\n" in shown.stdout
    assert own("whoami").stdout.endswith(f"{own.url}, from your own instance in {own.state}\n")
    person("login", own.url, "--token-file", str(anna), "--insecure-plain-http")
    who = json.loads(person("whoami", "-o", "json").stdout)
    config = (tmp_path / "gpuctl/config").read_text().splitlines()
    assert who["owner"] == "anna" and who["role"] == "user" and who["expires_at"] is not None and who["context"] is None
    assert who["token"] == anna.read_text().split("_")[1] and who["token_file"] == str(tmp_path / "gpuctl/token")
    assert who["url_from"] == f"{tmp_path}/gpuctl/config:{config.index(f'url = {own.url}') + 1}"
    assert json.loads(person("whoami", "--url", own.url, "-o", "json").stdout)["url_from"] == "--url"


def owner(person: Person) -> str:
    return str(json.loads(person("whoami", "-o", "json").stdout)["owner"])


def test_contexts_change_the_controller_and_the_token_together(own: Own, anna: Path, person: Person, tmp_path: Path) -> None:
    config = tmp_path / "gpuctl/config"
    assert person("login", own.url, "--token-file", str(own.token)).returncode == 0
    config.write_text("# mine\n" + config.read_text())
    administrator = owner(person)
    assert person("login", own.url, "--token-file", str(anna), "--context", "lab").returncode == 0
    assert owner(person) == "anna" and config.read_text().startswith("# mine\n")
    assert (tmp_path / "gpuctl/contexts/lab/token").stat().st_mode & 0o777 == 0o600
    listed = json.loads(person("context", "-o", "json").stdout)["contexts"]
    assert [(row["name"], row["used"]) for row in listed] == [("default", False), ("lab", True)]
    assert person("context", "default").returncode == 0 and owner(person) == administrator
    assert person("context", "lab", GPUCTL_URL="http://127.0.0.1:9").stderr.endswith("GPUCTL_URL is set, and wins: http://127.0.0.1:9\n")
    assert owner(person) == "anna"
    assert person("context", "add", "third", own.url, "--token-file", str(anna)).returncode == 0
    assert person("context", "--quiet").stdout.split() == ["default", "lab", "third"]
    assert person("context", "remove", "third").returncode == 0
    assert person("context", "list", "--quiet").stdout.split() == ["default", "lab"] and anna.exists()
    assert person("login", own.url, "--token-file", str(anna)).returncode == 0, "a login without a name is the default one"
    assert json.loads(person("whoami", "-o", "json").stdout)["context"] == "default"
    assert person("context", "lab").returncode == 0 and person("logout").returncode == 0
    assert not (tmp_path / "gpuctl/contexts/lab/token").exists() and (tmp_path / "gpuctl/token").exists()


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["nobody"], 3, "make one: gpuctl login URL --context NAME"),
        (["../x"], 3, "there is no context"),
        (["add", "a/b", "http://127.0.0.1:1", "--token-file", "x"], 2, "cannot be the name of a context"),
        (["add", "list", "http://127.0.0.1:1", "--token-file", "x"], 2, "cannot be the name of a context"),
        (["add", "lab", "http://127.0.0.1:1"], 2, "needs --token-file"),
        (["add", "lab", "http://127.0.0.1:1", "--token-file", "/nonexistent"], 4, "/nonexistent"),
        (["add", "lab", "lab.example.org"], 2, "is not the URL of a controller"),
        (["add", "lab"], 2, "takes a name and a URL"),
        (["remove", "lab"], 3, "there is no context"),
    ],
)
def test_wrong_contexts_are_refused_and_leave_no_file(person: Person, tmp_path: Path, words: list[str], code: int, says: str) -> None:
    refused = person("context", *words)
    assert refused.returncode == code and says in refused.stderr, refused
    assert not (tmp_path / "gpuctl/contexts").exists()


def test_a_controller_in_use_is_not_forgotten_for_another(own: Own, anna: Path, person: Person, tmp_path: Path) -> None:
    (tmp_path / "copy.token").write_text(anna.read_text())
    for name, token in (("default", anna), ("lab", tmp_path / "copy.token")):
        assert person("context", "add", name, own.url, "--token-file", str(token)).returncode == 0
    other = f"url = {own.url}\ntoken-file = {own.token}\n"
    (tmp_path / "gpuctl/config").write_text(other)
    refused = person("context", "lab")
    assert refused.returncode == 5 and f"gpuctl context add NAME {own.url} --token-file {own.token}" in refused.stderr
    assert (tmp_path / "gpuctl/config").read_text() == other
    assert person("context", "add", "mine", own.url, "--token-file", str(own.token)).returncode == 0
    assert person("context", "lab").returncode == 0
    assert "is in use" in person("context", "remove", "lab").stderr and owner(person) == "anna"


# --- doctor ---


def checks(ran: Ran) -> dict[str, str]:
    """The state of each check by its name."""
    return {line[6:21].strip(): line[:4].strip() for line in ran.stdout.splitlines()}


def test_a_sound_cluster_passes_every_check(own: Own) -> None:
    looked = own("doctor")
    wanted = {"settings", "name", "controller", "tls", "clock", "token", "versions", "nodes", "disk"}
    assert looked.returncode == 0 and checks(looked) == dict.fromkeys(wanted, "ok"), looked
    listed = own.json("doctor")["checks"]
    assert {row["check"]: row["state"] for row in listed} == checks(looked) and all(row["remedy"] is None for row in listed)


def test_a_check_that_fails_says_what_to_do_and_exits_with_1(own: Own, person: Person, tmp_path: Path) -> None:
    unnamed = person("doctor")
    assert unnamed.returncode == 1 and checks(unnamed) == {"settings": "FAIL"} and "gpuctl up" in unnamed.stdout
    away = person("doctor", "--url", "http://127.0.0.1:9", "--token-file", str(own.token))
    assert away.returncode == 1 and checks(away)["controller"] == "FAIL" and "is gpuctld running" in away.stdout
    nowhere = person("doctor", "--url", "https://host.invalid", "--token-file", str(own.token))
    assert nowhere.returncode == 1 and checks(nowhere) == {"settings": "ok", "name": "FAIL"}
    (tmp_path / "wrong").write_text("gct_aaaaaaaa_" + "a" * 43)
    wrong = person("doctor", "--url", own.url, "--token-file", str(tmp_path / "wrong"))
    assert wrong.returncode == 1 and checks(wrong)["token"] == "FAIL" and checks(wrong)["controller"] == "ok"


def test_a_node_that_takes_no_work_is_named_with_the_remedy(own: Own) -> None:
    assert own("nodes", "drain", "node0", "--reason", "new fan").returncode == 0
    looked = own("doctor")
    assert looked.returncode == 1 and checks(looked)["nodes"] == "FAIL" and checks(looked)["node"] == "warn"
    assert "node0 is DRAINED: new fan; when it may work again: gpuctl nodes resume node0\n" in looked.stdout
    assert own("nodes", "resume", "node0").returncode == 0 and own("doctor").returncode == 0


def test_a_machine_is_looked_at_as_a_node(own: Own) -> None:
    looked = own("doctor", "--node")
    assert {"agent", "delegation", "cgroups", "gpus", "kernel", "seccomp", "agent's disk", "python"} < checks(looked).keys()
    assert checks(looked)["python"] == "ok"
    for line in looked.stdout.splitlines():
        assert line.startswith("ok") or "; " in line, "what to do is missing"


# --- jobs that are left to run ---


def test_run_detach_prints_the_id_and_leaves_the_job_to_run(own: Own) -> None:
    ran = own("run", "-d", "--gpus", "1", "--", "sleep", "600")
    job = ran.stdout.strip()
    assert ran.returncode == 0 and re.fullmatch("[a-z2-7]{16}", job), ran
    assert f"`gpuctl logs -f {job}` follows it" in ran.stderr
    assert own.json("get", job)["state"] not in ("FAILED", "CANCELED")
    quiet = own("run", "--detach", "--quiet", "--after", f"{job}:afterany", "--", "sh", "-c", "exit 3")
    assert quiet.returncode == 0 and quiet.stderr == "", "the code of the job is not that of run"
    assert own("cancel", "--wait", job).returncode == 0
    assert own("wait", quiet.stdout.strip()).returncode == 3
    assert own("run", "--detach", "--after", quiet.stdout.strip(), "--", "true").stderr.count("is CANCELED already") == 1
    array = own("run", "--detach", "--array", "3", "--", "true")
    assert array.returncode == 125 and "gpuctl submit" in array.stderr, array


def test_run_detach_starts_a_controller_where_none_is_named(tmp_path: Path) -> None:
    env = {"GPUCTL_STATE": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path)}
    try:
        ran = run_gpuctl("run", "--detach", "--gpus", "0", "--", "true", env=env)
        assert ran.returncode == 0 and run_gpuctl("wait", ran.stdout.strip(), env=env).returncode == 0, ran
    finally:
        run_gpuctl("down", "--force", env=env)


# --- names ---


def test_ps_calls_a_job_without_a_name_by_its_program(own: Own) -> None:
    commands = [("torchrun", "--nproc-per-node", "1", "src/train.py"), ("bash", "-c", "true"), ("--name", "mine", "python", "train.py")]
    ids = [own("submit", "--hold", *words).stdout.strip() for words in commands]
    array = own("submit", "--hold", "--array", "2", "python", "-m", "work.part", "{task}").stdout.strip()
    rows = {words[0]: words[1] for words in map(str.split, own("ps", "--all").stdout.splitlines()[1:])}
    assert [rows[job] for job in (*ids, array)] == ["train.py", "bash", "mine", "work.part"]
    listed = {job["id"]: (job["name"], job["program"]) for job in own.json("ps")["jobs"]}
    assert listed[ids[0]] == (None, "train.py") and listed[ids[2]] == ("mine", "train.py")
    assert own("ps", "--name", "train.py", "--quiet").stdout == "", "it is no name"
    assert own("cancel", *ids, array).returncode == 0


# --- many jobs at once ---


def held(own: Own, *words: str, **env: str) -> str:
    made = own("submit", "--hold", *words, "--", "true", **env)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def states(own: Own, *jobs: str) -> list[str]:
    return [own.json("get", job)["state"] for job in jobs]


def test_cancel_mine_ends_the_jobs_of_the_caller_and_all_those_of_others_too(own: Own, anna: Path) -> None:
    as_anna = {"GPUCTL_URL": own.url, "GPUCTL_TOKEN_FILE": str(anna)}
    hers, array, other = held(own, **as_anna), held(own, "--array", "3", **as_anna), held(own)
    told = own("cancel", "--mine", "--yes", **as_anna)
    assert told.returncode == 0 and told.stderr == "gpuctl: 2 jobs canceled; ranks get the job's grace\n", told
    assert states(own, hers, array, other) == ["CANCELED", "CANCELED", "HELD"]
    again = own("cancel", "--all", "--yes", **as_anna)
    assert again.returncode == 0 and "0 jobs canceled" in again.stderr, "a user's own jobs are all that it may end"
    hers = held(own, **as_anna)
    ended = own.json("cancel", "--all", "--yes", "--wait")["jobs"]
    assert {job["id"] for job in ended} == {hers, other} and {job["state"] for job in ended} == {"CANCELED"}


def test_jobs_that_the_caller_sees_and_may_not_end_go_on(own: Own, anna: Path) -> None:
    assert own("quotas", "set", "project", "shared", "--member", "anna=user").returncode == 0
    as_anna = {"GPUCTL_URL": own.url, "GPUCTL_TOKEN_FILE": str(anna)}
    other, hers = held(own, "--project", "shared"), held(own, "--project", "shared", **as_anna)
    told = own("cancel", "--all", "--project", "shared", "--yes", **as_anna)
    assert told.returncode == 0 and "1 job you may see, and not end" in told.stderr and "1 job canceled" in told.stderr, told
    assert states(own, hers, other) == ["CANCELED", "HELD"] and own("cancel", other).returncode == 0


def test_filters_choose_what_cancel_ends(own: Own) -> None:
    first, second, waits = held(own, "--name", "first"), held(own, "--name", "second"), own("submit", "--gpus", "2", "--", "sleep", "600")
    assert own("cancel", "--all", "--name", "first", "--state", "queued,running,placed", "--yes").stderr.startswith("gpuctl: 0 jobs")
    assert own("cancel", "--mine", "--name", "first", "--project", "none", "--yes").stderr.startswith("gpuctl: 0 jobs")
    assert own("cancel", "--mine", "--name", "first", "--state", "held", "--yes").stderr.startswith("gpuctl: 1 job ")
    assert states(own, first, second) == ["CANCELED", "HELD"]
    assert own("cancel", "--mine", "--wait", "--yes").stderr == "gpuctl: 2 jobs ended\n"
    assert states(own, second, waits.stdout.strip()) == ["CANCELED", "CANCELED"]


def asked(own: Own, answer: str) -> tuple[int, str]:
    """cancel --mine on a terminal on which somebody types: the exit code, and what the terminal shows."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(GPUCTL, [str(GPUCTL), "cancel", "--mine"], {**os.environ, "GPUCTL_STATE": str(own.state)})
    os.write(terminal, answer.encode())
    shown = b""
    with suppress(OSError):  # the end of a terminal
        while more := os.read(terminal, 4096):
            shown += more
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


def test_a_terminal_is_asked_how_many_jobs_may_be_ended(own: Own) -> None:
    job = held(own)
    code, shown = asked(own, "\n")
    assert code == 1 and "End 1 job? [y/N]" in shown and "no job was ended" in shown and states(own, job) == ["HELD"]
    code, shown = asked(own, "y\n")
    assert code == 0 and "1 job canceled" in shown and states(own, job) == ["CANCELED"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "needs ID..., --mine, --label or --all"),
        (["--mine"], "add --yes"),
        (["--mine", "--all", "--yes"], "exclude each other"),
        (["--mine", "--yes", "abcd"], '"abcd" is an id beside --mine'),
        (["--name", "x", "abcd"], "add --mine or --all"),
        (["--mine", "--yes", "--state", "failed"], "jobs that are FAILED have ended"),
        (["--mine", "--yes", "--state", "sleepy"], 'no job state "SLEEPY"'),
    ],
)
def test_cancel_of_a_list_refuses_what_it_cannot_mean(own: Own, words: list[str], says: str) -> None:
    refused = own("cancel", *words)
    assert refused.returncode == 2 and says in refused.stderr, refused
