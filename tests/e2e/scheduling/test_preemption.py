# SPDX-License-Identifier: Apache-2.0
"""Who gives way to whom, through the real programs: what a project borrowed goes back to the one that is entitled to it, and the job that
gave way goes on from its checkpoint. Whose turn it is under the policies of gpuctld.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import GPUCTLD, PATIENCE, Cluster, eventually, run_gpuctl

PROGRAM = Path(__file__).parents[1] / "programs" / "goer.py"
FILES = [{"path": "goer.py", "text": PROGRAM.read_text()}]
EARLY = {"signal": "USR1", "before_s": 60}


def give_quota(cluster: Cluster, project: str, gpus: int) -> None:
    cluster.api.call("PUT", f"/v1/accounts/projects/{project}", {"quota": {"cpu": gpus}})


def goer(cluster: Cluster, folder: Path, **spec: Any) -> str:
    """A job that runs until folder/gate is there, and that keeps its checkpoints in the folder."""
    return cluster.api.submit(["python", "-S", "goer.py", str(folder / "checkpoint"), str(folder / "gate")], files=FILES, **spec)


def wait_output(cluster: Cluster, job: str, text: str) -> None:
    eventually(lambda: text in cluster.api.log(job), f"{text!r} from {job}")


def attempts(cluster: Cluster, job: str) -> list[tuple[int, str, str | None]]:
    rows = cluster.api.get(f"/v1/jobs/{job}/attempts")["attempts"]
    return sorted((row["attempt"], row["claim"], row["cause"]) for row in rows)


@pytest.mark.parametrize(("more", "signal"), [({"early_signal": EARLY}, "SIGUSR1"), ({}, "SIGTERM")], ids=["early", "term"])
def test_a_borrower_gives_way_with_a_checkpoint_and_goes_on_from_it(
    make_cluster: Callable[..., Cluster], tmp_path: Path, more: dict[str, Any], signal: str
) -> None:
    cluster = make_cluster(2)
    give_quota(cluster, "owners", 2)
    borrower = goer(cluster, tmp_path, gpus=2, project="guests", **more)
    wait_output(cluster, borrower, "attempt 1 from step 0")
    assert attempts(cluster, borrower) == [(1, "borrowed", None)]

    gate = tmp_path / "entitled"
    entitled = cluster.api.submit(["sh", "-c", f"until test -e {gate}; do sleep 0.01; done"], gpus=1, project="owners")
    cluster.wait_state(entitled, "RUNNING")
    wait_output(cluster, borrower, f"on {signal}")
    step = int((tmp_path / "checkpoint.0").read_text())
    view = cluster.wait_state(borrower, "QUEUED")
    assert (view["attempt"], view["exit_code"]) == (1, None)
    assert attempts(cluster, borrower) == [(1, "borrowed", "PREEMPTED")]
    assert attempts(cluster, entitled) == [(1, "entitled", None)]

    gate.touch()
    assert cluster.api.wait(entitled)["state"] == "SUCCEEDED"
    eventually(lambda: cluster.api.job(borrower)["attempt"] == 2, "the second attempt")
    wait_output(cluster, borrower, f"attempt 2 from step {step}")
    (tmp_path / "gate").touch()
    assert cluster.api.wait(borrower)["state"] == "SUCCEEDED"
    assert cluster.api.log(borrower) == f"attempt 2 from step {step}\ndone\n"
    assert cluster.api.log(borrower, attempt=1) == f"attempt 1 from step 0\nsaved step {step} on {signal}\n"

    history = cluster.api.get(f"/v1/jobs/{borrower}/events")["events"]
    run, gave_way = ["placed", "started", "running"], f"gave way to job {entitled}"
    assert [row["kind"] for row in history] == ["submitted", *run, "stopping", "requeued", *run, "succeeded"]
    assert [row["detail"] for row in history[4:6]] == [{"reason": gave_way}, {"cause": "PREEMPTED", "reason": gave_way}]
    assert attempts(cluster, borrower) == [(1, "borrowed", "PREEMPTED"), (2, "borrowed", None)]


def test_priority_and_wishes_to_borrow_take_nothing_from_what_runs(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(2)
    give_quota(cluster, "owners", 1)
    first, second = (goer(cluster, tmp_path, project="owners") for _ in range(2))
    for job in (first, second):
        wait_output(cluster, job, "attempt 1")
    assert [attempts(cluster, job)[0][1] for job in (first, second)] == ["entitled", "borrowed"]
    guest = cluster.api.submit(["true"], project="guests", priority=1000)  # placed with the submission, or not
    (tmp_path / "gate").touch()
    assert [cluster.api.wait(job)["state"] for job in (first, second, guest)] == ["SUCCEEDED"] * 3
    assert all("stopping" not in cluster.api.events(job) for job in (first, second))


def submit_in_turn(cluster: Cluster, folder: Path) -> tuple[str, str]:
    """Two jobs behind one that holds all: a long one, and later a short one. In the order in which they began."""
    holder = goer(cluster, folder)
    wait_output(cluster, holder, "attempt 1")
    long, short = (cluster.api.submit(["true"], time_limit_s=limit_s) for limit_s in (86400, 60))
    (folder / "gate").touch()
    begun = {job: cluster.api.wait(job)["started_at"] for job in (long, short)}
    return ("long", "short") if begun[long] < begun[short] else ("short", "long")


@pytest.mark.parametrize(
    ("arguments", "order"),
    [([], ("short", "long")), (["--policy", "sjf"], ("short", "long")), (["--policy", "fifo"], ("long", "short"))],
    ids=["none", "sjf", "fifo"],
)
def test_the_policy_says_whose_turn_it_is(
    make_cluster: Callable[..., Cluster], tmp_path: Path, arguments: list[str], order: tuple[str, str]
) -> None:
    cluster = make_cluster(1, controller=arguments)
    assert submit_in_turn(cluster, tmp_path) == order
    policy = arguments[-1] if arguments else "default"
    assert cluster.api.get("/version")["policy"] == policy
    env = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}
    assert f", policy {policy}\n" in run_gpuctl("version", env=env).stdout
    assert json.loads(run_gpuctl("version", "-o", "json", env=env).stdout)["controller"]["policy"] == policy


def test_the_policy_may_be_a_setting_and_an_option_wins(make_cluster: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUCTL_POLICY", "easy")
    assert make_cluster().api.get("/version")["policy"] == "easy"
    assert make_cluster(controller=["--policy", "sjf"]).api.get("/version")["policy"] == "sjf"


@pytest.mark.parametrize(
    ("policy", "words"),
    [("srtf", "for gpuctl simulate alone"), ("srsf", "for gpuctl simulate alone"), ("lifo", "must be fifo, easy, sjf or default")],
)
def test_policies_that_are_not_for_programs_are_refused(tmp_path: Path, policy: str, words: str) -> None:
    command = [str(GPUCTLD), "--state", str(tmp_path / "state"), "--listen", "127.0.0.1:0", "--policy", policy]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert ran.returncode == 2 and words in ran.stderr and "remedy: give default" in ran.stderr
    assert not (tmp_path / "state").exists()
