# SPDX-License-Identifier: Apache-2.0
"""Ray's part of the client without Ray: the decorator, how nodes meet, what Ray is started with, and its metrics."""

from __future__ import annotations

import http.server
import io
import os
import sys
import threading
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serverless_gpu import distributed, runtime
from serverless_gpu.ray import RayMetricsMonitor, cluster, meeting, node, ray_launch

SECRET = "a" * 64

EXPOSITION = """\
# HELP ray_tasks Current number of tasks by state.
# TYPE ray_tasks gauge
ray_tasks{Component="core_worker",Name="f",State="FINISHED",WorkerId="1"} 3.0
ray_tasks{Component="core_worker",Name="g",State="FINISHED",WorkerId="2"} 4.0
ray_tasks{Name="f",State="RUNNING"} 1.0 1700000000000
ray_resources{Name="CPU",State="USED"} 1.5
ray_component_uss_mb{Component="ray::a {x}, \\"y\\"",pid="7"} 20.0
ray_node_mem_used{ip="10.0.0.2"} 1e9
ray_node_disk_io_read_speed{ip="10.0.0.2"} NaN
ray_node_cpu_count 8.0
no sample at all
"""


def monitor_of(head: bool, port: int = 1, run_id: str | None = None, interval_s: float = 0.01, ip: str = "127.0.0.1") -> RayMetricsMonitor:
    return RayMetricsMonitor(run_id, head, ip, "f00", port, interval_s)


# --- the decorator ------------------------------------------------------------------------------------------------------------


def test_a_plain_call_runs_in_the_own_process() -> None:
    @ray_launch(gpus=16, gpu_type="A10", remote=True)
    def drive(number: int) -> int:
        """Say who it is."""
        return number + os.getpid()

    assert drive(1) == 1 + os.getpid() and drive.__name__ == "drive" and drive.__doc__ == "Say who it is."


@pytest.mark.parametrize(
    ("options", "error", "word"),
    [
        ({"gpus": 0}, ValueError, "gpus"),
        ({"gpus": 1, "launch_mode": "process"}, TypeError, "launch_mode"),
        ({"gpus": 1, "metrics": 0}, ValueError, "metrics"),
        ({"gpus": 1, "metrics": "often"}, TypeError, "metrics"),
        ({"gpus": 1, "colour": "red"}, TypeError, "colour"),
        ({"gpus": print}, TypeError, "ray_launch"),
    ],
)
def test_an_option_that_cannot_be_is_refused_where_it_is_written(options: dict[str, Any], error: type[Exception], word: str) -> None:
    with pytest.raises(error, match=word):
        ray_launch(**options)


@pytest.mark.parametrize(
    ("options", "seconds"),
    [({"remote": True}, 10.0), ({}, None), ({"remote": True, "metrics": False}, None), ({"metrics": True}, 10.0), ({"metrics": 2}, 2.0)],
)
def test_metrics_are_logged_on_any_nodes_unless_they_are_not_wanted(options: dict[str, Any], seconds: float | None) -> None:  # P10
    assert ray_launch(gpus=1, **options)(print)._metrics_interval_s == seconds


def test_a_function_is_decorated_once() -> None:
    @distributed(gpus=1)
    def train() -> None: ...

    with pytest.raises(TypeError, match="once"):
        ray_launch(gpus=1)(train)


def test_arguments_are_checked_before_anything_is_sent(clean: Path) -> None:
    @ray_launch(gpus=1)
    def drive(number: int) -> int:
        return number

    with pytest.raises(TypeError, match=r"drive\(\).*'number'"):
        drive.distributed()


def test_each_call_has_a_secret_of_its_own() -> None:
    from serverless_gpu.ray.launch import ClusterTask

    secrets = {ClusterTask(print, None).secret for _ in range(3)}
    assert len(secrets) == 3 and all(len(secret) == 64 for secret in secrets)


# --- how nodes meet -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def host() -> Iterator[tuple[meeting.Host, int]]:
    """Node rank 0 of two, and its port."""
    side = meeting.Host("127.0.0.1", 0, 2, SECRET)
    assert side._listener is not None
    yield side, side._listener.getsockname()[1]
    side.close()


def test_who_comes_before_all_are_there_waits_and_a_stranger_is_sent_away(host: tuple[meeting.Host, int]) -> None:
    side, port = host
    stranger = meeting.join("127.0.0.1", port, 1, "b" * 64)
    unknown = meeting.join("127.0.0.1", port, 5, SECRET)
    guest = meeting.join("127.0.0.1", port, 1, SECRET)
    side.gather()
    assert list(side.peers) == [1]
    for refused in (stranger, unknown):
        with pytest.raises(meeting.PeerGone):
            refused.receive(5)
        refused.close()
    side.peers[1].send(address="10.0.0.1:6379")
    guest.send(metrics_port=7)
    assert guest.receive(5) == {"address": "10.0.0.1:6379"} and side.peers[1].receive(5) == {"metrics_port": 7}
    side.finish()
    assert guest.receive(5) == {"done": True}
    with pytest.raises(meeting.PeerGone):
        guest.receive(5)
    guest.close()


