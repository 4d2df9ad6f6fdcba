# SPDX-License-Identifier: Apache-2.0
"""Parses the format of event streams: bytes in, whole events out. The callers keep the connections and interpret the events."""

from __future__ import annotations

from typing import NamedTuple


class Event(NamedTuple):
    """One event; `id` is None if the event has none of its own."""

    name: str
    data: str
    id: str | None


def _parse(block: str) -> Event | None:
    """Return the event of these lines; None if it has no data, as a comment has none."""
    first, middle, rest = block.partition("\ndata: ")
    if middle and first.startswith("id: ") and "\n" not in first and "\n" not in rest:  # a line of output: there may be millions
        return Event("message", rest, first[4:])
    name = "message"
    event_id = None
    data: str | None = None
    for line in block.split("\n"):
        field, _, value = line.partition(":")
        if value[:1] == " ":
            value = value[1:]
        if field == "data":
            data = value if data is None else f"{data}\n{value}"
        elif field == "id":
            event_id = value
        elif field == "event":
            name = value
    return None if data is None else Event(name, data, event_id)


class EventParser:
    """Parses the bytes of one connection. A line ends with LF or CR LF. Time is linear in the bytes, however they are cut."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._carriage = b""  # a CR at the end of the last piece: the next byte decides whether it belongs to a CR LF

    def feed(self, piece: bytes) -> list[Event]:
        """Return the events that this piece completes; the empty line after an event completes it."""
        if self._carriage or b"\r" in piece:
            piece = self._carriage + piece
            self._carriage = piece[-1:] if piece.endswith(b"\r") else b""
            piece = piece[: len(piece) - len(self._carriage)].replace(b"\r\n", b"\n")
        start = max(0, len(self._buffer) - 1)
        self._buffer += piece
        end = self._buffer.rfind(b"\n\n", start)
        if end < 0:
            return []
        blocks = self._buffer[:end].decode("utf-8", "replace").split("\n\n")
        del self._buffer[: end + 2]
        return [event for event in map(_parse, blocks) if event is not None]
