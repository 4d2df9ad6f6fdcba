# SPDX-License-Identifier: Apache-2.0
"""Offers files of a volume as training data, and checkpoints in a volume, under the names of `databricks.air.data`. A volume is a folder
that the nodes have at the same path, such as a mount: nothing is copied.

The classes are those of serverless_gpu._internal.volumes, which imports torch. It is imported when one of them is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from serverless_gpu._internal.volumes import DataLoader, UCVolumeDataset, UCVolumeReader, UCVolumeWriter

__all__ = ["Checkpointable", "DataLoader", "UCVolumeDataset", "UCVolumeReader", "UCVolumeWriter"]


@runtime_checkable
class Checkpointable(Protocol):
    """An object that can give its position as a state, and continue from one."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state, as plain values."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from that state."""
        ...


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from serverless_gpu._internal import volumes

    return getattr(volumes, name)
