# SPDX-License-Identifier: Apache-2.0
"""Builds one Python environment of a node, and reports its progress.

    python -I gpuctl_environment.py --folder ENVIRONMENTS --requirements FILE --key NAME [--python-version 3.11]

It makes ENVIRONMENTS/<hash>/, a venv that sees all packages of the base, the Python that runs this file. pip adds the packages that the
requirements name and the base does not have in the right version. The hash covers the requirements, the base, and the base's packages that
they rely on: after a change of the base, the next call makes another environment and leaves the one that ranks use unchanged.
ENVIRONMENTS/names/<NAME> becomes a link to the folder. A folder with a marker (gpuctl.json) is complete and is not written again. Of
several calls at once only one builds. A killed call leaves no marker and no process. The agent removes old environments.

Each line on stdout is a JSON object: {"text": ...} is a step, {"alive": true} says that the build goes on without news; the last line is
{"ready": true, "folder": ..., "python": ...} or {"failed": ..., "by_user": ..., "lasting": ...}. The program ends itself and all its
processes on SIGTERM, and when its stdin ends, which happens with the agent. It needs only the standard library, from Python 3.8 on.
"""

import argparse
import fcntl
import hashlib
import json
import os
import re
import select
import shutil
import signal
import site
import subprocess
import sys
import sysconfig
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, List, NoReturn, Optional, Tuple

MARKER = "gpuctl.json"
FORMAT = 1
OLDEST = (3, 8)
PTH_NAME = "gpuctl_base.pth"

TEXT_LIMIT = 200  # characters of a line of progress
FAILURE_LIMIT_BYTES = 4096
OUTPUT_KEPT_LINES = 400
ALIVE_S = 1.0  # between two checks of silent processes
LOCK_S = 0.2  # between two tries to get the lock
FULL_BYTES = 32 * 1024 * 1024  # less free space counts as none

NEVER_PASSED_ON = ("PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_REQUIREMENT", "PIP_CONSTRAINT")


class Failure(Exception):
    """Why there will be no environment. by_user: it would fail on any node; lasting: it will always fail on this node."""

    def __init__(self, text: str, by_user: bool, lasting: bool = False) -> None:
        super().__init__(text)
        self.by_user = by_user
        self.lasting = lasting


# --- what is told ----------------------------------------------------------------------------------


def say(**row: "Any") -> None:
    """Write one line for the agent."""
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def mask(text: str) -> str:
    """Return the text with user and password in URLs masked."""
    return re.sub(r"(?<=://)[^/\s]+@", "***@", text)


def wheel_title(path: str) -> str:
    """Return `numpy-2.1.0` from the URL or the file name of a distribution."""
    name = path.split("#")[0].rstrip("/").split("/")[-1]
    if name.endswith(".whl"):
        return "-".join(name.split("-")[:2])
    return re.sub(r"\.(tar\.\w+|zip|tgz)$", "", name)


class Progress:
    """Turns each line of pip that has news into a short line."""

    def __init__(self) -> None:
        self.package = ""
        self.told = ""

    def tell(self, line: str) -> bool:
        """Report the line if it has news; return whether it had."""
        text = self.shorten(line.strip())
        if not text or text == self.told:
            return False
        self.told = text
        say(text=text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 3] + "...")
        return True

    def shorten(self, line: str) -> str:
        word, _, rest = line.partition(" ")
        if word == "Collecting":
            self.package = rest.split(" (from ")[0]
            return f"Collecting {self.package}"
        if word == "Processing":
            self.package = wheel_title(rest.split(" (from ")[0])
            return f"Collecting {self.package}"
        if word == "Downloading" and not rest.split(" ")[0].endswith(".metadata"):
            size = re.search(r"\(([^()]*B)\)$", rest)
            return f"Downloading {wheel_title(rest.split(' ')[0])}" + (f" ({size.group(1)})" if size else "")
        if line.startswith("Building wheel for "):
            return f"Building {line.split(' ')[3]}"
        if line.startswith(("Installing build dependencies", "Getting requirements to build", "Preparing metadata")):
            return f"Preparing {self.package}"
        if line.startswith("Installing collected packages: "):
            return f"Installing {line.split(': ', 1)[1]}"
        if line.startswith("WARNING: Retrying"):
            return line.split(": ", 1)[1]
        return ""


# --- requirements ----------------------------------------------------------------------------------


class Requirement:
    """A line of a requirements file: name and version of a plain pin, "" if only pip can judge the line; an option requires nothing."""

    def __init__(self, line: str, name: str = "", version: str = "", option: bool = False) -> None:
        self.line = line
        self.name = name
        self.version = version
        self.option = option


PIN = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*==\s*([A-Za-z0-9.!+_-]+)")
ASKS_FOR_MORE = re.compile(r"(-e|-r|--editable|--requirement)\b")


