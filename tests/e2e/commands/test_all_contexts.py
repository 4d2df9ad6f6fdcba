# SPDX-License-Identifier: Apache-2.0
"""Several controllers: a command that chooses one, a job that goes to that which starts it first, and one list of all."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import Cluster, run_gpuctl

Ran = subprocess.CompletedProcess[str]
JOB = ["--gpu-type", "cpu", "--", "sleep", "600"]


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Cluster]]:
    """Two clusters: east has a slot, west has two."""
    made = {}
    for name, slots in (("east", 1), ("west", 2)):
        folder = tmp_path_factory.mktemp(name)
        made[name] = Cluster(folder, [slots]).start()
        (folder / "ann.token").touch(0o600)
        (folder / "ann.token").write_text(str(made[name].user("ann").token))
    yield made
    for cluster in made.values():
        cluster.stop()


@pytest.fixture
def ann(clusters: dict[str, Cluster], tmp_path: Path) -> Iterator[Callable[..., Ran]]:
    """gpuctl of somebody who uses east, and has named west."""

    def gpuctl(*words: str, code: int = 0) -> Ran:
        ran = run_gpuctl(*words, env={"XDG_CONFIG_HOME": str(tmp_path), "GPUCTL_STATE": str(tmp_path / "none")})
        assert ran.returncode == code, (words, ran)
        return ran

    for name, cluster in clusters.items():
        gpuctl("context", "add", name, cluster.url, "--token-file", str(cluster.folder / "ann.token"))
    gpuctl("context", "east")
    yield gpuctl
    for name in clusters:
        for job in json.loads(gpuctl("ps", "--context", name, "-o", "json").stdout)["jobs"]:
            gpuctl("cancel", job["id"], "--context", name)
            clusters[name].api.wait(job["id"])


def test_a_context_is_chosen_for_one_command(clusters: dict[str, Cluster], ann: Callable[..., Ran]) -> None:
    assert clusters["west"].url in ann("whoami", "--context", "west").stdout
    assert 'from the context "west"' in ann("whoami", "--context", "west").stdout
    assert clusters["east"].url in ann("whoami").stdout
    assert "there are east, west" in ann("ps", "--context", "north", code=3).stderr
    assert "leave out one of the two" in ann("ps", "--context", "west", "--url", clusters["east"].url, code=2).stderr
    assert "unknown option --context" in ann("context", "list", "--context", "west", code=2).stderr


def test_the_controller_in_use_without_a_name_is_called_default(clusters: dict[str, Cluster], tmp_path: Path) -> None:
    east = clusters["east"]
    (tmp_path / "gpuctl").mkdir()
    (tmp_path / "gpuctl" / "config").write_text(f"url = {east.url}\ntoken-file = {east.folder / 'ann.token'}\n")
    elsewhere = {"XDG_CONFIG_HOME": str(tmp_path), "GPUCTL_URL": clusters["west"].url, "GPUCTL_STATE": str(tmp_path / "none")}
    chosen = run_gpuctl("whoami", "--context", "default", env=elsewhere)
    assert chosen.returncode == 0 and east.url in chosen.stdout, chosen
    sent = run_gpuctl("submit", "--any", *JOB, env=elsewhere)
    assert "need --context default" in sent.stderr, sent
    canceled = run_gpuctl("cancel", sent.stdout.strip(), "--context", "default", env=elsewhere)
    assert canceled.returncode == 0 and east.api.wait(sent.stdout.strip())["state"] == "CANCELED", canceled
    assert run_gpuctl("ps", "--context", "east", env=elsewhere).returncode == 3


def test_a_job_goes_where_it_starts_first(clusters: dict[str, Cluster], ann: Callable[..., Ran]) -> None:
    first, second, third = (ann("submit", "--any", *JOB) for _ in range(3))
    assert "east would start it now\n" in first.stderr and "west would start it now\n" in first.stderr
    assert "east takes it" in first.stderr  # of equal ones that in use
    clusters["east"].wait_state(first.stdout.strip(), "RUNNING")
    for sent in (second, third):
        assert "east would start it in " in sent.stderr and "west takes it" in sent.stderr, sent
        clusters["west"].wait_state(sent.stdout.strip(), "RUNNING")
    larger = ann("submit", "--any", "--gpus", "2", *JOB)
    assert "east would refuse it: the job needs 2 GPUs" in larger.stderr and "west takes it" in larger.stderr, larger
    refused = ann("submit", "--any", "--gpus", "9", *JOB, code=7)
    assert "none of your 2 controllers takes the job" in refused.stderr and refused.stdout == ""


def test_a_job_may_wait_for_one_of_the_controller_that_takes_it(clusters: dict[str, Cluster], ann: Callable[..., Ran]) -> None:
    first = ann("submit", "--hold", "--name", "prepare", *JOB).stdout.strip()
    for word in ("prepare", first[:9], first):
        sent = ann("submit", "--any", "--after", word, *JOB)
        view = clusters["east"].api.job(sent.stdout.strip())
        assert view["state"] == "BLOCKED" and first in view["reason"], sent


def test_run_shows_the_job_of_the_other_controller(clusters: dict[str, Cluster], ann: Callable[..., Ran]) -> None:
    ann("submit", *JOB)
    ran = ann("run", "--any", "--gpu-type", "cpu", "--", "sh", "-c", "echo out; exit 7", code=7)
    assert ran.stdout == "out\n" and "west takes it" in ran.stderr
    assert ann("run", "--any", "--quiet", "--gpu-type", "cpu", "--", "echo", "out").stderr == ""


def test_one_list_has_the_jobs_of_all(clusters: dict[str, Cluster], ann: Callable[..., Ran]) -> None:
    jobs = {name: ann("submit", "--context", name, "--name", f"in-{name}", *JOB).stdout.strip() for name in clusters}
    listed = json.loads(ann("ps", "--all-contexts", "-o", "json").stdout)["jobs"]
    assert {job["context"]: job["id"] for job in listed} == jobs
    assert [line.split()[:3] for line in ann("ps", "--all-contexts").stdout.splitlines()] == [
        ["CONTEXT", "ID", "NAME"],
        ["east", jobs["east"], "in-east"],
        ["west", jobs["west"], "in-west"],
    ]
    assert ann("ps", "--all-contexts", "--name", "in-west", "--quiet").stdout.split() == [jobs["west"]]
    for words, says in (
        (["--array", "x"], "--array is of one controller"),
        (["--limit", "201"], "up to 200 jobs of each controller"),
        (["--context", "west"], "--context names one controller"),
    ):
        assert says in ann("ps", "--all-contexts", *words, code=2).stderr


def test_what_names_no_one_controller_is_refused(ann: Callable[..., Ran], tmp_path: Path) -> None:
    assert "a key is known to one controller" in ann("submit", "--any", "--key", "k", *JOB, code=2).stderr
    (tmp_path / "two.yaml").write_text("name: a\ncommand: [true]\n---\nname: b\ncommand: [true]\n")
    assert "describes 2 jobs, and --any is for one" in ann("submit", "--any", "-f", str(tmp_path / "two.yaml"), code=2).stderr
    nobody = run_gpuctl("submit", "--any", *JOB, env={"XDG_CONFIG_HOME": str(tmp_path / "nobody")})
    assert nobody.returncode == 2 and "you have named no controllers" in nobody.stderr and "gpuctl context add" in nobody.stderr


def test_a_controller_that_is_away_or_refuses_the_token_costs_the_others_nothing(
    clusters: dict[str, Cluster], ann: Callable[..., Ran], tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.token"
    wrong.touch(0o600)
    wrong.write_text("gct_none")
    ann("context", "add", "away", "http://127.0.0.1:1", "--token-file", str(wrong))
    ann("context", "add", "closed", clusters["west"].url, "--token-file", str(wrong))
    listed = ann("ps", "--all-contexts")
    assert "gpuctl: away: " in listed.stderr and "gpuctl: closed: " in listed.stderr and listed.stdout.startswith("CONTEXT")
    sent = ann("submit", "--any", *JOB)
    assert "east takes it" in sent.stderr and "gpuctl: away: " in sent.stderr
    controller = clusters["east"].controller.process
    assert controller is not None
    controller.send_signal(signal.SIGSTOP)
    try:
        sent = ann("submit", "--any", *JOB)
    finally:
        controller.send_signal(signal.SIGCONT)
    assert "west takes it" in sent.stderr and "gpuctl: east: " in sent.stderr
    wrong.unlink()
    assert "wrong.token" in ann("ps", "--all-contexts").stderr
