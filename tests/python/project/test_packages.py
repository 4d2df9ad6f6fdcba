# SPDX-License-Identifier: Apache-2.0
"""What deploy/package makes: the same bytes wherever the checkout lies, no complaint of lintian, units that keep jobs alive, and programs
that find each other where they are installed.
"""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hardening import unguarded, wanted, weaknesses

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("GPUCTL_BUILD", ROOT / "build"))
PACKAGES = ("gpuctl", "gpuctl-agent", "gpuctl-controller", "gpuctl-slurm")
SLURM = ("sacct", "sbatch", "scancel", "sinfo", "squeue", "srun")

FILES = {
    "gpuctl": {
        "/etc/gpuctl/config",
        "/usr/bin/gpuctl",
        "/usr/share/bash-completion/completions/gpuctl.bash",
        "/usr/share/fish/vendor_completions.d/gpuctl.fish",
        "/usr/share/gpuctl/alerts/gpuctl.rules.yml",
        "/usr/share/gpuctl/grafana/gpuctl.json",
        "/usr/share/gpuctl/skill/SKILL.md",
        "/usr/share/zsh/vendor-completions/_gpuctl",
    },
    "gpuctl-agent": {
        "/etc/default/gpuagent",
        "/lib/systemd/system/gpuagent.service",
        "/usr/bin/gpuagent",
        "/usr/lib/systemd/user/gpuagent.service",
        "/usr/libexec/gpuctl/gpushim",
        "/usr/libexec/gpuctl/release-cgroup",
    },
    "gpuctl-controller": {"/etc/default/gpuctld", "/lib/systemd/system/gpuctld.service", "/usr/bin/gpuctld"},
    "gpuctl-slurm": set(),
}


