# SPDX-License-Identifier: Apache-2.0
"""Warm workers: a rank that was forked from a process with its modules is as one that was started anew, or is started anew."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import PYTHON, Cluster, eventually
from slowness import patient
from test_functions import environment

PROGRAMS = Path(__file__).parents[1] / "programs"
WARM_PATIENCE = patient(120.0)  # an interpreter with its modules under sanitized daemons on few cores


def starts(cluster: Cluster, node: int = 0) -> list[str]:
    """How the Pythons of a node were started, in their order."""
    return re.findall(r'attempt started attempt_id=\d+ start="([^"]*)"', cluster.agents[node].said())


def run(cluster: Cluster, command: list[str], **spec: Any) -> tuple[str, str]:
    """A job that ends well: its output, and how it was started."""
    before = len(starts(cluster))
    job = cluster.api.submit(command, **spec)
    ended = cluster.api.wait(job)
    assert ended["state"] == "SUCCEEDED", (ended, cluster.api.log(job, stream="stderr"))
    return cluster.api.log(job), eventually(lambda: starts(cluster)[before:], "the agent to say how it started")[0]


def run_with_shim(cluster: Cluster, command: list[str], **spec: Any) -> tuple[str, str]:
    """As run, again while the node makes shims for those that a job has taken."""

    def ran() -> tuple[str, str] | None:
        output, how = run(cluster, command, **spec)
        return None if how == "cold no shim was ready" else (output, how)

    seen: tuple[str, str] = eventually(ran, "a shim to be ready", WARM_PATIENCE)
    return seen


def run_until_warm(cluster: Cluster, command: list[str], **spec: Any) -> str:
    def warm() -> str | None:
        output, how = run(cluster, command, **spec)
        return output if how == "warm" else None

    return str(eventually(warm, "a warm start", WARM_PATIENCE))


@pytest.fixture
def warm_cluster(make_cluster: Callable[..., Cluster]) -> Callable[..., Cluster]:
    def make(*slots: int, preload: str = "numpy", memory: int = 2048) -> Cluster:
        return make_cluster(*slots, agent=["--warm-memory", str(memory), "--preload", preload])

    return make


def normalized(text: str) -> Any:
    """A portrait without what differs from one attempt to the next."""
    said = json.loads(text)
    chance = said.pop("chance")
    epoch, job = said["environ"]["GPUCTL_EPOCH"], said["environ"]["GPUCTL_JOB_ID"]
    for name in ("MLFLOW_TRACKING_TOKEN", "MLFLOW_RUN_ID", "GPUCTL_RUN_ID"):
        assert said["environ"].pop(name)
    said["environ of /proc"] = [
        entry for entry in said["environ of /proc"] if not entry.startswith(("MLFLOW_TRACKING_TOKEN=", "MLFLOW_RUN_ID=", "GPUCTL_RUN_ID="))
    ]
    plain = json.dumps(said).replace(job, "JOB")
    plain = re.sub(rf"([/.]){epoch}\b", r"\1EPOCH", plain).replace(f"GPUCTL_EPOCH={epoch}", "GPUCTL_EPOCH=EPOCH")
    portrait = json.loads(plain)
    assert portrait["environ"].pop("GPUCTL_EPOCH") == epoch
    portrait["cgroup"] = re.sub(r"\.a\d+", ".aNUMBER", portrait["cgroup"])
    return portrait, chance


COMMANDS = {
    "file": ["python", str(PROGRAMS / "portrait.py"), "first", "--second=2"],
    "module": ["python", "-m", "portrait", "first"],
    "line": [
        "python",
        "-c",
        "import sys; sys.path.insert(0, sys.argv[1]); import portrait, json; print(json.dumps(portrait.portrait()))",
        str(PROGRAMS),
    ],
}


@pytest.mark.parametrize("how", COMMANDS)
def test_a_warm_rank_is_as_a_fresh_one(warm_cluster: Callable[..., Cluster], how: str) -> None:
    cluster = warm_cluster(1)
    spec = {"env": {"GREETING": "h\u00e9llo\nworld", **({"PYTHONPATH": str(PROGRAMS)} if how == "module" else {})}}
    output, start = run(cluster, COMMANDS[how], **spec)
    assert start == "cold nothing like it has run here lately"
    fresh, _ = normalized(output)
    warm, chance = normalized(run_until_warm(cluster, COMMANDS[how], **spec))
    for what in fresh:
        assert warm[what] == fresh[what], what
    assert warm.keys() == fresh.keys()
    _, other_chance = normalized(run_until_warm(cluster, COMMANDS[how], **spec))
    assert all(one != other for one, other in zip(chance, other_chance))


def test_warm_ranks_of_one_gang_draw_different_numbers_and_have_their_own_identities(warm_cluster: Callable[..., Cluster]) -> None:
    cluster = warm_cluster(2, preload="numpy,numpy.random")
    program = "import os, random, numpy; print(os.environ['RANK'], os.environ['MASTER_PORT'], random.random(), numpy.random.random())"
    run_until_warm(cluster, ["python", "-c", program], gpus=2)
    job = cluster.api.submit(["python", "-c", program], gpus=2)
    assert cluster.api.wait(job)["state"] == "SUCCEEDED"
    ranks = [cluster.api.log(job, rank).split() for rank in range(2)]
    assert [words[0] for words in ranks] == ["0", "1"] and ranks[0][1] == ranks[1][1]
    assert all(ranks[0][at] != ranks[1][at] for at in (2, 3))


ENDINGS = {
    "an exception": "import os\ndef f():\n    try:\n        {}['a']\n    except KeyError:\n        raise RuntimeError('told')\nf()",
    "a code": "import sys; print('out'); sys.exit(7)",
    "a text": "import sys; sys.exit('why')",
    "an exit function": "import atexit; atexit.register(print, 'last'); print('first')",
    "a hook": "import sys; sys.excepthook = lambda kind, fault, trace: print('hook', kind.__name__, trace.tb_lineno); 1/0",
    "an interrupt": "raise KeyboardInterrupt",
    "an abort": "import os; os.abort()",
    "a syntax error": "print('a'\n",
}


def test_it_ends_as_a_fresh_one(warm_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = warm_cluster(1)

    def ending(name: str) -> Any:
        program = tmp_path / f"{name.replace(' ', '_')}.py"
        program.write_text(ENDINGS[name])
        before = len(starts(cluster))
        job = cluster.api.submit(["python", str(program)], env={"PYTHONFAULTHANDLER": ""})
        ended = cluster.api.wait(job)
        start = eventually(lambda: starts(cluster)[before:], "how it started")[0]
        return start, ended["state"], ended["exit_code"], cluster.api.log(job), cluster.api.log(job, stream="stderr")

    fresh = {name: ending(name) for name in ENDINGS}
    for name in ENDINGS:
        warm = eventually(lambda: (seen := ending(name))[0] == "warm" and seen, "a warm start", WARM_PATIENCE)  # noqa: B023
        assert warm[1:] == fresh[name][1:], name
    assert {start for start, *_ in fresh.values()} != {"warm"}


def test_functions_are_called_by_warm_workers(warm_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = warm_cluster(1, 1, preload="torch")
    script = tmp_path / "notebook.py"
    script.write_text(
        textwrap.dedent("""
        from serverless_gpu import distributed

        @distributed(gpus=2, remote=True)
        def meet(x):
            import os, torch, torch.distributed as dist
            dist.init_process_group("gloo")
            total = torch.tensor([x + dist.get_rank()])
            dist.all_reduce(total)
            dist.destroy_process_group()
            return int(total), os.environ["RANK"]

        print(meet.distributed(10))
        """)
    )

    def both_warm() -> bool:
        variables = environment(cluster, tmp_path)
        ran = subprocess.run([PYTHON, str(script)], env=variables, capture_output=True, text=True, timeout=WARM_PATIENCE)
        assert ran.returncode == 0, ran.stderr
        assert "[(21, '0'), (21, '1')]" in ran.stdout
        return starts(cluster, 0)[-1:] == starts(cluster, 1)[-1:] == ["warm"]

    eventually(both_warm, "a warm gang", WARM_PATIENCE)


# --- doubts -------------------------------------------------------------------------------------------------------------------


def test_a_module_of_the_jobs_own_comes_before_one_that_was_imported(warm_cluster: Callable[..., Cluster]) -> None:
    cluster = warm_cluster(1)
    command = ["python", "-c", "import numpy; print(getattr(numpy, 'OWN', 'theirs'))"]
    assert run_until_warm(cluster, command) == "theirs\n"
    files = [{"path": "numpy.py", "text": "OWN = 'own'"}]
    assert run_with_shim(cluster, command, files=files) == ("own\n", "cold the working folder has a numpy of its own")


def test_modules_that_have_changed_are_imported_anew(warm_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    (tmp_path / "changing.py").write_text("VALUE = 1")
    cluster = warm_cluster(1, preload="changing")
    command = ["python", "-c", "import changing; print(changing.VALUE)"]
    spec = {"env": {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}}
    assert run_until_warm(cluster, command, **spec) == "1\n"
    (tmp_path / "new.py").write_text("VALUE = 2")
    (tmp_path / "new.py").rename(tmp_path / "changing.py")
    assert run_with_shim(cluster, command, **spec) == ("2\n", f"stale {tmp_path} has changed")
    assert run_until_warm(cluster, command, **spec) == "2\n"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import threading, time; threading.Thread(target=time.sleep, args=(600,), daemon=True).start()", "what is imported has threads"),
        ("import sys; kept = open(sys.executable)", "what is imported opens files"),
        ("raise ValueError('broken')", "ValueError: broken"),
        ("import os; os.kill(os.getpid(), 9)", "its forkserver has ended"),
    ],
)
def test_what_cannot_be_forked_is_not(warm_cluster: Callable[..., Cluster], tmp_path: Path, source: str, why: str) -> None:
    (tmp_path / "strange.py").write_text(source)
    cluster = warm_cluster(1, preload="strange")
    spec = {"env": {"PYTHONPATH": str(tmp_path)}}
    command = ["python", "-c", "print('ran')"]
    run(cluster, command, **spec)
    eventually(lambda: "forkserver unfit" in cluster.agents[0].said(), "a forkserver that is unfit", WARM_PATIENCE)
    output, how = run(cluster, command, **spec)
    assert output == "ran\n" and how.startswith(f"cold {why}")


@pytest.mark.parametrize(
    ("preload", "memory", "why"), [("no_such_module", 2048, "none of no_such_module is installed"), ("numpy", 1, "it takes")]
)
def test_a_node_says_why_it_has_no_warm_workers(warm_cluster: Callable[..., Cluster], preload: str, memory: int, why: str) -> None:
    cluster = warm_cluster(1, preload=preload, memory=memory)
    command = ["python", "-c", "print('ran')"]
    run(cluster, command)
    eventually(lambda: "forkserver unfit" in cluster.agents[0].said(), "a forkserver that is unfit", WARM_PATIENCE)
    assert run(cluster, command)[1].startswith(f"cold {why}")


def test_options_of_python_and_larger_gangs_start_cold(warm_cluster: Callable[..., Cluster]) -> None:
    cluster = warm_cluster(2)
    command = ["python", "-c", "print('ran')"]
    run_until_warm(cluster, command)
    assert run(cluster, ["python", "-O", "-c", "print('ran')"]) == ("ran\n", "cold it has options of Python")
    assert run(cluster, command, gpus=2)[1].startswith("cold ")


# --- what is left -------------------------------------------------------------------------------------------------------------


def processes(cluster: Cluster) -> dict[int, str]:
    """Forkservers, workers and shims that belong to the agents of a cluster, by what they show of themselves."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if "gpuctl_warm" in line and str(cluster.folder) in line:
            found[int(name)] = line
    return found


