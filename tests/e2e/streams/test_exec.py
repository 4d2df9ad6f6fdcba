# SPDX-License-Identifier: Apache-2.0
"""gpuctl exec: a command beside a rank has what the rank has, and ends with the job at the latest."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import GPUCTL, GPUCTLD, Cluster, eventually
from joined import SLEEP, environment, gpuctl, running, start
from owners import cluster_of, needs_owners

LOST = b"the connection into job"


@pytest.fixture(scope="module")
def job(cluster: Cluster) -> Iterator[str]:
    """A job of two ranks on two nodes."""
    job = running(cluster, ["sh", "-c", "echo $$ > pid; exec sleep 600"], gpus=4, env={"COLOUR": "green"})
    yield job
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    cluster.api.wait(job)


def alive(cluster: Cluster, job: str, *words: str) -> bool:
    return subprocess.run(["pgrep", "-f", *words], capture_output=True).returncode == 0


def test_a_command_has_output_errors_and_an_exit_code_of_its_own(cluster: Cluster, job: str) -> None:
    done = gpuctl(cluster, "exec", job, "--", "sh", "-c", "echo out; echo err >&2; exit 7", code=7)
    assert (done.stdout, done.stderr) == (b"out\n", b"err\n")
    gpuctl(cluster, "exec", job, "true")
    assert b"command not found: no-such-program" in gpuctl(cluster, "exec", job, "no-such-program", code=127).stderr
    gpuctl(cluster, "exec", job, "--", "sh", "-c", "kill -TERM $$", code=128 + signal.SIGTERM)
    assert cluster.api.job(job)["state"] == "RUNNING"


def test_it_has_the_environment_and_the_folder_of_its_rank(cluster: Cluster, job: str) -> None:
    for rank in (0, 3):
        look = "echo $RANK $COLOUR $MASTER_PORT; cat pid; cat /proc/self/cgroup"
        done = gpuctl(cluster, "exec", "--rank", str(rank), job, "--", "sh", "-c", look)
        own, pid, cgroup = done.stdout.decode().split("\n", 2)
        port = own.split()[2]
        assert own == f"{rank} green {port}" and int(port) > 0
        rank_of = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        assert f"MASTER_PORT={port}".encode() in rank_of
        assert Path(f"/proc/{pid}/cgroup").read_text() == cgroup


def test_it_inherits_nothing_else(cluster: Cluster, job: str) -> None:
    done = gpuctl(cluster, "exec", job, "--", "sh", "-c", "ls -l /proc/self/fd; env")
    lines, names = done.stdout.decode(), {line.split("=")[0] for line in done.stdout.decode().splitlines() if "=" in line}
    assert lines.count(" -> ") == 4 and lines.count("pipe:") == 3  # the fourth is the folder that ls reads
    own = Path(f"/proc/{gpuctl(cluster, 'exec', job, 'cat', 'pid').stdout.decode().strip()}/environ").read_bytes()
    assert names - {"_", "PWD", "SHLVL", "OLDPWD"} <= {entry.split(b"=")[0].decode() for entry in own.split(b"\0") if entry}


def test_what_goes_in_comes_out_unharmed(cluster: Cluster, job: str) -> None:
    sent = os.urandom(10_000_000)
    assert gpuctl(cluster, "exec", "-i", job, "cat", send=sent).stdout == sent
    assert gpuctl(cluster, "exec", job, "cat", send=b"not for the command").stdout == b""
    gpuctl(cluster, "exec", "-i", job, "--", "sh", "-c", "exec <&-; exit 4", send=sent, code=4)


def test_bad_requests_get_one_line(cluster: Cluster, job: str) -> None:
    for words, said in [
        (["--rank", "4", job, "true"], f"job {job} has no rank 4: its ranks are 0 to 3"),
        (["-t", job], "-t needs -i, too"),
        (["-it", job], "stdin is no terminal"),
        ([job], "there is no command"),
        ([job, "-it"], '"-it" stands behind the job'),
        (["aaaaaaaaaaaaaaaa", "true"], "there is no job aaaaaaaaaaaaaaaa"),
    ]:
        assert gpuctl(cluster, "exec", *words, code=125).stderr.decode().splitlines()[0] == f"gpuctl: {said}"


def test_a_job_that_does_not_run_is_named(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    first = running(cluster, SLEEP)
    waits = cluster.api.submit(["true"], gpu_type="cpu")
    assert f"job {waits} does not run yet: it is QUEUED" in gpuctl(cluster, "exec", waits, "true", code=125).stderr.decode()
    cluster.api.post(f"/v1/jobs/{first}/cancel")
    cluster.api.wait(waits)
    assert f"job {waits} has ended: it is SUCCEEDED" in gpuctl(cluster, "exec", waits, "true", code=125).stderr.decode()
    assert f"job {waits} does not run: it is SUCCEEDED" in gpuctl(cluster, "port-forward", waits, "0:80", code=5).stderr.decode()


def test_it_ends_with_the_job(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    job = running(cluster, SLEEP)
    shell = start(cluster, "exec", job, "--", "sh", "-c", "trap '' TERM HUP; echo here; sleep 601; sleep 601")
    assert shell.stdout is not None and shell.stdout.readline() == b"here\n"
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    assert cluster.api.wait(job)["state"] == "CANCELED"
    assert shell.wait(30) == 125
    said = f"gpuctl: job {job}: the job ends, and with it what was started in it\n"
    assert shell.stderr is not None and shell.stderr.read().decode() == said
    assert not alive(cluster, job, "sleep 601")


def test_it_neither_ends_the_job_nor_holds_it_up(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1)
    job = running(cluster, ["sh", "-c", f"while ! test -e {tmp_path}/go; do sleep 0.05; done; exit 3"])
    shell = start(cluster, "exec", job, "--", "sh", "-c", "trap '' TERM; echo here; sleep 602 & wait; wait")
    assert shell.stdout is not None and shell.stdout.readline() == b"here\n"
    gpuctl(cluster, "exec", job, "--", "sh", "-c", "exit 9", code=9)
    (tmp_path / "go").touch()
    view = cluster.api.wait(job)
    assert (view["state"], view["exit_code"]) == ("FAILED", 3)
    assert shell.wait(30) == 125 and not alive(cluster, job, "sleep 602")


@pytest.mark.parametrize("whom", ["agent", "controller"])
def test_a_daemon_that_dies_ends_the_command_alone(make_cluster: Callable[..., Cluster], whom: str) -> None:
    cluster = make_cluster(1)
    job = running(cluster, SLEEP)
    shell = start(cluster, "exec", "-i", job, "--", "sh", "-c", "echo here; sleep 603; true")
    assert shell.stdout is not None and shell.stdout.readline() == b"here\n"
    program = cluster.agents[0] if whom == "agent" else cluster.controller
    program.kill()
    assert shell.wait(60) == 125
    assert shell.stderr is not None and LOST in shell.stderr.read()
    eventually(lambda: not alive(cluster, job, "sleep 603"), "the command to be gone")
    if whom == "agent":
        program.start()
    else:
        cluster.start_controller()
    eventually(lambda: gpuctl_once(cluster, job), "a command beside the rank again")
    assert cluster.api.job(job)["state"] == "RUNNING"


def gpuctl_once(cluster: Cluster, job: str) -> bool:
    return subprocess.run([str(GPUCTL), "exec", job, "true"], env=environment(cluster), capture_output=True, timeout=60).returncode == 0


def test_a_client_that_goes_takes_its_command_along(cluster: Cluster, job: str) -> None:
    shell = start(cluster, "exec", job, "--", "sh", "-c", "echo here; sleep 604; true")
    assert shell.stdout is not None and shell.stdout.readline() == b"here\n"
    shell.kill()
    shell.wait()
    eventually(lambda: not alive(cluster, job, "sleep 604"), "the command to be gone")


def test_commands_pass_through_tls(tmp_path: Path) -> None:
    controller = tmp_path / "controller"
    files = ["--state", str(controller), "--config", str(tmp_path / "controller.conf")]
    subprocess.run([str(GPUCTLD), "init", *files, "--listen", "127.0.0.1:0"], check=True, capture_output=True)
    cluster = Cluster(tmp_path, [1], ["--config", str(tmp_path / "controller.conf")]).start()
    try:
        job = running(cluster, SLEEP)
        sent = os.urandom(3_000_000)
        assert gpuctl(cluster, "exec", "-i", job, "cat", send=sent).stdout == sent
        gpuctl(cluster, "exec", job, "--", "sh", "-c", "exit 6", code=6)
        shell = start(cluster, "exec", job, "--", "sh", "-c", "echo here; sleep 607")
        assert shell.stdout is not None and shell.stdout.readline() == b"here\n"
    finally:
        cluster.stop()
    assert shell.wait(30) == 125


# --- terminals -----------------------------------------------------------------------------------------------------


class Terminal:
    """gpuctl in a terminal of its own."""

    def __init__(self, cluster: Cluster, *words: str):
        self.master, slave = pty.openpty()
        self.resize(30, 100)
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            [str(GPUCTL), *words], env={**environment(cluster), "TERM": "xterm"}, stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        self.slave = slave
        self.seen = b""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, text: str) -> None:
        while text.encode() not in self.seen:
            self.seen += os.read(self.master, 65536)
        self.seen = self.seen.partition(text.encode())[2]

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def end(self) -> int:
        code = self.process.wait(30)
        assert termios.tcgetattr(self.slave) == self.before, "the terminal was not put back"
        os.close(self.master)
        os.close(self.slave)
        return code


def test_a_shell_has_a_terminal(cluster: Cluster, job: str) -> None:
    shell = Terminal(cluster, "exec", "-it", job, "--", "sh")
    shell.type("stty size; echo $TERM-$RANK; tty\n")
    shell.until("30 100")
    shell.until("xterm-0")
    shell.until("/dev/pts/")
    shell.resize(41, 111)
    shell.type("until test \"$(stty size)\" = '41 111'; do sleep 0.05; done; echo res''ized\n")
    shell.until("resized")
    shell.type("sleep 605\n")
    shell.until("sleep 605")
    eventually(lambda: alive(cluster, job, "^sleep 605"), "the sleep")
    shell.type("\x03")
    shell.type("echo code $?\n")
    shell.until("code 130")
    shell.type("exit 5\n")
    assert shell.end() == 5


def test_the_default_is_a_shell_and_its_terminal_hangs_up(cluster: Cluster, job: str) -> None:
    shell = Terminal(cluster, "exec", "-it", job)
    shell.type("echo $0-$$; sleep 606\n")
    shell.until("sh-")
    eventually(lambda: alive(cluster, job, "^sleep 606"), "the sleep")
    shell.process.send_signal(signal.SIGTERM)
    assert shell.end() == 125
    eventually(lambda: not alive(cluster, job, "^sleep 606"), "the sleep to be gone")


# --- other users of the host ---------------------------------------------------------------------------------------


@needs_owners
def test_with_users_a_command_is_the_user_and_gains_nothing() -> None:
    status = "id -u; id -G; grep -E '^(NoNewPrivs|Cap|Groups|Seccomp:)' /proc/self/status; cat /proc/self/cgroup"
    status += "; ls /tmp; ulimit -a; readlink /proc/self/ns/*"
    with cluster_of([1], "--run-as", "owner", "--user-ids", "1900000000-1900001000") as cluster:
        ada = cluster.user("ada")
        job = ada.submit(["sh", "-c", f"touch /tmp/mine; ({status}); sleep 600"], gpu_type="cpu")
        cluster.wait_state(job, "RUNNING")
        of_rank = eventually(lambda: "user:[" in (text := ada.log(job)) and text.rstrip().endswith("]") and text, "the rank's status")
        done = gpuctl(cluster, "exec", job, "--", "sh", "-c", status, token=ada.token)
        assert done.stdout.decode() == of_rank and "mine" in of_rank and "NoNewPrivs:\t1" in of_rank
        null = os.stat("/dev/null")
        assert (null.st_uid, null.st_gid) == (0, 0)
        for words in (["cat", "/etc/shadow"], ["chown", "root", "/tmp/mine"], ["ls", f"{cluster.folder}/node0"]):
            assert b"ermi" in gpuctl(cluster, "exec", job, "--", *words, code=2 if words[0] == "ls" else 1, token=ada.token).stderr
        shell = Terminal(cluster, "exec", "-it", job, "--", "sh", "-c", "tty; stat -c %u $(tty); id -u")
        shell.until("/dev/pts/")
        uid = of_rank.split()[0]
        shell.until(uid)
        shell.until(uid)
        assert shell.end() == 0