def output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def make(checkout: Path, build: Path, folder: Path) -> dict[str, Path]:
    """The packages, by name."""
    subprocess.run([checkout / "deploy" / "package", "--build", build, "--output", folder], check=True, stdout=subprocess.DEVNULL)
    made = {path.name.split("_")[0]: path for path in folder.iterdir()}
    assert sorted(made) == sorted(PACKAGES)
    return made


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return make(ROOT, BUILD, tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="module")
def installed(packages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of all of them, as they would lie below /."""
    root = tmp_path_factory.mktemp("root")
    for package in packages.values():
        output("dpkg-deb", "--extract", package, root)
    return root


def field(package: Path, name: str) -> str:
    return output("dpkg-deb", "--field", package, name).strip()


def unit(path: Path) -> dict[str, str]:
    """What a unit sets, by name; where it sets one again, the last."""
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(path)
    return {name: value for section in parser.sections() for name, value in parser[section].items()}


@pytest.mark.long
def test_two_builds_in_different_folders_give_the_same_bytes(packages: dict[str, Path], tmp_path: Path) -> None:
    elsewhere = tmp_path / "another" / "folder"
    for name in output("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if name and (ROOT / name).exists():
            (elsewhere / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, elsewhere / name, follow_symlinks=False)
    os.environ["SOURCE_DATE_EPOCH"] = output("git", "-C", ROOT, "log", "-1", "--format=%ct").strip()
    try:
        again = make(elsewhere, tmp_path / "build", tmp_path / "packages")
    finally:
        del os.environ["SOURCE_DATE_EPOCH"]
    for name in PACKAGES:
        assert again[name].read_bytes() == packages[name].read_bytes(), f"{name} differs"


def test_all_parts_have_the_version_of_meson_build(packages: dict[str, Path]) -> None:
    declared = re.search(r"^  version: '([0-9.]+)'", (ROOT / "meson.build").read_text(), re.MULTILINE)
    assert declared is not None
    version = declared[1]
    for name in ("python", "air", "pyspark"):
        assert f'\nversion = "{version}"\n' in (ROOT / "client" / name / "pyproject.toml").read_text(), name
    assert f'\n__version__ = "{version}"\n' in (ROOT / "client/python/src/serverless_gpu/__init__.py").read_text()
    assert re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0] == version
    assert output(BUILD / "client/cli/gpuctl", "version", "--client") == f"gpuctl {version}\n"
    for program in ("daemon/gpuctld", "agent/gpuagent"):
        assert output(BUILD / program, "--version") == f"{Path(program).name} {version}\n"
    assert {field(package, "Version") for package in packages.values()} == {version}


def test_lintian_has_nothing_to_say(packages: dict[str, Path]) -> None:
    ran = subprocess.run(
        ["lintian", "--allow-root", *packages.values()], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert re.findall("^[EW]: .*", ran.stdout, re.MULTILINE) == [] and ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("name", PACKAGES)
def test_each_file_is_where_it_belongs_and_root_owns_it(name: str, packages: dict[str, Path]) -> None:
    listed = [line.split(None, 5) for line in output("dpkg-deb", "--contents", packages[name]).splitlines()]
    assert {owner for _, owner, *_ in listed} == {"root/root"}
    files = {path.lstrip(".") for mode, _, _, _, _, path in listed if mode[0] == "-"}
    ours = {path for path in files if not path.startswith(("/usr/share/doc/", "/usr/share/lintian/", "/usr/share/man/"))}
    assert ours == FILES[name]
    # fails where there are none
    told = subprocess.run(["dpkg-deb", "--info", packages[name], "conffiles"], capture_output=True, text=True, check=False)
    assert set(told.stdout.split()) == {path for path in ours if path.startswith("/etc/")}


def test_the_packages_need_what_their_programs_need(packages: dict[str, Path]) -> None:
    depends = {name: field(package, "Depends") for name, package in packages.items()}
    version = field(packages["gpuctl"], "Version")
    for name in ("gpuctl", "gpuctl-agent", "gpuctl-controller"):
        assert "libc6 (>=" in depends[name]
    for name in ("gpuctl-agent", "gpuctl-controller"):
        assert f"gpuctl (= {version})" in depends[name]
    assert "libcurl3" in depends["gpuctl"] and "libcurl3" in depends["gpuctl-agent"] and "libcurl3" in depends["gpuctl-controller"]
    assert "libmicrohttpd12" in depends["gpuctl-controller"] and "libsqlite3-0" in depends["gpuctl-controller"]
    assert "python3" in depends["gpuctl-agent"].split(", ")
    assert field(packages["gpuctl-agent"], "Recommends") == "crun, openssh-server, python3-venv, skopeo, umoci"


def programs(installed: Path) -> list[Path]:
    files = [*(installed / "usr/bin").iterdir(), *(installed / "usr/libexec/gpuctl").iterdir()]
    return [path for path in files if not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF"]


def test_slurms_commands_are_gpuctl_where_slurm_is_not(packages: dict[str, Path], installed: Path) -> None:
    assert field(packages["gpuctl-slurm"], "Conflicts") == "slurm-client, slurm-wlm"
    assert field(packages["gpuctl-slurm"], "Depends") == f"gpuctl (>= {field(packages['gpuctl'], 'Version')})"
    for name in SLURM:
        assert (installed / "usr/bin" / name).readlink() == Path("gpuctl")
        assert output(installed / "usr/bin" / name, "--version") == f"{name} of gpuctl {field(packages['gpuctl'], 'Version')}\n"
        assert (installed / "usr/share/man/man1" / f"{name}.1.gz").resolve().exists()


def test_the_programs_take_six_megabytes_at_most(installed: Path) -> None:
    assert len(programs(installed)) >= 4
    assert sum(path.stat().st_size for path in programs(installed)) <= 6_000_000


def test_the_programs_are_as_hardened_as_those_of_the_build(installed: Path) -> None:
    assert {path.name: weaknesses(path) for path in programs(installed)} == {path.name: [] for path in programs(installed)}
    dynamic = [path for path in programs(installed) if path.name not in ("gpushim", "gpuprobe")]
    assert {path.name: unguarded(wanted([path], dynamic=True)) for path in dynamic} == {"gpuagent": [], "gpuctl": [], "gpuctld": []}


def test_a_job_runs_with_the_packages_alone(installed: Path, tmp_path: Path) -> None:
    environment = {"PATH": f"{installed}/usr/bin:/usr/bin:/bin", "HOME": str(tmp_path), "GPUCTL_STATE": str(tmp_path / "state")}
    try:
        ran = subprocess.run(
            ["gpuctl", "run", "--", "echo", "hello"], env=environment, stdout=subprocess.PIPE, text=True, timeout=90, check=False
        )
        assert (ran.returncode, ran.stdout) == (0, "hello\n")
    finally:
        subprocess.run(["gpuctl", "down", "--force"], env=environment, stdout=subprocess.DEVNULL, timeout=90, check=True)


@pytest.mark.parametrize("place", ["lib/systemd/system", "usr/lib/systemd/user"])
def test_the_end_of_an_agent_leaves_its_jobs_alone_and_limits_them_to_nothing(place: str, installed: Path) -> None:  # M4
    agent = unit(installed / place / "gpuagent.service")
    wanted = {
        "Type": "notify", "KillMode": "process", "Delegate": "yes", "OOMPolicy": "continue", "TasksMax": "infinity", "Restart": "always",
        "StartLimitIntervalSec": "0",
    }  # fmt: skip
    if place == "lib/systemd/system":
        wanted |= {"LimitMEMLOCK": "infinity", "LimitNOFILE": "65536:1048576", "RuntimeDirectoryPreserve": "yes"}
    assert {name: agent.get(name) for name in wanted} == wanted
    assert "ConditionPathExists" in agent
    assert agent["ExecStopPost"] == "-/usr/libexec/gpuctl/release-cgroup"
    limiting = [name for name in agent if name.startswith(("Protect", "Private", "Restrict", "SystemCall", "Capability", "NoNew"))]
    assert limiting == ["RestartSec"] or limiting == []


def test_a_killed_agent_leaves_no_controller_on_in_its_cgroup(tmp_path: Path) -> None:
    """A folder in the place of a cgroup; the kernel's refusals are of tests/machines."""
    folders = [tmp_path, tmp_path / "job", tmp_path / "job" / "inner"]
    for folder, controllers in zip(folders, ["memory pids", "pids", ""]):
        folder.mkdir(exist_ok=True)
        (folder / "cgroup.subtree_control").write_text(controllers + "\n")
    output(ROOT / "deploy" / "systemd" / "release-cgroup", tmp_path)
    assert [(folder / "cgroup.subtree_control").read_text() for folder in folders] == ["-memory -pids\n", "-pids\n", "\n"]


def test_systemd_takes_the_units_and_finds_the_controller_well_protected(installed: Path) -> None:
    for target in Path("/lib/systemd/system").glob("*.target"):  # what the units name
        shutil.copy(target, installed / "lib/systemd/system")
    subprocess.run(["systemd-analyze", "verify", f"--root={installed}", "--man=no", "gpuctld.service", "gpuagent.service"], check=True)
    told = output("systemd-analyze", "security", f"--root={installed}", "--offline=yes", "--no-pager", "gpuctld.service")
    level = re.search(r"Overall exposure level for gpuctld.service: ([0-9.]+)", told)
    assert level is not None and float(level[1]) <= 2.0, told
