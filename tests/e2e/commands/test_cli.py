# SPDX-License-Identifier: Apache-2.0
"""gpuctl as a person uses it: an instance of one's own, jobs, exit codes, and JSON alone on stdout."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness import GPUCTL, PATIENCE, ROOT, eventually, run_gpuctl

Run = Callable[..., subprocess.CompletedProcess[str]]
WAIT = "while ! test -e {gate}; do sleep 0.01; done"


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The state folder of an instance with two nodes of one slot each."""
    folder = tmp_path_factory.mktemp("own") / "state"
    up = run_gpuctl("up", "--state", str(folder), "--nodes", "2", "--cpu-slots", "1", "--devices", "none", "-o", "json")
    assert up.returncode == 0, up.stderr
    told = json.loads(up.stdout)
    assert set(told) == {"url", "token_file", "state_dir", "started"} and told["started"] is True
    assert told["state_dir"] == str(folder) and Path(told["token_file"]).stat().st_mode & 0o777 == 0o600
    yield folder
    down = run_gpuctl("down", "--state", str(folder), "--force")
    assert down.returncode == 0, down.stderr
    assert not (folder / "endpoint").exists()


@pytest.fixture
def gpuctl(state: Path) -> Run:
    return lambda *arguments, **options: run_gpuctl(*arguments, env={"GPUCTL_STATE": str(state), "NO_COLOR": "1"}, **options)


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137), ("sleep 100", 124)], ids=["ok", "exit", "signal", "limit"]
)
def test_run_exits_as_the_job_did(gpuctl: Run, script: str, code: int) -> None:
    limit = ["--time", "200ms", "--grace", "100ms"] if code == 124 else []
    ran = gpuctl("run", *limit, "--", "sh", "-c", script)
    assert ran.returncode == code, ran.stderr


def test_run_shows_what_each_rank_says_and_keeps_stdout_for_it(gpuctl: Run) -> None:
    ran = gpuctl("run", "--gpus", "2", "--", "sh", "-c", "echo out $RANK; echo err $RANK >&2")
    assert sorted(ran.stdout.splitlines()) == ["[0] out 0", "[1] out 1"]
    assert {"[0] err 0", "[1] err 1"} <= set(ran.stderr.splitlines())


def test_run_with_one_rank_passes_its_output_through_untouched(gpuctl: Run) -> None:
    ran = gpuctl("run", "--quiet", "--", "printf", "a\\nb")
    assert ran.stdout == "a\nb"


def test_run_says_that_stdin_does_not_reach_the_job(gpuctl: Run) -> None:
    ran = gpuctl("run", "--", "cat", given="words\n")
    assert ran.returncode == 0 and ran.stdout == "" and "what is on stdin does not reach the job without -i; --file" in ran.stderr
    assert "stdin" not in gpuctl("run", "--", "true").stderr


def test_run_in_node_mode_starts_one_process_a_node(gpuctl: Run) -> None:
    ran = gpuctl("run", "--gpus", "2", "--launch-mode", "node", "--", "sh", "-c", "echo $RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT")
    lines = sorted(ran.stdout.splitlines())
    assert len(lines) == 2 and lines[0].startswith("[0] 0 of 2 at 127.0.0.1:")
    assert lines[0].split(":")[1] == lines[1].split(":")[1] != ""


