# SPDX-License-Identifier: Apache-2.0
"""What `gpuctl logs` chooses by time, and how it shows the tasks of an array."""

from __future__ import annotations

import datetime
import re
import subprocess
from pathlib import Path

import pytest

from harness import GPUCTL, Cluster, eventually, run_gpuctl

STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
TWICE = "echo early; touch {folder}/said; while ! test -e {folder}/gate; do sleep 0.01; done; echo late"


def admin(cluster: Cluster) -> dict[str, str]:
    return {"GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token"), "GPUCTL_URL": cluster.url}


def logs(cluster: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    return run_gpuctl("logs", *words, env=admin(cluster))


def moment_between(cluster: Cluster, folder: Path) -> tuple[str, str]:
    """A job that has said "early" before a moment and "late" after it, and the moment."""
    job = cluster.api.submit(["sh", "-c", TWICE.format(folder=folder)])
    (line,) = eventually(lambda: logs(cluster, job, "--timestamps").stdout.splitlines(), "the first line")
    came = datetime.datetime.fromisoformat(line.split(" ")[0])
    (folder / "gate").touch()
    cluster.api.wait(job)
    return job, (came + datetime.timedelta(milliseconds=1)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_since_leaves_out_what_came_before(cluster: Cluster, tmp_path: Path) -> None:
    job, moment = moment_between(cluster, tmp_path)
    assert logs(cluster, job).stdout == logs(cluster, job, "--since", "1h").stdout == "early\nlate\n"
    assert logs(cluster, job, "--since", moment).stdout == logs(cluster, job, "--since", moment, "--follow").stdout == "late\n"
    assert logs(cluster, job, "--since", moment, "--rank", "0", "--stream", "stdout").stdout == "late\n"
    assert logs(cluster, job, "--since", moment, "--grep", "early|late").stdout == "late\n"
    ahead = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)).isoformat()
    assert logs(cluster, job, "--since", ahead).stdout == ""


def test_timestamps_begin_lines_of_output_and_of_matches(cluster: Cluster, tmp_path: Path) -> None:
    job, moment = moment_between(cluster, tmp_path)
    for words in ([], ["--follow"], ["--grep", "."], ["--tail", "2"]):
        first, second = logs(cluster, job, "-t", *words).stdout.splitlines()
        assert re.fullmatch(f"{STAMP} early", first) and re.fullmatch(f"{STAMP} late", second)
        assert first[:24] < moment <= second[:24]
    both = cluster.api.submit(["sh", "-c", "echo of $RANK"], gpus=2)
    cluster.api.wait(both)
    lines = logs(cluster, both, "--timestamps").stdout.splitlines()
    assert sorted(line[25:] for line in lines) == ["[0] of 0", "[1] of 1"]


@pytest.mark.parametrize("since", ["yesterday", "-5m", "2026-13-01T00:00:00Z"])
def test_a_time_that_is_none_is_refused_in_one_line(cluster: Cluster, since: str) -> None:
    refused = logs(cluster, "aaaaaaaaaaaaaaaa", f"--since={since}")
    assert refused.returncode == 2 and "10m" in refused.stderr and "neither a duration nor a moment" in refused.stderr


def test_the_output_of_an_array_is_that_of_its_tasks_with_their_numbers(cluster: Cluster) -> None:
    array = cluster.api.submit(["sh", "-c", "echo one of {task}; echo two of {task}; echo bad {task} >&2"], array={"tasks": 3})
    cluster.api.wait(array)
    shown = logs(cluster, array)
    assert shown.stdout == "".join(f"[{task}] one of {task}\n[{task}] two of {task}\n" for task in range(3))
    assert shown.stderr == "[0] bad 0\n[1] bad 1\n[2] bad 2\n"
    assert logs(cluster, array, "--tail", "1", "--stream", "stdout").stdout == "[0] two of 0\n[1] two of 1\n[2] two of 2\n"
    assert logs(cluster, array, "--grep", "one of [02]").stdout == "[0] one of 0\n[2] one of 2\n"
    assert logs(cluster, array, "--grep", "nothing of it").returncode == 1
    assert sorted(logs(cluster, array, "--follow").stdout.splitlines()) == sorted(shown.stdout.splitlines())
    refused = logs(cluster, array, "--attempt", "1")
    assert refused.returncode == 2 and "name a task" in refused.stderr


def test_lines_of_tasks_with_several_ranks_name_both(cluster: Cluster) -> None:
    array = cluster.api.submit(["sh", "-c", "echo rank $RANK"], gpus=2, array={"tasks": 2})
    cluster.api.wait(array)
    assert sorted(logs(cluster, array).stdout.splitlines()) == [f"[{task}:{rank}] rank {rank}" for task in (0, 1) for rank in (0, 1)]
    assert logs(cluster, array, "--rank", "1").stdout == "[0] rank 1\n[1] rank 1\n"


def test_following_an_array_shows_each_task_as_it_comes(cluster: Cluster, tmp_path: Path) -> None:
    """Ten tasks, four at a time: those that are placed later are found, too."""
    script = f"echo task {{task}} begins; while ! test -e {tmp_path}/gate; do sleep 0.01; done; echo task {{task}} ends"
    array = cluster.api.submit(["sh", "-c", script], array={"tasks": 10})
    with subprocess.Popen([str(GPUCTL), "logs", "-f", array], env=admin(cluster), stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        begun = {follower.stdout.readline() for _ in range(4)}
        assert begun == {f"[{task}] task {task} begins\n" for task in range(4)}
        (tmp_path / "gate").touch()
        rest = follower.stdout.read().splitlines()
    assert follower.returncode == 0
    assert len(rest) == 16 and {line.split("] ")[1] for line in rest if "ends" in line} == {f"task {task} ends" for task in range(10)}


def test_an_array_with_more_tasks_than_streams_is_followed_to_its_end(cluster: Cluster) -> None:
    array = cluster.api.submit(["echo", "{task}"], array={"tasks": 70})
    assert sorted(logs(cluster, array, "--follow").stdout.splitlines()) == sorted(f"[{task}] {task}" for task in range(70))
