# SPDX-License-Identifier: Apache-2.0
"""Checks gpuctl on a GPU machine from a bundle: the inventory, and an all-reduce through the whole path, as a command and as a function.

Whether there is a GPU is asked of every witness; if any of them sees one, everything has to pass on it. What is judged is in verdict.py.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from instance import ASK, JOB, ROOT, Failure, Instance, clean_environment, open_bundle, run_program
from inventory import Gpu, Nvml, ask_smi, device_files, largest_type, open_nvml, peak_memory
from verdict import FAILED, Report, describe_run, end, judge_devices, judge_ranks, judge_sums, parse_facts

SCRIPT = Path(__file__).with_name("allreduce.py")
MIB = 2**20
CPU_MEBIBYTES, GPU_MEBIBYTES = 16, 256
SLACK_BYTES = 64 * MIB  # what a driver keeps for itself varies by less
RELEASE_SECONDS = 30  # in which a driver frees what an ended process held
END_SECONDS = 10  # in which idle supervisors end once their agent is gone


class Usage(NamedTuple):
    """What a GPU is used for: ids of processes, and bytes of its memory."""

    processes: set[int]
    memory_bytes: int


class Check:
    """One run of the check: what it found out so far."""

    def __init__(self, report: Report, bundle: Path, python: str):
        self.report = report
        self.bundle = bundle
        self.python = python
        self.nvml: Nvml | None = open_nvml()
        self.torch: str | None = None  # its version in the Python of the jobs
        self.torch_gpus = 0
        self.offered: list[Gpu] = []
        self.empty = True
        self.has_gpu = False
        self.unrestricted = {name: value for name, value in clean_environment().items() if name != "CUDA_VISIBLE_DEVICES"}

    # --- what is here

    def look(self) -> None:
        """Ask every witness for GPUs."""
        self.ask_torch()
        seen = {
            "device files": len(device_files()),
            "nvidia-smi": len(ask_smi(self.unrestricted) or []),
            "NVML": self.nvml.count() if self.nvml is not None else 0,
            "torch": self.torch_gpus,
            "gpuagent": len(self.ask_agent(self.unrestricted)[0]),
        }
        self.has_gpu = any(seen.values())
        self.report.note("GPUs seen by " + ", ".join(f"{witness}: {count}" for witness, count in seen.items()))

    def ask_torch(self) -> None:
        code = "import json, torch; print(json.dumps([torch.__version__, torch.cuda.device_count()]))"
        with contextlib.suppress(Failure, OSError):
            said = run_program([self.python, "-c", code], clean_environment(), ASK)
            if said.returncode == 0:
                self.torch, self.torch_gpus = json.loads(said.stdout.splitlines()[-1])

    def ask_agent(self, environment: dict[str, str]) -> tuple[list[Gpu], str]:
        """The agent's inventory, or none and what it said instead."""
        said = run_program([str(self.bundle / "bin/gpuagent"), "--list-devices"], environment, ASK)
        if said.returncode != 0:
            return [], said.stderr.strip()
        return [Gpu(device["index"], device["uuid"], device["type"]) for device in json.loads(said.stdout)], said.stdout.strip()

    # --- checks of the machine

    def check_version(self) -> list[str]:
        wanted = (self.bundle / "VERSION").read_text().split("\n", 1)[0]
        environment = {**clean_environment(), "GPUCTL_STATE": "/nonexistent"}
        said = run_program([str(self.bundle / "bin/gpuctl"), "version"], environment, ASK)
        first = said.stdout.split("\n", 1)[0]
        return [] if first == wanted else [f"gpuctl version says {first!r} and {said.stderr.strip()!r}, VERSION says {wanted!r}"]

    def check_inventory(self) -> list[str]:
        environment = clean_environment()
        self.offered, said = self.ask_agent(environment)
        self.report.note("gpuagent --list-devices: " + said)
        if self.has_gpu != bool(self.offered):
            return [f"the agent offers {len(self.offered)} GPUs"]
        return []

    def check_smi(self) -> None:
        seen = ask_smi(self.unrestricted)
        if seen is None:
            self.report.note("nvidia-smi is not here, or does not answer: the inventory is compared with nothing")
            return
        listed, _ = self.ask_agent(self.unrestricted)
        faults = [] if listed == seen else [f"the agent lists {listed}, nvidia-smi -L lists {seen}"]
        self.report.check("gpuagent --list-devices and nvidia-smi -L agree", faults)

    def usage(self) -> dict[int, Usage]:
        """Who uses each offered GPU, and how much of its memory. Raises Failure or OSError where that is not told."""
        if self.nvml is None:
            raise Failure("NVIDIA's library does not answer")
        return {gpu.index: Usage(set(self.nvml.processes(gpu.index)), self.nvml.used_bytes(gpu.index)) for gpu in self.offered}

    def check_empty(self) -> list[str]:
        return [f"GPU {index} is in use by {sorted(usage.processes)}" for index, usage in self.usage().items() if usage.processes]

    def check_empty_again(self, before: dict[int, Usage]) -> list[str]:
        """The GPUs are as they were; a driver may take some seconds for it."""
        deadline = time.monotonic() + RELEASE_SECONDS
        pause = threading.Event()
        while True:
            faults = []
            for index, usage in self.usage().items():
                new, more = usage.processes - before[index].processes, usage.memory_bytes - before[index].memory_bytes
                faults += [f"GPU {index} is in use by {sorted(new)}"] if new else []
                faults += [f"GPU {index} holds {more} bytes more than before"] if more > SLACK_BYTES else []
            if not faults or time.monotonic() > deadline:
                return faults
            pause.wait(0.2)

    def check_probe(self) -> list[str]:
        """gpuprobe with the CUDA and NCCL that torch brought, where the machine has no others."""
        code = (
            "import glob, os, torch; site = os.path.dirname(os.path.dirname(torch.__file__)); "
            "print(':'.join(sorted(glob.glob(site + '/nvidia/*/lib'))))"
        )
        folders = run_program([self.python, "-c", code], clean_environment(), ASK).stdout.strip()
        environment = clean_environment()
        environment["LD_LIBRARY_PATH"] = ":".join(path for path in (environment.get("LD_LIBRARY_PATH"), folders) if path)
        said = run_program([str(self.bundle / "bin/gpuprobe")], environment, JOB)
        self.report.note(said.stdout.strip() or said.stderr.strip())
        if said.returncode != 0 or json.loads(said.stdout)["all_reduce"] != "ok":
            return [f"gpuprobe exited with {said.returncode}: {said.stderr.strip()}"]
        return []

    # --- checks of the whole path

    def check_node(self, node: dict[str, Any]) -> list[str]:
        wanted = len(self.offered) if self.has_gpu else 1
        told = (node["gpus"], node["slots"])
        return [] if told == (wanted, not self.has_gpu) else [f"the node has {told[0]} devices, slots: {told[1]}; wanted {wanted}"]

    @property
    def mebibytes(self) -> int:
        return GPU_MEBIBYTES if self.torch_gpus else CPU_MEBIBYTES

    def type_options(self) -> list[str]:
        """gpuctl and allreduce.py call it the same."""
        return ["--gpu-type", largest_type(self.offered)[0].type] if self.offered else []

    def job_options(self) -> list[str]:
        options = ["--mebibytes", str(self.mebibytes), "--rounds", "20" if self.torch_gpus else "3"]
        return options + ([] if self.torch is not None else ["--without-torch"])

    def run_command(self, instance: Instance, gpus: int) -> str:
        """The output of the all-reduce as a command."""
        words = ["run", "--gpus", str(gpus), *self.type_options(), "--name", "gpu-check-command", "--time", "5m"]
        words += ["--file", f"{SCRIPT}:allreduce.py", "--", self.python, "allreduce.py", *self.job_options()]
        said = instance.gpuctl(*words, seconds=JOB)
        if said.returncode != 0:
            raise Failure(f"gpuctl run exited with {said.returncode}: {said.stderr.strip()[-2000:]}")
        return said.stdout

    def run_function(self, instance: Instance, gpus: int) -> str:
        """The values that the all-reduce returned as a function."""
        environment = {**instance.environment, "PYTHONPATH": str(self.bundle / "python")}
        words = [self.python, "-B", str(SCRIPT), "--as-function", str(gpus), *self.type_options(), *self.job_options()]
        said = run_program(words, environment, JOB, instance.scratch)
        if said.returncode != 0:
            raise Failure(f"the client exited with {said.returncode}: {said.stderr.strip()[-2000:]}")
        return said.stdout

    def check_job(self, run: Callable[[Instance, int], str], instance: Instance, gpus: int) -> list[str]:
        """One all-reduce, judged; on a GPU machine it counts as proof when nothing is wrong with it."""
        before = self.usage() if self.has_gpu else {}
        with peak_memory(self.nvml, [gpu.index for gpu in self.offered]) as peak:
            facts = parse_facts(run(instance, gpus))
        faults = judge_ranks(facts, gpus)
        if self.torch is not None:
            faults += judge_sums(facts, self.mebibytes * MIB)
            for fact in facts[:1]:
                self.report.note(describe_run(fact))
        if self.has_gpu:
            faults += judge_devices(facts, self.offered)
            grown = [index for index in before if peak(index) >= before[index].memory_bytes + self.mebibytes * MIB]
            if len(grown) != gpus:
                faults.append(f"the memory of {len(grown)} GPUs grew by {self.mebibytes} MiB while the job ran, not of {gpus}")
            faults += self.check_empty_again(before)
            self.report.proofs += not faults
        return faults

    def check_path(self, instance: Instance) -> None:
        """Start, run the jobs, and end."""
        step = self.step
        if not step("a controller and a node start", lambda: self.check_node(instance.start(None if self.has_gpu else 1))):
            self.report.note(instance.tails())
            return
        gang = len(largest_type(self.offered))
        if gang > 1 and not self.empty:
            self.report.note("not all GPUs are empty: the gang over all of them is left out")
        for world in [1, gang] if gang > 1 and self.empty else [1]:
            who = f"{world} rank{'s' if world > 1 else ''}"
            good = step(f"all-reduce of {who} as a command", partial(self.check_job, self.run_command, instance, world))
            good &= step(f"all-reduce of {who} as a function", partial(self.check_job, self.run_function, instance, world))
            if not good:
                self.report.note(instance.tails())

    def check_end(self, instance: Instance) -> list[str]:
        instance.stop()
        return [f"process {pid} still runs" for pid in instance.survivors(END_SECONDS)]

    def step(self, name: str, check: Callable[[], list[str]]) -> bool:
        """A check that may also fail by what it could not do."""
        try:
            faults = check()
        except (Failure, OSError, ValueError, KeyError, TypeError) as error:
            faults = [f"{type(error).__name__}: {error}"]
        return self.report.check(name, faults)

    def run(self) -> None:
        self.look()
        step = self.step
        step("the bundle's programs run", self.check_version)
        agrees = "the agent lists the GPUs" if self.has_gpu else "the agent finds no GPU, as nobody does"
        step(agrees, self.check_inventory)
        before: dict[int, Usage] | None = None
        if self.has_gpu:
            self.check_smi()
            step("PyTorch is here and sees the GPUs", lambda: [] if self.torch_gpus else [f"{self.python}: torch {self.torch}"])
            self.empty = step("the GPUs are empty before", self.check_empty)
            with contextlib.suppress(Failure, OSError):  # of which the check before has told
                before = self.usage()
            if (self.bundle / "bin/gpuprobe").exists():
                step("gpuprobe: CUDA and NCCL work", self.check_probe)
            else:
                self.report.note("gpuprobe is not in this bundle: it was not run")
        elif self.torch is None:
            self.report.note(f"{self.python} has no torch: the jobs only say which rank they are")
        with Instance(self.bundle, self.python) as instance:
            self.check_path(instance)
            step("all that was started has ended", lambda: self.check_end(instance))
        if before is not None:
            step("the GPUs are empty after", partial(self.check_empty_again, before))


