# SPDX-License-Identifier: Apache-2.0
"""Warm workers of gpuagent --run-as owner: what has imported modules ahead of a job did so as its owner, and sees no more than the job."""

from __future__ import annotations

import errno
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gpu_files
from harness import Api, Cluster, eventually
from owners import PYTHON, cluster_of, needs_owners
from slowness import patient
from test_warm import starts

pytestmark = needs_owners

PATIENCE = patient(120.0)
COLD = "cold nothing like it has run here lately"

#: Says what a rank is, and whether it has the module before it asks for it.
LOOKS = """
import json, os, sys
has = "decimal" in sys.modules
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
def owner(process):
    try:
        return os.stat("/proc/" + process).st_uid
    except FileNotFoundError:  # it has ended since
        return os.getuid()
seen = {owner(name) for name in os.listdir("/proc") if name.isdigit()}
print(json.dumps({
    "ids": [*os.getresuid(), *os.getresgid(), *os.getgroups()],
    "rights": [status[name].strip() for name in status if name[:3] in ("Cap", "NoN", "Sec")],
    "tmp": os.listdir("/tmp"), "var": os.listdir("/var/tmp"), "sees": sorted(seen), "home": os.environ["HOME"], "folder": os.getcwd()[-5:],
    "files": sorted(os.listdir("/proc/self/fd"))[:3], "score": open("/proc/self/oom_score_adj").read(), "rank": os.environ["RANK"],
    "session": os.getsid(0) == os.getpid()}))
print(has, file=sys.stderr)
"""

