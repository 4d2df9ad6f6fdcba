# SPDX-License-Identifier: Apache-2.0
"""Hosts on one machine: network namespaces joined by a bridge, whose links are cut per direction with nftables, and a cluster on them.

A host is a process that waits for the end of its standard input, in a network and a mount namespace of its own. So whatever ends the
tests ends the hosts, and the kernel takes back links, addresses and rules with the namespaces: nothing has a name on the machine, and
tests that run side by side do not meet. Packets are dropped where they arrive, so that who sends them is told nothing, as on a real
network. Processes, cgroups and files are the machine's, which lets a sampler see all hosts at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import uuid
from pathlib import Path

from harness import GPUAGENT, GPUCTL, GPUCTLD, PYTHON, Api, Cluster, Program, eventually

CLONE_NEWNET = 0x40000000
PORT = 7070
WIRE = "table inet wire { set lost { type ipv4_addr; }; chain arrive { type filter hook input priority 0; ip saddr @lost drop; }; }"
FILES_OF_A_HOST = ("/proc/sys/kernel/random/boot_id", "/etc/machine-id")


def missing() -> str:
    """Why hosts cannot be made on this machine; empty when they can."""
    for program in ("unshare", "nsenter", "ip", "nft", "mount"):
        if shutil.which(program) is None and shutil.which(program, path="/usr/sbin:/sbin") is None:
            return f"{program} is not installed (deploy/dependencies --tests installs it)"
    try_all = f"ip link add name one type veth peer name two && nft '{WIRE}' && mount --bind /etc /mnt"
    tried = subprocess.run(["unshare", "--net", "--mount", "sh", "-c", try_all], capture_output=True, text=True, env=ENVIRONMENT)
    return f"network namespaces cannot be made: {tried.stderr.strip()}" if tried.returncode != 0 else ""


ENVIRONMENT = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}


def run(*command: str, given: str | None = None) -> None:
    """One command; its complaint when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, input=given, env=ENVIRONMENT)
    assert done.returncode == 0, f"{command}: {done.stderr}"


class Host:
    """One host of a network: a place to start programs in, and a wire that can be cut."""

    def __init__(self, folder: Path, number: int):
        self.address = f"10.77.0.{number}"
        self.folder = folder
        self.lost: set[str] = set()
        folder.mkdir()
        self.holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", "echo; exec cat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self.holder.stdout is not None
        assert self.holder.stdout.readline() == b"\n", "the namespaces of a host were not made"
        self.net = os.open(f"/proc/{self.holder.pid}/ns/net", os.O_RDONLY)
        self.inside("ip", "link", "set", "lo", "up")
        self.inside("nft", WIRE)

    def enter(self) -> list[str]:
        """The words before a command that runs it here; the command takes the place of nsenter."""
        return ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", f"--mount=/proc/{self.holder.pid}/ns/mnt", "--"]

    def inside(self, *command: str, given: str | None = None) -> None:
        run(*self.enter(), *command, given=given)

    def boot(self) -> None:
        """A boot id as after a reboot; at the first time also an identity of its own."""
        for path in FILES_OF_A_HOST:
            own = self.folder / Path(path).name
            fresh = not own.exists()
            if Path(path).exists() and (fresh or own.name == "boot_id"):
                own.write_text(f"{uuid.uuid4() if own.name == 'boot_id' else uuid.uuid4().hex}\n")
            if Path(path).exists() and fresh:
                self.inside("mount", "--bind", str(own), path)

    def cut_from(self, *others: Host) -> None:
        """From here on nothing that the others send arrives here."""
        for address in {other.address for other in others} - self.lost:
            self.lost.add(address)
            self.inside("nft", f"add element inet wire lost {{ {address} }}")

    def hear_again(self, other: Host) -> None:
        """What the other sends arrives again."""
        if other.address in self.lost:
            self.lost.remove(other.address)
            self.inside("nft", f"delete element inet wire lost {{ {other.address} }}")

    def hear(self) -> None:
        """Everything arrives again."""
        if self.lost:
            self.inside("nft", "flush set inet wire lost")
            self.lost.clear()

    def processes(self) -> list[int]:
        """All that runs here, but for what holds the host."""
        mine = os.readlink(f"/proc/{self.holder.pid}/ns/net")
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and int(entry.name) != self.holder.pid and os.readlink(entry / "ns" / "net") == mine:
                    found.append(int(entry.name))
        return found

    def kill(self) -> None:
        """The end of the host: everything on it, at once and without a word, for nothing that it still sends arrives."""
        for number in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        eventually(lambda: not self.processes(), "all processes of the host to be gone")

    def connect(self, address: tuple[str, int], timeout: float) -> socket.socket:
        """A connection from this host: a socket belongs to the network that its thread was in when it was made."""
        made: list[socket.socket | OSError] = []

        def make() -> None:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(self.net, CLONE_NEWNET) != 0:
                made.append(OSError(ctypes.get_errno(), "setns"))
                return
            try:
                made.append(socket.create_connection(address, timeout))
            except OSError as problem:
                made.append(problem)

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        if isinstance(made[0], OSError):
            raise made[0]
        return made[0]

    def close(self) -> None:
        self.kill()
        os.close(self.net)
        self.holder.communicate()


