# SPDX-License-Identifier: Apache-2.0
"""kill -9 of agents and controller under a running gang, and a stolen master port: nothing is lost, nothing runs twice."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import Cluster, Program, eventually
from paper_controller import Node, Paper

MEET = (Path(__file__).parents[1] / "programs" / "meet.py").read_text()


def counting_gang(cluster: Cluster, gate: Path) -> str:
    job = cluster.api.submit(
        ["python", "-S", "meet.py", "count", str(gate)], gpus=2, files=[{"path": "meet.py", "text": MEET}], infra_retries=0
    )
    for rank in range(2):
        eventually(lambda rank=rank: "line 5\n" in cluster.api.log(job, rank), f"rank {rank} to count")
    return job


def assert_undisturbed(cluster: Cluster, job: str) -> None:
    view = cluster.api.wait(job)
    assert (view["state"], view["attempt"]) == ("SUCCEEDED", 1), view
    for rank in range(2):
        lines = cluster.api.log(job, rank).splitlines()
        count = int(re.fullmatch(r"counted (\d+)", lines[-1]).group(1))  # type: ignore[union-attr]
        assert lines[1:-1] == [f"line {n}" for n in range(count)], "a line is missing or doubled"


def grows(cluster: Cluster, job: str, rank: int) -> None:
    """New output of that rank arrives."""
    before = len(cluster.api.log(job, rank))
    eventually(lambda: len(cluster.api.log(job, rank)) > before, f"new output of rank {rank}")


def test_an_agent_killed_under_a_gang_adopts_it_again(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1, 1)
    job = counting_gang(cluster, tmp_path / "gate")
    for _ in range(3):
        cluster.agents[1].kill()
        cluster.agents[1].start()
        grows(cluster, job, 1)
    (tmp_path / "gate").touch()
    assert_undisturbed(cluster, job)


def test_a_node_keeps_no_run_folder_of_an_attempt_that_is_over(make_cluster: Callable[..., Cluster]) -> None:
    """M5: the run folder is in memory, and is emptied by a reboot at the earliest."""
    cluster = make_cluster(1)
    run = cluster.folder / "node0.run"

    def left() -> list[str]:
        return [path.name for path in run.iterdir() if path.name.isdecimal()]

    job = cluster.api.submit(["sh", "-c", 'cd "$(dirname "$GPUCTL_SOCKET")" && mkdir mine && echo x >mine/file'])
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    eventually(lambda: not left(), "the agent to remove what the job left in its run folder")
    cluster.agents[0].kill()
    for attempt, name in ((1, "addresses.Ab12Cd"), (2, None)):  # the agent was killed while it wrote, and while it removed
        (run / str(attempt)).mkdir()
        if name:
            (run / str(attempt) / name).touch()
    cluster.agents[0].start()
    eventually(lambda: not left(), "the next agent to remove what was left")


def test_an_agent_with_another_environment_finds_what_runs(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    """M2: the run folder of this boot is remembered, whatever the settings of the next start say."""
    cluster = make_cluster(1, 1)
    job = counting_gang(cluster, tmp_path / "gate")
    agent = cluster.agents[1]
    agent.kill()
    agent.arguments[agent.arguments.index("--run") + 1] = str(tmp_path / "elsewhere")
    agent.start()
    grows(cluster, job, 1)
    (tmp_path / "gate").touch()
    assert_undisturbed(cluster, job)
    assert "run folder kept" in agent.said() and not (tmp_path / "elsewhere").exists()


def test_an_attempt_that_is_over_leaves_no_folder_and_is_never_run_again(tmp_path: Path) -> None:
    """M5: also not by an agent that was killed meanwhile, and not where that was killed before it had removed the folder."""
    paper = Paper()
    node = Node(tmp_path, paper)
    spec = {"command": ["sh", "-c", f"echo x >>{tmp_path}/runs"]}
    epoch = 2**32 + 1
    run = tmp_path / "run"
    try:
        assert paper.run(epoch, spec)["ranks"][0]["code"] == 0
        paper.change(live=[], orders=[])
        eventually(lambda: not (run / str(epoch)).exists(), "the folder of the attempt to go")
        node.agent.kill()
        (run / str(epoch)).mkdir()
        node.agent.start()
        paper.reports.clear()
        assert paper.run(epoch, spec)["cause"] == "SHIM_LOST"
        assert (tmp_path / "runs").read_text() == "x\n"
        assert paper.run(epoch + 1, spec)["ranks"][0]["code"] == 0
    finally:
        node.stop()
        paper.stop()


def test_a_gang_that_ends_while_its_agent_is_away_keeps_its_exit(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1, 1)
    job = counting_gang(cluster, tmp_path / "gate")
    cluster.agents[0].kill()
    (tmp_path / "gate").touch()
    record = cluster.folder / "node0" / "attempts"
    eventually(lambda: list(record.glob("*/exit")), "the exit record")
    cluster.agents[0].start()
    assert_undisturbed(cluster, job)


def test_a_controller_killed_under_a_gang_finds_it_again(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1, 1)
    job = counting_gang(cluster, tmp_path / "gate")
    for _ in range(3):
        cluster.controller.kill()
        cluster.start_controller()
        grows(cluster, job, 0)
        grows(cluster, job, 1)
    (tmp_path / "gate").touch()
    assert_undisturbed(cluster, job)


def test_a_gang_that_ends_while_the_controller_is_away_is_reported_later(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(1, 1)
    job = counting_gang(cluster, tmp_path / "gate")
    cluster.controller.kill()
    (tmp_path / "gate").touch()
    for name in ("node0", "node1"):
        eventually(lambda name=name: list((cluster.folder / name / "attempts").glob("*/exit")), "the exit record")
    cluster.start_controller()
    assert_undisturbed(cluster, job)


def test_controller_and_agents_killed_together_find_the_gang_again(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(1, 1)
    job = counting_gang(cluster, tmp_path / "gate")
    for program in (*cluster.agents, cluster.controller):
        program.kill()
    cluster.start_controller()
    for agent in cluster.agents:
        agent.start()
    grows(cluster, job, 0)
    grows(cluster, job, 1)
    (tmp_path / "gate").touch()
    assert_undisturbed(cluster, job)


def test_queued_jobs_survive_the_controller(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1)
    gate = tmp_path / "gate"
    first = cluster.api.submit(["sh", "-c", f"while ! test -e {gate}; do sleep 0.01; done"])
    jobs = [cluster.api.submit(["sh", "-c", f"echo {n} >> {tmp_path}/order"]) for n in range(20)]
    cluster.controller.kill()
    cluster.start_controller()
    gate.touch()
    for job in (first, *jobs):
        assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert (tmp_path / "order").read_text().split() == [str(n) for n in range(20)]


def test_a_cancel_while_the_agent_is_away_takes_effect_when_it_returns(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(1, 1)
    job = counting_gang(cluster, tmp_path / "gate")
    cluster.agents[1].kill()
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    cluster.agents[1].start()
    assert cluster.api.wait(job)["state"] == "CANCELED"


def test_a_killed_shim_ends_the_attempt_and_another_one_runs(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1)
    job = cluster.api.submit(["sh", "-c", f"echo start >> {tmp_path}/starts; while ! test -e {tmp_path}/gate; do sleep 0.01; done"])
    eventually(lambda: (tmp_path / "starts").exists() and (tmp_path / "starts").read_text(), "the first start")
    (pid_file,) = (cluster.folder / "node0.run").glob("*/shim.pid")
    os.kill(int(pid_file.read_text().split()[0]), 9)
    eventually(lambda: (tmp_path / "starts").read_text().count("start") == 2, "the second start")
    (tmp_path / "gate").touch()
    view = cluster.api.wait(job)
    assert (view["state"], view["attempt"]) == ("SUCCEEDED", 2), view


def test_a_stolen_master_port_costs_no_retry_of_the_users(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    """Another process listens on the port between the hold and rank 0's bind; the whole gang starts again on another port."""
    cluster = make_cluster(1, 1, agent=["--ports", "23000-23001"])
    thief = tmp_path / "thief.py"
    thief.write_text(
        "import signal, socket, sys\n"
        "s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
        "s.bind((sys.argv[1], int(sys.argv[2]))); s.listen(); print('mine', flush=True); signal.pause()\n"
    )
    robbed = tmp_path / "robbed.py"
    robbed.write_text(
        "import os, subprocess, sys\n"
        "if os.environ['RANK'] == '0' and os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n"
        f"    command = [sys.executable, '-S', {str(thief)!r}, os.environ['MASTER_ADDR'], os.environ['MASTER_PORT']]\n"
        "    thief = subprocess.Popen(command, stdout=subprocess.PIPE)\n"
        "    assert thief.stdout.readline() == b'mine\\n'\n"
        f"exec(open({str(tmp_path / 'meet.py')!r}).read())\n"
    )
    (tmp_path / "meet.py").write_text(MEET)
    job = cluster.api.submit(["python", "-S", str(robbed)], gpus=2, retries=0)
    view = cluster.api.wait(job)
    assert (view["state"], view["attempt"]) == ("SUCCEEDED", 2), (view, cluster.api.log(job, 0, "stderr"))
    assert "port_taken" in str(cluster.api.get(f"/v1/jobs/{job}/events")).lower()


