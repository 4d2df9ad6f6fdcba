# SPDX-License-Identifier: Apache-2.0
"""Runs one node's part of a Ray job. Node rank 0 starts Ray's head, waits until all nodes have joined, runs the function as the driver in
this process, and tells the other nodes when it has ended. The other nodes join and wait.

A node that finds another one gone waits 30 seconds before it reports that, so that the report of the first failed node comes first.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import select
import sys
import time
from typing import Any, Callable

from serverless_gpu.ray import meeting
from serverless_gpu.ray.monitor import RayMetricsMonitor
from serverless_gpu.ray.node import RayFailed, RayNode, credentials, version

WATCH_S = 1.0  # between two checks of Ray's process
GONE_S = 30.0  # in this time the failure of another node stops the job
COMPLETE_S = 60.0  # until Ray's own list of nodes has all joined nodes
PAUSE_S = 0.1


def run(call: Callable[[], Any], secret: str, metrics_interval_s: float | None) -> Any:
    """Return the value of the call on node rank 0, None on the other nodes."""
    os.environ.update(credentials(secret))  # Ray reads them on import
    version()
    node_rank = int(os.environ["NODE_RANK"])
    host, port = meeting.rendezvous()
    if node_rank == 0:
        return _head(call, meeting.Host(host, port, int(os.environ["NNODES"]), secret), secret, metrics_interval_s)
    _member(meeting.join(host, port, node_rank, secret), secret, metrics_interval_s)
    return None


def _gone(who: str) -> RayFailed:
    """Return the failure of another node, after the time in which that failure would have stopped this one."""
    time.sleep(GONE_S)
    return RayFailed(f"{who} of the Ray cluster is gone")


# --- node rank 0 ------------------------------------------------------------------------------------


def _head(call: Callable[[], Any], host: meeting.Host, secret: str, metrics_interval_s: float | None) -> Any:
    own = meeting.own_address(*meeting.rendezvous())
    node = RayNode.start(own, None, secret)
    try:
        os.environ["RAY_ADDRESS"] = node.address
        ports = _gather(host, node)
        connect()
        with contextlib.closing(host), monitored(_identify(ports, host), metrics_interval_s, True):
            try:
                return call()
            finally:
                sys.modules["ray"].shutdown()
                host.finish()
    finally:
        node.stop()


def _gather(host: meeting.Host, node: RayNode) -> dict[int, int]:
    """Return the metrics ports of the nodes by node rank, once Ray runs on all of them."""
    host.gather()
    ports = {0: node.metrics_port}
    try:
        for peer in host.peers.values():
            peer.send(address=node.address)
        for peer in host.peers.values():
            ports[peer.node_rank] = int(peer.receive(meeting.START_S)["metrics_port"])
    except meeting.PeerGone:
        raise _gone(f"node rank {peer.node_rank}") from None
    return ports


def connect() -> None:
    """Make this process a driver. The function's own ray.init(...) replaces the connection; ray.state exists, wherever Ray keeps it."""
    ray: Any = importlib.import_module("ray")
    original = ray.init
    original()

    @functools.wraps(original)
    def init(*args: Any, **kwargs: Any) -> Any:
        ray.init = original
        ray.shutdown()
        return original(*args, **kwargs)

    ray.init = init
    if not hasattr(ray, "state"):
        ray.state = sys.modules["ray.state"] = importlib.import_module("ray._private.state")


def _identify(ports: dict[int, int], host: meeting.Host) -> dict[str, Any]:
    """Wait until Ray lists all nodes, send each of the other nodes its row, and return the row of this node."""
    ray: Any = importlib.import_module("ray")
    end = time.monotonic() + COMPLETE_S
    while True:
        listed = {int(row["MetricsExportPort"]): row for row in ray.nodes() if row["Alive"]}
        if set(ports.values()) <= set(listed):
            break
        if time.monotonic() >= end:
            raise RayFailed(f"Ray lists {len(listed)} nodes, and {len(ports)} have joined")
        time.sleep(PAUSE_S)
    rows = {
        rank: {"ray_node_id": listed[port]["NodeID"], "node_ip": listed[port]["NodeManagerAddress"], "metrics_port": port}
        for rank, port in ports.items()
    }
    for peer in host.peers.values():
        with contextlib.suppress(meeting.PeerGone):  # the peer's failure ends the job
            peer.send(**rows[peer.node_rank])
    return rows[0]


@contextlib.contextmanager
def monitored(node: dict[str, Any], interval_s: float | None, is_head_node: bool) -> Any:
    """Log the node's metrics while the body runs; do nothing if `interval_s` is None."""
    if interval_s is None:
        yield
        return
    monitor = RayMetricsMonitor(
        os.environ.get("MLFLOW_RUN_ID"), is_head_node, node["node_ip"], node["ray_node_id"], node["metrics_port"], interval_s
    )
    monitor.start()
    try:
        yield
    finally:
        monitor.finish()


# --- the others -------------------------------------------------------------------------------------


def _member(head: meeting.Peer, secret: str, metrics_interval_s: float | None) -> None:
    try:
        address = head.receive(meeting.START_S)["address"]
        node = RayNode.start(meeting.own_address(*meeting.rendezvous()), address, secret)
        try:
            head.send(metrics_port=node.metrics_port)
            with monitored(head.receive(meeting.START_S), metrics_interval_s, False):
                while not select.select([head], [], [], WATCH_S)[0]:
                    node.check()
                head.receive(meeting.HELLO_S)
        finally:
            node.stop()
    except meeting.PeerGone:
        raise _gone("the head") from None
    finally:
        head.close()
