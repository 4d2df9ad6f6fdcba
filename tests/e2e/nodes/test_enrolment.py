# SPDX-License-Identifier: Apache-2.0
"""From nothing to a cluster: gpuctld init, login, join, nodes add and remove, over TLS on loopback; and what goes wrong on the way."""

from __future__ import annotations

import hashlib
import os
import re
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness import BUILD, GPUAGENT, GPUCTL, GPUCTLD, PATIENCE, PYTHON, Api, Cluster, Problem, Program, eventually  # noqa: E402

Ran = subprocess.CompletedProcess


def ran(*command: object, env: dict[str, str] | None = None, stdin: str = "") -> Ran[str]:
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=PATIENCE, input=stdin, env={**os.environ, **(env or {})}
    )


def init(folder: Path, *arguments: object) -> Ran[str]:
    return ran(
        GPUCTLD, "init", "--state", folder / "controller", "--config", folder / "controller.conf", "--listen", "127.0.0.1:0", *arguments
    )


def files_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {str(path): (path.read_bytes(), path.stat().st_mode) for path in folder.rglob("*") if path.is_file() and ".db" not in path.name}


class Site(Cluster):
    """A controller that gpuctld init has set up, and a person who has logged in."""

    @property
    def pin(self) -> str:
        assert self.cacert is not None
        return "sha256:" + hashlib.sha256(ssl.PEM_cert_to_DER_cert(self.cacert.read_text())).hexdigest()

    @property
    def env(self) -> dict[str, str]:
        return {"XDG_CONFIG_HOME": str(self.folder / "home"), "HOME": str(self.folder / "home")}

    def gpuctl(self, *arguments: object, env: dict[str, str] | None = None) -> Ran[str]:
        return ran(GPUCTL, *arguments, env={**self.env, **(env or {})})

    def join_token(self, **wanted: Any) -> str:
        token: str = self.api.post("/v1/nodes/join-tokens", wanted)["token"]
        return token

    def join(
        self, token: str, *arguments: object, folder: str = "node", pin: str | None = None, env: dict[str, str] | None = None
    ) -> Ran[str]:
        config = self.folder / folder / "agent.conf"
        given = ("--token", token, "--ca-pin", pin or self.pin, "--config", config, "--cpu-slots", 1, *arguments)
        return ran(GPUAGENT, "join", self.url, *given, env=env)

    def start_node(self, name: str, folder: str = "node") -> Program:
        """The agent as its file says, in folders of the test."""
        place = self.folder / folder
        agent = Program(
            [
                str(GPUAGENT), "--config", str(place / "agent.conf"), "--state", str(place / "state"), "--run", str(place / "run"),
                "--python", PYTHON, "--warm-memory", "0", "--run-as", "agent",
            ],
            self.folder / f"{name}.log",
        )  # fmt: skip
        agent.start()
        self.agents.append(agent)
        eventually(lambda: self.nodes().get(name, {}).get("state") == "READY", f"{name} to be READY")
        return agent


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    assert init(tmp_path).returncode == 0
    place = Site(tmp_path, [])
    place.start()
    token = tmp_path / "controller" / "admin.token"
    logged = place.gpuctl("login", place.url, "--ca-pin", place.pin, "--token-file", token)
    assert logged.returncode == 0, logged.stderr
    yield place
    place.stop()


# --- init ---


def test_init_makes_all_that_a_controller_needs_and_changes_nothing_when_it_is_run_again(tmp_path: Path) -> None:
    first = init(tmp_path, "--name", "localhost", "--name", "gpu1.example.org")
    assert first.returncode == 0, first.stderr
    assert "ready to be started" in first.stdout and "gpuctl login https://" in first.stdout and "join-command" in first.stdout
    state = tmp_path / "controller"
    assert [(state / name).stat().st_mode & 0o777 for name in ("admin.token", "tls/ca.key", "tls/server.key")] == [0o600] * 3
    assert (tmp_path / "controller.conf").stat().st_mode & 0o777 == 0o644
    assert ran(GPUCTLD, "--config", tmp_path / "controller.conf", "--check-config").returncode == 0
    before = files_of(tmp_path)
    second = init(tmp_path)
    assert second.returncode == 0 and second.stdout.startswith("nothing to do"), second.stdout + second.stderr
    assert files_of(tmp_path) == before
    other = ran(GPUCTLD, "init", "--config", tmp_path / "controller.conf", "--listen", "127.0.0.1:9")
    assert other.returncode == 5 and "says 127.0.0.1:0 already" in other.stderr
    assert files_of(tmp_path) == before


