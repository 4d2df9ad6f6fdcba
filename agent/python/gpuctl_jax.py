# SPDX-License-Identifier: Apache-2.0
"""Tells JAX about the gang, so that jax.distributed.initialize() needs no arguments.

The runner of functions and gpuctl_watch.py, in the same folder, call it after the import of JAX.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def tell(clusters: "Any", release: "Callable[[], None]") -> None:
    """Add the gang to the cluster types from which JAX takes missing arguments, before all others.

    `clusters` is the module jax._src.clusters; `release` lets go of MASTER_PORT if this process listens on it.
    """

    class Gang(clusters.ClusterEnv):  # type: ignore[misc, name-defined]
        name = "gpuctl"

        @classmethod
        def is_env_present(cls) -> bool:
            """Called before the coordinator of rank 0 binds MASTER_PORT, which works only while nothing listens there."""
            release()
            return True

        @classmethod
        def get_coordinator_address(cls, *args: object, **named: object) -> str:
            """For a single rank; JAX_COORDINATOR_ADDRESS holds the address of a gang."""
            import socket

            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                return f"127.0.0.1:{free.getsockname()[1]}"

        @classmethod
        def get_process_count(cls) -> int:
            return int(os.environ["WORLD_SIZE"])

        @classmethod
        def get_process_id(cls) -> int:
            return int(os.environ["RANK"])

        @classmethod
        def get_local_process_id(cls) -> "int | None":
            """Return the one GPU of this process; None with one process a node, which uses all GPUs."""
            return int(os.environ["LOCAL_RANK"]) if "LOCAL_RANK" in os.environ else None

    kinds = clusters.ClusterEnv._cluster_types
    kinds.insert(0, kinds.pop())
