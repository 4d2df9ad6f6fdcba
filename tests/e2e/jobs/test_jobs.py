# SPDX-License-Identifier: Apache-2.0
"""Jobs from submission to their end, on a controller and two nodes of two CPU slots each."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

from harness import Cluster, Problem, eventually

MEET = (Path(__file__).parents[1] / "programs" / "meet.py").read_text()
HANG = ["python", "-S", "-c", "import signal; print('up', flush=True); signal.pause()"]
STUBBORN = ["python", "-S", "-c", "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True)\nwhile 1: signal.pause()"]


def gang(cluster: Cluster, *arguments: str, gpus: int = 4, **spec: Any) -> str:
    files = [{"path": "meet.py", "text": MEET}]
    return cluster.api.submit(["python", "-S", "meet.py", *arguments], gpus=gpus, files=files, **spec)


def wait_output(cluster: Cluster, job: str, text: str, rank: int = 0) -> None:
    eventually(lambda: text in cluster.api.log(job, rank), f"{text!r} from rank {rank}")


def test_one_rank_runs_and_its_output_and_exit_are_kept(cluster: Cluster) -> None:
    job = cluster.api.submit(["sh", "-c", "echo out; echo err >&2"])
    view = cluster.api.wait(job)
    assert (view["state"], view["exit_code"]) == ("SUCCEEDED", 0)
    assert cluster.api.log(job) == "out\n"
    assert cluster.api.log(job, stream="stderr") == "err\n"
    assert cluster.api.events(job) == ["submitted", "placed", "started", "running", "succeeded"]


def test_an_exit_code_of_the_program_is_the_jobs(cluster: Cluster) -> None:
    view = cluster.api.wait(cluster.api.submit(["sh", "-c", "exit 3"]))
    assert (view["state"], view["exit_code"], view["failed_rank"]) == ("FAILED", 3, 0)
    assert "rank 0" in view["reason"] and "3" in view["reason"]


def test_a_signal_is_128_plus_its_number_and_named(cluster: Cluster) -> None:
    view = cluster.api.wait(cluster.api.submit(["sh", "-c", "kill -SEGV $$"]))
    assert (view["state"], view["exit_code"]) == ("FAILED", 139)
    assert "SIGSEGV" in view["reason"]


def test_a_command_that_is_not_there_fails_with_127_and_its_name(cluster: Cluster) -> None:
    view = cluster.api.wait(cluster.api.submit(["no-such-program-here"], retries=0))
    assert (view["state"], view["exit_code"]) == ("FAILED", 127)
    assert "no-such-program-here" in view["reason"]


def test_a_gang_over_two_nodes_meets_at_its_master_port(cluster: Cluster) -> None:
    job = gang(cluster)
    view = cluster.api.wait(job)
    assert view["state"] == "SUCCEEDED", view
    assert {node["node"] for node in view["nodes"]} == {"node0", "node1"}
    for rank in range(4):
        assert f"rank {rank} of 4 met on node{rank // 2}" in cluster.api.log(job, rank)


def test_a_gang_that_fits_on_one_node_stays_on_one(cluster: Cluster) -> None:
    job = gang(cluster, gpus=2)
    view = cluster.api.wait(job)
    assert view["state"] == "SUCCEEDED", view
    assert len(view["nodes"]) == 1


def test_the_first_failing_rank_is_named_and_the_whole_gang_is_gone(cluster: Cluster) -> None:
    job = gang(cluster, "fail", "2", "7")
    view = cluster.api.wait(job)
    assert (view["state"], view["exit_code"], view["failed_rank"], view["failed_node"]) == ("FAILED", 7, 2, "node1")
    assert "about to fail" in cluster.api.log(job, 2, "stderr")
    attempt = cluster.api.get(f"/v1/jobs/{job}/attempts")["attempts"][0]
    assert attempt["state"] == "ENDED"


def test_node_mode_starts_one_process_a_node_with_the_node_contract(cluster: Cluster) -> None:
    job = cluster.api.submit(
        ["sh", "-c", 'echo "$RANK of $WORLD_SIZE, $NPROC_PER_NODE each, local ${LOCAL_RANK-none}"'], gpus=4, launch_mode="node"
    )
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert cluster.api.log(job, 0) == "0 of 2, 2 each, local none\n"
    assert cluster.api.log(job, 1) == "1 of 2, 2 each, local none\n"


def test_a_gang_has_as_many_nodes_as_it_asks_for(cluster: Cluster) -> None:
    """P12: one master and one worker got one node, where it had room for both."""
    job = cluster.api.submit(["sh", "-c", 'echo "$RANK of $WORLD_SIZE, $NPROC_PER_NODE each"'], gpus=2, nodes=2, launch_mode="node")
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert [cluster.api.log(job, rank) for rank in (0, 1)] == ["0 of 2, 1 each\n", "1 of 2, 1 each\n"]
    with pytest.raises(Problem) as problem:
        cluster.api.submit(["true"], gpus=3, nodes=3)
    assert problem.value.code == "not_enough_gpus" and "3 GPUs on 3 nodes" in problem.value.body["detail"]


def test_process_mode_sets_torchruns_variables(cluster: Cluster) -> None:
    names = ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "NODE_RANK", "ROLE_RANK"]
    names += ["TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RESTART_COUNT", "ACCELERATE_USE_CPU"]
    job = cluster.api.submit(["sh", "-c", "echo " + " ".join(f"${name}" for name in names)], gpus=4)
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert cluster.api.log(job, 3).split() == ["3", "4", "1", "2", "1", "2", "1", "3", job, "False", "0", "true"]


def test_cancel_while_queued_means_that_it_never_starts(cluster: Cluster) -> None:
    blocker = gang(cluster, "hang")
    cluster.wait_state(blocker, "RUNNING")
    job = cluster.api.submit(["true"])
    assert cluster.api.job(job)["state"] == "QUEUED"
    assert "free" in cluster.api.job(job)["reason"]
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    assert cluster.api.job(job)["state"] == "CANCELED"
    cluster.api.post(f"/v1/jobs/{blocker}/cancel")
    assert cluster.api.wait(blocker)["state"] == "CANCELED"
    assert cluster.api.job(job)["attempt"] == 0


def test_cancel_right_after_submit_ends_canceled_whatever_it_meets(cluster: Cluster) -> None:
    for _ in range(10):
        job = gang(cluster, "hang")
        cluster.api.post(f"/v1/jobs/{job}/cancel")
        view = cluster.api.wait(job)
        assert (view["state"], view["exit_code"]) == ("CANCELED", 130)


def test_cancel_while_running_terminates_and_keeps_the_output(cluster: Cluster) -> None:
    job = cluster.api.submit(HANG)
    wait_output(cluster, job, "up")
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    view = cluster.api.wait(job)
    assert (view["state"], view["exit_code"]) == ("CANCELED", 130)
    assert cluster.api.log(job) == "up\n"


def test_cancel_of_a_program_that_ignores_term_kills_it_after_the_grace(cluster: Cluster) -> None:
    job = cluster.api.submit(STUBBORN, grace_s=0.2)
    wait_output(cluster, job, "up")
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    assert cluster.api.wait(job)["state"] == "CANCELED"


def test_cancel_again_is_the_same_and_cancel_after_success_is_a_conflict(cluster: Cluster) -> None:
    job = cluster.api.submit(HANG)
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    cluster.api.wait(job)
    assert cluster.api.post(f"/v1/jobs/{job}/cancel")["state"] == "CANCELED"
    done = cluster.api.submit(["true"])
    cluster.api.wait(done)
    with pytest.raises(Problem) as caught:
        cluster.api.post(f"/v1/jobs/{done}/cancel")
    assert (caught.value.status, caught.value.code) == (409, "conflict")


def test_the_time_limit_ends_the_job_with_124(cluster: Cluster) -> None:
    job = cluster.api.submit(HANG, time_limit_s=0.5, grace_s=0.2)
    view = cluster.api.wait(job)
    assert (view["state"], view["exit_code"]) == ("TIMED_OUT", 124)


def test_a_retry_runs_again_and_counts_restarts(cluster: Cluster, tmp_path: Path) -> None:
    script = f'echo "restart $TORCHELASTIC_RESTART_COUNT"; test -e {tmp_path}/again || {{ touch {tmp_path}/again; exit 1; }}'
    job = cluster.api.submit(["sh", "-c", script], retries=1)
    view = cluster.api.wait(job)
    assert (view["state"], view["attempt"]) == ("SUCCEEDED", 2)
    assert cluster.api.log(job) == "restart 1\n"
    assert cluster.api.log(job, attempt=1) == "restart 0\n"
    assert "requeued" in cluster.api.events(job)


def test_retries_end(cluster: Cluster) -> None:
    view = cluster.api.wait(cluster.api.submit(["false"], retries=2))
    assert (view["state"], view["attempt"]) == ("FAILED", 3)


def test_jobs_that_do_not_fit_wait_in_order(cluster: Cluster, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    blocker = cluster.api.submit(["sh", "-c", f"while ! test -e {gate}; do sleep 0.01; done"], gpus=4, launch_mode="node")
    cluster.wait_state(blocker, "RUNNING")
    jobs = [cluster.api.submit(["sh", "-c", f"echo {n} >> {tmp_path}/order"], gpus=4, launch_mode="node") for n in range(3)]
    assert [cluster.api.job(job)["state"] for job in jobs] == ["QUEUED"] * 3
    gate.touch()
    for job in jobs:
        assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert (tmp_path / "order").read_text().split() == ["0", "0", "1", "1", "2", "2"]


def test_what_a_rank_leaves_behind_is_gone_when_the_job_has_ended(cluster: Cluster, tmp_path: Path) -> None:
    leave = f"setsid sh -c 'echo $$ > {tmp_path}/pid; sleep 1000' & while ! test -s {tmp_path}/pid; do :; done"
    job = cluster.api.submit(["sh", "-c", leave])
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_files_and_environment_reach_every_rank(cluster: Cluster) -> None:
    big = bytes(range(256)) * 1000
    name = hashlib.sha256(big).hexdigest()
    status, _, _ = cluster.api.raw("PUT", f"/v1/blobs/{name}", big)
    assert status in (200, 201)
    files = [
        {"path": "a/one.txt", "text": "one é\n"},
        {"path": "two.bin", "base64": base64.b64encode(b"\0\1\2").decode()},
        {"path": "big.bin", "blob": name},
        {"path": "tool", "text": "#!/bin/sh\necho tool runs with $COLOUR\n", "executable": True},
    ]
    job = cluster.api.submit(
        ["sh", "-c", "cat a/one.txt; wc -c < two.bin; sha256sum < big.bin; ./tool"], gpus=4, files=files, env={"COLOUR": "blue"}
    )
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    for rank in (0, 3):
        assert cluster.api.log(job, rank) == f"one é\n3\n{name}  -\ntool runs with blue\n"


def test_a_payload_that_does_not_exist_is_refused_or_named(cluster: Cluster) -> None:
    with pytest.raises(Problem) as caught:
        cluster.api.submit(["true"], files=[{"path": "x", "blob": "0" * 64}])
    assert caught.value.field == "files[0].blob"


def test_output_of_many_megabytes_arrives_whole(cluster: Cluster) -> None:
    job = cluster.api.submit(["sh", "-c", "seq 1 1500000"])
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    lines = cluster.api.log(job).split()
    assert len(lines) == 1500000 and lines[0] == "1" and lines[-1] == "1500000"