def test_init_adds_to_a_file_that_sets_nothing_and_a_new_name_gets_a_new_certificate(tmp_path: Path) -> None:
    file = tmp_path / "controller.conf"
    file.write_text("# a comment of ours\n# listen = 10.0.0.1:7070\n")
    assert init(tmp_path, "--name", "localhost").returncode == 0
    assert file.read_text().startswith("# a comment of ours\n# listen = 10.0.0.1:7070\nstate = ")
    certificate, authority = tmp_path / "controller/tls/server.pem", tmp_path / "controller/tls/ca.pem"
    first, signer = certificate.read_bytes(), authority.read_bytes()
    file.write_text(file.read_text().replace("host-name = localhost", "host-name = localhost, gpu9.example.org"))
    assert init(tmp_path).returncode == 0
    assert certificate.read_bytes() != first and authority.read_bytes() == signer
    shown = ssl._ssl._test_decode_cert(str(certificate))  # type: ignore[attr-defined]
    assert ("DNS", "gpu9.example.org") in shown["subjectAltName"] and ("IP Address", "127.0.0.1") in shown["subjectAltName"]


def test_a_certificate_that_ends_before_long_is_made_anew_at_the_next_start(tmp_path: Path) -> None:
    past = preload(tmp_path, days=-400)
    assert (
        ran(GPUCTLD, "init", "--state", tmp_path / "controller", "--config", tmp_path / "c", "--listen", "127.0.0.1:0", env=past).returncode
        == 0
    )
    old = (tmp_path / "controller/tls/server.pem").read_bytes()
    cluster = Site(tmp_path, []).start()
    try:
        assert (tmp_path / "controller/tls/server.pem").read_bytes() != old
        assert cluster.api.get("/version")["api"] == "v1"
    finally:
        cluster.stop()


def test_off_the_loopback_a_controller_serves_tls_by_itself(tmp_path: Path) -> None:
    """It was refused before; plain HTTP still needs the option that names it."""
    cluster = Site(tmp_path, [], controller=["--listen", "0.0.0.0:0", "--host-name", "localhost"])
    cluster.start_controller()
    try:
        assert cluster.url.startswith("https://")
        port = cluster.url.rsplit(":", 1)[1]
        cluster.api = Api(f"https://localhost:{port}", cluster.admin_token, cluster.cacert)
        assert cluster.api.get("/version")["api"] == "v1"
    finally:
        cluster.stop()


# --- join ---


def preload(folder: Path, days: int) -> dict[str, str]:
    """The environment of a program whose wall clock is off by so many days."""
    shift = folder / "shift"
    shift.write_bytes(struct.pack("=q", days * 86400 * 10**9))
    libraries = [str(BUILD / "tests/faults/libclockshift.so")]
    linked = subprocess.run(["ldd", str(GPUAGENT)], capture_output=True, text=True).stdout
    libraries[:0] = re.findall(r"=> (\S*lib(?:asan|tsan|ubsan)\S*)", linked)
    return {"LD_PRELOAD": " ".join(libraries), "CLOCKSHIFT_FILE": str(shift)}


def test_one_line_makes_a_node_that_runs_jobs(site: Site) -> None:
    made = site.gpuctl("nodes", "join-command", "--pool", "research", "--reserved", "--ttl", "10m")
    assert made.returncode == 0, made.stderr
    words = made.stdout.split()
    assert words[:4] == ["gpuagent", "join", site.url, "--token"] and words[5:] == ["--ca-pin", site.pin]
    config = site.folder / "node" / "agent.conf"
    joined = ran(GPUAGENT, *words[1:], "--config", config, "--name", "n1", "--cpu-slots", 1, "--label", "zone=a")
    assert joined.returncode == 0, joined.stderr
    assert joined.stdout.startswith(f"joined {site.url} as n1\n") and f"gpuagent --config {config}" in joined.stdout
    assert (site.folder / "node/node.token").stat().st_mode & 0o777 == 0o600
    again = ran(GPUAGENT, *words[1:], "--config", config, "--name", "n1", "--cpu-slots", 1)
    assert again.returncode == 0 and "is a node of" in again.stdout
    site.start_node("n1")
    node = site.nodes()["n1"]
    node["labels"].pop("images", None)  # where crun is installed
    assert (node["pool"], node["pool_kind"], node["labels"]) == ("research", "reserved", {"zone": "a"})
    job = site.api.submit(["sh", "-c", "echo from $GPUCTL_NODE"])
    assert site.api.wait(job)["state"] == "SUCCEEDED"
    assert site.api.log(job) == "from n1\n"
    run = site.api.post("/api/2.0/mlflow/runs/create", {"experiment_id": "0"})["run"]["info"]["run_id"]
    tracked = site.api.submit(["sh", "-c", "echo $MLFLOW_TRACKING_URI"], env={"MLFLOW_RUN_ID": run})
    site.api.wait(tracked)
    assert site.url.startswith("https://") and site.api.log(tracked) == f"{site.url}\n"
    assert site.gpuctl("open", tracked).stdout == f"{site.url}/#/experiments/0/runs/{run}\n"
    assert [token["node"] for token in site.api.get("/v1/tokens")["tokens"] if token["role"] == "node" and "node" in token] == ["n1"]


