# SPDX-License-Identifier: Apache-2.0
"""Secrets: who sets them, who may use them, how ranks get them, and what becomes of jobs when they change or go."""

from __future__ import annotations

import base64
import os
import secrets
import signal
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import Cluster, Problem, eventually
from vault import digest, gpuctl, put, tells, told


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("secrets"), [2, 2]).start()
    members = {"uma": "user", "mia": "user", "vera": "viewer"}
    cluster.api.call("PUT", "/v1/accounts/projects/vision", {"members": members})
    cluster.open_project("public")
    yield cluster
    cluster.stop()


def refused(act: Callable[[], Any]) -> Problem:
    with pytest.raises(Problem) as problem:
        act()
    return problem.value


def draw() -> str:
    return secrets.token_urlsafe(24)


# --- people ---------------------------------------------------------------------------------------------------


def test_a_person_sets_lists_and_removes_secrets_whose_values_nobody_sees_again(cluster: Cluster, tmp_path: Path) -> None:
    ann, value = cluster.user("ann"), draw()
    done = gpuctl(cluster, ann, "secret", "set", "HF_TOKEN", given=value + "\n")
    assert done.returncode == 0, done.stderr
    file = tmp_path / "key"
    file.write_bytes(b"\x00\xff key \n")
    assert gpuctl(cluster, ann, "secret", "set", "KEY", "--file", str(file)).returncode == 0
    listed = ann.get("/v1/secrets")["secrets"]
    assert [(each["name"], each["bytes"], each["project"], each["set_by"]) for each in listed] == [
        ("HF_TOKEN", len(value), None, "ann"), ("KEY", 8, None, "ann"),
    ]  # fmt: skip
    assert all(set(each) == {"name", "project", "bytes", "set_by", "set_at"} for each in listed)
    assert gpuctl(cluster, ann, "secret", "list", "-q").stdout.split() == ["HF_TOKEN", "KEY"]
    assert gpuctl(cluster, ann, "secret", "rm", "KEY").returncode == 0
    missing = gpuctl(cluster, ann, "secret", "rm", "KEY")
    assert missing.returncode == 3 and "there is no secret KEY" in missing.stderr
    assert gpuctl(cluster, ann, "secret", "list", "-q").stdout.split() == ["HF_TOKEN"]
    assert refused(lambda: ann.get("/v1/secrets/HF_TOKEN")).status == 405


@pytest.mark.parametrize(
    ("name", "document", "status", "field"),
    [
        ("9X", {"value": "x"}, 422, "name"),
        ("A" * 64, {"value": "x"}, 422, "name"),
        ("X", {}, 422, "value"),
        ("X", {"value": ""}, 422, "value"),
        ("X", {"value": "x", "base64": "eA=="}, 422, "value"),
        ("X", {"base64": "?"}, 422, "base64"),
        ("X", {"value": "x" * 65537}, 422, "value"),
        ("X", {"value": "x", "project": "nowhere"}, 403, "project"),
        ("X", {"value": "x", "project": "public"}, 403, "project"),
        ("X", {"value": "x", "owner": "eve"}, 422, "owner"),
    ],
)
def test_what_is_no_secret_is_refused_with_its_field(
    cluster: Cluster, name: str, document: dict[str, str], status: int, field: str
) -> None:
    problem = refused(lambda: cluster.user("ann").call("PUT", f"/v1/secrets/{name}", document))
    assert (problem.status, problem.field) == (status, field)


def test_a_person_has_at_most_64_and_may_still_change_these(cluster: Cluster) -> None:
    fay = cluster.user("fay")
    for i in range(64):
        put(fay, f"S{i}", "x")
    assert refused(lambda: put(fay, "ONE_MORE", "x")).status == 409
    put(fay, "S63", "y")
    fay.call("DELETE", "/v1/secrets/S0")
    put(fay, "ONE_MORE", "x")


def test_others_neither_see_nor_use_nor_remove_it(cluster: Cluster) -> None:
    ann, eve = cluster.user("ann"), cluster.user("eve")
    put(ann, "OWN", draw())
    assert eve.get("/v1/secrets")["secrets"] == []
    assert refused(lambda: eve.call("DELETE", "/v1/secrets/OWN")).status == 404
    for person in (eve, cluster.api, cluster.user("oscar", "operator")):
        problem = refused(lambda who=person: who.submit(["true"], secrets=["OWN"]))  # type: ignore[misc]
        assert problem.status == 422 and problem.field == "secrets[0]" and "gpuctl secret set OWN" in problem.body["hint"]
    assert refused(lambda: cluster.user("ann", "viewer").get("/v1/secrets")).status == 403


