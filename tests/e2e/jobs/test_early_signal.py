# SPDX-License-Identifier: Apache-2.0
"""Programs that save their work before they are ended: on a signal before the time limit, when they give way, and what they gain by saying
that they have saved. A grace of ten minutes is more than any test may take.
"""

from __future__ import annotations

import os
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import PATIENCE, PYTHON, ROOT, Cluster, Problem, eventually, run_gpuctl
from paper_controller import Node, Paper

PROGRAM = Path(__file__).parents[1] / "programs" / "saver.py"
FILES = [{"path": "saver.py", "text": PROGRAM.read_text()}]
LONG_GRACE_S = 600
#: The warning comes three seconds after the start, and a minute before the limit.
SOON: dict[str, Any] = {"time_limit_s": 63, "early_signal": {"signal": "USR1", "before_s": 60}}


def saver(cluster: Cluster, mode: str, **spec: Any) -> str:
    return cluster.api.submit(["python", "-S", "saver.py", mode], files=FILES, **spec)


def wait_output(cluster: Cluster, job: str, text: str, rank: int = 0) -> None:
    eventually(lambda: text in cluster.api.log(job, rank), f"{text!r} from rank {rank} of {job}")


def attempt_of(cluster: Cluster, job: str) -> Any:
    return cluster.api.get(f"/v1/jobs/{job}/attempts")["attempts"][0]


def environment(cluster: Cluster, folder: Path) -> dict[str, str]:
    token = folder / "token"
    token.touch(0o600)
    token.write_text(cluster.admin_token + "\n")
    return {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token), "XDG_CACHE_HOME": str(folder / "cache")}


def test_a_program_that_saves_on_its_signal_and_ends_before_its_limit_has_succeeded(cluster: Cluster, tmp_path: Path) -> None:
    ran = run_gpuctl(
        "run", "--time", "63s", "--early-signal", "USR1@1m", "--", PYTHON, "-S", str(PROGRAM), "end", env=environment(cluster, tmp_path)
    )
    assert ran.returncode == 0 and ran.stdout == "up\nsaved on SIGUSR1\n", ran.stderr
    job = cluster.api.get("/v1/jobs?limit=1")["jobs"][0]["id"]
    assert cluster.api.job(job)["state"] == "SUCCEEDED"
    history = cluster.api.get(f"/v1/jobs/{job}/events")["events"]
    assert [row["kind"] for row in history] == ["submitted", "placed", "started", "running", "warned", "succeeded"]
    assert history[4]["detail"] == {"signal": "USR1", "reason": "1 min before its time limit of 1 min 03 s"}
    assert attempt_of(cluster, job)["warned_at"] == history[4]["at"]
    assert attempt_of(cluster, job)["checkpoint_at"] is None


def test_every_rank_of_a_gang_over_two_nodes_is_warned(cluster: Cluster) -> None:
    job = saver(cluster, "end", gpus=4, **SOON)
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert [cluster.api.log(job, rank) for rank in range(4)] == ["up\nsaved on SIGUSR1\n"] * 4


def test_a_program_that_does_not_listen_for_its_signal_is_ended_by_it_and_the_reason_names_it(cluster: Cluster) -> None:
    view = cluster.api.wait(cluster.api.submit(["sleep", "1000"], **SOON))
    assert (view["state"], view["exit_code"]) == ("FAILED", 138)
    assert "SIGUSR1" in view["reason"]


def test_who_has_saved_is_not_waited_for(cluster: Cluster) -> None:
    job = saver(cluster, "acknowledge", gpus=2, grace_s=LONG_GRACE_S)
    for rank in range(2):
        wait_output(cluster, job, "up", rank)
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    assert cluster.api.wait(job)["state"] == "CANCELED"
    assert cluster.api.log(job) == "up\nsaved on SIGTERM\n"
    attempt = attempt_of(cluster, job)
    assert attempt["started_at"] < attempt["checkpoint_at"] <= attempt["ended_at"]


