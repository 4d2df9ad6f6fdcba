# SPDX-License-Identifier: Apache-2.0
"""gpuctl top as a person at a terminal uses it: in tmux, by its keys and by what is on the screen; and as scripts use it."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import GPUCTL, PATIENCE, PYTHON, Api, Cluster, Problem, eventually, run_gpuctl

SLEEP = ["sleep", "1000"]
Environment = dict[str, str]


def environment_of(cluster: Cluster, home: Path) -> Environment:
    """Settings of an administrator of the cluster."""
    token = cluster.folder / "controller" / "admin.token"
    return {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token), "HOME": str(home), "LC_ALL": "C.UTF-8", "NO_COLOR": ""}


class Terminal:
    """A terminal with a shell in it, whose keys and screen are tmux's."""

    def __init__(self, folder: Path, environment: Environment, columns: int = 120, lines: int = 30):
        self.name = f"gpuctl-{uuid.uuid4().hex}"
        self.folder = folder
        self.sockets = tempfile.TemporaryDirectory(prefix="tmux-")  # the path of a socket has 107 bytes at most
        environment = {**os.environ, "PS1": "ready> ", "TMUX_TMPDIR": self.sockets.name, **environment}
        shell = ["bash", "--norc", "--noprofile", "-i"]
        subprocess.run(
            ["tmux", "-u", "-L", self.name, "-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines), *shell],
            env=environment, cwd=folder, check=True, timeout=PATIENCE,
        )  # fmt: skip

    def tmux(self, *words: str) -> str:
        ran = subprocess.run(
            ["tmux", "-L", self.name, *words], env={**os.environ, "TMUX_TMPDIR": self.sockets.name},
            check=True, timeout=PATIENCE, capture_output=True, text=True,
        )  # fmt: skip
        return ran.stdout

    def end(self) -> None:
        self.tmux("kill-server")
        self.sockets.cleanup()

    def press(self, *keys: str) -> None:
        """Keys by tmux's names, such as Enter or C-c; other words are typed."""
        for key in keys:
            self.tmux("send-keys", *(["-l"] if len(key) == 1 else []), key)

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)
        self.press("Enter")

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def await_text(self, *wanted: str, gone: str | None = None) -> str:
        """The screen, once it has all of these regular expressions, and not the one that is to go."""

        def there() -> str | None:
            seen = self.screen()
            right = all(re.search(each, seen, re.MULTILINE) for each in wanted)
            return seen if right and (gone is None or not re.search(gone, seen)) else None

        try:
            return eventually(there, f"{wanted}")
        except AssertionError as late:
            raise AssertionError(f"{late}; the screen is\n{self.screen()}") from None

    def state(self, name: str) -> str:
        """A format of tmux's, such as alternate_on."""
        return self.tmux("display-message", "-p", f"#{{{name}}}").strip()

    def start(self, *arguments: str) -> None:
        """Start gpuctl top; what the shell says after it is the exit code, and the settings of the terminal are kept."""
        self.type(f"clear; stty -g >before; {shlex.join([str(GPUCTL), 'top', *arguments])}; echo left with $?; stty -g >after")

    def run(self, *arguments: str) -> None:
        """The same, until it shows its picture: keys that come before are echoed by the terminal."""
        self.start(*arguments)
        self.await_text("^gpuctl top  http")

    def await_end(self, code: int) -> None:
        """gpuctl top has ended with this code and left the terminal as it was."""
        self.await_text(rf"^left with {code}$", r"^ready>")
        eventually(lambda: (self.folder / "after").exists() and (self.folder / "after").read_text(), "the settings")
        assert (self.folder / "after").read_text() == (self.folder / "before").read_text()
        assert (self.state("alternate_on"), self.state("cursor_flag"), self.state("wrap_flag")) == ("0", "1", "1")


def program_of(terminal: Terminal) -> int:
    """The process of gpuctl in the terminal."""
    shell = terminal.state("pane_pid")
    (child,) = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
    return int(child)


