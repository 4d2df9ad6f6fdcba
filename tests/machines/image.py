# SPDX-License-Identifier: Apache-2.0
"""The disk that every virtual machine begins with: Debian 12 with systemd, cgroup v2 and OpenSSH, and nothing of ours.

The image lies in a cache folder under the hash of its recipe, which is this file, so that a host makes it once. Kept states of machines
(cluster.py) lie beside it.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

SUITE = "bookworm"
DISK_BYTES = 2 << 30

#: What a plain server has.
SYSTEM = [
    "systemd-sysv", "dbus", "dbus-user-session", "libpam-systemd", "linux-image-cloud-amd64", "kmod", "openssh-server",
    "iproute2", "procps", "passwd", "ca-certificates", "cron",
]
#: Dependencies of our packages: no machine here reaches a mirror.
DEPENDENCIES = [
    "libmicrohttpd12", "libjansson4", "libcurl3-gnutls", "libgnutls30", "libsqlite3-0", "libnettle8", "libinih1",
    "libyaml-0-2", "zlib1g", "python3", "python3-venv", "adduser",
]
#: For tests that run in a machine.
TESTS = ["python3-pytest"]
FILE_SERVER = ["nfs-kernel-server", "nfs-common"]
CONTAINERS = ["podman", "crun", "netavark", "skopeo", "umoci", "docker-registry", "openssl"]

#: Modules that the kernel needs before it can read the disk; the rest is loaded from there.
EARLY_MODULES = ["virtio_pci", "virtio_blk", "virtio_net", "virtio_rng", "ext4"]

#: Addresses of the network cards: the host reaches the first; the second is on the cluster's network, in which each machine gets an
#: address of its own when it is handed out.
HOST_CARD = "52:54:00:00:00:01"
CLUSTER_CARD = "52:54:00:00:01:00"
HOST_NETWORK = f"[Match]\nMACAddress={HOST_CARD}\n[Network]\nDHCP=ipv4\nLinkLocalAddressing=no\n[DHCPv4]\nUseDNS=no\n"


@dataclass(frozen=True)
class Image:
    """Paths of one image: a raw disk, the kernel that boots it, and the key that root of it lets in."""

    folder: Path

    @property
    def disk(self) -> Path:
        return self.folder / "disk.raw"

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd"

    @property
    def key(self) -> Path:
        return self.folder / "key"


def cache_folder() -> Path:
    """Where images are kept: $GPUCTL_MACHINES_CACHE, else below $XDG_CACHE_HOME, else below ~/.cache."""
    given = os.environ.get("GPUCTL_MACHINES_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(given) if given else Path(base) / "gpuctl-machines"


def newest() -> Image:
    """The image of this recipe, be it there or not."""
    recipe = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    return Image(cache_folder() / f"image-{recipe}")


def make(image: Image) -> None:
    """Make the image (a minute, and 500 MB), and remove those of other recipes."""
    if not image.folder.is_dir():
        _remove_others(image.folder)
        _make(image)


@contextlib.contextmanager
def cache_with(is_there: Callable[[], bool], bring: Callable[[], None]) -> Iterator[None]:
    """Hold the cache while something of it is used. One process at a time brings what is missing, and nobody removes what others use."""
    cache_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(cache_folder() / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        while not is_there():
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not is_there():
                    bring()
            except BlockingIOError:
                fcntl.flock(lock, fcntl.LOCK_UN)  # or two that wait for one another would wait for ever
                threading.Event().wait(0.2)
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield


def _remove_others(folder: Path) -> None:
    for other in folder.parent.glob("image-*"):
        _detach_mounts(other)
        shutil.rmtree(other)


def _detach_mounts(folder: Path) -> None:
    """Take /proc, /sys and /dev out of a tree whose making was killed: what is below a mount is not the image's."""
    points = [Path(line.split()[4].encode().decode("unicode_escape")) for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in reversed(points):
        if point.is_relative_to(folder):
            subprocess.run(["umount", "--lazy", str(point)], check=True)


def _make(image: Image) -> None:
    work = image.folder.with_suffix(".part")
    root = work / "root"
    work.mkdir()
    try:
        _install(root)
        _configure(root, work / "key")
        for link, name in (("vmlinuz", "vmlinuz"), ("initrd.img", "initrd")):
            kernel_file = next((root / "boot").glob(f"{link}-*"))
            shutil.copy(kernel_file, work / name)
        with open(work / "disk.raw", "wb") as disk:
            disk.truncate(DISK_BYTES)
        subprocess.run(["mke2fs", "-q", "-F", "-t", "ext4", "-d", str(root), str(work / "disk.raw")], check=True)
        shutil.rmtree(root)
        work.rename(image.folder)
    except BaseException:
        _detach_mounts(work)
        shutil.rmtree(work, ignore_errors=True)
        raise


def _install(root: Path) -> None:
    options = ['--aptopt=Apt::Install-Recommends "false"']
    for folder in ("doc", "man", "locale"):
        options.append(f"--dpkgopt=path-exclude=/usr/share/{folder}/*")
    # The list of early modules comes later, so that the one that is made at the installation is small.
    hook = 'mkdir -p "$1/etc/initramfs-tools/conf.d" && echo MODULES=list >"$1/etc/initramfs-tools/conf.d/modules"'
    packages = ",".join(SYSTEM + DEPENDENCIES + TESTS + FILE_SERVER + CONTAINERS)
    subprocess.run(
        ["mmdebstrap", "--quiet", "--variant=minbase", *options, f"--include={packages}", f"--essential-hook={hook}", SUITE, str(root)],
        check=True,
    )
    # Our own packages are installed whole.
    (root / "etc/dpkg/dpkg.cfg.d/99mmdebstrap").unlink()


def _configure(root: Path, key: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gpuctl-machines", "-f", str(key)], check=True)
    home = root / "root/.ssh"
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "authorized_keys").write_bytes(key.with_suffix(".pub").read_bytes())
    (root / "etc/fstab").write_text("/dev/vda / ext4 rw 0 1\n")
    (root / "etc/hostname").write_text("machine\n")
    (root / "etc/systemd/network/10-host.network").write_text(HOST_NETWORK)
    with open(root / "etc/initramfs-tools/modules", "a") as modules:
        modules.write("\n".join(EARLY_MODULES) + "\n")
    # An ordinary person of the machine, who may come in by the same key.
    script = """
        update-initramfs -u >/dev/null 2>&1
        systemctl --quiet enable systemd-networkd
        systemctl --quiet mask systemd-networkd-wait-online apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer fstrim.timer
        systemctl --quiet mask podman-auto-update.service podman-auto-update.timer podman-restart.service podman.socket
        systemctl --quiet mask docker-registry.service nfs-server.service nfs-blkmap.service rpcbind.service rpcbind.socket
        useradd --create-home --shell /bin/bash ann
        cp -r ~root/.ssh /home/ann/ && chown -R ann: /home/ann/.ssh
    """
    subprocess.run(["chroot", str(root), "bash", "-ec", script], check=True)
