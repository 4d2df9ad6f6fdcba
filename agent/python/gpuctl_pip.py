# SPDX-License-Identifier: Apache-2.0
"""Runs pip for the builder of environments: tells its progress in short lines, and why it failed.

Each line on stdout is a JSON object for the agent. A pip that says nothing counts as alive while its processes use CPU time or write. A
failure says whether another node would fail in the same way. User and password in URLs are never told.
"""

import json
import os
import re
import select
import subprocess
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Protocol, Tuple

    from gpuctl_stranger import Stranger

    class Lock(Protocol):
        """The lock of the environment that is built."""

        fd: int

        def touch(self) -> None:
            """Show that the build makes progress."""


TEXT_LIMIT = 200  # characters of a line of progress
FAILURE_LIMIT_BYTES = 4096
OUTPUT_KEPT_LINES = 400
ALIVE_S = 1.0  # between two checks of silent processes
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


# --- pip -------------------------------------------------------------------------------------------


def work_of_session() -> "Tuple[int, int]":
    """Return CPU time in ticks and bytes written of the other processes of this session. Both grow while pip makes progress."""
    ticks = written = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(pid) == os.getpid() or os.getsid(int(pid)) != os.getsid(0):
                continue
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                words = file.read().rpartition(")")[2].split()
            ticks += int(words[11]) + int(words[12])  # utime, stime
            with open(f"/proc/{pid}/io", encoding="ascii") as file:
                written += int(dict(line.split(": ") for line in file)["wchar"])
        except (OSError, ValueError, KeyError, IndexError):  # it has ended
            continue
    return ticks, written


class Pip:
    """One run of pip install, and its output."""

    def __init__(self, environment: str, lock: "Lock", stranger: "Optional[Stranger]" = None) -> None:
        self.environment = environment
        self.lock = lock
        self.stranger = stranger  # the user that it runs as; None: the agent's
        self.progress = Progress()
        self.lines: List[str] = []
        self.code = 0

    def run(self, *arguments: str) -> bool:
        flags = ["--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--no-warn-script-location"]
        if self.stranger is None:
            flags += ["--cache-dir", os.path.join(os.path.dirname(self.environment), ".pip-cache")]
        else:
            flags += ["--no-cache-dir"]  # what one build leaves there would go into others
        command = [os.path.join(self.environment, "bin", "python"), "-I", "-m", "pip", "install", *flags, *arguments]
        variables = {name: value for name, value in os.environ.items() if name not in NEVER_PASSED_ON}
        if self.stranger is not None:
            command = self.stranger.command(*command)
            variables.update(self.stranger.begin(self.environment))
        self.lines = []
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self.environment,
            env=variables,
            pass_fds=() if self.stranger else (self.lock.fd,),  # a process that outlives this one still holds the lock
        )
        assert process.stdout is not None
        self.listen(process.stdout.fileno())
        self.code = process.wait()
        if self.stranger is not None:
            self.stranger.finish(self.environment)
        return self.code == 0

    def listen(self, pipe: int) -> None:
        """Handle lines as they come, and check every ALIVE_S seconds for progress."""
        rest = b""
        work = (0, 0)
        checked_s = time.monotonic()
        while True:
            if select.select([pipe], [], [], max(0.0, checked_s + ALIVE_S - time.monotonic()))[0]:
                piece = os.read(pipe, 65536)
                *lines, rest = (rest + piece).split(b"\n")
                has_news = [self.hear(line.decode("utf-8", "replace")) for line in lines + ([rest] if not piece else [])]
                if not piece:
                    return
                if not any(has_news):
                    continue
            else:
                before, work = work, work_of_session()
                if work != before:
                    say(alive=True)
            self.lock.touch()
            checked_s = time.monotonic()

    def hear(self, line: str) -> bool:
        line = mask(line.rstrip())
        self.lines = self.lines[-OUTPUT_KEPT_LINES:] + [line]
        return self.progress.tell(line)


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