def test_nothing_is_left_of_an_agent_that_was_killed(warm_cluster: Callable[..., Cluster]) -> None:
    cluster = warm_cluster(1)
    run_until_warm(cluster, ["python", "-c", "print('ran')"])
    assert processes(cluster)
    cluster.agents[0].kill()
    eventually(lambda: not processes(cluster), "forkserver and workers to end")


def test_a_killed_forkserver_costs_no_job(warm_cluster: Callable[..., Cluster]) -> None:
    cluster = warm_cluster(1)
    command = ["python", "-c", "print('ran')"]
    run_until_warm(cluster, command)
    for pid in processes(cluster):
        os.kill(pid, signal.SIGKILL)
    assert run(cluster, command)[0] == "ran\n"


def test_a_killed_shim_takes_its_warm_ranks_along(warm_cluster: Callable[..., Cluster]) -> None:
    cluster = warm_cluster(1)
    command = ["python", "-c", "import os, time; print(os.getpid(), os.getppid(), flush=True); time.sleep(600)"]
    run_until_warm(cluster, ["python", "-c", "print('ran')"])

    def warm() -> tuple[str, int, int] | None:
        job = cluster.api.submit(command)
        rank, shim = map(int, eventually(lambda: cluster.api.log(job), "the rank's number").split())
        if starts(cluster)[-1] == "warm":
            return job, rank, shim
        cluster.api.post(f"/v1/jobs/{job}/cancel")
        cluster.api.wait(job)
        return None

    job, rank, shim = eventually(warm, "a warm start", WARM_PATIENCE)
    agent = cluster.agents[0].process
    assert agent is not None
    agent.send_signal(signal.SIGSTOP)  # it would kill what the shim left
    try:
        os.kill(shim, signal.SIGKILL)
        eventually(lambda: not Path(f"/proc/{rank}").exists(), "the rank to end with its shim")
    finally:
        agent.send_signal(signal.SIGCONT)
    cluster.api.post(f"/v1/jobs/{job}/cancel")
    cluster.api.wait(job)