def test_interrupting_run_cancels_the_job(gpuctl: Run, state: Path, tmp_path: Path) -> None:
    command = [str(GPUCTL), "run", "--name", "interrupted", "--", "sh", "-c", f"touch {tmp_path}/up; sleep 1000"]
    ran = subprocess.Popen(command, env={**os.environ, "GPUCTL_STATE": str(state)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    eventually(lambda: (tmp_path / "up").exists(), "the job to run")
    ran.send_signal(signal.SIGINT)
    _, err = ran.communicate(timeout=PATIENCE)
    assert ran.returncode == 130, err
    jobs = json.loads(gpuctl("ps", "--all", "--name", "interrupted", "-o", "json").stdout)["jobs"]
    assert [job["state"] for job in jobs] == ["CANCELED"]


def test_a_job_can_be_submitted_watched_and_canceled(gpuctl: Run, tmp_path: Path) -> None:
    submitted = gpuctl("submit", "--name", "mine", "--label", "team=vision", "--", "sh", "-c", WAIT.format(gate=tmp_path / "gate"))
    job = submitted.stdout.strip()
    assert len(job) == 16
    view = json.loads(gpuctl("get", job, "-o", "json").stdout)
    assert view["id"] == job and view["name"] == "mine" and view["spec"]["labels"] == {"team": "vision"}
    assert job in gpuctl("ps").stdout
    assert gpuctl("wait", job, "--timeout", "100ms").returncode == 8
    assert gpuctl("cancel", job[:8]).returncode == 0
    assert gpuctl("wait", job).returncode == 130
    kinds = [json.loads(line)["kind"] for line in gpuctl("events", job, "-o", "jsonl").stdout.splitlines()]
    assert kinds[0] == "submitted" and kinds[-1] == "canceled"


def test_logs_follow_and_tail(gpuctl: Run) -> None:
    job = gpuctl("submit", "--gpus", "2", "--", "sh", "-c", "seq 1 5; echo to stderr >&2").stdout.strip()
    followed = gpuctl("logs", "-f", job)
    assert sorted(followed.stdout.splitlines()) == sorted(f"[{r}] {n}" for r in range(2) for n in range(1, 6))
    assert gpuctl("logs", job, "--rank", "1", "--stream", "stdout", "--tail", "2").stdout == "4\n5\n"
    assert gpuctl("logs", job, "--rank", "0", "--stream", "stderr").stdout == ""
    assert "to stderr" in gpuctl("logs", job, "--rank", "0", "--stream", "stderr").stderr


def test_nodes_are_drained_and_resumed(gpuctl: Run) -> None:
    assert gpuctl("nodes", "drain", "node1", "--reason", "swap").returncode == 0
    nodes = {node["name"]: node for node in json.loads(gpuctl("nodes", "list", "-o", "json").stdout)["nodes"]}
    assert nodes["node1"]["state"] == "DRAINED" and nodes["node1"]["reason"] == "swap"
    assert gpuctl("nodes", "resume", "node1").returncode == 0
    assert gpuctl("nodes", "fence", "node1").returncode == 2, "a fence must be asserted"


def test_tokens_are_made_listed_and_revoked(gpuctl: Run) -> None:
    made = json.loads(gpuctl("token", "create", "--role", "user", "--owner", "anna", "-o", "json").stdout)
    listed = json.loads(gpuctl("token", "list", "-o", "json").stdout)["tokens"]
    assert made["id"] in [token["id"] for token in listed]
    assert not any(token.get("secret") for token in listed)
    assert gpuctl("token", "revoke", made["id"]).returncode == 0


def test_the_reserved_toggle_of_the_environment_is_honoured(gpuctl: Run, state: Path) -> None:
    for value, expected in (("False", False), ("0", False), ("off", False), ("True", None), ("", None)):
        made = run_gpuctl("submit", "--", "true", env={"GPUCTL_STATE": str(state), "DATABRICKS_USE_RESERVED_GPU_POOL": value})
        job = json.loads(gpuctl("get", made.stdout.strip(), "-o", "json").stdout)
        assert job["spec"].get("use_reserved_pool") is expected, value
        gpuctl("wait", job["id"])
    refused = run_gpuctl("submit", "--", "true", env={"GPUCTL_STATE": str(state), "DATABRICKS_USE_RESERVED_GPU_POOL": "maybe"})
    assert refused.returncode == 2 and "DATABRICKS_USE_RESERVED_GPU_POOL must be true or false, it is maybe" in refused.stderr


def test_states_are_taken_in_small_letters_and_output_of_an_array_is_that_of_its_tasks(gpuctl: Run) -> None:
    """M14: the one pointed to a contract, the other printed nothing and exited with 0."""
    array = gpuctl("submit", "--array", "2", "--", "echo", "said").stdout.strip()
    gpuctl("wait", array)
    assert array in gpuctl("ps", "--state", "succeeded").stdout
    unknown = gpuctl("ps", "--state", "done")
    assert unknown.returncode == 2 and 'no job state "DONE"' in unknown.stderr and "QUEUED" in unknown.stderr
    assert gpuctl("logs", array).stdout == "[0] said\n[1] said\n"
    assert gpuctl("logs", f"{array}.1").stdout == "said\n"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["sumbit"], 2, 'did you mean "submit"?'),
        (["kill", "x7k2"], 2, '"kill" is no verb of gpuctl; use: gpuctl cancel x7k2\n'),
        (["squeue", "--me"], 2, "use: gpuctl ps\n"),
        (["describe", "a job"], 2, "use: gpuctl get ID\n"),
        (["run", "--gpus", "-1", "--", "true"], 125, "--gpus"),
        (["submit", "--gpus", "3", "--", "true"], 6, "remedy"),
        (["submit", "--gpu-type", "A10", "--", "true"], 6, "gpu_type"),
        (["submit"], 2, "remedy"),
        (["get", "zzzzzzzzzzzzzzzz"], 3, "remedy"),
        (["ps", "-o", "xml"], 2, "jsonl"),
        (["down"], 0, ""),
    ],
)
def test_wrong_use_is_one_clear_error_with_its_exit_code(gpuctl: Run, arguments: list[str], code: int, says: str, tmp_path: Path) -> None:
    if arguments == ["down"]:
        job = gpuctl("submit", "--", "sh", "-c", WAIT.format(gate=tmp_path / "gate")).stdout.strip()
        refused = gpuctl("down")
        assert refused.returncode == 5 and job in refused.stderr
        (tmp_path / "gate").touch()
        assert gpuctl("wait", job).returncode == 0
        return
    wrong = gpuctl(*arguments)
    assert wrong.returncode == code and says in wrong.stderr, wrong
    assert wrong.stdout == ""