def test_users_of_a_project_share_its_secrets(cluster: Cluster) -> None:
    uma, mia, value = cluster.user("uma"), cluster.user("mia"), draw()
    put(uma, "SHARED", value, "vision")
    listed = gpuctl(cluster, mia, "secret", "list", "--project", "vision").stdout
    assert "SHARED" in listed and "uma" in listed
    for name in ("vera", "eve", "admin"):
        problem = refused(lambda who=name: cluster.user(who).get("/v1/secrets?project=vision"))  # type: ignore[misc]
        assert (problem.status, problem.field) == (403, "project")
    assert refused(lambda: mia.submit(tells("SHARED"), secrets=["SHARED"])).field == "secrets[0]"
    job = mia.submit(tells("SHARED"), secrets=["SHARED"], project="vision")
    assert told(cluster, job) == f"SHARED {digest(value)}"
    own = draw()
    put(mia, "SHARED", own)
    assert told(cluster, mia.submit(tells("SHARED"), secrets=["SHARED"], project="vision")) == f"SHARED {digest(own)}"


def test_the_audit_has_who_set_and_removed_what_and_no_value(cluster: Cluster) -> None:
    uma, value = cluster.user("uma"), draw()
    put(uma, "AUDITED", value, "vision")
    uma.call("DELETE", "/v1/secrets/AUDITED?project=vision")
    cluster.api.post("/v1/secrets/rotate")
    rows = cluster.api.get("/v1/audit?limit=10")["audit"]
    assert value not in str(rows)
    said = [(row["owner"], row["method"], row["path"], row["status"], row["detail"]) for row in rows]
    assert ("uma", "PUT", "/v1/secrets/AUDITED", 200, '{"project":"vision"}') in said
    assert ("uma", "DELETE", "/v1/secrets/AUDITED", 200, '{"project":"vision"}') in said
    assert ("admin", "POST", "/v1/secrets/rotate", 200) in [each[:4] for each in said]


# --- jobs -----------------------------------------------------------------------------------------------------


def test_ranks_get_secrets_as_variables_and_as_files(cluster: Cluster, tmp_path: Path) -> None:
    ann, token, key = cluster.user("ann"), draw(), secrets.token_bytes(300)
    put(ann, "TOKEN", token)
    ann.call("PUT", "/v1/secrets/KEY", {"base64": base64.b64encode(key).decode()})
    job = gpuctl(
        cluster, ann, "submit", "--gpus", "2", "--secret", "TOKEN", "--secret", "TOKEN=OTHER_NAME", "--", *tells("TOKEN", "OTHER_NAME")
    )
    assert job.returncode == 0, job.stderr
    for rank in range(2):
        assert told(cluster, job.stdout.strip(), rank).splitlines() == [f"TOKEN {digest(token)}", f"OTHER_NAME {digest(token)}"]
    names = tells("KEY_FILE", "CREDENTIALS", files=True)
    lines = told(cluster, ann.submit(names, secrets=["KEY:file", "KEY=CREDENTIALS:file"])).splitlines()
    assert lines == [f"{name} 0o400 True {digest(key)}" for name in ("KEY_FILE", "CREDENTIALS")]
    assert not list(cluster.folder.glob("*.run/*/secrets"))


def test_a_job_file_names_secrets_and_options_win_over_it(cluster: Cluster, tmp_path: Path) -> None:
    ann, value = cluster.user("ann"), draw()
    put(ann, "FROM_FILE", value)
    put(ann, "FROM_OPTION", value)
    file = tmp_path / "job.yaml"
    command = ", ".join(f"{word!r}" for word in ["sh", "-c", 'echo "${FROM_FILE:+file}${FROM_OPTION:+option}"'])
    file.write_text(f"command: [{command}]\nsecrets: [FROM_FILE]\n")
    first = gpuctl(cluster, ann, "submit", "-f", str(file))
    assert first.returncode == 0, first.stderr
    assert told(cluster, first.stdout.strip()) == "file"
    second = gpuctl(cluster, ann, "submit", "-f", str(file), "--secret", "FROM_OPTION")
    assert told(cluster, second.stdout.strip()) == "option"