#: A module that notes who imports it, and what it sees, and leaves a process behind.
CURIOUS = """
import os, subprocess
try:
    answer = os.open("{folder}/nvidia0", os.O_RDWR)
except OSError as problem:
    answer = problem.errno
with open("{folder}/said", "a") as said:
    seen = {{os.stat("/proc/" + name).st_uid for name in os.listdir("/proc") if name.isdigit()}}
    print(os.getuid(), sorted(seen), os.listdir("/tmp"), os.access("{state}/users", os.R_OK), answer, file=said)
subprocess.Popen(["sleep", "6543"], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with cluster_of([2], "--run-as", "owner", "--warm-memory", "512", "--preload", "decimal,curious") as shared:
        yield shared


def run(cluster: Cluster, api: Api, program: str, **spec: Any) -> tuple[str, str]:
    """A job that ends well, by its id, and how it was started."""
    before = len(starts(cluster))
    job = api.submit(["python", "-c", program], python=PYTHON, **spec)
    ended = api.wait(job)
    assert ended["state"] == "SUCCEEDED", (ended, api.log(job, stream="stderr"))
    return job, eventually(lambda: starts(cluster)[before:], "the agent to say how it started")[0]


def run_until_warm(cluster: Cluster, api: Api, program: str, **spec: Any) -> str:
    def warm() -> str | None:
        job, how = run(cluster, api, program, **spec)
        return job if how == "warm" else None

    return str(eventually(warm, "a warm start", PATIENCE))


def processes(uid: int) -> list[str]:
    """The command lines of a user."""
    lines = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and entry.stat().st_uid == uid:
                lines.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # it has ended
            continue
    return lines


def test_a_warm_rank_is_its_owner_and_as_a_fresh_one(cluster: Cluster) -> None:
    ann = cluster.user("ann-of-tests")
    job, how = run(cluster, ann, LOOKS, gpus=2)
    assert how == COLD
    fresh = [json.loads(ann.log(job, rank)) for rank in range(2)]
    assert all(portrait["sees"] == portrait["ids"][:1] for portrait in fresh), [portrait["sees"] for portrait in fresh]
    job = run_until_warm(cluster, ann, LOOKS, gpus=2)
    warm = [json.loads(ann.log(job, rank)) for rank in range(2)]
    assert [ann.log(job, rank, "stderr") for rank in range(2)] == ["True\n"] * 2
    assert warm == fresh
    assert fresh[0]["tmp"] == fresh[0]["var"] == [] and fresh[0]["ids"][0] > 1900000000


def test_what_a_warm_rank_leaves_in_temporary_folders_goes_with_it(cluster: Cluster) -> None:
    ann = cluster.user("ann-of-tests")
    program = "import os; print(*map(os.listdir, ('/tmp', '/var/tmp', '/dev/shm'))); open('/tmp/left', 'w'); open('/dev/shm/left', 'w')"
    for _ in range(2):
        assert ann.log(run_until_warm(cluster, ann, program)) == "[] [] []\n"
    assert not Path("/tmp/left").exists() and not Path("/dev/shm/left").exists()


def test_one_owner_never_gets_a_worker_of_another(cluster: Cluster) -> None:
    ann, bob = cluster.user("ann-of-tests"), cluster.user("bob-of-tests")
    program = "import os; print(os.getuid())"
    first = ann.log(run_until_warm(cluster, ann, program))
    job, how = run(cluster, bob, program)
    assert how == COLD and bob.log(job) != first
    assert bob.log(run_until_warm(cluster, bob, program)) == bob.log(job)
    assert ann.log(run(cluster, ann, program)[0]) == first


def test_what_may_have_asked_for_gpus_while_it_waited_starts_cold(cluster: Cluster) -> None:
    ann = cluster.user("ann-of-tests")
    modules = cluster.folder / "asking"
    modules.mkdir()
    subprocess.run(["cc", "-shared", "-o", modules / "libcuda.so.1", "-x", "c", "/dev/null"], check=True)
    (modules / "curious.py").write_text("import ctypes, os; ctypes.CDLL(os.path.dirname(__file__) + '/libcuda.so.1')")

    def refused() -> bool:
        return run(cluster, ann, "", env={"PYTHONPATH": str(modules)})[1].startswith("cold what is imported uses the GPU")

    eventually(refused, "a start that says why it is cold", PATIENCE)


def test_what_is_imported_ahead_is_imported_as_the_owner_and_leaves_nothing(cluster: Cluster) -> None:
    ann = cluster.user("ann-of-tests")
    modules = cluster.folder / "modules"
    modules.mkdir()
    (modules / "said").touch()
    (modules / "said").chmod(0o666)
    (modules / "curious.py").write_text(CURIOUS.format(folder=modules, state=cluster.folder / "node0"))
    gpu_files.make(modules)
    program = "import os; print(os.getuid())"
    uid = int(ann.log(run_until_warm(cluster, ann, program, env={"PYTHONPATH": str(modules)})))
    for line in (modules / "said").read_text().splitlines():
        assert line == f"{uid} [{uid}] [] False {errno.EPERM if gpu_files.can_be_refused() else errno.ENXIO}"
    sleeping = "sleep 6543 "
    eventually(lambda: processes(uid).count(sleeping) == 2, f"the two supervisors that wait, among {processes(uid)}", PATIENCE)
    run(cluster, ann, program, env={"PYTHONPATH": str(modules)})
    eventually(lambda: processes(uid).count(sleeping) == 2, f"what the job left to be gone, among {processes(uid)}", PATIENCE)
    agent = cluster.agents[0]
    agent.kill()
    eventually(lambda: processes(uid) == [], f"all of the owner to end with the agent, among {processes(uid)}", PATIENCE)
    agent.start()
    cluster.wait_ready()


def test_a_module_that_fails_as_the_owner_costs_no_job(cluster: Cluster) -> None:
    carl = cluster.user("carl-of-tests")
    modules = cluster.folder / "broken"
    modules.mkdir()
    (modules / "curious.py").write_text("raise RuntimeError('not today')\n")
    program = "print('ran')"

    def told() -> bool:
        job, how = run(cluster, carl, program, env={"PYTHONPATH": str(modules)})
        assert carl.log(job) == "ran\n"
        return how == "cold RuntimeError: not today"

    eventually(told, "the reason why there are no workers", PATIENCE)


def test_workers_that_waited_while_the_node_mounted_something_are_not_used(cluster: Cluster) -> None:
    """They are in the mounts of their time, and the rank is to have those of the attempt."""
    dora = cluster.user("dora-of-tests")
    program = "import os; print(os.stat('/tmp').st_dev == os.stat('.').st_dev)"
    assert dora.log(run_until_warm(cluster, dora, program)) == "True\n"
    place = cluster.folder / "mounted"
    place.mkdir()

    def used() -> bool:
        subprocess.run(["mount", "-t", "tmpfs", "none", str(place)], check=True)
        subprocess.run(["umount", str(place)], check=True)
        job, how = run(cluster, dora, program)
        assert dora.log(job) == "True\n"
        return how == "cold the node has mounted something since"

    eventually(used, "a start in the mounts of the attempt", PATIENCE)
