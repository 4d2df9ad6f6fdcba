# SPDX-License-Identifier: Apache-2.0
"""Jobs with --keep-on-failure: after a rank failed, its nodes stay as they are for a look, and then the job ends as it would have."""

from __future__ import annotations

import signal
import subprocess
import textwrap
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from harness import PATIENCE, PYTHON, ROOT, Cluster, Problem, eventually
from joined import WEB, environment, gpuctl, start
from owners import cluster_of, needs_owners
from test_forward import Forward
from test_ssh import Person

FAILS = ["sh", "-c", 'echo "of rank $RANK" > found.$RANK; test "$RANK" = 1 && exit 3; exec sleep 600']
ALONE = ["sh", "-c", "echo mine > found; echo last words >&2; exit 3"]
HOUR: dict[str, Any] = {"keep_on_failure_s": 3600}


def kept(cluster: Cluster, command: list[str], **spec: Any) -> str:
    """The id of a job that is kept after its failure."""
    job = cluster.api.submit(command, gpu_type="cpu", **{**HOUR, **spec})
    eventually(lambda: cluster.api.job(job)["kept_until"], f"job {job} to be kept")
    return job


def found(cluster: Cluster, job: str, rank: int = 0) -> str:
    """What a command beside the rank reads; the rank may be still on its way to its end."""

    def read() -> str:
        done = gpuctl_or_none(cluster, "exec", "--rank", str(rank), job, "--", "sh", "-c", "cat found*; echo $RANK")
        return done or ""

    text: str = eventually(read, f"a command beside rank {rank} of {job}")
    return text


def gpuctl_or_none(cluster: Cluster, *words: str) -> str | None:
    try:
        return gpuctl(cluster, *words).stdout.decode()
    except AssertionError:
        return None


def release(cluster: Cluster, job: str) -> Any:
    cluster.api.post(f"/v1/jobs/{job}/release")
    return cluster.api.wait(job)


def test_a_person_looks_into_the_folder_of_a_failed_rank_and_copies_files_out(cluster: Cluster, tmp_path: Path) -> None:
    made = gpuctl(cluster, "submit", "--gpus", "1", "--gpu-type", "cpu", "--keep-on-failure", "1h", "--", *ALONE)
    job = made.stdout.decode().strip()
    eventually(lambda: cluster.api.job(job)["kept_until"], f"job {job} to be kept")
    assert found(cluster, job) == "mine\n0\n"
    gpuctl(cluster, "cp", f"{job}.0:found", tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "mine\n"
    gpuctl(cluster, "exec", job, "--", "sh", "-c", "exit 7", code=7)  # a command ends alone
    gpuctl(cluster, "exec", "-i", job, "--", "sh", "-c", "cat > more", send=b"said")
    assert gpuctl(cluster, "exec", job, "cat", "more").stdout == b"said"
    assert cluster.api.log(job, stream="stderr") == "last words\n"
    assert cluster.api.job(job)["state"] == "RUNNING"

    view = release(cluster, job)
    assert (view["state"], view["exit_code"], view["cause"], view["failed_rank"]) == ("FAILED", 3, "RANK_FAILED", 0)
    assert view["reason"].endswith("exited with 3") and view["kept_until"] is None
    assert cluster.api.events(job) == ["submitted", "placed", "started", "running", "kept", "stopping", "failed"]
    assert cluster.api.get(f"/v1/jobs/{job}/attempts")["attempts"][0]["ranks"][0]["exit_code"] == 3


def test_everybody_says_in_one_line_that_it_is_kept(cluster: Cluster) -> None:
    job = kept(cluster, ALONE)
    view = cluster.api.job(job)
    node = view["nodes"][0]["node"]
    assert view["reason"] == f"rank 0 on node {node} exited with 3; kept until {view['kept_until']}"
    for words in (["ps"], ["get", job], ["explain", job]):
        lines = gpuctl(cluster, *words).stdout.decode().splitlines()
        assert any(f"rank 0 on node {node} exited with 3; kept until" in line for line in lines), lines
    event = next(row for row in cluster.api.get(f"/v1/jobs/{job}/events")["events"] if row["kind"] == "kept")
    assert event["detail"] == {"reason": f"rank 0 on node {node} exited with 3", "until": view["kept_until"]}
    release(cluster, job)


def test_the_nodes_of_a_gang_are_kept_with_the_folders_of_ranks_that_were_ended(cluster: Cluster) -> None:
    job = kept(cluster, FAILS, gpus=4)
    assert len(cluster.api.job(job)["nodes"]) == 2
    folders = ["of rank 0\nof rank 1\n", "of rank 2\nof rank 3\n"]  # one a node
    assert [found(cluster, job, rank) for rank in range(4)] == [f"{folders[rank // 2]}{rank}\n" for rank in range(4)]
    alive = gpuctl(cluster, "exec", "--rank", "3", job, "--", "sh", "-c", "ls /proc/self/fd | wc -l")
    assert int(alive.stdout) >= 3
    other = cluster.api.submit(["true"], gpu_type="cpu")
    assert cluster.api.job(other)["state"] == "QUEUED"  # its GPUs are still its own
    view = release(cluster, job)
    assert (view["state"], view["exit_code"], view["failed_rank"]) == ("FAILED", 3, 1)
    assert cluster.api.wait(other)["state"] == "SUCCEEDED"


def test_the_look_ends_with_its_time_and_the_next_attempt_follows(cluster: Cluster) -> None:
    script = 'echo "attempt $GPUCTL_ATTEMPT"; test "$GPUCTL_ATTEMPT" = 2 || exit 3'
    job = kept(cluster, ["sh", "-c", script], keep_on_failure_s=0.5, retries=1)
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert (cluster.api.job(job)["attempt"], cluster.api.log(job)) == (2, "attempt 2\n")
    assert cluster.api.events(job)[4:7] == ["kept", "stopping", "requeued"]


def test_a_cancel_ends_the_look_and_what_people_run_in_it(cluster: Cluster) -> None:
    job = kept(cluster, ALONE, retries=5)
    found(cluster, job)
    gpuctl(cluster, "exec", job, "--", "sh", "-c", "setsid sleep 612 > /dev/null 2>&1 &")
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    view = cluster.api.wait(job)
    assert (view["state"], view["exit_code"], view["attempt"]) == ("FAILED", 3, 1)
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if _reads(path) == b"sleep\x00612\x00"]


