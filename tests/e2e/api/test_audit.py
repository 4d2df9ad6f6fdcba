# SPDX-License-Identifier: Apache-2.0
"""The audit: who did what is in it, who was refused, who looked at what others have; and whoever changes it is found out."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import PYTHON, Api, Cluster, Problem, eventually, run_gpuctl
from slowness import patient

Row = dict[str, Any]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("audit"), [2]).start()
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def busy(cluster: Cluster) -> Cluster:
    """The same, where more was done than one page has."""
    ann, eve = cluster.user("ann"), cluster.user("eve")
    for _ in range(10):
        job = ann.submit(["true"], hold=True)
        ann.post(f"/v1/jobs/{job}/cancel")
    for action in ("drain", "resume"):
        cluster.api.post(f"/v1/nodes/node0/{action}")
    assert refused(eve, "POST", "/v1/nodes/node0/drain") == 403
    eventually(lambda: newest(cluster, owner="eve"), "the refusal")
    return cluster


def newest(cluster: Cluster, since: int = 0, **query: Any) -> list[Row]:
    """The rows after that number, oldest first."""
    asked = "&".join(f"{name}={value}" for name, value in {"limit": 200, **query}.items())
    rows: list[Row] = cluster.api.get(f"/v1/audit?{asked}")["audit"]
    return [row for row in reversed(rows) if row["seq"] > since]


def last(cluster: Cluster) -> int:
    rows = cluster.api.get("/v1/audit?limit=1")["audit"]
    return int(rows[0]["seq"]) if rows else 0


def told(row: Row) -> tuple[Any, ...]:
    return row["owner"], row["role"], row["method"], row["path"], row["status"], row["code"]


def refused(api: Api, method: str, path: str, body: Any = None) -> int:
    with pytest.raises(Problem) as problem:
        api.call(method, path, body)
    return problem.value.status


def gpuctl(cluster: Cluster, *arguments: str, token: str | None = None) -> Any:
    file = cluster.folder / "caller.token"
    file.touch(0o600)
    file.write_text((token or cluster.admin_token) + "\n")
    return run_gpuctl("audit", *arguments, env={"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(file)})


def test_changes_are_in_it_with_who_from_where_and_what(cluster: Cluster) -> None:
    ann = cluster.user("ann")
    begin = last(cluster)
    job = ann.submit(["true"])
    ann.wait(job)
    held = ann.submit(["true"], hold=True)
    ann.call("PATCH", f"/v1/jobs/{held}", {"priority": -3})
    ann.post(f"/v1/jobs/{held}/cancel")
    cluster.api.post("/v1/nodes/node0/drain", {"reason": "a fan"})
    cluster.api.post("/v1/nodes/node0/resume")
    cluster.api.call("PUT", "/v1/accounts/projects/vision", {"members": {"ann": "user"}})
    window = cluster.api.post("/v1/windows", {"pool": "default", "from": "2030-01-01T00:00:00Z", "until": "2030-01-01T01:00:00Z"})["id"]
    cluster.api.call("DELETE", f"/v1/windows/{window}")
    token = cluster.api.post("/v1/tokens", {"role": "viewer", "owner": "vic"})["id"]
    cluster.api.post(f"/v1/tokens/{token}/revoke")
    rows = newest(cluster, begin)
    admin = ("admin", "admin")
    assert [told(row) for row in rows] == [
        ("ann", "user", "POST", "/v1/jobs", 201, None),
        ("ann", "user", "POST", "/v1/jobs", 201, None),
        ("ann", "user", "PATCH", f"/v1/jobs/{held}", 200, None),
        ("ann", "user", "POST", f"/v1/jobs/{held}/cancel", 202, None),
        (*admin, "POST", "/v1/nodes/node0/drain", 200, None),
        (*admin, "POST", "/v1/nodes/node0/resume", 200, None),
        (*admin, "PUT", "/v1/accounts/projects/vision", 200, None),
        (*admin, "POST", "/v1/windows", 201, None),
        (*admin, "DELETE", f"/v1/windows/{window}", 200, None),
        (*admin, "POST", "/v1/tokens", 201, None),
        (*admin, "POST", f"/v1/tokens/{token}/revoke", 200, None),
    ]
    assert [row["subject"] for row in rows if row["subject"]] == [job, held, window, token]
    details = {row["path"]: json.loads(row["detail"]) for row in rows if row["detail"]}
    assert details[f"/v1/jobs/{held}"] == {"priority": -3} and details["/v1/nodes/node0/drain"] == {"reason": "a fan"}
    assert details["/v1/accounts/projects/vision"] == {"members": {"ann": "user"}}
    assert details["/v1/tokens"] == {"role": "viewer", "owner": "vic"} and "/v1/jobs" not in details
    assert {row["address"] for row in rows} == {"127.0.0.1"} and all(row["token"] for row in rows)
    assert [row["seq"] for row in rows] == list(range(begin + 1, begin + 1 + len(rows)))


def test_a_repeated_request_is_one_act_and_a_batch_is_one_row(cluster: Cluster) -> None:
    begin = last(cluster)
    spec = {"command": ["true"], "gpus": 1, "gpu_type": "cpu"}
    key = {"Idempotency-Key": "once"}
    assert cluster.api.post("/v1/jobs", spec, **key) == cluster.api.post("/v1/jobs", spec, **key)
    cluster.api.post("/v1/jobs:batch", [spec, spec, spec])
    rows = newest(cluster, begin)
    assert [(row["path"], row["detail"]) for row in rows] == [("/v1/jobs", None), ("/v1/jobs:batch", '{"jobs":3}')]


def test_who_is_refused_is_in_it(cluster: Cluster) -> None:
    ann, eve = cluster.user("ann"), cluster.user("eve")
    job = ann.submit(["true"], hold=True)
    begin = last(cluster)
    assert refused(eve, "POST", f"/v1/jobs/{job}/cancel") == 404
    assert refused(eve, "POST", "/v1/nodes/node0/drain") == 403
    assert refused(eve, "GET", "/v1/tokens") == 403
    assert refused(Api(cluster.url, "gct_abcdefgh_" + "A" * 43), "GET", "/v1/jobs") == 401
    assert refused(Api(cluster.url, None), "GET", "/v1/jobs") == 401  # who shows nothing tries nothing
    assert refused(eve, "GET", f"/v1/jobs/{job}") == 404  # a mistyped id
    assert refused(eve, "POST", "/v1/jobs", {"gpus": -1}) == 422
    eventually(lambda: len(newest(cluster, begin)) == 4, "four rows")
    assert [told(row) for row in newest(cluster, begin)] == [
        ("eve", "user", "POST", f"/v1/jobs/{job}/cancel", 404, "not_found"),
        ("eve", "user", "POST", "/v1/nodes/node0/drain", 403, "forbidden"),
        ("eve", "user", "GET", "/v1/tokens", 403, "forbidden"),
        (None, "none", "GET", "/v1/jobs", 401, "unauthenticated"),
    ]
    ann.post(f"/v1/jobs/{job}/cancel")


def test_a_node_token_that_speaks_for_another_node_is_in_it(cluster: Cluster) -> None:
    begin = last(cluster) + 1  # behind the join token
    token = cluster.own_node_token("n7")
    assert refused(Api(cluster.url, token), "POST", "/v1/agent/poll", {"node": "node0", "boot_id": "b", "version": 0}) == 403
    eventually(lambda: len(newest(cluster, begin)) == 2, "two rows")
    join, misuse = newest(cluster, begin)
    assert told(join) == (None, "none", "POST", "/v1/agent/join", 201, None) and join["subject"] == token.split("_")[1]
    assert json.loads(join["detail"])["node"] == "n7"
    assert (misuse["token"], misuse["role"], misuse["path"], misuse["status"]) == (join["subject"], "node", "/v1/agent/poll", 403)


def test_a_look_by_role_at_what_others_have_is_in_it_once_an_hour(cluster: Cluster) -> None:
    ann, oscar = cluster.user("ann"), cluster.user("oscar", "operator")
    job = ann.submit(["echo", "hers"])
    ann.wait(job)
    own = oscar.submit(["true"])
    oscar.wait(own)
    begin = last(cluster)
    for _ in range(3):
        oscar.get(f"/v1/jobs/{job}")
        oscar.log(job)
        oscar.get(f"/v1/jobs/{own}")
        ann.get(f"/v1/jobs/{job}")
    eventually(lambda: len(newest(cluster, begin)) == 2, "two rows")
    assert [told(row)[:4] for row in newest(cluster, begin)] == [
        ("oscar", "operator", "GET", f"/v1/jobs/{job}"), ("oscar", "operator", "GET", f"/v1/jobs/{job}/logs"),
    ]  # fmt: skip


def test_a_list_that_shows_what_others_have_is_in_it_with_what_was_asked(cluster: Cluster) -> None:
    """One row a question within an hour, however often a page asks it."""
    cluster.open_project("lists")
    ann, oscar = cluster.user("ann"), cluster.user("oscar", "operator")
    own = oscar.submit(["true"], hold=True, project="lists")
    begin = last(cluster)

    def asks(api: Api) -> None:
        for _ in range(3):
            api.get("/v1/jobs?project=lists")
            api.get("/v1/jobs?project=lists&limit=1")
            api.get(f"/v1/usage?project=lists&since=2020-01-0{1 + _}T00:00:00Z&by=owner")
            api.get("/v1/queue?project=lists")

    assert len(oscar.get("/v1/jobs?project=lists&state=HELD")["jobs"]) == 1, "their own"
    assert newest(cluster, begin) == []
    hers = [ann.submit(["true"], hold=True, project="lists") for _ in range(2)]
    begin = last(cluster)
    asks(ann)
    asks(oscar)
    oscar.get("/v1/jobs?owner=oscar")
    oscar.get("/v1/usage?owner=oscar")
    oscar.get("/v1/jobs?project=lists&state=HELD&state=RUNNING,QUEUED")
    oscar.get("/v1/overview")
    for word in ("loss", "loss", "acc"):
        oscar.get(f"/v1/jobs/{hers[0]}/logs/search?q={word}")
    stream = oscar.connection(patient(10))
    stream.request("GET", "/v1/events", headers={"Authorization": f"Bearer {oscar.token}", "Accept": "text/event-stream"})
    eventually(lambda: newest(cluster, begin)[-1]["path"] == "/v1/events", "the row of the stream")
    stream.close()
    oscar.get(f"/v1/jobs/{hers[1]}")
    rows = eventually(lambda: found if (found := newest(cluster, begin))[-1]["path"].endswith(hers[1]) else None, "the last row")
    shown = [(row["path"], row["detail"] and json.loads(row["detail"])) for row in rows if row["owner"] == "oscar"]
    search = f"/v1/jobs/{hers[0]}/logs/search"
    assert shown == [
        ("/v1/jobs", {"asked": {"project": "lists"}, "others": 2}),
        ("/v1/usage", {"asked": {"project": "lists", "since": "2020-01-01T00:00:00Z", "by": "owner"}, "others": True}),
        ("/v1/queue", {"asked": {"project": "lists"}, "others": True}),
        ("/v1/jobs", {"asked": {"project": "lists", "state": "HELD,RUNNING,QUEUED"}, "others": 2}),
        ("/v1/overview", {"others": True}),
        (search, {"asked": {"q": "loss"}}),
        (search, {"asked": {"q": "acc"}}),
        ("/v1/events", {"others": True}),
        (f"/v1/jobs/{hers[1]}", None),
    ]
    assert {row["owner"] for row in rows} == {"oscar"}
    oscar.post(f"/v1/jobs/{own}/cancel")
    for job in hers:
        ann.post(f"/v1/jobs/{job}/cancel")


def test_a_look_at_runs_models_and_artifacts_of_others_is_in_it(cluster: Cluster) -> None:
    ann, oscar = cluster.user("ann"), cluster.user("oscar", "operator")
    call = "/api/2.0/mlflow/"
    experiment = ann.post(call + "experiments/create", {"name": "hers"})["experiment_id"]
    run = ann.post(call + "runs/create", {"experiment_id": experiment})["run"]["info"]
    place = f"/api/2.0/mlflow-artifacts/artifacts/{run['artifact_uri'].partition(':/')[2]}/note.txt"
    assert ann.raw("PUT", place, b"hers", {"Content-Type": "application/octet-stream"})[0] == 200
    ann.post(call + "registered-models/create", {"name": "hers"})
    mine = oscar.post(call + "experiments/create", {"name": "his"})["experiment_id"]
    own = oscar.post(call + "runs/create", {"experiment_id": mine})["run"]["info"]["run_id"]
    begin = last(cluster)
    for api in (ann, oscar):
        for _ in range(2):
            api.get(call + f"runs/get?run_id={run['run_id']}")
            api.post(call + "runs/search", {"experiment_ids": [experiment], "filter": "metrics.loss > 0", "max_results": 5 + _})
            api.get(call + f"experiments/get?experiment_id={experiment}")
            api.get(call + "registered-models/get?name=hers")
            assert api.raw("GET", place)[2] == b"hers"
    oscar.get(call + f"runs/get?run_id={own}")
    oscar.post(call + "runs/search", {"experiment_ids": [mine]})
    oscar.post(call + "runs/log-parameter", {"run_id": run["run_id"], "key": "lr", "value": "1"})
    oscar.post(call + "runs/delete", {"run_id": own})
    eventually(lambda: [row["path"] for row in newest(cluster, begin)][-1:] == [call + "runs/delete"], "the last row")
    rows = newest(cluster, begin)
    assert {row["owner"] for row in rows} == {"oscar"}
    assert [(row["path"], row["detail"] and json.loads(row["detail"])) for row in rows[:-1]] == [
        (call + "runs/get", {"asked": {"run_id": run["run_id"]}, "others": True}),
        (call + "runs/search", {"asked": {"experiment_ids": [experiment], "filter": "metrics.loss > 0"}, "others": True}),
        (call + "experiments/get", {"asked": {"experiment_id": experiment}, "others": True}),
        (call + "registered-models/get", {"asked": {"name": "hers"}, "others": True}),
        (place, None),
    ]


def test_what_the_writer_does_not_do_is_in_it(cluster: Cluster) -> None:
    ann = cluster.user("ann")
    call = "/api/2.0/mlflow/"
    made = ann.post(call + "runs/create", {"experiment_id": "0"})["run"]["info"]["run_id"]
    begin = last(cluster)
    Api(cluster.url, None).post("/v1/session", {"token": ann.token})
    ann.post(call + "runs/log-parameter", {"run_id": made, "key": "lr", "value": "1"})
    ann.post(call + "runs/delete", {"run_id": made})
    cluster.api.post("/v1/backups")
    eventually(lambda: len(newest(cluster, begin)) == 3, "three rows")
    assert [told(row)[:5] for row in newest(cluster, begin)] == [
        ("ann", "user", "POST", "/v1/session", 201),
        ("ann", "user", "POST", call + "runs/delete", 200),
        ("admin", "admin", "POST", "/v1/backups", 201),
    ]


def test_a_flood_of_refused_requests_is_counted_not_kept(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, []).start()
    try:
        eve = cluster.user("eve")
        guesser = Api(cluster.url, "gct_abcdefgh_" + "A" * 43)
        begin = last(cluster)
        for _ in range(180):
            assert refused(guesser, "GET", "/v1/jobs") == 401
        assert refused(eve, "GET", "/v1/tokens") == 403  # a person is not hidden by others
        rows = eventually(lambda: [row for row in newest(cluster, begin) if row["owner"] == "eve"], "the person's row")
        guesses = [row for row in newest(cluster, begin) if row["owner"] is None]
        assert len(rows) == 1 and 100 <= len(guesses) < 180

        def counted() -> bool:
            assert refused(guesser, "GET", "/v1/jobs") == 401
            return any(row["detail"] and "left_out" in row["detail"] for row in newest(cluster, begin, limit=10))

        eventually(counted, "the number of those that were left out")
    finally:
        cluster.stop()


def test_lists_have_pages_and_filters_and_are_for_administrators(busy: Cluster) -> None:
    cluster = busy
    everything = gpuctl(cluster, "export")
    assert everything.returncode == 0, everything.stderr
    rows = [json.loads(line) for line in everything.stdout.splitlines()]
    seqs = [row["seq"] for row in rows]
    assert seqs == list(range(seqs[0], 0, -1)) and seqs[0] > 20
    page = cluster.api.get("/v1/audit?limit=7")
    assert [row["seq"] for row in page["audit"]] == seqs[:7]
    assert [row["seq"] for row in cluster.api.get(f"/v1/audit?limit=7&cursor={page['next']}")["audit"]] == seqs[7:14]
    assert cluster.api.get("/v1/audit?cursor=2") == {"audit": [rows[-1]], "next": None}
    assert {row["owner"] for row in cluster.api.get("/v1/audit?owner=eve")["audit"]} == {"eve"}
    of_node = {row["path"] for row in cluster.api.get("/v1/audit?path=/v1/nodes/node0/")["audit"]}
    assert of_node == {"/v1/nodes/node0/drain", "/v1/nodes/node0/resume"}
    middle = rows[len(rows) // 2]
    assert all(row["at"] >= middle["at"] for row in cluster.api.get(f"/v1/audit?since={middle['at']}")["audit"])
    assert refused(cluster.user("oscar", "operator"), "GET", "/v1/audit") == 403
    assert refused(cluster.api, "GET", "/v1/audit?cursor=x") == 422
    shown = gpuctl(cluster, "list", "--owner", "ann", "--limit", "3", "-o", "wide")
    assert shown.returncode == 0 and len(shown.stdout.splitlines()) == 4 and "/v1/jobs" in shown.stdout


def test_verify_finds_what_was_changed(busy: Cluster, tmp_path: Path) -> None:
    cluster = busy
    whole = gpuctl(cluster, "verify")
    assert whole.returncode == 0, whole.stderr
    head = whole.stdout.strip()
    cluster.user("zoe")
    assert gpuctl(cluster, "verify", "--head", head).returncode == 0
    file = tmp_path / "audit.jsonl"
    assert gpuctl(cluster, "export", "--out", str(file)).returncode == 0
    lines = file.read_text().splitlines()

    def check(changed: list[str], *arguments: str) -> str:
        file.write_text("".join(line + "\n" for line in changed))
        done = run_gpuctl("audit", "verify", str(file), *arguments)
        assert done.returncode != 0, done.stdout
        return str(done.stderr)

    assert run_gpuctl("audit", "verify", str(file), "--head", head).returncode == 0
    other = [*lines[:5], lines[5].replace('"address":"127.0.0.1"', '"address":"127.0.0.2"'), *lines[6:]]
    assert "does not fit its hash" in check(other)
    assert "is missing" in check(lines[:5] + lines[6:])
    assert "is missing" in check([*lines[:5], lines[6], lines[5], *lines[7:]])
    first = lines[-1].replace('"status":201', '"status":200')
    assert first != lines[-1] and "row 1 does not fit its hash" in check([*lines[:-1], first])
    seq, digest = head.split(":")
    assert "another hash" in check(lines, "--head", f"{seq}:{'0' * 64}")
    assert "is not there" in check(lines[2:], "--head", f"{int(seq) + 9}:{digest}")
    wrong = run_gpuctl("audit", "verify", str(file), "--head", "12")
    assert wrong.returncode == 2 and "SEQ:HASH" in wrong.stderr


def test_the_head_is_what_the_database_has(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, []).start()
    try:
        for name in ("ann", "bob", "eve"):
            cluster.user(name)
        head = gpuctl(cluster, "verify").stdout.strip()
        exported = gpuctl(cluster, "export").stdout
    finally:
        cluster.stop()
    copy = tmp_path / "copied.db"
    shutil.copy(cluster.folder / "controller" / "gpuctl.db", copy)
    with sqlite3.connect(f"file:{copy}?mode=ro&immutable=1", uri=True) as database:
        stored = database.execute("SELECT seq, lower(hex(hash)) FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
    assert f"{stored[0]}:{stored[1]}" == head and json.loads(exported.splitlines()[0])["hash"] == stored[1]


# --- tokens ---------------------------------------------------------------------------------------------------


def test_the_last_use_of_a_token_is_known_over_a_restart(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, []).start()

    def used() -> dict[str, Any]:
        return {token["id"]: token["last_used_at"] for token in cluster.api.get("/v1/tokens")["tokens"]}

    try:
        idle = cluster.api.post("/v1/tokens", {"role": "user", "owner": "ann"})
        busy = cluster.api.post("/v1/tokens", {"role": "user", "owner": "ann"})
        assert idle["last_used_at"] is None
        Api(cluster.url, busy["secret"]).get("/v1/jobs")
        first = eventually(lambda: used()[busy["id"]], "the use")
        assert cluster.controller.kill() != 0
        cluster.start_controller()
        assert used()[busy["id"]] == first and used()[idle["id"]] is None
        Api(cluster.url, busy["secret"]).get("/v1/jobs")  # within the hour: nothing new
        assert used()[busy["id"]] == first
    finally:
        cluster.stop()


def test_who_has_a_token_that_ends_within_a_week_is_told(cluster: Cluster) -> None:
    week = 7 * 24 * 3600
    made = {days: cluster.api.post("/v1/tokens", {"role": "user", "owner": "ann", "expires_in_s": days * week // 7}) for days in (6, 8)}
    told = {}
    for days, token in made.items():
        _, headers, _ = Api(cluster.url, token["secret"]).raw("GET", "/v1/jobs")
        told[days] = headers.get("gpuctl-token-expires")
    assert told == {6: made[6]["expires_at"], 8: None}
    file = cluster.folder / "ends.token"
    for days in made:
        file.touch(0o600)
        file.write_text(made[days]["secret"] + "\n")
        environment = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(file)}
        shown = run_gpuctl("ps", env=environment)
        assert shown.returncode == 0 and (shown.stderr.count("your token ends at " + made[days]["expires_at"]) == 1) == (days == 6)
        script = "from serverless_gpu._internal.api import context, controller; from serverless_gpu._internal.messages import Messages\n"
        script += "c = controller.Controller(context.load(Messages()), Messages()); c.get('/v1/jobs'); c.get('/v1/jobs')"
        done = subprocess.run([PYTHON, "-c", script], env={**os.environ, **environment}, capture_output=True, text=True, check=True)
        assert done.stderr.count("your token ends at") == (1 if days == 6 else 0), done.stderr
