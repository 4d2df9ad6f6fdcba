# SPDX-License-Identifier: Apache-2.0
"""Builds one Python environment of a node, and reports its progress.

    python -I gpuctl_environment.py --folder ENVIRONMENTS --requirements FILE --key NAME [--python-version 3.11] [--build-ids FIRST]

It makes ENVIRONMENTS/<hash>/, a venv that sees all packages of the base, the Python that runs this file. pip adds the packages that the
requirements name and the base does not have in the right version. The hash covers the requirements, the base, and the base's packages that
they rely on: after a change of the base, the next call makes another environment and leaves the one that ranks use unchanged.
ENVIRONMENTS/names/<NAME> becomes a link to the folder. A folder with a marker (gpuctl.json) is complete and is not written again. Of
several calls at once only one builds. A killed call leaves no marker and no process. The agent removes old environments.

Each line on stdout is a JSON object: {"text": ...} is a step, {"alive": true} says that the build goes on without news; the last line is
{"ready": true, "folder": ..., "python": ...} or {"failed": ..., "by_user": ..., "lasting": ...}. The program ends itself and all its
processes on SIGTERM, and when its stdin ends, which happens with the agent. It needs only the standard library, from Python 3.8 on, and
three files beside it: gpuctl_base.py says what the base has, gpuctl_pip.py runs pip, with --build-ids as a user of gpuctl_stranger.py.
"""

import argparse
import fcntl
import glob
import hashlib
import importlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gpuctl_base import Base, normalize  # noqa: E402
from gpuctl_pip import Failure, Pip, failure_of, mask, say  # noqa: E402
from gpuctl_stranger import Stranger  # noqa: E402

del sys.path[0]  # the rest of sys.path is the base's

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, NoReturn, Optional, Tuple

MARKER = "gpuctl.json"
FORMAT = 1
OLDEST = (3, 8)
PTH_NAME = "gpuctl_base.pth"

LOCK_S = 0.2  # between two tries to get the lock
ALIVE_S = 1.0  # between two reports that a build of another agent goes on


# --- requirements ----------------------------------------------------------------------------------


class Line:
    """A line of a requirements file: name and version of a plain pin, "" if only pip can judge the line; an option requires nothing."""

    def __init__(self, text: str, name: str = "", version: str = "", option: bool = False) -> None:
        self.text = text
        self.name = name
        self.version = version
        self.option = option


class Requirements:
    """A requirements file, and the versions in the base that meet its pins. A lock has pins and options only."""

    def __init__(self, text: str, installed: "Dict[str, str]") -> None:
        self.text = text
        self.lines = lines_of(text)
        self.is_lock = all(line.name or line.option for line in self.lines)
        has = {line.name: installed[line.name] for line in self.lines if line.name in installed}
        self.met = {line.name: has[line.name] for line in self.lines if line.name in has and is_met(line.version, has[line.name])}
        self.asked = [line for line in self.lines if line.name not in self.met]


PIN = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*==\s*([A-Za-z0-9.!+_-]+)")
ASKS_FOR_MORE = re.compile(r"(-e|-r|--editable|--requirement)\b")


def lines_of(text: str) -> "List[Line]":
    """Return the lines of a requirements file without comments."""
    found = []
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        line = re.sub(r"(^|\s)#.*$", "", line).strip()
        pin = PIN.fullmatch(line)
        if pin:
            found.append(Line(line, normalize(pin.group(1)), pin.group(2)))
        elif line:
            found.append(Line(line, option=line.startswith("-") and not ASKS_FOR_MORE.match(line)))
    return found


def specifiers() -> "Any":
    """Return the module packaging.specifiers: the base's own, or that of its pip, or of the pip that Python brings; None without any."""
    folders = [os.path.join(sysconfig.get_path("stdlib"), "ensurepip", "_bundled"), sysconfig.get_config_var("WHEEL_PKG_DIR") or ""]
    for wheels in ([], [wheel for folder in folders for wheel in glob.glob(os.path.join(folder, "pip-*.whl"))]):
        sys.path += wheels
        for name in ("packaging.specifiers", "pip._vendor.packaging.specifiers"):
            try:
                return importlib.import_module(name)
            except ImportError:
                continue
    return None


def is_met(pinned: str, installed: str) -> bool:
    """Return whether `==pinned` accepts the installed version. Versions that are unknown to PEP 440 are compared letter by letter."""
    if pinned == installed:
        return True
    known = specifiers()
    try:
        return known is not None and bool(known.SpecifierSet("==" + pinned).contains(installed, prereleases=True))
    except ValueError:
        return False


# --- the folder ------------------------------------------------------------------------------------


def marker_of(environment: str) -> "Optional[Dict[str, Any]]":
    """Return the content of the marker; None if the environment is not complete."""
    try:
        with open(os.path.join(environment, MARKER), encoding="utf-8") as file:
            marker = json.load(file)
    except (OSError, ValueError):
        return None
    whole = isinstance(marker, dict) and marker.get("format") == FORMAT and os.path.exists(python_of(environment))
    return marker if whole else None


