# SPDX-License-Identifier: Apache-2.0
"""Nodes fetch checkpoints that have left the controller's disk from the object store themselves."""

from __future__ import annotations

from collections.abc import Callable

from recorder import EXPIRED, Recorded
from test_checkpoint_objects import SIZE, await_move, begun, pieces, pieces_here, retry, train


def train_and_move(recorded: Recorded) -> tuple[str, str]:
    """A job whose checkpoint the store alone has, and the hash of its state."""
    job, state = train(recorded.cluster)
    await_move(recorded.cluster, job)
    recorded.controller.sent = 0
    return job, state


def test_a_checkpoint_goes_from_the_store_to_the_node(make_recorded: Callable[..., Recorded]) -> None:
    recorded = make_recorded(1, "--object-store-after", "1s")
    job, state = train_and_move(recorded)
    assert begun(recorded.cluster, retry(recorded.cluster, job)) == state
    fetched = recorded.store.asked("GET ", f"/checkpoints/{job}/pieces/", "X-Amz-Signature=")
    assert len(fetched) == len(pieces(recorded.s3, job)) > 1
    assert recorded.controller.sent < SIZE // 10
    assert not recorded.store.asked("GET ", f"prefix=some%2Fprefix%2Fcheckpoints%2F{job}")  # the controller asks for none
    assert not pieces_here(recorded.cluster, job)
    token = (recorded.cluster.folder / "node.token").read_text().strip()
    assert not any(token in head for head in fetched)
    assert "objects away" not in recorded.said()


def test_a_checkpoint_comes_from_the_controller_when_the_node_cannot_use_the_store(make_recorded: Callable[..., Recorded]) -> None:
    recorded = make_recorded(1, "--object-store-after", "1s")
    job, state = train_and_move(recorded)
    recorded.store.instead = [EXPIRED] * 2
    assert begun(recorded.cluster, retry(recorded.cluster, job)) == state
    assert recorded.controller.sent > SIZE
    assert recorded.said().count("objects away") == 1 and 'problem="it answers 403 AccessDenied"' in recorded.said()
    assert len(recorded.controller.asked("GET /v1/agent/checkpoints/pieces", "redirect=1")) == 2


def test_pieces_that_change_on_the_way_come_from_the_controller(make_recorded: Callable[..., Recorded]) -> None:
    recorded = make_recorded(1, "--object-store-after", "1s")
    job, state = train_and_move(recorded)
    recorded.store.spoils = True
    assert begun(recorded.cluster, retry(recorded.cluster, job)) == state
    assert recorded.controller.sent > SIZE
    assert "object damaged" in recorded.said() and "objects away" not in recorded.said()
