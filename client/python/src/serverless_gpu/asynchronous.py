# SPDX-License-Identifier: Apache-2.0
"""Handles several calls that were submitted with `run_async=True`, under the names of Databricks' package."""

from __future__ import annotations

from collections.abc import Iterable

from serverless_gpu._internal.calls.call import DistributedFunctionCall

__all__ = ["DistributedFunctionCall", "print_runs", "stop"]


def _each(runs: DistributedFunctionCall | Iterable[DistributedFunctionCall]) -> list[DistributedFunctionCall]:
    return [runs] if isinstance(runs, DistributedFunctionCall) else list(runs)


def print_runs(runs: DistributedFunctionCall | Iterable[DistributedFunctionCall]) -> None:
    """Print a line for each call: job and state."""
    for run in _each(runs):
        print(f"{run.job_id}  {run.status}")


def stop(runs: DistributedFunctionCall | Iterable[DistributedFunctionCall]) -> None:
    """Cancel each call that has not ended."""
    for run in _each(runs):
        if not run.done():
            run.cancel()
