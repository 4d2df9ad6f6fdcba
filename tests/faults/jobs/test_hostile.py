# SPDX-License-Identifier: Apache-2.0
"""Jobs that work against the node that runs them: they try to outlive their end, to stop who watches them, to have foreign files sent
away as theirs, to speak for others. Ranks have the agent's user today, so what only another user could be kept from is not tested here.

Each attack is followed by the same questions: does the job end, are its GPUs free again, is nothing of it left, does the node still work?
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import textwrap
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import chaos_gang
import leftovers
from harness import PYTHON, Api, Cluster, Problem, eventually
from slowness import patient

CANARY = f"canary-{uuid.uuid4().hex}"

#: Before each script: where things are, as a rank finds out.
PRELUDE = """
import ctypes, json, os, signal, socket, sys, time
logs = os.path.dirname(os.getcwd())
run = os.path.dirname(os.environ["GPUCTL_SOCKET"])
shim = os.getppid()
secret = sys.argv[1]
def wait():
    while True: signal.pause()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("site"), [4], agent_environment={"HOSTILE_SECRET": CANARY}).start()
    yield cluster
    cluster.stop()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that no job should get sent anywhere, in a folder as an attempt's results are."""
    path = tmp_path / "secrets" / "0.pickle"
    path.parent.mkdir()
    path.write_text(CANARY)
    return path


def attack(site: Cluster, script: str, secret: Path | str = "", **spec: Any) -> str:
    spec.setdefault("infra_retries", 0)
    return site.api.submit(["python", "-I", "-S", "-c", PRELUDE + textwrap.dedent(script), str(secret)], **spec)


def check_recovered(site: Cluster, job: str) -> None:
    """Nothing of the job is left, and the node does the next one."""
    assert leftovers.processes_of(job) == []
    eventually(lambda: not leftovers.all_shims(site), "the shims to end")
    for node in leftovers.nodes_of(site):
        eventually(lambda node=node: not leftovers.cgroups_left(node, idle=True), "the cgroups to go")
    assert site.agents[0].alive()
    assert site.api.wait(site.api.submit(["true"], gpus=4))["state"] == "SUCCEEDED"


def everything_told(site: Cluster, job: str) -> str:
    """All that the controller can say of a job, its bytes included."""
    paths = [f"/v1/jobs/{job}", f"/v1/jobs/{job}/attempts", f"/v1/jobs/{job}/events", f"/v1/jobs/{job}/results?bytes=1"]
    paths += [f"/v1/jobs/{job}/metrics", *(f"/v1/jobs/{job}/logs?rank=0&stream={stream}" for stream in ("stdout", "stderr"))]
    return "\n".join(site.api.raw("GET", path)[2].decode(errors="replace") for path in paths)


# --- what a rank gets --------------------------------------------------------------------------------------------------------


def test_a_rank_inherits_three_descriptors_and_no_secrets(site: Cluster, secret: Path) -> None:
    script = """
    def is_open(fd):
        try: os.fstat(fd)
        except OSError: return False
        return True
    print(json.dumps({"open": [fd for fd in range(4096) if is_open(fd)], "environment": dict(os.environ)}))
    """
    job = attack(site, script)
    assert site.api.wait(job)["state"] == "SUCCEEDED"
    found = json.loads(site.api.log(job))
    assert found["open"] == [0, 1, 2]
    token = (site.folder / "node.token").read_text().strip()
    assert not [name for name, value in found["environment"].items() if CANARY in value or token in value or site.admin_token in value]


def test_a_rank_of_a_function_gang_inherits_the_socket_of_its_store_and_no_more(site: Cluster) -> None:
    def descriptors() -> list[int]:

        def is_open(number: int) -> bool:
            try:
                os.fstat(number)
            except OSError:
                return False
            return True

        return [number for number in range(4096) if is_open(number)]

    header = "gpuctl-function 1 python={}.{}\n".format(*sys.version_info[:2])
    call = base64.b64encode(header.encode() + cloudpickle.dumps((descriptors, (), {}))).decode()
    spec = {"gpus": 2, "python": PYTHON, "function": {"inline": call}}
    job = site.api.post("/v1/jobs", spec)["id"]
    view = site.api.wait(job)
    assert view["state"] == "SUCCEEDED", view["reason"]
    first, second = (row["json"] for row in site.api.get(f"/v1/jobs/{job}/results")["results"])
    assert set(first) - set(second) <= {3} and max(second) <= 3, (first, second)