@pytest.fixture
def open_terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def make(cluster: Cluster, columns: int = 120, lines: int = 30, **more: str) -> Terminal:
        folder = tmp_path / f"terminal{len(opened)}"
        folder.mkdir()
        opened.append(Terminal(folder, {**environment_of(cluster, tmp_path), **more}, columns, lines))
        opened[-1].await_text("ready>")
        return opened[-1]

    yield make
    for each in opened:
        each.end()


@pytest.fixture
def terminal(cluster: Cluster, open_terminal: Callable[..., Terminal]) -> Terminal:
    return open_terminal(cluster)


@pytest.fixture
def idle(cluster: Cluster) -> Iterator[Api]:
    """The API, and a cluster without jobs behind it."""
    yield cluster.api
    for job in cluster.api.get("/v1/jobs?state=QUEUED,HELD,BLOCKED,STAGING,PLACED,RUNNING&limit=200")["jobs"]:
        cluster.api.post(f"/v1/jobs/{job['id']}/cancel")
        cluster.api.wait(job["id"])


@pytest.fixture
def jobs(cluster: Cluster, idle: Api) -> dict[str, str]:
    """Two jobs that run and two that wait, by their names."""
    made = {}
    for name, gpus in {"beta": 2, "alpha": 1}.items():
        made[name] = idle.submit(SLEEP, gpus, name=name)
        cluster.wait_state(made[name], "RUNNING")
    return made | {name: idle.submit(SLEEP, 4, name=name, priority=priority) for name, priority in {"low": -5, "high": 5}.items()}


def names_in(screen: str, *names: str) -> list[str]:
    """Those of the names that are on the screen, from the top down."""
    found = [(match.start(), name) for name in names if (match := re.search(rf" {name} ", screen))]
    return [name for _, name in sorted(found)]


# --- tables ------------------------------------------------------------------------------------------------------------------


def test_nodes_jobs_and_the_queue_are_shown_with_their_totals(terminal: Terminal, jobs: dict[str, str]) -> None:
    terminal.run()
    seen = terminal.await_text(r"cpu in default +█+░+ +3 of 4 in use, 1 free, 0 unavailable", r"nodes: 2 +jobs: 2 running, 2 waiting")
    assert re.search(r"^> node0 +READY +default +cpu +████████ 2/2", seen, re.MULTILINE)
    assert re.search(r"^  node1 +READY +default +cpu +████░░░░ 1/2", seen, re.MULTILINE)
    assert terminal.state("alternate_on") == "1"
    terminal.press("2")
    seen = terminal.await_text(r"\[2 jobs\]", " alpha +RUNNING +admin +1 ", " beta +RUNNING")
    assert names_in(seen, "alpha", "beta", "low", "high") == ["alpha", "beta"]
    terminal.press("Tab")
    seen = terminal.await_text(r"\[3 queue\]", " low +QUEUED", r" high +QUEUED .*needs 4 GPUs: 1 of 4 is free")
    assert names_in(seen, "low", "high") == ["high", "low"]
    terminal.press("Tab")
    terminal.await_text(r"\[1 nodes\]")
    terminal.press("q")
    terminal.await_end(0)


def test_a_table_is_sorted_reversed_and_filtered(terminal: Terminal, jobs: dict[str, str]) -> None:
    terminal.run()
    terminal.press("2")
    terminal.await_text(" alpha ", " beta ")
    terminal.press(">", ">")
    terminal.await_text("sorted by ID")
    terminal.press("s")
    assert names_in(terminal.await_text("sorted by NAME", r"NAME ▲"), "alpha", "beta") == ["alpha", "beta"]
    terminal.press("r")
    assert names_in(terminal.await_text(r"NAME ▼"), "alpha", "beta") == ["beta", "alpha"]
    terminal.press("<")
    terminal.await_text("sorted by ID")
    terminal.press("/", "L", "P", "H", "A", "q")  # long enough that no random id has it
    terminal.await_text("^/LPHAq_", "0-0 of 0, 2 filtered out", gone=" alpha ")
    terminal.press("BSpace", "Enter")
    seen = terminal.await_text("^filter: LPHA", "1-1 of 1, 1 filtered out")
    assert names_in(seen, "alpha", "beta") == ["alpha"]
    terminal.press("Escape")
    terminal.await_text(" beta ", "1-2 of 2$")
    terminal.press("?")
    terminal.await_text("gpuctl top: keys", "q, Ctrl-C +quit")
    terminal.press("q")
    terminal.await_text(" beta ")
    terminal.press("C-c")
    terminal.await_end(0)