def test_a_controller_that_is_not_there_is_said_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("gct_aaaaaaaa_" + "a" * 43)
    gone = run_gpuctl("ps", "--url", "http://127.0.0.1:9", "--token-file", str(tmp_path / "token"))
    assert gone.returncode == 7 and "127.0.0.1:9" in gone.stderr and "remedy" in gone.stderr


def completed(*words: str) -> list[str]:
    """The words that the last of these may become, as bash shows them with our script."""
    script = """
        source <("$1" completion bash)
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _gpuctl "$1"
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    shown = subprocess.run(["bash", "-c", script, "bash", str(GPUCTL), *words], capture_output=True, text=True, check=True)
    return shown.stdout.split()


def test_completion_offers_verbs_options_and_values() -> None:
    assert {"submit", "logs", "nodes"} <= set(completed(""))
    assert completed("nodes", "fe") == ["fence"]
    assert completed("nodes", "window", "a") == ["add"]
    assert completed("run", "--gpu-t") == ["--gpu-type"]
    assert completed("run", "--placement", "") == ["pack", "spread"]
    assert completed("run", "--python-version", "") == []
    assert completed("completion", "") == ["bash", "zsh", "fish"]
    assert completed("nonsense", "") == []
    assert completed("--ur") == ["--url"] and completed("--url", "http://a", "nod") == ["nodes"]
    assert completed("-o", "js") == ["json", "jsonl"] and completed("nodes", "-o", "json", "fe") == ["fence"]


def test_completion_offers_jobs_and_nodes(gpuctl: Run, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUCTL_STATE", str(state))
    assert completed("nodes", "drain", "node") == ["node0", "node1"]
    job = gpuctl("submit", "--", "true").stdout.strip()
    assert job in completed("logs", "") and job in completed("top", "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_scripts_ask_the_program(shell: str) -> None:
    assert "gpuctl --complete" in run_gpuctl("completion", shell).stdout
    asked = run_gpuctl("--complete", "run", "--gpus", "2", "python", "").stdout
    assert asked == ":command 4\n"


def test_every_verb_has_help() -> None:
    for verb in ("run", "submit", "ps", "get", "logs", "events", "wait", "cancel", "up", "down", "nodes", "token", "version", "completion"):
        shown = run_gpuctl(verb, "--help")
        assert shown.returncode == 0 and f"gpuctl {verb}" in shown.stdout, verb


def test_options_that_verbs_share_may_stand_before_the_verb(gpuctl: Run, state: Path, tmp_path: Path) -> None:
    """M7: README writes `gpuctl --url ... token create`."""
    url, token = json.loads((state / "endpoint").read_text())["url"], str(state / "controller" / "admin.token")
    elsewhere = {"GPUCTL_STATE": str(tmp_path / "none")}
    made = run_gpuctl("--url", url, "--token-file", token, "token", "create", "--owner", "anna", env=elsewhere)
    assert made.returncode == 0, made.stderr
    shown = run_gpuctl(f"--url={url}", "--token-file", token, "nodes", "--quiet", env=elsewhere)
    assert shown.stdout.split() == ["node0", "node1"]
    assert run_gpuctl("--url", "http://127.0.0.1:1", "nodes", "--url", url, "--token-file", token, env=elsewhere).returncode == 0
    for words in (
        ["nodes", "--url", url, "--token-file", token, "list", "-o", "json"],
        ["-o", "json", "--url", url, "nodes", "--token-file", token, "list"],
        ["--output=json", "nodes", f"--url={url}", "list", "--token-file", token],
    ):
        listed = run_gpuctl(*words, env=elsewhere)
        assert [node["name"] for node in json.loads(listed.stdout)["nodes"]] == ["node0", "node1"], (words, listed.stderr)
    ran = run_gpuctl("run", "--quiet", "--url", url, "--token-file", token, "--", "echo", "--url", "-o", "--", env=elsewhere)
    assert ran.stdout == "--url -o --\n", ran.stderr
    assert run_gpuctl("--help", "ps").stdout.startswith("Usage: gpuctl [OPTIONS] VERB")
    for words, says in (
        (["--url", url, "up"], "gpuctl up does not take --url"),
        (["--state", str(state), "ps"], "gpuctl ps does not take --state"),
        (["-o", "json", "completion", "bash"], "gpuctl completion does not take --output"),
        (["--gpus", "2", "run"], "unknown option --gpus"),
        (["--url", url], "Usage: gpuctl"),
    ):
        refused = run_gpuctl(*words, env=elsewhere)
        assert refused.returncode == 2 and says in refused.stderr, (words, refused.stderr)


def test_a_backup_as_a_folder_and_a_check_are_of_the_controller_in_use(gpuctl: Run, state: Path, tmp_path: Path) -> None:
    """M7: it was made of /var/lib/gpuctl, whatever controller was in use."""
    made = gpuctl("admin", "backup", str(tmp_path / "backup"))
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "backup" / "gpuctl.db").exists()
    checked = gpuctl("admin", "check")
    assert checked.returncode == 0 and checked.stdout.startswith(f"{state}/controller/gpuctl.db: every page"), checked
    url, token = json.loads((state / "endpoint").read_text())["url"], str(state / "controller" / "admin.token")
    named = gpuctl("--url", url, "--token-file", token, "admin", "backup", str(tmp_path / "other"))
    assert named.returncode == 2 and url in named.stderr and "--state DIR" in named.stderr
    told = gpuctl("admin", "backup", str(tmp_path / "other"), "--state", str(state / "controller"), "--url", url, "--token-file", token)
    assert told.returncode == 0, told.stderr


@pytest.mark.parametrize("missing", ["ninja", "dpkg"])
def test_a_benchmark_that_cannot_be_built_says_so_in_a_line(missing: str, tmp_path: Path) -> None:
    """M7: where Check is not installed, and after deploy/quickstart, it was a traceback."""
    says = {
        "ninja": "exit 0\n",
        "dpkg": "exit 0\n",
        "meson": "exit 0\n",
        "dpkg-query": "printf installed\n",
        "apt-get": "echo no such package >&2; exit 100\n",
    }
    says[missing] = "echo 'unknown target tests/bench/bench-load'; exit 1\n"
    for name, script in says.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}")
        (tmp_path / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ran = subprocess.run([ROOT / "tests" / "bench" / "run", "memory"], env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert ran.returncode == 1 and "Traceback" not in ran.stderr
    [line] = ran.stderr.splitlines()
    assert line.startswith("tests/bench/run: memory: "), line
    assert ("deploy/dependencies --tests" if missing == "ninja" else "install check") in line


def on_a_terminal(arguments: list[str], env: dict[str, str]) -> str:
    """What a terminal gets that is gpuctl's stdout and stderr."""
    ours, theirs = pty.openpty()
    command, env = [str(GPUCTL), *arguments], {**os.environ, **env}
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs) as run:
        os.close(theirs)
        said = b""
        with contextlib.suppress(OSError):  # which is how the end of a terminal is read
            while piece := os.read(ours, 65536):
                said += piece
        os.close(ours)
        assert run.wait(PATIENCE) == 0, said
    return said.decode()


