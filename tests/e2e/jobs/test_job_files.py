# SPDX-License-Identifier: Apache-2.0
"""Jobs as files: YAML of both forms, and batch scripts that were written for Slurm, as real jobs over two nodes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import PYTHON, Cluster, run_gpuctl
from slowness import patient

Run = Callable[..., subprocess.CompletedProcess[str]]
MEET = Path(__file__).parents[1] / "programs" / "meet.py"

#: What most training scripts do first: meet by env://, and agree on a sum.
REDUCE = """
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
print("rank", dist.get_rank(), "of", dist.get_world_size(), "sum", int(total), flush=True)
dist.destroy_process_group()
"""


def gpuctl_of(cluster: Cluster) -> Run:
    settings = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token")}

    def run(*arguments: str, env: dict[str, str] | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
        return run_gpuctl(*arguments, env={**settings, **(env or {})}, **options)

    return run


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes of one slot each, so that a job of two is one over both."""
    shared = Cluster(tmp_path_factory.mktemp("pair"), [1, 1]).start()
    yield shared
    shared.stop()


@pytest.fixture
def gpuctl(pair: Cluster) -> Run:
    return gpuctl_of(pair)


@pytest.fixture
def nowhere(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a person with no controller; one that was started all the same ends with the test."""
    yield {"GPUCTL_STATE": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path)}
    if (tmp_path / "state").exists():
        run_gpuctl("down", "--force", "--state", str(tmp_path / "state"))


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def lines(ran: subprocess.CompletedProcess[str]) -> list[str]:
    return sorted(ran.stdout.splitlines())


# --- YAML ---


def test_a_job_file_of_our_own_form_runs_with_its_files_and_environment(gpuctl: Run, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("content\n")
    job = write(
        tmp_path / "job.yaml",
        """
name: from-file
gpus: 2
time_limit: 2m
env: {LR: 1e-3, STEPS: 007}
files:
  - source: data.txt
    path: in/data.txt
command: |
  echo $RANK of $WORLD_SIZE $LR $STEPS $(cat in/data.txt)
""",
    )
    ran = gpuctl("run", "-f", job)
    assert ran.returncode == 0, ran.stderr
    assert lines(ran) == ["[0] 0 of 2 1e-3 007 content", "[1] 1 of 2 1e-3 007 content"]
    jobs = json.loads(gpuctl("ps", "--all", "--name", "from-file", "-o", "json").stdout)["jobs"]
    assert len(jobs) == 1


def test_options_win_over_the_job_file(gpuctl: Run, tmp_path: Path) -> None:
    job = write(tmp_path / "job.yaml", "gpus: 2\nenv: {A: file, B: file}\ncommand: [sh, -c, 'echo file']\n")
    ran = gpuctl("run", "--quiet", "-f", job, "--gpus", "1", "--env", "A=flag", "--", "sh", "-c", "echo $A $B $WORLD_SIZE")
    assert ran.stdout == "flag file 1\n", ran.stderr
    submitted = gpuctl("submit", "-f", job, "--gpus", "1")
    assert gpuctl("wait", submitted.stdout.strip()).returncode == 0


def test_a_job_file_in_the_form_of_air_runs_once_per_node_with_its_code_and_parameters(gpuctl: Run, tmp_path: Path) -> None:
    code = tmp_path / "code"
    (code / "lib").mkdir(parents=True)
    (code / ".gitignore").write_text("*.log\nout/\n")
    (code / "lib" / "text.sh").write_text("echo from code\n")
    (code / "left.log").write_text("not sent\n")
    job = write(
        tmp_path / "air.yaml",
        """
experiment_name: /Users/me/first try
compute: {accelerator_type: GPU_1xcpu, num_accelerators: 2}
environment: {env_variables: {RATE: 1.50}}
code_source: {root_path: code}
parameters: {epochs: 3}
max_retries: 0
timeout_minutes: 2
command: |-
  parameters=$(tr -d ' \\n' <$PARAMETERS_FILE)
  echo $NODE_RANK/$NUM_NODES $WORLD_SIZE $LOCAL_WORLD_SIZE $RATE $parameters $(sh $CODE_SOURCE_PATH/lib/text.sh) $(ls | grep -c log)
""",
    )
    ran = gpuctl("run", "-f", job)
    assert ran.returncode == 0, ran.stderr
    assert lines(ran) == [f'[{node}] {node}/2 2 1 1.50 {{"epochs":3}} from code 0' for node in (0, 1)]
    assert "the job is named first-try" in ran.stderr


def test_a_wrong_job_file_is_refused_with_its_line_before_anything_is_started(nowhere: dict[str, str], tmp_path: Path) -> None:
    unknown = write(tmp_path / "job.yaml", "gpus: 1\ncomand: x\n")
    ran = run_gpuctl("run", "-f", unknown, env=nowhere)
    checked = run_gpuctl("convert", unknown)
    assert checked.returncode == 2 and "job.yaml:2: comand is not a known field" in checked.stderr, checked.stderr
    assert "did you mean command?" in checked.stderr
    assert ran.returncode == 125 and "job.yaml:2: comand is not a known field" in ran.stderr, ran.stderr
    tab = write(tmp_path / "tab.yaml", "env:\n\tA: 1\n")
    ran = run_gpuctl("submit", "-f", tab, env=nowhere)
    assert ran.returncode == 2 and "tab.yaml:2:1: a tab cannot indent" in ran.stderr, ran.stderr
    secrets = write(
        tmp_path / "air.yaml",
        "experiment_name: x\ncommand: x\ncompute: {accelerator_type: GPU_1xA10, num_accelerators: 1}\n"
        "environment:\n  secrets: {A: scope/key}\n",
    )
    ran = run_gpuctl("submit", "-f", secrets, env=nowhere)
    assert ran.returncode == 2 and "air.yaml:5: environment.secrets is not supported" in ran.stderr, ran.stderr
    assert "--ignore-unsupported" in ran.stderr
    assert not (tmp_path / "state").exists()


def test_what_convert_writes_can_be_run(gpuctl: Run, tmp_path: Path) -> None:
    script = write(tmp_path / "job.sh", "#!/bin/bash\n#SBATCH -N 2 --gres=gpu:1\n\nsrun bash -c 'echo task $SLURM_PROCID'\n")
    for form in ("yaml", "json"):
        converted = gpuctl("convert", script, "-o", form)
        assert converted.returncode == 0 and "runs on each of the 2 nodes" in converted.stderr
        ran = gpuctl("run", "-f", write(tmp_path / "converted", converted.stdout))
        assert lines(ran) == ["[0] task 0", "[1] task 1"], ran.stderr


# --- batch scripts ---


def batch(path: Path, directives: str, body: str) -> str:
    head = "".join(f"#SBATCH {line}\n" for line in directives.splitlines())
    return write(path, f"#!/bin/bash\n{head}\n{body}\n")


def test_srun_starts_one_task_a_node_which_meet_as_torch_would(gpuctl: Run, tmp_path: Path) -> None:
    script = batch(tmp_path / "train.sh", "--nodes=2\n--ntasks-per-node=1\n--gpus-per-node=1\n-t 5", f'srun "{PYTHON}" meet.py')
    ran = gpuctl("sbatch", "--wait", "--parsable", "--file", f"{MEET}:meet.py", script)
    assert ran.returncode == 0, ran.stderr
    job = ran.stdout.strip()
    shown = lines(gpuctl("logs", job))
    assert [line.rsplit(" ", 1)[0] for line in shown] == ["[0] rank 0 of 2 met on", "[1] rank 1 of 2 met on"]


def test_srun_torchrun_over_two_nodes_as_in_the_tutorials(gpuctl: Run, tmp_path: Path) -> None:
    (tmp_path / "reduce.py").write_text(REDUCE)
    script = batch(
        tmp_path / "train.sh",
        "--job-name=multinode\n--nodes=2\n--ntasks=2\n--gpus-per-task=1",
        f"""
nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
head_node=${{nodes[0]}}
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)
srun "{PYTHON}" -m torch.distributed.run --nnodes $SLURM_NNODES --nproc_per_node 1 --rdzv_id $SLURM_JOB_ID \\
    --rdzv_backend c10d --rdzv_endpoint $head_node_ip:$MASTER_PORT reduce.py
