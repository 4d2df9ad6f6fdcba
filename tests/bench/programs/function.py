# SPDX-License-Identifier: Apache-2.0
"""The notebook's side of the row `function`: run with a controller in GPUCTL_URL; prints its figures as one line of JSON.

round_trip_ms     a call of `lambda: None` on one rank until its value is here, over the same Python started by hand with nothing to do; in
                  turns
payload_mb_per_s  a call with an argument of 100 MB over one with an argument of no size: pickled, stored, fetched, laid and unpickled
import_ms         `import serverless_gpu` in a fresh interpreter, over an interpreter that imports nothing
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

from serverless_gpu import distributed

PAIRS = 40
PAYLOADS = 5
PAYLOAD_BYTES = 100_000_000


def milliseconds(action: Callable[[], object]) -> float:
    """How long one call of the action takes."""
    begin = time.perf_counter()
    action()
    return (time.perf_counter() - begin) * 1000


def python(code: str) -> Callable[[], object]:
    """This Python with some code, as a whole process."""
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


def medians(first: Callable[[], object], second: Callable[[], object], count: int) -> tuple[float, float]:
    """Both in turns, count times; the first pair does not count."""
    pairs = [(milliseconds(first), milliseconds(second)) for _ in range(count + 1)][1:]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def main() -> None:
    nothing = distributed(gpus=1, remote=True)(lambda: None)
    size = distributed(gpus=1, remote=True)(len)
    call, by_hand = medians(nothing.distributed, python("pass"), PAIRS)
    importing, bare = medians(python("import serverless_gpu"), python("pass"), PAIRS)
    small = statistics.median(milliseconds(lambda: size.distributed(b"")) for _ in range(PAYLOADS))
    large = statistics.median(milliseconds(partial(size.distributed, os.urandom(PAYLOAD_BYTES))) for _ in range(PAYLOADS))
    print(
        json.dumps(
            {
                "call_ms": round(call, 1),
                "by_hand_ms": round(by_hand, 1),
                "round_trip_ms": round(call - by_hand, 1),
                "payload_mb_per_s": round(PAYLOAD_BYTES / 1000 / (large - small)),
                "import_ms": round(importing - bare, 1),
            }
        )
    )


if __name__ == "__main__":
    main()
