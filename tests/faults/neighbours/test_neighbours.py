# SPDX-License-Identifier: Apache-2.0
"""Hostile jobs of one person beside a job of another, on a node that runs jobs as their owners: what attacks.py tries is refused, each time
for the reason that it should be, the other's job ends with its right result, and nothing of the attack is left on the node.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import shutil
import stat
import tarfile
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gpu_files
from attacks import ATTACKS, PRELUDE, VICTIM, Attack
from harness import Api, Cluster, Problem, eventually, restart_within
from owners import PYTHON, cluster_of, needs_owners

pytestmark = needs_owners

OWNERS = "1910000000-1910065535"  # of no other test: processes of a number are counted here
TIMES = 50  # each, with --long
#: As the agent's unit has it: a cgroup of its own, with all controllers.
SCOPE = ["systemd-run", "--quiet", "--scope", "--property=Delegate=yes"] if Path("/run/systemd/system").exists() else []


@dataclasses.dataclass
class Site:
    """A node, the two people, and what root has in reach of a job that would find a way."""

    cluster: Cluster
    ann: Api
    bob: Api
    bobs_uid: int
    canary: Path
    canary_text: str
    setuid: Path
    gpus: list[str]

    @property
    def state(self) -> Path:
        return self.cluster.folder / "node0"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with cluster_of([3], "--run-as", "owner", "--user-ids", OWNERS) as cluster:
        folder = cluster.folder
        if SCOPE:
            restart_within(cluster.agents[0], *SCOPE)
        ann, bob = cluster.user("ann-of-tests"), cluster.user("bob-of-tests")
        job = bob.submit(["id", "-u"])
        assert bob.wait(job)["state"] == "SUCCEEDED"
        canary, setuid = folder / "canary", folder / "id"
        text = f"canary-{uuid.uuid4().hex}"
        canary.touch(0o600)
        canary.write_text(text)
        shutil.copy("/usr/bin/id", setuid)
        setuid.chmod(0o6755)
        yield Site(cluster, ann, bob, int(bob.log(job)), canary, text, setuid, gpu_files.make(folder))


def cgroup_mount() -> str:
    """Where cgroups of version 2 are; "": nowhere."""
    words = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    return next((word[1] for word in words if word[2] == "cgroup2"), "")


def cgroups_of(pid: int) -> list[str]:
    """The cgroup of a process, and those above it."""
    mount = cgroup_mount()
    path = Path(f"/proc/{pid}/cgroup").read_text().rpartition("0::/")[2].strip()
    return [mount + ("/" + str(part)).replace("/.", "") for part in (Path(path), *Path(path).parents)] if mount else []


class Victim:
    """The other's job, which waits until it is told to look at what it has."""

    def __init__(self, site: Site) -> None:
        self.site = site
        secret = f"secret-{uuid.uuid4().hex}"
        self.job = site.ann.submit([PYTHON, "-I", "-c", VICTIM], env={"SECRET": secret}, infra_retries=0)
        told = eventually(lambda: site.ann.log(self.job), "the victim to be ready")
        attempt = int(site.ann.get(f"/v1/jobs/{self.job}/attempts")["attempts"][0]["epoch"])
        self.facts: dict[str, Any] = {**json.loads(told), "job": self.job, "attempt": attempt}

    def __enter__(self) -> Victim:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.site.ann.post(f"/v1/jobs/{self.job}/cancel")  # the next one needs its room

    def finish(self) -> None:
        Path(self.facts["work"], "go").open("w").close()
        view = self.site.ann.wait(self.job)
        assert view["state"] == "SUCCEEDED", (view, self.site.ann.log(self.job, stream="stderr"))
        assert self.site.ann.log(self.job).splitlines()[1:] == ["the answer is 42"]


def world(site: Site, victim: Victim) -> str:
    """What an attacker is told who knows the node well."""
    agent = site.cluster.agents[0].process
    assert agent is not None
    pid = victim.facts["pid"]
    shim = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return json.dumps(
        {
            "victim": victim.facts, "agent": agent.pid, "shim": shim, "state": str(site.state), "run": str(site.state) + ".run",
            "token": str(site.cluster.folder / "node.token"), "controller": str(site.cluster.folder / "controller"),
            "canary": str(site.canary), "folder": str(site.cluster.folder / "controller"), "setuid": str(site.setuid), "gpus": site.gpus,
            "cgroup_mount": cgroup_mount(), "cgroups": [*cgroups_of(pid), *cgroups_of(agent.pid)],
            "disks": [str(path) for path in Path("/dev").iterdir() if path.is_block_device()][:4],
        }
    )  # fmt: skip


def processes_of(uid: int) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and entry.stat().st_uid == uid:
                found.append(entry.name)
        except OSError:  # it has ended
            continue
    return found


def everything_told(api: Api, job: str) -> str:
    """All that the controller can say of a job, its bytes included."""
    paths = [f"/v1/jobs/{job}", f"/v1/jobs/{job}/attempts", f"/v1/jobs/{job}/events", f"/v1/jobs/{job}/results?bytes=1"]
    paths += [f"/v1/jobs/{job}/metrics", *(f"/v1/jobs/{job}/logs?rank=0&stream={stream}" for stream in ("stdout", "stderr"))]
    return "\n".join(api.raw("GET", path)[2].decode(errors="replace") for path in paths)


