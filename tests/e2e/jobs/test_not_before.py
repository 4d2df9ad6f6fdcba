# SPDX-License-Identifier: Apache-2.0
"""Jobs that do not begin before a moment: they say so, and begin when it has come, also after a restart."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pytest

from harness import Cluster, Problem, run_gpuctl


def moment(seconds: float) -> str:
    """So many seconds from now, as the API writes it."""
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_a_job_says_until_when_it_waits_and_begins_then(cluster: Cluster) -> None:
    far = moment(3600)
    job = cluster.api.submit(["true"], not_before=far)
    view = cluster.api.job(job)
    assert (view["state"], view["reason"]) == ("BLOCKED", f"waits until {far}")
    explained = cluster.api.get(f"/v1/jobs/{job}/explanation")
    assert far[:19] in str(explained)
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    soon = cluster.api.submit(["true"], not_before=moment(1.5))
    assert cluster.api.job(soon)["state"] == "BLOCKED"
    ended = cluster.api.wait(soon)
    assert ended["state"] == "SUCCEEDED" and ended["started_at"] >= ended["spec"]["not_before"]
    assert cluster.api.events(soon)[:3] == ["submitted", "blocked", "ready"]
    past = cluster.api.submit(["true"], not_before="2026-11-21T09:30:00+01:00")
    assert "blocked" not in cluster.api.events(past)


def test_a_moment_outlives_the_controller(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    job = cluster.api.submit(["true"], not_before=moment(3))
    cluster.controller.kill()
    cluster.start_controller()
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert cluster.api.job(job)["started_at"] >= cluster.api.job(job)["spec"]["not_before"]


@pytest.mark.parametrize("wrong", ["tomorrow", "+2h", "", 7, None])
def test_what_is_no_moment_is_refused(cluster: Cluster, wrong: object) -> None:
    if wrong is None:
        cluster.api.wait(cluster.api.submit(["true"], not_before=None))
        return
    with pytest.raises(Problem) as problem:
        cluster.api.submit(["true"], not_before=wrong)
    assert problem.value.field == "not_before"


def test_gpuctl_takes_a_duration_or_a_moment(cluster: Cluster) -> None:
    env = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}
    made = run_gpuctl("submit", "--not-before", "+2h", "--", "true", env=env).stdout.strip()
    assert moment(7100) < cluster.api.job(made)["spec"]["not_before"] < moment(7300)
    cluster.api.post(f"/v1/jobs/{made}/cancel")
    refused = run_gpuctl("submit", "--not-before", "noon", "--", "true", env=env)
    assert refused.returncode == 2 and "is no moment" in refused.stderr and "+2h" in refused.stderr
