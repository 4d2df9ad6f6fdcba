# SPDX-License-Identifier: Apache-2.0
"""Judges what the ranks of an all-reduce said, and counts what passed. Pure: it asks nothing of the machine.

A rank counts as proof of a GPU only when NCCL, the UUID of a GPU that the agent offers, and the list of visible devices all agree.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from inventory import Gpu

#: Exit codes of tests/gpu/run.
PASSED, FAILED, NO_GPU = 0, 1, 77


class Report:
    """Prints each check as it ends and counts."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0
        self.proofs = 0  # jobs of which every rank is proven to have run on a GPU

    def say(self, text: str) -> None:
        print(text, flush=True)

    def note(self, text: str) -> None:
        """Something to know that is neither passed nor failed."""
        self.say("      " + text.rstrip().replace("\n", "\n      "))

    def check(self, name: str, faults: list[str]) -> bool:
        """A check holds when it has no faults."""
        self.passed += not faults
        self.failed += bool(faults)
        self.say(f"{'FAIL' if faults else 'ok  '}  {name}")
        for fault in faults:
            self.note(fault)
        return not faults

    def exit_code(self, has_gpu: bool) -> int:
        """0 is said only of a machine with a GPU on which jobs ran on both paths, as a command and as a function."""
        if self.failed > 0:
            return FAILED
        if not has_gpu:
            return NO_GPU
        return PASSED if self.proofs >= 2 else FAILED


def parse_facts(output: str) -> list[dict[str, Any]]:
    """The facts of every rank in a job's output, by rank."""
    facts = [json.loads(found) for found in re.findall(r"ALLREDUCE (\{.*\})", output)]
    return sorted(facts, key=lambda fact: int(fact["rank"]))


def judge_ranks(facts: list[dict[str, Any]], world: int) -> list[str]:
    """Every rank of the world spoke once, and knew its place."""
    told = [(fact["rank"], fact["world"]) for fact in facts]
    wanted = [(rank, world) for rank in range(world)]
    return [] if told == wanted else [f"the ranks said (rank, world) {told}, not {wanted}"]


def judge_sums(facts: list[dict[str, Any]], size: int) -> list[str]:
    """The sums and what was gathered are right, and of the right size."""
    faults = []
    for fact in facts:
        who = f"rank {fact['rank']}"
        if fact.get("bytes") != size:
            faults.append(f"{who} summed {fact.get('bytes')} bytes, not {size}")
        if fact.get("wrong") != 0:
            faults.append(f"{who}: {fact.get('wrong')} elements of the sum are wrong")
        if fact.get("gathered") is not True:
            faults.append(f"{who}: what it gathered is wrong")
        if not fact.get("seconds", 0) > 0:
            faults.append(f"{who} measured no time")
    return faults


def judge_devices(facts: list[dict[str, Any]], offered: list[Gpu]) -> list[str]:
    """Every rank saw all of the job's GPUs and no other, and used by NCCL the one of its local rank."""
    by_index = {gpu.index: gpu for gpu in offered}
    faults = [] if facts else ["no rank said which GPU it used"]
    for fact in facts:
        who, visible = f"rank {fact['rank']}", fact.get("visible") or ""
        if fact.get("backend") != "nccl":
            faults.append(f"{who} ran on {fact.get('backend')}, not on nccl: its torch sees no GPU")
            continue
        indices = [int(word) if word.isdigit() else -1 for word in visible.split(",")]
        if len(set(indices)) != len(facts) or not set(indices) <= set(by_index):
            faults.append(f"{who}: CUDA_VISIBLE_DEVICES={visible!r} is not {len(facts)} of the GPUs {sorted(by_index)}")
            continue
        if fact.get("order") != "PCI_BUS_ID":
            faults.append(f"{who}: CUDA_DEVICE_ORDER is {fact.get('order')!r}, not 'PCI_BUS_ID'")
        if fact.get("seen") != len(facts):
            faults.append(f"{who}: torch sees {fact.get('seen')} GPUs, not {len(facts)}")
        wanted = by_index[indices[fact["rank"]]].uuid
        used = str(fact.get("uuid") or "")
        if used.replace("GPU-", "") != wanted.replace("GPU-", ""):
            faults.append(f"{who} used the GPU {used or '(this torch does not tell)'}, not {wanted}")
    return faults


def describe_run(fact: dict[str, Any]) -> str:
    """What a rank ran on and how fast, in a line."""
    versions = f"torch {fact.get('torch', '?')}"
    if fact.get("backend") == "nccl":
        versions += f", CUDA {fact.get('cuda')}, NCCL {fact.get('nccl')}"
    alone = " (in place; one rank moves nothing)" if fact["world"] == 1 else ""
    speed = f"{fact.get('gigabytes_per_s', 0):.2f} GB/s, {fact.get('seconds', 0) * 1000:.3f} ms"
    return f"{fact.get('gpu', 'CPU')}: {versions}; all-reduce of {fact.get('bytes', 0)} bytes over {fact['world']}: {speed}{alone}"


def end(report: Report, has_gpu: bool) -> int:
    """Print the last lines and give the exit code."""
    code = report.exit_code(has_gpu)
    if code == FAILED and report.failed == 0:
        report.check("jobs ran on a GPU, as a command and as a function", [f"{report.proofs} of 2 did"])
    if not has_gpu:
        report.say("NO GPU on this machine: nothing was checked on a GPU, and this run says nothing about one.")
    report.say(f"{report.passed} passed, {report.failed} failed")
    sys.stdout.flush()
    return code