class Network:
    """Hosts that reach each other; use it in a with statement."""

    def __init__(self, folder: Path, count: int):
        self.folder = folder
        self.hosts: list[Host] = []
        self.bridge: Host | None = None
        self.count = count

    def __enter__(self) -> Network:
        self.folder.mkdir()
        try:
            self.bridge = Host(self.folder / "bridge", 254)
            self.bridge.inside("ip", "link", "add", "bridge", "type", "bridge")
            self.bridge.inside("ip", "link", "set", "bridge", "up")
            for number in range(1, self.count + 1):
                self.hosts.append(self.join(number))
        except BaseException:
            self.__exit__()
            raise
        return self

    def join(self, number: int) -> Host:
        assert self.bridge is not None
        host = Host(self.folder / f"host{number}", number)
        pair = f"link add name port{number} type veth peer name eth0 netns {host.holder.pid}\n"
        self.bridge.inside("ip", "-batch", "-", given=f"{pair}link set port{number} master bridge\nlink set port{number} up\n")
        host.inside("ip", "-batch", "-", given=f"addr add {host.address}/24 dev eth0\nlink set eth0 up\n")
        host.boot()
        return host

    def __exit__(self, *_: object) -> None:
        for host in [*self.hosts, *([self.bridge] if self.bridge else [])]:
            host.close()

    def cut(self, one: Host, *others: Host) -> None:
        """Both ways."""
        one.cut_from(*others)
        for other in others:
            other.cut_from(one)

    def heal(self) -> None:
        for host in self.hosts:
            host.hear()


class HostApi(Api):
    """The REST API as somebody on the controller's own host sees it."""

    def __init__(self, host: Host, token: str | None):
        super().__init__(f"http://{host.address}:{PORT}", token)
        self.host = host

    def connection(self, timeout: float) -> http.client.HTTPConnection:
        connection = super().connection(timeout)
        connection.sock = self.host.connect((self.host.address, PORT), timeout)
        return connection


class HostCluster(Cluster):
    """A controller on the first host of a network, and an agent on each other one.

    prefix begins the names of its nodes, by which a sampler knows this cluster's processes.
    """

    def __init__(self, network: Network, folder: Path, slots: int, controller: list[str] | None = None):
        super().__init__(folder, [slots] * (len(network.hosts) - 1), controller=controller)
        self.network = network
        self.prefix = f"n{uuid.uuid4().hex[:8]}-"

    @property
    def home(self) -> Host:
        """The controller's host."""
        return self.network.hosts[0]

    def host_of(self, node: str) -> Host:
        return self.network.hosts[int(node.removeprefix(self.prefix)) - 1]

    def agent_of(self, node: str) -> Program:
        return self.agents[int(node.removeprefix(self.prefix)) - 2]

    def start_controller(self) -> None:
        self.endpoint.unlink(missing_ok=True)
        self.controller.arguments = [
            *self.home.enter(), str(GPUCTLD), "--state", str(self.folder / "controller"), "--listen", f"{self.home.address}:{PORT}",
            "--insecure-plain-http", "--endpoint-file", str(self.endpoint), "--beat", "250ms", "--lease-min", "1s",
            *self.controller_arguments,
        ]  # fmt: skip
        self.controller.start()
        eventually(lambda: self.endpoint.exists() or not self.controller.alive(), "the controller's endpoint file")
        assert self.controller.alive(), self.controller.said()
        self.url = json.loads(self.endpoint.read_text())["url"]
        self.admin_token = (self.folder / "controller" / "admin.token").read_text().strip()
        self.api = HostApi(self.home, self.admin_token)

    def add_agent(self, name: str, slots: int, *arguments: str) -> Program:
        number = int(name.removeprefix("node")) + 2
        name = f"{self.prefix}{number}"
        agent = Program(
            [
                *self.host_of(name).enter(), str(GPUAGENT), "--controller", self.url, "--insecure-plain-http", "--token-file",
                str(self.folder / "node.token"), "--name", name, "--state", str(self.folder / name), "--run",
                str(self.folder / f"{name}.run"), "--devices", "none", "--cpu-slots", str(slots), "--python", PYTHON,
                "--run-as", "agent", *arguments,
            ],
            self.folder / f"{name}.log",
        )  # fmt: skip
        agent.start()
        self.agents.append(agent)
        return agent

    def gpuctl(self, *arguments: str) -> str:
        """What an administrator's gpuctl says on the controller's host."""
        settings = {"GPUCTL_URL": self.url, "GPUCTL_TOKEN_FILE": str(self.folder / "controller" / "admin.token"), "NO_COLOR": "1"}
        done = subprocess.run(
            [*self.home.enter(), str(GPUCTL), *arguments, "--insecure-plain-http"],
            env={**ENVIRONMENT, **settings},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"gpuctl {arguments}: {done.stderr}"
        return done.stdout

    def go_down(self, node: str) -> None:
        """The end of a node's host."""
        agent = self.agent_of(node)
        self.host_of(node).kill()
        assert agent.process is not None
        agent.process.wait()

    def come_up(self, node: str) -> None:
        """It boots: with a new boot id, without what a reboot clears, and with its agent."""
        shutil.rmtree(self.folder / f"{node}.run")
        self.host_of(node).boot()
        self.agent_of(node).start()
