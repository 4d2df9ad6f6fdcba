# SPDX-License-Identifier: Apache-2.0
"""gpuctl ssh and ssh-config: OpenSSH's own programs reach a rank, and leave nothing there."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from harness import GPUAGENT, GPUCTL, GPUCTLD, PYTHON, Cluster, eventually
from joined import SLEEP, WEB, environment, gpuctl, running
from owners import cluster_of, needs_owners
from test_exec import Terminal


@pytest.fixture(scope="module")
def job(cluster: Cluster) -> Iterator[str]:
    """A job of four ranks on two nodes, in a folder of its own, with an environment that a shell must not split."""
    job = running(cluster, ["sh", "-c", "echo $$ > pid; exec sleep 600"], gpus=4, env={"COLOUR": "dark  green;\n'$x'"})
    yield job
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    cluster.api.wait(job)


class Person:
    """Somebody with a home, whose ssh is the real one. OpenSSH takes the home of the account, so the file is named to it."""

    def __init__(self, cluster: Cluster, home: Path, token: str | None = None):
        self.env = {**environment(cluster, token), "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
        self.config = home / ".ssh" / "config"
        self.ssh = home / "ssh"
        self.ssh.write_text(f'#!/bin/sh\nexec ssh -F {self.config} "$@"\n')
        self.ssh.chmod(0o755)

    def run(self, *words: str | Path, code: int = 0, send: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run([str(word) for word in words], input=send, env=self.env, capture_output=True, timeout=120)
        assert done.returncode == code, done.stderr.decode() + done.stdout.decode()
        return done

    def gpuctl(self, *words: str, code: int = 0, send: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return self.run(GPUCTL, *words, code=code, send=send)


@pytest.fixture(scope="module")
def person(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Somebody whose ssh knows jobs as hosts."""
    person = Person(cluster, tmp_path_factory.mktemp("home"))
    person.config.parent.mkdir()
    person.config.write_text("Host elsewhere\n    User nobody\n")
    person.gpuctl("ssh-config", "--write")
    return person


def left_behind(cluster: Cluster) -> list[Path]:
    return list(cluster.folder.glob("node*/attempts/*/errors/ssh.*"))


def test_a_session_has_what_its_rank_has(cluster: Cluster, job: str, person: Person) -> None:
    of_exec = {}
    for rank in (0, 3):
        look = 'printf "%s|" "$RANK" "$COLOUR" "$HOME" "$(id)"; pwd; cat pid; cat /proc/self/cgroup'
        session = person.gpuctl("ssh", f"{job}.{rank}", "--", look).stdout
        of_exec[rank] = gpuctl(cluster, "exec", "--rank", str(rank), job, "--", "sh", "-c", look).stdout
        assert session == of_exec[rank] and b"dark  green;\n'$x'" in session
    assert of_exec[0] != of_exec[3]
    assert person.gpuctl("ssh", "--rank", "2", job, "echo $RANK").stdout == b"2\n"
    eventually(lambda: not left_behind(cluster), "what sshd needed to be gone")


def test_it_exits_as_the_command_did_and_passes_on_what_it_reads(job: str, person: Person) -> None:
    sent = os.urandom(3_000_000)
    assert person.gpuctl("ssh", job, "cat", send=sent).stdout == sent
    done = person.gpuctl("ssh", job, "--", "echo out; echo err >&2; exit 7", code=7)
    assert (done.stdout, done.stderr) == (b"out\n", b"err\n")


