# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the controller at any moment of a delivery: what was acknowledged is told at least once, with one id for each event."""

from __future__ import annotations

import contextlib
import http.client
import random
import threading
from collections.abc import Callable
from pathlib import Path

from controller import Controller
from harness import Api, eventually
from paper_node import registration
from receiver import Receiver

SETTINGS = ["env", "GPUCTL_WEBHOOK_NETWORKS=127.0.0.0/8", "GPUCTL_WEBHOOK_PAUSE=10ms"]


def register_node(api: Api, controller: Controller) -> None:
    """One of paper, so that jobs have somewhere to wait for."""
    secret = api.post("/v1/tokens", {"role": "node", "owner": "nodes"})["secret"]
    controller.api(secret).post("/v1/agent/register", registration("paper", "boot", ["cpu"]))


def ask_until_killed(api: Api, acknowledged: set[tuple[str, str]]) -> None:
    """Submit and cancel until the controller is gone; note what it has said is done."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        while True:
            job = api.submit(["true"], hold=True)
            acknowledged.add((job, "submitted"))
            api.post(f"/v1/jobs/{job}/cancel")
            acknowledged.add((job, "canceled"))


def test_events_are_told_at_least_once_whenever_the_controller_is_killed(tmp_path: Path, volume: Callable[[int, int], int]) -> None:
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    controller = Controller(tmp_path / "controller")
    receiver = Receiver(lambda document: chance.choice([200, 200, 200, 500]))
    acknowledged: set[tuple[str, str]] = set()
    made = ""
    try:
        for _ in range(volume(6, 60)):
            assert controller.start(SETTINGS), controller.said()
            if not made:
                hook = {"url": receiver.url, "events": ["submitted", "canceled"]}
                made = controller.api().post("/v1/webhooks", hook)["id"]
                register_node(controller.api(), controller)
            timer = threading.Timer(chance.uniform(0.02, 0.4), controller.kill)
            timer.start()
            ask_until_killed(controller.api(), acknowledged)
            timer.join()
        receiver.answer = lambda document: 200
        assert controller.start(SETTINGS), controller.said()
        api = controller.api()
        eventually(lambda: not api.get(f"/v1/webhooks/{made}/deliveries?state=PENDING")["deliveries"], "all deliveries")
    finally:
        controller.kill()
        receiver.close()
    told = {(d["event"]["job_id"], d["event"]["kind"]): d["id"] for d in receiver.documents()}
    assert acknowledged <= set(told), f"seed {seed}: {acknowledged - set(told)} were not told"
    assert len(set(told.values())) == len(told), f"seed {seed}: one id for several events"
    for document in receiver.documents():
        assert told[document["event"]["job_id"], document["event"]["kind"]] == document["id"], f"seed {seed}"
    assert len(acknowledged) > 10