def test_the_token_of_a_rank_opens_nothing_but_its_tracking(site: Cluster) -> None:
    job = attack(site, "print(os.environ['MLFLOW_TRACKING_TOKEN'], flush=True); wait()")
    token = str(eventually(lambda: site.api.log(job).strip(), "the token"))
    rank = Api(site.url, token)
    epoch = int(chaos_gang.attempts(site, job)[0]["epoch"])
    forged = {"node": "node0", "boot_id": "x", "epoch": epoch, "kind": "exited", "ranks": [], "flushed": True}
    for method, path, body in [
        ("GET", "/v1/jobs", None), ("GET", f"/v1/jobs/{job}", None), ("POST", "/v1/jobs", {"command": ["true"], "gpus": 1}),
        ("POST", f"/v1/jobs/{job}/cancel", {}), ("GET", "/v1/nodes", None), ("POST", "/v1/tokens", {"role": "admin", "owner": "x"}),
        ("POST", "/v1/agent/report", forged), ("POST", "/v1/agent/poll", {"node": "node0"}), ("GET", f"/v1/jobs/{job}/logs", None),
    ]:  # fmt: skip
        with pytest.raises(Problem) as refused:
            rank.call(method, path, body)
        assert refused.value.status in (401, 403), (method, path, refused.value)
    site.api.post(f"/v1/jobs/{job}/cancel")
    assert site.api.wait(job)["state"] == "CANCELED"
    check_recovered(site, job)


# --- its own folder ----------------------------------------------------------------------------------------------------------

#: What each does in the folders of its own attempt, and what the job's state has to be then.
SABOTAGE = {
    "pipes for all names": (
        """
        for name in ("0.stdout", "0.stderr", "0.metrics", "exit", "exit.new", "errors/0.json", "function", "results/0.pickle"):
            path = os.path.join(logs, name)
            if os.path.lexists(path): os.unlink(path)
            os.mkfifo(path)
        os._exit(9)
        """,
        "FAILED",
    ),
    "links to a secret": (
        """
        for name in ("0.stdout", "0.stderr", "errors/0.json", "function", "results/0.pickle", "results/0.json", "exit"):
            path = os.path.join(logs, name)
            if os.path.lexists(path): os.unlink(path)
            os.symlink(secret, path)
        os._exit(9)
        """,
        "FAILED",
    ),
    "a link for the folder of results": (
        """
        open(os.path.join(logs, "function"), "w").close()
        os.rmdir(os.path.join(logs, "results"))
        os.symlink(os.path.dirname(secret), os.path.join(logs, "results"))
        """,
        "SUCCEEDED",
    ),
    "folders in the way of the exit record": (
        """
        for name in ("exit", "exit.new"):
            path = os.path.join(logs, name)
            if os.path.exists(path): os.unlink(path)
            os.makedirs(os.path.join(path, "full"))
        os._exit(9)
        """,
        "FAILED",
    ),
    "an exit record of its own": (
        """
        for name in ("exit", "exit.new"):
            with open(os.path.join(logs, name + ".forged"), "w") as file: file.write("rank 0 0 0 1 0 0 0\\ncause NONE\\nend\\n")
            os.rename(file.name, os.path.join(logs, name))
        os._exit(9)
        """,
        "FAILED",
    ),
    "no folder at all": ("import shutil; shutil.rmtree(logs); os._exit(9)", "FAILED"),
    "no run folder": ("import shutil; shutil.rmtree(run); os._exit(9)", "FAILED"),
    "nothing that may be written": ("os.chmod(logs, 0); os._exit(9)", "FAILED"),
}