def test_the_picture_follows_the_cluster_and_the_size_of_the_window(terminal: Terminal, cluster: Cluster, jobs: dict[str, str]) -> None:
    terminal.run("--interval", "1")
    terminal.press("2")
    terminal.await_text(" alpha ")
    cluster.api.post(f"/v1/jobs/{jobs['alpha']}/cancel")
    terminal.await_text("jobs: 1 running", gone=" alpha ")
    terminal.tmux("resize-window", "-x", "50", "-y", "12")
    eventually(lambda: terminal.screen().rstrip("\n").count("\n") == 11, "the keys in the last line")
    seen = terminal.await_text(r"^> \S+ +beta +RUNNING +admin")
    assert max(map(len, seen.splitlines())) <= 50 and "POOL" not in seen
    terminal.tmux("resize-window", "-x", "150", "-y", "40")
    eventually(lambda: terminal.screen().rstrip("\n").count("\n") == 39, "the keys in the last line")
    terminal.await_text("POOL", "REASON")
    terminal.press("q")
    terminal.await_end(0)


def test_the_selection_stays_with_its_job_and_scrolls(cluster: Cluster, open_terminal: Callable[..., Terminal], idle: Api) -> None:
    for number in range(30):
        idle.submit(SLEEP, 4, name=f"job-{number:02}", hold=True)
    terminal = open_terminal(cluster, lines=15)
    terminal.run()
    terminal.press("3")
    terminal.await_text(r"^> \S+ +job-00 ", "1-10 of 30")
    terminal.press("PPage", "j", "Down", "k")
    terminal.await_text(r"^> \S+ +job-01 ")
    terminal.press("NPage")
    terminal.await_text(r"^> \S+ +job-11 ", "3-12 of 30")
    terminal.press("r")
    terminal.await_text(r"^> \S+ +job-11 ")
    terminal.press("End")
    terminal.await_text(r"^> \S+ +job-29 ", "21-30 of 30")
    terminal.press("Home")
    terminal.await_text(r"^> \S+ +job-00 ", "1-10 of 30")
    terminal.press("q")
    terminal.await_end(0)


# --- changes -----------------------------------------------------------------------------------------------------------------


def test_a_job_is_held_released_and_canceled_after_a_question(terminal: Terminal, cluster: Cluster, idle: Api) -> None:
    filler = idle.submit(SLEEP, 4, name="filler")
    cluster.wait_state(filler, "RUNNING")
    waiting = idle.submit(SLEEP, 4, name="waiting")
    terminal.run()
    terminal.press("3")
    terminal.await_text(" waiting +QUEUED")
    terminal.press("h")
    terminal.await_text(rf"^hold job {waiting}\? y/n")
    terminal.press("n")
    terminal.await_text("nothing was changed")
    terminal.press("h", "y")
    terminal.await_text(" waiting +HELD")
    assert idle.job(waiting)["state"] == "HELD"
    terminal.press("u", "y")
    terminal.await_text(" waiting +QUEUED")
    terminal.press("c")
    terminal.await_text(rf"^cancel job {waiting}\? y/n")
    terminal.press("y")
    terminal.await_text(r"0-0 of 0", gone=" waiting ")
    assert idle.job(waiting)["state"] == "CANCELED"
    terminal.press("2", "c", "y")
    terminal.await_text("jobs: 0 running", gone=" filler ")
    assert idle.wait(filler)["state"] == "CANCELED"
    terminal.press("q")
    terminal.await_end(0)


