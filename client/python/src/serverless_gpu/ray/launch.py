# SPDX-License-Identifier: Apache-2.0
"""The decorator for Ray: uses `distributed` with one rank per node, and wraps the function in the start of a Ray cluster."""

from __future__ import annotations

import functools
import secrets

from serverless_gpu.launcher import DistributedFunction, distributed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

SECRET_BYTES = 32


class ClusterTask:
    """The object that is sent to the nodes: the function and the data of its cluster. A call of it runs one node's part of the job."""

    __wrapped__: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], metrics_interval_s: float | None):
        functools.update_wrapper(self, function)
        self.metrics_interval_s = metrics_interval_s
        self.secret = secrets.token_hex(SECRET_BYTES)  # sent to all nodes with the function, and to nobody else

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Start Ray on this node; call the function on node rank 0, wait for its end on the other nodes."""
        from serverless_gpu.ray import cluster

        return cluster.run(functools.partial(self.__wrapped__, *args, **kwargs), self.secret, self.metrics_interval_s)


class RayFunction:
    """A function that runs as the driver of a Ray cluster by `.distributed(...)`, and in this process by a plain call."""

    __wrapped__: Callable[..., Any]
    __name__: str
    __qualname__: str

    def __init__(
        self, function: Callable[..., Any], decorate: Callable[[Any], DistributedFunction[..., Any]], metrics_interval_s: float | None
    ):
        functools.update_wrapper(self, function)
        self._decorate = decorate
        self._metrics_interval_s = metrics_interval_s

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function in this process; it then has to start Ray itself."""
        return self.__wrapped__(*args, **kwargs)

    def distributed(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function once, with these arguments, as the driver of a Ray cluster over all nodes of the job.

        Returns one item per node, the driver's value first and None for every other. Raises the errors of `distributed`.
        """
        return self._decorate(ClusterTask(self.__wrapped__, self._metrics_interval_s)).distributed(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> RayFunction:
        """Return the method bound to its object, which is sent with it."""
        if instance is None:
            return self
        bound = functools.update_wrapper(functools.partial(self.__wrapped__, instance), self.__wrapped__)
        del bound.__wrapped__  # its signature has one more argument
        return RayFunction(bound, self._decorate, self._metrics_interval_s)

    def __repr__(self) -> str:
        return f"<ray_launch {getattr(self.__wrapped__, '__qualname__', self.__wrapped__)}>"


def ray_launch(
    gpus: int, gpu_type: str | None = None, remote: bool = False, *, metrics: bool | float | None = None, **options: Any
) -> Callable[[Callable[..., Any]], RayFunction]:
    """Make a function that drives a Ray cluster: `@ray_launch(gpus=16, gpu_type="A10", remote=True)`.

    gpus       how many GPUs the cluster has, the total over all nodes; on nodes without GPUs, how many CPUs
    gpu_type, remote    as in `distributed`
    metrics    True: each node logs Ray's system metrics every 10 seconds, see RayMetricsMonitor; False: none; a number: this many seconds
               apart; None: as True with remote=True, else as False
    options    all others of `distributed` except launch_mode, which is "node": one rank per node runs Ray

    The function needs no ray.init(): it is connected when it starts. Its own ray.init(...) replaces that connection. The nodes' Python
    needs Ray: ray, or ray[default] for metrics, ray.util.state and Ray's dashboard, whose address ray.init() returns. With remote=True it
    has the packages of this Python, or those of `requirements`. Raises TypeError and ValueError for wrong options.
    """
    if callable(gpus):
        raise TypeError("ray_launch takes options: write @ray_launch(gpus=1) over the function")
    if "launch_mode" in options:
        raise TypeError("ray_launch sets launch_mode itself: one rank a node runs Ray")
    if gpus == 0:
        raise ValueError("gpus must be at least 1, it is 0: give how many GPUs the Ray cluster has, or on nodes without GPUs how many CPUs")
    interval_s = _interval_s(remote is True if metrics is None else metrics)
    decorate = distributed(gpus, gpu_type, remote, launch_mode="node", **options)

    def launch(function: Callable[..., Any]) -> RayFunction:
        if isinstance(function, (DistributedFunction, RayFunction)):
            raise TypeError(f"{function!r} is distributed already: decorate it once")
        if not callable(function):
            raise TypeError(f"ray_launch decorates a function, and {function!r} is none")
        return RayFunction(function, decorate, interval_s)

    return launch


def _interval_s(metrics: Any) -> float | None:
    """Return the seconds between two samples; None for no metrics."""
    if isinstance(metrics, bool):
        return 10.0 if metrics else None
    if not isinstance(metrics, (int, float)):
        raise TypeError(f"metrics must be True, False or seconds, not {metrics!r}")
    if not metrics > 0:
        raise ValueError(f"metrics must be more than 0 seconds apart, it is {metrics!r}")
    return float(metrics)
