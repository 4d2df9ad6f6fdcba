# SPDX-License-Identifier: Apache-2.0
"""Files of a volume as data for training, and checkpoints there, with the names of `databricks.air.data`. A volume is a folder that the
nodes have at the same path, such as a mount: nothing is copied.

The classes are those of serverless_gpu._internal.volumes, which imports torch; it is imported when one of them is asked for, not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from serverless_gpu._internal.volumes import DataLoader, UCVolumeDataset, UCVolumeReader, UCVolumeWriter

__all__ = ["Checkpointable", "DataLoader", "UCVolumeDataset", "UCVolumeReader", "UCVolumeWriter"]


@runtime_checkable
class Checkpointable(Protocol):
    """What can say where it is, and go on from there."""

    def state_dict(self) -> dict[str, Any]:
        """The state, as plain values."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up that state."""
        ...


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from serverless_gpu._internal import volumes

    return getattr(volumes, name)