def test_a_node_is_drained_and_resumed(terminal: Terminal, cluster: Cluster) -> None:
    terminal.run()
    terminal.await_text("^> node0 +READY")
    terminal.press("j", "d")
    terminal.await_text(r"^drain node node1\? y/n")
    terminal.press("y")
    terminal.await_text("^> node1 +DRAINED", "0 of 4 in use, 2 free, 2 unavailable")
    terminal.press("u", "y")
    terminal.await_text("^> node1 +READY", "4 free, 0 unavailable")
    terminal.press("q")
    terminal.await_end(0)


def test_a_change_that_is_refused_says_why(terminal: Terminal, cluster: Cluster, idle: Api, tmp_path: Path) -> None:
    secret = tmp_path / "ada.token"
    secret.touch(0o600)
    secret.write_text(str(cluster.user("ada").token) + "\n")
    terminal.run("--token-file", str(secret))
    terminal.await_text("^> node0 ")
    terminal.press("d", "y")
    terminal.await_text("^refused: ")
    assert cluster.nodes()["node0"]["state"] == "READY"
    terminal.press("q")
    terminal.await_end(0)


# --- one job -----------------------------------------------------------------------------------------------------------------

TALK = ["sh", "-c", r"printf 'hello from %s\n\033[2J\033[31mred\033[0m\n' $RANK; echo oops $RANK >&2; exec sleep 1000"]


def test_enter_shows_a_job_its_ranks_and_the_output_of_each(terminal: Terminal, cluster: Cluster, idle: Api) -> None:
    job = idle.submit(TALK, 3, name="talker")
    cluster.wait_state(job, "RUNNING")
    terminal.run()
    terminal.press("2")
    terminal.await_text(" talker ")
    terminal.press("Enter")
    seen = terminal.await_text(rf"^job {job} +RUNNING +name talker", "^output of rank 0, stdout", "^hello from 0$", "^red$")
    assert re.search(r"^> +0 +node0 +RUNNING", seen, re.MULTILINE) and re.search(r"^ +2 +node1 +RUNNING", seen, re.MULTILINE)
    terminal.press("j", "j")
    terminal.await_text("^output of rank 2, stdout", "^hello from 2$")
    terminal.press("e")
    terminal.await_text("^output of rank 2, stderr", "^oops 2$")
    terminal.press("c")
    terminal.await_text(rf"^cancel job {job}\? y/n")
    terminal.press("y")
    terminal.await_text(rf"^job {job} +CANCELED", "exit 130")
    terminal.press("Escape")
    terminal.await_text(r"\[2 jobs\]", "jobs: 0 running", gone="talker")
    terminal.press("q")
    terminal.await_end(0)


def test_a_job_is_named_by_the_start_of_its_id(terminal: Terminal, cluster: Cluster, idle: Api) -> None:
    job = idle.submit(TALK, 1)
    cluster.wait_state(job, "RUNNING")
    terminal.run(job[:12])
    terminal.await_text(rf"^job {job} +RUNNING", "^hello from 0$")
    terminal.press("Escape")
    terminal.await_text(r"\[2 jobs\]", rf"^> {job}")
    terminal.press("q")
    terminal.await_end(0)


# --- the terminal ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("how", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 0)])
def test_a_signal_ends_it_and_leaves_the_terminal_as_it_was(terminal: Terminal, how: signal.Signals, code: int) -> None:
    terminal.run()
    terminal.await_text("^> node0 ")
    os.kill(program_of(terminal), how)
    terminal.await_end(code)


def test_it_is_stopped_and_goes_on(terminal: Terminal) -> None:
    terminal.run()
    terminal.await_text("^> node0 ")
    terminal.press("C-z")
    terminal.await_text("Stopped", "^ready>$", gone="node0 ")
    assert (terminal.state("alternate_on"), terminal.state("cursor_flag")) == ("0", "1")
    terminal.type("fg")
    terminal.await_text("^> node0 ", r"\[1 nodes\]")
    assert terminal.state("alternate_on") == "1"
    terminal.press("2")
    terminal.await_text(r"\[2 jobs\]")
    terminal.press("q")
    terminal.await_text("^ready>$", gone=r"\[2 jobs\]")