def test_what_a_job_or_another_person_wrote_does_not_steer_a_terminal(gpuctl: Run, state: Path, tmp_path: Path) -> None:
    """A18: titles, the clipboard and the screen are not a job's; colours and progress bars are. What is piped stays as it was."""
    wild = "\x1b[31mred\x1b[0m 1 %\r2 %\x1b[K\x1b]52;c;c2VjcmV0\x07\x1b[2J\x9b2J\n"
    env = {"GPUCTL_STATE": str(state), "NO_COLOR": "1"}
    (tmp_path / "wild").write_text(wild)
    command = ["--", "cat", str(tmp_path / "wild")]
    raw = subprocess.run([str(GPUCTL), "run", "--quiet", *command], env={**os.environ, **env}, capture_output=True, timeout=PATIENCE)
    assert raw.stdout == wild.encode()
    shown = on_a_terminal(["run", *command], env)
    assert "^[]52;c;c2VjcmV0^G^[[2J" in shown and "\x1b[31mred\x1b[0m 1 %\r2 %\x1b[K" in shown
    job = gpuctl("submit", "--name", "nice", "--env", "PS1=\x1b]0;x\x07", *command).stdout.strip()
    assert gpuctl("wait", job).returncode == 0
    one = ["--rank", "0", "--stream", "stdout"]
    for words in (["logs", job], ["logs", job, *one], ["get", job], ["ps", "--all"], ["nodes"], ["events", job]):
        shown = on_a_terminal(words, env)
        assert not re.search("\x1b(?!\\[[0-9;:]*[mK])|\x07|\x9b", shown), (words, shown)
        assert words[0] != "logs" or "^[[2J" in shown, words