def test_a_taken_port_of_the_jobs_own_is_the_jobs_own_fault(make_cluster: Callable[..., Cluster]) -> None:
    """M11: a web server in rank 0, whose port is taken, makes no silent reruns of the gang."""
    cluster = make_cluster(2)
    server = "import http.server as h; h.HTTPServer(('127.0.0.1', PORT), h.BaseHTTPRequestHandler)"
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code = server.replace("PORT", str(taken.getsockname()[1]))
        job = cluster.api.submit(["python", "-S", "-c", f"import os\nif os.environ['RANK'] == '0': {code}"], gpus=2)
        view = cluster.api.wait(job)
    assert "Address already in use" in cluster.api.log(job, 0, "stderr")
    assert (view["state"], view["attempt"], view["cause"]) == ("FAILED", 1, "RANK_FAILED"), view


def test_a_port_that_is_already_taken_is_never_handed_out(make_cluster: Callable[..., Cluster]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 23010))
        taken.listen()
        cluster = make_cluster(1, 1, agent=["--ports", "23010-23011"])
        job = cluster.api.submit(
            ["python", "-S", "meet.py"], gpus=2, files=[{"path": "meet.py", "text": MEET}], infra_retries=0
        )
        view = cluster.api.wait(job)
    assert (view["state"], view["attempt"]) == ("SUCCEEDED", 1), view