def test_neither_a_new_agent_nor_a_new_controller_warns_again(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    job = saver(cluster, "stay", **SOON)
    wait_output(cluster, job, "saved on SIGUSR1")
    cluster.controller.kill()
    cluster.agents[0].kill()
    cluster.start_controller()
    cluster.agents[0].start()
    eventually(lambda: cluster.agents[0].said().count("attempt warned") == 2, "the new agent to tell the shim, which knows")
    cluster.wait_state(job, "RUNNING")
    assert cluster.api.events(job).count("warned") == 1
    job_again = cluster.api.post(f"/v1/jobs/{job}/cancel")["id"]
    wait_output(cluster, job_again, "saved on SIGTERM")
    assert cluster.api.log(job) == "up\nsaved on SIGUSR1\nsaved on SIGTERM\n"
    os.kill(int(pid_of(cluster, "saver.py")), 9)
    assert cluster.api.wait(job)["state"] == "CANCELED"


def pid_of(cluster: Cluster, word: str) -> str:
    """The process that runs in a folder of this cluster."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if word in (entry / "cmdline").read_text() and os.readlink(entry / "cwd").startswith(str(cluster.folder)):
                return entry.name
        except OSError:
            continue
    raise AssertionError(f"no process of {word}")


def test_a_function_saves_and_says_so(cluster: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "notebook.py"
    script.write_text(
        textwrap.dedent("""
        import signal, threading
        from serverless_gpu import distributed, runtime

        @distributed(gpus=2, remote=True, timeout=65, early_signal="USR1@60", requirements=None, working_dir=None)
        def train():
            asked = []
            signal.signal(signal.SIGUSR1, lambda number, frame: asked.append(number))
            while not asked:
                signal.pause()
            runtime.checkpointed(step=7)
            return runtime.get_global_rank()

        print("values", train.distributed())
    """)
    )
    variables = {**os.environ, **environment(cluster, tmp_path), "PYTHONPATH": str(ROOT / "client" / "python" / "src")}
    ran = subprocess.run([PYTHON, str(script)], env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=2 * PATIENCE)
    assert ran.returncode == 0 and "values [0, 1]" in ran.stdout, ran.stdout + ran.stderr
    job = cluster.api.get("/v1/jobs?limit=1")["jobs"][0]["id"]
    assert attempt_of(cluster, job)["checkpoint_at"] is not None


@pytest.fixture
def paper() -> Iterator[Paper]:
    made = Paper()
    yield made
    made.stop()


@pytest.fixture
def node(tmp_path: Path, paper: Paper) -> Iterator[Node]:
    made = Node(tmp_path, paper)
    yield made
    made.stop()


EPOCH = 2**32 + 1


def order(**more: Any) -> dict[str, Any]:
    return {
        "epoch": EPOCH, "job_id": "j" * 16, "attempt": 1, "node_rank": 0, "nodes": 1, "first_rank": 0, "local_ranks": 1, "world": 1,
        "devices": [0], **more,
    }  # fmt: skip


def give_way(node: Node, paper: Paper, mode: str, grace_ms: int) -> tuple[str, dict[str, Any]]:
    """Run the program, tell it to give way; its output, and the exit that is reported."""
    spec = {"gpus": 1, "command": ["python", "-S", "saver.py", mode], "files": FILES}
    paper.change(live=[EPOCH], orders=[order(phase="run", spec=spec)])
    out = node.folder / "state" / "attempts" / str(EPOCH) / "0.stdout"
    eventually(lambda: out.exists() and "up" in out.read_text(), "the program to listen")
    paper.change(orders=[order(phase="stop", cause="PREEMPTED", signal="USR1", grace_ms=grace_ms)])
    found = eventually(lambda: [row for row in paper.reports if row["kind"] == "exited"], "the exit")
    return out.read_text(), found[0]


@pytest.mark.parametrize(
    ("mode", "grace_ms", "output", "code"),
    [
        ("end", LONG_GRACE_S * 1000, "up\nsaved on SIGUSR1\n", 0),
        ("acknowledge", LONG_GRACE_S * 1000, "up\nsaved on SIGUSR1\nsaved on SIGTERM\n", 137),
        ("stay", 200, "up\nsaved on SIGUSR1\nsaved on SIGTERM\n", 137),
    ],
)
def test_who_gives_way_hears_its_signal_then_term_then_kill(
    paper: Paper, node: Node, mode: str, grace_ms: int, output: str, code: int
) -> None:
    said, report = give_way(node, paper, mode, grace_ms)
    assert said == output
    assert (report["cause"], report["ranks"][0]["code"]) == ("PREEMPTED", code)
    assert (report["checkpoint_ms"] > 0) == (mode == "acknowledge")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--early-signal", "KILL@60"], "early signal KILL@60: the signal must be one of: USR1 USR2 TERM INT HUP CONT URG"),
        (["--early-signal", "USR1@soon"], "early signal USR1@soon: the time before the limit must be a duration above 0"),
        (["--early-signal", "USR1@2h", "--time", "1h"], "early_signal.before_s is 7200, which is not less than time_limit_s, 3600"),
    ],
)
def test_a_wrong_option_is_refused_with_what_would_do(cluster: Cluster, tmp_path: Path, arguments: list[str], words: str) -> None:
    ran = run_gpuctl("submit", *arguments, "--", "true", env=environment(cluster, tmp_path))
    assert ran.returncode != 0 and words in ran.stderr, ran.stderr


def test_a_wrong_field_is_named(cluster: Cluster) -> None:
    with pytest.raises(Problem) as caught:
        cluster.api.submit(["true"], early_signal={"signal": "STOP"})
    assert (caught.value.status, caught.value.field) == (422, "early_signal.signal")