class LateController(ThreadingHTTPServer):
    """A controller whose job has ended: it tells so, over both streams, while gpuctl waits for the job itself."""

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), handler or LateHandler)
        self.asked, self.told = threading.Event(), threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class LateHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: LateController
    JOB = {"id": "a" * 16, "state": "SUCCEEDED", "seq": 2, "gpus": 2, "exit_code": 0, "spec": {"gpus": 2}}

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.reply("application/json", json.dumps({**self.JOB, "state": "RUNNING"}), 201)

    def do_GET(self) -> None:
        if self.path.endswith("/events"):
            assert self.server.asked.wait(PATIENCE)
            event = {"job_id": "a" * 16, "seq": 1, "time": "2026-01-01T00:00:00Z", "kind": "submitted", "detail": {}}
            self.reply("text/event-stream", f"id: 1\ndata: {json.dumps(event)}\n\nevent: end\ndata: {{}}\n\n")
            self.server.told.set()
        elif self.path.endswith("/logs"):
            line = json.dumps({"rank": 0, "stream": "stdout", "offset": 0, "text": "hello\n"})
            self.reply("text/event-stream", f"id: 1\ndata: {line}\n\nevent: end\ndata: {{}}\n\n")
        else:
            self.server.asked.set()
            assert self.server.told.wait(PATIENCE)
            self.reply("application/json", json.dumps(self.JOB))

    def reply(self, kind: str, text: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        pass


def test_a_stream_that_ended_while_something_else_was_asked_is_not_taken_for_lost(tmp_path: Path) -> None:
    """M10: its end was there, and had not been read yet."""
    controller = LateController()
    (tmp_path / "token").write_text("secret\n")
    url = f"http://127.0.0.1:{controller.server_address[1]}"
    ran = run_gpuctl("run", "--gpus", "2", "--url", url, "--token-file", str(tmp_path / "token"), "--", "hostname")
    controller.shutdown()
    controller.server_close()
    assert ran.returncode == 0 and "hello" in ran.stdout, ran.stderr
    assert "closed the stream" not in ran.stderr


class WildHandler(LateHandler):
    """All that it says would steer a terminal."""

    def do_GET(self) -> None:
        wild = "\x1b]52;c;c2VjcmV0\x07"
        problem = {"type": "urn:gpuctl:problem:invalid_field", "status": 422, "code": "invalid_field", "retryable": False}
        self.reply("application/problem+json", json.dumps({**problem, **dict.fromkeys(("title", "detail", "field", "hint"), wild)}), 422)


def test_what_a_controller_refuses_does_not_steer_a_terminal(tmp_path: Path) -> None:
    controller = LateController(WildHandler)
    (tmp_path / "token").write_text("secret\n")
    url = f"http://127.0.0.1:{controller.server_address[1]}"
    ran = run_gpuctl("nodes", "--url", url, "--token-file", str(tmp_path / "token"))
    controller.shutdown()
    controller.server_close()
    assert ran.returncode != 0 and ran.stderr.count("?]52;c;c2VjcmV0?") == 3, ran.stderr
    assert not re.search("\x1b|\x07", ran.stderr), ran.stderr


@pytest.fixture
def two_nodes(tmp_path: Path) -> Iterator[tuple[Path, Run]]:
    """An instance of two nodes with a job on node1, whose controller was killed."""
    folder = tmp_path / "own"
    settings = {"GPUCTL_STATE": str(folder), "NO_COLOR": "1"}

    def gpuctl(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return run_gpuctl(*arguments, env=settings, **options)

    assert gpuctl("up", "--nodes", "2", "--cpu-slots", "1", "--devices", "none").returncode == 0
    assert gpuctl("nodes", "drain", "node0").returncode == 0
    gpuctl("submit", "--grace", "1s", "--", "sh", "-c", f"trap '' TERM; echo $$ >{tmp_path}/pid; while :; do sleep 0.1; done")
    eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip(), "the job to run")
    os.kill(int((folder / "controller.pid").read_text().split()[0]), signal.SIGKILL)
    yield folder, gpuctl
    gpuctl("down", "--force")


def lives(pid: str) -> bool:
    """The process is there, and is more than a zombie."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_up_after_a_killed_controller_starts_all_its_nodes_again(two_nodes: tuple[Path, Run], tmp_path: Path) -> None:
    """M6: one node came back, and nothing could end what ran on the other."""
    _, gpuctl = two_nodes
    up = gpuctl("up")
    assert up.returncode == 0 and "there were 2 nodes" in up.stderr
    jobs = json.loads(gpuctl("ps", "-o", "json").stdout)["jobs"]
    assert [job["state"] for job in jobs] == ["RUNNING"]
    down = gpuctl("down", "--force", timeout=2 * PATIENCE)
    assert down.returncode == 0, down.stderr
    assert not lives((tmp_path / "pid").read_text().strip())


@pytest.mark.parametrize("controller", ["back", "gone"])
def test_down_by_force_ends_what_a_node_without_an_agent_runs(two_nodes: tuple[Path, Run], tmp_path: Path, controller: str) -> None:
    """M6: it waited for ever for a job that nobody was there to end."""
    folder, gpuctl = two_nodes
    os.kill(int((folder / "node1.pid").read_text().split()[0]), signal.SIGKILL)
    if controller == "back":
        (folder / "node1.pid").unlink()
        assert gpuctl("up").returncode == 0
    down = gpuctl("down", "--force")
    assert down.returncode == 0, down.stderr
    assert not lives((tmp_path / "pid").read_text().strip())
    assert controller == "gone" or "node1 has no agent that could end its jobs" in down.stderr