def normalize(name: str) -> str:
    """Return a distribution's name in its normal form, for comparisons."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirements_of(text: str) -> "List[Requirement]":
    """Return the requirements of a requirements file, one for each line."""
    found = []
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        line = re.sub(r"(^|\s)#.*$", "", line).strip()
        pin = PIN.fullmatch(line)
        if pin:
            found.append(Requirement(line, normalize(pin.group(1)), pin.group(2)))
        elif line:
            found.append(Requirement(line, option=line.startswith("-") and not ASKS_FOR_MORE.match(line)))
    return found


VERSION = re.compile(
    r"v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_number>\d*))?"
    r"(?:(?P<post>[-_.]?(?:post|rev|r)[-_.]?(?P<post_number>\d*))|-(?P<bare_post>\d+))?"
    r"(?P<dev>[-_.]?dev[-_.]?(?P<dev_number>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?"
)
PRE_LETTER = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}


def version_key(version: str) -> "Tuple[Any, str]":
    """Return (all but the local label, the local label) of a version, so that equal versions give equal keys."""
    found = VERSION.fullmatch(version.strip().lower())
    if found is None:
        return version.strip().lower(), ""
    release = re.sub(r"(\.0+)+$", "", ".".join(str(int(part)) for part in found.group("release").split(".")))
    pre = found.group("pre")
    post = found.group("bare_post") or (found.group("post_number") or "0" if found.group("post") else None)
    dev = (found.group("dev_number") or "0") if found.group("dev") else None
    public = (
        int(found.group("epoch") or 0),
        release,
        (PRE_LETTER.get(pre, pre), int(found.group("pre_number") or 0)) if pre else None,
        int(post) if post is not None else None,
        int(dev) if dev is not None else None,
    )
    return public, re.sub(r"[-_.]", ".", found.group("local") or "")


def is_met(pinned: str, installed: str) -> bool:
    """Return whether `==pinned` accepts the installed version: a pin without a local label accepts any label."""
    wanted, has = version_key(pinned), version_key(installed)
    return wanted[0] == has[0] and wanted[1] in ("", has[1])


# --- the base --------------------------------------------------------------------------------------


class Base:
    """The Python that runs this file, and its packages beyond the standard library."""

    def __init__(self) -> None:
        self.folders = base_folders()
        self.pth = "".join(line + "\n" for line in self.folders + import_lines(self.folders))
        self.installed, self.metadata = installed_in(self.folders)

    def mtimes(self) -> "Dict[str, int]":
        """Return the modification time of each folder in ns: it changes when a distribution comes or goes."""
        return {folder: os.stat(folder).st_mtime_ns for folder in self.folders}


def base_folders() -> "List[str]":
    """Return the entries of sys.path beyond the standard library, the user's entries first, in the order of ranks that use the base."""
    standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    standard |= {os.path.join(path, "lib-dynload") for path in standard}
    plain = list(sys.path)
    if sys.prefix == sys.base_prefix and os.path.isdir(site.getusersitepackages()):
        site.addsitedir(site.getusersitepackages())
    users = [path for path in sys.path if path not in plain]
    return [path for path in users + plain if path not in standard and os.path.isdir(path)]


def import_lines(folders: "List[str]") -> "List[str]":
    """Return the code lines of the base's .pth files: hooks of packages that are installed in editable mode.

    A line that asks for its own folder is left out, because here it would get another folder.
    """
    found = []
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            if name.endswith(".pth") and not name.startswith("."):
                with open(os.path.join(folder, name), encoding="utf-8", errors="ignore") as file:
                    found += [line.rstrip() for line in file if line.startswith(("import ", "import\t")) and "sitedir" not in line]
    return list(dict.fromkeys(found))


def installed_in(folders: "List[str]") -> "Tuple[Dict[str, str], List[str]]":
    """Return ({normalized name: version}, metadata folders); of two folders with one package the first counts, as it does for imports."""
    versions: Dict[str, str] = {}
    metadata = []
    for folder in folders:
        for entry in sorted(os.listdir(folder)):
            if entry.endswith((".dist-info", ".egg-info")):
                path = os.path.join(folder, entry)
                name, version = title_of(path)
                if name and name not in versions:
                    versions[name] = version
                    metadata.append(path)
    return versions, metadata


def title_of(path: str) -> "Tuple[str, str]":
    """Return (normalized name, version) of a metadata folder; usually the folder's own name contains both."""
    stem, kind = os.path.splitext(os.path.basename(path))
    name, _, version = stem.rpartition("-")
    if kind == ".dist-info" and name and re.match(r"\d", version):
        return normalize(name), version.replace("_", "-") if "+" not in version else version
    from importlib.metadata import PathDistribution
    from pathlib import Path

    found = PathDistribution(Path(path)).metadata
    return normalize(found["Name"] or ""), found["Version"] or ""


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