def test_a_peer_that_says_nothing_is_waited_for_and_no_longer(host: tuple[meeting.Host, int]) -> None:
    side, port = host
    guest = meeting.join("127.0.0.1", port, 1, SECRET)
    side.gather()
    with pytest.raises(TimeoutError, match="node rank 1"):
        side.peers[1].receive(0.01)
    guest.close()


def test_the_one_that_never_came_is_named(host: tuple[meeting.Host, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "START_S", 0.01)
    with pytest.raises(TimeoutError, match="node rank 1 did not come"):
        host[0].gather()


# --- what Ray is started with -------------------------------------------------------------------------------------------------


def test_ray_counts_the_gpus_of_the_job_and_on_cpu_slots_one_cpu_a_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPROC_PER_NODE", "3")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert node.resources()[:2] == ["--num-gpus=0", "--num-cpus=3"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5,7")
    gpus, cpus, _ = node.resources()
    assert gpus == "--num-gpus=3" and int(cpus.split("=")[1]) >= 3


def test_the_object_store_is_a_share_and_never_less_than_ray_takes() -> None:
    assert node.store_bytes(1e-9) == node.STORE_LEAST_BYTES
    assert node.STORE_LEAST_BYTES <= node.store_bytes(0.5) <= node.store_bytes(1.0)


def test_workers_of_ray_inherit_no_rank_and_the_way_to_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "MASTER_PORT", "TORCHELASTIC_ERROR_FILE", "GPUCTL_RESULT_DIR", "RAY_ADDRESS"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("GPUCTL_MODULES", "/modules.zip")
    monkeypatch.setenv("PYTHONPATH", "/own")
    inherited = node.environment(SECRET)
    assert not {"RANK", "WORLD_SIZE", "MASTER_PORT", "TORCHELASTIC_ERROR_FILE", "GPUCTL_RESULT_DIR", "RAY_ADDRESS"} & set(inherited)
    assert inherited["PYTHONPATH"] == "/modules.zip:/own" and inherited["RAY_AUTH_TOKEN"] == SECRET


