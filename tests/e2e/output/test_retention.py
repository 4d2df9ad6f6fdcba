# SPDX-License-Identifier: Apache-2.0
"""What is old goes: jobs with their history and output, by age, for a project, and when their owner removes them. What lives stays."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Api, Cluster, Problem, eventually, run_gpuctl
from paper_node import registration

HANG = ["python", "-S", "-c", "import signal; signal.pause()"]
TABLES = ["jobs", "specs", "arrays", "events", "attempts", "members", "ranks", "results", "uses", "dependencies", "removals"]
MakeCluster = Callable[..., Cluster]

SHORT_AGE = "2s"  # of output; what an agent still sends when it is over would be stored anew


def rows(cluster: Cluster) -> dict[str, int]:
    """How many rows there are, by table, of those that jobs have."""
    database = sqlite3.connect(f"file:{cluster.folder}/controller/gpuctl.db?mode=ro", uri=True)
    try:
        return {table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}
    finally:
        database.close()


def free_share(cluster: Cluster) -> float:
    """How much of the database's file holds nothing."""
    database = sqlite3.connect(f"file:{cluster.folder}/controller/gpuctl.db?mode=ro", uri=True)
    try:
        free, pages = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_count"))
        return float(free / pages)
    finally:
        database.close()


def logs_of(cluster: Cluster, job: str) -> Path:
    return cluster.folder / "controller" / "logs" / job[:2] / job


def gone(cluster: Cluster, job: str) -> bool:
    with pytest.raises(Problem) as caught:
        cluster.api.job(job)
    return caught.value.status == 404


def expect_conflict(cluster: Cluster, job: str) -> Any:
    with pytest.raises(Problem) as caught:
        cluster.api.call("DELETE", f"/v1/jobs/{job}")
    assert caught.value.status == 409
    return caught.value.body


