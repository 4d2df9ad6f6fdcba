# SPDX-License-Identifier: Apache-2.0
"""gpuctl_watch.py in a rank: which line keeps a gang from becoming one world. torch is one of paper; tests/frameworks has a real
one. And which run the processes of an attempt start at an MLflow server of the user's. MLflow is one of paper, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

AGENT = Path(__file__).parents[3] / "agent" / "python"

#: init_process_group waits for the answer "met WORLD RANK" or "gone" on stdin, as torch waits for other ranks.
TORCH = """
world = rank = None
def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None):
    'What torch says.'
    answer = input().split()
    if answer[0] == "gone":
        raise RuntimeError("nobody came")
    globals().update(world=int(answer[1]), rank=int(answer[2]))
def get_world_size(): return world
def get_rank(): return rank
"""

#: Waits for the other ranks until the watch has spoken, not for a time.
AT_ONCE = "import gpuctl_watch, threading; gpuctl_watch.PATIENCE_S = 0.0\n"


class Rank:
    """Rank 1 of a gang of two over two nodes, whose rank 0 is at 10.9.8.7:29400."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.note = folder / "1.note"
        laid = folder / "runner"
        (laid / "watch").mkdir(parents=True)
        for name in ("gpuctl_watch.py", "gpuctl_mlflow.py"):
            (laid / name).write_text((AGENT / name).read_text())
        (laid / "watch" / "sitecustomize.py").write_text((AGENT / "gpuctl_site.py").read_text())
        package = folder / "torch" / "distributed"
        package.mkdir(parents=True)
        (folder / "torch" / "__init__.py").touch()
        (package / "__init__.py").write_text("from .distributed_c10d import *\n")
        (package / "distributed_c10d.py").write_text(TORCH)
        self.env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{laid}/watch:{folder}",
            "GPUCTL_WATCH": str(laid),
            "GPUCTL_NOTE_FILE": str(self.note),
            "GPUCTL_MASTER": "10.9.8.7:29400",
            "GPUCTL_WORLD_SIZE": "2",
            "GPUCTL_RANK": "1",
            "GPUCTL_NODE_RANK": "1",
            "GPUCTL_NODES": "2",
            "GPUCTL_SOCKET": str(laid / "rank.sock"),
            "MASTER_ADDR": "10.9.8.7",
            "MASTER_PORT": "29400",
            "WORLD_SIZE": "2",
            "RANK": "1",
        }

    def tells_whether_the_runner_is_on_the_path(self) -> str:
        """A program; the interpreter itself may live in a folder of any name."""
        return f"import sys; print(any(entry.startswith({str(self.folder / 'runner')!r}) for entry in sys.path))\n"

    def run(self, program: str, answer: str = "met 2 1") -> subprocess.CompletedProcess[str]:
        """The program as train.py; the answer comes when the watch has said something, or at once."""
        path = self.folder / "train.py"
        path.write_text(textwrap.dedent(program))
        pipe = subprocess.PIPE
        with subprocess.Popen(
            [sys.executable, str(path)], env=self.env, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=self.folder
        ) as process:
            assert process.stdin is not None and process.stderr is not None and process.stdout is not None
            first = process.stderr.readline() if AT_ONCE in program else ""
            out, err = process.communicate(answer + "\n")
        return subprocess.CompletedProcess(path.name, process.returncode, out, first + err)


@pytest.fixture
def rank(tmp_path: Path) -> Rank:
    return Rank(tmp_path)


def test_a_rank_that_looks_for_rank_0_elsewhere_names_the_line(rank: Rank) -> None:
    program = AT_ONCE + "import os, torch.distributed as dist\nos.environ['MASTER_ADDR'] = 'localhost'\ndist.init_process_group('gloo')\n"
    ran = rank.run(program, "gone")
    text = (
        "rank 1 has not met the others: it looks for rank 0 at localhost:29400, as train.py:3 says, but rank 0 is at 10.9.8.7:29400."
        " Leave that line out: MASTER_ADDR and MASTER_PORT are set already."
    )
    assert ran.stderr.startswith(f"gpuctl: {text}\n"), ran.stderr
    assert rank.note.read_text() == text + "\n"
    assert "nobody came" in ran.stderr and ran.returncode == 1


