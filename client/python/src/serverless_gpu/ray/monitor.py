# SPDX-License-Identifier: Apache-2.0
"""Reads Ray's system metrics of one node from its Prometheus exporter, and logs them as metrics of the job and to MLflow.

Ray splits each metric by process, worker and version. This module adds the samples up by the labels that mean something to a person, so
that a job has some dozens of metrics and not thousands.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

from serverless_gpu import runtime

READ_S = 5.0
BATCH = 1000  # metrics that MLflow takes at once

# Metric -> labels by which it is split. GLOBAL metrics are the same on all nodes, and the head alone logs them.
GLOBAL: dict[str, tuple[str, ...]] = {
    "ray_tasks": ("State",),
    "ray_actors": ("State",),
    "ray_placement_groups": ("State",),
    "ray_cluster_active_nodes": ("node_type",),
    "ray_cluster_failed_nodes": ("node_type",),
    "ray_cluster_pending_nodes": ("node_type",),
}
LOCAL: dict[str, tuple[str, ...]] = {
    "ray_resources": ("Name", "State"),
    "ray_object_store_memory": ("Location",),
    "ray_component_cpu_percentage": ("Component",),
    "ray_component_uss_mb": ("Component",),
    "ray_node_cpu_utilization": (),
    "ray_node_mem_used": (),
    "ray_node_gpus_utilization": ("GpuIndex",),
    "ray_node_gram_used": ("GpuIndex",),
    "ray_node_disk_io_read_speed": (),
    "ray_node_disk_io_write_speed": (),
    "ray_node_network_receive_speed": (),
    "ray_node_network_send_speed": (),
}

_SAMPLE = re.compile(r"^([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})?\s+(\S+)")
_LABEL = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')


def samples(text: str) -> Iterator[tuple[str, dict[str, str], float]]:
    """Yield (metric, labels, value) for each line of Prometheus' text format that has a finite value."""
    for line in text.splitlines():
        found = _SAMPLE.match(line)
        if found is None:
            continue
        try:
            value = float(found.group(3))
        except ValueError:
            continue
        if abs(value) < float("inf"):
            labels = {name: re.sub(r"\\(.)", r"\1", text) for name, text in _LABEL.findall(found.group(2) or "")}
            yield found.group(1), labels, value


def _part(word: str) -> str:
    """Return a label's value as a part of a name that MLflow accepts."""
    return re.sub(r"[^A-Za-z0-9_. -]", "_", word) or "none"


class RayMetricsMonitor:
    """Samples the metrics of one Ray node in its own thread, from `start` to `finish`.

    run_id               of MLflow; None takes the active run of this process, if there is one
    is_head_node         whether to log the metrics of the whole cluster, too
    node_ip, ray_node_id     appear in the names of the node's own metrics
    metrics_export_port  where the node's exporter listens
    sampling_interval    seconds between two samples

    Names are `system/<metric>/<labels>` for metrics of the whole cluster, and `system/<node_ip>/ray_node_<id>/<metric>/<labels>` for the
    node's own. They go to `serverless_gpu.runtime.log_metrics`, and to MLflow in batches if it can be imported and a run is known. The
    monitor ends when that run is no longer RUNNING. The controller copies the metrics to the attempt's own run. A sample that cannot be
    read or logged is left out.
    """

    def __init__(
        self,
        run_id: str | None,
        is_head_node: bool,
        node_ip: str,
        ray_node_id: str,
        metrics_export_port: int,
        sampling_interval: float = 10,
    ):
        self.run_id = run_id
        self.is_head_node = is_head_node
        self.node_ip = node_ip
        self.ray_node_id = ray_node_id
        self.metrics_export_port = metrics_export_port
        self.sampling_interval = sampling_interval
        self._step = 0
        self._warned = False
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to sample."""
        os.environ["MLFLOW_SYSTEM_METRICS_NODE_ID"] = self.node_ip
        self._thread = threading.Thread(target=self._run, name="ray-metrics", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Take a last sample and end."""
        self._ends.set()
        if self._thread is not None:
            self._thread.join(2 * READ_S)
            self._thread = None

    def _run(self) -> None:
        ended = False
        while not ended:
            ended = self._ends.wait(self.sampling_interval)
            try:
                ended = not self.sample() or ended
            except Exception as error:  # a failed sample must not fail the job
                self._warn(error)

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            print(f"gpuctl: a sample of Ray's metrics is left out on {self.node_ip}: {type(error).__name__}: {error}", file=sys.stderr)
            self._warned = True

    def sample(self) -> bool:
        """Read and log once. Return False if the MLflow run has ended."""
        metrics = self.named(self.read())
        step, self._step = self._step, self._step + 1
        runtime.log_metrics(metrics, step)
        return self._log_to_mlflow(metrics, step)

    def read(self) -> str:
        """Return the text of the exporter."""
        host = f"[{self.node_ip}]" if ":" in self.node_ip else self.node_ip
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a node of the cluster is not behind a proxy
        with opener.open(f"http://{host}:{self.metrics_export_port}/metrics", timeout=READ_S) as reply:
            return str(reply.read().decode(errors="replace"))

    def named(self, text: str) -> dict[str, float]:
        """Return the metrics in the exporter's text, by the names under which they are logged."""
        own = f"system/{_part(self.node_ip)}/ray_node_{self.ray_node_id}"
        kinds = [("system", GLOBAL), (own, LOCAL)] if self.is_head_node else [(own, LOCAL)]
        sums: dict[str, float] = {}
        for metric, labels, value in samples(text):
            for prefix, wanted in kinds:
                if metric in wanted:
                    parts = [prefix, metric, *(_part(labels[label]) for label in wanted[metric] if label in labels)]
                    name = "/".join(parts)[: runtime.NAME_CHARACTERS]
                    sums[name] = sums.get(name, 0.0) + value
        return sums

    # --- MLflow ---

    def _log_to_mlflow(self, metrics: dict[str, float], step: int) -> bool:
        """Log the metrics to MLflow. Return False if the run has ended."""
        if not (self.run_id or os.environ.get("MLFLOW_TRACKING_URI")):
            return True
        try:
            mlflow: Any = importlib.import_module("mlflow")
            entities: Any = importlib.import_module("mlflow.entities")
        except ImportError:
            return True
        run_id = self.run_id or self._active_run(mlflow)
        if run_id is None or run_id == os.environ.get("GPUCTL_RUN_ID"):
            return True
        client = mlflow.MlflowClient()
        if client.get_run(run_id).info.status != "RUNNING":
            return False
        now_ms = int(time.time() * 1000)
        rows = [entities.Metric(name, value, now_ms, step) for name, value in metrics.items()]
        for first in range(0, len(rows), BATCH):
            client.log_batch(run_id, metrics=rows[first : first + BATCH])
        return True

    @staticmethod
    def _active_run(mlflow: Any) -> str | None:
        run = mlflow.active_run()
        return None if run is None else str(run.info.run_id)
