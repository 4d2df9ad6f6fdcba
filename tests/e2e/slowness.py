# SPDX-License-Identifier: Apache-2.0
"""By how much this machine is slower than the one for which the tests' limits were set.

tests/run measures it (tests/slowness) and says so in GPUCTL_TEST_SLOWNESS. Every limit of a wait is made with `patient`; what a test
asserts of the programs themselves is not.
"""

from __future__ import annotations

import os

SLOWNESS = max(1.0, float(os.environ.get("GPUCTL_TEST_SLOWNESS") or 1))


def patient(seconds: float) -> float:
    """A limit of a wait, in seconds, on this machine."""
    return seconds * SLOWNESS