def test_a_rank_whose_init_method_is_elsewhere_names_the_call(rank: Rank) -> None:
    program = AT_ONCE + "import torch.distributed as dist\ndist.init_process_group('gloo', 'tcp://127.0.0.1:5000', None, 2, 1)\n"
    ran = rank.run(program, "gone")
    assert "it looks for rank 0 at 127.0.0.1:5000, as the init_method of train.py:3 says" in ran.stderr, ran.stderr


def test_a_rank_that_waits_for_more_ranks_than_there_are_says_so(rank: Rank) -> None:
    program = AT_ONCE + "import torch.distributed as dist\ndist.init_process_group('gloo', world_size=8, rank=1)\n"
    ran = rank.run(program, "gone")
    assert "it waits for 8 ranks, as world_size of train.py:3 says, but the job has 2." in ran.stderr, ran.stderr


def test_what_was_told_is_taken_back_when_the_others_come_after_all(rank: Rank) -> None:
    program = AT_ONCE + "import os, torch.distributed as dist\nos.environ['MASTER_PORT'] = '29500'\ndist.init_process_group('gloo')\n"
    ran = rank.run(program)
    assert "rank 1 has not met" in ran.stderr and ran.returncode == 0, ran.stderr
    assert not rank.note.exists()


@pytest.mark.parametrize(
    ("lines", "answer", "found"),
    [
        (["dist.init_process_group(world_size=1, rank=0)"], "met 1 0", "world of 1, but the job has 2 ranks: see world_size of train.py:3"),
        (["os.environ.update(WORLD_SIZE='1', RANK='0')", "dist.init_process_group()"], "met 1 0", "has 2 ranks: see train.py:3"),
        (
            ["os.environ.setdefault('MASTER_PORT', '1')", "os.environ['MASTER_ADDR'] = '127.0.0.1'", "dist.init_process_group()"],
            "met 2 1",
            "in a world of its own node: train.py:4 looks for rank 0 at 127.0.0.1, but rank 0 is at 10.9.8.7.",
        ),
    ],
    ids=["world_size", "variables", "node"],
)
def test_a_world_of_its_own_names_the_line(rank: Rank, lines: list[str], answer: str, found: str) -> None:
    ran = rank.run("\n".join(["import os", "import torch.distributed as dist", *lines]) + "\n", answer)
    assert ran.returncode == 0
    assert found in ran.stderr and found in rank.note.read_text(), ran.stderr


def test_a_gang_that_meets_hears_nothing(rank: Rank) -> None:
    ran = rank.run(
        "import os\nos.environ['MASTER_ADDR'] = os.environ['MASTER_ADDR']\nimport torch.distributed as dist\ndist.init_process_group()\n"
        "print(dist.init_process_group.__doc__, os.environ['PYTHONPATH'].count('watch'))\n"
    )
    assert (ran.stdout, ran.stderr, ran.returncode) == ("What torch says. 1\n", "", 0)
    assert not rank.note.exists()


def test_a_python_below_the_rank_is_watched_too(rank: Rank) -> None:
    below = "import torch.distributed as dist; dist.init_process_group(world_size=1, rank=0)"
    ran = rank.run(f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {below!r}], check=True)\n", "met 1 0")
    assert "rank 1 is in a world of 1" in ran.stderr, ran.stderr


def test_the_sitecustomize_of_the_user_is_imported_as_ever(rank: Rank) -> None:
    (rank.folder / "sitecustomize.py").write_text("import sys; print('theirs', __name__, __file__.endswith('sitecustomize.py'))\n")
    ran = rank.run("import sitecustomize; print(sitecustomize.__file__)\n" + rank.tells_whether_the_runner_is_on_the_path())
    assert (ran.stdout, ran.stderr) == (f"theirs sitecustomize True\n{rank.folder / 'sitecustomize.py'}\nFalse\n", "")


def test_without_a_sitecustomize_of_the_user_nothing_is_said(rank: Rank) -> None:
    rank.env["PYTHONPATH"] = rank.env["PYTHONPATH"].partition(":")[0]
    ran = rank.run(rank.tells_whether_the_runner_is_on_the_path())
    assert (ran.stdout, ran.stderr, ran.returncode) == ("False\n", "", 0)


def test_a_python_that_is_too_old_to_be_watched_is_left_alone(rank: Rank) -> None:
    program = "import sys; del sys.addaudithook; import sitecustomize; print('gpuctl_watch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-S", "-c", program], env=rank.env, capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("False\n", "")


