# SPDX-License-Identifier: Apache-2.0
"""What a person sees in a cell, by a real kernel against real programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Cluster
from kernel import Notebook, displays, errors, streams

Open = Callable[..., Notebook]

IMPORT = "from serverless_gpu import distributed, runtime\n"

#: For functions that go on when the test says so.
UNTIL = """
def until(path):
    import os, time
    deadline = time.monotonic() + 60
    while not os.path.exists(path):
        assert time.monotonic() < deadline, path
        time.sleep(0.01)
"""

NO_THREADS = """
import threading, time
deadline = time.monotonic() + 30
while any(thread.name.startswith("gpuctl") for thread in threading.enumerate()):
    assert time.monotonic() < deadline, threading.enumerate()
    time.sleep(0.02)
"""


def job_of(html: str) -> str:
    found = re.search(r"gpuctl get ([a-z2-7]{16})<", html)
    assert found, html
    return found[1]


def when_shown(notebook: Notebook, act: Callable[[], Any], *words: str) -> None:
    """Act once, when the card of the running cell has all the words."""
    done: list[str] = []

    def look(message: dict[str, Any]) -> None:
        shown = notebook.displayed()[-1:]
        if shown and not done and all(word in shown[0] for word in words):
            done.append(shown[0])
            act()

    notebook.on_message = look


# --- the card ---


def test_a_call_shows_one_card_that_is_updated_while_the_job_runs(cluster: Cluster, open_notebook: Open, tmp_path: Path) -> None:
    go = tmp_path / "go"
    notebook = open_notebook(
        cluster,
        IMPORT
        + UNTIL
        + f"""
@distributed(gpus=2, remote=True, name="learn")
def work(go):
    rank = runtime.get_global_rank()
    for step in range(10):
        runtime.log_metrics({{"loss": 1 / (step + 1) + rank, "a<b>": step}}, step=step)
    runtime.progress(0.5, "half <i>way</i>")
    print("rank", rank, "waits")
    until(go)
    runtime.progress(1)
    return rank

work.distributed({str(go)!r})
""",
    )
    when_shown(notebook, go.touch, "RUNNING", "50% half", "0.1</b>", "<svg")
    outputs = notebook.run(0)
    assert not errors(outputs), errors(outputs)
    assert go.exists(), notebook.displayed()
    kinds = [message["msg_type"] for message in notebook.messages]
    assert kinds.count("display_data") == 1 and kinds.count("update_display_data") >= 1
    first = notebook.messages[kinds.index("display_data")]["content"]["data"]  # all that there is where updates are ignored
    assert "</span> <b>learn</b>" in first["text/html"]
    assert re.search(r"(QUEUED|PLACED|STAGING|RUNNING) .*gpuctl get", first["text/plain"], re.DOTALL)
    assert kinds.index("display_data") < kinds.index("stream")
    (html,) = displays(outputs)
    view = cluster.api.job(job_of(html))
    assert view["name"] == "learn" and "learn" in html and "SUCCEEDED" in html and cluster.url in html and "after " in html
    assert "node0" in html and "100%" in html and "gpuctl logs" in html
    assert "half &lt;i&gt;way" in "".join(notebook.displayed()) and "a&lt;b&gt;" in html
    assert not any(word in shown for shown in notebook.displayed() for word in ("<script", "<style", "<i>", "<b>b", "a<b>"))
    plain = outputs[0].data["text/plain"]
    assert "SUCCEEDED" in plain and "loss 0.1" in plain and "<div" not in plain
    assert sorted(streams(outputs).splitlines()) == ["[0] rank 0 waits", "[1] rank 1 waits"]
    assert outputs[-1].data["text/plain"] == "[0, 1]"


def test_updates_are_few_however_often_progress_is_told(cluster: Cluster, open_notebook: Open) -> None:
    notebook = open_notebook(
        cluster,
        IMPORT
        + """
import time
@distributed(gpus=1, remote=True)
def busy():
    for step in range(3000):
        runtime.progress(step / 3000)
        runtime.log_metric("step", step, step=step)
