# SPDX-License-Identifier: Apache-2.0
"""The settings of the programs: what a file may say, what is refused and how, and that docs/reference/configuration.md lists what there is.

`python tests/e2e/commands/test_configuration.py` prints the tables of that page as they should be.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness import GPUAGENT, GPUCTL, GPUCTLD, ROOT  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "configuration.md"
LABEL = re.compile(r"^ +(?:-\w, )?--(?P<name>[a-z0-9-]+)(?: (?P<value>\S+))?(?:  +(?P<help>.*))?$")


def said(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


def settings_of(program: Path) -> list[tuple[str, str, str]]:
    """Name, value and meaning of each option that is a setting, as --help shows them."""
    shown = said(program, "--help").stdout
    part = shown.split("\nOptions:\n")[1].split("\nOn the command line only:\n")[0]
    rows: list[tuple[str, str, str]] = []
    for line in part.splitlines():
        match = LABEL.match(line)
        if match:
            rows.append((match["name"], match["value"] or "true or false", match["help"] or ""))
        elif line.strip():
            rows[-1] = (*rows[-1][:2], line.strip())
    return rows


def table_of(program: Path) -> str:
    rows = [f"| `{name}` | {value.replace('|', ', ')} | {text.replace('|', ', ')} |" for name, value, text in settings_of(program)]
    return "\n".join(["| setting | value | meaning |", "|---|---|---|", *rows])


@pytest.mark.parametrize("program", [GPUCTLD, GPUAGENT])
def test_the_page_lists_each_setting_of_a_daemon_as_its_help_does(program: Path) -> None:
    part = PAGE.read_text().split(f"\n## {program.name}\n")[1].split("\n## ")[0]
    written = "\n".join(line for line in part.splitlines() if line.startswith("|"))
    assert written == table_of(program), f"print the tables anew with python {Path(__file__).relative_to(ROOT)}"


def test_the_page_lists_the_settings_of_the_clients() -> None:
    from serverless_gpu._internal.api import settings

    part = PAGE.read_text().split("\n## gpuctl and Python\n")[1].split("\n## ")[0]
    written = re.findall(r"^\| `([a-z0-9-]+)` \|", part, re.MULTILINE)
    names = re.search(r"Their names: ([a-z0-9, -]+)\.", said(GPUCTL, "--help").stdout)
    assert names is not None
    assert written == names[1].split(", ") == [name.replace("_", "-") for name in settings.NAMES]


def test_every_option_of_a_daemon_can_be_given_in_its_file(tmp_path: Path) -> None:
    file = tmp_path / "controller.conf"
    file.write_text(f"state = {tmp_path}/state\nlisten = 127.0.0.1:0\nlog_level = warning\nhost-name = a, b\nbackup-interval = 0\n")
    ran = said(GPUCTLD, "--config", file, "--check-config")
    assert (ran.returncode, ran.stdout) == (0, f"ok: the settings are sound ({file})\n"), ran.stderr
    token = tmp_path / "token"
    token.write_text("gct_x\n")
    file = tmp_path / "agent.conf"
    file.write_text(f"controller = http://127.0.0.1:1\ntoken-file = {token}\ncpu-slots = 2\nlabel = zone=a,disk=ssd\nreserved = yes\n")
    ran = said(GPUAGENT, "--config", file, "--check-config")
    assert (ran.returncode, ran.stdout) == (0, f"ok: the settings are sound ({file})\n"), ran.stderr


@pytest.mark.parametrize(
    ("program", "text", "line"),
    [
        (GPUCTLD, "\nlsten = 127.0.0.1:0\n", "2: unknown setting lsten; did you mean listen?"),
        (GPUCTLD, "backup-keep = many\n", '1: backup-keep must be a whole number from 1 to 1000, not "many"'),
        (GPUCTLD, "embedded = true\n", "1: embedded is for the command line only"),
        (GPUCTLD, "listen\n", '1: expected "name = value"'),
        (GPUAGENT, "cpu-slot = 2\n", "1: unknown setting cpu-slot; did you mean cpu-slots?"),
        (GPUAGENT, "shared-memory = mine\n", '1: shared-memory must be one of own|host, not "mine"'),
    ],
)
def test_a_mistake_in_a_file_is_refused_by_name_and_line(program: Path, text: str, line: str, tmp_path: Path) -> None:
    file = tmp_path / "file.conf"
    file.write_text(text)
    for arguments in ([], ["--check-config"]):
        ran = said(program, "--config", file, "--state", tmp_path / "state", *arguments)
        assert ran.returncode == 2
        assert ran.stderr.startswith(f"{program.name}: {file}:{line}\n"), ran.stderr


def test_a_mistake_in_the_file_of_the_clients_is_refused(tmp_path: Path) -> None:
    """M14: gpuctl took no notice of typos."""
    file = tmp_path / "gpuctl" / "config"
    file.parent.mkdir()
    file.write_text("\nulr = http://127.0.0.1:1\n")
    ran = subprocess.run(
        [GPUCTL, "ps"], capture_output=True, text=True, timeout=60, env={"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)}
    )
    assert ran.returncode == 2
    assert f"{file}:2: unknown setting ulr; did you mean url?" in ran.stderr


def test_a_missing_file_of_a_setting_is_named_by_the_check(tmp_path: Path) -> None:
    file = tmp_path / "agent.conf"
    file.write_text("controller = http://127.0.0.1:1\ntoken-file = /nowhere/token\n")
    ran = said(GPUAGENT, "--config", file, "--check-config")
    assert ran.returncode != 0
    assert "cannot read the token file /nowhere/token" in ran.stderr


if __name__ == "__main__":
    for daemon in (GPUCTLD, GPUAGENT):
        print(f"## {daemon.name}\n\n{table_of(daemon)}\n")
