# SPDX-License-Identifier: Apache-2.0
"""Changes bytes by chance. The same seed makes the same changes."""

from __future__ import annotations

import random
from collections.abc import Sequence

MOST_STEPS = 3
WORDS = (b"", b"\0", b"\n", b"\xff" * 8, b"\x80\x05", b'"', b"{", b"[" * 5000, b"\\ud800", b"\xc3\xa9", b"1e999", b"-1", b"null")


class Mutator:
    """Makes new inputs of given ones."""

    def __init__(self, seed: int, inputs: Sequence[bytes]) -> None:
        self.chance = random.Random(seed)
        self.inputs = inputs

    def mutated(self) -> bytes:
        """Return one of the inputs with one to three changes, which may cancel each other out."""
        data = bytearray(self.chance.choice(self.inputs))
        for _ in range(self.chance.randint(1, MOST_STEPS)):
            self._change(data)
        return bytes(data)

    def _change(self, data: bytearray) -> None:
        at = self.chance.randint(0, len(data))
        end = min(len(data), at + self.chance.randint(1, 40))
        kind = self.chance.randrange(7)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << self.chance.randrange(8)
        elif kind == 1:
            del data[at:end]
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            data[at:at] = data[at:end]
        elif kind == 4:  # a piece of another input
            other = self.chance.choice(self.inputs)
            begin = self.chance.randint(0, len(other))
            data[at:end] = other[begin : begin + self.chance.randint(1, 200)]
        elif kind == 5:
            data[at : at if self.chance.random() < 0.5 else end] = self.chance.choice(WORDS)
        else:  # all of another input behind it
            data += self.chance.choice(self.inputs)
