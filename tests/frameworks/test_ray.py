# SPDX-License-Identifier: Apache-2.0
"""Ray clusters over two nodes: real Ray, started by ray_launch for one call each."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import pytest

from harness import PYTHON, ROOT, Cluster, eventually
from slowness import patient

#: Seconds that a script may take: Ray starts a dozen processes a node, here on few cores beside sanitized daemons.
PATIENCE_S = patient(480.0)

#: What one notebook found out about its cluster, by the names below.
Report = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def ray_is_installed() -> None:
    """Without Ray nothing here means anything, and that is a failure, not a reason to skip."""
    found = subprocess.run([PYTHON, "-c", "import ray"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert found.returncode == 0, f"{PYTHON} has no Ray, run deploy/python-environment --tests: {found.stderr}"


def start(cluster: Cluster, folder: Path, script: str) -> subprocess.Popen[str]:
    """A notebook as a script in a process of its own, with the settings of a person who works with this cluster."""
    token = folder / "token"
    token.touch(0o600)
    token.write_text(cluster.admin_token + "\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUCTL_", "DATABRICKS_", "MLFLOW_", "RAY_"))}
    own = {"GPUCTL_URL": cluster.url, "GPUCTL_TOKEN_FILE": str(token), "XDG_CACHE_HOME": str(folder / "cache")}
    env = {**kept, **own, "PYTHONPATH": str(ROOT / "client" / "python" / "src")}
    path = folder / "notebook.py"
    path.write_text(textwrap.dedent(script))
    return subprocess.Popen(
        [PYTHON, str(path)], env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=take_interrupts
    )


def take_interrupts() -> None:
    """A shell that runs the tests in the background makes them ignore what a notebook is interrupted by."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def finish(process: subprocess.Popen[str], good: bool = True) -> tuple[str, str]:
    """What it wrote to stdout and stderr, once it has ended as expected."""
    try:
        output, errors = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        raise AssertionError(f"it took more than {PATIENCE_S:.0f} s\n{output[-4000:]}{errors[-8000:]}") from None
    peer = re.search(r"Ray (did not start|ended) on node", errors)
    assert not (good and peer), f"Ray itself did not get up on this machine: that is not gpuctl's to hurry\n{errors[-8000:]}"
    assert (process.returncode == 0) == good, f"exit {process.returncode}\n{output[-4000:]}{errors[-8000:]}"
    return output, errors


def processes_of(job: str) -> list[str]:
    """The names of all processes that were started for a job, by what they inherited."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"GPUCTL_JOB_ID={job}\0".encode() in (entry / "environ").read_bytes():
                found.append((entry / "comm").read_text().strip())
        except OSError:
            continue
    return found


def job_named(cluster: Cluster, name: str) -> str:
    """The newest job of that name."""
    return str(cluster.api.get(f"/v1/jobs?name={name}&limit=1")["jobs"][0]["id"])


#: Cells of the survey: what Ray says of itself, and its dashboard to those with and without the job's secret.
LOOK = """
def look(dashboard_url, deadline_s):
    import os, time, urllib.error, urllib.request
    from ray.util import state

    def named(): return {row.name for row in state.list_tasks(filters=[("state", "=", "FINISHED")])}
    end = time.monotonic() + deadline_s
    while "where" not in named() and time.monotonic() < end:  # Ray tells of tasks now and then
        time.sleep(0.1)

    def status(path, data=None, **headers):
        try:
            request = urllib.request.Request(dashboard_url + path, data, {"Content-Type": "application/json", **headers})
            return urllib.request.urlopen(request, timeout=deadline_s).status
        except urllib.error.HTTPError as error:
            return error.code

    order = b'{"entrypoint": "true"}'
    return {
        "nodes": [row.state for row in state.list_nodes()],
        "actors": [row.class_name for row in state.list_actors()],
        "tasks": state.summarize_tasks()["cluster"]["summary"]["where"]["state_counts"],
        "page": status("/"),
        "strangers": [status("/api/v0/nodes"), status("/api/jobs/", order)],
        "guess": status("/api/jobs/", order, Authorization="Bearer " + "f" * 64),
        "owner": status("/api/v0/nodes", Authorization="Bearer " + os.environ["RAY_AUTH_TOKEN"]),
    }
