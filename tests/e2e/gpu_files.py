# SPDX-License-Identifier: Apache-2.0
"""Files of GPUs that are not there: whom the kernel lets through finds no driver behind them, the others are refused before."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from pathlib import Path

#: The numbers of NVIDIA's files that are the same on each host.
FILES = {"nvidia0": 0, "nvidia1": 1, "nvidia2": 2, "nvidia-modeset": 254, "nvidiactl": 255}

#: Names the files that it is refused: a program for `python -c`, with their paths.
OPENS = """
import errno, os, sys
for path in sys.argv[1:]:
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError as problem:
        if problem.errno == errno.EPERM:
            print(os.path.basename(path))
"""


def make(folder: Path) -> list[str]:
    """Make the files there, for everybody, and return their paths."""
    for name, minor in FILES.items():
        os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(195, minor))
        (folder / name).chmod(0o666)
    return [str(folder / name) for name in FILES]


def can_be_refused() -> bool:
    """Whether the kernel takes a program that says which devices a cgroup may have, and has cgroups of version 2."""
    kind, load, number = 15, 5, {"x86_64": 321, "aarch64": 280}[os.uname().machine]
    rows = ctypes.create_string_buffer(struct.pack("=QQ", 0xB7 | 1 << 32, 0x95))  # return 1
    license = ctypes.create_string_buffer(b"Apache-2.0")
    call = ctypes.create_string_buffer(struct.pack("=IIQQ", kind, 2, ctypes.addressof(rows), ctypes.addressof(license)), 128)
    fd = ctypes.CDLL(None).syscall(ctypes.c_long(number), load, call, ctypes.c_long(128))
    if fd >= 0:
        os.close(fd)
    return fd >= 0 and "cgroup2" in Path("/proc/mounts").read_text()