@pytest.mark.parametrize("slow", [0, 2])
def test_a_ray_that_gave_up_on_a_slow_node_is_started_again(slow: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a stand-in for `ray start`, which says what Ray says; any other end is that of the job."""
    (tmp_path / "ray" / "scripts").mkdir(parents=True)
    (tmp_path / "ray" / "__init__.py").write_text('__version__ = "2.55.0"\n')
    (tmp_path / "ray" / "scripts" / "__init__.py").write_text("")
    (tmp_path / "ray" / "scripts" / "scripts.py").write_text(
        "import pathlib, time\n"
        f"starts = pathlib.Path({str(tmp_path / 'starts')!r})\n"
        "with starts.open('a') as file:\n    file.write('x')\n"
        f"if starts.stat().st_size <= {slow}:\n"
        "    raise Exception('The current node timed out during startup. This could happen')\n"
        "if starts.stat().st_size > 3:\n    raise SystemExit('no')\n"
        "print(\"ray start --address='10.0.0.1:6379'\\nThis will now block\", flush=True)\ntime.sleep(600)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("NPROC_PER_NODE", "1")
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    started = node.RayNode.start("127.0.0.1", None, SECRET)
    assert started.address == "10.0.0.1:6379"
    started.stop()
    assert (tmp_path / "starts").read_text() == "x" * (slow + 1)
    (tmp_path / "starts").write_text("x" * 3)  # the stand-in refuses the fourth start
    with pytest.raises(node.RayFailed, match="exit code 1"):
        node.RayNode.start("127.0.0.1", None, SECRET)


@pytest.mark.parametrize(("version", "host"), [("2.60.0", "10.0.0.1"), ("2.52.0", "10.0.0.1"), ("2.51.1", "127.0.0.1")])
def test_a_dashboard_without_a_token_is_for_its_machine_alone(version: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = types.ModuleType("ray")
    vars(ray)["__version__"] = version
    monkeypatch.setitem(sys.modules, "ray", ray)
    options = dict(word.split("=") for word in node.head_options("10.0.0.1") if "=" in word)
    assert options["--dashboard-host"] == host and int(options["--dashboard-port"]) > 0


def test_the_driver_is_connected_and_has_ray_state_in_a_ray_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    ray, private, state = types.ModuleType("ray"), types.ModuleType("ray._private"), types.ModuleType("ray._private.state")
    vars(ray).update(init=lambda **named: calls.append(named), shutdown=lambda: calls.append("shutdown"), __path__=[])
    for module in (ray, private, state):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(sys.modules, "ray.state", types.ModuleType("ray.state"))
    cluster.connect()
    assert vars(ray)["state"] is state is sys.modules["ray.state"] and calls == [{}]
    vars(ray)["init"](namespace="own")
    vars(ray)["init"](namespace="again")
    assert calls == [{}, "shutdown", {"namespace": "own"}, {"namespace": "again"}]


# --- metrics ------------------------------------------------------------------------------------------------------------------


def test_samples_are_added_up_by_the_labels_that_mean_something() -> None:
    local = {
        "system/10.0.0.2/ray_node_f00/ray_resources/CPU/USED": 1.5,
        "system/10.0.0.2/ray_node_f00/ray_component_uss_mb/ray__a _x__ _y_": 20.0,
        "system/10.0.0.2/ray_node_f00/ray_node_mem_used": 1e9,
    }
    shared = {"system/ray_tasks/FINISHED": 7.0, "system/ray_tasks/RUNNING": 1.0}
    named = {head: monitor_of(head, ip="10.0.0.2").named(EXPOSITION) for head in (True, False)}
    assert named == {False: local, True: {**local, **shared}}


class Exporter(http.server.BaseHTTPRequestHandler):
    """Ray's exporter, of paper."""

    def do_GET(self) -> None:  # noqa: N802
        body = EXPOSITION.encode()
        self.send_response(200 if self.path == "/metrics" else 404)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def exporter() -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def logged(clean: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, float], int]]:
    """What goes to the job's metrics."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_NODE_ID", "")
    rows: list[tuple[dict[str, float], int]] = []
    monkeypatch.setattr(runtime, "log_metrics", lambda metrics, step: rows.append((dict(metrics), step)))
    return rows


class FakeMlflow(types.ModuleType):
    """One run, and what is logged to it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__("mlflow")
        self.status = "RUNNING"
        self.batches: list[tuple[str, list[tuple[Any, ...]]]] = []
        entities = types.ModuleType("mlflow.entities")
        vars(entities)["Metric"] = lambda *row: row
        monkeypatch.setitem(sys.modules, "mlflow", self)
        monkeypatch.setitem(sys.modules, "mlflow.entities", entities)

    def MlflowClient(self) -> FakeMlflow:  # noqa: N802
        return self

    def active_run(self) -> Any:
        return None

    def get_run(self, run_id: str) -> Any:
        return types.SimpleNamespace(info=types.SimpleNamespace(status=self.status))

    def log_batch(self, run_id: str, metrics: list[tuple[Any, ...]]) -> None:
        self.batches.append((run_id, metrics))


def test_a_monitor_samples_until_it_is_finished_and_once_more_then(exporter: int, logged: list[Any]) -> None:
    monitor = monitor_of(True, exporter, interval_s=3600)
    monitor.start()
    monitor.finish()
    assert [step for _, step in logged] == [0] and logged[0][0]["system/ray_tasks/FINISHED"] == 7.0
    assert os.environ["MLFLOW_SYSTEM_METRICS_NODE_ID"] == "127.0.0.1"


def test_a_sample_that_cannot_be_read_is_left_out_with_one_warning(logged: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    told = io.StringIO()  # what a fixture captures may lose what another thread writes while it is read
    monkeypatch.setattr(sys, "stderr", told)
    monitor = monitor_of(True, port=1, interval_s=0.001)
    monitor.start()
    deadline = time.monotonic() + 60
    while "left out" not in told.getvalue():
        assert time.monotonic() < deadline, told.getvalue()
        threading.Event().wait(0.001)
    monitor.finish()
    assert logged == [] and told.getvalue().count("left out") == 1


def test_a_run_of_mlflow_gets_batches_it_takes_until_it_has_ended(
    exporter: int, logged: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = FakeMlflow(monkeypatch)
    monkeypatch.setattr("serverless_gpu.ray.monitor.BATCH", 2)
    monitor = monitor_of(True, exporter, run_id="run")
    assert monitor.sample() is True
    assert [(run, len(batch)) for run, batch in mlflow.batches] == [("run", 2), ("run", 2), ("run", 1)]
    name, value, time_ms, step = mlflow.batches[0][1][0]
    assert logged[0][0][name] == value and time_ms > 1e12 and step == 0
    mlflow.status = "FINISHED"
    assert monitor.sample() is False and len(mlflow.batches) == 3 and len(logged) == 2


def test_without_a_run_nothing_goes_to_mlflow(exporter: int, logged: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = FakeMlflow(monkeypatch)
    assert monitor_of(True, exporter).sample() is True
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")
    assert monitor_of(True, exporter).sample() is True
    assert mlflow.batches == [] and len(logged) == 2