def test_the_token_may_come_on_stdin(site: Site) -> None:
    config = site.folder / "node" / "agent.conf"
    arguments = ("--ca-pin", site.pin, "--config", config, "--name", "n1", "--cpu-slots", 1)
    joined = ran(GPUAGENT, "join", site.url, "--token", "-", *arguments, stdin=site.join_token() + "\n")
    assert joined.returncode == 0, joined.stderr


def test_a_joined_node_speaks_for_itself_alone(site: Site) -> None:
    """S1, A2: with one node's token another node's registration and orders were taken over."""
    assert site.join(site.join_token(), "--name", "n1").returncode == 0
    site.start_node("n1")
    assert site.join(site.join_token(), "--name", "n2", folder="n2").returncode == 0
    thief = Api(site.url, (site.folder / "n2/node.token").read_text().strip(), site.cacert)
    mine = {"node": "n1", "boot_id": "b"}
    device = {"index": 0, "uuid": "slot-0", "type": "cpu", "memory_bytes": 0}
    host = site.nodes()["n1"]["host_id"]
    messages: list[tuple[str, dict[str, Any]]] = [
        ("register", {"name": "n1", "boot_id": "b", "host_id": host, "version": "1", "address": "127.0.0.1", "slots": True,
                      "isolation": "none", "devices": [device], "attempts": []}),
        ("beat", {**mine, "seq": 1}),
        ("poll", {**mine, "version": 0}),
        ("report", {**mine, "epoch": 1, "kind": "running"}),
        ("staging", {**mine, "key": "k", "state": "ready"}),
        ("journal", {**mine, "entries": []}),
    ]  # fmt: skip
    for route, message in messages:
        with pytest.raises(Problem) as refused:
            thief.post(f"/v1/agent/{route}", message)
        assert (refused.value.status, refused.value.code) == (403, "forbidden"), route
        assert "bound to node n2" in refused.value.body["detail"]
    for query in ("node=n1&", ""):
        status, _, body = thief.raw("POST", f"/v1/agent/logs?{query}epoch=1&rank=0&stream=stdout&offset=0", b"x")
        assert status == 403, body
    assert site.nodes()["n1"]["state"] == "READY"


def test_a_node_sends_the_logs_of_its_own_ranks_alone(site: Site) -> None:
    """S4: an upload was taken for any attempt and any rank."""
    for name in ("n1", "n2"):
        assert site.join(site.join_token(), "--name", name, folder=name).returncode == 0
    site.start_node("n1", "n1")
    job = site.api.submit(["sleep", "60"])
    site.wait_state(job, "RUNNING")
    epoch = site.api.get(f"/v1/jobs/{job}/attempts")["attempts"][0]["epoch"]

    def upload(node: str, rank: int) -> tuple[int, bytes]:
        token = (site.folder / node / "node.token").read_text().strip()
        path = f"/v1/agent/logs?node={node}&epoch={epoch}&rank={rank}&stream=stdout&offset=0"
        status, _, body = Api(site.url, token, site.cacert).raw("POST", path, b"forged")
        return status, body

    status, body = upload("n2", 0)
    assert status == 403 and b"has no part in attempt" in body, body
    status, body = upload("n1", 1)
    assert status == 422 and b"is not one of node n1" in body, body
    tail = {"rank": 0, "stream": "stdout", "offset": 0, "base64": "Zm9yZ2Vk"}
    thief = Api(site.url, (site.folder / "n2/node.token").read_text().strip(), site.cacert)
    with pytest.raises(Problem, match="has no part in attempt"):
        thief.post("/v1/agent/report", {"node": "n2", "boot_id": "b", "epoch": int(epoch), "kind": "exited", "tails": [tail]})
    assert site.api.log(job) == ""


