# SPDX-License-Identifier: Apache-2.0
"""What tells JAX of the gang, so that jax.distributed.initialize() needs no arguments.

The runner of functions and gpuctl_watch.py, beside which this file lies, call it once JAX is imported.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable


def tell(clusters: "Any", release: "Callable[[], None]") -> None:
    """Adds the gang to the kinds of clusters of which JAX takes what it is not told, before all others. `clusters` is the module
    jax._src.clusters; `release` lets go of MASTER_PORT, where this process listens there.
    """

    class Gang(clusters.ClusterEnv):  # type: ignore[misc, name-defined]
        name = "gpuctl"

        @classmethod
        def is_env_present(cls) -> bool:
            """Is asked before the coordinator of rank 0 binds MASTER_PORT by itself, which can only be while nothing listens there."""
            release()
            return True

        @classmethod
        def get_coordinator_address(cls, *args: object, **named: object) -> str:
            """For a rank alone: the address of a gang is in JAX_COORDINATOR_ADDRESS."""
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
            """The one GPU that is this process's; with one process a node, all are."""
            return int(os.environ["LOCAL_RANK"]) if "LOCAL_RANK" in os.environ else None

    kinds = clusters.ClusterEnv._cluster_types
    kinds.insert(0, kinds.pop())
