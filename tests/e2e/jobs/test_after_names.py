# SPDX-License-Identifier: Apache-2.0
"""Dependencies on jobs by their names, which the controller looks up when a job is submitted."""

from __future__ import annotations

from typing import Any

import pytest

from harness import Api, Cluster, Problem, run_gpuctl


def follows(api: Api, *after: Any) -> str:
    return api.submit(["true"], after=list(after))


def refusal(api: Api, *after: Any) -> Problem:
    with pytest.raises(Problem) as problem:
        follows(api, *after)
    return problem.value


def test_a_name_is_that_of_the_job_of_the_submitter_that_has_not_ended(cluster: Cluster) -> None:
    ann, ben = cluster.user("ann"), cluster.user("ben")
    old = ann.submit(["false"], name="prepare")
    ann.wait(old)
    other = ben.submit(["true"], name="prepare", hold=True)
    mine = ann.submit(["true"], name="prepare", hold=True)
    job = follows(ann, {"name": "prepare"})
    view = ann.job(job)
    assert view["state"] == "BLOCKED" and mine in view["reason"]
    ann.post(f"/v1/jobs/{mine}/release")
    assert ann.wait(job)["state"] == "SUCCEEDED"
    later = follows(ann, {"name": "prepare"})  # none lives: the newest that has ended, which succeeded
    assert ann.wait(later)["state"] == "SUCCEEDED"
    ben.post(f"/v1/jobs/{other}/cancel")


def test_a_name_of_several_jobs_and_of_none_is_refused_in_one_line(cluster: Cluster) -> None:
    jobs = [cluster.api.submit(["true"], name="twice", hold=True) for _ in range(2)]
    problem = refusal(cluster.api, {"name": "twice"})
    assert (problem.status, problem.field) == (422, "after[0]")
    assert all(job in problem.body["detail"] for job in jobs) and "name the id of one" in problem.body["hint"]
    problem = refusal(cluster.api, {"name": "never", "when": "afterany"})
    assert problem.field == "after[0]" and "is called never" in problem.body["detail"]
    cluster.api.post(f"/v1/jobs/{jobs[0]}/cancel")
    problem = refusal(cluster.api, {"name": "twice"}, jobs[1])
    assert problem.field == "after[1]" and "again" in problem.body["detail"]
    assert refusal(cluster.api, {"name": "twice", "job": jobs[1]}).field == "after[0].name"
    assert refusal(cluster.api, {"name": "a b"}).field == "after[0].name"
    cluster.api.post(f"/v1/jobs/{jobs[1]}/cancel")


def test_gpuctl_takes_a_name_where_no_id_begins_so(cluster: Cluster) -> None:
    env = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}
    first = cluster.api.submit(["true"], name="fetch-data", hold=True)
    for word in ("fetch-data:afterany", first[:8], first):
        planned = run_gpuctl("plan", "--after", word, "--", "true", env=env)
        assert planned.returncode == 0 and "start " in planned.stdout, planned
    made = run_gpuctl("submit", "--after", "fetch-data:afterany", "--", "true", env=env).stdout.strip()
    assert cluster.api.job(made)["spec"]["after"] == [{"name": "fetch-data", "when": "afterany"}]
    assert first in cluster.api.job(made)["reason"]
    cluster.api.post(f"/v1/jobs/{first}/cancel")
    assert cluster.api.wait(made)["state"] == "SUCCEEDED"
    refused = run_gpuctl("submit", "--after", "no-such", "--", "true", env=env)
    assert refused.returncode == 3 and "no job of yours is called no-such" in refused.stderr
