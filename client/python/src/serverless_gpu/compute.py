# SPDX-License-Identifier: Apache-2.0
"""Names of common GPU types, for those who prefer a constant to a string."""

from __future__ import annotations

from enum import Enum


class GPUType(str, Enum):
    """What `gpu_type` of `distributed` takes; any other type that a node has can be given as a string.

    Letter case does not matter: `GPUType("h100") is GPUType.H100`, and `GPUType.H100 == "h100"`. As the key of a dict, only the text in
    the member's own spelling finds it.
    """

    A10 = "A10"
    A100 = "A100"
    B200 = "B200"
    H100 = "H100"
    H200 = "H200"
    L4 = "L4"
    L40S = "L40S"

    def __eq__(self, other: object) -> bool:
        return self.value.upper() == other.upper() if isinstance(other, str) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __str__(self) -> str:
        return self.value

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

    @classmethod
    def _missing_(cls, value: object) -> GPUType | None:
        return next((member for member in cls if member == value), None)
