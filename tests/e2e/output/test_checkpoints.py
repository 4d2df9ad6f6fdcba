# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: what is in $GPUCTL_CHECKPOINT_DIR goes with the job to its next attempt, whatever ended the last, and on whatever node."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Api, Cluster, eventually, run_gpuctl

SLOWLY = ["--checkpoint-still", "86400"]  # only what is acknowledged, and the end

# Keeps state.bin and counts its steps. NAME is a folder for what the test says and what is said to it.
TRAIN = """
import json, os, signal, socket, sys, time
from pathlib import Path
gate, ends = Path(sys.argv[1]), sys.argv[2]
folder = Path(os.environ["GPUCTL_CHECKPOINT_DIR"])
rank, attempt = os.environ["RANK"], os.environ["GPUCTL_ATTEMPT"]
own = folder / "deep" / f"step.{rank}"
step = int(own.read_text()) if own.exists() else 0
print("begins at", step, sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()), flush=True)

def save():
    own.parent.mkdir(exist_ok=True)
    (folder / "state.bin").exists() or (folder / "state.bin").write_bytes(os.urandom(int(sys.argv[3])))
    part = own.with_name(own.name + ".part")
    part.write_text(str(step))
    part.rename(own)

def acknowledge():
    line = json.dumps({"checkpoint": {"step": step}, "rank": int(rank)})
    where, name = os.path.split(os.environ["GPUCTL_SOCKET"])
    os.chdir(where)  # the path may be longer than an address
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(line.encode(), name)

def leave(*_):
    save()
    sys.exit(3)

if attempt == "1":
    step += 7
    if ends == "term":
        signal.signal(signal.SIGTERM, leave)
    else:
        save()
        ends in ("still", "exit") or acknowledge()
    (gate / f"saved.{rank}").touch()
    while not (gate / "go").exists():
        time.sleep(0.01)
    if ends == "kill":
        (folder / "torn").write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(4)
"""


def train(api: Api, gate: Path, ends: str, size: int = 1000, **more: Any) -> str:
    gate.mkdir(exist_ok=True)
    return api.submit(["python3", "-c", TRAIN, str(gate), ends, str(size)], gpu_type="cpu", **{"retries": 1, **more})


def last(api: Api, job: str) -> Any:
    return api.get(f"/v1/jobs/{job}/checkpoint")["checkpoint"]


def await_checkpoint(api: Api, job: str) -> Any:
    return eventually(lambda: last(api, job), "a checkpoint")


def begun(api: Api, job: str, rank: int = 0) -> str:
    return str(api.log(job, rank)).splitlines()[-1]


def node_of(api: Api, job: str) -> str:
    return str(api.get(f"/v1/jobs/{job}/attempts")["attempts"][0]["nodes"][0]["node"])


def pieces(cluster: Cluster, job: str) -> dict[str, int]:
    """The pieces that are stored, and when each was written."""
    folder = cluster.folder / "controller" / "checkpoints" / job / "pieces"
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_a_rank_killed_while_it_writes_loses_only_what_was_not_acknowledged(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1, 1, agent=SLOWLY)
    job = train(cluster.api, tmp_path / "gate", "kill", 6_000_000)
    found = await_checkpoint(cluster.api, job)
    assert (found["attempt"], found["kind"], found["step"], found["files"], found["bytes"]) == (1, "step", 7, 2, 6_000_001)
    cluster.api.post(f"/v1/nodes/{node_of(cluster.api, job)}/drain", {})
    (tmp_path / "gate" / "go").touch()
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert begun(cluster.api, job) == "begins at 7 ['deep/step.0', 'state.bin']"


def test_a_preempted_job_goes_on_from_its_step(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1, agent=SLOWLY)
    job = train(cluster.api, tmp_path / "gate", "term", retries=0)
    eventually(lambda: (tmp_path / "gate" / "saved.0").exists(), "the job to run")
    cluster.api.post(f"/v1/jobs/{job}/preemption", {})
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert begun(cluster.api, job).startswith("begins at 7 ")
    assert last(cluster.api, job)["kind"] == "end"