@pytest.mark.parametrize("policy", ["requeue", "fail"])
def test_a_lease_that_runs_out_stops_the_ranks_first(policy: str, make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    """The agent is stopped, so its shim hears of no beat; it kills the ranks before the controller gives the job away."""
    cluster = make_cluster(1)
    script = f"echo $$ >> {tmp_path}/pids; while ! test -e {tmp_path}/gate; do sleep 0.01; done"
    job = cluster.api.submit(["sh", "-c", script], on_disconnect=policy, lease_s=3)
    eventually(lambda: (tmp_path / "pids").exists(), "the first start")
    cluster.wait_state(job, "RUNNING")
    eventually(lambda: cluster.nodes()["node0"]["beat_age_s"] is not None, "a beat")
    cluster.agents[0].process.send_signal(signal.SIGSTOP)  # type: ignore[union-attr]
    try:
        first = int((tmp_path / "pids").read_text().split()[0])
        if policy == "fail":
            view = cluster.api.wait(job)
            assert view["state"] == "FAILED" and not Path(f"/proc/{first}").exists()
        else:
            eventually(lambda: "requeued" in cluster.api.events(job), "the requeue")
            assert not Path(f"/proc/{first}").exists(), "requeued while the old rank still ran"
    finally:
        cluster.agents[0].process.send_signal(signal.SIGCONT)  # type: ignore[union-attr]
    (tmp_path / "gate").touch()
    if policy == "requeue":
        assert cluster.api.wait(job)["state"] == "SUCCEEDED"


def test_keep_never_gives_work_away_while_a_node_is_silent_and_fence_does(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(1, 1)
    script = f"echo $GPUCTL_NODE >> {tmp_path}/starts; while ! test -e {tmp_path}/gate; do sleep 0.01; done"
    job = cluster.api.submit(["sh", "-c", script])
    cluster.wait_state(job, "RUNNING")
    node = (tmp_path / "starts").read_text().strip()
    agent = cluster.agents[int(node.removeprefix("node"))]
    agent.kill()
    eventually(lambda: cluster.nodes()[node]["state"] == "SUSPECT", "the node to be SUSPECT")
    assert cluster.api.job(job)["state"] == "RUNNING"
    cluster.api.post(f"/v1/nodes/{node}/fence", {"assert_dead": True})
    eventually(lambda: len((tmp_path / "starts").read_text().split()) == 2, "the start on the other node")
    agent.start()
    eventually(lambda: cluster.nodes()[node]["state"] == "READY", "the fenced node to register anew")
    (tmp_path / "gate").touch()
    view = cluster.api.wait(job)
    assert (view["state"], view["attempt"]) == ("SUCCEEDED", 2)


@pytest.mark.parametrize("folder", ["other", "copied"])
def test_a_second_agent_of_a_name_is_refused_until_the_first_is_gone(
    folder: str, make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    """M3: cloned machines share a host name. Both would register in turns, and run the same tasks."""
    cluster = make_cluster(2)
    first, ran = cluster.agents[0], tmp_path / "ran"
    running = cluster.api.submit(["sh", "-c", f"until [ -e {tmp_path}/gate ]; do sleep 0.05; done"])
    cluster.wait_state(running, "RUNNING")
    if folder == "copied":
        shutil.copytree(cluster.folder / "node0", cluster.folder / "second", symlinks=True)
    second = Program([*first.arguments], cluster.folder / "second.log")
    for option, value in (("--state", "second"), ("--run", "second.run")):
        second.arguments[second.arguments.index(option) + 1] = str(cluster.folder / value)
    second.start()
    cluster.agents.append(second)
    eventually(lambda: "node refused" in second.said() or "node registered" in second.said(), "the second agent to be answered")
    array = cluster.api.submit(["sh", "-c", f"echo $GPUCTL_ARRAY_TASK >>{ran}"], array={"tasks": 20})
    assert cluster.api.wait(array)["state"] == "SUCCEEDED"
    assert sorted(map(int, ran.read_text().split())) == list(range(20))
    (tmp_path / "gate").touch()
    view = cluster.api.wait(running)
    assert (view["state"], view["attempt"]) == ("SUCCEEDED", 1), view
    refused = [line for line in second.said().splitlines() if "node refused" in line]
    assert len(refused) == 1, refused
    assert "node0 is served by an agent at 127.0.0.1" in refused[0]
    assert "with another state folder on its host" in refused[0]
    assert "give each agent its own --name, or stop the other" in refused[0]
    assert first.said().count("node registered") == 1
    first.kill(signal.SIGTERM)
    eventually(lambda: "node registered" in second.said(), "the second agent to follow the first")
    assert cluster.api.wait(cluster.api.submit(["true"]))["state"] == "SUCCEEDED"