def choose_python(given: str | None) -> str:
    """The Python of the jobs: the one that was named, else the first that has torch, else this one."""
    candidates = [sys.executable, shutil.which("python3"), shutil.which("python"), str(ROOT / ".venv/bin/python")]
    for candidate in [given] if given is not None else candidates:
        if candidate is None or not os.access(candidate, os.X_OK):
            continue
        with contextlib.suppress(Failure, OSError):
            if given is not None or run_program([candidate, "-c", "import torch"], clean_environment(), ASK).returncode == 0:
                return os.path.abspath(candidate)
    if given is not None:
        raise Failure(f"--python {given} is no program")
    return sys.executable


def heading(check: Check) -> str:
    """What was checked where; it opens the output, which is kept as a record."""
    lines = [
        "gpuctl: check of a GPU machine",
        "bundle: " + ", ".join((check.bundle / "VERSION").read_text().splitlines()[:4]),
        f"machine: {platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} cores, {' '.join(platform.libc_ver())}",
        f"python: {check.python}, torch {check.torch or 'not installed'}",
    ]
    if check.nvml is not None:
        names = [check.nvml.name(index) for index in range(check.nvml.count())]
        lines.append(f"GPUs: {', '.join(names) or 'none'}; driver {check.nvml.driver()}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/gpu/run", description="Check gpuctl on a GPU machine.")
    parser.add_argument("bundle", nargs="?", help="folder or archive made by deploy/bundle (default: make one)")
    parser.add_argument("--python", help="Python of the jobs (default: the first that has torch)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that what was started is ended
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(128 + signal.SIGHUP))
    report = Report()
    scratch = Path(tempfile.mkdtemp(prefix="gpuctl-gpu-bundle-"))
    try:
        check = Check(report, open_bundle(options.bundle, scratch), choose_python(options.python))
        check.ask_torch()
        report.say(heading(check))
        check.run()
        return end(report, check.has_gpu)
    except Failure as failure:
        report.check("the check could be made", [str(failure)])
        report.say(f"{report.passed} passed, {report.failed} failed")
        return FAILED
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