@pytest.mark.parametrize("name", SABOTAGE)
def test_what_a_rank_does_to_its_folders_hurts_nobody_else(site: Cluster, secret: Path, name: str) -> None:
    script, state = SABOTAGE[name]
    ranks = 1 if state == "SUCCEEDED" else 2  # a gang has a port, so that last words are searched for a taken one
    alone = """
    there = f"{secret}.{os.environ['GPUCTL_JOB_ID']}"  # from then on the other rank needs no folder
    if os.environ["RANK"] != "0":
        open(there, "w").close()
        wait()
    while os.environ["WORLD_SIZE"] != "1" and not os.path.exists(there): os.sched_yield()
    """
    job = attack(site, textwrap.dedent(alone) + textwrap.dedent(script), secret, gpus=ranks)
    view = site.api.wait(job, patient(20))
    assert view["state"] == state, view
    assert state == "SUCCEEDED" or (view["cause"], view["exit_code"], view["failed_rank"]) == ("RANK_FAILED", 9, 0), view
    assert CANARY not in everything_told(site, job)
    check_recovered(site, job)


def test_last_words_without_end_are_cut_to_a_sentence(site: Cluster) -> None:
    """Error files of a gibibyte, of deep JSON, of control characters."""
    script = """
    path = os.environ["TORCHELASTIC_ERROR_FILE"]
    with open(path, "wb") as file:
        if os.environ["RANK"] == "0": file.truncate(1 << 30)
        elif os.environ["RANK"] == "1": file.write(b'{"message": ' + b"[" * 100_000)
        else: file.write(json.dumps({"message": {"message": "\\x1b[31mred\\x07" + "x" * 100_000}}).encode())
    time.sleep(0.3 * (2 - int(os.environ["RANK"]))); os._exit(4)
    """
    view = site.api.wait(attack(site, script, gpus=3))
    assert (view["state"], view["failed_rank"], view["exit_code"]) == ("FAILED", 2, 4), view
    assert len(view["reason"]) < 400 and "\x1b" not in view["reason"] and "red" in view["reason"]


def test_a_flood_without_a_line_end_is_cut_at_its_limit_and_holds_up_nobody(site: Cluster) -> None:
    """As fast as it can for two seconds; a job beside it is heard meanwhile."""
    flood = attack(site, "block = b'x' * (1 << 20)\nwhile True: os.write(1, block)", time_limit_s=2, grace_s=0.2)
    started = time.monotonic()
    heard = site.api.wait(attack(site, "print('heard')"))
    assert heard["state"] == "SUCCEEDED" and time.monotonic() - started < 5
    assert site.api.wait(flood, 60 + 15)["state"] == "TIMED_OUT"
    assert leftovers.resident_kib(site.agents[0].process.pid) < 64 << 10  # type: ignore[union-attr]
    check_recovered(site, flood)


# --- its supervisor ----------------------------------------------------------------------------------------------------------

#: To get away before what follows: out of the cgroup, out of the session, away from its parent, deaf.
ESCAPE = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
ctypes.CDLL(None).prctl(1, 0)
for place in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup", "/sys/fs/cgroup/freezer"):
    try:
        with open(place + "/cgroup.procs", "r+") as file: file.write("0")
    except OSError: pass
for _ in range(3):
    if os.fork(): os._exit(3)
    os.setsid()