def test_the_end_is_taken_though_agent_and_controller_are_killed(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    """The agent is killed while the job runs, the controller while the end of the attempt is shipped."""
    cluster = make_cluster(1, agent=SLOWLY)
    job = train(cluster.api, tmp_path / "gate", "exit", 40_000_000)
    eventually(lambda: (tmp_path / "gate" / "saved.0").exists(), "the job to run")
    cluster.agents[0].kill()
    cluster.agents[0].start()
    stored = cluster.folder / "controller" / "checkpoints" / job / "pieces"
    (tmp_path / "gate" / "go").touch()
    eventually(lambda: stored.exists() and len(os.listdir(stored)) > 3, "some pieces")
    cluster.controller.kill()
    cluster.start_controller()
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert begun(cluster.api, job).startswith("begins at 7 ") and last(cluster.api, job)["bytes"] == 40_000_001


def test_an_agent_killed_while_it_ships_the_end_ships_the_rest(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1, agent=SLOWLY)
    job = train(cluster.api, tmp_path / "gate", "exit", 40_000_000)
    eventually(lambda: (tmp_path / "gate" / "saved.0").exists(), "the job to run")
    stored = cluster.folder / "controller" / "checkpoints" / job / "pieces"
    (tmp_path / "gate" / "go").touch()
    eventually(lambda: stored.exists() and len(os.listdir(stored)) > 3, "some pieces")
    cluster.agents[0].kill()
    before = pieces(cluster, job)
    cluster.agents[0].start()
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert begun(cluster.api, job).startswith("begins at 7 ")
    whole = {name: when for name, when in before.items() if not name.endswith(".new") and len(name) == 64}
    assert whole.items() <= pieces(cluster, job).items()  # none was sent again


def test_a_job_goes_on_from_its_last_checkpoint_when_its_node_is_lost(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    """Without a call of ours: the folder was still for a while."""
    cluster = make_cluster(1, 1, agent=["--checkpoint-still", "1"])
    job = train(cluster.api, tmp_path / "gate", "still", on_disconnect="requeue", lease_s=2)
    assert await_checkpoint(cluster.api, job)["kind"] == "still"
    silent = node_of(cluster.api, job)
    cluster.agents[int(silent[-1])].kill(signal.SIGKILL)
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert begun(cluster.api, job).startswith("begins at 7 ")


def test_a_gangs_nodes_begin_with_the_files_of_all_of_them(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1, 1, agent=SLOWLY)
    job = train(cluster.api, tmp_path / "gate", "kill", gpus=2)
    await_checkpoint(cluster.api, job)
    (tmp_path / "gate" / "go").touch()
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    for rank in range(2):
        assert begun(cluster.api, job, rank) == "begins at 7 ['deep/step.0', 'deep/step.1', 'state.bin']"


def test_a_checkpoint_that_one_node_of_a_gang_has_is_none(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1, 1, agent=SLOWLY)
    half = TRAIN.replace("ends in", 'rank == "1" or ends in')
    (tmp_path / "gate").mkdir()
    job = cluster.api.submit(["python3", "-c", half, str(tmp_path / "gate"), "kill", "1000"], gpu_type="cpu", gpus=2, retries=1)
    stored = cluster.folder / "controller" / "checkpoints" / job
    eventually(lambda: list(stored.glob("*.step.7")), "the part of one node")
    assert last(cluster.api, job) is None
    (tmp_path / "gate" / "go").touch()
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert begun(cluster.api, job) == "begins at 0 []"


def test_a_node_of_a_gang_that_writes_nothing_is_not_waited_for(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1, 1, agent=["--checkpoint-still", "1"])
    one = TRAIN.replace("    step += 7\n", '    step += 7\n    if rank == "1":\n        time.sleep(1000)\n')
    (tmp_path / "gate").mkdir()
    job = cluster.api.submit(["python3", "-c", one, str(tmp_path / "gate"), "kill", "1000"], gpu_type="cpu", gpus=2, retries=1)
    await_checkpoint(cluster.api, job)
    (tmp_path / "gate" / "go").touch()
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert begun(cluster.api, job) == "begins at 7 ['deep/step.0', 'state.bin']"
    assert begun(cluster.api, job, 1) == "begins at 0 ['deep/step.0', 'state.bin']"


def test_a_gang_that_acknowledges_nothing_goes_on_from_what_its_folders_held_together(
    make_cluster: Callable[..., Cluster], tmp_path: Path
) -> None:
    cluster = make_cluster(1, 1, agent=["--checkpoint-still", "1"])
    job = train(cluster.api, tmp_path / "gate", "still", gpus=2)
    assert await_checkpoint(cluster.api, job)["kind"] == "still"
    (tmp_path / "gate" / "go").touch()
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    for rank in range(2):
        assert begun(cluster.api, job, rank) == "begins at 7 ['deep/step.0', 'deep/step.1', 'state.bin']"


def test_retry_goes_on_and_fresh_does_not(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1, agent=SLOWLY)
    job = train(cluster.api, tmp_path / "gate", "acknowledge", retries=0)
    await_checkpoint(cluster.api, job)
    (tmp_path / "gate" / "go").touch()
    assert cluster.api.wait(job)["state"] == "FAILED"
    again = cluster.api.post(f"/v1/jobs/{job}/retry")["id"]
    assert cluster.api.wait(again)["state"] == "FAILED"
    assert begun(cluster.api, again) == "begins at 7 ['deep/step.0', 'state.bin']" and last(cluster.api, again)["attempt"] == 1
    fresh = cluster.api.post(f"/v1/jobs/{again}/retry", {"fresh": True})["id"]
    assert cluster.api.wait(fresh)["state"] == "FAILED"
    assert begun(cluster.api, fresh) == "begins at 0 []"
    stranger = cluster.user("eve", "admin")
    assert "checkpoint_of" not in cluster.api.job(stranger.post(f"/v1/jobs/{job}/retry")["id"])["spec"]
    cluster.api.call("DELETE", f"/v1/jobs/{job}")
    eventually(lambda: not (cluster.folder / "controller" / "checkpoints" / job).exists(), "the checkpoint to go with its job")


def test_a_retry_of_a_retry_that_saved_nothing_goes_on_from_the_first_job(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1, agent=SLOWLY)
    job = train(cluster.api, tmp_path / "gate", "acknowledge", retries=0)
    await_checkpoint(cluster.api, job)
    node = node_of(cluster.api, job)
    (tmp_path / "gate" / "go").touch()
    assert cluster.api.wait(job)["state"] == "FAILED"
    cluster.api.post(f"/v1/nodes/{node}/drain", {})
    early = cluster.api.post(f"/v1/jobs/{job}/retry")["id"]
    cluster.api.post(f"/v1/jobs/{early}/cancel")
    assert cluster.api.wait(early)["state"] == "CANCELED"
    cluster.api.post(f"/v1/nodes/{node}/resume", {})
    again = cluster.api.post(f"/v1/jobs/{early}/retry")["id"]
    assert cluster.api.wait(again)["state"] == "FAILED"
    assert begun(cluster.api, again) == "begins at 7 ['deep/step.0', 'state.bin']"
    view = cluster.api.job(cluster.api.post(f"/v1/jobs/{early}/retry", {"fresh": True})["id"])
    assert "checkpoint_of" not in view["spec"]


CHANGE = """
import json, os, socket, sys, time
from pathlib import Path
folder, gate = Path(os.environ["GPUCTL_CHECKPOINT_DIR"]), Path(sys.argv[1])
state = bytearray(os.urandom(24_000_000))
for step in (1, 2):
    (folder / "state.new").write_bytes(state)
    (folder / "state.new").rename(folder / "state")
    line = json.dumps({"checkpoint": {"step": step}, "rank": 0})
    where, name = os.path.split(os.environ["GPUCTL_SOCKET"])
    os.chdir(where)  # the path may be longer than an address
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(line.encode(), name)
    while not (gate / str(step)).exists():
        time.sleep(0.01)
    state[9_000_000:9_000_000] = b"a few bytes more"
"""


def test_only_changed_pieces_are_sent(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1, agent=SLOWLY)
    job = cluster.api.submit(["python3", "-c", CHANGE, str(tmp_path)], gpu_type="cpu")
    eventually(lambda: (last(cluster.api, job) or {}).get("step") == 1, "the first checkpoint")
    first = pieces(cluster, job)
    (tmp_path / "1").touch()
    eventually(lambda: (last(cluster.api, job) or {}).get("step") == 2, "the second checkpoint")
    second = pieces(cluster, job)
    assert len(first) > 8 and first.items() <= second.items() and len(second) <= len(first) + 3
    (tmp_path / "2").touch()
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"


def test_a_checkpoint_above_the_limit_says_so_and_the_one_before_stays(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1, agent=["--checkpoint-still", "1"], controller=["--checkpoint-limit", "1"])
    grow = 'cd "$GPUCTL_CHECKPOINT_DIR"; echo 1 >small; until [ -e "$0/go" ]; do sleep 0.05; done; truncate -s 1100M large; exec sleep 1000'
    job = cluster.api.submit(["sh", "-c", grow, str(tmp_path)], gpu_type="cpu")
    await_checkpoint(cluster.api, job)
    (tmp_path / "go").touch()
    shown = eventually(lambda: (found := cluster.api.get(f"/v1/jobs/{job}/checkpoint"))["problem"] and found, "the refusal")
    assert "--checkpoint-limit" in shown["problem"] and "1.1 GiB" in shown["problem"]
    assert (shown["checkpoint"]["files"], shown["checkpoint"]["bytes"]) == (1, 2)
    cluster.api.post(f"/v1/jobs/{job}/cancel")


def test_a_folder_that_takes_long_to_read_holds_up_no_other_job(make_cluster: Callable[..., Cluster]) -> None:
    cluster = make_cluster(2, agent=["--checkpoint-still", "1"])
    large = cluster.api.submit(["sh", "-c", 'truncate -s 8T "$GPUCTL_CHECKPOINT_DIR/large"; exec sleep 1000'], gpu_type="cpu")
    folder = cluster.folder / "node0" / "attempts"
    process = cluster.agents[0].process
    assert process is not None
    files = Path(f"/proc/{process.pid}/fd")
    eventually(lambda: any(os.path.realpath(files / fd).endswith("checkpoint/large") for fd in os.listdir(files)), "the file to be open")
    small = cluster.api.submit(["sh", "-c", 'echo 1 >"$GPUCTL_CHECKPOINT_DIR/small"; exec sleep 1000'], gpu_type="cpu")
    await_checkpoint(cluster.api, small)
    cluster.api.post(f"/v1/jobs/{small}/cancel")
    eventually(lambda: len(list(folder.iterdir())) == 1, "its folder to go")
    eventually(lambda: not list((cluster.folder / "node0" / "trash").iterdir()), "its files to go")
    cluster.api.post(f"/v1/jobs/{large}/cancel")


#: Saves, waits to be told, and makes a folder that cannot be taken. Repairs it when it is told so.
SPOIL = """
import itertools, json, os, shutil, socket, sys, time
from pathlib import Path
folder, gate, how = Path(os.environ["GPUCTL_CHECKPOINT_DIR"]), Path(sys.argv[1]), sys.argv[2]
def acknowledge(step):
    line = json.dumps({"checkpoint": {"step": step}, "rank": 0})
    where, name = os.path.split(os.environ["GPUCTL_SOCKET"])
    os.chdir(where)  # the path may be longer than an address
    socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(line.encode(), name)
def until(name):
    while not (gate / name).exists():
        time.sleep(0.01)
(folder / "good").write_text("good")
acknowledge(1)
until("spoil")
bad = folder / "bad"
bad.mkdir()
if how == "many":
    for number in range(17_000):
        (bad / str(number)).touch()
elif how == "deep":
    bad.joinpath(*["d"] * 40).mkdir(parents=True)
else:
    (bad / "log").write_bytes(bytes(9_000_000))
acknowledge(2)
if how == "changes":
    with open(bad / "log", "ab", 0) as log:
        while not (gate / "repair").exists():
            log.write(b"x")
until("repair")
shutil.rmtree(bad)
acknowledge(3)
until("end")
"""


@pytest.mark.parametrize(
    ("how", "says"),
    [("many", "has more than 16384 files and folders"), ("deep", "more than 32 levels"), ("changes", "that change each time")],
)
def test_a_folder_that_cannot_be_taken_as_a_whole_is_refused(
    make_cluster: Callable[..., Cluster], tmp_path: Path, how: str, says: str
) -> None:
    cluster = make_cluster(1, agent=SLOWLY)
    job = cluster.api.submit(["python3", "-c", SPOIL, str(tmp_path), how], gpu_type="cpu")
    assert await_checkpoint(cluster.api, job)["step"] == 1
    (tmp_path / "spoil").touch()
    shown = eventually(lambda: (found := cluster.api.get(f"/v1/jobs/{job}/checkpoint"))["problem"] and found, "the refusal")
    token = tmp_path / "token"
    token.write_text(f"{cluster.api.token}\n")
    token.chmod(0o600)
    assert says in shown["problem"] and "node rank 0" in shown["problem"] and shown["checkpoint"]["step"] == 1
    printed = run_gpuctl("get", job, env={"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token)}).stdout
    assert f"checkpoint refused: {shown['problem']}" in printed
    (tmp_path / "repair").touch()
    eventually(lambda: last(cluster.api, job)["step"] == 3, "the next checkpoint")
    assert cluster.api.get(f"/v1/jobs/{job}/checkpoint")["problem"] is None
    (tmp_path / "end").touch()
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"


def test_a_node_reaches_only_the_checkpoints_of_jobs_that_it_runs(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1, 1, agent=SLOWLY)
    job = train(cluster.api, tmp_path / "gate", "acknowledge")
    await_checkpoint(cluster.api, job)
    epoch = cluster.api.get(f"/v1/jobs/{job}/attempts")["attempts"][0]["epoch"]
    runs = node_of(cluster.api, job)
    own, foreign = Api(cluster.url, (cluster.folder / "node.token").read_text().strip()), Api(cluster.url, cluster.own_node_token("other"))
    hash_of_piece = next(iter(pieces(cluster, job)))
    for method, path in (
        ("GET", "checkpoints?"), ("POST", "checkpoints?kind=end&"), ("POST", "checkpoints?kind=end&gap=many&"),
        ("GET", f"checkpoints/pieces?sha256={hash_of_piece}&"), ("POST", f"checkpoints/pieces?sha256={hash_of_piece}&"),
    ):  # fmt: skip
        for claimed in (runs, "other"):
            assert foreign.raw(method, f"/v1/agent/{path}node={claimed}&epoch={epoch}", b"")[0] == 403, (method, path, claimed)
    assert own.raw("GET", f"/v1/agent/checkpoints?node={runs}&epoch={epoch}")[0] == 200
    assert cluster.api.get(f"/v1/jobs/{job}/checkpoint")["problem"] is None
    (tmp_path / "gate" / "go").touch()
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    ended = own.raw("GET", f"/v1/agent/checkpoints?node={runs}&epoch={epoch}")
    assert ended[0] == 409, ended


def test_no_checkpoint_is_taken_before_the_controller_has_all_of_it(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    """What an agent that is in error, or hostile, might send."""
    cluster = make_cluster(1, agent=SLOWLY)
    job = train(cluster.api, tmp_path / "gate", "acknowledge")
    await_checkpoint(cluster.api, job)
    epoch = cluster.api.get(f"/v1/jobs/{job}/attempts")["attempts"][0]["epoch"]
    node = Api(cluster.url, (cluster.folder / "node.token").read_text().strip())
    asked = f"node={node_of(cluster.api, job)}&epoch={epoch}"
    digest = hashlib.sha256(b"piece").digest()
    manifest = b"gpuctl-checkpoint-1 1 1 5 0\n5 0 - 1 name\0" + digest + (5).to_bytes(4, "little")

    def take(bytes_: bytes) -> tuple[int, Any]:
        status, _, answer = node.raw("POST", f"/v1/agent/checkpoints?{asked}&kind=step&number=8", bytes_)
        return status, json.loads(answer)

    assert take(manifest) == (200, {"missing": [0]})
    assert take(manifest[:-1])[0] == 400
    status, _, answer = node.raw("POST", f"/v1/agent/checkpoints/pieces?{asked}&sha256={digest.hex()}", b"other")
    assert status == 422 and "another content" in str(answer)
    assert take(manifest) == (200, {"missing": [0]}) and last(cluster.api, job)["step"] == 7
    assert node.raw("POST", f"/v1/agent/checkpoints/pieces?{asked}&sha256={digest.hex()}", b"piece")[0] == 200
    assert take(manifest) == (200, {"missing": []}) and last(cluster.api, job)["step"] == 8
    (tmp_path / "gate" / "go").touch()
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    assert begun(cluster.api, job) == "begins at 0 ['name']"


def test_no_attempt_begins_with_a_damaged_checkpoint(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1, agent=SLOWLY)
    job = train(cluster.api, tmp_path / "gate", "acknowledge", infra_retries=0)
    await_checkpoint(cluster.api, job)
    for path in (cluster.folder / "controller" / "checkpoints" / job / "pieces").iterdir():
        path.write_bytes(bytes(path.stat().st_size))
    (tmp_path / "gate" / "go").touch()
    assert cluster.api.wait(job)["state"] == "FAILED"
    assert "is damaged on the controller" in str(cluster.api.get(f"/v1/jobs/{job}/attempts"))
