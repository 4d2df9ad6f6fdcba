# SPDX-License-Identifier: Apache-2.0
"""Run Python functions on GPU machines that you own.

`@distributed(gpus=8, gpu_type="H100", remote=True)` decorates a function; `.distributed(...)` on it runs one copy per GPU and returns the
list of their values by global rank. Importing this package does no work: modules that need the network or pickles are imported on first
use.
"""

from __future__ import annotations

from serverless_gpu.launcher import distributed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["distributed"]
__version__ = "0.1.0"

_SUBMODULES = (
    "accelerate", "air", "asynchronous", "compute", "data", "errors", "exceptions", "launcher", "planner", "ray", "runtime",
    "torch_distributor",
)  # fmt: skip


def __getattr__(name: str) -> ModuleType:
    """Import the public submodules on first use."""
    if name in _SUBMODULES:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