def check(site: Site, attack: Attack, view: dict[str, Any], victim: Victim) -> None:
    """What is to be so when the attack has ended."""
    state = {"exits with 7": ("FAILED", 7), "is canceled": ("CANCELED", None)}.get(attack.check, ("SUCCEEDED", 0))
    full = attack.check == "nothing is left" and view["cause"] == "OUT_OF_MEMORY"  # a storm may end at the limit of its job's memory
    ended = view["state"] == state[0] and state[1] in (None, view["exit_code"])
    assert ended or full, (view, site.bob.log(view["id"], stream="stderr"))
    assert site.bob.log(view["id"]) == attack.expected
    eventually(lambda: processes_of(site.bobs_uid) == [], "no process of the attacker to be left")
    assert site.cluster.agents[0].alive() and site.cluster.nodes()["node0"]["state"] == "READY"
    assert site.canary_text not in everything_told(site.bob, view["id"])
    status = site.canary.stat()
    assert (site.canary.read_text(), status.st_uid, stat.S_IMODE(status.st_mode)) == (site.canary_text, 0, 0o600)
    if attack.check == "nothing of it is the other's":
        assert site.ann.get(f"/v1/jobs/{victim.job}/metrics")["metrics"] == []
        assert site.ann.get(f"/v1/jobs/{victim.job}")["state"] == "RUNNING"
    if attack.check == "its folder goes":
        attempt = site.bob.get(f"/v1/jobs/{view['id']}/attempts")["attempts"][0]["epoch"]
        eventually(lambda: not (site.state / "attempts" / str(attempt)).exists(), "its folder to go")
        eventually(lambda: not os.listdir(site.state / "trash"), "what was in it to be removed")


@pytest.mark.parametrize("attack", ATTACKS, ids=[attack.name for attack in ATTACKS])
def test_an_attack_is_refused_and_the_other_job_ends_well(site: Site, attack: Attack, volume: Callable[[int, int], int]) -> None:
    if attack.check == "needs a rule" and not gpu_files.can_be_refused():
        pytest.skip("this kernel has no rules for the devices of cgroups")
    for _ in range(volume(1, TIMES)):
        with Victim(site) as victim:
            job = site.bob.submit([PYTHON, "-I", "-u", "-c", PRELUDE + attack.script, world(site, victim)], infra_retries=0)
            if attack.check == "is canceled":
                eventually(lambda job=job: site.bob.log(job), "its first line")
                site.bob.post(f"/v1/jobs/{job}/cancel")
            check(site, attack, site.bob.wait(job), victim)


# --- what a submission brings along ------------------------------------------------------------------------------------------


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    info.devmajor, info.devminor = 1, 1
    info.size = 4 if kind == tarfile.REGTYPE else 0
    return info


#: Members of a bundle, given the folder that they aim at.
BUNDLES: dict[str, Callable[[Path], list[tarfile.TarInfo]]] = {
    "out by dots": lambda aim: [member("../" * 12 + str(aim / "planted").lstrip("/"))],
    "out by a root": lambda aim: [member(str(aim / "planted"))],
    "out by a link": lambda aim: [member("door", tarfile.SYMTYPE, str(aim)), member("door/planted")],
    "a hard link to a file of root": lambda aim: [member("key", tarfile.LNKTYPE, str(aim / "root")), member("key")],
    "a device": lambda aim: [member("memory", tarfile.CHRTYPE, mode=0o666)],
    "a program of root": lambda aim: [member("id", mode=0o6755)],
    "beside the working folder": lambda aim: [member("../0.stdout"), member("../exit"), member("../results/0.json")],
}


@pytest.mark.parametrize("name", BUNDLES)
def test_a_bundle_leaves_its_folder_by_no_way(site: Site, name: str, volume: Callable[[int, int], int]) -> None:
    for _ in range(volume(1, TIMES)):
        aim = Path(tempfile.mkdtemp(prefix="aim-", dir=site.cluster.folder))
        aim.chmod(0o755)
        (aim / "root").write_text("root's")
        (aim / "root").chmod(0o600)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for info in BUNDLES[name](aim):
                archive.addfile(info, io.BytesIO(b"evil") if info.isreg() else None)
        data = packed.getvalue()
        blob = hashlib.sha256(data).hexdigest()
        assert site.bob.raw("PUT", f"/v1/blobs/{blob}", data, {"Content-Type": "application/octet-stream"})[0] in (200, 201, 204)
        with Victim(site):
            script = "find . -perm /6000 -o -type b -o -type c -o -uid 0; cat key 2>/dev/null; true"
            job = site.bob.submit(["sh", "-c", script], bundle={"blob": blob}, infra_retries=0)
            view = site.bob.wait(job)
            assert view["state"] in ("FAILED", "SUCCEEDED"), view
            assert "root's" not in everything_told(site.bob, job)
            if view["state"] == "SUCCEEDED":
                assert site.bob.log(job) in ("", "evil"), "no device, no program of another, nothing of root"
            assert sorted(os.listdir(aim)) == ["root"] and (aim / "root").read_text() == "root's"
        assert site.cluster.agents[0].alive()


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "", "a//../..", "."])
def test_a_file_of_a_job_has_its_place_in_its_folder(site: Site, path: str) -> None:
    with pytest.raises(Problem) as refused:
        site.bob.submit(["true"], files=[{"path": path, "text": "x"}])
    assert refused.value.status == 422 and "files" in str(refused.value.field), refused.value
