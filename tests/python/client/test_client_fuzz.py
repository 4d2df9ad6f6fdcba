# SPDX-License-Identifier: Apache-2.0
"""What the client reads of others, changed by chance: what is stored as results, what connects to a Ray job, event streams. tests/fuzz
does the same for C.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import math
import pickle
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from mutator import Mutator
from serverless_gpu._internal.api.controller import Controller
from serverless_gpu._internal.api.sse import EventParser
from serverless_gpu._internal.calls import results
from serverless_gpu._internal.pack import payload
from serverless_gpu.errors import ControllerError, ResultUnreadable
from serverless_gpu.ray import meeting

SEED = 20261128
executions = pytest.mark.parametrize("executions", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)])


# --- results ------------------------------------------------------------------------------------------------------------------

JOB, KEY = "abcdefghijklmnop", b"k" * 32


def sealed(data: bytes, *, key: bytes = KEY, job: str = JOB, rank: int = 0, kind: str = "value") -> bytes:
    """What a rank leaves."""
    seal = hmac.new(key, f"{job} {rank} {kind}\n".encode() + data, "sha256")
    return data + f"\ngpuctl-seal {seal.hexdigest()}\n".encode()


VALUES = [pickle.dumps(value, 5) for value in (None, [1.5, "x"], {"weights": bytes(300)}, "\ngpuctl-seal ")]
# all that somebody without the key can have seen: sealed values of other ranks, jobs, kinds and keys, and none of this row
FOREIGN = [
    *VALUES,
    *(sealed(data, rank=1) for data in VALUES),
    *(sealed(data, kind="exception") for data in VALUES),
    *(sealed(data, job="bbbbbbbbbbbbbbbb") for data in VALUES),
    *(sealed(data, key=b"") for data in VALUES),
    *(sealed(data, key=b"K" * 32) for data in VALUES),
]
OWN = [sealed(data) for data in VALUES]


class Stored(Controller):
    """A controller that has one blob, which it sends in pieces."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._store_away_until = math.inf  # no object store has it

    @contextlib.contextmanager
    def stream(self, *_: Any, **__: Any) -> Iterator[Any]:
        yield (self.data[at : at + 100] for at in range(0, len(self.data), 100))


@executions
def test_nothing_is_unpickled_but_what_the_calls_ranks_have_sealed(monkeypatch: pytest.MonkeyPatch, executions: int) -> None:
    opened: list[bytes] = []
    monkeypatch.setattr(payload, "load", lambda file: opened.append(file.read()))
    mutator = Mutator(SEED, FOREIGN + OWN)
    same = 0
    for number in range(executions):
        data = mutator.mutated()
        row = {"rank": 0, "kind": "value", "sha256": hashlib.sha256(data).hexdigest()}
        if number % 2:
            row["base64"] = base64.b64encode(data).decode()
        if data in OWN:
            same += 1
            results.value(Stored(data), JOB, row, KEY)
            assert opened == [data]
            opened.clear()
            continue
        with pytest.raises(ResultUnreadable, match="has no seal of this call's ranks"):
            results.value(Stored(data), JOB, row, KEY)
            pytest.fail(f"seed {SEED}, execution {number}: {data!r} was taken")
        assert opened == [], f"seed {SEED}, execution {number}: {data!r} was unpickled"
    assert same > 0  # so the changes are small enough to tell right from wrong


@executions
def test_a_result_that_its_row_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch, executions: int) -> None:
    monkeypatch.setattr(payload, "load", lambda _: pytest.fail("it was unpickled"))
    data = OWN[1]
    mutator = Mutator(SEED, [base64.b64encode(data)])
    right = hashlib.sha256(data).hexdigest()
    refused = 0
    for number in range(executions):
        encoded = mutator.mutated().decode("latin-1")
        row = {"rank": 0, "kind": "value", "sha256": right, "base64": encoded}
        with contextlib.suppress(ValueError):  # it may decode to the same
            if base64.b64decode(encoded) == data:
                continue
        refused += 1
        with pytest.raises((ControllerError, ResultUnreadable)):
            results.value(Stored(data), JOB, row, KEY)
            pytest.fail(f"seed {SEED}, execution {number}: {encoded!r} was taken")
    assert refused > executions // 2


# --- the nodes of a Ray job ---------------------------------------------------------------------------------------------------

SECRET = "5" * 64
HELLOS = [
    b'{"secret": "%s", "node_rank": 1}\n' % SECRET.encode(),
    b'{"node_rank": 2, "secret": "%s"}\n{"done": true}\n' % SECRET.encode(),
    b'{"secret": "no", "node_rank": 1}\n',
    b"GET / HTTP/1.1\r\n\r\n",
    b'{"secret": "\xc3\xa9", "node_rank": 1}\n',
    b'["secret", %s]\n' % (b"[" * 20_000),
]


@executions
def test_a_ray_job_admits_only_who_knows_its_secret_and_outlives_the_rest(executions: int) -> None:
    mutator = Mutator(SEED, HELLOS)
    admitted = 0
    for number in range(executions // 4):
        hello = mutator.mutated()
        host = meeting.Host("127.0.0.1", 0, 1, SECRET)  # which listens nowhere
        host._nodes = 3
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.sendall(hello[:100_000])
            theirs.shutdown(socket.SHUT_WR)
            try:
                host._admit(meeting.Peer(ours, -1))
            except Exception as error:
                pytest.fail(f"seed {SEED}, execution {number}: {hello[:200]!r}: {error!r}")
        for rank, peer in host.peers.items():
            assert rank in (1, 2) and peer.node_rank == rank
            assert SECRET.encode() in hello or b"\\u0035" in hello, f"seed {SEED}, execution {number}: {hello[:200]!r}"
            admitted += 1
    assert admitted > executions // 100


# --- event streams ------------------------------------------------------------------------------------------------------------

STREAMS = [
    b': a comment\n\nid: 1-0\ndata: {"text": "\xc3\xa4\\n"}\n\nevent: end\ndata: first\ndata:second\n\nretry: 5\n\nid\ndata\n\n',
    b"id: 7\r\ndata: a line\r\n\r\nevent: state\r\ndata: {}\r\n\r\n",
    b"data: 1\n\n\n\ndata\n\n\ndata: \r\n\n",
]


@executions
def test_an_event_stream_has_the_same_events_however_it_is_cut(executions: int) -> None:
    mutator = Mutator(SEED, STREAMS)
    for number in range(executions):
        stream = mutator.mutated()
        whole, parser = EventParser().feed(stream), EventParser()
        cuts = sorted(mutator.chance.randint(0, len(stream)) for _ in range(4))
        cut = [event for begin, end in zip([0, *cuts], [*cuts, len(stream)]) for event in parser.feed(stream[begin:end])]
        assert cut == whole, f"seed {SEED}, execution {number}: {stream!r} cut at {cuts}"
