# SPDX-License-Identifier: Apache-2.0
"""mpi4py: a sum over all ranks, and where each of them is."""

from __future__ import annotations

import os

from mpi4py import MPI


def main() -> None:
    world = MPI.COMM_WORLD
    total = world.allreduce(world.rank + 1)
    os.write(1, f"mpi {world.rank} {world.size} {os.environ['GPUCTL_NODE_RANK']} {total} {os.environ.get('RANK')}\n".encode())


if __name__ == "__main__":
    main()
