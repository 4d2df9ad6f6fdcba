# SPDX-License-Identifier: Apache-2.0
"""What deploy/wheel makes: a wheel with the client and the programs, which runs where there is nothing else, wherever its tag says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hardening import weaknesses

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("GPUCTL_BUILD", ROOT / "build"))
PROGRAMS = {"gpuctl", "gpuctld", "gpuagent", "gpushim"}

# Of these manylinux says that every machine has them.
EVERYWHERE = re.compile(r"(libc|libm|libdl|librt|libpthread|libresolv|libutil|libgcc_s|ld-linux-[a-z0-9-]+)\.so\.\d+")


def output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    output(ROOT / "deploy" / "wheel", "--build", BUILD, "--output", folder)
    made = list(folder.iterdir())
    assert len(made) == 1
    return made[0]


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has the wheel and what it names, and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    output(sys.executable, "-m", "venv", folder)
    output(folder / "bin" / "python", "-m", "pip", "--quiet", "install", wheel)
    return folder / "bin" / "python"


def files(unpacked: Path) -> list[Path]:
    """Programs and libraries."""
    data = next(unpacked.glob("*.data"))
    return [*(data / "scripts").iterdir(), *(data / "data" / "lib" / "gpuctl").iterdir()]


def test_it_has_the_client_the_programs_and_the_licence_of_each_library(wheel: Path, unpacked: Path) -> None:
    assert (unpacked / "serverless_gpu" / "__init__.py").exists()
    with zipfile.ZipFile(wheel) as archive:
        scripts = {Path(entry.filename).name: entry.external_attr >> 16 for entry in archive.infolist() if "/scripts/" in entry.filename}
    assert scripts.keys() - {"gpuprobe"} == PROGRAMS
    assert set(scripts.values()) == {0o100755}
    licences = next(unpacked.glob("*.dist-info")) / "licenses"
    assert (licences / "gpuctl" / "LICENSE").exists() and len(list(licences.glob("*/copyright"))) > 5


def test_its_tag_is_honest(wheel: Path, unpacked: Path) -> None:
    tag = re.search(r"-py3-none-manylinux_(\d+)_(\d+)_\w+\.whl$", wheel.name)
    assert tag is not None, wheel.name
    carried = {path.name for path in files(unpacked)}
    for path in files(unpacked):
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "--wide", "--dynamic", path)))
        foreign = {name for name in needed - carried if not EVERYWHERE.fullmatch(name)}
        assert not foreign, f"{path.name} needs {foreign}"
        if needed:
            versions = re.findall(r"\bGLIBC_(\d+)\.(\d+)", output("readelf", "--wide", "--version-info", path))
            assert max((int(major), int(minor)) for major, minor in versions) <= (int(tag[1]), int(tag[2])), path.name


def test_its_programs_are_hardened_and_find_their_libraries_in_it_alone(unpacked: Path) -> None:
    programs = list((next(unpacked.glob("*.data")) / "scripts").iterdir())
    assert {path.name: weaknesses(path, "$ORIGIN/../lib/gpuctl") for path in programs} == {path.name: [] for path in programs}


def test_a_command_runs_in_an_environment_that_has_nothing_else(python: Path, tmp_path: Path) -> None:
    environment = {"PATH": f"{python.parent}:/usr/bin:/bin", "HOME": str(tmp_path), "GPUCTL_STATE": str(tmp_path / "state")}
    try:
        command = ["gpuctl", "run", "--", "echo", "hello"]
        ran = subprocess.run(command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True, timeout=90, check=False)
        assert (ran.returncode, ran.stdout) == (0, "hello\n")
    finally:
        subprocess.run(["gpuctl", "down", "--force"], env=environment, stdout=subprocess.DEVNULL, timeout=90, check=True)


def test_the_client_finds_its_programs_where_nobody_put_them_on_path(python: Path, tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GPUCTL_STATE": str(tmp_path / "state")}
    script = tmp_path / "work.py"
    script.write_text("from serverless_gpu import distributed\n\nprint(distributed(gpus=2)(lambda: 7).distributed())\n")
    try:
        ran = subprocess.run([python, script], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True, timeout=120, check=False)
        assert (ran.returncode, ran.stdout.splitlines()[-1:]) == (0, ["[7, 7]"])
    finally:
        gpuctl = python.parent / "gpuctl"
        subprocess.run([gpuctl, "down", "--force"], env=environment, stdout=subprocess.DEVNULL, timeout=90, check=True)
