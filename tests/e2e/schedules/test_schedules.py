# SPDX-License-Identifier: Apache-2.0
"""Schedules: jobs that the controller submits by the clock, with the rights of their owner, once for each moment."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Api, Cluster, Problem, eventually, run_gpuctl
from schedule_clock import edit, jobs_of, set_due, yearly
from slowness import patient


def gpuctl(cluster: Cluster, person: Api, *arguments: str) -> subprocess.CompletedProcess[str]:
    file: Path = cluster.folder / "person.token"
    file.touch(0o600)
    file.write_text(f"{person.token}\n")
    environment = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(file), "HOME": str(cluster.folder)}
    return run_gpuctl(*arguments, env=environment)


def refused(act: Callable[[], Any]) -> Problem:
    with pytest.raises(Problem) as problem:
        act()
    return problem.value


def show(api: Api, schedule: str) -> Any:
    return api.get(f"/v1/schedules/{schedule}")


def ran(api: Api, schedule: str) -> Any:
    """The schedule, once a run was due."""
    return eventually(lambda: (view := show(api, schedule))["last_run_at"] and view, "a run")


def again(cluster: Cluster, seconds_ago: float, name: str | None = None) -> None:
    """The controller was killed, and runs were due meanwhile."""
    cluster.controller.kill()
    set_due(cluster.folder, seconds_ago, name)
    cluster.start_controller()


# --- people ---------------------------------------------------------------------------------------------------


def test_the_verb_and_the_name_may_be_left_out(cluster: Cluster) -> None:
    ann = cluster.user("ann")
    words = {
        "true": ["@daily", "--", "true"],
        "mine": ["0 3 * * *", "--name", "mine", "--", "true"],
        "train.py": ["*/5 * * * *", "--", "python", "/x/train.py"],
    }
    for name, rest in words.items():
        made = gpuctl(cluster, ann, "schedule", rest[0], "--gpus=0", *rest[1:])
        assert made.returncode == 0 and show(ann, made.stdout.strip())["name"] == name, made.stderr
        nobody = gpuctl(cluster, ann, "schedule", "remove", "")  # as of a variable that is not set
        assert nobody.returncode == 3 and show(ann, made.stdout.strip())["name"] == name, nobody
        assert gpuctl(cluster, ann, "schedule", "remove", name).returncode == 0
    wrong = gpuctl(cluster, ann, "schedule", "create", "nightly")
    assert wrong.returncode == 2 and "missing" in wrong.stderr, wrong.stderr
    assert ann.get("/v1/schedules")["schedules"] == []


def test_a_person_makes_sees_changes_runs_and_removes_a_schedule(cluster: Cluster) -> None:
    ann = cluster.user("ann")
    made = gpuctl(
        cluster, ann, "schedule", "create", "nightly", "0 3 * * mon-fri", "--time-zone", "Europe/Berlin", "--overlap", "forbid",
        "--gpus", "1", "--label", "team=vision", "--", "python3", "-c", "print('it ran')",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    schedule = made.stdout.strip()
    view = show(ann, schedule)
    assert (view["name"], view["owner"], view["cron"], view["time_zone"]) == ("nightly", "ann", "0 3 * * mon-fri", "Europe/Berlin")
    assert (view["overlap"], view["missed"], view["paused"], view["last_outcome"]) == ("forbid", "skip", False, "none")
    assert view["next_at"][11:] in ("01:00:00.000Z", "02:00:00.000Z"), "3:00 in Berlin"
    assert view["spec"]["labels"] == {"schedule": "nightly", "team": "vision"} and view["spec"]["name"] == "nightly"
    listed = gpuctl(cluster, ann, "schedule", "list")
    assert "nightly" in listed.stdout and "0 3 * * mon-fri" in listed.stdout
    assert gpuctl(cluster, ann, "schedule", "list", "-q").stdout.split() == [schedule]
    job = gpuctl(cluster, ann, "schedule", "run", "nightly").stdout.strip()
    assert ann.wait(job)["state"] == "SUCCEEDED" and ann.log(job) == "it ran\n"
    assert gpuctl(cluster, ann, "ps", "--all", "--label", "schedule=nightly", "-q").stdout.split() == [job]
    view = show(ann, schedule)
    assert (view["last_job"], view["last_job_state"], view["last_outcome"]) == (job, "SUCCEEDED", "submitted")
    assert gpuctl(cluster, ann, "schedule", "pause", "nightly").returncode == 0
    assert show(ann, schedule)["paused"] and show(ann, schedule)["next_at"] is None
    assert gpuctl(cluster, ann, "schedule", "resume", schedule[:6]).returncode == 0
    changed = gpuctl(cluster, ann, "schedule", "update", "nightly", "--cron", "@hourly", "--missed", "last", "-o", "json")
    told = json.loads(changed.stdout)
    assert (told["cron"], told["missed"], told["overlap"], told["paused"]) == ("@hourly", "last", "forbid", False)
    assert told["next_at"].endswith(":00:00.000Z")
    assert gpuctl(cluster, ann, "schedule", "remove", "nightly").returncode == 0
    missing = gpuctl(cluster, ann, "schedule", "show", "nightly")
    assert missing.returncode == 3 and "no schedule has the id or name nightly" in missing.stderr
    assert ann.job(job)["state"] == "SUCCEEDED", "jobs that there are stay"


@pytest.mark.parametrize(
    ("order", "field", "words"),
    [
        ({"cron": "0 3 * *"}, "cron", "five fields"),
        ({"cron": "0 25 * * *"}, "cron", "hour from 0 to 23"),
        ({"cron": "0 0 30 2 *"}, "cron", "never comes"),
        ({"cron": "@reboot"}, "cron", "five fields"),
        ({"time_zone": "Europe/Atlantis"}, "time_zone", "no time zone"),
        ({"time_zone": "../../etc/passwd"}, "time_zone", "no time zone"),
        ({"missed": "all"}, "missed", "no choice"),
        ({"overlap": "queue"}, "overlap", "no choice"),
        ({"name": "a b"}, "name", "letters"),
        ({"spec": {"gpus": 1}}, "command", "command"),
        ({"spec": {"command": ["true"], "gpus": 1, "labels": {"schedule": "x"}}}, "labels.schedule", "name of their schedule"),
        ({"spec": {"command": ["true"], "gpus": 1, "image": "debian:12"}}, "image", "digest"),
        ({"spec": {"command": ["true"], "gpus": 1, "secrets": ["NONE"]}}, "secrets[0]", "no secret"),
        ({"spec": {"command": ["true"], "gpus": 1, "project": "others"}}, "project", "no project"),
        ({"spec": "true"}, "spec", "spec of a job"),
        ({"every": "day"}, "every", ""),
    ],
)
def test_what_is_wrong_is_named_and_no_schedule_is_made(cluster: Cluster, order: dict[str, Any], field: str, words: str) -> None:
    eve = cluster.user("eve")
    good = {"name": "one", "cron": "@daily", "spec": {"command": ["true"], "gpus": 1}}
    problem = refused(lambda: eve.post("/v1/schedules", {**good, **order}))
    assert problem.field == field and words in str(problem)
    assert eve.get("/v1/schedules")["schedules"] == []


def test_a_name_is_one_schedules_of_its_owner(cluster: Cluster) -> None:
    uma, max_ = cluster.user("uma"), cluster.user("max")
    first = yearly(uma, "same")
    problem = refused(lambda: yearly(uma, "same"))
    assert (problem.status, problem.field) == (409, "name")
    other = yearly(max_, "same")
    for api, schedule in ((uma, first), (max_, other)):
        api.call("DELETE", f"/v1/schedules/{schedule}")


def test_a_schedule_of_somebody_else_is_as_one_that_is_not_there(cluster: Cluster) -> None:
    lea, tom, olga = cluster.user("lea"), cluster.user("tom"), cluster.user("olga", "operator")
    schedule = yearly(lea, "mine", spec={"env": {"API_TOKEN": "hidden"}})
    assert show(lea, schedule)["spec"]["env"]["API_TOKEN"] == "***"
    path = f"/v1/schedules/{schedule}"
    for act in (
        lambda: tom.get(path),
        lambda: tom.call("PATCH", path, {"paused": True}),
        lambda: tom.call("DELETE", path),
        lambda: tom.post(f"{path}/run"),
    ):
        assert refused(act).status == 404
    assert tom.get("/v1/schedules")["schedules"] == []
    assert [one["id"] for one in olga.get("/v1/schedules")["schedules"] if one["owner"] == "lea"] == [schedule]
    assert olga.call("PATCH", path, {"paused": True})["paused"]
    assert refused(lambda: olga.call("PATCH", path, {"spec": {"command": ["id"]}})).field == "spec"
    assert refused(lambda: cluster.user("lea", "viewer").call("DELETE", path)).status == 403
    audit = [(row["method"], row["path"], row["owner"]) for row in cluster.api.get("/v1/audit?path=/v1/schedules&limit=50")["audit"]]
    assert ("PATCH", path, "olga") in audit and ("POST", "/v1/schedules", "lea") in audit
    lea.call("DELETE", path)


def test_lists_have_pages(cluster: Cluster) -> None:
    pia = cluster.user("pia")
    made = sorted(yearly(pia, f"s{number}") for number in range(5))
    seen, cursor = [], ""
    while True:
        page = pia.get(f"/v1/schedules?limit=2{cursor}")
        seen += [one["id"] for one in page["schedules"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert seen == made
    for schedule in made:
        pia.call("DELETE", f"/v1/schedules/{schedule}")


def test_a_run_that_is_asked_for_again_under_one_key_is_one_job(cluster: Cluster) -> None:
    kim = cluster.user("kim")
    schedule = yearly(kim, "keyed")
    jobs = {kim.post(f"/v1/schedules/{schedule}/run", **{"Idempotency-Key": "k"})["id"] for _ in range(3)}
    assert len(jobs) == 1 and len(jobs_of(kim, "keyed")) == 1
    kim.call("DELETE", f"/v1/schedules/{schedule}")


# --- the clock ------------------------------------------------------------------------------------------------


def test_a_minute_comes_and_a_job_is_submitted(cluster: Cluster) -> None:
    schedule = yearly(cluster.api, "minutely", cron="* * * * *")
    due = show(cluster.api, schedule)["next_at"]
    view = eventually(lambda: (view := show(cluster.api, schedule))["last_job"] and view, "the minute", patience=75 + patient(15))
    cluster.api.call("DELETE", f"/v1/schedules/{schedule}")
    assert view["last_due_at"] == due and due <= view["last_run_at"] < view["next_at"]
    assert cluster.api.wait(view["last_job"])["spec"]["labels"] == {"schedule": "minutely"}


def test_a_run_that_was_due_a_moment_ago_is_made_after_a_restart(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    schedule = yearly(cluster.user("ann"), "restart")
    again(cluster, 20)
    view = ran(cluster.api, schedule)
    assert view["last_outcome"] == "submitted" and view["next_at"] > view["last_run_at"]
    assert cluster.api.wait(view["last_job"])["owner"] == "ann"
    assert view["cron"] == "0 0 29 2 *" and view["next_at"][5:10] == "02-29"
    cluster.controller.kill()
    cluster.start_controller()
    assert len(jobs_of(cluster.api, "restart")) == 1


def test_runs_of_a_time_in_which_the_controller_was_down_are_left_out_or_made_up_for_once(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    left_out, made_up = yearly(cluster.api, "skip"), yearly(cluster.api, "last", missed="last")
    often = yearly(cluster.api, "often", missed="last", cron="* * * * *")
    again(cluster, 3600)
    view = ran(cluster.api, left_out)
    assert (view["last_outcome"], view["last_job"], view["last_error"]) == ("missed", None, "the controller was down")
    assert ran(cluster.api, made_up)["last_outcome"] == "submitted" and len(jobs_of(cluster.api, "last")) == 1
    first = ran(cluster.api, often)
    assert first["last_outcome"] == "submitted"
    cluster.api.call("DELETE", f"/v1/schedules/{often}")
    assert len(jobs_of(cluster.api, "often")) in (1, 2), "one for sixty, and perhaps the one of this minute"


def test_overlap_says_what_becomes_of_a_run_while_an_earlier_job_lives(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(6)
    made = {overlap: yearly(cluster.api, overlap, ["sleep", "600"], overlap=overlap) for overlap in ("allow", "forbid", "replace")}
    jobs = {overlap: cluster.api.post(f"/v1/schedules/{made[overlap]}/run")["id"] for overlap in made}
    assert refused(lambda: cluster.api.post(f"/v1/schedules/{made['forbid']}/run")).status == 409
    again(cluster, 5)
    views = {overlap: ran(cluster.api, made[overlap]) for overlap in made}
    eventually(lambda: len(jobs_of(cluster.api, "allow")) == 2 and len(jobs_of(cluster.api, "replace")) == 2, "the runs")
    assert cluster.api.wait(jobs["replace"])["state"] == "CANCELED"
    assert cluster.api.job(jobs["allow"])["state"] != "CANCELED"
    view = eventually(lambda: (view := show(cluster.api, made["forbid"]))["last_outcome"] == "skipped" and view, "the skipped run")
    assert view["last_job"] == jobs["forbid"] and len(jobs_of(cluster.api, "forbid")) == 1
    assert views["forbid"]["overlap"] == "forbid"


def test_an_array_is_one_run_whose_last_task_ends_it(cluster: Cluster) -> None:
    tasks = {"array": {"tasks": 3}, "hold": True}
    schedule = yearly(cluster.api, "tasks", overlap="forbid", spec=tasks)
    job = cluster.api.post(f"/v1/schedules/{schedule}/run")["id"]
    assert cluster.api.job(job)["array"]["tasks"] == 3
    assert refused(lambda: cluster.api.post(f"/v1/schedules/{schedule}/run")).body["code"] == "conflict"
    cluster.api.post(f"/v1/jobs/{job}/release")
    assert cluster.api.wait(job)["array"]["succeeded"] == 3
    again = cluster.api.post(f"/v1/schedules/{schedule}/run")["id"]
    assert again != job and cluster.api.job(again)["spec"]["labels"] == {"schedule": "tasks"}
    cluster.api.post(f"/v1/jobs/{again}/cancel")
    cluster.api.call("DELETE", f"/v1/schedules/{schedule}")


def test_what_refuses_a_run_is_shown_and_stops_no_later_one(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    cluster.api.call("PUT", "/v1/accounts/projects/vision", {"members": {"ann": "user"}})
    ann = cluster.user("ann")
    schedule = yearly(ann, "vision", spec={"project": "vision"})
    cluster.api.call("PUT", "/v1/accounts/projects/vision", {"members": {"bob": "user"}})
    again(cluster, 5)
    view = ran(cluster.api, schedule)
    assert view["last_outcome"] == "refused" and "no project vision" in view["last_error"] and not view["paused"]
    assert "outcome=refused" in cluster.controller.said()
    listed = gpuctl(cluster, cluster.user("ann"), "schedule", "list").stdout
    assert "refused" in listed and "no project vision" in listed
    cluster.api.call("PUT", "/v1/accounts/projects/vision", {"members": {"ann": "user"}})
    again(cluster, 5)
    eventually(lambda: show(cluster.api, schedule)["last_outcome"] == "submitted", "the next run")
    assert show(cluster.api, schedule)["last_error"] is None


def test_what_the_scheduler_refuses_is_shown_too(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    schedule = yearly(cluster.api, "nowhere", spec={"pool": "nowhere"})
    problem = refused(lambda: cluster.api.post(f"/v1/schedules/{schedule}/run"))
    view = show(cluster.api, schedule)
    assert problem.status < 500 and view["last_outcome"] == "refused" and view["last_error"] in str(problem)


def test_a_schedule_pauses_itself_when_its_owner_has_no_token_any_more(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    ann = cluster.user("ann")
    schedule = yearly(ann, "orphan")
    for token in cluster.api.get("/v1/tokens?limit=200")["tokens"]:
        if token["owner"] == "ann":
            cluster.api.post(f"/v1/tokens/{token['id']}/revoke")
    again(cluster, 5)
    view = ran(cluster.api, schedule)
    assert view["paused"] and "ann has no valid token" in view["reason"] and view["last_outcome"] == "refused"
    assert jobs_of(cluster.api, "orphan") == []
    back = cluster.user("ann")
    assert not back.call("PATCH", f"/v1/schedules/{schedule}", {"paused": False})["paused"]
    assert show(back, schedule)["reason"] is None
    assert back.wait(back.post(f"/v1/schedules/{schedule}/run")["id"])["state"] == "SUCCEEDED"


def test_a_paused_schedule_makes_no_jobs(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    paused, other = yearly(cluster.api, "paused", paused=True), yearly(cluster.api, "other")
    again(cluster, 5)
    assert ran(cluster.api, other)["last_outcome"] == "submitted"
    assert show(cluster.api, paused)["last_run_at"] is None and jobs_of(cluster.api, "paused") == []


def test_a_controller_with_a_schedule_does_not_end_for_want_of_work(tmp_path: Path) -> None:
    """It ends once the schedule is paused; that it had no reason to stay otherwise is seen then."""
    cluster = Cluster(tmp_path, [])
    cluster.start_controller()
    schedule = yearly(cluster.api, "stays")
    cluster.controller_arguments = ["--idle-exit", "200ms"]
    again(cluster, -1.5)
    view = ran(cluster.api, schedule)
    assert view["last_outcome"] == "refused", "there is no node, and the controller was there after several times its 200 ms"
    cluster.api.call("PATCH", f"/v1/schedules/{schedule}", {"paused": True})
    eventually(lambda: not cluster.controller.alive(), "the controller to end")


# --- what its spec names --------------------------------------------------------------------------------------


def test_what_a_schedule_brings_along_stays_as_long_as_it_does(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    ann = cluster.user("ann")
    blob = ann.blob(b"carried along\n")
    schedule = yearly(ann, "files", ["cat", "note"], spec={"files": [{"path": "note", "blob": blob}]})
    cluster.controller.kill()
    month_ms = int((time.time() - 31 * 86400) * 1000)
    edit(cluster.folder, ("UPDATE blobs SET created_ms = ?", [month_ms]), ("UPDATE uploads SET at_ms = ?", [month_ms]))
    cluster.start_controller()
    ann = Api(cluster.url, ann.token)
    cluster.api.post("/v1/retention", {})
    assert ann.raw("GET", f"/v1/blobs/{blob}")[0] == 200
    job = ann.post(f"/v1/schedules/{schedule}/run")["id"]
    assert ann.wait(job)["state"] == "SUCCEEDED" and ann.log(job) == "carried along\n"
    ann.call("DELETE", f"/v1/jobs/{job}")
    cluster.api.post("/v1/retention", {})
    assert ann.raw("GET", f"/v1/blobs/{blob}")[0] == 200
    ann.call("DELETE", f"/v1/schedules/{schedule}")
    cluster.api.post("/v1/retention", {})
    eventually(lambda: ann.raw("GET", f"/v1/blobs/{blob}")[0] == 404, "the blob to go with the schedule")