class Activity:
    """Whether the processes below this one make progress: bytes written and CPU time."""

    def __init__(self) -> None:
        self.seen = (0, 0)

    def has_grown(self) -> bool:
        now = self.count()
        grown = now != self.seen
        self.seen = now
        return grown

    def count(self) -> "Tuple[int, int]":
        ticks = written = 0
        for pid in self.below():
            try:
                with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                    words = file.read().rpartition(")")[2].split()
                ticks += int(words[11]) + int(words[12])  # utime, stime
                with open(f"/proc/{pid}/io", encoding="ascii") as file:
                    written += int(dict(line.split(": ") for line in file)["wchar"])
            except (OSError, ValueError, KeyError, IndexError):
                continue
        return ticks, written

    def below(self) -> "List[str]":
        """Return the other processes of this session."""
        found = []
        for pid in os.listdir("/proc"):
            if pid.isdigit() and int(pid) != os.getpid():
                try:
                    if os.getsid(int(pid)) == os.getsid(0):
                        found.append(pid)
                except OSError:
                    continue
        return found


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
    for name, target in programs_of(base.metadata).items():
        write_program(environment, name, target)


def programs_of(metadata: "List[str]") -> "Dict[str, str]":
    """Return {name: module:function} of the console programs of the base's packages."""
    found: Dict[str, str] = {}
    for folder in metadata:
        try:
            with open(os.path.join(folder, "entry_points.txt"), encoding="utf-8") as file:
                section = ""
                for line in file:
                    name, equals, target = line.partition("=")
                    if line.startswith("["):
                        section = line.strip()
                    elif section == "[console_scripts]" and equals:
                        found.setdefault(name.strip(), target.split("[")[0].strip())
        except OSError:
            continue
    return found


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
    os.chmod(path, 0o755)


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


class Pip:
    """One run of pip install, and its output."""

    def __init__(self, environment: str, lock: Lock) -> None:
        self.environment = environment
        self.lock = lock
        self.progress = Progress()
        self.lines: List[str] = []
        self.code = 0

    def run(self, *arguments: str) -> bool:
        cache = os.path.join(os.path.dirname(self.environment), ".pip-cache")
        flags = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--no-warn-script-location", "--cache-dir", cache]
        self.lines = []
        process = subprocess.Popen(
            [python_of(self.environment), "-I", "-m", "pip", "install", *flags, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.environment,
            env={name: value for name, value in os.environ.items() if name not in NEVER_PASSED_ON},
            pass_fds=(self.lock.fd,),  # a process that outlives this one still holds the lock
        )
        assert process.stdout is not None
        self.listen(process.stdout.fileno())
        self.code = process.wait()
        return self.code == 0

    def listen(self, pipe: int) -> None:
        """Handle lines as they come, and check every ALIVE_S seconds for progress."""
        activity = Activity()
        rest = b""
        told_s = time.monotonic()
        while True:
            if select.select([pipe], [], [], max(0.0, told_s + ALIVE_S - time.monotonic()))[0]:
                piece = os.read(pipe, 65536)
                *lines, rest = (rest + piece).split(b"\n")
                told = [self.hear(line.decode("utf-8", "replace")) for line in lines + ([rest] if not piece else [])]
                if not piece:
                    return
                if not any(told):
                    continue
            elif activity.has_grown():
                say(alive=True)
            told_s = time.monotonic()
            self.lock.touch()

    def hear(self, line: str) -> bool:
        line = mask(line.rstrip())
        self.lines = self.lines[-OUTPUT_KEPT_LINES:] + [line]
        return self.progress.tell(line)


def build(environment: str, text: str, requirements: "List[Requirement]", met: "Dict[str, str]", base: Base, lock: Lock) -> None:
    """Fill the folder of an environment; the marker is written last."""
    if os.path.lexists(environment):
        shutil.rmtree(environment)
    make_venv(environment, base)
    asked = [item for item in requirements if item.name not in met]
    if any(not item.option for item in asked):
        provide_pip(environment, base)
        install(environment, asked, requirements, lock)
    lock.touch()
    with open(os.path.join(environment, "requirements.txt"), "w", encoding="utf-8") as file:
        file.write(mask(text))
    write_marker(environment, base, size_of(environment))


def install(environment: str, asked: "List[Requirement]", requirements: "List[Requirement]", lock: Lock) -> None:
    """Let pip add the missing packages, held to all pinned versions.

    A complete list of pins, as written down from a working environment, is installed as it is, even if its packages claim to conflict.
    """
    lines = os.path.join(environment, "asked.txt")
    pins = os.path.join(environment, "pins.txt")
    write_lines(lines, [item.line for item in asked])
    write_lines(pins, [item.line for item in requirements if item.name])
    pip = Pip(environment, lock)
    done = pip.run("-r", lines, "-c", pins)
    is_lock = all(item.name or item.option for item in requirements)
    if not done and is_lock and any("ResolutionImpossible" in line for line in pip.lines):
        done = pip.run("--no-deps", "-r", lines)
    if not done:
        raise failure_of(pip)
    os.unlink(lines)
    os.unlink(pins)


def write_lines(path: str, lines: "List[str]") -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in lines))


