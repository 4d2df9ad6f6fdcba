# SPDX-License-Identifier: Apache-2.0
"""Machines on one network of their own, which have our packages, installed by apt from a local folder, and nothing else of ours.

The first machine is the controller's host and may be a node, too. Every command of ours is typed in a machine, as its administrator
or a person would type it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from image import Image
from image import make as make_image
from machine import Failed, Machine, State, accelerator, eventually

PORT = 7070
TERMINAL = {"SUCCEEDED", "FAILED", "CANCELED", "TIMED_OUT"}

#: Where apt finds our packages in a machine.
PACKAGES = "/var/tmp/gpuctl-packages"


def install(machine: Machine, packages: Path) -> str:
    """Install our packages from a folder of the host, or upgrade to them, and return what apt says."""
    machine.run(f"rm -rf {PACKAGES}")
    machine.copy(packages, PACKAGES)
    return machine.run(f"DEBIAN_FRONTEND=noninteractive apt-get install -y {PACKAGES}/*.deb", patience=600)


@dataclass(frozen=True)
class States:
    """Kept machines that tests continue from: one that has booted from the image, and one with our packages and no configuration."""

    image: Image
    packages: Path

    @property
    def booted(self) -> State:
        return State(self.image.folder / f"booted-{accelerator(self.image)}")

    @property
    def installed(self) -> State:
        content = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(self.packages.glob("*.deb"))))
        content.update(Path(__file__).read_bytes())
        return State(self.image.folder / f"installed-{accelerator(self.image)}-{content.hexdigest()[:16]}")

    def are_there(self) -> bool:
        return self.image.folder.is_dir() and self.booted.folder.is_dir() and self.installed.folder.is_dir()

    def make(self, scratch: Path) -> None:
        """Make what is missing: the image, the booted machine, and the one with our packages."""
        make_image(self.image)
        if not self.booted.folder.is_dir():
            self._keep(Machine(scratch / "boot", self.image), Machine.boot, self.booted)
        for other in self.image.folder.glob("installed-*"):
            shutil.rmtree(other)
        self._keep(Machine(scratch / "install", self.image), self._begin_installed, self.installed)

    def _begin_installed(self, machine: Machine) -> None:
        machine.resume(self.booted)
        install(machine, self.packages)

    @staticmethod
    def _keep(machine: Machine, begin: Callable[[Machine], None], state: State) -> None:
        try:
            begin(machine)
            machine.run("systemctl is-system-running --wait")
            machine.keep(state)
        finally:
            machine.power_cut()


class Cluster:
    """Some machines and the switch between them."""

    def __init__(self, folder: Path, image: Image, state: State):
        self.folder = folder
        self.image = image
        self.state = state
        self.machines: list[Machine] = []
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / "switch.log", "wb") as log:
            self.switch = subprocess.Popen(
                ["vde_switch", "-s", str(folder / "switch"), "-x"], stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )
        eventually((folder / "switch" / "ctl").exists, "the switch", 30)

    def stop(self) -> None:
        for machine in self.machines:
            machine.power_cut()
        self.switch.kill()
        self.switch.wait()

    def machine(self) -> Machine:
        """Hand out one more machine."""
        machine = Machine(self.folder / f"machine{len(self.machines) + 1}", self.image, len(self.machines) + 1, self.folder / "switch")
        self.machines.append(machine)
        machine.resume(self.state)
        return machine

    # --- the controller -----------------------------------------------------------------------------------

    @property
    def host(self) -> Machine:
        """The controller's host."""
        return self.machines[0]

    def start_controller(self) -> Machine:
        """Make the first machine the controller's host, which serves on the cluster's network."""
        host = self.machine()
        self.configure_controller(host)
        return host

    def configure_controller(self, host: Machine) -> None:
        """Make a machine of this cluster the controller's host, and log its administrator in, by the line that init prints."""
        told = host.run(f"gpuctld init --listen {host.address}:{PORT} --name {host.address}")
        host.run("systemctl restart gpuctld")
        host.run(next(line.strip() for line in told.splitlines() if line.strip().startswith("gpuctl login ")).split("    ")[0])

    def join(self, machine: Machine, *options: str, unit: str = "", wait: bool = True) -> None:
        """Make a machine a node, by the line that the controller's host prints. unit: a drop-in of its agent's unit."""
        if unit:
            machine.write("/etc/systemd/system/gpuagent.service.d/test.conf", f"[Service]\n{unit}\n")
            machine.run("systemctl daemon-reload")
        machine.run(f"{self.join_line()} --cpu-slots 2 {' '.join(options)}")
        if wait:
            self.wait_for_node(machine.name)

    def join_line(self) -> str:
        """The line that makes a machine a node."""
        return next(line.strip() for line in self.gpuctl("nodes join-command").splitlines() if line.strip().startswith("gpuagent join "))

    def wait_for_node(self, name: str, state: str = "READY") -> None:
        eventually(lambda: self.nodes().get(name, {}).get("state") == state, f"node {name} to be {state}", pace=0.5)

    def nodes(self) -> dict[str, dict[str, Any]]:
        """The nodes by name, as the API shows them."""
        return {node["name"]: node for node in json.loads(self.ask("nodes list -o json"))["nodes"]}

    # --- jobs ---------------------------------------------------------------------------------------------

    def gpuctl(self, words: str, **options: Any) -> str:
        """Type a command of gpuctl on the controller's host."""
        return self.host.run(f"gpuctl {words}", **options)

    def ask(self, words: str) -> str:
        """Type a question, again while the controller does not answer: it may be about to start, on a machine that is emulated."""

        def answer() -> str | None:
            try:
                return self.gpuctl(words) or " "
            except Failed as failed:
                if "cannot be reached" not in str(failed):
                    raise
                return None

        return str(eventually(answer, "the controller to answer", pace=0.5))

    def submit(self, words: str) -> str:
        """Submit a job and return its id."""
        return str(json.loads(self.gpuctl(f"submit -o json {words}"))["id"])

    def job(self, job: str) -> dict[str, Any]:
        """A job as the API shows it."""
        return dict(json.loads(self.ask(f"get {job} -o json")))

    def attempts(self, job: str) -> list[dict[str, Any]]:
        """The attempts of a job, the newest last: each with its state and nodes."""
        return list(json.loads(self.ask(f"get {job} --timing -o json"))["attempts"])

    def output(self, job: str) -> list[str]:
        """The lines of rank 0's stdout so far."""
        return self.ask(f"logs {job} --rank 0 --stream stdout").split()

    def wait_for(self, job: str, *states: str) -> dict[str, Any]:
        """Wait until a job is in one of the states, or in any that is final, and return it."""
        wanted = set(states) or TERMINAL

        def there() -> dict[str, Any] | None:
            shown = self.job(job)
            assert shown["state"] in wanted or shown["state"] not in TERMINAL, f"job {job} ended {shown['state']}: {shown.get('reason')}"
            return shown if shown["state"] in wanted else None

        try:
            return dict(eventually(there, f"job {job} to be {' or '.join(sorted(wanted))}", pace=0.5))
        except AssertionError as failed:
            raise AssertionError(f"{failed}\n{self.ask(f'get {job}')}") from failed