began = time.monotonic()
busy.distributed()
time.monotonic() - began
""",
    )
    outputs = notebook.run(0)
    took = float(outputs[-1].data["text/plain"])
    assert 1 <= len(notebook.displayed()) <= 4 * took + 3, (took, len(notebook.displayed()))
    assert "2999" in displays(outputs)[0] and len(displays(outputs)[0]) < 8000


def test_a_job_that_waits_shows_why_and_its_place_in_the_queue(cluster: Cluster, open_notebook: Open) -> None:
    api = cluster.api
    before = [api.submit(["sleep", "600"], gpus=4), api.submit(["sleep", "600"], gpus=4)]
    cluster.wait_state(before[0], "RUNNING")

    def make_room() -> None:
        for job in before[::-1]:
            api.post(f"/v1/jobs/{job}/cancel")

    notebook = open_notebook(cluster, IMPORT + "distributed(gpus=3, remote=True)(runtime.get_global_rank).distributed()")
    when_shown(notebook, make_room, "QUEUED", "needs 3", "1 job is ahead")
    outputs = notebook.run(0)
    assert outputs[-1].data["text/plain"] == "[0, 1, 2]", outputs
    assert "SUCCEEDED" in displays(outputs)[0] and "needs 3" not in displays(outputs)[0]
    assert streams(outputs, "stderr") == ""


# --- failures ---


def test_the_error_shows_the_traceback_of_the_rank_once_with_the_lines_of_the_cell(cluster: Cluster, open_notebook: Open) -> None:
    notebook = open_notebook(
        cluster,
        IMPORT
        + """
@distributed(gpus=2, remote=True)
def train():
    def step():
        raise ValueError("the loss is not finite")
    if runtime.get_global_rank() == 1:
        step()

train.distributed()
""",
        NO_THREADS,
    )
    outputs = notebook.run(0)
    (error,) = errors(outputs)
    text = "\n".join(error.traceback)
    assert error.ename == "JobFailed"
    assert text.count("Traceback (most recent call last)") == 1, text
    assert text.count('raise ValueError("the loss is not finite")') == 1 and "line 6, in step" in text
    assert "train.distributed()" in text and "Rank 1 on node node0" in text and "Cell In[1], line 10" in text
    assert "call.py" not in text and "launcher.py" not in text and "IPython" not in text
    assert text.splitlines()[-1].startswith("JobFailed: job ")
    (html,) = displays(outputs)
    assert "FAILED" in html and "ValueError: the loss is not finite" in html
    assert not errors(notebook.run(1))


# --- interrupts ---


def test_an_interrupt_cancels_the_job_and_the_cell_can_be_run_again(cluster: Cluster, open_notebook: Open, tmp_path: Path) -> None:
    go = tmp_path / "go"
    notebook = open_notebook(
        cluster,
        IMPORT
        + UNTIL
        + f"""
@distributed(gpus=2, remote=True)
def work():
    print("begun")
    until({str(go)!r})
    return 7

work.distributed()
""",
        NO_THREADS,
    )
    when_shown(notebook, notebook.interrupt, "RUNNING")
    outputs = notebook.run(0)
    (error,) = errors(outputs)
    assert error.ename == "KeyboardInterrupt"
    (html,) = displays(outputs)
    first = job_of(html)
    assert cluster.api.job(first)["state"] == "CANCELED" and "CANCELED" in html and "not followed" not in html
    assert f"job {first} is CANCELED" in streams(outputs, "stderr")
    assert not errors(notebook.run(1))

    notebook.on_message = lambda message: None
    go.touch()
    outputs = notebook.run(0)
    assert outputs[-1].data["text/plain"] == "[7, 7]", outputs
    (html,) = displays(outputs)
    assert job_of(html) != first and first not in html and "SUCCEEDED" in html
    assert streams(outputs) == "[0] begun\n[1] begun\n" or streams(outputs) == "[1] begun\n[0] begun\n"
    assert not errors(notebook.run(1))


def test_a_second_interrupt_leaves_the_job_and_the_card_says_so(cluster: Cluster, open_notebook: Open, tmp_path: Path) -> None:
    go = tmp_path / "go"
    notebook = open_notebook(
        cluster,
        IMPORT
        + UNTIL
        + f"""
