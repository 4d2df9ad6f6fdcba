# SPDX-License-Identifier: Apache-2.0
"""The builder of environments as the agent starts it: real venvs, real pip, wheels made here, no index."""

import base64
import hashlib
import importlib
import io
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import venv
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from slowness import patient

ROOT = Path(__file__).resolve().parents[3]
BUILDER = ROOT / "agent" / "python" / "gpuctl_environment.py"
VERSION = "{}.{}".format(*sys.version_info[:2])
DEADLINE_S = patient(60.0)


def make_wheel(folder: Path, name: str, version: str, *, needs: "tuple[str, ...]" = (), program: str = "") -> None:
    """A wheel of one module, whose `version` says which it is."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"version = {version!r}\ndef main():\n    import sys\n    print({name!r}, version, sys.prefix)\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + "".join(f"Requires-Dist: {need}\n" for need in needs),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if program:
        files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{program} = {name}:main\n"
    rows = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(text.encode())}\n")
    files[f"{info}/RECORD"] = "".join(rows) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)


def make_slow_source(folder: Path, name: str, started: Path, *, works: bool = False) -> None:
    """A source distribution whose build says that it has begun and then hangs, or works for ever, without a word."""
    work = "while True: pass" if works else "time.sleep(600)"
    backend = f"import pathlib, time\ndef build_wheel(*a, **k):\n    pathlib.Path({str(started)!r}).touch()\n    {work}\n"
    project = (
        f'[project]\nname = "{name}"\nversion = "1.0"\n[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    with_meta = (
        "import os\ndef prepare_metadata_for_build_wheel(folder, *a, **k):\n"
        f"    info = os.path.join(folder, '{name}-1.0.dist-info'); os.makedirs(info)\n"
        f"    open(os.path.join(info, 'METADATA'), 'w').write('Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n')\n"
        f"    open(os.path.join(info, 'WHEEL'), 'w').write('Wheel-Version: 1.0\\n')\n    return '{name}-1.0.dist-info'\n"
    )
    with tarfile.open(folder / f"{name}-1.0.tar.gz", "w:gz") as archive:
        for path, text in (
            ("pyproject.toml", project),
            ("backend.py", backend + with_meta),
            ("PKG-INFO", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"),
        ):
            entry = tarfile.TarInfo(f"{name}-1.0/{path}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))


class Node:
    """A node's base Python, its folder of environments, and the wheels that pip finds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environments = folder / "environments"
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        venv.EnvBuilder(symlinks=True, with_pip=False).create(folder / "base")
        self.python = folder / "base" / "bin" / "python"
        self.site = folder / "base" / "lib" / f"python{VERSION}" / "site-packages"
        import pip

        for path in Path(pip.__file__).parent.parent.glob("pip*"):
            (self.site / path.name).symlink_to(path)
        self.running: list[subprocess.Popen] = []
        self.variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
        }

    def has(self, name: str, version: str, **more: Any) -> None:
        """Installs a package in the base."""
        store = self.folder / "of-base"
        store.mkdir(exist_ok=True)
        make_wheel(store, name, version, **more)
        with zipfile.ZipFile(store / f"{name}-{version}-py3-none-any.whl") as wheel:
            wheel.extractall(self.site)

    def start(self, *lines: str, name: str = "name", version: str = "", **variables: str) -> subprocess.Popen:
        requirements = self.folder / f"requirements-{len(self.running)}.txt"
        requirements.write_text("".join(line + "\n" for line in lines))
        command = [
            str(self.python),
            "-I",
            str(BUILDER),
            "--folder",
            str(self.environments),
            "--requirements",
            str(requirements),
            "--key",
            name,
        ]
        process = subprocess.Popen(
            command + (["--python-version", version] if version else []),
            env={**self.variables, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.running.append(process)
        return process

    def build(self, *lines: str, **more: str) -> "list[dict]":
        """The rows of a whole run."""
        return rows_of(self.start(*lines, **more))

    def stop(self) -> None:
        for process in self.running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()


def rows_of(process: subprocess.Popen) -> "list[dict]":
    # Not communicate(): it closes stdin, and that ends the builder.
    assert process.stdout is not None and process.stderr is not None
    rows = [json.loads(line) for line in process.stdout]
    complaints = process.stderr.read()
    process.wait(DEADLINE_S)
    assert rows, complaints
    return rows


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    made.stop()


def run(python: str, code: str) -> str:
    return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True, env={"PATH": os.environ["PATH"]}).stdout.strip()


def await_that(holds: "Callable[[], Any]") -> None:
    end = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def texts(rows: "list[dict]") -> "list[str]":
    return [row["text"] for row in rows if "text" in row]


# --- what is in an environment ----------------------------------------------------------------------


def test_what_the_base_lacks_is_installed_and_what_it_has_is_not(node: Node) -> None:
    node.has("mine", "2.0")
    make_wheel(node.wheels, "extra", "1.5")
    rows = node.build("mine==2.0", "extra==1.5")
    assert rows[-1]["ready"] is True, rows
    assert run(rows[-1]["python"], "import mine, extra; print(mine.version, extra.version)") == "2.0 1.5"
    site = Path(rows[-1]["folder"]) / "lib" / f"python{VERSION}" / "site-packages"
    assert (site / "extra.py").exists() and not (site / "mine.py").exists()
    assert "Collecting extra-1.5" in texts(rows) and "Installing extra" in texts(rows)
    assert Path(rows[-1]["folder"]) == (node.environments / "names" / "name").resolve()


def test_another_version_than_that_of_the_base_is_installed_before_it(node: Node) -> None:
    node.has("both", "1.0")
    make_wheel(node.wheels, "both", "2.0")
    rows = node.build("both==2.0")
    assert run(rows[-1]["python"], "import both; print(both.version)") == "2.0"
    assert run(str(node.python), "import both; print(both.version)") == "1.0"


def test_a_public_pin_is_met_by_a_local_version_and_a_local_pin_is_not_by_another(node: Node) -> None:
    node.has("torchlike", "2.13.0+cu130")
    assert node.build("torchlike==2.13")[-1]["ready"] is True
    assert node.build("Torch.Like==2.13.0") != [] and node.build("torchlike==2.13.0+cu128")[-1]["by_user"] is True


def test_pip_is_not_needed_where_all_is_met(node: Node) -> None:
    node.has("mine", "2.0")
    for path in node.site.glob("pip*"):
        path.unlink()
    rows = node.build("# a comment", "--index-url https://nowhere.invalid/simple", "mine == 2.0.0  # as it is")
    assert [list(row) for row in rows] == [["ready", "folder", "python"]]


def test_pip_comes_with_python_where_the_base_has_none(node: Node) -> None:
    pytest.importorskip("ensurepip")
    for path in node.site.glob("pip*"):
        path.unlink()
    make_wheel(node.wheels, "extra", "1.5")
    rows = node.build("extra==1.5")
    assert rows[-1].get("ready") is True, rows


def test_dependencies_keep_to_the_pins_and_lines_with_markers_are_left_to_pip(node: Node) -> None:
    make_wheel(node.wheels, "top", "1.0", needs=("low",))
    make_wheel(node.wheels, "low", "1.0")
    make_wheel(node.wheels, "low", "2.0")
    rows = node.build('top ; python_version >= "3"', 'never==1.0 ; python_version < "3"', "low==1.0")
    assert run(rows[-1]["python"], "import low; print(low.version)") == "1.0"


def test_a_lock_of_packages_that_claim_not_to_fit_is_taken_as_it_is(node: Node) -> None:
    make_wheel(node.wheels, "top", "1.0", needs=("low<2",))
    make_wheel(node.wheels, "low", "2.0")
    rows = node.build("top==1.0", "low==2.0")
    assert rows[-1].get("ready") is True, rows
    assert run(rows[-1]["python"], "import low, top; print(low.version)") == "2.0"


def test_programs_of_the_base_run_with_the_environments_python(node: Node) -> None:
    node.has("launcher", "1.0", program="launch-it")
    make_wheel(node.wheels, "extra", "1.5")
    rows = node.build("launcher==1.0", "extra==1.5")
    said = subprocess.run([f"{rows[-1]['folder']}/bin/launch-it"], check=True, capture_output=True, text=True).stdout
    assert said.split() == ["launcher", "1.0", rows[-1]["folder"]]


def test_what_is_installed_for_editing_in_the_base_is_seen(node: Node) -> None:
    source = node.folder / "source"
    source.mkdir()
    (source / "edited.py").write_text("here = True\n")
    (node.site / "edited.pth").write_text(f"{source}\n")
    (node.site / "hook.pth").write_text("import sys; sys.hooked = True\n")
    rows = node.build()
    assert run(rows[-1]["python"], "import edited, sys; print(edited.here, sys.hooked)") == "True True"


# --- once, and again --------------------------------------------------------------------------------


def test_an_environment_is_built_once(node: Node) -> None:
    make_wheel(node.wheels, "extra", "1.5")
    first = node.build("extra==1.5")
    (node.wheels / "extra-1.5-py3-none-any.whl").unlink()
    again = node.build("extra==1.5", name="other")
    assert again == [first[-1]]
    assert (node.environments / "names" / "other").resolve() == Path(first[-1]["folder"])


def test_two_builders_at_once_build_once(node: Node) -> None:
    make_wheel(node.wheels, "extra", "1.5")
    one, other = node.start("extra==1.5"), node.start("extra==1.5")
    both = [rows_of(one), rows_of(other)]
    assert both[0][-1]["ready"] is True and both[0][-1] == both[1][-1]
    waited = [rows for rows in both if "waits for another agent that builds it" in texts(rows)]
    built = [rows for rows in both if "Installing extra" in texts(rows)]
    assert len(built) == 1 and (not waited or waited[0] is not built[0])


def test_a_change_of_the_base_that_matters_makes_another_environment(node: Node) -> None:
    node.has("mine", "2.0")
    make_wheel(node.wheels, "mine", "2.0")
    first = node.build("mine==2.0")[-1]
    node.has("other", "1.0")
    same = node.build("mine==2.0")[-1]
    assert same == first
    marker = json.loads((Path(first["folder"]) / "gpuctl.json").read_text())
    assert marker["folders"][str(node.site)] == node.site.stat().st_mtime_ns
    shutil.rmtree(node.site / "mine-2.0.dist-info")
    node.has("mine", "3.0")
    changed = node.build("mine==2.0")[-1]
    assert changed["folder"] != first["folder"]
    assert run(changed["python"], "import mine; print(mine.version)") == "2.0"


@pytest.mark.parametrize("how", ["SIGTERM", "SIGKILL", "stdin"])
def test_a_builder_that_is_ended_leaves_no_process_and_no_environment(node: Node, how: str) -> None:
    started = node.folder / "started"
    make_slow_source(node.wheels, "slow", started)
    process = node.start("slow==1.0")
    await_that(started.exists)
    pip = processes_of(process.pid)
    assert len(pip) > 1
    if how == "stdin":
        assert process.stdin is not None
        process.stdin.close()
    elif how == "SIGTERM":
        process.terminate()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(DEADLINE_S)
    await_that(lambda: not processes_of(process.pid))
    assert not list(node.environments.glob("*/gpuctl.json"))
    (node.wheels / "slow-1.0.tar.gz").unlink()
    make_wheel(node.wheels, "slow", "1.0")
    rows = node.build("slow==1.0")
    assert rows[-1].get("ready") is True, rows


def processes_of(session: int) -> "list[int]":
    """The living ones."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[3]) == session and words[0] != "Z":
            found.append(int(path.parent.name))
    return found


def test_a_build_that_outlives_its_builder_is_waited_for(node: Node) -> None:
    started = node.folder / "started"
    make_slow_source(node.wheels, "slow", started)
    process = node.start("slow==1.0")
    await_that(started.exists)
    process.kill()  # alone: pip goes on
    process.wait(DEADLINE_S)
    left = processes_of(process.pid)
    assert left
    other = node.start("slow==1.0")
    assert other.stdout is not None
    assert json.loads(other.stdout.readline()) == {"text": "waits for another agent that builds it"}
    os.killpg(process.pid, signal.SIGKILL)
    (node.wheels / "slow-1.0.tar.gz").unlink()
    make_wheel(node.wheels, "slow", "1.0")
    assert rows_of(other)[-1].get("ready") is True


def test_a_build_that_says_nothing_is_alive_only_while_it_works(node: Node) -> None:
    started = node.folder / "started"
    make_slow_source(node.wheels, "slow", started)
    process = node.start("slow==1.0")
    await_that(started.exists)
    assert process.stdout is not None
    # What it did before it fell asleep may be told once more; after that nothing is.
    told = [time.monotonic()]
    while time.monotonic() - told[-1] < 2.5 and len(told) < 10:
        if select.select([process.stdout], [], [], 0.1)[0]:
            process.stdout.readline()
            told.append(time.monotonic())
    assert len(told) < 10


def test_a_build_that_works_in_silence_is_alive(node: Node) -> None:
    started = node.folder / "started"
    make_slow_source(node.wheels, "slow", started, works=True)
    process = node.start("slow==1.0")
    await_that(started.exists)
    assert process.stdout is not None
    beats = 0
    while beats < 2:
        beats += json.loads(process.stdout.readline()) == {"alive": True}


# --- failures ---------------------------------------------------------------------------------------


def test_a_package_that_does_not_exist_is_the_users_fault_and_pips_words_are_told(node: Node) -> None:
    row = node.build("not-to-be-had==7.1")[-1]
    assert row["by_user"] is True
    assert "No matching distribution found for not-to-be-had==7.1" in row["failed"]
    assert not list(node.environments.glob("*/gpuctl.json"))


def test_a_malformed_line_and_a_package_that_does_not_build_are_the_users_fault(node: Node) -> None:
    row = node.build("numpy=1.0")[-1]
    assert row["by_user"] is True and "Invalid requirement" in row["failed"]
    make_slow_source(node.wheels, "broken", node.folder / "nowhere" / "started")
    row = node.build("broken==1.0")[-1]
    assert row["by_user"] is True and "Failed building wheel for broken" in row["failed"] and "nowhere" in row["failed"]
    assert len(row["failed"].encode()) <= 4096


def test_an_index_that_cannot_be_reached_is_the_nodes_fault_and_its_password_is_hidden(node: Node) -> None:
    del node.variables["PIP_NO_INDEX"]
    rows = node.build("extra==1.0", PIP_INDEX_URL="http://bob:hunter2@127.0.0.1:9/simple", PIP_RETRIES="1", PIP_TIMEOUT="2")
    assert rows[-1]["by_user"] is False
    assert "cannot be reached" in rows[-1]["failed"]
    assert "hunter2" not in json.dumps(rows)


def test_credentials_in_the_requirements_are_hidden(node: Node) -> None:
    rows = node.build("extra @ https://bob:hunter2@127.0.0.1:9/extra-1.0-py3-none-any.whl", PIP_RETRIES="0", PIP_TIMEOUT="2")
    assert "failed" in rows[-1] and "hunter2" not in json.dumps(rows)


def test_a_python_that_the_node_lacks_is_named_with_the_one_that_it_has(node: Node) -> None:
    row = node.build(version="3.99")[-1]
    assert row["by_user"] is False
    assert row["failed"].startswith(f"the node has Python {VERSION} ({node.python}), and the job needs 3.99: install python3.99")


def test_another_python_is_found_on_path(node: Node) -> None:
    tools = node.folder / "tools"
    tools.mkdir()
    (tools / "python3.99").write_text(f'#!/bin/sh\nexec {node.python} "$@"\n')
    (tools / "python3.99").chmod(0o755)
    row = node.build(version="3.99", PATH=f"{tools}:{os.environ['PATH']}")[-1]
    assert f"the node has Python {VERSION} ({node.python})" in row["failed"]  # it was asked, and is no 3.99
    assert node.build(version=VERSION)[-1]["ready"] is True


def test_a_folder_that_cannot_be_made_is_the_nodes_fault(node: Node) -> None:
    node.environments.write_text("a file")
    row = node.build()[-1]
    assert row["by_user"] is False and str(node.environments) in row["failed"]


# --- its parts --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def builder() -> Iterator[Any]:
    sys.path.insert(0, str(BUILDER.parent))
    yield importlib.import_module("gpuctl_environment")
    sys.path.remove(str(BUILDER.parent))


@pytest.fixture(scope="module")
def parts(builder: Any) -> Any:
    return importlib.import_module("gpuctl_pip")


@pytest.mark.parametrize(
    ("pinned", "installed", "met"),
    [
        ("1.0", "1.0.0", True),
        ("1.0", "1.0.1", False),
        ("1.10", "1.1", False),
        ("2.0", "2.0+cpu", True),
        ("2.0+cpu", "2.0+cpu", True),
        ("2.0+cpu", "2.0", False),
        ("1.0rc1", "1.0.rc-1", True),
        ("1.0", "1.0rc1", False),
        ("1.0.post1", "1.0-1", True),
        ("1.0", "1.0.dev3", False),
        ("1!1.0", "1.0", False),
        ("2004d", "2004d", True),
        ("2004d", "2004e", False),
        ("v1.0", "1.0", True),
    ],
)
def test_versions_are_equal_as_pip_sees_it(builder: Any, pinned: str, installed: str, met: bool) -> None:
    assert builder.is_met(pinned, installed) is met
    packaging = pytest.importorskip("packaging.specifiers")
    try:
        assert packaging.SpecifierSet(f"=={pinned}").contains(installed, prereleases=True) is met
    except packaging.InvalidSpecifier:
        return  # what PEP 440 does not know is compared letter by letter


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("Collecting numpy==2.1.0 (from -r /x/asked.txt (line 1))", "Collecting numpy==2.1.0"),
        ("  Downloading https://x.y/a/torch-2.13.0-cp311-cp311-linux_x86_64.whl (888.1 MB)", "Downloading torch-2.13.0 (888.1 MB)"),
        ("  Downloading torch-2.13.0-cp311.whl.metadata (28 kB)", ""),
        ("Installing collected packages: a, b", "Installing a, b"),
        ("Building wheel for flash-attn (pyproject.toml): started", "Building flash-attn"),
        ("Requirement already satisfied: x", ""),
    ],
)
def test_lines_of_pip_are_made_short(parts: Any, line: str, text: str) -> None:
    assert parts.Progress().shorten(line.strip()) == text


def test_secrets_before_a_host_are_masked_and_nothing_else(parts: Any) -> None:
    assert parts.mask("a https://u:p@h/x@y //z git+ssh://git@h/r") == "a https://***@h/x@y //z git+ssh://***@h/r"


@pytest.mark.parametrize(
    ("lines", "by_user"),
    [
        (["ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"], False),
        (["ERROR: Could not install packages due to an OSError: [Errno 13] Permission denied: '/x'"], False),
        (["WARNING: Retrying ... Read timed out. (read timeout=15)", "ERROR: No matching distribution found for x==1"], False),
        (["WARNING: Retrying ... Read timed out.", "ERROR: Failed building wheel for x"], True),
        (
            ["ERROR: Cannot install a and b because these package versions have conflicting dependencies.", "ERROR: ResolutionImpossible"],
            True,
        ),
        (["Traceback (most recent call last):", "KeyError: 'x'"], False),
    ],
)
def test_whose_fault_a_failure_is(parts: Any, tmp_path: Path, lines: "list[str]", by_user: bool) -> None:
    pip = parts.Pip(str(tmp_path), None)
    pip.lines, pip.code = lines, 1
    assert parts.failure_of(pip).by_user is by_user
