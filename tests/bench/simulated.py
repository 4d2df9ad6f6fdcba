# SPDX-License-Identifier: Apache-2.0
"""The simulated agents of tests/bench/programs/agents.c and the certificate that a controller needs to serve them over TLS."""

from __future__ import annotations

import contextlib
import http.client
import json
import resource
import select
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import BUILD, said
from harness import Api, Cluster

#: Descriptors that the client needs next to one for each agent.
SPARE = 256
#: Seconds for one command.
PATIENCE_S = 120


def most_agents(wanted: int) -> int:
    """So many, or as many as the hard limit of descriptors allows one process."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard - SPARE)


@dataclass
class Agents:
    """A running fleet, which does one command after the other."""

    process: subprocess.Popen[str]

    def ask(self, command: str) -> Any:
        """What it says once the command is done: counts, and `at_us` by the clock of the boot."""
        self.tell(command)
        return self.answer()

    def tell(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None  # one line a command: nothing stays in a buffer
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
        assert ready, f"the agents did not do it within {PATIENCE_S} s"
        line = self.process.stdout.readline()
        assert line, f"the agents ended with {self.process.wait()}"
        return json.loads(line)


@contextlib.contextmanager
def agents(port: int, token: Path, count: int, slots: int, tls: bool = False) -> Iterator[Agents]:
    command = [BUILD / "tests" / "bench" / "bench-agents", port, token, count, slots, "tls" if tls else "plain"]
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Agents(process)
    finally:
        process.kill()
        process.wait()


def certificate(home: Path) -> list[str]:
    """Arguments of a controller that serves TLS with a self-signed certificate of P-256."""
    home.mkdir(exist_ok=True)
    key, chain = home / "tls.key", home / "tls.pem"
    options = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    said(["openssl", "req", "-x509", *options, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", chain])
    return ["--tls-cert", str(chain), "--tls-key", str(key)]


def node_token(ours: Cluster) -> Path:
    """A file with a token of nodes."""
    path = ours.folder / "simulated.token"
    path.touch(0o600)
    path.write_text(ours.api.post("/v1/tokens", {"role": "node", "owner": "simulated"})["secret"] + "\n")
    return path


class TlsApi(Api):
    """The API over TLS, with the one certificate that is trusted."""

    def __init__(self, url: str, token: str | None, chain: Path):
        super().__init__(url, token)
        self.context = ssl.create_default_context(cafile=str(chain))

    def connection(self, timeout: float) -> http.client.HTTPConnection:
        return http.client.HTTPSConnection(self.address, timeout=timeout, context=self.context)


class TlsCluster(Cluster):
    """A controller that serves TLS with a certificate of its own."""

    def controller_command(self) -> list[str]:
        if not (self.folder / "tls.pem").exists():
            self.controller_arguments = [*self.controller_arguments, *certificate(self.folder)]
        return super().controller_command()

    def start_controller(self) -> None:
        super().start_controller()
        self.api = TlsApi(self.url, self.admin_token, self.folder / "tls.pem")