def _reads(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_kept_job_gives_way(cluster: Cluster) -> None:
    job = kept(cluster, ALONE)
    cluster.api.post(f"/v1/jobs/{job}/preemption")
    view = cluster.api.wait(job)
    assert (view["state"], view["exit_code"]) == ("FAILED", 3)


def test_its_time_limit_is_not_extended(cluster: Cluster) -> None:
    job = kept(cluster, ALONE, time_limit_s=2)
    view = cluster.api.wait(job)
    assert (view["state"], view["cause"]) == ("FAILED", "RANK_FAILED")


def test_a_longer_time_limit_makes_the_look_longer_and_a_shorter_one_ends_it(cluster: Cluster) -> None:
    job = kept(cluster, ALONE, time_limit_s=600)
    cut = cluster.api.job(job)["kept_until"]
    gpuctl(cluster, "update", job, "--time-limit", "none")
    view = cluster.api.job(job)
    assert view["kept_until"] > cut and view["reason"].endswith(f"kept until {view['kept_until']}")
    assert found(cluster, job) == "mine\n0\n"
    gpuctl(cluster, "update", job, "--time-limit", "10m")
    moments = [datetime.fromisoformat(text) for text in (cut, cluster.api.job(job)["kept_until"])]
    assert abs(moments[0] - moments[1]) < timedelta(seconds=1)  # by two clocks
    gpuctl(cluster, "update", job, "--time-limit", "1ms")
    view = cluster.api.wait(job)
    assert (view["state"], view["cause"], view["kept_until"]) == ("FAILED", "RANK_FAILED", None)


def test_a_port_that_is_opened_in_the_look_is_reached_and_ssh_comes_in(cluster: Cluster, tmp_path: Path) -> None:
    job = kept(cluster, ALONE)
    with start(cluster, "exec", job, "--", PYTHON, "-c", WEB) as server:
        assert server.stdout is not None
        forward = Forward(cluster, job, server.stdout.readline().decode().strip())
        with urlopen(f"http://127.0.0.1:{forward.port}/found", timeout=60) as answer:
            assert answer.read() == b"mine\n"
        assert forward.end() == ""
        person = Person(cluster, tmp_path)
        person.config.parent.mkdir()
        person.gpuctl("ssh-config", "--write")
        assert person.gpuctl("ssh", job, "--", "cat found; echo $RANK").stdout == b"mine\n0\n"
        release(cluster, job)
        assert server.wait(60) == 125 and server.stderr is not None
        assert b"the job ends, and with it what was started in it" in server.stderr.read()


def test_neither_the_end_of_the_agent_nor_that_of_the_controller_disturbs_the_look(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    job = kept(cluster, ALONE)
    assert found(cluster, job) == "mine\n0\n"
    until = cluster.api.job(job)["kept_until"]
    cluster.agents[0].kill()
    cluster.agents[0].start()
    assert found(cluster, job) == "mine\n0\n"
    cluster.controller.kill()
    cluster.start_controller()
    assert found(cluster, job) == "mine\n0\n"
    cluster.controller.kill()
    cluster.agents[0].kill()
    cluster.start_controller()
    cluster.agents[0].start()
    assert found(cluster, job) == "mine\n0\n"
    view = cluster.api.job(job)
    assert (view["state"], view["kept_until"], view["attempt"]) == ("RUNNING", until, 1)
    view = release(cluster, job)
    assert (view["state"], view["exit_code"], view["attempt"]) == ("FAILED", 3, 1)
    assert cluster.api.events(job).count("kept") == 1


def test_a_look_that_ended_while_the_controller_was_away_is_over_when_it_is_back(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    job = kept(cluster, ALONE, keep_on_failure_s=3)
    cluster.controller.kill()
    cluster.start_controller()
    view = cluster.api.wait(job)
    assert (view["state"], view["exit_code"]) == ("FAILED", 3)


@needs_owners
def test_with_users_all_that_the_rank_had_is_there() -> None:
    """Namespaces, user, /tmp, cgroup and rights; a rank and a command say the same of them."""
    status = "id -u; id -G; grep -E '^(NoNewPrivs|Cap|Groups|Seccomp:)' /proc/self/status; cat /proc/self/cgroup"
    status += "; ls /tmp; ulimit -a; readlink /proc/self/ns/*; cat $TOKEN_FILE"
    with cluster_of([1], "--run-as", "owner", "--user-ids", "1900000000-1900001000") as cluster:
        ada = cluster.user("ada")
        ada.call("PUT", "/v1/secrets/TOKEN", {"value": "hush"})
        script = f"touch /tmp/mine; ({status}) > found; cp found /tmp; kill -SEGV $$"
        job = ada.submit(["sh", "-c", script], gpu_type="cpu", secrets=["TOKEN:file"], **HOUR)
        eventually(lambda: ada.job(job)["kept_until"], "the job to be kept")
        of_rank = gpuctl(cluster, "exec", job, "--", "cat", "found", token=ada.token).stdout
        done = gpuctl(cluster, "exec", job, "--", "sh", "-c", f"rm /tmp/found; {status}", token=ada.token)
        assert done.stdout == of_rank and b"mine" in of_rank and b"NoNewPrivs:\t1" in of_rank and of_rank.endswith(b"hush")
        bob = cluster.user("bob")
        assert b"there is no job" in gpuctl(cluster, "exec", job, "true", token=bob.token, code=125).stderr
        gpuctl(cluster, "release", job, token=ada.token)
        view = ada.wait(job)
        assert (view["state"], view["exit_code"]) == ("FAILED", 128 + signal.SIGSEGV)


def test_a_call_raises_when_it_is_released(cluster: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "notebook.py"
    script.write_text(
        textwrap.dedent("""
        import time
        from serverless_gpu import distributed

        @distributed(gpus=2, remote=True, run_async=True, keep_on_failure=3600, requirements=None, working_dir=None)
        def train():
            raise ValueError("no data")

        call = train.distributed()
        while "kept" not in call.explain():
            time.sleep(0.05)
        print(call.status)
        call.release()
        try:
            call.result()
        except RuntimeError as error:
            print(repr(error.__cause__))
        """)
    )
    variables = {**environment(cluster), "PYTHONPATH": str(ROOT / "client" / "python" / "src")}
    ran = subprocess.run([PYTHON, str(script)], env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=2 * PATIENCE)
    assert ran.stdout.splitlines() == ["RUNNING", "ValueError('no data')"], ran.stdout + ran.stderr


def test_what_succeeds_or_cannot_start_is_not_kept(cluster: Cluster) -> None:
    assert cluster.api.wait(cluster.api.submit(["true"], **HOUR))["state"] == "SUCCEEDED"
    view = cluster.api.wait(cluster.api.submit(["no-such-program"], **HOUR))
    assert (view["state"], view["exit_code"]) == ("FAILED", 127)
    job = cluster.api.submit(["sleep", "600"], **HOUR)
    cluster.wait_state(job, "RUNNING")
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    assert cluster.api.wait(job)["state"] == "CANCELED"


def test_bad_durations_get_one_line(cluster: Cluster) -> None:
    for wrong in (-1, 90000, "1h"):
        with pytest.raises(Problem) as caught:
            cluster.api.submit(["true"], keep_on_failure_s=wrong)
        assert (caught.value.status, caught.value.field) == (422, "keep_on_failure_s")
    done = gpuctl(cluster, "submit", "--keep-on-failure", "25h", "--", "true", code=2)
    assert b"keep_on_failure_s" in done.stderr and done.stderr.count(b"\n") <= 2