""",
    )
    ran = gpuctl("sbatch", "--wait", "--file", f"{tmp_path}/reduce.py", "-o", str(tmp_path / "out-%x-%j.txt"), script, timeout=patient(240))
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("Submitted batch job ")
    job = ran.stdout.split()[-1]
    text = (tmp_path / f"out-multinode-{job}.txt").read_text()
    assert "rank 0 of 2 sum 3" in text and "rank 1 of 2 sum 3" in text, text


def test_several_tasks_a_node_get_ranks_of_their_own(cluster: Cluster, tmp_path: Path) -> None:
    """Four slots on two nodes; one task a GPU, and each is told so in torch's words, too."""
    gpuctl = gpuctl_of(cluster)
    told = "$SLURM_PROCID/$SLURM_NTASKS local $SLURM_LOCALID node $SLURM_NODEID/$SLURM_NNODES: $RANK/$WORLD_SIZE $LOCAL_RANK"
    script = batch(tmp_path / "job.sh", "-N2 -n4 --gpus=4", f"srun bash -c 'echo {told}'")
    ran = gpuctl("sbatch", "--wait", "--parsable", script)
    assert ran.returncode == 0, ran.stderr
    shown = sorted(line.split("] ")[1] for line in gpuctl("logs", ran.stdout.strip()).stdout.splitlines())
    assert shown == [f"{rank}/4 local {rank % 2} node {rank // 2}/2: {rank}/4 {rank % 2}" for rank in range(4)]


