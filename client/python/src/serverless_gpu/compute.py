# SPDX-License-Identifier: Apache-2.0
"""Names common GPU types, and nodes with a number of them, for callers that prefer a constant to a string."""

from __future__ import annotations

from enum import Enum

from serverless_gpu.exceptions import GPUTypeError

#: Databricks' spellings.
_DATABRICKS_TYPES = {"h100_80gb": "H100", "a10g": "A10"}


class GPUType(str, Enum):
    """The values for `gpu_type` of `distributed`; any other type that a node has can be given as a string.

    Letter case does not matter: `GPUType("h100") is GPUType.H100`, and `GPUType.H100 == "h100"`. Databricks' spellings "h100_80gb" and
    "a10g" are accepted, too. Other texts raise GPUTypeError, which is a ValueError. As the key of a dict, a member is found only by its
    text in the member's own spelling.
    """

    A10 = "A10"
    A100 = "A100"
    B200 = "B200"
    B300 = "B300"
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
    def _missing_(cls, value: object) -> GPUType:
        word = _DATABRICKS_TYPES.get(value.lower(), value) if isinstance(value, str) else value
        for member in cls:
            if member == word:
                return member
        raise GPUTypeError(f"{value!r} is none of {', '.join(cls.values())}")

    @classmethod
    def values(cls) -> list[str]:
        """Return the texts of all members."""
        return [member.value for member in cls]

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of all members, in lower case."""
        return [member.name.lower() for member in cls]


class AcceleratorType(str, Enum):
    """The values for `accelerator_type` of `databricks.air.distributed`: a number of GPUs of a type per node. Strings name other ones."""

    GPU_1xA10 = "GPU_1xA10"
    GPU_1xH100 = "GPU_1xH100"
    GPU_8xH100 = "GPU_8xH100"
    GPU_8xB300 = "GPU_8xB300"

    @classmethod
    def _missing_(cls, value: object) -> AcceleratorType:
        for member in cls:
            if isinstance(value, str) and member.value.lower() == value.lower():
                return member
        raise GPUTypeError(f"{value!r} is none of {', '.join(cls.values())}")

    @property
    def gpu_type(self) -> GPUType:
        """The type of its GPUs."""
        return GPUType(self.value.rpartition("x")[2])

    @property
    def gpus_per_node(self) -> int:
        """The number of GPUs of each node."""
        return int(self.value.removeprefix("GPU_").partition("x")[0])

    @classmethod
    def values(cls) -> list[str]:
        """Return the texts of all members."""
        return [member.value for member in cls]

    @classmethod
    def from_gpu_type(cls, gpu_type: GPUType, num_accelerators: int) -> AcceleratorType:
        """Return the nodes for this many GPUs of a type: the smallest that has enough, else the largest. Raises GPUTypeError for other
        types.
        """
        fitting = sorted((member for member in cls if member.gpu_type == gpu_type), key=lambda member: member.gpus_per_node)
        if not fitting:
            raise GPUTypeError(f"no accelerator type has {gpu_type} GPUs")
        return next((member for member in fitting if member.gpus_per_node >= num_accelerators), fitting[-1])
