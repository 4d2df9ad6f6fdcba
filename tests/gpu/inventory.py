# SPDX-License-Identifier: Apache-2.0
"""What GPUs this machine has, by witnesses that are not ours: device files, nvidia-smi, and NVIDIA's library asked directly."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

PROCESSES_SHOWN = 64


@dataclass(frozen=True)
class Gpu:
    """One GPU: its index in NVML's order (that of the PCI bus), its UUID, as in GPU-1234, and its type in job specs, where we named it."""

    index: int
    uuid: str
    type: str = field(default="", compare=False)


class Process(ctypes.Structure):
    """nvmlProcessInfo_t of the second and third version of the call."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used_bytes", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class Memory(ctypes.Structure):
    """nvmlMemory_t, all in bytes."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Nvml:
    """NVIDIA's management library. Raises OSError where it is not installed or does not answer."""

    def __init__(self, library: str = "libnvidia-ml.so.1"):
        self.library = ctypes.CDLL(library)
        self._call("nvmlInit_v2")

    def _call(self, name: str, *arguments: object) -> None:
        try:
            code = getattr(self.library, name)(*arguments)
        except AttributeError as error:
            raise OSError(f"NVIDIA's library has no {name}") from error
        if code != 0:
            raise OSError(f"{name}: NVML error {code}")

    def count(self) -> int:
        count = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        return count.value

    def driver(self) -> str:
        """The driver's version, or "unknown"."""
        text = ctypes.create_string_buffer(96)
        with contextlib.suppress(OSError):
            self._call("nvmlSystemGetDriverVersion", text, ctypes.c_uint(len(text)))
        return text.value.decode() or "unknown"

    def name(self, index: int) -> str:
        text = ctypes.create_string_buffer(96)
        self._call("nvmlDeviceGetName", self._handle(index), text, ctypes.c_uint(len(text)))
        return text.value.decode()

    def used_bytes(self, index: int) -> int:
        memory = Memory()
        self._call("nvmlDeviceGetMemoryInfo", self._handle(index), ctypes.byref(memory))
        return int(memory.used)

    def processes(self, index: int) -> list[int]:
        """The ids of processes that compute on a GPU; in a container they may be another namespace's, or not be shown."""
        rows = (Process * PROCESSES_SHOWN)()
        count = ctypes.c_uint(PROCESSES_SHOWN)
        self._call("nvmlDeviceGetComputeRunningProcesses_v3", self._handle(index), ctypes.byref(count), rows)
        return [rows[i].pid for i in range(count.value)]

    def _handle(self, index: int) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
        return handle


def largest_type(gpus: list[Gpu]) -> list[Gpu]:
    """The GPUs of the type that there are most of: a gang is of one type."""
    by_type: dict[str, list[Gpu]] = {}
    for gpu in gpus:
        by_type.setdefault(gpu.type, []).append(gpu)
    return max(by_type.values(), key=len, default=[])


def open_nvml() -> Nvml | None:
    """NVIDIA's library, or None where there is none that answers."""
    try:
        return Nvml()
    except OSError:
        return None


def parse_smi(listing: str) -> list[Gpu]:
    """The GPUs of `nvidia-smi -L`; the lines of their MIG slices are not GPUs."""
    return [Gpu(int(index), uuid) for index, uuid in re.findall(r"^GPU (\d+): .*\(UUID: (GPU-[^)]+)\)", listing, re.MULTILINE)]


def ask_smi(environment: dict[str, str]) -> list[Gpu] | None:
    """What nvidia-smi says; None where it is not installed or fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        said = subprocess.run([program, "-L"], env=environment, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_smi(said.stdout) if said.returncode == 0 else None


def device_files() -> list[str]:
    """The GPUs' device files, such as /dev/nvidia0."""
    return sorted(glob.glob("/dev/nvidia[0-9]*"))


@contextlib.contextmanager
def peak_memory(nvml: Nvml | None, indices: list[int]) -> Iterator[Callable[[int], int]]:
    """Watch the GPUs' memory while the block runs; the function that it gives tells a GPU's highest use in bytes."""
    peaks = dict.fromkeys(indices, 0)
    done = threading.Event()

    def look() -> None:
        while nvml is not None:
            for index in indices:
                with contextlib.suppress(OSError):
                    peaks[index] = max(peaks[index], nvml.used_bytes(index))
            if done.wait(0.02):
                return

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield lambda index: peaks[index]
    finally:
        done.set()
        watcher.join()