# --- what went wrong -------------------------------------------------------------------------------

DISK_IS_FULL = re.compile(r"No space left on device|Disk quota exceeded|\[Errno (28|122)\]")
NO_CONNECTION = re.compile(
    r"Failed to establish a new connection|Temporary failure in name resolution|Name or service not known|No address associated with"
    r"|[Rr]ead timed out|ReadTimeoutError|ConnectTimeoutError|[Cc]onnection (?:refused|reset|aborted|timed out)|ConnectionResetError"
    r"|RemoteDisconnected|IncompleteRead|Network is unreachable|No route to host|Max retries exceeded|ProxyError|SSLError"
    r"|CERTIFICATE_VERIFY_FAILED|\b(?:429|5\d\d) (?:Client|Server) Error"
)
NODE_IS_BROKEN = re.compile(
    r"\[Errno (13|30|23|24)\]|Permission denied|Read-only file system|Too many open files|SIGKILL|exit code: -9|MemoryError"
)
PACKAGE_IS_TO_BLAME = re.compile(
    r"ResolutionImpossible|Invalid requirement|Failed building wheel|Failed to build|conflicting dependencies|requires a different Python"
)


def failure_of(pip: Pip) -> Failure:
    """Return pip's messages as a Failure, and whether another node would fail in the same way."""
    said = "\n".join(pip.lines)
    room = os.statvfs(pip.environment)
    if DISK_IS_FULL.search(said) or room.f_bavail * room.f_frsize < FULL_BYTES:
        return Failure(f"no space is left for the environment at {pip.environment}\n{quote(pip.lines)}", False)
    if pip.code < 0:
        return Failure(f"pip was killed by signal {-pip.code}\n{quote(pip.lines)}", False)
    if NO_CONNECTION.search(said) and not PACKAGE_IS_TO_BLAME.search(said):
        return Failure(f"the package index cannot be reached\n{quote(pip.lines, NO_CONNECTION)}", False)
    has_said = any(re.match(r"\s*(ERROR|error):", line) for line in pip.lines)
    return Failure(quote(pip.lines), has_said and not NODE_IS_BROKEN.search(said))


def quote(lines: "List[str]", wanted: "Optional[re.Pattern[str]]" = None) -> str:
    """Return pip's lines from its first error on, without the middle of very long ones; matches of `wanted` come first."""
    first = next((at for at, line in enumerate(lines) if re.match(r"\s*(ERROR|error):", line)), max(0, len(lines) - 20))
    kept = [line for line in lines[first:] if not line.startswith(("[notice]", "WARNING: You are using pip"))]
    if wanted is not None:
        kept = [line for line in lines[:first] if wanted.search(line)][-2:] + kept
    data = "\n".join(kept).strip().encode()
    if len(data) <= FAILURE_LIMIT_BYTES - 512:
        return data.decode()
    head, tail = data[:1024], data[-(FAILURE_LIMIT_BYTES - 1024 - 512 - 8) :]
    return head.decode("utf-8", "ignore") + "\n...\n" + tail.decode("utf-8", "ignore")


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


def key_of(text: str, base: Base, requirements: "List[Requirement]", met: "Dict[str, str]") -> str:
    """Return the name of the environment's folder: a hash of all that decides its content.

    If pip has to judge lines, that includes all of the base's packages.
    """
    relied = met if all(item.name or item.option for item in requirements) else base.installed
    parts = [str(FORMAT), text, sys.executable, sys.version, base.pth, json.dumps(relied, sort_keys=True)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def get_ready(folder: str, text: str, name: str) -> "Tuple[str, str]":
    """Return the environment's folder and its Python."""
    base = Base()
    requirements = requirements_of(text)
    met = {
        item.name: base.installed[item.name]
        for item in requirements
        if item.name and is_met(item.version, base.installed.get(item.name, ""))
    }
    key = key_of(text, base, requirements, met)
    environment = os.path.join(folder, key)
    if marker_of(environment) is None:
        lock = Lock(environment + ".lock")
        if lock.take(environment):
            build(environment, text, requirements, met, base, lock)
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
        folder, python = get_ready(os.path.abspath(arguments.folder), read_text(arguments.requirements), arguments.key)
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
    arguments = parser.parse_args()
    begin_session()
    code = work(arguments)
    sys.stdout.flush()
    os._exit(code)  # the thread that watches stdin is blocked in a read


if __name__ == "__main__":
    main()
