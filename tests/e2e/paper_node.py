# SPDX-License-Identifier: Apache-2.0
"""A node of paper: it speaks the agents' protocol, beats, and does nothing else than what a test has it say.

All of them are on one host: a gang over hosts needs addresses that this machine may not have.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import threading
from collections.abc import Callable
from typing import Any

from harness import Api, Cluster, Problem, eventually


def registration(name: str, boot_id: str, types: list[str]) -> dict[str, Any]:
    """What an agent with CPU slots of these types says when it registers."""
    return {
        "name": name,
        "boot_id": boot_id,
        "host_id": hashlib.sha256(b"paper").hexdigest(),
        "version": "0.1.0",
        "address": "127.0.0.1",
        "slots": True,
        "isolation": "none",
        "devices": [{"index": i, "uuid": f"slot-{i}", "type": kind, "memory_bytes": 0} for i, kind in enumerate(types)],
        "attempts": [],
    }


class PaperNode:
    """Registers with CPU slots, whatever they are called, and beats in a thread of its own until it is closed. Without a token of its own
    it has one that is good for all nodes.
    """

    def __init__(self, cluster: Cluster, name: str, slots: int, types: list[str] | None = None, token: str | None = None):
        self.cluster = cluster
        self.name = name
        self.boot_id = f"boot-of-{name}"
        self.slots = slots
        self.types = types or ["cpu"] * slots
        self.api = Api(cluster.url, token or cluster.user("paper", role="node").token)
        self.over = threading.Event()
        self.seq = 0
        self.register()
        self.heart = threading.Thread(target=self.beat, name=f"heart of {name}")
        self.heart.start()

    def who(self) -> dict[str, Any]:
        return {"node": self.name, "boot_id": self.boot_id}

    def register(self) -> None:
        self.api.post("/v1/agent/register", registration(self.name, self.boot_id, self.types[: self.slots]))

    def beat(self) -> None:
        """A controller that is being started anew is asked again."""
        while not self.over.wait(0.3):
            self.seq += 1
            with contextlib.suppress(OSError, http.client.HTTPException, Problem):
                self.api.post("/v1/agent/beat", {**self.who(), "seq": self.seq, "attempts": []})

    def close(self) -> None:
        self.over.set()
        self.heart.join()

    def poll(self) -> Any:
        """All that the node should do, at once: as an agent asks that has just started."""
        return self.api.post("/v1/agent/poll", {**self.who(), "version": 0})

    def poll_after(self, version: int) -> Any:
        """The same when it is newer than that."""
        return self.api.post("/v1/agent/poll", {**self.who(), "version": version})

    def until(self, condition: Callable[[Any], Any], what: str) -> Any:
        """The first reply to a poll of which that is true."""

        def asked() -> Any:
            reply = self.poll()
            return reply if condition(reply) else None

        return eventually(asked, f"{self.name} {what}")

    def staging(self) -> Any:
        """The one thing that the node is told to get ready."""
        stagings = self.until(lambda reply: reply["stagings"], "to be told to get something ready")["stagings"]
        assert len(stagings) == 1, stagings
        return stagings[0]

    def say(self, key: str, state: str, **more: Any) -> Any:
        return self.api.post("/v1/agent/staging", {**self.who(), "key": key, "state": state, **more})