wait()
"""


def test_who_leaves_cgroup_session_and_parent_is_found_by_its_descent(site: Cluster) -> None:
    job = attack(site, ESCAPE)
    view = site.api.wait(job)
    assert (view["state"], view["exit_code"]) == ("FAILED", 3), view
    check_recovered(site, job)


def test_ranks_that_kill_their_supervisor_are_gone_and_use_up_infra_retries_alone(site: Cluster) -> None:
    job = attack(site, "os.fork(); os.kill(shim, 9); wait()", infra_retries=2, retries=2)
    view = site.api.wait(job)
    assert (view["state"], view["cause"], view["attempt"]) == ("FAILED", "SHIM_LOST", 3), view
    check_recovered(site, job)


@pytest.mark.parametrize("how", ["stop", "ptrace"])
def test_a_supervisor_that_its_ranks_have_stopped_does_not_keep_a_job_from_being_canceled(site: Cluster, how: str) -> None:
    """A signal, or a debugger; the agent kills it then, and what it kept with it."""
    stop = "os.kill(shim, signal.SIGSTOP)"
    ptrace = "libc = ctypes.CDLL(None); assert libc.ptrace(0x10, shim, 0, 0) == 0; os.waitpid(shim, 0x40000000)"
    job = attack(site, f"{stop if how == 'stop' else ptrace}\nprint('held', flush=True)\nwait()", grace_s=1)
    site.wait_state(job, "RUNNING")
    (held,) = eventually(lambda: [pid for pid in leftovers.all_shims(site) if state_of(pid) in "Tt"], "the supervisor to be held")
    asked = time.monotonic()
    site.api.post(f"/v1/jobs/{job}/cancel")
    view = site.api.wait(job)
    assert view["state"] == "CANCELED" and time.monotonic() - asked <= 1 + 10, view
    assert not Path(f"/proc/{held}").exists()
    check_recovered(site, job)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_rank_that_kills_the_agent_does_not_disturb_the_jobs_of_the_node(site: Cluster, tmp_path: Path) -> None:
    """Whoever starts agents again, systemd elsewhere, finds all of them as they are."""
    agent, gate = site.agents[0], tmp_path / "gate"
    bystander = attack(site, "print('there', flush=True)\nwhile not os.path.exists(secret): time.sleep(0.01)", gate)
    eventually(lambda: "there" in site.api.log(bystander), "the bystander to run")
    assert agent.process is not None
    job = attack(site, f"os.kill({agent.process.pid}, 9); time.sleep(0.2); os._exit(6)")
    assert agent.process.wait(20) == -signal.SIGKILL
    agent.start()
    view = site.api.wait(job)
    assert (view["state"], view["exit_code"], view["attempt"]) == ("FAILED", 6, 1), view
    gate.touch()
    view = site.api.wait(bystander)
    assert (view["state"], view["attempt"]) == ("SUCCEEDED", 1), view
    check_recovered(site, job)


# --- its socket --------------------------------------------------------------------------------------------------------------


def test_whatever_a_rank_says_to_its_supervisor_is_its_own_metrics_at_most(site: Cluster) -> None:
    """Rubbish, forged ranks and epochs, checkpoints of nobody, orders of the agent's protocol, more than fits."""
    bystander = attack(site, "print('there', flush=True)\nwait()")
    eventually(lambda: "there" in site.api.log(bystander), "the bystander to run")
    script = """
    to = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); to.connect(os.environ["GPUCTL_SOCKET"])
    lines = [b"\\0" * 100, b"[" * 60000, b"stop 0 CANCELED", b"forget", b"exited", b'{"metric": 1}', b'{"checkpoint": 7, "rank": 99}',
             json.dumps({"metric": "m", "value": 1, "rank": 99, "epoch": 1, "job": "x"}).encode(),
             json.dumps({"metric": "n" * 60000, "value": 1e308, "rank": -1}).encode()]
    for line in lines * 20: to.send(line)
    try: to.send(b"x" * 200_000)
    except OSError: pass
    orders = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); orders.connect(os.path.join(run, "shim.sock"))
    orders.close()
    print("said")
    """
    job = attack(site, script)
    view = site.api.wait(job)
    assert view["state"] == "SUCCEEDED", (view, site.api.log(job, stream="stderr"))
    assert site.api.job(bystander)["state"] == "RUNNING"
    assert [point for point in site.api.get(f"/v1/jobs/{bystander}/metrics")["metrics"] if not point["name"].startswith("system/")] == []
    site.api.post(f"/v1/jobs/{bystander}/cancel")
    assert site.api.wait(bystander)["state"] == "CANCELED"
    check_recovered(site, job)
