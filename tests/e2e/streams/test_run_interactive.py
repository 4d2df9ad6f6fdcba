# SPDX-License-Identifier: Apache-2.0
"""gpuctl run -i, with a terminal or without, and gpuctl attach."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from harness import ROOT, Cluster, eventually, make_tls
from joined import SLEEP, gpuctl, running, start
from test_exec import Terminal


def newest(cluster: Cluster) -> str:
    found: str = cluster.api.get("/v1/jobs?limit=1")["jobs"][0]["id"]
    return found


def test_a_command_reads_what_gpuctl_reads_and_ends_as_its_job_does(cluster: Cluster) -> None:
    sent = os.urandom(3_000_000)
    assert gpuctl(cluster, "run", "-i", "-q", "--", "cat", send=sent).stdout == sent
    assert cluster.api.job(newest(cluster))["state"] == "SUCCEEDED"
    done = gpuctl(cluster, "run", "-i", "--", "sh", "-c", "read line; echo out $line; echo err >&2; exit 7", send=b"in\n", code=7)
    assert done.stdout == b"out in\n" and b"err\n" in done.stderr
    view = cluster.api.job(newest(cluster))
    assert (view["state"], view["exit_code"]) == ("FAILED", 7)
    gpuctl(cluster, "run", "-i", "-q", "--", "sh", "-c", "kill -KILL $$", code=128 + signal.SIGKILL)
    assert b"no-such-program: not found" in gpuctl(cluster, "run", "-i", "-q", "--", "no-such-program", code=127).stderr


def test_the_end_of_the_command_is_never_taken_for_its_loss(cluster: Cluster) -> None:
    for code in range(10):
        gpuctl(cluster, "run", "-i", "-q", "--", "sh", "-c", f"exit {code}", code=code)


def test_it_has_the_gpus_of_all_ranks_and_is_one_process(cluster: Cluster) -> None:
    done = gpuctl(
        cluster, "run", "-i", "-q", "--gpus", "4", "--env", "COLOUR=a  b", "--", "sh", "-c", 'echo "$RANK of $WORLD_SIZE $COLOUR"'
    )
    assert done.stdout == b"0 of 4 a  b\n"


def test_a_terminal_is_the_commands(cluster: Cluster) -> None:
    shell = Terminal(cluster, "run", "-it", "-q", "--", "bash", "--norc")
    shell.type("stty size; echo $TERM-$RANK; tty\n")
    shell.until("30 100")
    shell.until("xterm-0")
    shell.until("/dev/pts/")
    shell.type("sleep 621\n")
    shell.until("sleep 621")
    eventually(lambda: subprocess.run(["pgrep", "-f", "^sleep 621"], capture_output=True).returncode == 0, "the sleep")
    shell.type("\x03")
    shell.type("echo code $?\n")
    shell.until("code 130")
    shell.type("exit 5\n")
    assert shell.end() == 5
    assert cluster.api.wait(newest(cluster))["exit_code"] == 5


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_gpuctl_that_ends_takes_its_job_along(cluster: Cluster, how: signal.Signals) -> None:
    run = start(cluster, "run", "-i", "--", "sh", "-c", "echo here; exec sleep 622")
    assert run.stdout is not None and run.stdout.readline() == b"here\n"
    job = newest(cluster)
    run.send_signal(how)
    assert run.wait(60) == (125 if how == signal.SIGTERM else -9)
    view = cluster.api.wait(job)
    assert (view["state"], view["exit_code"]) == (("CANCELED", 130) if how == signal.SIGTERM else ("FAILED", 129))
    assert subprocess.run(["pgrep", "-f", "^sleep 622"], capture_output=True).returncode == 1


def test_a_gpuctl_that_ends_waits_for_no_controller(tmp_path: Path) -> None:
    away = Cluster(tmp_path, [1], make_tls(tmp_path)).start()
    run = start(away, "run", "-i", "-q", "--", "sh", "-c", "echo here; exec sleep 623")
    assert run.stdout is not None and run.stdout.readline() == b"here\n"
    job = newest(away)
    away.controller.kill()
    assert run.stderr is not None and run.stderr.readline() == f"gpuctl: canceling job {job}, which loses its command\n".encode()
    run.send_signal(signal.SIGTERM)
    said = run.stderr.read().decode()
    assert run.wait(60) == 125 and f"gpuctl: cannot cancel job {job}, which ends without its command: " in said
    away.start_controller()
    view = away.api.wait(job)
    assert (view["state"], view["exit_code"]) == ("FAILED", 129)
    away.stop()


def test_a_gpuctl_that_ends_asks_a_controller_that_hangs_once(tmp_path: Path) -> None:
    hung = Cluster(tmp_path, [1], make_tls(tmp_path)).start()
    run = start(hung, "run", "-i", "-q", "--", "sh", "-c", "echo here; exec sleep 624")
    assert run.stdout is not None and run.stdout.readline() == b"here\n"
    job = newest(hung)
    assert hung.controller.process is not None
    hung.controller.process.send_signal(signal.SIGSTOP)
    run.send_signal(signal.SIGTERM)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 125 and b"cannot cancel job" in said and b"ended by signal 15" in said
    hung.controller.process.send_signal(signal.SIGCONT)
    assert hung.api.wait(job)["state"] in ("CANCELED", "FAILED")  # it may have read the request, or sees the end of the stream
    hung.stop()


@pytest.mark.parametrize(("command", "code"), [(["sh", "-c", "sleep 2; exit 3"], 3), (None, 129)])
def test_a_command_may_take_longer_than_the_wait_for_it(tmp_path: Path, command: list[str] | None, code: int) -> None:
    """The programs of the node with a second in place of a minute. None: nobody comes."""
    stream = ROOT / "client" / "cli" / "stream"
    held = (stream / "held.sh").read_text().replace("sleep 60", "sleep 1")
    env = {**os.environ, "GPUCTL_RANK": "0", "TORCHELASTIC_ERROR_FILE": str(tmp_path / "0.json")}
    job = subprocess.Popen(["sh", "-c", held], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if command is not None:
        assert subprocess.run(["sh", stream / "joined.sh", *command], env=env, timeout=60).returncode == code
    said, _ = job.communicate(timeout=60)
    assert (job.returncode, said) == (code, b"") and list(tmp_path.iterdir()) == []


def test_ctrl_c_before_the_job_runs_cancels_it(cluster: Cluster) -> None:
    first = running(cluster, SLEEP, gpus=4)
    run = start(cluster, "run", "-i", "--gpu-type", "cpu", "--", "cat")
    assert run.stderr is not None and b"job " in run.stderr.readline()
    run.send_signal(signal.SIGINT)
    assert run.wait(60) == 130
    assert cluster.api.job(newest(cluster))["state"] == "CANCELED"
    cluster.api.post(f"/v1/jobs/{first}/cancel")
    cluster.api.wait(first)


def test_bad_requests_get_one_line(cluster: Cluster) -> None:
    for words, said in [
        (["-it", "--", "bash"], "stdin is no terminal"),
        (["-i", "-d", "--", "cat"], "--detach leaves the job alone, and -i reads for it"),
        (["-i", "--retries", "1", "--", "false"], "-i runs the command once"),
    ]:
        assert gpuctl(cluster, "run", *words, code=125).stderr.decode().splitlines()[0] == f"gpuctl: {said}"


# --- attach --------------------------------------------------------------------------------------------------------


def test_attach_shows_all_of_a_job_and_exits_as_it_did(cluster: Cluster) -> None:
    job = running(cluster, ["sh", "-c", "echo first; while ! test -e go; do sleep 0.05; done; echo last; exit 9"])
    attached = start(cluster, "attach", job)
    assert attached.stdout is not None and attached.stdout.readline() == b"first\n"
    start(cluster, "exec", job, "touch", "go").communicate(timeout=60)  # the job may end before it is told how that ended
    out, said = attached.communicate(timeout=60)
    assert (attached.returncode, out) == (9, b"last\n") and f"job {job} FAILED".encode() in said
    assert gpuctl(cluster, "attach", "-q", job, code=9).stdout == b"first\nlast\n"


def test_ctrl_c_leaves_an_attached_job_alone(cluster: Cluster) -> None:
    job = running(cluster, ["sh", "-c", "echo here; exec sleep 600"])
    attached = start(cluster, "attach", job)
    assert attached.stdout is not None and attached.stdout.readline() == b"here\n"
    attached.send_signal(signal.SIGINT)
    _, said = attached.communicate(timeout=60)
    assert attached.returncode == 130 and f"gpuctl: left job {job}, which goes on\n".encode() in said
    assert cluster.api.job(job)["state"] == "RUNNING"
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    cluster.api.wait(job)
