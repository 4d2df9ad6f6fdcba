# SPDX-License-Identifier: Apache-2.0
"""A random value is set, used and printed; then it is looked for in every file, answer and process: it is nowhere but in its ranks."""

from __future__ import annotations

import base64
import os
import resource
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness import Cluster, eventually
from slowness import patient
from vault import gpuctl

#: Bytes that a core dump may have, where there may be one; what would say that there is none.
CORE = 1 << 20
SANITIZERS = ("ASAN_OPTIONS", "TSAN_OPTIONS")

#: Prints the values it has, logs them as metrics, raises them in its error file, and waits until it may end.
USER = """
import json, os, socket, sys
gate, end = sys.argv[1:]
values = [os.environ["CANARY"], open(os.environ["CANARY_FILE"]).read()]
print(*values)
print(*values, file=sys.stderr, flush=True)
folder, name = os.path.split(os.environ["GPUCTL_SOCKET"])
os.chdir(folder)  # the whole path may be too long for an address
talk = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
talk.connect(name)
talk.send(json.dumps({"metrics": {"loss": 1.0}, "note": values[0], "rank": 0}).encode())
print("ready", flush=True)
open(gate).close()  # until somebody opens it to write
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
    json.dump({"message": {"message": f"failed with {values[0]}"}}, file)
sys.exit(int(end))
"""


class Canary:
    """The value in the forms in which it travels or is written by mistake."""

    def __init__(self) -> None:
        self.value = secrets.token_hex(24)
        spelled = [self.value, base64.b64encode(self.value.encode()).decode(), self.value.encode().hex()]
        self.forms = [form.encode() for form in spelled]

    def is_in(self, data: bytes) -> bool:
        return any(form in data for form in self.forms)

    def in_files(self, folder: Path) -> list[str]:
        found = []
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink() and self.is_in(path.read_bytes()):
                found.append(str(path))
        return found

    def in_processes(self) -> dict[int, set[str]]:
        """Of each process that has it: where."""
        found: dict[int, set[str]] = {}
        for process in Path("/proc").iterdir():
            for name in ("cmdline", "environ") if process.name.isdigit() else ():
                try:
                    data = (process / name).read_bytes()
                except OSError:
                    continue
                if self.is_in(data):
                    found.setdefault(int(process.name), set()).add(name)
        return found


def ranks_of(job: str) -> set[int]:
    """Processes of the job, by a variable that only its ranks have."""
    found = set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if f"GPUCTL_JOB_ID={job}".encode() in (process / "environ").read_bytes().split(b"\0"):
                    found.add(int(process.name))
            except OSError:
                continue
    return found


@pytest.fixture
def settled(make_cluster: Callable[..., Cluster], tmp_path: Path) -> Iterator[Cluster]:
    """A cluster that makes backups, with all that daemons log."""
    cluster = make_cluster(
        2, controller=["--log-level", "debug", "--backup-interval", "10m"], agent=["--log-level", "debug"]
    )  # fmt: skip
    yield cluster


def test_a_canary_is_in_no_file_answer_or_process_but_its_ranks(settled: Cluster, tmp_path: Path) -> None:
    cluster, canary, gate = settled, Canary(), tmp_path / "gate"
    ann = cluster.user("ann")
    os.mkfifo(gate)
    assert gpuctl(cluster, ann, "secret", "set", "CANARY", given=canary.value).returncode == 0
    command = ["/usr/bin/python3", "-c", USER, str(gate), "3"]
    submitted = gpuctl(cluster, ann, "submit", "--secret", "CANARY", "--secret", "CANARY:file", "--", *command)
    assert submitted.returncode == 0, submitted.stderr
    job = submitted.stdout.strip()
    eventually(lambda: "ready" in cluster.api.log(job), "the rank to have its values")

    holders, ranks = canary.in_processes(), ranks_of(job)
    assert holders and set(holders) <= ranks, (holders, ranks)
    assert all(where == {"environ"} for where in holders.values())
    files = canary.in_files(cluster.folder)
    assert len(files) == 1 and files[0].endswith("/secrets/CANARY_FILE"), files

    cluster.api.post("/v1/backups")
    answers = [
        gpuctl(cluster, who, *words, "-o", "json").stdout + gpuctl(cluster, who, *words).stdout
        for who in (ann, cluster.api)
        for words in (("get", job), ("events", job), ("explain", job), ("secret", "list"), ("ps",))
    ]
    gate.open("w").close()
    ended = cluster.api.wait(job)
    assert ended["state"] == "FAILED" and "failed with ***" in ended["reason"], ended
    assert cluster.api.log(job) == "*** ***\nready\n" and cluster.api.log(job, stream="stderr") == "*** ***\n"
    answers += [
        gpuctl(cluster, cluster.api, *words).stdout
        for words in (("get", job), ("get", job, "-o", "json"), ("events", job, "-o", "json"), ("logs", job), ("audit",), ("results", job),
                      ("metrics", job), ("audit", "list", "-o", "json"), ("webhooks", "list"), ("nodes", "show", "node0"))
    ]  # fmt: skip
    answers += [str(cluster.api.get(f"/v1/jobs/{job}/{part}")) for part in ("attempts", "events", "timing", "results", "runs", "metrics")]
    assert all(not canary.is_in(answer.encode()) for answer in answers)
    assert any("CANARY" in answer for answer in answers)

    cluster.api.post("/v1/backups")
    eventually(lambda: not list(cluster.folder.glob("node0/attempts/*/*")), "the agent to forget the attempt")
    eventually(lambda: canary.in_files(cluster.folder) == [], "the error file that the rank itself has written to go", patient(10.0))
    assert canary.in_files(tmp_path) == []
    assert list(cluster.folder.glob("controller/backups/*/gpuctl.db")) and not list(
        cluster.folder.glob("controller/backups/**/secrets.key")
    )
    assert not canary.in_processes()
    key = (cluster.folder / "controller" / "secrets.key").read_text().split()[1]
    assert not [
        path for path in cluster.folder.rglob("*") if path.is_file() and path.name != "secrets.key" and key.encode() in path.read_bytes()
    ]


@pytest.mark.skipif(0 <= resource.getrlimit(resource.RLIMIT_CORE)[1] < CORE, reason="processes may not dump core here")
def test_ranks_with_secrets_leave_no_core_dump(make_cluster: Callable[..., Cluster]) -> None:
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (CORE, before[1]))
    try:
        cluster = make_cluster(1, agent_environment={name: os.environ.get(name, "") + ":disable_coredump=0" for name in SANITIZERS})
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, before)
    ann = cluster.user("ann")
    ann.call("PUT", "/v1/secrets/CANARY", {"value": Canary().value})
    limits = []
    for named in ([], ["CANARY"]):
        job = ann.submit(["sh", "-c", "ulimit -S -c"], secrets=named)
        assert cluster.api.wait(job)["state"] == "SUCCEEDED"
        limits.append(cluster.api.log(job).strip())
    assert limits == [str(CORE // 512), "0"]  # a shell counts in blocks