def test_a_removed_job_is_gone_at_once_and_its_output_and_rows_soon(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(2)
    job = cluster.api.submit(["sh", "-c", "echo hello; exit 3"], gpus=2)
    kept = cluster.api.submit(["echo", "stays"])
    cluster.api.wait(job)
    cluster.api.wait(kept)
    assert logs_of(cluster, job).exists()
    assert cluster.api.call("DELETE", f"/v1/jobs/{job}") == {"id": job, "removed": True}
    assert gone(cluster, job) and [shown["id"] for shown in cluster.api.get("/v1/jobs")["jobs"]] == [kept]
    eventually(lambda: not logs_of(cluster, job).exists(), "its output to go")
    eventually(lambda: rows(cluster)["removals"] == 0, "its rows to go")
    left = rows(cluster)
    assert left["jobs"] == left["specs"] == left["attempts"] == left["members"] == left["ranks"] == 1
    assert cluster.api.log(kept) == "stays\n" and cluster.api.events(kept)[-1] == "succeeded"


def test_a_job_that_is_removed_during_a_round_need_not_wait_for_the_next_hour(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1)
    first, second = (cluster.api.submit(["echo", "hello"]) for _ in range(2))
    for job in (first, second):
        cluster.api.wait(job)
    for number in range(30_000):  # a round measures them after it has removed what there was to remove
        (cluster.folder / "controller" / "logs" / "aa" / str(number)).mkdir(parents=True)
    cluster.api.call("DELETE", f"/v1/jobs/{first}")
    eventually(lambda: not logs_of(cluster, first).exists(), "the output of the first job to go")
    cluster.api.call("DELETE", f"/v1/jobs/{second}")
    eventually(lambda: not logs_of(cluster, second).exists(), "the output of the second job to go")


def test_a_job_that_lives_is_not_removed(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1)
    runs = cluster.api.submit(HANG)
    cluster.wait_state(runs, "RUNNING")
    waits = cluster.api.submit(["true"], after=[{"job": runs, "when": "afterany"}])
    assert f"job {runs} is RUNNING" in expect_conflict(cluster, runs)["detail"]
    assert "cancel it first" in expect_conflict(cluster, waits)["hint"]
    stranger = cluster.user("mallory")
    with pytest.raises(Problem) as caught:
        stranger.call("DELETE", f"/v1/jobs/{runs}")
    assert caught.value.status == 404
    cluster.api.post(f"/v1/jobs/{runs}/cancel", {})
    cluster.api.wait(waits)


def test_a_job_that_another_followed_is_removed_and_the_other_goes_on(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1)
    first = cluster.api.submit(["true"])
    runs = cluster.api.submit(HANG, after=[first])
    cluster.wait_state(runs, "RUNNING")
    cluster.api.call("DELETE", f"/v1/jobs/{first}")
    cluster.controller.kill()
    cluster.start_controller()
    assert cluster.api.job(runs)["state"] == "RUNNING"
    cluster.api.post("/v1/retention", {})
    assert rows(cluster)["removals"] == 0
    cluster.api.post(f"/v1/jobs/{runs}/cancel", {})
    cluster.api.wait(runs)


def test_the_key_of_a_removed_job_is_not_used_again(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1)
    job = cluster.api.submit(["true"])
    cluster.api.wait(job)
    cluster.api.call("DELETE", f"/v1/jobs/{job}")
    cluster.controller.kill()
    cluster.start_controller()
    cluster.wait_ready()
    newer = cluster.api.submit(["echo", "newer"])
    assert cluster.api.wait(newer)["state"] == "SUCCEEDED" and cluster.api.events(newer)[0] == "submitted"
    cluster.api.post("/v1/retention", {})
    assert rows(cluster)["removals"] == 0
    assert cluster.api.events(newer)[-1] == "succeeded" and rows(cluster)["jobs"] == 1


def test_an_array_goes_with_its_tasks_and_a_task_not_without_its_array(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(2)
    array = cluster.api.submit(["true"], array={"tasks": 5})
    cluster.api.wait(array)
    assert "remove the whole array" in expect_conflict(cluster, f"{array}.2")["hint"]
    cluster.api.call("DELETE", f"/v1/jobs/{array}")
    assert gone(cluster, array) and gone(cluster, f"{array}.2")
    eventually(lambda: set(rows(cluster).values()) == {0}, "all rows to go")


def test_what_is_old_goes_and_a_dry_run_only_counts(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1, controller=["--keep-jobs", "1s", "--keep-logs", "500ms"])
    cluster.api.call("PUT", "/v1/accounts/projects/archive", {"keep_jobs_days": 0, "keep_logs_days": 0})
    old = cluster.api.submit(["echo", "0123456789"])
    kept = cluster.api.submit(["echo", "archived"], project="archive")
    cluster.api.wait(old)
    cluster.api.wait(kept)
    runs = cluster.api.submit(HANG)
    cluster.wait_state(runs, "RUNNING")
    eventually(lambda: cluster.api.post("/v1/retention", {"dry_run": True})["jobs"] == 1, "the job to be old")
    told = cluster.api.post("/v1/retention", {"dry_run": True})
    assert told["dry_run"] and told["jobs"] == 1 and told["log_bytes"] >= 11 and cluster.api.log(old) == "0123456789\n"
    went = cluster.api.post("/v1/retention", {})
    assert went["jobs"] == 1 and went["log_bytes"] == told["log_bytes"] and not went["dry_run"]
    assert gone(cluster, old) and not logs_of(cluster, old).exists() and rows(cluster)["removals"] == 0
    assert cluster.api.log(kept) == "archived\n" and cluster.api.job(runs)["state"] == "RUNNING"
    assert cluster.api.post("/v1/retention", {})["jobs"] == 0
    cluster.api.post(f"/v1/jobs/{runs}/cancel", {})
    cluster.api.wait(runs)


def expect_gone(cluster: Cluster, job: str) -> None:
    """Its output was removed, and whoever asks for it is told so."""
    for headers in ({}, {"Accept": "text/event-stream"}):
        with pytest.raises(Problem) as caught:
            cluster.api.call("GET", f"/v1/jobs/{job}/logs", None, headers)
        assert (caught.value.status, caught.value.code) == (410, "gone")
        assert "was removed (retention)" in caught.value.body["detail"] and "--keep-logs" in caught.value.body["hint"]
    token = cluster.folder / "controller" / "admin.token"
    said = run_gpuctl("logs", job, env={"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token)})
    assert said.returncode == 3 and "was removed (retention)" in said.stderr and said.stdout == ""


def test_output_goes_before_its_job(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1, controller=["--keep-logs", SHORT_AGE])
    job = cluster.api.submit(["echo", "soon gone"])
    silent = cluster.api.submit(["true"])
    cluster.api.wait(job)
    cluster.api.wait(silent)
    assert cluster.api.log(silent) == ""  # there was none, so none is gone
    eventually(lambda: cluster.api.post("/v1/retention", {})["logs"] == 1, "the output to go")
    assert not logs_of(cluster, job).exists() and cluster.api.job(job)["state"] == "SUCCEEDED"
    expect_gone(cluster, job)
    assert cluster.api.events(job)[-1] == "succeeded"


def test_output_that_is_not_there_yet_is_not_said_to_be_removed(make_cluster: MakeCluster) -> None:
    """As after a full disk: the job has ended, and its node delivers later."""
    cluster = make_cluster(1)
    job = cluster.api.submit(["echo", "late"])
    cluster.api.wait(job)
    assert cluster.api.log(job) == "late\n"
    shutil.rmtree(logs_of(cluster, job))
    assert cluster.api.log(job) == ""


def test_output_of_the_tasks_of_an_array_goes_by_its_age(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(2, controller=["--keep-logs", SHORT_AGE])
    array = cluster.api.submit(["echo", "a task"], array={"tasks": 5})
    cluster.api.wait(array)
    tasks = [task["id"] for task in cluster.api.get(f"/v1/jobs?array={array}")["jobs"]]
    assert len(tasks) == 5
    eventually(lambda: cluster.api.post("/v1/retention", {})["logs"] == 1, "the output to go")
    assert not any(logs_of(cluster, task).exists() for task in tasks)
    expect_gone(cluster, f"{array}.3")
    assert cluster.api.job(array)["state"] == "SUCCEEDED" and rows(cluster)["jobs"] == 6


def test_only_an_administrator_runs_retention(cluster: Cluster) -> None:
    with pytest.raises(Problem) as caught:
        cluster.user("alice").post("/v1/retention", {"dry_run": True})
    assert caught.value.status == 403
    with pytest.raises(Problem) as caught:
        cluster.api.post("/v1/retention", {"dry": True})
    assert caught.value.status == 422 and caught.value.body["field"] == "dry"


def test_a_project_may_have_ages_of_its_own_and_a_user_may_not(cluster: Cluster) -> None:
    cluster.api.call("PUT", "/v1/accounts/projects/x", {"keep_jobs_days": 1})
    assert cluster.api.get("/v1/accounts/projects/x")["limits"] == {"keep_jobs_days": 1}
    with pytest.raises(Problem) as caught:
        cluster.api.call("PUT", "/v1/accounts/users/alice", {"keep_jobs_days": 1})
    assert caught.value.status == 422


def test_the_database_file_gives_back_the_space_of_removed_jobs(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1)
    runs = cluster.api.submit(HANG)  # the others wait
    jobs = [cluster.api.submit(["true"], env={"LARGE": "x" * 60_000}) for _ in range(40)]
    for job in jobs:
        cluster.api.post(f"/v1/jobs/{job}/cancel", {})
        cluster.api.call("DELETE", f"/v1/jobs/{job}")
    assert cluster.api.post("/v1/retention", {"dry_run": True})["file_bytes"] == 0
    eventually(lambda: rows(cluster)["removals"] == 0 and free_share(cluster) <= 1 / 8, "a round to shrink the file")
    assert cluster.api.post("/v1/retention", {})["file_bytes"] == 0  # there is no more to give
    assert "file_bytes=" in cluster.controller.said()
    cluster.controller.kill(15)
    assert (cluster.folder / "controller" / "gpuctl.db").stat().st_size < 1_000_000
    cluster.start_controller()
    cluster.api.post(f"/v1/jobs/{runs}/cancel", {})
    cluster.api.wait(runs)


def make_run(api: Api, name: str, ended_ms: int | None, project: str | None = None) -> tuple[str, str]:
    """A run with an artifact: its id and the path of that. ended_ms None: it goes on."""
    experiment = "0"
    if project is not None:
        tags = [{"key": "gpuctl.project", "value": project}]
        experiment = ask(api, "POST", "experiments/create", {"name": f"of {project}", "tags": tags})["experiment_id"]
    run = ask(api, "POST", "runs/create", {"experiment_id": experiment, "run_name": name, "start_time": 1000})["run"]["info"]["run_id"]
    ask(api, "POST", "runs/log-metric", {"run_id": run, "key": "loss", "value": 1.0, "timestamp": 1, "step": 1})
    path = f"/api/2.0/mlflow-artifacts/artifacts/{experiment}/{run}/artifacts/model.bin"
    assert api.raw("PUT", path, b"weights")[0] == 200
    if ended_ms is not None:
        ask(api, "POST", "runs/update", {"run_id": run, "status": "FINISHED", "end_time": ended_ms})
    return run, path


def ask(api: Api, method: str, call: str, body: dict[str, Any]) -> Any:
    return api.call(method, f"/api/2.0/mlflow/{call}", body)


def runs_of(api: Api) -> list[str]:
    experiments = [each["experiment_id"] for each in ask(api, "POST", "experiments/search", {"max_results": 100})["experiments"]]
    found = ask(api, "POST", "runs/search", {"experiment_ids": experiments, "run_view_type": "ALL"}).get("runs", [])
    return sorted(run["info"]["run_name"] for run in found)


def test_runs_never_go_unless_that_is_set(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1)
    run, path = make_run(cluster.api, "old", 2000)
    assert cluster.api.post("/v1/retention", {})["runs"] == 0
    assert runs_of(cluster.api) == ["old"] and cluster.api.raw("GET", path)[0] == 200


def test_old_runs_go_with_their_artifacts_and_a_dry_run_only_counts(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1, controller=["--keep-runs", "30d"])
    cluster.api.call("PUT", "/v1/accounts/projects/archive", {"keep_runs_days": 0})
    now_ms = int(1000 * time.time())
    old = make_run(cluster.api, "old", now_ms - 31 * 24 * 3600 * 1000)
    others = [
        make_run(cluster.api, "young", now_ms - 24 * 3600 * 1000),
        make_run(cluster.api, "live", None),
        make_run(cluster.api, "kept", 2000, project="archive"),
    ]
    assert cluster.api.post("/v1/retention", {"dry_run": True})["runs"] == 1
    assert "1 run of MLflow's" in gpuctl_retention(cluster, "--dry-run")
    assert cluster.api.raw("GET", old[1])[0] == 200
    assert cluster.api.post("/v1/retention", {})["runs"] == 1
    assert runs_of(cluster.api) == ["kept", "live", "young"]
    assert not (cluster.folder / "controller" / "artifacts" / "0" / old[0]).exists()
    assert all(cluster.api.raw("GET", path)[0] == 200 for _, path in others)
    assert cluster.api.post("/v1/retention", {})["runs"] == 0


def test_a_project_alone_may_let_its_runs_go(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1)
    access = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}
    assert run_gpuctl("quotas", "set", "project", "vision", "--keep-runs", "7", env=access).returncode == 0
    make_run(cluster.api, "of vision", 2000, project="vision")
    make_run(cluster.api, "of nobody", 2000)
    assert cluster.api.post("/v1/retention", {})["runs"] == 1
    assert runs_of(cluster.api) == ["of nobody"]


def test_a_removal_of_a_run_that_was_cut_off_is_continued(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1)
    run, path = make_run(cluster.api, "old", 2000)
    cluster.controller.kill()
    database = sqlite3.connect(cluster.folder / "controller" / "mlflow.db")
    with database:  # as the first step of a removal leaves it
        database.execute("INSERT INTO removals (run, id, artifact_uri) SELECT key, id, artifact_uri FROM runs")
        database.execute("DELETE FROM runs")
    cluster.start_controller()
    assert cluster.api.raw("GET", path)[0] == 200
    cluster.api.post("/v1/retention", {})
    assert cluster.api.raw("GET", path)[0] == 404
    left = [database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("removals", "metrics", "points", "tags")]
    assert left == [0, 0, 0, 0]
    database.close()


def gpuctl_retention(cluster: Cluster, *options: str) -> str:
    access = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}
    done = run_gpuctl("admin", "retention", *options, env=access)
    return done.stdout + done.stderr


def test_a_node_that_is_not_heard_goes(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(1, controller=["--keep-nodes", "1s"])
    nodes = Api(cluster.url, cluster.user("nodes", role="node").token)
    nodes.post("/v1/agent/register", registration("paper", "boot", ["cpu"]))
    cluster.api.post("/v1/nodes/paper/fence", {"assert_dead": True})
    eventually(lambda: cluster.api.post("/v1/retention", {})["nodes"] == 1, "the node to be old enough")
    assert sorted(cluster.nodes()) == ["node0"]