def test_without_utf8_it_draws_in_ascii(cluster: Cluster, open_terminal: Callable[..., Terminal]) -> None:
    terminal = open_terminal(cluster, LC_ALL="C")
    terminal.run()
    terminal.await_text(r"^> node0 +READY +default +cpu +\.{8} 0/2")
    assert terminal.screen().isascii()
    terminal.press("q")
    terminal.await_end(0)


def test_no_color_leaves_colours_out(cluster: Cluster, open_terminal: Callable[..., Terminal]) -> None:
    colours = {}
    for asked in ("", "1"):
        terminal = open_terminal(cluster, NO_COLOR=asked)
        terminal.run()
        terminal.await_text("^> node0 ", "^  node1 ")
        colours[asked] = set(re.findall(r"\x1b\[([0-9;]+)m", terminal.tmux("capture-pane", "-p", "-e")))
        terminal.press("q")
        terminal.await_end(0)
    assert {"32", "33"} <= colours[""] and not {"31", "32", "33"} & colours["1"]


# --- a controller that does not answer ---------------------------------------------------------------------------------------


def test_a_controller_that_is_away_leaves_the_picture_and_is_found_again(
    make_cluster: Callable[..., Cluster], open_terminal: Callable[..., Terminal]
) -> None:
    cluster = make_cluster(1)
    terminal = open_terminal(cluster)
    terminal.run("--interval", "1")
    terminal.await_text("^> node0 +READY")
    cluster.controller.kill()
    seen = terminal.await_text(r"^the controller does not answer since \d\d:\d\d:\d\d: ")
    assert "> node0 " in seen
    terminal.press("3")
    terminal.await_text(r"\[3 queue\]", "does not answer since")
    cluster.start_controller()
    cluster.wait_ready()
    job = cluster.api.submit(SLEEP, 1, name="later", hold=True)
    terminal.await_text(rf"^> {job} +later +HELD", gone="does not answer")
    terminal.press("q")
    terminal.await_end(0)
    cluster.api.post(f"/v1/jobs/{job}/cancel")


def test_keys_are_answered_while_the_controller_is_silent(
    make_cluster: Callable[..., Cluster], open_terminal: Callable[..., Terminal]
) -> None:
    cluster = make_cluster(1)
    terminal = open_terminal(cluster)
    terminal.run("--interval", "1")
    terminal.await_text("^> node0 +READY")
    process = cluster.controller.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        terminal.press("2")
        terminal.await_text(r"\[2 jobs\]")
        terminal.await_text("does not answer since")
        terminal.press("1", "q")
        terminal.await_end(0)
    finally:
        process.send_signal(signal.SIGCONT)


# --- scripts -----------------------------------------------------------------------------------------------------------------


def told(environment: Environment, *arguments: str) -> str:
    ran = run_gpuctl("top", *arguments, env=environment)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_without_a_terminal_the_picture_is_printed_once(cluster: Cluster, jobs: dict[str, str], tmp_path: Path) -> None:
    environment = environment_of(cluster, tmp_path)
    for arguments in ([], ["--once"]):
        text = told(environment, *arguments)
        assert "3 of 4 in use, 1 free, 0 unavailable" in text and "jobs: 2 running, 2 waiting" in text
        assert "\x1b" not in text and not re.search(r" $", text, re.MULTILINE)
        assert re.findall(r"^(nodes|jobs|queue)$", text, re.MULTILINE) == ["nodes", "jobs", "queue"]
        assert names_in(text, "alpha", "beta", "low", "high") == ["alpha", "beta", "high", "low"]
        assert len(re.findall("needs 4 GPUs: 1 of 4 is free", text)) == 2
    assert "▲" not in text and told({**environment, "LC_ALL": "C"}).isascii()


def test_one_job_is_printed_once(cluster: Cluster, idle: Api, tmp_path: Path) -> None:
    job = idle.submit(TALK, 2, name="talker")
    cluster.wait_state(job, "RUNNING")
    eventually(lambda: "red" in idle.log(job), "its output")
    text = told(environment_of(cluster, tmp_path), job)
    assert re.search(rf"^job {job}  RUNNING  name talker  owner admin", text) and "\x1b" not in text
    assert re.search(r"^  +1  node0  RUNNING", text, re.MULTILINE)
    assert text.endswith("output of rank 0, stdout\nhello from 0\nred\n")