def test_tasks_retries_and_repeated_jobs_get_the_newest_value(cluster: Cluster, tmp_path: Path) -> None:
    ann, first, second = cluster.user("ann"), draw(), draw()
    put(ann, "NEWEST", first)
    array = ann.submit(tells("NEWEST"), secrets=["NEWEST"], array={"tasks": 2})
    cluster.api.wait(array)
    assert {cluster.api.log(f"{array}.{task}").strip() for task in range(2)} == {f"NEWEST {digest(first)}"}
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    script = (
        f"{' '.join(tells('NEWEST')[:1])} -c 'import os, hashlib; print(hashlib.sha256(os.environ[\"NEWEST\"].encode()).hexdigest())'; "
    )
    script += f"mkdir {tmp_path}/begun 2>/dev/null || exit 0; cat {gate}; exit 1"
    job = ann.submit(["sh", "-c", script], secrets=["NEWEST"], retries=1)
    eventually(lambda: cluster.api.log(job), "the first attempt")
    assert cluster.api.log(job).strip() == digest(first)
    put(ann, "NEWEST", second)
    gate.open("w").close()
    assert told(cluster, job) == digest(second)
    again = ann.post(f"/v1/jobs/{job}/retry")["id"]
    assert told(cluster, again) == digest(second)


def test_a_secret_that_is_gone_ends_the_attempt_with_its_name(cluster: Cluster) -> None:
    ann = cluster.user("ann")
    put(ann, "GONE", draw())
    job = ann.submit(["true"], gpus=4, secrets=["GONE"], hold=True)
    ann.call("DELETE", "/v1/secrets/GONE")
    ann.post(f"/v1/jobs/{job}/release")
    ended = cluster.api.wait(job)
    assert (ended["state"], ended["cause"]) == ("FAILED", "EXEC_FAILED")
    assert "secret GONE is not there for this job any more" in ended["reason"]
    assert refused(lambda: ann.post(f"/v1/jobs/{job}/retry")).field == "secrets[0]"


def test_who_leaves_the_project_takes_its_secrets_from_jobs_that_start_later(cluster: Cluster) -> None:
    cluster.api.call("PUT", "/v1/accounts/projects/left", {"members": {"mia": "user", "uma": "user"}})
    mia = cluster.user("mia")
    put(cluster.user("uma"), "OF_LEFT", draw(), "left")
    job = mia.submit(["true"], secrets=["OF_LEFT"], project="left", hold=True)
    cluster.api.call("PUT", "/v1/accounts/projects/left", {"members": {"uma": "user"}})
    mia.post(f"/v1/jobs/{job}/release")
    assert "secret OF_LEFT is not there" in cluster.api.wait(job)["reason"]


def test_a_project_that_is_removed_takes_its_secrets_along(cluster: Cluster) -> None:
    cluster.api.call("PUT", "/v1/accounts/projects/short", {"members": {"uma": "user"}})
    uma = cluster.user("uma")
    put(uma, "OF_SHORT", draw(), "short")
    cluster.api.call("DELETE", "/v1/accounts/projects/short")
    assert refused(lambda: uma.get("/v1/secrets?project=short")).status == 403
    cluster.api.call("PUT", "/v1/accounts/projects/short", {"members": {"eve": "user"}})
    assert cluster.user("eve").get("/v1/secrets?project=short")["secrets"] == []


