# SPDX-License-Identifier: Apache-2.0
"""Names of common GPU types, for those who prefer a constant to a string."""

from __future__ import annotations

from enum import Enum


class GPUType(str, Enum):
    """What `gpu_type` of `distributed` takes; any other type that a node has can be given as a string."""

    A10 = "A10"
    A100 = "A100"
    H100 = "H100"
    H200 = "H200"
    L4 = "L4"
    L40S = "L40S"