@distributed(gpus=1, remote=True)
def stubborn():
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    runtime.progress(0.1, "deaf")
    until({str(go)!r})

stubborn.distributed()
""",
        NO_THREADS,
    )
    seen: list[str] = []

    def look(message: dict[str, Any]) -> None:
        shown = (notebook.displayed()[-1:] or [""])[0]
        if not seen and "deaf" in shown:
            seen.append("shown")
            notebook.interrupt()
        elif seen == ["shown"] and "not followed" in shown:
            seen.append("left")
        elif seen == ["shown", "left"] and "not followed" not in shown:  # it waits for the end of the job
            seen.append("waits")
            notebook.interrupt()

    notebook.on_message = look
    outputs = notebook.run(0)
    assert errors(outputs)[0].ename == "KeyboardInterrupt" and len(seen) == 3
    (html,) = displays(outputs)
    assert "not followed any more" in html and "left job" in streams(outputs, "stderr")
    go.touch()
    assert cluster.api.wait(job_of(html))["state"] == "CANCELED"
    assert not errors(notebook.run(1))


# --- many ranks ---


def test_of_many_ranks_the_first_is_shown_live_and_the_others_are_folded(large_cluster: Cluster, open_notebook: Open) -> None:
    notebook = open_notebook(
        large_cluster,
        IMPORT
        + """
@distributed(gpus=16, remote=True)
def speak():
    for line in range(300):
        print(f"<u>line {line} of {runtime.get_global_rank()}")
    return runtime.get_global_rank()

speak.distributed() == list(range(16))
""",
    )
    outputs = notebook.run(0)
    assert outputs[-1].data["text/plain"] == "True", outputs
    assert streams(outputs) == "".join(f"[0] <u>line {line} of 0\n" for line in range(300))
    assert [output.output_type for output in outputs[:3]] == ["display_data", "display_data", "stream"]
    _, folded = displays(outputs)
    assert folded.count("<details>") == 15 and "<details open" not in folded and "<u>" not in folded
    for rank in range(1, 16):
        assert f"&lt;u&gt;line 100 of {rank}\n" in folded and f"line 99 of {rank}\n" not in folded and f"line 299 of {rank}<" in folded
        assert f"rank {rank} <" in folded
    assert folded.count("node1") == 8


def test_the_rank_that_failed_is_unfolded_and_marked(large_cluster: Cluster, open_notebook: Open) -> None:
    notebook = open_notebook(
        large_cluster,
        IMPORT
        + """
@distributed(gpus=16, remote=True)
def work():
    print("here", flush=True)
    if runtime.get_global_rank() == 11:
        raise ValueError("eleven")
    import time
    time.sleep(600)

work.distributed()
""",
    )
    outputs = notebook.run(0)
    assert errors(outputs)[0].ename == "JobFailed"
    card, folded = displays(outputs)
    assert "FAILED" in card and folded.count("<details open") == 1
    opened = folded[folded.index("<details open") : folded.index("</details>")]
    assert "✗ rank 11 failed" in opened and "node1" in opened and "ValueError: eleven" in opened
    assert "ValueError" not in streams(outputs, "stderr")


# --- several at a time ---


@pytest.mark.parametrize("workers", [1, 4])
def test_calls_on_several_threads_have_a_card_each(cluster: Cluster, open_notebook: Open, workers: int) -> None:
    notebook = open_notebook(
        cluster,
        IMPORT
        + f"""
from concurrent.futures import ThreadPoolExecutor
@distributed(gpus=1, remote=True)
def square(n):
    runtime.log_metric("square", n * n)
    return n * n
with ThreadPoolExecutor({workers}) as pool:
    values = list(pool.map(square.distributed, range(5)))
values
""",
        NO_THREADS,
    )
    outputs = notebook.run(0)
    assert outputs[-1].data["text/plain"] == "[[0], [1], [4], [9], [16]]", outputs
    cards = displays(outputs)
    assert len({job_of(html) for html in cards}) == 5 == len(cards) and all("SUCCEEDED" in html for html in cards)
    assert not errors(notebook.run(1))