def test_a_session_has_a_terminal(cluster: Cluster, job: str, person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", person.env["XDG_STATE_HOME"])
    shell = Terminal(cluster, "ssh", job)
    shell.type("stty size; echo $TERM-$RANK; tty\n")
    shell.until("30 100")
    shell.until("xterm-0")
    shell.until("/dev/pts/")
    shell.type("exit 5\n")
    assert shell.end() == 5


def test_the_programs_of_openssh_reach_a_job_as_a_host(cluster: Cluster, job: str, person: Person, tmp_path: Path) -> None:
    host, ssh = f"{job}.gpuctl", person.ssh
    assert person.run(ssh, host, "echo $RANK").stdout == b"0\n"
    assert person.run(ssh, f"{job[:8]}.1.gpuctl", "echo $RANK").stdout == b"1\n"
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(20):
        (tree / f"file {number}").write_bytes(os.urandom(100_000))
    own = ["-S", str(ssh), "-F", str(person.config)]
    person.run("scp", *own, "-r", "-q", tree, f"{host}:{tmp_path}/by-scp")
    person.run("scp", *own, "-O", "-r", "-q", f"{host}:{tmp_path}/by-scp", tmp_path / "back")
    person.run("rsync", "-a", "-e", ssh, f"{tree}/", f"{host}:{tmp_path}/by-rsync/")
    assert (
        b"Total transferred file size: 0 bytes"
        in person.run("rsync", "-a", "--stats", "-e", ssh, f"{tree}/", f"{host}:{tmp_path}/by-rsync/").stdout
    )
    person.run("sftp", "-q", *own, "-b", "-", host, send=f"put -r {tree} {tmp_path}/by-sftp\n".encode())
    for copy in ("by-scp", "back", "by-rsync", "by-sftp"):
        assert {path.name: path.read_bytes() for path in (tmp_path / copy).iterdir()} == {
            path.name: path.read_bytes() for path in tree.iterdir()
        }
    folder = gpuctl(cluster, "exec", job, "pwd").stdout.decode().strip()
    assert folder in person.run("sftp", "-q", *own, "-b", "-", host, send=b"pwd\n").stdout.decode()
    eventually(lambda: not left_behind(cluster), "what sshd needed to be gone")


def test_ssh_forwards_ports_and_shares_a_connection(job: str, person: Person, tmp_path: Path) -> None:
    host, shared, here = f"{job}.gpuctl", tmp_path / "shared", tmp_path / "here"
    with socket.create_server(("127.0.0.1", 0)) as beside:
        forward = f"{here}:127.0.0.1:{beside.getsockname()[1]}"
        words = [str(person.ssh), "-M", "-S", str(shared), "-N", "-L", forward, host]
        master = subprocess.Popen(words, env=person.env, stdin=subprocess.DEVNULL)
        eventually(here.exists, "the forwarded port")
        with socket.socket(socket.AF_UNIX) as near:
            near.connect(str(here))
            far, _ = beside.accept()
            near.sendall(b"through")
            assert far.recv(100) == b"through"
            far.close()
        for _ in range(2):
            assert person.run(person.ssh, "-S", shared, host, "echo $RANK").stdout == b"0\n"
    person.run(person.ssh, "-S", shared, "-O", "exit", host)
    master.wait(30)


@contextlib.contextmanager
def opened(person: Person, *words: str) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """A session without a terminal: what to read from it and to write to it. It ends well when nothing more is written."""
    command = [str(person.ssh), "-T", "-o", "ExitOnForwardFailure=yes", *words]
    with subprocess.Popen(command, env=person.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as session:
        assert session.stdin is not None and session.stdout is not None
        try:
            yield session.stdout, session.stdin
        except BaseException:
            session.kill()
            raise
    assert session.returncode == 0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def fetched(person: Person, socks: int, port: str) -> bytes:
    """What the job's server of files says of one of them, through the dynamic forward of a connection."""
    return person.run("curl", "-sSf", "--socks5-hostname", f"127.0.0.1:{socks}", f"http://127.0.0.1:{port}/pid").stdout


def test_a_server_that_a_script_starts_is_reached_as_editors_do(cluster: Cluster, job: str, person: Person) -> None:
    """What VS Code's Remote-SSH asks of a host: a shell that reads a script, a server that outlives it, and SOCKS to the server's port."""
    script = f"""
        set -e; echo begin-7f; mkfifo told
        nohup {PYTHON} -c '{WEB}' > told 2> /dev/null < /dev/null &
        read -r port < told; rm told
        echo "port==$port=="; echo end-7f
    """
    said = gpuctl(cluster, "exec", job, "cat", "pid").stdout
    socks = [free_port(), free_port()]
    with opened(person, "-D", f"127.0.0.1:{socks[0]}", f"{job}.gpuctl", "bash") as (read, write):
        write.write(script.encode())
        write.flush()
        assert read.readline() == b"begin-7f\n"
        port = read.readline().decode().split("==")[1]
        assert read.readline() == b"end-7f\n"
        assert [fetched(person, socks[0], port) for _ in range(3)] == [said] * 3
    with opened(person, "-D", f"127.0.0.1:{socks[1]}", f"{job}.gpuctl", "echo; exec cat") as (read, _):
        assert read.readline() == b"\n"
        assert fetched(person, socks[1], port) == said  # the window is opened again


def test_sockets_of_files_are_forwarded_both_ways(job: str, person: Person, tmp_path: Path) -> None:
    here, there, back = (str(tmp_path / name) for name in ("here", "there", "back"))
    with socket.create_server(("127.0.0.1", 0)) as near:
        forwards = ["-L", f"{here}:{there}", "-R", f"{back}:127.0.0.1:{near.getsockname()[1]}"]
        code = f"""
import socket
server = socket.socket(socket.AF_UNIX)
server.bind("{there}")
server.listen()
print(flush=True)
server.accept()[0].sendall(b"from there")
link = socket.socket(socket.AF_UNIX)
link.connect("{back}")
link.sendall(b"from beside")
"""
        with opened(person, *forwards, f"{job}.gpuctl", f"{PYTHON} -") as (read, write):
            write.write(code.encode())
            write.close()
            assert read.readline() == b"\n"
            with socket.socket(socket.AF_UNIX) as link:
                link.settimeout(30)
                link.connect(here)
                assert link.recv(100) == b"from there"
            near.settimeout(30)
            assert near.accept()[0].recv(100) == b"from beside"


def test_the_file_of_the_person_is_changed_once_and_keeps_its_lines(person: Person, job: str) -> None:
    before = person.config.read_text()
    assert before.startswith('Include "') and before.endswith("\n\nHost elsewhere\n    User nobody\n")
    assert b"JOB.gpuctl" not in person.gpuctl("ssh-config", "--write").stderr
    assert person.config.read_text() == before
    key = Path(person.env["XDG_STATE_HOME"]) / "gpuctl" / "ssh" / "key"
    assert key.stat().st_mode & 0o777 == 0o600 and key.parent.stat().st_mode & 0o777 == 0o700
    printed = person.gpuctl("ssh-config", f"{job}.2").stdout.decode()
    assert printed.startswith(f"Host {job}.2.gpuctl\n    User ") and f"--rank 2 {job}" in printed
    assert f"Host {job}.gpuctl\n" in person.gpuctl("ssh-config").stdout.decode()


def test_places_may_have_odd_names(cluster: Cluster, job: str, tmp_path: Path) -> None:
    """ssh replaces what stands behind a percent sign, and reads nothing at all when a quote is open."""
    (tmp_path / "100%h").mkdir()
    person = Person(cluster, tmp_path / "100%h")
    token = tmp_path / "100%h" / "token"
    token.touch(0o600)
    token.write_bytes(Path(person.env["GPUCTL_TOKEN_FILE"]).read_bytes())
    person.env["GPUCTL_TOKEN_FILE"] = str(token)
    person.gpuctl("ssh-config", "--write")
    assert person.run(person.ssh, f"{job[:8]}.gpuctl", "echo $RANK").stdout == b"0\n"
    config = person.config.read_bytes()
    person.env["XDG_STATE_HOME"] = str(tmp_path / 'a"b')
    assert b"cannot name" in person.gpuctl("ssh-config", "--write", code=125).stderr
    assert person.config.read_bytes() == config


def test_no_other_key_is_let_in(cluster: Cluster, job: str, person: Person, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other")], check=True)
    for options in (["-i", tmp_path / "other"], ["-o", "PreferredAuthentications=password,keyboard-interactive"]):
        block = tmp_path / "config"
        printed = person.gpuctl("ssh-config", job).stdout.decode()
        block.write_text("\n".join(line for line in printed.splitlines() if "IdentityFile" not in line) + "\n")
        done = person.run("ssh", "-F", block, "-o", "BatchMode=yes", *options, f"{job}.gpuctl", "true", code=255)
        assert b"Permission denied (publickey)" in done.stderr


def test_it_ends_with_the_job(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1)
    person = Person(cluster, tmp_path)
    job = running(cluster, SLEEP)
    command = [str(GPUCTL), "ssh", job, "trap '' HUP TERM; echo here; sleep 611; sleep 611"]
    shell = subprocess.Popen(command, env=person.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert shell.stdout is not None and shell.stdout.readline() == b"here\n"
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    assert cluster.api.wait(job)["state"] == "CANCELED"
    _, said = shell.communicate(timeout=30)
    assert shell.returncode == 255 and f"gpuctl: job {job}: the job ends, and with it what was started in it\n".encode() in said
    assert subprocess.run(["pgrep", "-f", "^sleep 611"], capture_output=True).returncode == 1
    assert not left_behind(cluster)
    person.gpuctl("ssh-config", "--write")
    for words in (["ssh", job], ["ssh", "--stdio", job], ["ssh-config", job]):
        assert person.gpuctl(*words, code=125).stderr.decode().splitlines()[0] == f"gpuctl: job {job} has ended: it is CANCELED"
    assert f"gpuctl: job {job} has ended: it is CANCELED\n" in person.run(person.ssh, f"{job}.gpuctl", code=255).stderr.decode()


def test_bad_requests_get_one_line(cluster: Cluster, job: str, person: Person) -> None:
    for words, said in [
        ([f"{job}.4"], f"job {job} has no rank 4: its ranks are 0 to 3"),
        ([f"{job}.x"], f'"{job}.x" is not the id of a job, nor the start of one'),
        ([job, "-L", "1:localhost:1"], '"-L" stands behind the job'),
        (["--stdio", job, "true"], "--stdio takes no command: ssh sends it"),
    ]:
        assert person.gpuctl("ssh", *words, code=125).stderr.decode().splitlines()[0] == f"gpuctl: {said}"
    lacking = {**person.env, "PATH": "/nowhere"}
    done = subprocess.run([str(GPUCTL), "ssh", job], env=lacking, capture_output=True, timeout=60)
    assert (
        done.returncode == 125 and b"gpuctl: cannot start ssh: No such file or directory\n  remedy: install openssh-client" in done.stderr
    )


def test_a_task_and_its_ranks_are_hosts(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(2)
    person = Person(cluster, tmp_path)
    array = cluster.api.submit(SLEEP, gpu_type="cpu", gpus=2, array={"tasks": 1})
    eventually(lambda: cluster.api.job(f"{array}.0")["state"] == "RUNNING", "the task to run")
    assert person.gpuctl("ssh", f"{array}.0", "echo $RANK").stdout == b"0\n"
    assert person.gpuctl("ssh", f"{array}.0.1", "echo $RANK").stdout == b"1\n"


# --- other users of the host ---------------------------------------------------------------------------------------


@pytest.fixture
def account() -> Iterator[str]:
    """An account of this host that nobody else has."""
    name = "gpuctl-ssh-test"
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", name], check=True)
    yield name
    subprocess.run(["userdel", "--remove", "--force", name], check=True, capture_output=True)


@needs_owners
def test_a_session_of_an_owner_with_an_account_is_that_user_and_gains_nothing(account: str, tmp_path: Path) -> None:
    with cluster_of([1], "--run-as", "owner", "--user-ids", "1900000000-1900001000") as cluster:
        ada = cluster.user(account)
        status = "id -u; id -G; grep -E '^(NoNewPrivs|Cap|Groups|Seccomp:)' /proc/self/status; cat /proc/self/cgroup; ls /tmp; echo $HOME"
        job = ada.submit(["sh", "-c", f"touch /tmp/mine; ({status}); sleep 600"], gpu_type="cpu")
        cluster.wait_state(job, "RUNNING")
        person = Person(cluster, tmp_path, ada.token)
        of_rank = eventually(lambda: f"/home/{account}\n" in (text := ada.log(job)) and text, "the rank's status")
        assert person.gpuctl("ssh", job, status).stdout.decode() == of_rank and "mine" in of_rank and "NoNewPrivs:\t1" in of_rank
        person.gpuctl("ssh-config", "--write")
        (tmp_path / "sent").write_bytes(os.urandom(1_000_000))
        own = ["-S", str(person.ssh), "-F", str(person.config)]
        person.run("scp", *own, "-q", tmp_path / "sent", f"{job}.gpuctl:/tmp/sent")
        person.run("scp", *own, "-q", f"{job}.gpuctl:/tmp/sent", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == (tmp_path / "sent").read_bytes()
        assert b"ermission denied" in person.gpuctl("ssh", job, "cat /etc/shadow", code=1).stderr
        if "gid=" in next(line for line in Path("/proc/mounts").read_text().splitlines() if " devpts " in line):
            shell = person.run(person.ssh, "-tt", f"{job}.gpuctl", "tty; stat -c %U $(tty)").stdout.decode()
            assert "/dev/pts/" in shell and account in shell
        else:  # a container's, which does not give terminals to their group
            assert b"chown(/dev/pts/" in person.run(person.ssh, "-tt", f"{job}.gpuctl", "tty", code=255).stderr
        bob = cluster.user("bob")
        said = Person(cluster, tmp_path, bob.token).gpuctl("ssh", job, code=125).stderr.decode()
        assert said.startswith(f"gpuctl: there is no job {job}\n")
        ada.post(f"/v1/jobs/{job}/cancel")
        ada.wait(job)


@needs_owners
def test_an_owner_without_an_account_gets_one_line(tmp_path: Path) -> None:
    with cluster_of([1], "--run-as", "owner", "--user-ids", "1900000000-1900001000") as cluster:
        ada = cluster.user("ada")
        job = ada.submit(SLEEP, gpu_type="cpu")
        cluster.wait_state(job, "RUNNING")
        said = Person(cluster, tmp_path, ada.token).gpuctl("ssh", job, code=125).stderr.decode().splitlines()
        assert said[0].startswith("gpuctl: the job's user on node node0 has no account, only the number 19000000") and len(said) == 2
        assert said[1].startswith("  remedy: use gpuctl exec -it")


@needs_owners
def test_a_node_without_sshd_gets_one_line(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "gpuctld").symlink_to(GPUCTLD)
    hidden = 'mount --bind /dev/null /usr/sbin/sshd && exec "$0" "$@"'  # for the agent and its jobs alone
    (programs / "gpuagent").write_text(f"#!/bin/sh\nexec unshare --mount sh -c '{hidden}' {GPUAGENT} \"$@\"\n")
    (programs / "gpuagent").chmod(0o755)
    cluster = Cluster(tmp_path / "cluster", [1], programs=programs)
    cluster.folder.mkdir()
    cluster.start()
    try:
        done = Person(cluster, tmp_path).gpuctl("ssh", running(cluster, SLEEP), code=125)
    finally:
        cluster.stop()
    assert done.stderr.decode().startswith("gpuctl: there is no sshd on node node0\n  remedy: have openssh-server installed there")