def test_a_value_that_no_variable_holds_asks_for_a_file(cluster: Cluster) -> None:
    ann = cluster.user("ann")
    ann.call("PUT", "/v1/secrets/BINARY", {"base64": base64.b64encode(b"a\0b").decode()})
    ended = cluster.api.wait(ann.submit(["true"], secrets=["BINARY"]))
    assert ended["cause"] == "EXEC_FAILED" and ":file" in ended["reason"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"secrets": "TAKEN"}, "secrets"),
        ({"secrets": ["TAKEN"] * 17}, "secrets"),
        ({"secrets": ["TAKEN", 1]}, "secrets[1]"),
        ({"secrets": ["TAKEN:fil"]}, "secrets[0]"),
        ({"secrets": ["TAKEN="]}, "secrets[0]"),
        ({"secrets": ["TAKEN=RANK"]}, "secrets[0]"),
        ({"secrets": ["TAKEN=GPUCTL_X"]}, "secrets[0]"),
        ({"secrets": ["TAKEN", "OTHER=TAKEN"]}, "secrets[1]"),
        ({"secrets": ["TAKEN"], "env": {"TAKEN": "x"}}, "secrets[0]"),
        ({"secrets": ["TAKEN"], "sweep": {"TAKEN": [1, 2]}}, "secrets[0]"),
        ({"secrets": ["TAKEN", "UNKNOWN"]}, "secrets[1]"),
    ],
)
def test_what_cannot_be_given_is_refused_with_its_field(cluster: Cluster, spec: dict[str, Any], field: str) -> None:
    ann = cluster.user("ann")
    put(ann, "TAKEN", "x")
    problem = refused(lambda: ann.submit(["true"], **spec))
    assert (problem.status, problem.field) == (422, field), problem.body


# --- output ---------------------------------------------------------------------------------------------------


def test_output_has_stars_in_the_place_of_values_however_they_are_written(cluster: Cluster) -> None:
    ann, value, short = cluster.user("ann"), draw(), "seven77"
    put(ann, "SPLIT", value)
    put(ann, "SHORT", short)
    program = """
import array, fcntl, os, termios
value = os.environ["SPLIT"]
def unread(pipe):
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]
os.write(1, f"whole {value}{value} end\\n".encode())
for at in range(len(value)):
    os.write(2, value[at:at + 1].encode())
    while unread(2):
        os.sched_yield()
os.write(2, b"\\n")
os.write(1, b"x" * 200000 + value.encode() + b"y" * 100000 + b"\\n")
os.write(1, f"{value[:-1]} {os.environ['SHORT']} {value[:9]}".encode())
"""
    job = ann.submit(["/usr/bin/python3", "-c", program], secrets=["SPLIT", "SHORT"])
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    first, long, last = cluster.api.log(job).splitlines()
    assert first == "whole *** end"
    assert long == "x" * 200000 + "***" + "y" * 100000
    assert last == f"{value[:-1]} {short} {value[:9]}"
    assert cluster.api.log(job, stream="stderr") == "***\n"


def test_what_a_rank_says_of_its_failure_is_masked(cluster: Cluster) -> None:
    ann, value = cluster.user("ann"), draw()
    put(ann, "BLAMED", value)
    program = """
import json, os
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
    said = {"message": "cannot log in with " + os.environ["BLAMED"], "extraInfo": {"py_callstack": os.environ["BLAMED"]}}
    json.dump({"message": said}, file)
raise SystemExit(3)
"""
    job = ann.submit(["/usr/bin/python3", "-c", program], secrets=["BLAMED"])
    ended = cluster.api.wait(job)
    assert "cannot log in with ***" in ended["reason"] and value not in str(ended)
    assert value not in str(cluster.api.get(f"/v1/jobs/{job}/results")) + str(cluster.api.get(f"/v1/jobs/{job}/attempts"))


# --- keys and restarts ----------------------------------------------------------------------------------------


def keys(cluster: Cluster) -> list[str]:
    return (cluster.folder / "controller" / "secrets.key").read_text().splitlines()


def sealed(cluster: Cluster) -> list[bytes]:
    with sqlite3.connect(cluster.folder / "controller" / "gpuctl.db") as database:
        return [row[0] for row in database.execute("SELECT sealed FROM secrets ORDER BY owner, project, name")]


