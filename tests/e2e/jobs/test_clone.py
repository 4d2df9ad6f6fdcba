# SPDX-License-Identifier: Apache-2.0
"""New jobs of the specs of others: clones with changes, and what failed, chosen by label, owner or array."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from harness import Api, Cluster, Problem, run_gpuctl


def gpuctl(cluster: Cluster, *words: str, api: Api | None = None) -> subprocess.CompletedProcess[str]:
    token = cluster.folder / "person.token"
    token.touch(0o600)
    token.write_text(str((api or cluster.api).token))
    return run_gpuctl(*words, env={"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token)})


def clone(api: Api, job: str, **changes: Any) -> Any:
    return api.job(api.post(f"/v1/jobs/{job}/clone", changes)["id"])


def refusal(api: Api, job: str, **changes: Any) -> Problem:
    with pytest.raises(Problem) as problem:
        api.post(f"/v1/jobs/{job}/clone", changes)
    return problem.value


def test_a_clone_has_the_spec_of_a_job_that_lives_and_the_changes(cluster: Cluster) -> None:
    words = ["python", "train.py", "--lr", "0.1", "--momentum=0.9", "model.depth=3", "--shift", "-0.5", "--amp"]
    job = cluster.api.submit(words, gpus=1, hold=True, name="first", env={"A": "1", "B": "2"}, labels={"phase": "2"})
    made = clone(
        cluster.api, job, set={"lr": "0.3", "momentum": "0", "model.depth": "5", "shift": "-1"}, gpus=2, name="second",
        env={"B": "3", "C": "4"}, arguments=["--epochs", "20"],
    )  # fmt: skip
    assert made["spec"]["command"] == [
        "python", "train.py", "--lr", "0.3", "--momentum=0", "model.depth=5", "--shift", "-1", "--amp", "--epochs", "20",
    ]  # fmt: skip
    assert made["spec"]["env"] == {"A": "1", "B": "3", "C": "4"} and made["labels"] == {"phase": "2"}
    assert (made["gpus"], made["name"], made["state"]) == (2, "second", "HELD") and "retry_of" not in made
    assert cluster.api.job(job)["spec"]["command"] == words
    plain = clone(cluster.api, job)
    assert plain["spec"] == cluster.api.job(job)["spec"]
    assert gpuctl(cluster, "cancel", "--label", "phase=2", "--yes").returncode == 0
    assert not cluster.api.get("/v1/jobs?label=phase=2&state=HELD")["jobs"]


def test_a_parameter_of_a_sweep_gets_other_values(cluster: Cluster) -> None:
    spec = {"command": ["echo", "{lr} {batch}"], "gpus": 1, "sweep": {"lr": [0.1, 0.2], "batch": [32, 64]}}
    job = cluster.api.post("/v1/jobs", spec)["id"]
    cluster.api.wait(job)
    made = clone(cluster.api, job, set={"lr": "0.3"})["id"]
    assert cluster.api.wait(made)["array"]["tasks"] == 2 and cluster.api.log(f"{made}.1") == "0.3 64\n"
    task = clone(cluster.api, f"{job}.3", set={"batch": "128,256"})["id"]
    assert cluster.api.wait(task)["array"]["tasks"] == 2
    assert [cluster.api.log(f"{task}.{n}") for n in (0, 1)] == ["0.2 128\n", "0.2 256\n"]


def test_a_task_of_an_array_is_cloned_alone(cluster: Cluster) -> None:
    job = cluster.api.submit(["sh", "-c", "echo $GPUCTL_ARRAY_TASK $MORE"], array={"tasks": 5})
    cluster.api.wait(job)
    made = clone(cluster.api, f"{job}.3", env={"MORE": "again"})["id"]
    assert cluster.api.wait(made)["array"]["tasks"] == 1 and cluster.api.log(f"{made}.3") == "3 again\n"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"set": {"rate": "1"}}, "set.rate"),  # nowhere
        ({"set": {"lr": "1"}}, "set.lr"),  # more than once
        ({"set": {"amp": "1"}}, "set.amp"),  # a flag
        ({"set": {"x": 1}}, "set.x"),
        ({"set": []}, "set"),
        ({"env": {"RANK": "1"}}, "env.RANK"),
        ({"gpus": -1}, "gpus"),
        ({"arguments": "x"}, "arguments"),
        ({"command": ["x"]}, "command"),
    ],
)
def test_changes_that_find_no_place_are_refused(cluster: Cluster, changes: dict[str, Any], field: str) -> None:
    job = cluster.api.submit(["python", "train.py", "--lr", "1", "--lr=2", "--amp"], hold=True)
    problem = refusal(cluster.api, job, **changes)
    assert (problem.status, problem.field) == (422, field)
    cluster.api.post(f"/v1/jobs/{job}/cancel")


def test_hidden_values_go_with_a_clone_and_only_to_who_may_change_the_job(cluster: Cluster) -> None:
    cluster.api.call("PUT", "/v1/accounts/projects/vision", {"members": {"ann": "user", "ben": "user"}})
    ann, ben = cluster.user("ann"), cluster.user("ben")
    job = ann.submit(["sh", "-c", 'test "$API_TOKEN" = open-sesame && echo ok'], env={"API_TOKEN": "open-sesame"}, project="vision")
    assert ann.wait(job)["state"] == "SUCCEEDED"
    made = clone(ann, job, arguments=["word"])
    assert ann.wait(made["id"])["state"] == "SUCCEEDED" and made["spec"]["env"] == {"API_TOKEN": "***"}
    problem = refusal(ben, job)
    assert problem.status == 403 and "not shown" in problem.body["hint"]
    open_job = ann.submit(["true"], project="vision")
    assert clone(ben, open_job)["owner"] == "ben"
    assert refusal(cluster.user("eve"), job).status == 404
    secret = ann.post(f"/v1/jobs/{job}/clone", {"env": {"API_TOKEN": "of-the-audit"}})["id"]
    ann.wait(secret)
    audit = json.dumps(cluster.api.get("/v1/audit?owner=ann"))
    assert "of-the-audit" not in audit and secret in audit


def test_gpuctl_clone_prints_the_id_and_says_what_it_cannot_set(cluster: Cluster) -> None:
    job = cluster.api.submit(["echo", "--lr", "0.1"])
    cluster.api.wait(job)
    made = gpuctl(cluster, "clone", job[:12], "--set", "lr=0.5", "--env", "X=1", "--name", "next", "--", "--and", "more").stdout.strip()
    view = cluster.api.wait(made)
    assert cluster.api.log(made) == "--lr 0.5 --and more\n" and (view["name"], view["spec"]["env"]) == ("next", {"X": "1"})
    refused = gpuctl(cluster, "clone", job, "--set", "momentum=0.9")
    assert refused.returncode == 2 and "there is no sweep over it" in refused.stderr and "remedy" in refused.stderr
    bare = gpuctl(cluster, "clone", job, "--set", "momentum")
    assert bare.returncode == 2 and "has no value" in bare.stderr


def test_retry_failed_takes_the_tasks_that_failed(cluster: Cluster) -> None:
    array = cluster.api.submit(["sh", "-c", "case {task} in 1|3|4) exit 3;; esac"], array={"tasks": 6})
    cluster.api.wait(array)
    made = gpuctl(cluster, "retry", "--failed", array).stdout.strip()
    view = cluster.api.wait(made)
    assert view["spec"]["array"]["only"] == "1,3-4" and view["array"]["failed"] == 3
    good = cluster.api.submit(["true"])
    cluster.api.wait(good)
    refused = gpuctl(cluster, "retry", "--failed", good)
    assert refused.returncode == 5 and "nothing of job" in refused.stderr


def test_retry_failed_of_a_list_takes_each_failure_of_the_caller_once(cluster: Cluster) -> None:
    dora, emil = cluster.user("dora"), cluster.user("emil")
    bad = [dora.submit(["false"], labels={"phase": phase}) for phase in ("1", "2")]
    others = [emil.submit(["false"], labels={"phase": "2"}), dora.submit(["true"], labels={"phase": "2"})]
    for api, job in [(dora, bad[0]), (dora, bad[1]), (emil, others[0]), (dora, others[1])]:
        api.wait(job)
    refused = gpuctl(cluster, "retry", "--failed", "--mine", api=dora)
    assert refused.returncode == 2 and "no terminal to ask" in refused.stderr
    (made,) = gpuctl(cluster, "retry", "--failed", "--label", "phase=2", "--yes", api=dora).stdout.split()
    assert dora.wait(made)["retry_of"] == bad[1]
    rest = gpuctl(cluster, "retry", "--failed", "--mine", "--yes", api=dora).stdout.split()
    assert sorted(dora.wait(job)["retry_of"] for job in rest) == sorted([bad[0], made])
    for words, says in ((["--mine"], "add --failed"), ([], "needs ID"), (["--failed", "--label", "x"], "KEY=VALUE")):
        wrong = gpuctl(cluster, "retry", *words, api=dora)
        assert wrong.returncode == 2 and says in wrong.stderr


def test_jobs_are_listed_by_a_label(cluster: Cluster) -> None:
    job = cluster.api.submit(["true"], labels={"team": "a=b", "run": "7"}, array={"tasks": 2})
    cluster.api.wait(job)
    assert [found["id"] for found in cluster.api.get("/v1/jobs?label=team=a%3Db")["jobs"]] == [job]
    assert cluster.api.get("/v1/jobs?label=team=a")["jobs"] == cluster.api.get("/v1/jobs?label=tea=a%3Db")["jobs"] == []
    assert all(task["labels"] == {"team": "a=b", "run": "7"} for task in cluster.api.get(f"/v1/jobs?array={job}&label=run=7")["jobs"])
    assert gpuctl(cluster, "ps", "--all", "--label", "run=7", "--quiet").stdout.split() == [job]
    with pytest.raises(Problem) as problem:
        cluster.api.get("/v1/jobs?label=team")
    assert problem.value.field == "label"
