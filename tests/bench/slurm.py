# SPDX-License-Identifier: Apache-2.0
"""A Slurm of one node on loopback, tuned to start jobs as fast as it can, for as long as a row needs it.

Debian's slurm-wlm under root, with a munge daemon and a key of its own, all files in one folder; CONFIG has all settings.
sched_min_interval, batch_sched_delay and sched_interval are at their least, no accounting, no plugins that watch processes or memory.
Everything is ended and removed afterwards.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from common import Skipped, folder, install, peer, said
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
SlurmdPort={node}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldDebug=error
SlurmdDebug=error
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/linuxproc
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
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1024 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@dataclass
class Slurm:
    """A running one: how its commands are called, and what it is."""

    folder: Path
    version: str
    controller_pid: int
    environment: dict[str, str] = field(default_factory=dict)

    def said(self, *command: object) -> str:
        return said(list(command), env=self.environment, cwd=self.folder)

    def queue_is_empty(self) -> bool:
        return not self.said("squeue", "-h", "-o", "%i").strip()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write_config(home: Path, cpus: int) -> None:
    host = socket.gethostname().split(".")[0]
    text = CONFIG.format(host=host, folder=home, controller=free_port(), node=free_port(), cpus=cpus)
    (home / "slurm.conf").write_text(text)
    for name in ("state", "spool"):
        (home / name).mkdir()
    (home / "munge.key").touch(0o600)
    (home / "munge.key").write_bytes(os.urandom(1024))


@contextlib.contextmanager
def munge(home: Path) -> Iterator[None]:
    command = ["/usr/sbin/munged", "--foreground", "--force"]
    for name in ("key-file=munge.key", "socket=munge.socket", "pid-file=munge.pid", "log-file=munge.log", "seed-file=munge.seed"):
        option, _, file = name.partition("=")
        command.append(f"--{option}={home}/{file}")
    with peer(command, f"munge -n -S {home}/munge.socket"):
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


def wait_ready(slurm: Slurm) -> None:
    """Idle nodes; where there are none, Skipped with what the daemons said."""
    try:
        eventually(lambda: slurm.said("sinfo", "-h", "-o", "%T").split() == ["idle"], "Slurm's node to be idle", 30)
    except AssertionError as problem:
        logs = "\n".join((slurm.folder / f"{name}.log").read_text(errors="replace")[-300:] for name in ("slurmctld", "slurmd"))
        raise Skipped(f"Slurm does not run here: {problem}\n{logs}") from None


@contextlib.contextmanager
def running(cpus: int) -> Iterator[Slurm]:
    """A Slurm whose node has so many CPUs; Skipped where it cannot run."""
    if os.geteuid() != 0:
        raise Skipped("Slurm needs root to run jobs")
    install("slurm-wlm", "munge")
    assert pwd.getpwuid(0).pw_name == "root"
    with folder() as home, contextlib.ExitStack() as stack:
        home.chmod(0o755)
        write_config(home, cpus)
        environment = {**os.environ, "SLURM_CONF": f"{home}/slurm.conf"}
        stack.callback(end_steps, home)
        stack.enter_context(munge(home))
        daemons = []
        for name in ("slurmctld", "slurmd"):
            with (home / f"{name}.out").open("wb") as out:
                daemon = subprocess.Popen([f"/usr/sbin/{name}", "-D"], env=environment, stdout=out, stderr=out, cwd=home)
            stack.callback(daemon.wait, 30)
            stack.callback(daemon.terminate)
            daemons.append(daemon)
        slurm = Slurm(home, said(["sinfo", "--version"], env=environment).split()[-1], daemons[0].pid, environment)
        wait_ready(slurm)
        yield slurm
