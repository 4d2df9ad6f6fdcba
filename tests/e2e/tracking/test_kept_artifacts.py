# SPDX-License-Identifier: Apache-2.0
"""What the ranks of a job kept is among the artifacts of its run: read-only, for those who see the job, and wherever its bytes are."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from typing import Any

import pytest

from harness import Api, Cluster, eventually
from rclone_server import S3Server
from test_mlflow import API, FILES, Script, ask, error_of, script, values  # noqa: F401
from test_runs import CLIENT, MEASURE, ended_run, job_runs, measure

KEPT = "gpuctl.outputs"
BYTES = {"Content-Type": "application/octet-stream"}

#: A rank that logs a metric and keeps some files.
KEEP = """
from pathlib import Path
kept = Path(os.environ["GPUCTL_OUTPUT_DIR"])
runtime.log_metric("loss", 0.5)
(kept / "model/deep").mkdir(parents=True)
(kept / "model/deep/net é.bin").write_bytes(bytes(range(256)) * 800)
(kept / "model/config").write_text(os.environ["RANK"])
(kept / "model.txt").write_text("attempt " + os.environ["GPUCTL_ATTEMPT"])
(kept / "empty").touch()
"""

needs_client = pytest.mark.skipif(importlib.util.find_spec("mlflow") is None, reason="MLflow's client could not be installed")


def kept_run(cluster: Cluster, name: str, **spec: Any) -> tuple[str, Any]:
    """A job whose ranks have kept files and a metric, and its run."""
    job = measure(cluster, KEEP, name=name, **spec)
    assert cluster.api.wait(job)["state"] == "SUCCEEDED", cluster.api.log(job, stream="stderr")
    eventually(lambda: cluster.api.get(f"/v1/jobs/{job}/files")["complete"], "all files to be there")
    return job, ended_run(cluster, job, name)


def root_of(run: Any) -> str:
    root: str = run["info"]["artifact_uri"].removeprefix("mlflow-artifacts:/")
    return root


def listed(api: Api, run: Any, path: str = "") -> list[str]:
    """Both lists of a folder say the same; names of folders end with a slash."""
    found = ask(api, "artifacts/list", run_id=run["info"]["run_id"], **({"path": path} if path else {}))["files"]
    prefix = f"{path}/" if path else ""
    below = api.get(f"{FILES}?path={root_of(run)}/{path}".rstrip("/"))["files"]
    assert [prefix + entry["path"] for entry in below] == [entry["path"] for entry in found]
    return [entry["path"].removeprefix(prefix) + ("/" if entry["is_dir"] else "") for entry in found]


@needs_client
def test_mlflows_client_lists_and_downloads_what_ranks_kept(script: Script, cluster: Cluster) -> None:  # noqa: F811
    _, run = kept_run(cluster, "kept", gpus=2)
    script(
        """
        import mlflow, os, pathlib
        client, run = mlflow.MlflowClient(), os.environ["RUN"]
        client.log_text(run, "mine", "notes.txt")
        assert [f.path for f in client.list_artifacts(run)] == ["gpuctl.outputs", "notes.txt"]
        assert [f.path for f in client.list_artifacts(run, "gpuctl.outputs")] == ["gpuctl.outputs/0", "gpuctl.outputs/1"]
        inside = {f.path: (f.is_dir, f.file_size) for f in client.list_artifacts(run, "gpuctl.outputs/1")}
        assert inside == {f"gpuctl.outputs/1/{name}": about for name, about in
                          {"empty": (False, 0), "model": (True, None), "model.txt": (False, 9)}.items()}, inside
        assert client.list_artifacts(run, "gpuctl.outputs/1/empty") == client.list_artifacts(run, "gpuctl.outputs/7") == []
        assert mlflow.artifacts.load_text(f"runs:/{run}/gpuctl.outputs/1/model/config") == "1"
        pathlib.Path("copy").mkdir()
        whole = pathlib.Path(client.download_artifacts(run, "", "copy"))
        files = {str(p.relative_to(whole)): p.read_bytes() for p in whole.rglob("*") if p.is_file()}
        big = bytes(range(256)) * 800
        expected = {"notes.txt": b"mine"}
        for rank in (0, 1):
            expected |= {f"gpuctl.outputs/{rank}/{name}": content for name, content in
                         {"empty": b"", "model.txt": b"attempt 1", "model/config": str(rank).encode(), "model/deep/net é.bin": big}.items()}
        assert files == expected, files.keys()

        def refused(act, *words):
            try:
                act()
            except mlflow.exceptions.MlflowException as error:
                assert error.error_code == "PERMISSION_DENIED" and all(word in str(error) for word in words), error
            except Exception as error:
                assert "403" in str(error), error
            else:
                raise AssertionError("it was not refused")

        refused(lambda: client.log_text(run, "x", "gpuctl.outputs/0/model.txt"))
        refused(lambda: client.log_text(run, "x", "gpuctl.outputs/new"))
        """,
        env={"RUN": run["info"]["run_id"]},
    )
    assert listed(cluster.api, run) == ["notes.txt", f"{KEPT}/"]


def test_each_run_shows_what_its_own_attempt_kept(cluster: Cluster) -> None:
    job = measure(cluster, KEEP + "sys.exit(os.environ['GPUCTL_ATTEMPT'] == '1')", name="kept-twice", retries=1)
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    runs = eventually(lambda: (found := job_runs(cluster, job, "kept-twice")) and len(found) == 2 and found, "two runs")
    for run in runs:
        attempt = values(run, "tags")["gpuctl.attempt"]
        status, headers, body = cluster.api.raw("GET", f"{FILES}/{root_of(run)}/{KEPT}/0/model.txt", headers={"Range": "bytes=0-7"})
        assert (status, body, headers["content-range"]) == (206, b"attempt ", "bytes 0-7/9")
        assert cluster.api.raw("GET", f"{FILES}/{root_of(run)}/{KEPT}/0/model.txt")[2] == f"attempt {attempt}".encode()


def test_the_folder_is_read_only_and_the_rest_of_the_run_is_not(cluster: Cluster) -> None:
    job, run = kept_run(cluster, "kept-read-only")
    api, root = cluster.api, f"{FILES}/{root_of(run)}"
    for method in ("PUT", "DELETE"):
        for path in (KEPT, f"{KEPT}/0/model.txt", f"{KEPT}/9"):
            status, answer = error_of(api, method, f"{root}/{path}", b"x" if method == "PUT" else None)
            assert (status, answer["error_code"]) == (403, "PERMISSION_DENIED"), (method, path, answer)
            assert "read-only" in answer["message"] and job in answer["message"] and "another folder" in answer["message"]
    for path in (f"{KEPT}.mine", f"deep/{KEPT}/x"):
        assert api.raw("PUT", f"{root}/{path}", b"x", BYTES)[0] == 200 and api.raw("GET", f"{root}/{path}")[2] == b"x"
    assert listed(api, run) == ["deep/", f"{KEPT}.mine", f"{KEPT}/"]
    assert api.raw("DELETE", root)[0] == 200, "what was uploaded may go"
    assert listed(api, run) == [f"{KEPT}/"] and listed(api, run, f"{KEPT}/0/model") == ["config", "deep/"]
    for path in ("0/none", "0/model", "7/model.txt", "x/model.txt", "0"):
        assert error_of(api, "GET", f"{root}/{KEPT}/{path}")[0] == 404, path
    api.call("DELETE", f"/v1/jobs/{job}")
    eventually(lambda: listed(api, run) == [], "the files to go with their job")


def test_a_job_that_logged_nothing_has_no_run_and_one_that_kept_nothing_no_folder(cluster: Cluster) -> None:
    silent = measure(cluster, KEEP.replace('runtime.log_metric("loss", 0.5)', ""), name="kept-silent")
    assert cluster.api.wait(silent)["state"] == "SUCCEEDED"
    assert cluster.api.get(f"/v1/jobs/{silent}/runs")["runs"] == [] and len(cluster.api.get(f"/v1/jobs/{silent}/files")["files"]) == 4
    empty = measure(cluster, "runtime.log_metric('loss', 1)", name="kept-nothing")
    assert cluster.api.wait(empty)["state"] == "SUCCEEDED"
    assert listed(cluster.api, ended_run(cluster, empty, "kept-nothing")) == []


def test_a_file_that_has_not_come_whole_is_asked_for_again(cluster: Cluster) -> None:
    job, run = kept_run(cluster, "kept-partly")
    (stream,) = (cluster.folder / "controller" / "files" / job[:2]).rglob("1.0.files")
    os.truncate(stream, stream.stat().st_size - 10)
    assert f"{KEPT}/" in listed(cluster.api, run)
    status, answer = error_of(cluster.api, "GET", f"{FILES}/{root_of(run)}/{KEPT}/0/model/deep/net%20%C3%A9.bin")
    assert (status, answer["error_code"]) == (503, "TEMPORARILY_UNAVAILABLE") and "have come from the node" in answer["message"]


def test_only_those_who_see_the_job_see_its_files(cluster: Cluster) -> None:
    ann, bob, eve = (cluster.user(name) for name in ("ann", "bob", "eve"))
    cluster.api.call("PUT", "/v1/accounts/projects/kept-team", {"members": {"ann": "user", "bob": "viewer"}})
    job = ann.submit(["python", "-c", MEASURE + KEEP], name="kept-shared", project="kept-team", env=CLIENT)
    ann.wait(job)
    run_id = eventually(lambda: (found := ann.get(f"/v1/jobs/{job}/runs")["runs"]) and found[0]["run_id"], "the run")
    run = ann.get(f"{API}/runs/get?run_id={run_id}")["run"]
    file = f"{FILES}/{root_of(run)}/{KEPT}/0/model.txt"
    for api in (ann, bob, cluster.api):
        assert f"{KEPT}/" in listed(api, run) and api.raw("GET", file)[0] == 200
    assert bob.raw("PUT", file, b"x", BYTES)[0] == bob.raw("DELETE", file)[0] == 403
    assert eve.raw("GET", file)[0] == eve.raw("GET", f"{FILES}?path={root_of(run)}/{KEPT}")[0] == 404
    for name, attempt in (("forged", "1"), ("never", "2")):  # tags are anybody's word: they lead nobody to the files of others
        tags = [{"key": "gpuctl.job_id", "value": job}, {"key": "gpuctl.attempt", "value": attempt}]
        for api in (eve, ann):
            forged = api.post(f"{API}/runs/create", {"experiment_id": "0", "run_name": name, "tags": tags})["run"]
            assert listed(api, forged) == listed(api, forged, KEPT) == []
            assert api.raw("GET", f"{FILES}/{root_of(forged)}/{KEPT}/0/model.txt")[0] == 404
            assert api.raw("PUT", f"{FILES}/{root_of(forged)}/{KEPT}/mine", b"x", BYTES)[0] == 200


def test_who_sees_a_run_in_a_shared_experiment_and_not_its_job_sees_no_files(cluster: Cluster) -> None:
    ann, bob = cluster.user("ann"), cluster.user("bob")
    cluster.api.call("PUT", "/v1/accounts/projects/kept-open", {"members": {"ann": "user", "bob": "user"}})
    tags = [{"key": "gpuctl.project", "value": "kept-open"}]
    experiment = ann.post(f"{API}/experiments/create", {"name": "kept-open", "tags": tags})["experiment_id"]
    job = ann.submit(["python", "-c", MEASURE + KEEP], env={**CLIENT, "MLFLOW_EXPERIMENT_ID": experiment})
    ann.wait(job)
    run_id = eventually(lambda: (found := ann.get(f"/v1/jobs/{job}/runs")["runs"]) and found[0]["run_id"], "the run")
    run = bob.get(f"{API}/runs/get?run_id={run_id}")["run"]
    assert listed(ann, run) == [f"{KEPT}/"] and listed(bob, run) == listed(bob, run, f"{KEPT}/0") == []
    assert bob.raw("GET", f"{FILES}/{root_of(run)}/{KEPT}/0/model.txt")[0] == 404


def test_a_look_of_an_operator_into_the_files_of_others_is_audited(cluster: Cluster) -> None:
    ann, oscar = cluster.user("ann"), cluster.user("oscar", "operator")
    job = ann.submit(["python", "-c", MEASURE + KEEP], name="kept-audited", env=CLIENT)
    ann.wait(job)
    run_id = eventually(lambda: (found := ann.get(f"/v1/jobs/{job}/runs")["runs"]) and found[0]["run_id"], "the run")
    file = f"{FILES}/{root_of(ann.get(f'{API}/runs/get?run_id={run_id}')['run'])}/{KEPT}/0/model.txt"

    def looks(of: str) -> int:
        rows = cluster.api.get(f"/v1/audit?limit=200&owner={of}")["audit"]
        return sum(row["path"] == file for row in rows)

    assert ann.raw("GET", file)[0] == oscar.raw("GET", file)[0] == 200
    eventually(lambda: looks("oscar") == 1 and looks("ann") == 0, "the look in the audit")


def test_files_that_have_gone_to_the_object_store_come_back_when_they_are_asked_for(
    make_cluster: Callable[..., Cluster], s3: S3Server
) -> None:
    cluster = make_cluster(1, controller=s3.options("--object-store-after", "1s"))
    job, run = kept_run(cluster, "kept-away")
    here = cluster.folder / "controller" / "files" / job[:2]

    def gone() -> None:
        eventually(lambda: s3.keys(f"files/{job}/") and not list(here.rglob("*.files")), "no files on the controller's disk")

    gone()
    assert listed(cluster.api, run) == [f"{KEPT}/"] and not list(here.rglob("*.files")), "the run's folder brings nothing back"
    assert listed(cluster.api, run, f"{KEPT}/0") == ["empty", "model.txt", "model/"]
    gone()
    status, _, body = cluster.api.raw("GET", f"{FILES}/{root_of(run)}/{KEPT}/0/model/deep/net%20%C3%A9.bin")
    assert (status, body) == (200, bytes(range(256)) * 800)
