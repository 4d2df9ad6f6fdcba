# SPDX-License-Identifier: Apache-2.0
"""Prints all that a rank can see of itself, as JSON; what is drawn by chance is under "chance"."""

import json
import os
import random
import resource
import sys
import threading
from pathlib import Path

import numpy


def fields(path: str) -> dict:
    return dict(line.split(":\t", 1) for line in Path(path).read_text().splitlines() if ":\t" in line)


def described(fd: str) -> str:
    target = os.readlink(f"/proc/self/fd/{fd}")
    return target.partition(":")[0]


def portrait() -> dict:
    status = fields("/proc/self/status")
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    parent = Path(f"/proc/{os.getppid()}/comm").read_text().strip()
    main = sys.modules["__main__"].__dict__
    fds = sorted(os.listdir("/proc/self/fd"), key=int)
    return {
        "environ": dict(os.environ),
        "environ of /proc": sorted(Path("/proc/self/environ").read_bytes().decode().rstrip("\0").split("\0")),
        "cmdline": Path("/proc/self/cmdline").read_bytes().decode().rstrip("\0").split("\0"),
        "argv": sys.argv,
        "orig_argv": getattr(sys, "orig_argv", None),
        "path": sys.path,
        "flags": str(sys.flags),
        "executable": sys.executable,
        "main": sorted(name for name in main if name.startswith("__")),
        "main file": main.get("__file__"),
        "main loader": str(main.get("__loader__")).partition(" object at")[0],
        "main spec": getattr(main.get("__spec__"), "name", None),
        "cwd": os.getcwd(),
        "fds": {fd: described(fd) for fd in fds if os.path.lexists(f"/proc/self/fd/{fd}")},
        "inheritable": [os.get_inheritable(fd) for fd in range(3)],
        "limits": {name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")},
        "signals": {name: status[name] for name in ("SigBlk", "SigIgn", "SigCgt", "ShdPnd")},
        "status": {name: status[name] for name in ("Uid", "Gid", "Groups", "Umask", "NoNewPrivs", "Seccomp", "Cpus_allowed", "CapEff")},
        "nice and policy": [stat[16], stat[38], os.nice(0), os.sched_getscheduler(0)],
        "leads its session": [os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid(), stat[4]],
        "oom_score_adj": Path("/proc/self/oom_score_adj").read_text(),
        "cgroup": Path("/proc/self/cgroup").read_text(),
        "namespaces": sorted(name for name in os.listdir("/proc/self/ns")),
        "shares memory with its parent": [
            os.readlink(f"/proc/self/ns/{kind}") == os.readlink(f"/proc/{os.getppid()}/ns/{kind}") for kind in ("mnt", "ipc", "pid", "net")
        ],
        "parent": parent,
        "comm": Path("/proc/self/comm").read_text(),
        "stdio": [str(stream.encoding) + str(stream.errors) + str(stream.line_buffering) for stream in (sys.stdin, sys.stdout, sys.stderr)],
        "unbuffered": getattr(sys.stdout, "write_through", None),
        "threads": [thread.name for thread in threading.enumerate()],
        "chance": [random.random(), float(numpy.random.random())],
        "stdin": sys.stdin.read(),
        "warnings": sys.warnoptions,
    }


if __name__ == "__main__":
    print(json.dumps(portrait()))
