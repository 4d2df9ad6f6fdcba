# SPDX-License-Identifier: Apache-2.0
"""Where the time of a start goes: moments in their order, on one node and on two, over restarts, and of nodes that say nothing of it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import PYTHON, ROOT, Cluster, Problem, eventually, run_gpuctl
from paper_node import PaperNode

#: What brings about what comes next, of a job on one node and of a gang on two.
ALONE = ["received", "placed", "queued", "started", "ordered", "begun", "ranks_started", "first_output", "ended", "settled", "visible"]
GANG = ["received", "placed", "queued", "ordered", "prepared", "started", "told", "begun", "ranks_started", "ended", "settled", "visible"]
CLIENT = {"PYTHONPATH": str(ROOT / "client" / "python" / "src")}
MARKS = """
    from serverless_gpu import runtime
    runtime.mark("imported")
    runtime.mark("first all-reduce")
    runtime.mark("imported")
    print("done")
"""


def timing_of(cluster: Cluster, job: str) -> Any:
    return cluster.api.get(f"/v1/jobs/{job}/timing")


def whole_timing(cluster: Cluster, job: str) -> Any:
    """That of the newest attempt of a job, once it has ended."""
    cluster.api.wait(job)
    return timing_of(cluster, job)["attempts"][0]


def in_order(moments: dict[str, float | None], names: list[str]) -> None:
    values = [moments[f"{name}_ms"] for name in names]
    assert None not in values, moments
    assert values == sorted(values), list(zip(names, values, strict=True))  # type: ignore[type-var]


def first_epoch(node: PaperNode) -> int:
    return int(node.until(lambda reply: reply["orders"], "to be told to run something")["orders"][0]["epoch"])


def report(node: PaperNode, epoch: int, kind: str, **more: Any) -> None:
    node.api.post("/v1/agent/report", {**node.who(), "epoch": epoch, "kind": kind, **more})


def held(folder: Path) -> list[str]:
    return ["sh", "-c", f"echo up; while ! test -e {folder}/gate; do sleep 0.01; done"]


def environment(cluster: Cluster, folder: Path) -> dict[str, str]:
    token = folder / "token"
    token.touch(0o600)
    token.write_text(cluster.admin_token + "\n")
    return {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token), "XDG_CACHE_HOME": str(folder / "cache")}


def test_moments_of_a_job_on_one_node_come_one_after_the_other(cluster: Cluster) -> None:
    attempt = whole_timing(cluster, cluster.api.submit(["echo", "hello"]))
    moments = attempt["moments"]
    in_order(moments, ALONE)
    assert moments["received_ms"] == 0 and moments["visible_ms"] < 60_000
    assert moments["ranks_started_ms"] <= moments["running_ms"] <= moments["visible_ms"]
    assert moments["queued_ms"] == moments["started_ms"], "one transaction"
    assert moments["prepared_ms"] is None and moments["told_ms"] is None
    (node,) = attempt["nodes"]
    assert [node[name] for name in ("ordered_ms", "begun_ms", "ended_ms")] == [
        moments[name] for name in ("ordered_ms", "begun_ms", "ended_ms")
    ]
    assert attempt["marks"] == []


def test_a_gang_on_two_nodes_has_the_moments_of_both(cluster: Cluster) -> None:
    attempt = whole_timing(cluster, cluster.api.submit(["sh", "-c", "echo $RANK"], gpus=4))
    moments, nodes = attempt["moments"], attempt["nodes"]
    in_order(moments, GANG)
    assert moments["running_ms"] >= moments["ranks_started_ms"]
    assert len(nodes) == 2
    for node in nodes:
        in_order(node, ["ordered", "prepared", "told", "begun", "ranks_started", "first_output", "ended"])
    for name in ("ordered", "told", "begun", "ranks_started", "ended"):
        assert moments[f"{name}_ms"] == max(node[f"{name}_ms"] for node in nodes), name
    assert moments["first_output_ms"] == min(node["first_output_ms"] for node in nodes)


def test_marks_of_ranks_are_shown_once_each_where_they_were(cluster: Cluster) -> None:
    attempt = whole_timing(cluster, cluster.api.submit([PYTHON, "-c", textwrap.dedent(MARKS)], gpus=4, env=CLIENT))
    assert sorted((mark["name"], mark["node"]) for mark in attempt["marks"]) == sorted(
        (name, node["node"]) for name in ("imported", "first all-reduce") for node in attempt["nodes"]
    )
    places = {node["node"]: node for node in attempt["nodes"]}
    for mark in attempt["marks"]:
        node = places[mark["node"]]
        assert node["ranks_started_ms"] < mark["at_ms"] < node["ended_ms"], mark
        assert mark["rank"] // 2 == node["node_rank"], mark
    assert [mark["at_ms"] for mark in attempt["marks"]] == sorted(mark["at_ms"] for mark in attempt["marks"])


def test_a_job_that_runs_shows_what_is_known_so_far(cluster: Cluster, tmp_path: Path) -> None:
    job = cluster.api.submit(held(tmp_path))
    moments = eventually(
        lambda: next((a["moments"] for a in timing_of(cluster, job)["attempts"] if a["moments"]["running_ms"]), None), "its running moment"
    )
    in_order(moments, ["received", "placed", "queued", "started", "ordered", "ranks_started", "running"])
    assert moments["ended_ms"] is None and moments["visible_ms"] is None
    (tmp_path / "gate").touch()
    later = whole_timing(cluster, job)["moments"]
    same = ["queued_ms", "placed_ms", "started_ms", "ordered_ms", "running_ms"]
    assert {name: later[name] for name in same} == {name: moments[name] for name in same}


@pytest.mark.parametrize("gpus", [1, 2])
def test_moments_outlive_the_controller_and_the_agents(make_cluster: Callable[..., Cluster], tmp_path: Path, gpus: int) -> None:
    cluster = make_cluster(1, 1)
    job = cluster.api.submit(held(tmp_path), gpus=gpus)
    cluster.wait_state(job, "RUNNING")
    known = eventually(
        lambda: next((a["moments"] for a in timing_of(cluster, job)["attempts"] if a["moments"]["running_ms"]), None), "its running moment"
    )
    for program in (*cluster.agents, cluster.controller):
        program.kill()
    cluster.start_controller()
    for agent in cluster.agents:
        agent.start()
    (tmp_path / "gate").touch()
    moments = whole_timing(cluster, job)["moments"]
    names = ["queued_ms", "placed_ms", "prepared_ms", "started_ms", "ordered_ms", "told_ms", "running_ms"]
    assert {name: moments[name] for name in names} == {name: known[name] for name in names}
    in_order(moments, [name for name in (ALONE if gpus == 1 else GANG) if not (gpus == 2 and name == "begun")])
    assert moments["first_output_ms"] is not None
    cluster.wait_ready()


def test_a_task_counts_from_the_submission_of_its_array(cluster: Cluster) -> None:
    job = cluster.api.submit(["true"], array={"tasks": 6})
    cluster.api.wait(job)
    assert timing_of(cluster, job)["attempts"] == [] and timing_of(cluster, job)["tasks"] == 6
    last = 0.0
    for task in range(6):
        moments = whole_timing(cluster, f"{job}.{task}")["moments"]
        in_order(moments, ["received", "placed", "started", "ordered", "ranks_started", "ended", "settled", "visible"])
        assert moments["queued_ms"] is not None and moments["placed_ms"] >= last
        last = moments["placed_ms"]


def test_each_attempt_has_moments_of_its_own(cluster: Cluster) -> None:
    job = cluster.api.submit(["sh", "-c", 'test "$GPUCTL_ATTEMPT" = 2'], retries=1)
    cluster.api.wait(job)
    second, first = timing_of(cluster, job)["attempts"]
    assert (first["attempt"], second["attempt"]) == (1, 2)
    assert first["moments"]["visible_ms"] > first["moments"]["ended_ms"]
    assert second["moments"]["placed_ms"] > first["moments"]["ended_ms"]
    assert second["moments"]["queued_ms"] == first["moments"]["queued_ms"]


def test_when_an_end_was_visible_is_known_until_the_controller_ends(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(1)
    job = cluster.api.submit(["true"])
    before = whole_timing(cluster, job)["moments"]
    cluster.controller.kill()
    cluster.start_controller()
    after = whole_timing(cluster, job)["moments"]
    assert before["visible_ms"] > before["settled_ms"]
    assert after == {**before, "visible_ms": None}


def test_a_node_that_says_nothing_of_time_is_as_good_as_any(make_cluster: Callable[..., Cluster]) -> None:
    """As an agent of the version before."""
    cluster = make_cluster()
    node = PaperNode(cluster, "paper", 1)
    try:
        job = cluster.api.submit(["true"])
        epoch = first_epoch(node)
        report(node, epoch, "running", at_ms=1)
        report(node, epoch, "exited", ranks=[{"rank": 0, "code": 0, "at_ms": 2}], flushed=True)
        attempt = whole_timing(cluster, job)
    finally:
        node.close()
    in_order(attempt["moments"], ["received", "placed", "started", "ordered", "running", "visible"])
    assert [attempt["moments"][f"{name}_ms"] for name in ("begun", "ranks_started", "first_output", "ended")] == [None] * 4
    assert attempt["nodes"][0]["start"] is None


def test_when_an_order_left_is_not_forgotten_when_others_follow(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster()
    node = PaperNode(cluster, "paper", 2)
    try:
        job = cluster.api.submit(["true"])
        reply = node.until(lambda reply: reply["orders"], "to be told to run something")
        other = cluster.api.submit(["true"])
        epochs = node.poll_after(reply["version"])["live"]
        report(node, reply["orders"][0]["epoch"], "running", at_ms=1)
        moments = eventually(
            lambda: next((a["moments"] for a in timing_of(cluster, job)["attempts"] if a["moments"]["running_ms"]), None), "its running"
        )
        for epoch in epochs:
            report(node, epoch, "exited", ranks=[{"rank": 0, "code": 0, "at_ms": 2}], flushed=True)
        for each in (job, other):
            assert cluster.api.wait(each)["state"] == "SUCCEEDED"
    finally:
        node.close()
    in_order(moments, ["received", "placed", "started", "ordered", "running"])


def test_how_a_node_started_its_ranks_is_shown(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster()
    node = PaperNode(cluster, "paper", 1)
    try:
        job = cluster.api.submit(["true"])
        epoch = first_epoch(node)
        with pytest.raises(Problem) as refused:
            report(node, epoch, "running", at_ms=1, start="x" * 301)
        assert refused.value.body["field"] == "start"
        report(node, epoch, "running", at_ms=1, start="cold: python3 is not kept warm", timing={"running_us": 1500})
        report(node, epoch, "exited", ranks=[{"rank": 0, "code": 0, "at_ms": 2}], flushed=True)
        attempt = whole_timing(cluster, job)
    finally:
        node.close()
    assert attempt["nodes"][0]["start"] == "cold: python3 is not kept warm"
    assert attempt["moments"]["ranks_started_ms"] == pytest.approx(attempt["moments"]["ordered_ms"] + 1.5, abs=0.0011)
    shown = run_gpuctl("get", job, "--timing", env=environment(cluster, tmp_path))
    assert shown.returncode == 0 and "cold: python3 is not kept warm" in shown.stdout, shown.stderr


def test_get_shows_a_table_with_a_bar_for_each_step(cluster: Cluster, tmp_path: Path) -> None:
    where = environment(cluster, tmp_path)
    job = cluster.api.submit([PYTHON, "-c", textwrap.dedent(MARKS)], env=CLIENT)
    whole_timing(cluster, job)
    shown = run_gpuctl("get", job, "--timing", env=where)
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    heads = [line[:15].strip() for line in lines]
    wanted = ["received", "placed", "queued", "started", "ordered", "begun", "ranks started", "imported", "ended", "results visible"]
    assert [head for head in heads if head in wanted] == wanted, shown.stdout
    assert "prepared" not in heads and "told" not in heads, shown.stdout
    rows = [line for line in lines if line.startswith(tuple(wanted))]
    assert len({line.index(" ms") for line in rows}) == 1, "columns are aligned"
    assert any("####" in line for line in rows)
    document = run_gpuctl("get", job, "--timing", "-o", "json", env=where)
    assert json.loads(document.stdout) == timing_of(cluster, job)
    wide = run_gpuctl("get", job, "--timing", "-o", "wide", env=where)
    assert "the submission was on disk" in wide.stdout and "the submission was on disk" not in shown.stdout


def test_a_job_that_waits_and_an_array_say_where_to_look(cluster: Cluster, tmp_path: Path) -> None:
    where = environment(cluster, tmp_path)
    waits = cluster.api.submit(["true"], hold=True)
    shown = run_gpuctl("get", waits, "--timing", env=where)
    assert shown.returncode == 0 and "no attempt yet" in shown.stdout and "gpuctl explain" in shown.stdout
    array = cluster.api.submit(["true"], array={"tasks": 2})
    shown = run_gpuctl("get", array, "--timing", env=where)
    assert shown.returncode == 0 and "its tasks have" in shown.stdout
    wrong = run_gpuctl("get", "--timing", env=where)
    assert wrong.returncode == 2 and "ID" in wrong.stderr
    with pytest.raises(Problem) as nothing:
        timing_of(cluster, "0" * 16)
    assert nothing.value.status == 404
