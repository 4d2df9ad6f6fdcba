# SPDX-License-Identifier: Apache-2.0
"""What our pages tell an administrator to type, typed in the order of the page on fresh machines: install, init, join, add, back up."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "pages"))

from cluster import Cluster, States
from machine import Machine, State
from pages import Block, pages


def let_in(host: Machine, machines: list[Machine], key: Path) -> None:
    """Let root of a machine into others by ssh, as an administrator would have it: by a key, to hosts that it knows."""
    host.write("/root/.ssh/id_ed25519", key.read_text(), mode="600")
    for machine in machines:
        host.run(f"ssh-keyscan -T 60 {machine.name} >>~/.ssh/known_hosts 2>/dev/null")


def execute(block: Block, host: Machine, machine: Machine) -> str:
    """Type a block in a machine. What placeholders stand for is found out on the controller's host."""
    text = block.filled(lambda commands: host.run("bash -es 2>/var/tmp/said || (cat /var/tmp/said; false)", stdin=commands))
    before, after = block.directives.get("before", ""), block.directives.get("after", "")
    script = f"set -o pipefail\nexport DEBIAN_FRONTEND=noninteractive\n{before}\n{text}\n{after}\n"
    return machine.run("bash -es", stdin=script, patience=600)


def test_what_is_written_for_administrators_works(make_cluster: Callable[[State], Cluster], states: States, packages: Path) -> None:
    cluster = make_cluster(states.booted)
    machines = [cluster.machine() for _ in range(3)]
    host, node, _ = machines
    for machine in (host, node):
        machine.copy(packages, "/root/packages")
    let_in(host, machines, states.image.key)
    for blocks in pages().values():
        for block in blocks:
            if block.is_machine:
                execute(block, host, host if block.place == "controller" else node)
    ready = {name: shown["pool"] for name, shown in cluster.nodes().items() if shown["state"] == "READY"}
    assert ready == {host.name: "research", node.name: "default"}  # the third was removed again