# --- the run of an attempt at another tracking server ---

#: Says with what each run is started; a search for the run of the attempt finds what $FOUND names, one for candidates that of $RIVAL, too.
MLFLOW = """
import os, types
import mlflow.exceptions
from mlflow.tracking import fluent
def get_tracking_uri(): return os.environ["MLFLOW_TRACKING_URI"]
def a_run(name, tags): return types.SimpleNamespace(info=types.SimpleNamespace(run_id=name), data=types.SimpleNamespace(tags=tags))
class MlflowClient:
    def search_runs(self, experiments, text, max_results=1000):
        print("search", experiments, text)
        if "candidate" not in text:
            return [a_run(os.environ["FOUND"], {})] if os.environ.get("FOUND") else []
        rival = os.environ.get("RIVAL")
        tags = {"gpuctl.candidate_node": "0", **({"gpuctl.attempt": "aaaa/2"} if fluent.yielded else {})}
        return [a_run(name, tags) for name, tags in fluent.made.items()] + ([a_run(rival, tags)] if rival else [])
    def set_tag(self, run, name, value):
        print("tag", run == list(fluent.made)[-1], name, value)
        fluent.yielded |= "yielded" in name
    def delete_run(self, run):
        print("delete", run == list(fluent.made)[-1])
from mlflow.tracking.fluent import end_run, set_experiment, start_run
"""
FLUENT = """
import os, types
from mlflow.exceptions import MlflowException
made = {}
yielded = False
_active_experiment_id = None
def set_experiment(name):
    global _active_experiment_id
    if not os.environ.pop("MADE_MEANWHILE", ""):
        _active_experiment_id = "8"
    return types.SimpleNamespace(experiment_id="8")
def active_run(): return None
def end_run(): os.environ.pop("MLFLOW_RUN_ID", None)
def _get_experiment_id():
    if os.environ.pop("MADE_MEANWHILE", ""):
        raise MlflowException("RESOURCE_ALREADY_EXISTS")
    return _active_experiment_id or "7"
def start_run(run_id=None, experiment_id=None, run_name=None, nested=False, parent_run_id=None, tags=None):
    run_id = run_id or os.environ.pop("MLFLOW_RUN_ID", None)
    print("start", run_id, run_name, nested, tags, flush=True)
    if "TELL" in os.environ:
        print("measures", os.environ.get("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING"), flush=True)
    if run_id in os.environ.get("UNKNOWN", "").split():
        raise MlflowException("RESOURCE_DOES_NOT_EXIST")
    made[run_id or f"{os.getpid()}.{len(made)}"] = tags or {}
    return types.SimpleNamespace(info=types.SimpleNamespace(run_id=list(made)[-1]))
"""
EXCEPTIONS = """
class MlflowException(Exception):
    error_code = property(lambda self: self.args[0])
"""
TWICE = "import mlflow\nmlflow.start_run(run_name='a')\nmlflow.end_run()\nmlflow.start_run(run_name='b')\n"
SEARCHED = "search ['7'] tags.`gpuctl.attempt` = 'aaaa/2'\n"
LISTED = "search ['7'] tags.`gpuctl.candidate` = 'aaaa/2'\n"
CHOSEN = "tag True gpuctl.attempt aaaa/2\n"


def candidate(node: int) -> str:
    return f"start None a False {{'gpuctl.candidate': 'aaaa/2', 'gpuctl.candidate_node': '{node}'}}\n{LISTED}"


SECOND = "start None b False None\n"


def below(program: str) -> str:
    """What starts another Python, as torchrun and multiprocessing do."""
    return f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {program!r}], check=True)\n"


@pytest.fixture(params=["a rank a GPU", "a process a node", "a rank alone"])
def tracking(rank: Rank, request: pytest.FixtureRequest) -> Rank:
    (rank.folder / "mlflow" / "tracking").mkdir(parents=True)
    (rank.folder / "mlflow" / "__init__.py").write_text(MLFLOW)
    (rank.folder / "mlflow" / "exceptions.py").write_text(EXCEPTIONS)
    (rank.folder / "mlflow" / "tracking" / "__init__.py").touch()
    (rank.folder / "mlflow" / "tracking" / "fluent.py").write_text(FLUENT)
    rank.env.update(MLFLOW_TRACKING_URI="https://mlflow.example.org", GPUCTL_JOB_ID="aaaa", GPUCTL_ATTEMPT="2")
    missing = {"a process a node": ("GPUCTL_WORLD_SIZE", "GPUCTL_NOTE_FILE"), "a rank alone": ("GPUCTL_WORLD_SIZE", "GPUCTL_MASTER")}
    for name in missing.get(request.param, ()):
        del rank.env[name]
    return rank