def test_a_new_key_seals_all_and_the_old_one_goes(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    assert cluster.api.post("/v1/secrets/rotate") == {"sealed": 0, "unreadable": 0}
    ann, values = cluster.user("ann"), {f"S{i}": draw() for i in range(3)}
    for name, value in values.items():
        put(ann, name, value)
    before, rows = keys(cluster), sealed(cluster)
    assert (cluster.folder / "controller" / "secrets.key").stat().st_mode & 0o777 == 0o600
    done = gpuctl(cluster, cluster.api, "admin", "rotate-secrets-key")
    assert done.returncode == 0 and "3 secrets are sealed under a new key" in done.stderr, done.stderr
    after = keys(cluster)
    assert len(before) == len(after) == 1 and before != after
    assert not set(rows) & set(sealed(cluster))
    assert {row[1:9].hex() for row in sealed(cluster)} == {after[0].split()[0]}
    assert told(cluster, ann.submit(tells(*values), secrets=list(values))).splitlines() == [f"{n} {digest(v)}" for n, v in values.items()]


def test_a_rotation_that_was_cut_off_leaves_all_secrets_and_the_next_one_ends_it(make_cluster: Callable[..., Cluster]) -> None:
    """Between the new key in the file and the transaction that uses it."""
    cluster = make_cluster(1)
    ann, value = cluster.user("ann"), draw()
    put(ann, "KEPT", value)
    old = keys(cluster)
    cluster.controller.kill()
    newer = f"{secrets.token_hex(8)} {secrets.token_hex(32)}"
    (cluster.folder / "controller" / "secrets.key").write_text("\n".join([newer, *old]) + "\n")
    cluster.start_controller()
    assert told(cluster, ann.submit(tells("KEPT"), secrets=["KEPT"])) == f"KEPT {digest(value)}"
    assert cluster.api.post("/v1/secrets/rotate") == {"sealed": 1, "unreadable": 0}
    assert len(keys(cluster)) == 1 and keys(cluster)[0] not in (newer, *old)
    assert told(cluster, ann.submit(tells("KEPT"), secrets=["KEPT"])) == f"KEPT {digest(value)}"


def test_a_row_that_was_changed_or_whose_key_is_lost_is_no_secret_any_more(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    ann = cluster.user("ann")
    put(ann, "MINE", draw())
    put(cluster.user("eve"), "THEIRS", draw())
    cluster.controller.kill()
    with sqlite3.connect(cluster.folder / "controller" / "gpuctl.db") as database:
        row = database.execute("SELECT sealed FROM secrets WHERE owner = 'eve'").fetchone()[0]
        database.execute("UPDATE secrets SET sealed = ?, sealed_size = ? WHERE owner = 'ann'", (row, len(row)))
    cluster.start_controller()
    ended = cluster.api.wait(ann.submit(tells("MINE"), secrets=["MINE"]))
    assert ended["cause"] == "EXEC_FAILED" and "secret MINE is not there" in ended["reason"]
    assert "it was changed since it was sealed" in cluster.controller.said()
    assert cluster.api.post("/v1/secrets/rotate") == {"sealed": 1, "unreadable": 1}


def pid_of(cluster: Cluster, agent: int) -> int:
    process = cluster.agents[agent].process
    assert process is not None
    return process.pid


def test_an_agent_that_restarts_before_the_start_loses_no_secret(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1, 1)
    ann, value = cluster.user("ann"), draw()
    put(ann, "CARRIED", value)
    os.kill(pid_of(cluster, 1), signal.SIGSTOP)
    job = ann.submit(tells("CARRIED"), gpus=2, secrets=["CARRIED"])
    eventually(lambda: list(cluster.folder.glob("node0.run/*/shim.pid")), "the shim of node0 to have the attempt")
    cluster.agents[0].kill()
    cluster.agents[0].start()
    os.kill(pid_of(cluster, 1), signal.SIGCONT)
    for rank in range(2):
        assert told(cluster, job, rank) == f"CARRIED {digest(value)}"


def test_an_agent_that_was_away_masks_what_it_cannot_know(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1)
    ann, value, gate = cluster.user("ann"), draw(), tmp_path / "gate"
    os.mkfifo(gate)
    put(ann, "AWAY", value)
    program = f"""
import json, os
print("begun", os.environ["AWAY"], flush=True)
open({str(gate)!r}).close()  # until somebody opens it to write
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
    json.dump({{"message": {{"message": "failed with " + os.environ["AWAY"]}}}}, file)
print("ended", os.environ["AWAY"], flush=True)
raise SystemExit(3)
"""
    job = ann.submit(["/usr/bin/python3", "-c", program], secrets=["AWAY"])
    eventually(lambda: "begun" in cluster.api.log(job), "the rank to begin")
    cluster.agents[0].kill()
    gate.open("w").close()
    eventually(lambda: list(cluster.folder.glob("node0/attempts/*/exit")), "the shim to write its record")
    cluster.agents[0].start()
    ended = cluster.api.wait(job)
    assert ended["state"] == "FAILED" and value not in str(ended)
    assert cluster.api.log(job) == "begun ***\nended ***\n"
