# SPDX-License-Identifier: Apache-2.0
"""One virtual machine: an emulator that continues from a kept state, and a way in by ssh.

The machine is the emulator's process: to kill it is to cut the power. Its disk is a layer over the image's, so that no machine sees the
files of another. Where the host's processor can run machines itself (KVM), that is used, else the processor is emulated, which is ten
times slower.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from image import CLUSTER_CARD, HOST_CARD, Image, cache_folder

#: Seconds that a wait may take. Emulated machines are slow, and two share a processor.
PATIENCE = 300.0
MEMORY_MIB = 1024


def eventually(condition: Callable[[], Any], what: str, patience: float = PATIENCE, pace: float = 0.2) -> Any:
    """Return the first true value of the condition; fail, naming what was waited for, after the deadline."""
    deadline = time.monotonic() + patience
    pause = threading.Event()
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {patience:.0f} s for {what}"
        pause.wait(pace)


class Failed(AssertionError):
    """A command in a machine that did not exit with 0."""


class Monitor:
    """The emulator's control socket (QMP)."""

    def __init__(self, path: Path, patience: float = 30.0):
        def connect() -> socket.socket | None:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(str(path))
                return connection
            except OSError:
                connection.close()
                return None

        self._socket = eventually(connect, f"the emulator's control socket {path}", patience, 0.02)
        self._file = self._socket.makefile("rw")
        self._file.readline()  # the greeting
        self.command("qmp_capabilities")

    def command(self, name: str, **arguments: Any) -> Any:
        """Do one command and return its answer."""
        self._file.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
        self._file.flush()
        while True:
            answer = json.loads(self._file.readline() or '{"error": "the emulator has ended"}')
            if "error" in answer:
                raise AssertionError(f"{name}: {answer['error']}")
            if "return" in answer:
                return answer["return"]

    def close(self) -> None:
        self._file.close()
        self._socket.close()


def free_port() -> int:
    """A port of the loopback interface that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def accelerator(image: Image) -> str:
    """"kvm" where a kernel really begins to run with it, else "tcg". Asked once for each boot of the host."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    note = cache_folder() / f"accelerator-{boot}"
    if not note.exists():
        note.write_text("kvm" if os.access("/dev/kvm", os.R_OK | os.W_OK) and _kvm_runs(image) else "tcg")
    return note.read_text()


def _kvm_runs(image: Image) -> bool:
    words = ["qemu-system-x86_64", "-accel", "kvm", "-cpu", "max", "-m", "256", "-nographic", "-no-reboot", "-net", "none"]
    words += ["-kernel", str(image.kernel), "-append", "console=ttyS0 panic=-1"]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    timer = threading.Timer(20, process.kill)
    timer.start()
    runs = any(b"Linux version" in line for line in process.stdout)
    timer.cancel()
    process.kill()
    process.wait()
    return runs


@dataclass(frozen=True)
class State:
    """A machine that was stopped at a moment: its memory, and its disk, which is not written any more."""

    folder: Path

    @property
    def memory(self) -> Path:
        return self.folder / "memory"

    @property
    def disk(self) -> Path:
        return self.folder / "disk.qcow2"


