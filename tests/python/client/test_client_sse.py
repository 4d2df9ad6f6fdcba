# SPDX-License-Identifier: Apache-2.0
"""The format of event streams."""

from __future__ import annotations

import json
import time

import pytest

from serverless_gpu._internal.api.sse import Event, EventParser

STREAM = (
    ": a comment\n\n"
    'id: 1-0\ndata: {"text": "ä\\n"}\n\n'
    "event: end\ndata: first\ndata:second\n\n"
    "retry: 5\n\n"
    "id\ndata\n\n"
)  # fmt: skip
EVENTS = [Event("message", '{"text": "ä\\n"}', "1-0"), Event("end", "first\nsecond", None), Event("message", "", "")]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_the_same_however_the_bytes_are_cut(size: int, line_end: str) -> None:
    data = STREAM.replace("\n", line_end).encode()
    parser = EventParser()
    found = [event for at in range(0, len(data), size) for event in parser.feed(data[at : at + size])]
    assert found == EVENTS


def test_an_event_without_its_empty_line_is_not_handed_out() -> None:
    parser = EventParser()
    assert parser.feed(b"data: half\n") == []
    assert parser.feed(b"\n") == [Event("message", "half", None)]


def test_a_million_events_take_some_seconds_at_most() -> None:
    lines = [
        f'id: 1.{n}\ndata: {{"rank": 0, "stream": "stdout", "attempt": 1, "offset": {n * 8}, "text": "{n:07}\\n"}}\n\n'
        for n in range(10_000)
    ]
    stream = "".join(lines).encode()
    parser = EventParser()
    took = 0.0
    count = 0
    for _ in range(100):
        begin = time.process_time()
        for at in range(0, len(stream), 4096):
            events = parser.feed(stream[at : at + 4096])
            count += len(json.loads(f"[{','.join([event.data for event in events])}]"))
        took += time.process_time() - begin
    assert count == 1_000_000
    assert took < 10, f"{took:.1f} s"


def test_one_event_of_many_pieces_takes_linear_time() -> None:
    def seconds(pieces: int) -> float:
        parser = EventParser()
        begin = time.process_time()
        parser.feed(b"data: ")
        for _ in range(pieces):
            assert parser.feed(b"x" * 64) == []
        (event,) = parser.feed(b"\n\n")
        assert len(event.data) == pieces * 64
        return time.process_time() - begin

    assert seconds(80_000) < 5
