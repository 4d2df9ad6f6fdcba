# SPDX-License-Identifier: Apache-2.0
"""Lets pip write an environment as a user of this host that has no rights, where jobs run as their owners.

What pip installs may run any code while it is built. So that code has a number of its own, which no other build has meanwhile, sees nothing
of the agent or of jobs, and leaves no process. When it is gone, the environment becomes root's: users of it can read it, and nobody can
change what others run.
"""

import fcntl
import os
import shutil
import stat
import subprocess
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List

FOLDER = ".builders"  # of the locks of numbers that builds may take
PLACE = ".build"  # in the environment: home and temporary files of the build
COUNT = 15  # USERS_OF_BUILDS in proto/limits_agent.h, without the one that fetches inputs
PATIENCE_S = 30.0  # for a killed process that a device holds
PAUSE_S = 0.01


class Stranger:
    """The user of one build. first: the first of COUNT numbers, of which it takes one that no other build has."""

    def __init__(self, folder: str, first: int) -> None:
        locks = os.path.join(folder, FOLDER)
        os.makedirs(locks, mode=0o700, exist_ok=True)
        for self.uid in range(first, first + COUNT):
            self.lock = os.open(os.path.join(locks, str(self.uid)), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                os.close(self.lock)
        else:
            raise OSError(f"all {COUNT} numbers for builds are taken")
        self.end_all()  # a builder that was killed may have left some

    def command(self, *words: str) -> "List[str]":
        """Return the command line with which the user executes a command."""
        number = str(self.uid)
        return ["setpriv", "--reuid", number, "--regid", number, "--clear-groups", "--no-new-privs", "--bounding-set=-all", "--", *words]

    def end_all(self) -> None:
        """Kill all processes of the user, and wait until they are gone. The kernel lets none of them fork past one kill of all."""
        command = self.command("sh", "-c", "kill -KILL -1")
        ended = subprocess.run(command, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        until_s = time.monotonic() + PATIENCE_S
        while any(uid_of(pid) == self.uid for pid in filter(str.isdigit, os.listdir("/proc"))):
            if ended.returncode != 0 or time.monotonic() > until_s:
                raise OSError(f"processes of an earlier build do not end: {ended.stdout.decode(errors='replace').strip()}")
            time.sleep(PAUSE_S)

    def begin(self, environment: str) -> "Dict[str, str]":
        """Give the environment to the user; return the variables that replace those of the agent."""
        place = os.path.join(environment, PLACE)
        os.mkdir(place, 0o700)
        for path, _ in entries(environment):
            os.chown(path, self.uid, self.uid, follow_symlinks=False)
        return {"HOME": place, "TMPDIR": place}

    def finish(self, environment: str) -> None:
        """Take the environment back, readable by all and writable by root alone."""
        self.end_all()
        for path, status in entries(environment):
            os.chown(path, 0, 0, follow_symlinks=False)
            if not stat.S_ISLNK(status.st_mode):
                runs = stat.S_ISDIR(status.st_mode) or status.st_mode & 0o111
                os.chmod(path, (status.st_mode & 0o755) | (0o555 if runs else 0o444))
        shutil.rmtree(os.path.join(environment, PLACE))


def uid_of(pid: str) -> int:
    """Return the number of the user of a process; -1: it has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("Uid:"))
    except (OSError, StopIteration):
        return -1


def entries(top: str) -> "List[tuple[str, os.stat_result]]":
    """Return the folder and all below it, without following a link."""
    found = [(top, os.lstat(top))]
    with os.scandir(top) as listing:
        for entry in listing:
            if entry.is_dir(follow_symlinks=False):
                found += entries(entry.path)
            else:
                found.append((entry.path, entry.stat(follow_symlinks=False)))
    return found