"""

#: Cells of the survey: a line is fitted by two workers of Ray Train, each with its part of a dataset of Ray Data.
FIT = """
def fit(lines, folder):
    import random
    import ray.data
    from ray.train import Checkpoint, RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    def loop(config):
        import tempfile
        import ray.train.torch, torch

        torch.manual_seed(0)
        model = ray.train.torch.prepare_model(torch.nn.Linear(1, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"])
        for epoch in range(config["epochs"]):
            rows = 0
            for batch in ray.train.get_dataset_shard("train").iter_torch_batches(batch_size=8, dtypes=torch.float32):
                loss = ((model(batch["x"][:, None]) - batch["y"][:, None]) ** 2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                rows += len(batch["x"])
        seen = [None, None]
        torch.distributed.all_gather_object(seen, (rows, node_of_this()))
        slope = next(model.parameters()).item()
        found = {"loss": loss.item(), "slope": slope, "rows": [n for n, _ in seen], "on": sorted(node for _, node in seen)}
        with tempfile.TemporaryDirectory() as own:
            torch.save(model.state_dict(), own + "/model.pt")
            ray.train.report(found, checkpoint=Checkpoint.from_directory(own))

    dice = random.Random(0)
    points = ray.data.from_items([{"x": x, "y": 2 * x + 1} for x in (dice.random() for _ in range(lines))])
    return TorchTrainer(
        loop,
        train_loop_config={"lr": 0.5, "epochs": 4},
        datasets={"train": points},
        scaling_config=ScalingConfig(num_workers=2, resources_per_worker={"CPU": 1}, placement_strategy="STRICT_SPREAD"),
        run_config=RunConfig(storage_path=folder, name="line"),
    ).fit().metrics
"""


@pytest.fixture(scope="module")
def survey(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Report:
    """One Ray job over both nodes, with metrics: what its driver saw, and what came back. It trains with --long alone."""
    folder = tmp_path_factory.mktemp("survey")
    process = start(
        cluster,
        folder,
        LOOK
        + FIT
        + textwrap.dedent("""
        import json
        from serverless_gpu.ray import ray_launch

        OFFSET = 100

        def node_of_this():
            import os
            return os.environ["GPUCTL_NODE"]

        @ray_launch(gpus=4, remote=True, name="survey", metrics=0.5)
        def drive(first, *, second, folder, deadline_s, trains):
            import os
            import ray
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            seen = {"per_node": ray.state.available_resources_per_node(), "cluster": ray.cluster_resources(), "arguments": [first, second]}
            alive = [row["NodeID"] for row in ray.nodes() if row["Alive"]]

            @ray.remote
            def where():
                from serverless_gpu import runtime
                runtime.log_metric("of_a_task", 7)
                return node_of_this(), os.environ.get("WORLD_SIZE"), os.environ.get("RANK")

            @ray.remote
            class Counter:
                def __init__(self, start):
                    self.value = start + OFFSET
                def add(self, number):
                    self.value += number
                    return self.value, node_of_this()

            on = [{"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False)} for node in alive]
            seen["tasks"] = ray.get([where.options(**options).remote() for options in on])
            counters = [Counter.options(**options).remote(index) for index, options in enumerate(on)]
            ray.get([counter.add.remote(1) for counter in counters])
            seen["actors"] = ray.get([counter.add.remote(10) for counter in counters])
            context = ray.init(namespace="own")  # replaces the connection; no second cluster
            seen["again"] = [len(ray.nodes()), ray.get_runtime_context().namespace]
            seen["url"] = context.dashboard_url
            seen["looked"] = look("http://" + context.dashboard_url, deadline_s)
            seen["fitted"] = fit(256, folder) if trains else None
            return seen
        """)
        + f"""
wanted = dict(folder={str(folder / "storage")!r}, deadline_s={patient(60.0)}, trains={request.config.getoption("--long")!r})
print("REPORT", json.dumps(drive.distributed(1, second="two", **wanted)))
""",
    )
    output, errors = finish(process)
    values = json.loads(next(line for line in output.splitlines() if line.startswith("REPORT "))[len("REPORT ") :])
    return {**values[0], "values": values, "job": job_named(cluster, "survey"), "errors": errors}


# --- the cluster --------------------------------------------------------------------------------------------------------------


def test_the_driver_sees_one_ray_node_per_node_with_a_cpu_per_slot(survey: Report) -> None:
    assert [resources["CPU"] for resources in survey["per_node"].values()] == [2.0, 2.0]
    assert survey["cluster"]["CPU"] == 4.0 and "GPU" not in survey["cluster"]


def test_the_value_of_the_driver_comes_first_and_none_for_every_other_node(survey: Report) -> None:
    assert len(survey["values"]) == 2 and survey["values"][1] is None
    assert survey["arguments"] == [1, "two"]


def test_tasks_run_on_both_nodes_and_are_no_ranks_of_the_job(survey: Report) -> None:
    assert sorted(survey["tasks"]) == [["node0", None, None], ["node1", None, None]]


def test_actors_on_both_nodes_keep_their_state(survey: Report) -> None:
    assert [value for value, _ in survey["actors"]] == [111, 112]
    assert sorted(node for _, node in survey["actors"]) == ["node0", "node1"]


def test_a_ray_init_of_the_function_stays_in_the_same_cluster(survey: Report) -> None:
    assert survey["again"] == [2, "own"]


def test_the_state_of_the_cluster_is_told_to_the_driver(survey: Report) -> None:
    looked = survey["looked"]
    assert looked["nodes"] == ["ALIVE", "ALIVE"] and all(name.endswith("Counter") for name in looked["actors"])
    assert looked["tasks"] == {"FINISHED": 2}


def test_the_dashboard_is_told_of_and_takes_orders_of_those_alone_who_have_the_secret(survey: Report) -> None:
    assert survey["url"].startswith("127.0.0.1:") and f"http://{survey['url']}" in survey["errors"]
    looked = survey["looked"]
    assert looked["page"] == looked["owner"] == 200 and looked["strangers"] == [401, 401] and looked["guess"] == 403


@pytest.mark.long
def test_workers_of_ray_train_on_both_nodes_share_a_dataset_and_learn_one_model(survey: Report) -> None:
    fitted = survey["fitted"]
    assert fitted["rows"] == [128, 128] and fitted["on"] == ["node0", "node1"]
    assert abs(fitted["slope"] - 2) < 0.3 and fitted["loss"] < 0.01


def test_each_node_logs_the_metrics_of_ray(cluster: Cluster, survey: Report) -> None:
    listed = cluster.api.get(f"/v1/jobs/{survey['job']}/metrics?limit=10000")["metrics"]
    by_rank = {rank: {row["name"] for row in listed if row["rank"] == rank} for rank in (0, 1)}
    for rank, names in by_rank.items():
        own = {name for name in names if "/ray_node_" in name}
        assert len({name.split("/")[2] for name in own}) == 1, own
        assert any(name.split("/")[3] == "ray_node_mem_used" for name in own), (rank, names)
    assert any(name.startswith("system/ray_") for name in by_rank[0]), by_rank[0]
    assert not any(name.startswith("system/ray_") for name in by_rank[1]), by_rank[1]
    assert "of_a_task" in by_rank[0]


# --- ends ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_two_ray_jobs_run_at_once_and_the_exception_of_one_does_not_touch_the_other(cluster: Cluster, tmp_path: Path) -> None:
    process = start(
        cluster,
        tmp_path,
        """
        import pathlib, threading, time
        from serverless_gpu.errors import JobFailed
        from serverless_gpu.ray import ray_launch

        here = pathlib.Path.cwd()

        def meet(own, other):
            (here / own).touch()
            while not (here / other).exists():
                time.sleep(0.05)

        def cpus():
            import ray
            return ray.cluster_resources()["CPU"]

        @ray_launch(gpus=2, remote=False, name="returns")
        def returns():
            meet("first", "second")
            return cpus()

        @ray_launch(gpus=2, remote=True, name="raises")
        def raises():
            meet("second", "first")
            raise LookupError(f"saw {cpus()}")

        values = []
        other = threading.Thread(target=lambda: values.append(returns.distributed()))
        other.start()
        try:
            raises.distributed()
        except JobFailed as error:
            assert isinstance(error.__cause__, LookupError) and error.__cause__.args == ("saw 2.0",), error.__cause__
        else:
            raise AssertionError("it did not fail")
        other.join()
        assert values == [[2.0]], values
        """,
    )
    finish(process)
    assert processes_of(job_named(cluster, "returns")) == [] == processes_of(job_named(cluster, "raises"))


@pytest.mark.thorough
def test_a_node_whose_python_has_no_ray_says_so_with_the_remedy(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text("raise ImportError('there is none')")
    process = start(
        cluster,
        tmp_path,
        """
        import os
        from serverless_gpu.ray import ray_launch

        @ray_launch(gpus=2, remote=True, env={"PYTHONPATH": os.getcwd()})
        def drive():
            pass

        drive.distributed()
        """,
    )
    _, errors = finish(process, good=False)
    for words in ("JobFailed", "Ray cannot be imported on node node", "there is none", "-m pip install 'ray[default]'"):
        assert words in errors, errors


@pytest.mark.thorough
def test_when_the_driver_is_killed_it_is_named_and_the_other_nodes_end(cluster: Cluster, tmp_path: Path) -> None:
    process = start(
        cluster,
        tmp_path,
        """
        from serverless_gpu.ray import ray_launch

        @ray_launch(gpus=4, remote=True, name="killed")
        def killed():
            import os, signal
            os.kill(os.getpid(), signal.SIGKILL)

        killed.distributed()
        """,
    )
    _, errors = finish(process, good=False)
    assert "JobFailed" in errors and "rank 0 on node node0" in errors and "signal 9" in errors, errors
    assert processes_of(job_named(cluster, "killed")) == []


@pytest.mark.thorough
def test_an_interrupt_cancels_the_job_and_leaves_nothing_of_ray(cluster: Cluster, tmp_path: Path) -> None:
    process = start(
        cluster,
        tmp_path,
        """
        from serverless_gpu.ray import ray_launch

        @ray_launch(gpus=4, remote=True, name="endless")
        def endless():
            import ray, time

            @ray.remote
            def sleep():
                time.sleep(600)

            tasks = [sleep.remote() for _ in range(4)]
            print("the driver is up", flush=True)
            ray.get(tasks)

        endless.distributed()
        """,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "the driver is up" in line:
            break
    job = job_named(cluster, "endless")
    running = processes_of(job)
    assert running.count("raylet") == 2 and running.count("gcs_server") == 1, running
    process.send_signal(signal.SIGINT)
    _, errors = finish(process, good=False)
    assert "KeyboardInterrupt" in errors
    assert cluster.api.wait(job)["state"] == "CANCELED"
    eventually(lambda: processes_of(job) == [], "the end of all processes of Ray")
