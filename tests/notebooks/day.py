# SPDX-License-Identifier: Apache-2.0
"""A controller that has served a cluster for a day: its state is made by tests/sim/day, and its nodes go on beating."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

from harness import BUILD, PATIENCE, Api, Cluster, Problem, eventually

PROGRAM = BUILD / "tests" / "sim" / "day"
BEAT_S = 5

#: Of each type of GPU: memory in bytes, and watts.
MODELS = {"h100": (80 << 30, 700), "a100": (80 << 30, 400), "l4": (24 << 30, 72)}


class Day:
    """The controller, and what the simulated people and nodes of its day know: `jobs` by id, and how long GPUs were `held`."""

    def __init__(self, folder: Path, seed: int = 1):
        made = subprocess.run(
            [str(PROGRAM), "--seed", str(seed), "--output", str(folder / "controller")], stdout=subprocess.PIPE, check=True
        )
        told = json.loads(made.stdout)
        self.jobs: dict[str, Any] = told["people"]
        self.held: dict[str, dict[str, int]] = told["nodes"]["held"]
        self.nodes: list[dict[str, Any]] = told["nodes"]["nodes"]
        prices = ["--prices", "H100=2.5,A100=1.6,L4=0.5", "--currency", "EUR"]
        self.cluster = Cluster(folder, [], controller=["--beat", f"{BEAT_S}s", *prices])
        self.over = threading.Event()
        self.beats = 0

    @property
    def api(self) -> Api:
        return self.cluster.api

    def start(self) -> Day:
        self.cluster.start_controller()
        self.agents = Api(self.cluster.url, self.api.post("/v1/tokens", {"role": "node", "owner": "nodes"})["secret"])
        self.heart = threading.Thread(target=self._live, name="heart of all nodes")
        self.heart.start()
        silent = {node["name"] for node in self.nodes if node["silent"]}
        eventually(
            lambda: {node["name"] for node in self.api.get("/v1/nodes")["nodes"] if node["state"] == "SUSPECT"} == silent,
            "the silent nodes to be found out",
            4 * PATIENCE,
        )
        return self

    def _live(self) -> None:
        while True:
            self.beats += 1
            for node in self.nodes:
                if not node["silent"]:
                    with contextlib.suppress(OSError, http.client.HTTPException, Problem):
                        self.agents.post("/v1/agent/beat", self._beat(node))
            if self.over.wait(BEAT_S):
                return

    def _beat(self, node: dict[str, Any]) -> dict[str, Any]:
        memory, watts = MODELS[node["name"].partition("-")[0]]
        gpus = [
            {
                "busy_percent": busy, "memory_bytes": memory * busy // 110, "memory_total_bytes": memory,
                "power_mw": 10 * watts * (10 + busy * 9 // 10), "temperature_c": 31 + busy * 42 // 100,
            }
            for busy in node["busy"]
        ]  # fmt: skip
        machine = {"cpu_percent": 2 + max(node["busy"]) / 3, "memory_bytes": 96 << 30, "memory_total_bytes": 1 << 40, "gpus": gpus}
        who = {"node": node["name"], "boot_id": node["boot_id"], "agent_id": node["agent_id"]}
        return {**who, "seq": self.beats, "attempts": [], "machine": machine}

    def stop(self) -> None:
        """Its jobs stay as they are: no node would end them."""
        self.over.set()
        self.heart.join()
        assert self.cluster.controller.kill(signal.SIGTERM) == 0, self.cluster.controller.said()