def python_of(environment: str) -> str:
    return os.path.join(environment, "bin", "python")


def write_marker(environment: str, base: Base, size_bytes: int) -> None:
    """Make the environment valid, or record the present state of the base."""
    row = {
        "format": FORMAT,
        "python": sys.version.split()[0],
        "base": sys.executable,
        "folders": base.mtimes(),
        "size_bytes": size_bytes,
    }
    path = os.path.join(environment, MARKER)
    part = f"{path}.{os.getpid()}"
    with open(part, "w", encoding="utf-8") as file:
        json.dump(row, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)
    folder = os.open(environment, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def size_of(path: str) -> int:
    """Return the disk space of a folder, in bytes."""
    total = 0
    with os.scandir(path) as listing:
        for entry in listing:
            total += entry.stat(follow_symlinks=False).st_blocks * 512
            if entry.is_dir(follow_symlinks=False):
                total += size_of(entry.path)
    return total


def name_it(folder: str, name: str, key: str) -> None:
    """Make names/NAME a link to the environment."""
    names = os.path.join(folder, "names")
    os.makedirs(names, mode=0o700, exist_ok=True)
    path = os.path.join(names, name)
    if os.path.islink(path) and os.readlink(path) == os.path.join("..", key):
        return
    part = f"{path}.{os.getpid()}"
    os.symlink(os.path.join("..", key), part)
    os.replace(part, path)


class Lock:
    """The lock of one environment: its builder holds it exclusively, processes that use it share it.

    The builder touches the file while it makes progress, so that waiting processes can see that.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self, environment: str) -> bool:
        """Wait for the lock; return False when another process has built the environment meanwhile."""
        seen_ns = told_s = 0.0
        while marker_of(environment) is None:
            try:
                fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return marker_of(environment) is None
            except BlockingIOError:
                touched_ns = os.stat(self.path).st_mtime_ns
                if told_s == 0.0:
                    say(text="waits for another agent that builds it")
                elif touched_ns != seen_ns and time.monotonic() - told_s >= ALIVE_S:
                    say(alive=True)
                else:
                    time.sleep(LOCK_S)
                    continue
                seen_ns, told_s = touched_ns, time.monotonic()
        return False

    def touch(self) -> None:
        os.utime(self.fd)


# --- processes -------------------------------------------------------------------------------------


def end_all(*_: "Any") -> None:
    """End this process and all that it has started, at once."""
    os.killpg(0, signal.SIGKILL)


def watch_parent() -> None:
    while os.read(0, 4096):
        pass
    end_all()


def begin_session() -> None:
    if os.getpgrp() != os.getpid():
        os.setsid()
    signal.signal(signal.SIGTERM, end_all)
    threading.Thread(target=watch_parent, daemon=True).start()


# --- building --------------------------------------------------------------------------------------


def make_venv(environment: str, base: Base) -> None:
    """Make an empty environment that sees the base's packages and has its programs."""
    try:
        import venv

        venv.EnvBuilder(symlinks=True, with_pip=False).create(environment)
    except (ImportError, subprocess.CalledProcessError) as fault:
        remedy = "install python3-venv there, or start gpuagent with --python"
        raise Failure(f"the Python of the node, {sys.executable}, cannot make an environment ({fault}): {remedy}", False) from fault
    lib = os.path.join(environment, "lib", "python{}.{}".format(*sys.version_info[:2]), "site-packages")
    with open(os.path.join(lib, PTH_NAME), "w", encoding="utf-8") as file:
        file.write(base.pth)
    for name, target in base.programs().items():
        write_program(environment, name, target)


def write_program(environment: str, name: str, target: str) -> None:
    """Write a program of the base that runs with the environment's Python, such as torchrun: its workers then see the environment, too."""
    module, _, function = target.partition(":")
    path = os.path.join(environment, "bin", name)
    if not re.fullmatch(r"[\w.-]+", name) or not re.fullmatch(r"[\w.]+", module) or not re.fullmatch(r"[\w.]+", function):
        return
    if os.path.lexists(path):
        return
    # Uses sh, because the kernel accepts no long path behind #!.
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n'''exec' \"{python_of(environment)}\" \"$0\" \"$@\"\n' '''\n")
        file.write(f"import sys\nfrom {module} import {function.split('.')[0]}\n")
        file.write(f"if __name__ == '__main__':\n    sys.exit({function}())\n")
    os.chmod(path, 0o755)  # noqa: S103  (a program of an environment that jobs of all users may share)


def provide_pip(environment: str, base: Base) -> None:
    """Make sure that there is a pip: the base's, which the environment sees, else the one in the base's standard library."""
    if "pip" in base.installed:
        return
    say(text="Installing pip")
    made = subprocess.run(
        [python_of(environment), "-I", "-m", "ensurepip"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if made.returncode != 0:
        remedy = "install python3-pip or python3-venv there, or start gpuagent with --python"
        raise Failure(f"the Python of the node, {sys.executable}, has neither pip nor ensurepip: {remedy}", False)


def build(environment: str, requirements: Requirements, base: Base, lock: Lock, build_ids: int) -> None:
    """Fill the folder of an environment; the marker is written last. build_ids: the first number for users of builds; 0: the agent's."""
    if os.path.lexists(environment):
        shutil.rmtree(environment)
    make_venv(environment, base)
    if any(not line.option for line in requirements.asked):
        provide_pip(environment, base)
        install(environment, requirements, lock, build_ids)
    lock.touch()
    with open(os.path.join(environment, "requirements.txt"), "w", encoding="utf-8") as file:
        file.write(mask(requirements.text))
    write_marker(environment, base, size_of(environment))


def install(environment: str, requirements: Requirements, lock: Lock, build_ids: int) -> None:
    """Let pip add the missing packages, held to all pinned versions.

    A lock, as written down from a working environment, is installed as it is, even if its packages claim to conflict.
    """
    asked = os.path.join(environment, "asked.txt")
    pins = os.path.join(environment, "pins.txt")
    write_lines(asked, requirements.asked)
    write_lines(pins, [line for line in requirements.lines if line.name])
    pip = Pip(environment, lock, Stranger(os.path.dirname(environment), build_ids) if build_ids else None)
    done = pip.run("-r", asked, "-c", pins)
    if not done and requirements.is_lock and any("ResolutionImpossible" in line for line in pip.lines):
        done = pip.run("--no-deps", "-r", asked)
    if not done:
        raise failure_of(pip)
    os.unlink(asked)
    os.unlink(pins)


def write_lines(path: str, lines: "List[Line]") -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write("".join(line.text + "\n" for line in lines))


# --- one call --------------------------------------------------------------------------------------


def check_version(wanted: str) -> None:
    """Continue in another Python if the job wants one; raise Failure if there is none."""
    mine = "{}.{}".format(*sys.version_info[:2])
    first = os.environ.pop("GPUCTL_HAS_PYTHON", "")  # of the Python that ran this file first
    has = first or f"{mine} ({sys.executable})"
    if sys.version_info[:2] < OLDEST:
        raise Failure(
            f"the node has Python {has}, and {OLDEST[0]}.{OLDEST[1]} is the oldest that works: start gpuagent with --python", False, True
        )
    if not wanted or wanted == mine:
        return
    other = shutil.which(f"python{wanted}")
    if other is None or first:
        remedy = f"install python{wanted} there, or start gpuagent with --python"
        raise Failure(f"the node has Python {has}, and the job needs {wanted}: {remedy}", False, True)
    os.environ["GPUCTL_HAS_PYTHON"] = has
    os.execv(other, [other, "-I", *sys.argv])


def key_of(requirements: Requirements, base: Base) -> str:
    """Return the name of the environment's folder: a hash of all that decides its content.

    If pip has to judge lines, that includes all of the base's packages.
    """
    relied = requirements.met if requirements.is_lock else base.installed
    parts = [str(FORMAT), requirements.text, sys.executable, sys.version, base.pth, json.dumps(relied, sort_keys=True)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def get_ready(folder: str, text: str, name: str, build_ids: int) -> "Tuple[str, str]":
    """Return the environment's folder and its Python."""
    base = Base()
    requirements = Requirements(text, base.installed)
    key = key_of(requirements, base)
    environment = os.path.join(folder, key)
    if marker_of(environment) is None:
        lock = Lock(environment + ".lock")
        if lock.take(environment):
            build(environment, requirements, base, lock, build_ids)
        os.close(lock.fd)
    marker = marker_of(environment) or {}
    if marker.get("folders") != base.mtimes():
        write_marker(environment, base, marker.get("size_bytes", 0))
    name_it(folder, name, key)
    return environment, python_of(environment)


def read_text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8")
    except UnicodeDecodeError as fault:
        raise Failure(f"the requirements are not UTF-8: {fault}", True) from fault


def work(arguments: argparse.Namespace) -> int:
    try:
        check_version(arguments.python_version)
        os.makedirs(arguments.folder, mode=0o700, exist_ok=True)
        text = read_text(arguments.requirements)
        folder, python = get_ready(os.path.abspath(arguments.folder), text, arguments.key, arguments.build_ids)
    except Failure as failure:
        say(failed=mask(str(failure)), by_user=failure.by_user, lasting=failure.lasting)
        return 1
    except OSError as fault:
        say(failed=mask(f"the environment cannot be made below {arguments.folder}: {fault}"), by_user=False)
        return 1
    say(ready=True, folder=folder, python=python)
    return 0


def main() -> "NoReturn":
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--requirements", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--python-version", default="")
    parser.add_argument("--build-ids", type=int, default=0)
    arguments = parser.parse_args()
    begin_session()
    code = work(arguments)
    sys.stdout.flush()
    os._exit(code)  # the thread that watches stdin is blocked in a read


if __name__ == "__main__":
    main()