def test_two_nodes_that_were_asked_for_are_made_up_on_one(cluster: Cluster, tmp_path: Path) -> None:
    gpuctl = gpuctl_of(cluster)
    body = "echo batch $SLURM_NODEID of $SLURM_NNODES with $SLURM_GPUS_ON_NODE\nsrun bash -c 'echo task $SLURM_PROCID of $SLURM_NTASKS'"
    script = batch(tmp_path / "job.sh", "-N 2\n--gres=gpu:1", body)
    ran = gpuctl("sbatch", "--wait", "--parsable", script)
    assert ran.returncode == 0, ran.stderr
    job = ran.stdout.strip()
    assert lines(gpuctl("logs", job)) == ["batch 0 of 2 with 1", "batch 1 of 2 with 1", "task 0 of 2", "task 1 of 2"]
    assert len(cluster.api.job(job)["nodes"]) == 1


@pytest.mark.parametrize(("code", "body"), [(0, "true"), (7, "exit 7"), (3, "srun -n1 bash -c 'exit 3'")], ids=["ok", "script", "task"])
def test_wait_exits_as_the_script_did(gpuctl: Run, tmp_path: Path, code: int, body: str) -> None:
    ran = gpuctl("sbatch", "-W", batch(tmp_path / "job.sh", "-n 1", body))
    assert ran.returncode == code, ran.stderr


def test_a_script_without_gpus_gets_cpus_and_memory_alone(cluster: Cluster, tmp_path: Path) -> None:
    gpuctl = gpuctl_of(cluster)
    told = "$SLURM_PROCID/$SLURM_NTASKS: $RANK/$WORLD_SIZE with $SLURM_CPUS_PER_TASK of $GPUCTL_CPUS, GPUs ${SLURM_GPUS_ON_NODE-none}"
    script = batch(tmp_path / "job.sh", "--ntasks=2 -c 1 --mem=64M", f"srun bash -c 'echo {told}'")
    ran = gpuctl("sbatch", "--wait", "--parsable", script)
    assert ran.returncode == 0, ran.stderr
    job = ran.stdout.strip()
    shown = sorted(line.split("] ")[-1] for line in gpuctl("logs", job).stdout.splitlines())
    assert shown == [f"{rank}/2: {rank}/2 with 1 of 2, GPUs none" for rank in range(2)]
    found = cluster.api.job(job)
    assert (found["gpus"], found["spec"]["cpus"], found["spec"]["memory"]) == (0, 2, 64 << 20)


def test_a_task_that_fails_ends_the_others_of_its_node(cluster: Cluster, tmp_path: Path) -> None:
    body = "srun bash -c 'if ((SLURM_PROCID == 1)); then exit 9; fi; exec sleep 1000'"
    ran = gpuctl_of(cluster)("sbatch", "-W", batch(tmp_path / "job.sh", "-n 2 --gpus 2", body))
    assert ran.returncode == 9, ran.stderr


def test_arguments_exports_and_wrap_reach_the_script(gpuctl: Run, tmp_path: Path) -> None:
    told = "echo $1 $2 $FROM_HERE $SLURM_JOB_NAME ${FROM_SCRIPT-gone}"
    script = batch(tmp_path / "job.sh", '--job-name="my job"\n--export=FROM_SCRIPT=1', told)
    ran = gpuctl("sbatch", "--wait", "--parsable", "--export", "FROM_HERE", script, "one", "two words", env={"FROM_HERE": "here"})
    assert ran.returncode == 0, ran.stderr
    assert gpuctl("logs", ran.stdout.strip()).stdout == "one two words here my job gone\n"
    ran = gpuctl("sbatch", "--wait", "-o", str(tmp_path / "new" / "o"), "-e", str(tmp_path / "e"), "--wrap", "echo wrapped; echo aside >&2")
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "new" / "o").read_text() == "wrapped\n" and (tmp_path / "e").read_text() == "aside\n"
    ran = gpuctl("sbatch", "--wait", "-o", "/proc/none", "--wrap", "exit 3")
    assert ran.returncode == 3 and "cannot write /proc/none" in ran.stderr and "has the output" in ran.stderr  # the job's end stands