def test_the_first_run_of_the_first_node_is_tagged_with_the_attempt(tracking: Rank) -> None:
    tracking.env["GPUCTL_NODE_RANK"] = "0"
    ran = tracking.run(TWICE)
    assert ran.stdout == SEARCHED + candidate(0) + CHOSEN + SECOND, ran.stderr


def test_where_there_is_one_node_it_asks_nobody(tracking: Rank) -> None:
    tracking.env.update(GPUCTL_NODE_RANK="0", GPUCTL_NODES="1")
    assert tracking.run(TWICE).stdout == "start None a False {'gpuctl.attempt': 'aaaa/2'}\n" + SECOND


def test_other_processes_of_the_node_take_the_run_of_the_first(tracking: Rank) -> None:
    tracking.env["GPUCTL_NODE_RANK"] = "0"
    made = tracking.run(TWICE + "print(list(mlflow.tracking.fluent.made)[0])\n").stdout.split()[-1]
    assert tracking.run(TWICE).stdout == f"start {made} a False None\n{SECOND}"
    assert tracking.run(below(TWICE)).stdout == f"start {made} a False None\n{SECOND}"
    other = "import mlflow\nmlflow.start_run(experiment_id='8')\n"
    text = (SEARCHED + candidate(0) + CHOSEN).replace("['7']", "['8']").replace("None a", "None None")
    assert tracking.run(other).stdout == text, "the run is in another experiment"


def test_other_nodes_take_the_run_of_the_attempt_first(tracking: Rank) -> None:
    tracking.env["FOUND"] = "abc"
    ran = tracking.run(TWICE)
    assert ran.stdout == f"{SEARCHED}start abc a False None\n{SECOND}", ran.stderr
    assert tracking.run(TWICE).stdout == f"start abc a False None\n{SECOND}", "its node knows it by now"


def test_a_node_makes_the_run_where_the_first_logs_nothing_and_its_processes_do_not_wait_again(tracking: Rank) -> None:
    ran = tracking.run("import mlflow, sys\nsys.modules['gpuctl_mlflow'].PATIENCE_S = 0.0\n" + TWICE)
    assert ran.stdout == SEARCHED + candidate(1) + CHOSEN + SECOND, ran.stderr
    assert "search" not in tracking.run(TWICE).stdout


def test_of_two_nodes_that_make_a_run_at_the_same_time_the_higher_deletes_its_own(tracking: Rank) -> None:
    tracking.env["RIVAL"] = "abc"
    ran = tracking.run("import mlflow, sys\nsys.modules['gpuctl_mlflow'].PATIENCE_S = 0.0\n" + TWICE)
    lost = f"tag True gpuctl.candidate_yielded true\n{LISTED}delete True\n"
    assert ran.stdout == SEARCHED + candidate(1) + lost + "start abc a False None\n" + SECOND, ran.stderr


def test_what_a_process_with_a_run_starts_has_runs_of_its_own(tracking: Rank) -> None:
    tracking.env["FOUND"] = "abc"
    ran = tracking.run("import mlflow\nmlflow.start_run()\n" + below(TWICE))
    assert ran.stdout == f"{SEARCHED}start abc None False None\nstart None a False None\n{SECOND}", ran.stderr


def test_an_experiment_that_another_node_makes_at_the_same_time_is_found(tracking: Rank) -> None:
    tracking.env.update(FOUND="abc", MADE_MEANWHILE="1")
    ran = tracking.run(TWICE)
    assert ran.stdout == f"{SEARCHED}start abc a False None\n{SECOND}", ran.stderr
    ran = tracking.run("import mlflow\nprint(mlflow.set_experiment('name').experiment_id)\n" + TWICE)
    assert ran.stdout == f"8\n{SEARCHED.replace('7', '8')}start abc a False None\n{SECOND}", ran.stderr


