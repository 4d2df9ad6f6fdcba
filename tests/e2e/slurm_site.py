# SPDX-License-Identifier: Apache-2.0
"""A Slurm on loopback, all of its nodes on this host, tuned to start jobs as fast as it can.

Debian's slurm-wlm under root, with a munge daemon and a key of its own, all files in one folder; CONFIG has all settings.
sched_min_interval, batch_sched_delay and sched_interval are at their least, no accounting, no plugins that watch processes or memory.
All its programs are ended afterwards.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness import eventually

CONFIG = """\
ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={controller}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmctldDebug=error
SlurmdDebug=error
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
ProctrackType=proctrack/{tracking}
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,sched_interval=1,default_queue_depth=1000
MaxJobCount=200000
MaxArraySize=100001
ReturnToService=2
SlurmdParameters=config_overrides
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus} RealMemory=1024 State=UNKNOWN\n"


class DoesNotRun(Exception):
    """There is no Slurm on this machine, or it cannot run here; the text says why."""


class Missing(DoesNotRun):
    """This machine, or this user, has no Slurm to start."""


@dataclass
class Slurm:
    """A running one: how its commands are called, and what it is."""

    folder: Path
    version: str
    controller_pid: int
    environment: dict[str, str] = field(default_factory=dict)

    def said(self, *command: object) -> str:
        """What a command prints; AssertionError with what it said where it fails."""
        done = subprocess.run([str(word) for word in command], env=self.environment, cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == 0, f"{command[0]}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    def queue_is_empty(self) -> bool:
        return not self.said("squeue", "-h", "-o", "%i").strip()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write_config(home: Path, nodes: list[str], cpus: int, tracking: str) -> None:
    host = socket.gethostname().split(".")[0]
    text = CONFIG.format(host=host, folder=home, controller=free_port(), tracking=tracking)
    text += "".join(NODE.format(name=name, host=host, port=free_port(), cpus=cpus) for name in nodes)
    (home / "slurm.conf").write_text(text)
    (home / "state").mkdir()
    for name in nodes:
        (home / f"spool-{name}").mkdir()
    (home / "munge.key").touch(0o600)
    (home / "munge.key").write_bytes(os.urandom(1024))


@contextlib.contextmanager
def daemon(home: Path, environment: dict[str, str], *command: str) -> Iterator[int]:
    """A daemon in the foreground until the end of the block; its process number."""
    with (home / f"{Path(command[0]).name}.out").open("ab") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out, cwd=home)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


@contextlib.contextmanager
def munge(home: Path) -> Iterator[None]:
    command = ["/usr/sbin/munged", "--foreground", "--force"]
    for name in ("key-file=munge.key", "socket=munge.socket", "pid-file=munge.pid", "log-file=munge.log", "seed-file=munge.seed"):
        option, _, file = name.partition("=")
        command.append(f"--{option}={home}/{file}")
    with daemon(home, dict(os.environ), *command):
        probe = ["munge", "-n", "-S", f"{home}/munge.socket"]
        eventually(lambda: subprocess.run(probe, capture_output=True).returncode == 0, "munged to answer", 30)
        yield


def end_steps(home: Path) -> None:
    """slurmstepd outlives slurmd: end those that were started with this folder's configuration."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            mine = f"SLURM_CONF={home}/slurm.conf".encode() in (entry / "environ").read_bytes().split(b"\0")
            if mine and os.readlink(entry / "exe").endswith("slurmstepd"):
                os.kill(int(entry.name), signal.SIGKILL)
        except OSError:
            continue


def wait_ready(slurm: Slurm, nodes: list[str]) -> None:
    """Idle nodes; where there are none, DoesNotRun with what the daemons said."""
    try:
        idle = ["idle"] * len(nodes)
        eventually(lambda: slurm.said("sinfo", "-h", "-N", "-o", "%T").split() == idle, "Slurm's nodes to be idle", 30)
    except AssertionError as problem:
        logs = "\n".join(log.read_text(errors="replace")[-300:] for log in sorted(slurm.folder.glob("slurm*.log")))
        raise DoesNotRun(f"Slurm does not run here: {problem}\n{logs}") from None


@contextlib.contextmanager
def running(home: Path, nodes: list[str], cpus: int, tracking: str = "linuxproc") -> Iterator[Slurm]:
    """A Slurm with these nodes of so many CPUs each, whose files are in the folder, which every user may read.

    tracking: how it finds the processes of a job. "pgid" and "cgroup" send signals but KILL to what was started first, "linuxproc" to all.
    """
    if os.geteuid() != 0:
        raise Missing("Slurm needs root to run jobs")
    if not all(Path(f"/usr/sbin/{name}").exists() for name in ("munged", "slurmctld", "slurmd")):
        raise Missing("slurm-wlm and munge are not installed")
    write_config(home, nodes, cpus, tracking)
    environment = {**os.environ, "SLURM_CONF": f"{home}/slurm.conf"}
    with contextlib.ExitStack() as stack:
        stack.callback(end_steps, home)
        stack.enter_context(munge(home))
        controller = stack.enter_context(daemon(home, environment, "/usr/sbin/slurmctld", "-D"))
        for name in nodes:
            stack.enter_context(daemon(home, environment, "/usr/sbin/slurmd", "-D", "-N", name))
        slurm = Slurm(home, "", controller, environment)
        slurm.version = slurm.said("sinfo", "--version").split()[-1]
        wait_ready(slurm, nodes)
        yield slurm