@pytest.mark.parametrize("to", ["B:", ""], ids=["script", "tasks"])
def test_the_signal_comes_before_the_time_limit(gpuctl: Run, tmp_path: Path, to: str) -> None:
    """The limit is 62 s, and 60 s before it USR1 comes: the test takes two seconds, and a minute where it does not come."""
    waits = "trap 'echo saved; exit 0' USR1; while true; do sleep 0.05; done"
    body = waits if to else f'srun bash -c "{waits}"'
    script = batch(tmp_path / "job.sh", f"--time=1:02\n--signal={to}USR1@60", body)
    ran = gpuctl("sbatch", "--wait", "-o", str(tmp_path / "out"), script, timeout=patient(50))
    assert (tmp_path / "out").read_text() == "saved\n", ran.stderr
    assert ran.returncode == 0, ran.stderr


def test_a_script_follows_another_waits_to_be_released_and_keeps_off_nodes(cluster: Cluster, tmp_path: Path) -> None:
    gpuctl, shown = gpuctl_of(cluster), "-n 1 --exclude=node0\n--constraint=node!=node9\n--nice=100"
    first = gpuctl("sbatch", "--parsable", "--hold", batch(tmp_path / "first.sh", shown, "echo $GPUCTL_NODE")).stdout.strip()
    second = gpuctl("sbatch", "--parsable", "-d", f"afterok:{first[:10]}", batch(tmp_path / "second.sh", "-n 1", "true")).stdout.strip()
    assert [cluster.api.job(job)["state"] for job in (first, second)] == ["HELD", "BLOCKED"]
    assert cluster.api.job(first)["priority"] == -100
    assert gpuctl("release", first).returncode == 0
    assert [cluster.api.wait(job)["state"] for job in (first, second)] == ["SUCCEEDED"] * 2
    assert cluster.api.log(first) == "node1\n"
    wrong = gpuctl("sbatch", "-d", "afternotok:1", batch(tmp_path / "wrong.sh", "-n 1", "true"))
    assert wrong.returncode == 2 and "write afterok:ID" in wrong.stderr


def test_an_array_of_slurm_has_its_indexes(cluster: Cluster, tmp_path: Path) -> None:
    said = "$SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT, $SLURM_ARRAY_TASK_MIN to $SLURM_ARRAY_TASK_MAX"
    says = f"echo {said}; exit $((SLURM_ARRAY_TASK_ID == 5))"
    ran = gpuctl_of(cluster)("sbatch", "--wait", "--parsable", batch(tmp_path / "job.sh", "-n 1\n--array=1,5-7:2%2", says))
    job = ran.stdout.strip()
    assert ran.returncode == 1, ran.stderr
    assert [cluster.api.log(f"{job}.{task}") for task in (1, 5, 7)] == [f"{task} of 3, 1 to 7\n" for task in (1, 5, 7)]
    assert cluster.api.job(job)["array"]["failed"] == 1
    numbers = gpuctl_of(cluster)(
        "sbatch", "--wait", "--parsable", "--wrap", "echo $SLURM_ARRAY_JOB_ID $SLURM_JOB_ID", "--array=0-1"
    ).stdout.strip()
    (of_array, first), (same, second) = (cluster.api.log(f"{numbers}.{task}").split() for task in (0, 1))
    assert of_array == same and len({of_array, first, second}) == 3


def test_what_cannot_be_honoured_is_refused_with_the_line_and_the_remedy(gpuctl: Run, tmp_path: Path) -> None:
    ran = gpuctl("sbatch", batch(tmp_path / "job.sh", "--array=1-x", "true"))
    assert ran.returncode == 2 and '--array "1-x" has no list of indexes' in ran.stderr and "0-15%4" in ran.stderr
    ran = gpuctl("sbatch", batch(tmp_path / "job.sh", "-n 1\n--ntask=2", "true"))
    assert ran.returncode == 2 and "job.sh:3: unknown option --ntask; did you mean --ntasks?" in ran.stderr, ran.stderr
    ran = gpuctl("sbatch", batch(tmp_path / "job.sh", "--time=soon", "true"))
    assert ran.returncode == 2 and '--time "soon" is no time' in ran.stderr and "HH:MM:SS" in ran.stderr
    ran = gpuctl("sbatch", batch(tmp_path / "job.sh", "-N 2\n--gpus=4\n--gres=gpu:1", "true"))
    assert ran.returncode == 2 and "--gpus and --gres contradict each other" in ran.stderr
    ran = gpuctl("sbatch", str(tmp_path / "nowhere.sh"))
    assert ran.returncode == 1 and "nowhere.sh" in ran.stderr
    assert os.listdir(tmp_path) == ["job.sh"]
