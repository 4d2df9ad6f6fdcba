# SPDX-License-Identifier: Apache-2.0
"""A person who types what a page says, in one shell and one Python, with a home of their own and the files that examples name."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from pages import ROOT, Block, as_word

HERE = Path(__file__).resolve().parent
FOREIGN = ("GPUCTL_", "DATABRICKS_", "XDG_", "MLFLOW_")  # variables of the account that runs the tests

#: Runs the commands on stdin; leaves variables and folder for the next block. `set -a`: shells of blocks are processes of their own.
SHELL = """
set -aeo pipefail
trap 'code=$?; trap - EXIT; env -0 >"$READER/variables"; pwd >"$READER/place"; exit $code' EXIT
. "$READER/commands"
"""


class Wrong(AssertionError):
    """A block that does not do what its page says."""


def is_said(wanted: str, varies: list[str], said: str, whole: bool) -> bool:
    """Whether a text is what a page shows: all of it, or its end. Any blanks are alike."""
    words = [re.escape(line.strip()) for line in wanted.strip().splitlines()]
    pattern = r"\s*\n\s*".join(words)
    for each in varies:
        pattern = re.sub(as_word(re.escape(each)), r"[^\\n]+?", pattern)
    pattern = pattern.replace(re.escape("..."), "[^\\n]*")
    pattern = re.sub(r"(\\ )+", r"[ \\t]+", pattern)
    begin = r"^\s*" if whole else r"(^|\n)\s*"
    return re.search(begin + pattern + r"\s*$", said) is not None


class Reader:
    """folder: of the reader alone. variables: what its shell begins with."""

    def __init__(self, folder: Path, variables: dict[str, str], patience: float):
        self.folder = folder
        self.patience = patience
        self.python: subprocess.Popen[str] | None = None
        self.answers = -1
        self.staying: list[subprocess.Popen[bytes]] = []
        self.said = ""
        work = folder / "work"
        shutil.copytree(HERE / "files", work)
        (folder / "variables").write_text("\0".join(f"{name}={value}" for name, value in {**variables, "READER": str(folder)}.items()))
        (folder / "place").write_text(f"{work}\n")

    @property
    def variables(self) -> dict[str, str]:
        pairs = (pair.partition("=") for pair in (self.folder / "variables").read_text().split("\0") if pair)
        return {name: value for name, _, value in pairs}

    def close(self) -> None:
        if self.python is not None and self.python.stdin is not None:
            self.python.stdin.close()
            self.python.wait()
        for process in reversed(self.staying):  # nodes before their controller
            process.send_signal(signal.SIGTERM)
            process.wait()

    # --- shell ----------------------------------------------------------------------------------------------

    def shell(self, commands: str, place: Path | None = None, kept: bool = True) -> str:
        """Execute commands and return what they say. kept: variables and folder are the next block's, too."""
        variables = self.variables
        before = (self.folder / "place").read_text().strip()
        (self.folder / "commands").write_text(commands)
        try:
            done = subprocess.run(
                ["bash", "-c", SHELL], cwd=place or before, env=variables, text=True, timeout=self.patience,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as late:
            said = late.stdout or b""
            raise Wrong(f"does not end: {commands}\n{said.decode() if isinstance(said, bytes) else said}") from None
        if not kept:
            (self.folder / "variables").write_text("\0".join(f"{name}={value}" for name, value in variables.items()))
        if not kept or place:
            (self.folder / "place").write_text(f"{before}\n")
        if done.returncode != 0:
            raise Wrong(f"exit {done.returncode}: {commands}\n{done.stdout}")
        return done.stdout

    def stay(self, commands: str, until: str) -> None:
        """Execute commands that do not end, each beside the others, until the reader closes."""
        place = (self.folder / "place").read_text().strip()
        for line in filter(None, map(str.strip, commands.splitlines())):
            with open(self.folder / f"stays{len(self.staying)}.log", "wb") as log:
                self.staying.append(
                    subprocess.Popen(
                        ["bash", "-c", f"exec {line}"], cwd=place, env=self.variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                    )
                )
        try:
            self.shell(f"until {until}; do sleep 0.05; done", kept=False)
        except Wrong as wrong:
            said = "".join(log.read_text() for log in sorted(self.folder.glob("stays*.log")))
            raise Wrong(f"{wrong}\n{said}") from None

    # --- Python ---------------------------------------------------------------------------------------------

    def run_python(self, text: str, name: str) -> None:
        """Execute a block in the page's Python, which begins with its first one."""
        if self.python is None:
            self.answers, theirs = os.pipe()
            with open(self.folder / "python.log", "wb") as log:
                self.python = subprocess.Popen(
                    [shutil.which("python", path=self.variables["PATH"]) or "python", "-c",
                     f"import os, sys; os.dup2({theirs}, 3); sys.path.append({str(HERE)!r}); import session; session.serve()"],
                    cwd=(self.folder / "place").read_text().strip(), env=self.variables, pass_fds=[theirs], text=True,
                    stdin=subprocess.PIPE, stdout=log, stderr=log,
                )  # fmt: skip
            os.close(theirs)
        assert self.python.stdin is not None
        self.python.stdin.write(json.dumps({"name": name, "text": text}) + "\n")
        self.python.stdin.flush()
        answer = b""
        while not answer.endswith(b"\n"):
            piece = os.read(self.answers, 65536)
            if not piece:
                raise Wrong(f"the page's Python has ended\n{(self.folder / 'python.log').read_text()}")
            answer += piece
        if answer != b"\n":
            raise Wrong(f"{json.loads(answer)}\n{(self.folder / 'python.log').read_text()[-4000:]}")

    # --- blocks ---------------------------------------------------------------------------------------------

    def execute(self, block: Block) -> None:
        """Do what a block says. Wrong: it does not work, or something else comes of it than is shown."""
        place = ROOT if block.place == "checkout" else None
        self.shell(block.directives.get("before", ""))
        try:
            self._execute(block, place)
        finally:
            self.shell(block.directives.get("after", ""))

    def _execute(self, block: Block, place: Path | None) -> None:
        text = block.filled(lambda commands: self.shell(commands, kept=False))
        if "file" in block.directives:
            path = Path((self.folder / "place").read_text().strip()) / block.directives["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif "output" in block.flags:
            if not is_said(text, block.varying, self.said, whole=False):
                raise Wrong(f"the page shows\n{text}\nand it is\n{self.said}")
        elif block.language == "python":
            self.run_python(text, block.name)
        elif "until" in block.directives:
            self.stay(text, block.directives["until"])
        elif block.language == "console":
            for command, shown in self._steps(text):
                self.said = self._command(command, place, "fails" in block.flags)
                if not is_said(shown, block.varying, self.said, whole=True):
                    raise Wrong(f"{command}: the page shows\n{shown}\nand it is\n{self.said}")
        else:
            self.said = self._command(text, place, "fails" in block.flags)

    def _command(self, command: str, place: Path | None, fails: bool) -> str:
        if fails:
            return self.shell(f"! {{ {command}\n}}", place)
        return self.shell(command, place)

    @staticmethod
    def _steps(text: str) -> list[tuple[str, str]]:
        """Commands, and what the page shows that each says."""
        steps: list[tuple[str, str]] = []
        for line in text.splitlines():
            if line.startswith("$ "):
                steps.append((line.removeprefix("$ "), ""))
            else:
                command, shown = steps[-1]
                steps[-1] = (command, f"{shown}{line}\n")
        return steps


def variables_of_a_reader(home: Path, programs: Path, python: Path) -> dict[str, str]:
    """What the shell of a new account has, with our programs and a Python before the system's. Settings of package indexes are kept;
    pip builds with the setuptools that is there. Where the reader is root, jobs run as the agent: a reader's home is in /tmp, and the
    Python of this checkout may be where no other user comes.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN) or name == "GPUCTL_BUILD"}
    home.mkdir(parents=True)
    settings = Path.home() / ".config" / "pip"
    if settings.is_dir():
        (home / ".config").mkdir()
        (home / ".config" / "pip").symlink_to(settings)
    ours = [programs / name for name in ("client/cli", "daemon", "agent")]
    path = [python / "bin", *ours, os.environ["PATH"], Path(sys.prefix) / "bin"]
    made = {"HOME": str(home), "PATH": ":".join(map(str, path)), "CHECKOUT": str(ROOT), "GPUCTL_RUN_AS": "agent"}
    return {**kept, **made, "TERM": "dumb", "NO_COLOR": "1", "PIP_NO_BUILD_ISOLATION": "1"}


def packages_of(python: str | Path) -> str:
    """The folder into which a Python's packages are installed."""
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return subprocess.run([python, "-c", ask], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def make_python(folder: Path) -> None:
    """A Python environment that has the packages of the one which runs this, and can install more."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    line = f"import site; site.addsitedir({packages_of(sys.executable)!r})\n"
    (Path(packages_of(folder / "bin" / "python")) / "tests.pth").write_text(line)
