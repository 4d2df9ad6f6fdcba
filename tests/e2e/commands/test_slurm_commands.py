# SPDX-License-Identifier: Apache-2.0
"""gpuctl by the names of Slurm's commands, against a real controller with two nodes: each option once, and what is wrong once."""

from __future__ import annotations

import json
import os
import pty
import pwd
import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from harness import GPUCTL, PATIENCE, Cluster, Problem, eventually

NAMES = ("sacct", "sbatch", "scancel", "sinfo", "squeue", "srun")
Ran = subprocess.CompletedProcess[str]
Run = Callable[..., Ran]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    shared = Cluster(tmp_path_factory.mktemp("slurm"), [2, 2]).start()
    yield shared
    shared.stop()


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the names, as the package has them."""
    folder = tmp_path_factory.mktemp("bin")
    for name in NAMES:
        (folder / name).symlink_to(GPUCTL)
    return folder


@pytest.fixture
def call(cluster: Cluster, commands: Path) -> Run:
    def run(name: str, *arguments: str, token: str | None = None, given: str = "") -> Ran:
        settings = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": token or str(cluster.folder / "controller" / "admin.token")}
        return subprocess.run(
            [str(commands / name), *arguments], env={**os.environ, **settings, "TZ": "UTC"}, input=given, capture_output=True, text=True,
            timeout=PATIENCE, check=False,
        )  # fmt: skip

    return run


@pytest.fixture(autouse=True)
def nothing_is_left(cluster: Cluster) -> Iterator[None]:
    """Each test begins and ends with no job that waits or runs."""
    yield
    for job in cluster.api.get("/v1/jobs?state=QUEUED,HELD,BLOCKED,STAGING,PLACED,RUNNING&limit=200")["jobs"]:
        try:
            cluster.api.post(f"/v1/jobs/{job['id']}/cancel")
        except Problem as problem:
            assert problem.status == 409, problem
        cluster.api.wait(job["id"])


def out(ran: Ran) -> str:
    """What it printed; it said nothing else and exited with 0."""
    assert (ran.returncode, ran.stderr) == (0, ""), ran
    return ran.stdout


def wrong(ran: Ran) -> str:
    """The one line of its error."""
    assert ran.returncode == 1 and ran.stdout == "" and ran.stderr.count("\n") == 1, ran
    return ran.stderr


def running(cluster: Cluster, gpus: int = 1, **spec: object) -> str:
    job = cluster.api.submit(["sleep", "1000"], gpus, **spec)
    cluster.wait_state(job, "RUNNING")
    return job


# --- squeue ---


def test_squeue_lists_jobs_in_slurms_columns(cluster: Cluster, call: Run) -> None:
    first = running(cluster, 2, name="train-a-model", pool="default")
    second = running(cluster, 2, name="b")
    waiting = cluster.api.submit(["true"], 4, pool="default")
    held = cluster.api.submit(["true"], hold=True)
    lines = [line.split() for line in out(call("squeue")).splitlines()]
    assert lines[0] == ["JOBID", "PARTITION", "NAME", "USER", "ST", "TIME", "NODES", "NODELIST(REASON)"]
    assert [line[0] for line in lines[1:]] == [held, waiting, first, second]
    assert lines[1][1:] == ["any", "true", "admin", "PD", "0:00", "1", "(JobHeldUser)"]
    assert lines[2][1:] == ["default", "true", "admin", "PD", "0:00", "1", "(Resources)"]
    assert lines[3][2] == "train-a-" and lines[3][4] == "R" and re.fullmatch(r"0:[0-9]{2}", lines[3][5])
    assert {lines[3][7], lines[4][7]} == {"node0", "node1"}
    assert len({line.index("default") for line in out(call("squeue")).splitlines()[2:]}) == 1
    long = out(call("squeue", "--long")).splitlines()
    assert long[1].split() == ["JOBID", "PARTITION", "NAME", "USER", "STATE", "TIME", "TIME_LIMI", "NODES", "NODELIST(REASON)"]
    assert long[2].split()[4:8] == ["PENDING", "0:00", "UNLIMITED", "1"]


def test_squeue_shows_what_a_format_asks_for(cluster: Cluster, call: Run) -> None:
    one = running(cluster, 3, name="one", time_limit_s=90061, priority=7, memory="1G", workdir="/tmp")
    codes = "%i|%A|%F|%K|%P|%j|%u|%a|%t|%T|%l|%D|%R|%N|%r|%b|%Q|%e|%Z"
    assert out(call("squeue", "-h", "-o", codes)) == (
        f"{one}|{one}|{one}|N/A|default|one|admin|default|R|RUNNING|1-01:01:01|2|node[0-1]|node[0-1]|None|gres/gpu:3|7|N/A|/tmp\n"
    )
    used, left, start, submitted, cpus = out(call("squeue", "--noheader", "--format", "%M %L %S %V %C")).split()
    assert re.fullmatch(r"\d:\d\d", used) and re.fullmatch(r"1-01:00:\d\d|1-01:01:0[01]", left)
    job = cluster.api.job(one)
    assert start == job["started_at"][:19] and submitted == job["created_at"][:19]
    assert int(cpus) >= 1
    assert out(call("squeue", "-o", "%.6t|%6j|%.2P")) == "    ST|NAME  |PA\n     R|one   |de\n"
    assert wrong(call("squeue", "-o", "%i %y")).startswith("squeue: error: --format: %y is not known (the codes are %i %A ")
    assert "--Format is not supported" in wrong(call("squeue", "-O", "jobid"))
    assert "--iterate is not supported (watch -n" in wrong(call("squeue", "-i", "5"))


def test_squeue_chooses_among_jobs(cluster: Cluster, call: Run, tmp_path: Path) -> None:
    cluster.open_project("vision")
    secret = cluster.api.post("/v1/tokens", {"role": "user", "owner": "ann"})["secret"]
    (tmp_path / "ann").touch(0o600)
    (tmp_path / "ann").write_text(secret)
    ann = cluster.user("ann")
    hers = ann.submit(["sleep", "1000"], name="hers", project="vision")
    other = ann.submit(["true"], hold=True, name="other", pool="default")
    mine = running(cluster, name="mine")
    cluster.wait_state(hers, "RUNNING")

    def ids(*options: str, **more: str) -> set[str]:
        return set(out(call("squeue", "-h", "-o", "%i", *options, **more)).split())

    me = pwd.getpwuid(os.getuid()).pw_name
    assert ids() == {hers, other, mine}
    assert ids("--me") == ids("-u", "admin") == ids("-u", me) == {mine}
    assert ids("--me", token=str(tmp_path / "ann")) == ids("--user", "ann") == ids("-u", "ann,bob") == {hers, other}
    assert ids("-u", "ann,admin") == {hers, other, mine}
    assert ids("-u", "nobody") == set()
    assert ids("-j", f"{hers},{mine[:10]}") == {hers, mine}
    assert ids("-t", "PD") == ids("--states=pending") == {other}
    assert ids("-t", "R,CG,S") == {hers, mine}
    assert ids("-p", "default") == {hers, mine, other} and ids("-p", "elsewhere") == set()
    assert ids("-n", "hers,other") == {hers, other}
    assert ids("-A", "vision") == {hers}
    assert ids("-u", "ann", "-t", "R") == {hers}
    cluster.api.post(f"/v1/jobs/{mine}/cancel")
    cluster.api.wait(mine)
    assert mine not in ids() and ids("-j", mine) == set() and ids("-j", mine, "-t", "all") == {mine}
    assert mine in ids("-t", "CA") and mine not in ids("-t", "CD")
    assert wrong(call("squeue", "-t", "QUEUED")) == (
        'squeue: error: "QUEUED" is no state of a job (PENDING, RUNNING, COMPLETED, their codes PD, R, CD, or all)\n'
    )
    assert wrong(call("squeue", "-j", "zzz")).startswith("squeue: error: Invalid job id specified: ")
    assert wrong(call("squeue", "-j", "aaaaaaaaaaaaaaaa")).startswith("squeue: error: Invalid job id specified: ")
    assert wrong(call("squeue", "--nope")) == "squeue: error: unknown option --nope; did you mean --name? (see --help)\n"


def test_squeue_shows_how_jobs_ended(cluster: Cluster, call: Run) -> None:
    ends = {"CD": ["true"], "F": ["false"], "TO": ["sleep", "1000"]}
    jobs = {code: cluster.api.submit(command, time_limit_s=1) for code, command in ends.items()}
    for job in jobs.values():
        cluster.api.wait(job)
    listed = out(call("squeue", "-h", "-t", "all", "-j", ",".join(jobs.values()), "-o", "%i %t %r")).splitlines()
    shown = dict(line.split(" ", 1) for line in listed)
    assert shown == {jobs["CD"]: "CD None", jobs["F"]: "F NonZeroExitCode", jobs["TO"]: "TO TimeLimit"}


def test_tasks_of_arrays_are_written_as_slurm_does(cluster: Cluster, call: Run) -> None:
    array = out(call("sbatch", "--parsable", "--chdir", "/tmp", "--gpus", "1", "--array", "1,3,5-9%2", "--wrap", "sleep 1000")).strip()
    eventually(lambda: cluster.api.job(array)["array"]["running"] == 2, "two tasks to run")
    lines = out(call("squeue", "-h", "-o", "%i %t %F %K %R")).splitlines()
    assert lines[0].startswith(f"{array}_[5-9%2] PD {array} 5-9%2 (")
    assert [line.rsplit(" ", 1)[0] for line in lines[1:]] == [f"{array}_{task} R {array} {task}" for task in (1, 3)]
    assert out(call("squeue", "-h", "-o", "%i %t", "-j", f"{array}_1,{array}.3,{array}_7")).split("\n") == [
        f"{array}_7 PD", f"{array}_1 R", f"{array}_3 R", "",
    ]  # fmt: skip
    wrong(call("squeue", "-j", f"{array}_4"))
    assert out(call("scancel", f"{array}_1")) == ""
    assert cluster.api.wait(f"{array}.1")["state"] == "CANCELED"
    assert "ends all" in wrong(call("scancel", "-t", "PENDING", array))
    assert cluster.api.job(array)["state"] == "RUNNING"
    assert out(call("scancel", array)) == ""
    assert cluster.api.wait(array)["state"] == "CANCELED"


# --- scancel ---


def test_scancel_ends_what_is_named_or_chosen(cluster: Cluster, call: Run) -> None:
    def state(job: str) -> str:
        return str(cluster.api.job(job)["state"])

    ann = cluster.user("ann")
    kept = ann.submit(["true"], hold=True, name="kept")
    held = cluster.api.submit(["true"], hold=True, name="x", pool="default")
    run = running(cluster, name="x")
    assert out(call("scancel", "--me", "-t", "PENDING", "-n", "x")) == ""
    assert (state(held), state(run), state(kept)) == ("CANCELED", "RUNNING", "HELD")
    assert out(call("scancel", "-p", "elsewhere")) == out(call("scancel", "-u", "nobody")) == out(call("scancel", run, "--name", "y")) == ""
    for command in ("scancel", "squeue", "sacct"):
        assert "--user names nobody" in wrong(call(command, "-u", ""))  # as of a variable that is not set
    assert (state(run), state(kept)) == ("RUNNING", "HELD")
    assert out(call("scancel", "-p", "default", "-A", "default", "--state", "RUNNING", run[:9])) == ""
    assert cluster.api.wait(run)["state"] == "CANCELED"
    assert out(call("scancel", run)) == "", "one that has ended is no error"
    assert out(call("scancel", "--user", "ann")) == ""
    assert state(kept) == "CANCELED"


def test_scancel_asks_when_it_is_told_to(cluster: Cluster, call: Run) -> None:
    job = cluster.api.submit(["true"], hold=True, name="x")
    question = f"Cancel job_id={job} name=x partition=any [y/n]? "
    assert out(call("scancel", "-i", job, given="n\n")) == out(call("scancel", "-i", job)) == question
    assert cluster.api.job(job)["state"] == "HELD"
    assert out(call("scancel", "--interactive", job, given="y\n")) == question
    assert cluster.api.job(job)["state"] == "CANCELED"


def test_scancel_goes_on_after_an_id_that_is_not_known(cluster: Cluster, call: Run) -> None:
    job = cluster.api.submit(["true"], hold=True)
    ran = call("scancel", "aaaaaaaaaaaaaaaa", job)
    assert wrong(ran).startswith("scancel: error: Kill job error on job id aaaaaaaaaaaaaaaa: Invalid job id specified: ")
    assert cluster.api.job(job)["state"] == "CANCELED"
    assert wrong(call("scancel")).startswith("scancel: error: No job identification provided (give ids, or --me,")
    assert "--signal is not supported" in wrong(call("scancel", "-s", "USR1", job))
    assert "is no state" in wrong(call("scancel", "-t", "nope"))


# --- sacct ---


def test_sacct_lists_what_was_and_what_became_of_it(cluster: Cluster, call: Run) -> None:
    jobs = {code: cluster.api.submit(["sh", "-c", code], name="acct", time_limit_s=3600) for code in ("exit 0", "exit 3", "kill -9 $$")}
    ends = {code: cluster.api.wait(job) for code, job in jobs.items()}
    lines = out(call("sacct", "-j", ",".join([*jobs.values(), "aaaaaaaaaaaaaaaa"]))).splitlines()
    assert lines[0].split() == ["JobID", "JobName", "Partition", "Account", "AllocCPUS", "State", "ExitCode"]
    assert set(lines[1]) == {"-", " "} and len(lines[1]) == len(lines[0])
    shown = [line.split() for line in lines[2:]]
    assert [line[0] for line in shown] == [*jobs.values()]
    assert [(line[1], line[2], line[3], *line[5:]) for line in shown] == [
        ("acct", "default", "default", "COMPLETED", "0:0"), ("acct", "default", "default", "FAILED", "3:0"),
        ("acct", "default", "default", "FAILED", "0:9"),
    ]  # fmt: skip
    first = jobs["exit 0"]
    fields = "jobidraw,User,Start,End,Elapsed,Timelimit,NNodes,NodeList,State%-12,Submit"
    end = ends["exit 0"]
    node = end["nodes"][0]["node"]
    moments = {name: end[f"{name}_at"][:19] for name in ("started", "ended", "created")}
    told = out(call("sacct", "-X", "-n", "-P", "-j", first, "-o", fields)).split("|")
    assert told[:4] == [first, "admin", moments["started"], moments["ended"]] and re.fullmatch(r"00:00:\d\d", told[4])
    assert told[5:] == ["01:00:00", "1", node, "COMPLETED", moments["created"] + "\n"]
    assert out(call("sacct", "-p", "-j", first, "-o", "State")) == "State|\nCOMPLETED|\n"

    def ids(*options: str) -> set[str]:
        return set(out(call("sacct", "-n", "-P", "-o", "JobID", "--name", "acct", *options)).split())

    assert ids() == ids("-a") == ids("-u", "admin") == ids("-A", "default", "-r", "default") == set(jobs.values())
    assert ids("-s", "CD") == {first} and ids("--state", "F") == {jobs["exit 3"], jobs["kill -9 $$"]}
    assert ids("-S", "now-1hour") == set(jobs.values()) and ids("-S", "2100-01-01") == ids("-u", "nobody") == set()
    now = datetime.now(timezone.utc)
    minute_ago, soon = ((now + timedelta(minutes=minutes)).strftime("%H:%M") for minutes in (-1, 2))
    assert ids("-S", minute_ago) == ids("-S", soon) == set(jobs.values()), "a time of day is the last one that there was"
    assert "--format: Steps is not known (the fields are JobID, " in wrong(call("sacct", "-o", "Steps"))
    assert "is no time" in wrong(call("sacct", "-S", "yesterday"))
    assert "is no state" in wrong(call("sacct", "-s", "QUEUED"))


def test_tools_that_read_sacct_read_ours(cluster: Cluster, call: Run, tmp_path: Path) -> None:
    submitit = pytest.importorskip("submitit.slurm.slurm")
    job = cluster.api.submit(["false"], 2)
    cluster.api.wait(job)
    watcher = submitit.SlurmInfoWatcher()
    assert watcher.read_info(out(call("sacct", "-o", "JobID,State,NodeList", "--parsable2", "-j", job)))[job]["State"] == "FAILED"
    trace = tmp_path / "trace"
    fields = "JobID,User,Account,Submit,ElapsedRaw,Timelimit,AllocTRES,State"
    trace.write_text(out(call("sacct", "-aPX", "-S", "2026-01-01", "-o", fields)))
    ran = subprocess.run([GPUCTL, "simulate", str(trace), "--nodes", "2x2", "-o", "json"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


# --- sinfo ---


def test_sinfo_lists_pools_and_nodes(cluster: Cluster, call: Run) -> None:
    idle = "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\ndefault      up   infinite      2   idle node[0-1]\n"
    eventually(lambda: call("sinfo").stdout == idle, "both nodes to be idle")
    every = out(call("sinfo", "-h", "-o", "%P|%R|%a|%l|%D|%t|%T|%N|%G|%F"))
    assert every == "default|default|up|infinite|2|idle|idle|node[0-1]|gpu:cpu:2|0/2/0/2\n"
    lines = [line.split() for line in out(call("sinfo", "-N")).splitlines()]
    assert lines == [["NODELIST", "NODES", "PARTITION", "STATE"], ["node0", "1", "default", "idle"], ["node1", "1", "default", "idle"]]
    nodes = cluster.nodes()
    cpus, memory = int(nodes["node0"]["cpus"]), nodes["node0"]["memory_bytes"] >> 20
    assert out(call("sinfo", "--Node", "--noheader", "-o", "%N %c %m %C")).splitlines()[0] == f"node0 {cpus} {memory} 0/{cpus}/0/{cpus}"
    assert out(call("sinfo", "-h", "-p", "elsewhere")) == "" and out(call("sinfo", "-h", "--partition", "x,default")) != ""
    assert "%y is not known" in wrong(call("sinfo", "-o", "%y"))
    whole, part = running(cluster, 2), running(cluster, 1)
    where = {job: cluster.api.job(job)["nodes"][0]["node"] for job in (whole, part)}
    states = dict(line.split() for line in out(call("sinfo", "-h", "-o", "%N %t")).splitlines())
    assert states == {where[whole]: "alloc", where[part]: "mix"}
    assert out(call("sinfo", "-h", "-o", "%F")) == "2/0/0/2\n"
    cluster.api.post(f"/v1/nodes/{where[part]}/drain", {"reason": "test"})
    try:
        assert f"{where[part]} draining" in out(call("sinfo", "-h", "-o", "%N %T"))
        cluster.api.post(f"/v1/jobs/{part}/cancel")
        eventually(lambda: f"{where[part]} drain\n" in call("sinfo", "-h", "-o", "%N %t").stdout, "the node to be drained")
        assert out(call("sinfo", "-h", "-o", "%F")) == "1/0/1/2\n"
    finally:
        cluster.api.post(f"/v1/nodes/{where[part]}/resume")


# --- srun, sbatch ---


def test_srun_runs_tasks_and_exits_as_the_job_did(call: Run, cluster: Cluster) -> None:
    ran = call("srun", "-Q", "-n", "2", "--gres=gpu:cpu:2", "-N", "1", "-c", "1", "--mem", "100M", "-t", "5", "-J", "two", "-p", "default",
               "--mpi=none", "--export", "ALL,WORD=hello", "-u", "-K", "--label",
               "sh", "-c", "echo $SLURM_PROCID of $SLURM_NTASKS $SLURM_JOB_NAME $WORD")  # fmt: skip
    assert sorted(out(ran).splitlines()) == ["0 of 2 two hello", "1 of 2 two hello"]
    assert call("srun", "sh", "-c", "exit 3").returncode == 3
    job = cluster.api.get("/v1/jobs?name=two")["jobs"][0]
    assert (job["gpus"], job["gpu_type"], job["time_limit_s"], job["pool"]) == (2, "cpu", 300, "default")
    spec = cluster.api.job(job["id"])["spec"]
    assert (spec["cpus"], spec["memory"]) == (2, 100 << 20)


def test_srun_tells_what_it_leaves_out_and_what_becomes_of_the_job(call: Run, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("content")
    ran = call("srun", "--mpi", "pmix", "--gpus", "1", "--file", f"{tmp_path}/data", "cat", "data")
    assert (ran.returncode, ran.stdout) == (0, "content"), ran
    assert "srun: --mpi is left out" in ran.stderr and "the job runs in its own" in ran.stderr and "SUCCEEDED" in ran.stderr
    assert wrong(call("srun")) == "srun: error: srun needs COMMAND [ARGUMENT]... (see srun --help)\n"
    assert "--nodelist is not supported" in wrong(call("srun", "-w", "node0", "true"))
    assert "contradict each other" in call("srun", "--gpus", "2", "--gpus-per-node", "1", "-N", "1", "true").stderr
    assert wrong(call("srun", "--pty", "true")) == "srun: error: stdin is no terminal (leave out --pty)\n"


def test_srun_has_a_terminal_with_pty(cluster: Cluster, commands: Path) -> None:
    ours, theirs = pty.openpty()
    settings = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(cluster.folder / "controller" / "admin.token"), "TERM": "xterm"}
    shell = subprocess.Popen(
        [commands / "srun", "-Q", "--gpus", "1", "--pty", "sh", "-c", "read x; test -t 0 && exit $((x + $SLURM_NTASKS))"],
        env={**os.environ, **settings}, stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    os.write(ours, b"41\n")
    assert shell.wait(PATIENCE) == 42
    os.close(ours)


def test_sbatch_is_the_one_of_gpuctl_and_fails_as_slurms(call: Run, cluster: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH --job-name=from-script --gpus=1\nexit 5\n")
    ran = call("sbatch", str(script))
    told = re.fullmatch(r"Submitted batch job ([a-z2-7]{16})\n", ran.stdout)
    assert told is not None and ran.returncode == 0, ran
    assert cluster.api.wait(told[1])["exit_code"] == 5
    assert call("sbatch", "--wait", str(script)).returncode == 5
    given = call("sbatch", "--wait", "--parsable", given=script.read_text())
    assert given.returncode == 5 and cluster.api.job(given.stdout.strip())["name"] == "from-script"
    assert wrong(call("sbatch", "nowhere.sh")).startswith("sbatch: error: ")
    assert "must begin with #!" in wrong(call("sbatch"))


# --- all of them ---


@pytest.mark.parametrize("name", NAMES)
def test_each_command_says_whose_it_is_and_what_it_takes(name: str, call: Run) -> None:
    version = json.loads(subprocess.run([GPUCTL, "version", "--client", "-o", "json"], check=True, stdout=subprocess.PIPE).stdout)
    assert out(call(name, "--version")) == out(call(name, "-V")) == f"{name} of gpuctl {version['client']}\n"
    helped = out(call(name, "--help"))
    assert helped.startswith(f"Usage: {name} [OPTIONS]")
    assert ("-h, --help" in helped) == (name not in ("squeue", "sinfo")), "there -h is --noheader"


def test_a_command_without_a_controller_fails_with_one_line(call: Run, commands: Path, tmp_path: Path) -> None:
    settings = {"GPUCTL_STATE": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    ran = subprocess.run([commands / "squeue"], env=settings, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ran.returncode == 1 and ran.stderr.startswith("squeue: error: ") and ran.stderr.count("\n") == 1, ran