def test_a_run_that_could_not_be_started_is_tried_again(tracking: Rank) -> None:
    tracking.env.update(FOUND="abc", UNKNOWN="abc")
    again = "import mlflow, os\ntry:\n    mlflow.start_run()\nexcept mlflow.exceptions.MlflowException:\n    del os.environ['UNKNOWN']\n"
    ran = tracking.run(again + TWICE)
    assert ran.stdout == f"{SEARCHED}start abc None False None\n{SEARCHED}start abc a False None\n{SECOND}", ran.stderr


def test_ranks_whose_code_sets_another_server_share_a_run_there(tracking: Rank) -> None:
    tracking.env.update(MLFLOW_RUN_ID="abc", GPUCTL_RUN_ID="abc", UNKNOWN="abc", GPUCTL_NODE_RANK="0")
    ran = tracking.run(TWICE)
    assert ran.stdout == "start abc a False None\n" + SEARCHED + candidate(0) + CHOSEN + SECOND, ran.stderr
    assert tracking.run(TWICE).stdout.endswith(f" a False None\n{SECOND}")
    tracking.env.update(GPUCTL_RUN_ID="def")
    ran = tracking.run(TWICE)
    assert ran.stdout == "start abc a False None\n" and "MlflowException: RESOURCE_DOES_NOT_EXIST" in ran.stderr, "the job names that run"


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({"MLFLOW_RUN_ID": "abc", "GPUCTL_RUN_ID": "abc"}, ["None", "None"]),  # the agent measures into it
        ({"MLFLOW_RUN_ID": "abc", "GPUCTL_RUN_ID": "abc", "UNKNOWN": "abc"}, ["None", "true", "true"]),  # set_tracking_uri
        ({"MLFLOW_RUN_ID": "mine"}, ["true", "true"]),
        ({"MLFLOW_RUN_ID": "mine", "MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING": "false"}, ["false", "false"]),
        ({"MLFLOW_RUN_ID": "mine", "GPUCTL_SYSTEM_METRICS": ""}, ["None", "None"]),  # another rank of the node does it
    ],
    ids=["ours", "elsewhere", "named", "unwanted", "other rank"],
)
def test_mlflow_measures_the_node_where_the_run_is_not_the_controllers(tracking: Rank, env: dict[str, str], told: list[str]) -> None:
    (tracking.folder / "psutil.py").touch()
    tracking.env.update({"TELL": "1", "GPUCTL_NODE_RANK": "0", "GPUCTL_SYSTEM_METRICS": "1", **env})
    ran = tracking.run(TWICE)
    assert [line.split()[1] for line in ran.stdout.splitlines() if line.startswith("measures")] == told, ran


@pytest.mark.parametrize(
    ("name", "value", "first"),
    [
        ("MLFLOW_RUN_ID", "", "start  a False None\n"),
        ("MLFLOW_RUN_ID", "mine", "start mine a False None\n"),
        ("GPUCTL_RUN_ID", "abc", "start None a False None\n"),
        ("MLFLOW_TRACKING_URI", "file:///srv/mlruns", "start None a False None\n"),
    ],
    ids=["none", "named", "ours", "files"],
)
def test_ranks_that_have_a_run_or_want_their_own_are_left_alone(tracking: Rank, name: str, value: str, first: str) -> None:
    tracking.env[name] = value
    assert tracking.run(TWICE).stdout == first + SECOND


def test_a_nested_run_without_an_outer_one_is_the_first_and_one_that_is_named_is_left_alone(tracking: Rank) -> None:
    tracking.env["FOUND"] = "abc"
    ran = tracking.run("import mlflow\nmlflow.start_run('mine')\nmlflow.start_run(nested=True)\nmlflow.start_run(nested=True)\n")
    assert ran.stdout == f"start mine None False None\n{SEARCHED}start abc None True None\nstart None None True None\n", ran.stderr


def test_one_process_a_node_may_make_a_world_of_its_own(rank: Rank) -> None:
    del rank.env["GPUCTL_WORLD_SIZE"]
    ran = rank.run("import torch.distributed as dist\ndist.init_process_group(world_size=1, rank=0)\n", "met 1 0")
    assert (ran.stderr, ran.returncode) == ("", 0) and not rank.note.exists()