class Machine:
    """A machine in a folder of its own. number is 1 to 254, and makes its name, its network address and its cards."""

    def __init__(self, folder: Path, image: Image, number: int = 1, switch: Path | None = None):
        self.folder = folder
        self.image = image
        self.number = number
        self.name = f"machine{number}"
        self.address = f"10.77.0.{number}"
        self.switch = switch
        self.process: subprocess.Popen[bytes] | None = None
        self.monitor: Monitor | None = None
        self.disk = folder / "disk.qcow2"
        self.serial = folder / "serial.log"
        folder.mkdir(parents=True, exist_ok=True)

    # --- power -------------------------------------------------------------------------------------------

    def boot(self) -> None:
        """Switch it on: from the image the first time, later from its own disk. Returns when it lets root in."""
        if not self.disk.exists():
            self._layer(self.image.disk, "raw")
        self._start([])
        self.wait_for_ssh()

    def resume(self, state: State) -> None:
        """Go on where a state was kept, as a machine of its own: with its own name, identity, address, clock and randomness."""
        self._layer(state.disk, "qcow2")
        self._start(["-incoming", f"exec:cat {shlex.quote(str(state.memory))}"])
        assert self.monitor is not None
        eventually(lambda: self.monitor.command("query-status")["status"] != "inmigrate", "the state to be read", pace=0.05)  # type: ignore[union-attr]
        self.monitor.command("cont")
        self.wait_for_ssh()
        self.personalize()

    def keep(self, state: State) -> None:
        """Stop the machine for ever and keep its state."""
        assert self.monitor is not None and self.process is not None
        part = state.folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        self.run("sync")
        self.monitor.command("stop")
        self.monitor.command("migrate-set-parameters", **{"max-bandwidth": 1 << 36})
        self.monitor.command("migrate", uri=f"exec:cat >{shlex.quote(str(part / 'memory'))}")

        def done() -> bool:
            status = self.monitor.command("query-migrate")["status"]  # type: ignore[union-attr]
            assert status != "failed", "the emulator could not write its state"
            return bool(status == "completed")

        eventually(done, "the state to be written", pace=0.05)
        self.power_cut()
        self.disk.rename(part / "disk.qcow2")
        part.rename(state.folder)

    def power_cut(self) -> None:
        """What the machine had not yet given to its disk is lost."""
        self._close_ssh()
        if self.monitor is not None:
            self.monitor.close()
            self.monitor = None
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def reboot(self) -> None:
        """An orderly reboot: the machine ends by itself and is switched on again."""
        assert self.process is not None
        self.run("systemctl reboot --no-block", check=False)
        self.process.wait(PATIENCE)  # -no-reboot makes the emulator end
        self.power_cut()
        self.boot()

    def _layer(self, below: Path, kind: str) -> None:
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(below), "-F", kind, str(self.disk)], check=True)

    def _start(self, more: list[str]) -> None:
        control = self.folder / "control"
        control.unlink(missing_ok=True)
        self.port = free_port()
        words = ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-accel", accelerator(self.image), "-cpu", "max"]
        words += ["-m", str(MEMORY_MIB), "-smp", "1"]
        words += ["-display", "none", "-no-reboot", "-rtc", "base=utc", "-serial", f"file:{self.serial}"]
        words += ["-kernel", str(self.image.kernel), "-initrd", str(self.image.initrd)]
        words += ["-append", "root=/dev/vda rw console=ttyS0 quiet panic=-1"]
        words += ["-drive", f"file={self.disk},format=qcow2,if=virtio,cache=unsafe"]
        words += ["-netdev", f"user,id=host,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:22"]
        words += ["-device", f"virtio-net-pci,netdev=host,mac={HOST_CARD}"]
        words += ["-netdev", f"vde,id=cluster,sock={self.switch}" if self.switch else "hubport,id=cluster,hubid=0"]
        words += ["-device", f"virtio-net-pci,netdev=cluster,mac={CLUSTER_CARD}"]
        words += ["-device", "virtio-rng-pci", "-qmp", f"unix:{control},server=on,wait=off"]
        with open(self.folder / "emulator.log", "ab") as log:
            self.process = subprocess.Popen(words + more, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.monitor = Monitor(control)

    # --- the way in --------------------------------------------------------------------------------------

    def _ssh(self, user: str, shared: bool) -> list[str]:
        words = ["ssh", "-q", "-i", str(self.image.key), "-p", str(self.port), "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no"]
        words += ["-o", "UserKnownHostsFile=/dev/null", "-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=20"]
        if shared:  # one connection for all commands: to make one costs an emulated machine a second
            words += ["-o", "ControlMaster=auto", "-o", f"ControlPath={self.folder}/ssh-{user}", "-o", "ControlPersist=yes"]
        return [*words, f"{user}@127.0.0.1"]

    def _close_ssh(self) -> None:
        for path in self.folder.glob("ssh-*"):
            user = path.name.removeprefix("ssh-")
            subprocess.run([*self._ssh(user, True)[:-1], "-O", "exit", f"{user}@127.0.0.1"], capture_output=True, check=False)
            path.unlink(missing_ok=True)

    def wait_for_ssh(self) -> None:
        def there() -> bool:
            assert self.process is not None and self.process.poll() is None, f"{self.name} has ended; see {self.folder}/emulator.log"
            try:
                return subprocess.run([*self._ssh("root", False), "true"], capture_output=True, check=False, timeout=30).returncode == 0
            except subprocess.TimeoutExpired:
                return False

        eventually(there, f"{self.name} to let root in", pace=0.5)

    def run(
        self,
        command: str,
        *,
        check: bool = True,
        user: str = "root",
        patience: float = PATIENCE,
        stdin: str | None = None,
        own: bool = False,
    ) -> str:
        """Run a shell command in the machine and return its stdout and stderr. own: in a login of its own, which ends with the command."""
        given = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        result = subprocess.run(
            [*self._ssh(user, not own), command],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=patience, check=False, **given,  # type: ignore[call-overload]
        )
        if check and result.returncode != 0:
            raise Failed(f"{self.name}: {command}: exit {result.returncode}\n{result.stdout}")
        return str(result.stdout)

    def succeeds(self, command: str, **options: Any) -> bool:
        """Whether a command exits with 0."""
        with contextlib.suppress(Failed):
            self.run(command, **options)
            return True
        return False

    def wait_until(self, command: str, what: str, patience: float = PATIENCE) -> None:
        """Repeat a command until it exits with 0."""
        eventually(lambda: self.succeeds(command), f"{what} on {self.name}", patience, 0.5)

    def write(self, path: str, text: str, mode: str = "644", user: str = "root") -> None:
        """Make a file in the machine."""
        quoted = shlex.quote(path)
        self.run(f"mkdir -p $(dirname {quoted}) && cat >{quoted} && chmod {mode} {quoted}", stdin=text, user=user)

    def copy(self, folder: Path, to: str) -> None:
        """Copy a folder of the host into the machine."""
        archive = subprocess.run(["tar", "-C", str(folder), "-c", "."], stdout=subprocess.PIPE, check=True).stdout
        command = f"mkdir -p {to} && tar -C {to} --no-same-owner -x"
        subprocess.run([*self._ssh("root", True), command], input=archive, check=True, timeout=PATIENCE)

    # --- who it is ---------------------------------------------------------------------------------------

    def personalize(self) -> None:
        """Machines of one state are twins: give this one its own name, machine id, boot id, address, time and randomness."""
        boot = str(uuid.uuid4())
        hosts = "".join(f"10.77.0.{n} machine{n}\\n" for n in range(1, 10))
        link = f"[Match]\\nPermanentMACAddress={CLUSTER_CARD}\\n[Link]\\nMACAddress=52:54:00:00:02:{self.number:02x}\\n"
        network = f"[Network]\\nLinkLocalAddressing=no\\nAddress={self.address}/24\\n"
        script = f"""set -e
            date -u -s @{time.time():.3f} >/dev/null
            echo {secrets.token_hex(32)} >/dev/urandom
            hostnamectl set-hostname {self.name}
            printf '127.0.0.1 localhost\\n{hosts}' >/etc/hosts
            echo {uuid.uuid4().hex} >/etc/machine-id && systemctl restart systemd-journald
            echo {boot} >/run/boot_id && mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
            printf '{link}{network}' >/etc/systemd/network/20-cluster.network
            networkctl reload
        """
        self.run("bash -s", stdin=script)
        self.wait_until(f"ip -o address | grep -q {self.address}/", "the cluster's address")