def test_a_join_whose_answer_was_lost_is_repeated_with_the_same_line(site: Site) -> None:
    token = site.join_token()
    assert site.join(token, "--name", "n1").returncode == 0
    place = site.folder / "node"
    secret = (place / "node.token").read_text().strip()
    # as it was before the answer came: the secret was drawn, nothing else is there
    (place / "node.token.joining").write_text(secret.split("_", 2)[2])
    (place / "node.token").unlink()
    (place / "agent.conf").unlink()
    again = site.join(token, "--name", "n1")
    assert again.returncode == 0, again.stderr
    assert (place / "node.token").read_text().strip() == secret
    assert not (place / "node.token.joining").exists()
    assert Api(site.url, secret, site.cacert).get("/version")["api"] == "v1"


class Busy(BaseHTTPRequestHandler):
    """Refuses the first join, with a time to come again, and takes the next."""

    asked: list[float] = []

    def do_POST(self) -> None:
        self.asked.append(time.monotonic())
        self.rfile.read(int(self.headers["Content-Length"]))
        first = len(self.asked) == 1
        refusal = b'{"code": "too_many_requests", "detail": "too many", "retryable": true}'
        body = refusal if first else b'{"token_id": "abcdefgh", "pool": null, "reserved": false}'
        self.send_response(429 if first else 200)
        self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_a_join_comes_again_when_it_was_told_to_and_no_sooner(tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Busy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url, config = f"http://127.0.0.1:{server.server_address[1]}", tmp_path / "agent.conf"
    done = ran(GPUAGENT, "join", url, "--token", "gcj_a_b", "--config", config, "--cpu-slots", 1)
    server.shutdown()
    server.server_close()
    assert done.returncode == 0, done.stderr
    assert len(Busy.asked) == 2 and Busy.asked[1] - Busy.asked[0] >= 1


def refused_with(joined: Ran[str], code: int, *words: str) -> None:
    assert joined.returncode == code, joined.stderr
    lines = joined.stderr.splitlines()
    assert len(lines) == 2 and lines[0].startswith("gpuagent: ") and lines[1].startswith("  "), joined.stderr  # what, and the remedy
    for word in words:
        assert word in joined.stderr, joined.stderr


def test_what_goes_wrong_in_a_join_is_one_line_with_its_remedy(site: Site, tmp_path: Path) -> None:
    good = site.join_token()
    wrong = good[:-1] + ("A" if good[-1] != "A" else "B")
    refused_with(site.join(wrong), 4, "the join token is not known", "join-command")
    refused_with(site.join("gct_nonsense"), 4, "the join token is not whole", "join-command")
    refused_with(site.join(good, pin="sha256:" + "0" * 64), 4, "is not the one that is pinned", "join-command")
    refused_with(site.join(good, pin="sha256:12"), 2, "--ca-pin must be", "copy the whole line")
    refused_with(site.join(good, "--name", "a/b"), 2, '"a/b" cannot be the name of a node')
    assert site.join(good, "--name", "n1").returncode == 0
    refused_with(site.join(good, "--name", "n2", folder="n2"), 5, "was used already, by node n1", "join-command")
    fresh = site.join_token()
    refused_with(site.join(fresh, "--name", "n1", folder="n2"), 5, "there is a node named n1 already", "--name", "nodes remove")
    late = preload(tmp_path, days=-1)
    refused_with(site.join(fresh, "--name", "n2", folder="n2", env=late), 4, "the clock of this machine is", "behind", "timedatectl")
    assert site.join(fresh, "--name", "n2", folder="n2").returncode == 0  # none of that has spent it


def test_an_expired_join_token_is_refused(site: Site) -> None:
    assert site.join(site.join_token(), "--name", "n1").returncode == 0
    token = site.join_token(expires_in_s=1)

    def expired() -> bool:
        joined = site.join(token, "--name", "n1", folder="n2")  # a name that is taken: the token is not spent
        return "has expired" in joined.stderr

    eventually(expired, "the token to expire")
    refused_with(site.join(token, "--name", "n2", folder="n2"), 4, "the join token has expired", "join-command")


# --- login ---


def test_login_is_for_every_client_of_the_user(site: Site) -> None:
    home = site.folder / "home" / "gpuctl"
    assert {path.name: path.stat().st_mode & 0o777 for path in home.iterdir()} == {"config": 0o600, "token": 0o600, "ca.pem": 0o644}
    assert site.gpuctl("nodes", "-o", "json").returncode == 0
    looked = site.gpuctl("doctor").stdout
    assert "ok    tls            the certificate is trusted until 2" in looked, looked
    code = (
        "from serverless_gpu._internal import messages; from serverless_gpu._internal.api import controller\n"
        "print(controller.connect(messages.Messages()).get('/version')['api'])"
    )
    python = ran(PYTHON, "-c", code, env=site.env)
    assert python.stdout == "v1\n", python.stderr


def test_login_keeps_other_lines_and_writes_nothing_when_it_is_refused(site: Site) -> None:
    config = site.folder / "home/gpuctl/config"
    config.write_text("# mine\nstate = /tmp/x\nToken_File = /nowhere\n")
    before = files_of(config.parent)
    bad = site.folder / "bad.token"
    bad.write_text("gct_abc\n")
    for arguments, words in (
        (["--ca-pin", site.pin, "--token-file", bad], "carries no token"),
        (["--ca-pin", "sha256:" + "0" * 64, "--token-file", site.folder / "controller/admin.token"], "is not the one that is pinned"),
        (["--token-file", site.folder / "controller/admin.token"], "cannot be reached"),
        (["--ca-pin", site.pin], "--token-file"),
    ):
        refused = site.gpuctl("login", site.url, *arguments)
        assert refused.returncode != 0 and words in refused.stderr, refused.stderr
        assert files_of(config.parent) == before
    assert site.gpuctl("login", site.url, "--ca-pin", site.pin, "--token-file", site.folder / "controller/admin.token").returncode == 0
    lines = config.read_text().splitlines()
    assert lines[:2] == ["# mine", "state = /tmp/x"] and f"url = {site.url}" in lines and "Token_File = /nowhere" not in lines


# --- add and remove ---


SSH = """#!/bin/sh
# ssh HOST COMMAND as if the host were this one; its home is a folder of the test.
while [ "$1" = -o ]; do shift 2; done
case $1 in *refused*) echo "$1: Permission denied (publickey)." >&2; exit 255 ;; esac
export HOME="$FAKE_HOMES/$1"
mkdir -p "$HOME"
shift
exec sh -c "$*"
"""
SCP = """#!/bin/sh
while [ "$1" = -o ]; do shift 2; done
[ "$1" != -q ] || shift
for last in "$@"; do :; done
for file in "$@"; do [ "$file" = "$last" ] || cp "$file" "${last#*:}"; done
"""
ID = """#!/bin/sh
echo 1000
"""


def test_machines_are_added_over_ssh_each_with_its_own_outcome(site: Site) -> None:
    tools, homes = site.folder / "bin", site.folder / "homes"
    tools.mkdir()
    for name, text in (("ssh", SSH), ("scp", SCP), ("id", ID)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    # The agents that are started belong to the test: they write their pids, and their files lie in its folder.
    config = site.folder / "m1/agent.conf"
    (tools / "setsid").write_text(f'#!/bin/sh\nshift\n"$@" --config {config} &\necho $! >>"$FAKE_HOMES/pids"\n')
    (tools / "setsid").chmod(0o755)
    env = {"PATH": f"{tools}:{os.environ['PATH']}", "FAKE_HOMES": str(homes)}
    homes.mkdir()
    folders = (f"config={config}", f"state={site.folder}/m1/state", f"run={site.folder}/m1/run")
    settings = ("cpu-slots=1", "name=m1", f"python={PYTHON}", "run-as=agent", *folders)
    try:
        added = site.gpuctl("nodes", "add", "me@m1", "me@refused", *(word for setting in settings for word in ("--set", setting)), env=env)
        assert added.returncode == 1, added.stderr
        assert f"me@m1: joined {site.url} as m1" in added.stderr
        assert "m1" in site.nodes()  # known as soon as the command ends: the next line may name it
        assert "me@refused: me@refused: Permission denied (publickey).; see that ssh logs in there without a password" in added.stderr
        assert (homes / "me@m1/.local/lib/gpuctl/gpushim").exists()
        assert not list(Path("/tmp").glob("gpuctl-join-*/gpuagent"))
    finally:
        pids = [int(pid) for pid in (homes / "pids").read_text().split()] if (homes / "pids").exists() else []
        for pid in pids:
            try:
                os.kill(pid, 15)
            except ProcessLookupError:
                continue


def test_packages_are_installed_over_ssh_and_one_of_another_architecture_is_named(site: Site) -> None:
    tools, homes = site.folder / "bin", site.folder / "homes"
    tools.mkdir()
    homes.mkdir()
    installs = """#!/bin/sh
for package in "$@"; do
    case $package in
    *arm64*) echo "E: gpuctl-agent_0.1.0_arm64.deb: package architecture (arm64) does not match system (amd64)" >&2; exit 100 ;;
    *.deb) cp "$package" "$HOME" ;;
    esac
done
"""
    for name, text in (("ssh", SSH), ("scp", SCP), ("apt-get", installs)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    for package in ("gpuctl_0.1.0_amd64.deb", "gpuctl-agent_0.1.0_amd64.deb", "gpuctl-agent_0.1.0_arm64.deb"):
        (site.folder / package).write_text("a package")
    env = {"PATH": f"{tools}:{GPUAGENT.parent}:{os.environ['PATH']}", "FAKE_HOMES": str(homes)}
    config = f"config={site.folder}/m1/agent.conf"
    both = [word for name in ("gpuctl_0.1.0_amd64.deb", "gpuctl-agent_0.1.0_amd64.deb") for word in ("--package", site.folder / name)]
    added = site.gpuctl("nodes", "add", "root@m1", *both, "--name", "m1", "--set", "cpu-slots=1", "--set", config, env=env)
    assert added.returncode == 0 and f"root@m1: joined {site.url} as m1" in added.stderr, added.stderr
    assert sorted(path.name for path in (homes / "root@m1").glob("*.deb")) == ["gpuctl-agent_0.1.0_amd64.deb", "gpuctl_0.1.0_amd64.deb"]
    other = site.gpuctl("nodes", "add", "root@m2", "--package", site.folder / "gpuctl-agent_0.1.0_arm64.deb", env=env)
    assert other.returncode == 1
    assert "does not match system (amd64); build the package for that architecture" in other.stderr
    missing = site.gpuctl("nodes", "add", "root@m2", "--package", "/nowhere.deb", env=env)
    assert missing.returncode != 0 and "cannot read the package /nowhere.deb" in missing.stderr


def test_a_node_is_removed_when_it_is_drained_and_its_token_with_it(site: Site) -> None:
    assert site.join(site.join_token(), "--name", "n1").returncode == 0
    agent = site.start_node("n1")
    for state in ("READY", "idle"):
        refused = site.gpuctl("nodes", "remove", "n1")
        assert refused.returncode == 5 and "drain it first" in refused.stderr, (state, refused.stderr)
    token = (site.folder / "node/node.token").read_text().strip()
    assert site.gpuctl("nodes", "drain", "n1").returncode == 0
    removed = site.gpuctl("nodes", "remove", "n1")
    assert removed.returncode == 0, removed.stderr
    assert site.nodes() == {}
    with pytest.raises(Problem) as unknown:
        Api(site.url, token, site.cacert).get("/version")
    assert unknown.value.status == 401
    assert site.gpuctl("nodes", "remove", "n1").returncode == 3
    agent.kill(15)
    site.agents.remove(agent)
    (site.folder / "node/agent.conf").unlink()
    assert site.join(site.join_token(), "--name", "n1").returncode == 0  # the name is free again


def test_a_dead_node_is_removed_by_force_and_its_job_goes_on_elsewhere(site: Site) -> None:
    for name in ("n1", "n2"):
        assert site.join(site.join_token(), "--name", name, folder=name).returncode == 0
    agent = site.start_node("n1", "n1")
    job = site.api.submit(["sleep", "60"])
    site.wait_state(job, "RUNNING")
    agent.kill(9)
    site.agents.remove(agent)
    removed = site.gpuctl("nodes", "remove", "n1", "--force")
    assert removed.returncode == 0, removed.stderr
    assert "n1" not in site.nodes()
    site.start_node("n2", "n2")
    eventually(lambda: site.api.job(job)["state"] == "RUNNING" and site.api.job(job)["attempt"] == 2, "the job to run again")
    site.controller.kill(9)
    site.start_controller()
    assert list(site.nodes()) == ["n2"]


def test_roles_keep_joins_to_administrators(site: Site) -> None:
    user = site.user("alice")
    calls: list[Callable[[], Any]] = [
        lambda: user.post("/v1/nodes/join-tokens", {}),
        lambda: user.call("DELETE", "/v1/nodes/n1"),
    ]
    for call in calls:
        with pytest.raises(Problem) as refused:
            call()
        assert refused.value.status == 403