def test_once_on_a_terminal_is_plain_text_as_wide_as_that(cluster: Cluster, open_terminal: Callable[..., Terminal]) -> None:
    terminal = open_terminal(cluster, columns=60)
    terminal.start("--once")
    terminal.await_end(0)
    assert "  node0  READY" in terminal.screen()


def test_more_rows_than_are_printed_are_counted(cluster: Cluster, idle: Api, tmp_path: Path) -> None:
    job = idle.submit(SLEEP, 4)
    cluster.wait_state(job, "RUNNING")
    for _ in range(103):
        idle.submit(["true"], 1, hold=True)
    text = told(environment_of(cluster, tmp_path))
    assert "jobs: 1 running, 103 waiting" in text and text.endswith("\nand 3 more\n")


def test_more_jobs_than_one_reading_takes_are_all_counted_and_found(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, open_terminal: Callable[..., Terminal]
) -> None:
    ours = Cluster(tmp_path_factory.mktemp("long"), [1]).start()
    first = ours.api.submit(["true"], name="first", hold=True)
    for number in range(3):
        ours.api.post("/v1/jobs:batch", [{"command": ["true"], "gpus": 1, "hold": True}] * 999, Idempotency_Key=str(number))
    text = told(environment_of(ours, tmp_path))
    assert "jobs: 0 running, 2998 waiting" in text and text.endswith("\nand 2898 more\n")
    terminal = open_terminal(ours)
    terminal.run()
    terminal.press("3", "End")
    terminal.await_text(r"2998 waiting", r"of 2998$")
    terminal.press("/", *"first", "Enter")
    terminal.await_text(rf"^> {first} +first +HELD", r"1-1 of 1, 2997 filtered out$")
    ours.api.post(f"/v1/jobs/{first}/cancel")
    terminal.await_text(r" 2997 waiting", r"0-0 of 0, 2997 filtered out$")
    ours.controller.kill()  # it would take a while to cancel them one by one
    ours.stop()


@pytest.mark.parametrize(
    ("arguments", "code", "wanted"),
    [
        (["one", "two"], 2, 'does not take "two"'),
        (["--interval", "0"], 2, "--interval"),
        (["--interval", "soon"], 2, "--interval"),
        (["zzzzzzzzzzzz"], 3, "zzzzzzzzzzzz"),
        (["--url", "http://127.0.0.1:1"], 7, "cannot be reached"),
    ],
)
def test_wrong_use_is_an_error(cluster: Cluster, tmp_path: Path, arguments: list[str], code: int, wanted: str) -> None:
    ran = run_gpuctl("top", *arguments, env=environment_of(cluster, tmp_path))
    assert (ran.returncode, ran.stdout) == (code, "") and wanted in ran.stderr


def test_a_user_sees_only_jobs_of_its_own(cluster: Cluster, idle: Api, tmp_path: Path) -> None:
    secret = tmp_path / "ada.token"
    secret.touch(0o600)
    ada = cluster.user("ada")
    secret.write_text(f"{ada.token}\n")
    idle.submit(SLEEP, 1, name="foreign", hold=True)
    ada.submit(SLEEP, 1, name="own", hold=True)
    text = told({**environment_of(cluster, tmp_path), "GPUCTL_TOKEN_FILE": str(secret)})
    assert names_in(text, "foreign", "own") == ["own"]
    with pytest.raises(Problem):
        ada.post("/v1/nodes/node0/drain")


def test_a_large_output_is_read_from_its_end(cluster: Cluster, idle: Api, tmp_path: Path) -> None:
    job = idle.submit([PYTHON, "-c", "for i in range(100000): print('line', i)"], 1)
    assert idle.wait(job)["state"] == "SUCCEEDED"
    text = told(environment_of(cluster, tmp_path), job)
    assert text.endswith("".join(f"line {number}\n" for number in range(99980, 100000)))
