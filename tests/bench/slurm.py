# SPDX-License-Identifier: Apache-2.0
"""The Slurm of tests/e2e/slurm_site.py with one node, for as long as a row needs it; everything is removed afterwards."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import slurm_site
from common import Skipped, folder, install
from slurm_site import Slurm


@contextlib.contextmanager
def running(cpus: int) -> Iterator[Slurm]:
    """A Slurm whose node has so many CPUs; Skipped where it cannot run."""
    if os.geteuid() == 0:
        install("slurm-wlm", "munge")
    with folder() as home:
        home.chmod(0o755)
        try:
            with slurm_site.running(home, ["bench"], cpus) as slurm:
                yield slurm
        except slurm_site.DoesNotRun as why:
            raise Skipped(str(why)) from None
