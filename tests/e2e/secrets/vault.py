# SPDX-License-Identifier: Apache-2.0
"""What tests of secrets share: gpuctl as a person, ranks that tell of a value without saying it, and whoever may read it."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from harness import Api, Cluster, run_gpuctl

#: Prints the hash of each variable that is named, or "none".
TELL = """
import hashlib, os, sys
for name in sys.argv[1:]:
    value = os.environ.get(name)
    print(name, "none" if value is None else hashlib.sha256(value.encode()).hexdigest())
"""
#: The same of the files whose paths the variables have, with their modes.
TELL_FILES = """
import hashlib, os, sys
for name in sys.argv[1:]:
    path = os.environ[name]
    status = os.stat(path)
    print(name, oct(status.st_mode & 0o777), status.st_uid == os.getuid(), hashlib.sha256(open(path, "rb").read()).hexdigest())
"""


def tells(*names: str, files: bool = False) -> list[str]:
    return ["/usr/bin/python3", "-c", TELL_FILES if files else TELL, *names]


def digest(value: str | bytes) -> str:
    return hashlib.sha256(value.encode() if isinstance(value, str) else value).hexdigest()


def told(cluster: Cluster, job: str, rank: int = 0) -> str:
    ended = cluster.api.wait(job)
    assert ended["state"] == "SUCCEEDED", (ended, cluster.api.log(job, rank, "stderr"))
    return cluster.api.log(job, rank).strip()


def gpuctl(cluster: Cluster, person: Api, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    file: Path = cluster.folder / "person.token"
    file.touch(0o600)
    file.write_text(f"{person.token}\n")
    environment = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(file), "HOME": str(cluster.folder)}
    return run_gpuctl(*arguments, env=environment, given=given)


def put(person: Api, name: str, value: str, project: str | None = None) -> None:
    person.call("PUT", f"/v1/secrets/{name}", {"value": value, "project": project})
