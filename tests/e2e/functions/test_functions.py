# SPDX-License-Identifier: Apache-2.0
"""Functions from a notebook: what a person writes goes in as a script of its own process, what they see comes out."""

from __future__ import annotations

import base64
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import GPUCTL, PATIENCE, PYTHON, ROOT, Cluster, eventually, run_gpuctl
from slowness import patient

#: Ranks import torch under sanitized daemons on few cores.
TORCH_PATIENCE = patient(180.0)

Notebook = Callable[..., subprocess.CompletedProcess[str]]


def environment(cluster: Cluster, folder: Path) -> dict[str, str]:
    """What a person's shell has who works with this cluster."""
    token = folder / "token"
    if not token.exists():
        token.touch(0o600)
        token.write_text(cluster.admin_token + "\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUCTL_", "DATABRICKS_"))}
    return {
        **kept,
        "GPUCTL_URL": cluster.url,
        "GPUCTL_TOKEN_FILE": str(token),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "PYTHONPATH": str(ROOT / "client" / "python" / "src"),
        "OMP_NUM_THREADS": "1",
        "MLFLOW_DISABLE_TELEMETRY": "true",  # a thread that changes os.environ while requests reads it
    }


@pytest.fixture
def notebook(cluster: Cluster, tmp_path: Path) -> Notebook:
    """Run a script against the shared cluster, in a process of its own."""

    def run(
        script: str, timeout: float = TORCH_PATIENCE, env: dict[str, str] | None = None, good: bool = True
    ) -> subprocess.CompletedProcess[str]:
        path = tmp_path / "notebook.py"
        path.write_text(textwrap.dedent(script))
        merged = {**environment(cluster, tmp_path), **(env or {})}
        ran = subprocess.run([PYTHON, str(path)], env=merged, cwd=tmp_path, capture_output=True, text=True, timeout=timeout)
        if good:
            assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-8000:]
        return ran

    return run


# --- values -------------------------------------------------------------------------------------------------------------------


def test_one_value_a_rank_comes_back_in_the_order_of_ranks(notebook: Notebook) -> None:
    notebook("""
        import os
        from serverless_gpu import distributed, runtime

        @distributed(gpus=4, remote=True)
        def who(greeting, *, punctuation="."):
            assert runtime.get_world_size() == 4 == int(os.environ["WORLD_SIZE"])
            assert runtime.get_local_world_size() == 2 and runtime.get_local_rank() == int(os.environ["LOCAL_RANK"])
            return greeting + str(runtime.get_global_rank()) + punctuation, runtime.get_node_rank()

        values = who.distributed("rank ", punctuation="!")
        assert values == [("rank 0!", 0), ("rank 1!", 0), ("rank 2!", 1), ("rank 3!", 1)], values
        """)


def test_a_plain_call_runs_in_the_own_process(notebook: Notebook) -> None:
    notebook("""
        import os
        from serverless_gpu import distributed

        @distributed(gpus=2, gpu_type="H100", remote=True)
        def pid():
            "Says who runs it."
            return os.getpid()

        assert pid() == os.getpid() and pid.__name__ == "pid" and pid.__doc__ == "Says who runs it."
        """)


def test_helpers_globals_classes_and_closures_travel_with_the_function(notebook: Notebook) -> None:
    notebook("""
        import dataclasses, math
        from serverless_gpu import distributed

        FACTOR = 3
        SEEN = [1, 2]

        @dataclasses.dataclass
        class Point:
            x: float
            y: float = 0.0

            def norm(self):
                return math.hypot(self.x, self.y) * FACTOR

        def fibonacci(n):
            return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

        def make_adder(n):
            def add(x):
                def inner():
                    return x + n + len(SEEN)
                return inner()
            return add

        add_ten = make_adder(10)

        @distributed(gpus=2, remote=True)
        def work(scale):
            def nested(x):
                return add_ten(x) * scale
            return nested(1), fibonacci(10), Point(3, 4).norm(), Point(1)

        for nested, number, norm, point in work.distributed(2):
            assert (nested, number, norm) == (26, 55, 15.0)
            assert isinstance(point, Point) and point == Point(1)
        assert (distributed(gpus=1, remote=True)(lambda x: x * FACTOR)).distributed(5) == [15]
        """)


def test_classes_of_the_notebook_can_be_pickled_on_the_nodes(notebook: Notebook) -> None:
    notebook("""
        import pickle
        from serverless_gpu import distributed

        class Net:
            weights = 7

        @distributed(gpus=1, remote=True)
        def save():
            return pickle.loads(pickle.dumps(Net())).weights

        assert save.distributed() == [7]
        """)


def test_a_return_value_of_200_megabytes_comes_back_whole(notebook: Notebook) -> None:
    notebook("""
        import hashlib, random
        from serverless_gpu import distributed

        @distributed(gpus=2, remote=True)
        def big(seed):
            import os, random
            if int(os.environ["RANK"]) == 0:
                return "small"
            return random.Random(seed).randbytes(200 * 1000 * 1000)

        small, large = big.distributed(4)
        assert small == "small" and len(large) == 200_000_000
        assert hashlib.sha256(large).digest() == hashlib.sha256(random.Random(4).randbytes(200_000_000)).digest()
        """)


def test_an_argument_of_some_megabytes_goes_by_blob(notebook: Notebook, cluster: Cluster) -> None:
    notebook("""
        from serverless_gpu import distributed

        @distributed(gpus=4, remote=True, name="blobbed")
        def size(data):
            return len(data), data[-1]

        assert size.distributed(bytes(5_000_000) + b"x") == [(5_000_001, ord("x"))] * 4
        """)
    job = cluster.api.get("/v1/jobs?name=blobbed")["jobs"][0]
    assert set(cluster.api.job(job["id"])["spec"]["function"]) == {"blob", "modules"}


# --- output and metrics -------------------------------------------------------------------------------------------------------


def test_output_is_prefixed_by_rank_and_keeps_its_streams(notebook: Notebook) -> None:
    ran = notebook("""
        from serverless_gpu import distributed

        @distributed(gpus=2, remote=True)
        def say():
            import os, sys
            print("out", os.environ["RANK"])
            print("err", os.environ["RANK"], file=sys.stderr)

        assert say.distributed() == [None, None]
        """)
    assert sorted(ran.stdout.splitlines()) == ["[0] out 0", "[1] out 1"]
    assert {"[0] err 0", "[1] err 1"} <= set(ran.stderr.splitlines())


def test_a_million_lines_arrive_in_order(notebook: Notebook) -> None:
    ran = notebook("""
        from serverless_gpu import distributed

        @distributed(gpus=1, remote=True)
        def flood():
            for i in range(1_000_000):
                print(i)

        flood.distributed()
        """)
    assert ran.stdout == "".join(f"{i}\n" for i in range(1_000_000))


def test_metrics_of_all_ranks_are_kept_with_step_and_time(notebook: Notebook, cluster: Cluster) -> None:
    notebook("""
        from serverless_gpu import distributed, runtime

        @distributed(gpus=4, remote=True, name="measured")
        def measure():
            for step in range(100):
                runtime.log_metric("loss", 1 / (step + 1) + runtime.get_global_rank(), step=step)
            runtime.log_metrics({"accuracy": 0.5, "broken": float("nan")})
            runtime.progress(1.0, "done")

        measure.distributed()
        """)
    job = cluster.api.get("/v1/jobs?name=measured")["jobs"][0]["id"]
    points = []
    cursor = ""
    while True:
        page = cluster.api.get(f"/v1/jobs/{job}/metrics?limit=150{cursor}")
        points += page["metrics"]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    for rank in range(4):
        loss = [point for point in points if point["rank"] == rank and point["name"] == "loss"]
        assert [point["step"] for point in loss] == list(range(100))
        assert [point["value"] for point in loss] == [1 / (step + 1) + rank for step in range(100)]
        assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", point["time"]) for point in loss)
        rest = {point["name"]: point["value"] for point in points if point["rank"] == rank and "step" not in point}
        assert rest == {"accuracy": 0.5, "broken": "NaN"}
    only = cluster.api.get(f"/v1/jobs/{job}/metrics?rank=2&name=accuracy")["metrics"]
    assert [(point["rank"], point["name"]) for point in only] == [(2, "accuracy")]


# --- what goes wrong ----------------------------------------------------------------------------------------------------------


def test_the_failing_ranks_exception_is_the_cause_with_its_traceback(notebook: Notebook) -> None:
    ran = notebook(
        """
        from serverless_gpu import distributed

        class Unlucky(Exception):
            pass

        def deep(rank):
            if rank == 2:
                raise Unlucky("number two")
            import time
            time.sleep(600)

        @distributed(gpus=4, remote=True)
        def fail():
            import os
            deep(int(os.environ["RANK"]))

        try:
            fail.distributed()
        except RuntimeError as error:
            assert isinstance(error.__cause__, Unlucky) and error.__cause__.args == ("number two",)
            assert "rank 2" in str(error) and "node1" in str(error) and "number two" in str(error), str(error)
            raise
        """,
        good=False,
    )
    assert ran.returncode == 1
    assert 'raise Unlucky("number two")' in ran.stderr and "in deep" in ran.stderr and "gpuctl_runner" not in ran.stderr
    assert "Unlucky: number two" in ran.stderr and "JobFailed" in ran.stderr


def test_what_cannot_be_pickled_is_named_before_anything_is_sent(notebook: Notebook, cluster: Cluster) -> None:
    before = len(cluster.api.get("/v1/jobs?limit=200")["jobs"])
    notebook("""
        import threading
        from serverless_gpu import distributed

        lock = threading.Lock()

        @distributed(gpus=1, remote=True)
        def captures():
            with lock:
                return 1

        @distributed(gpus=1, remote=True)
        def takes(a, device):
            return 1

        for call, word in ((captures.distributed, "lock"), (lambda: takes.distributed(1, device=lock), "device")):
            try:
                call()
            except TypeError as error:
                assert word in str(error) and "pickle" in str(error), str(error)
            else:
                raise AssertionError(word)
        for wrong in ((), (1, 2, 3)):
            try:
                takes.distributed(*wrong)
            except TypeError as error:
                assert "argument" in str(error), str(error)
            else:
                raise AssertionError(wrong)
        """)
    assert len(cluster.api.get("/v1/jobs?limit=200")["jobs"]) == before


def test_a_return_value_that_cannot_be_pickled_is_named(notebook: Notebook) -> None:
    notebook("""
        from serverless_gpu import distributed

        @distributed(gpus=1, remote=True)
        def returns():
            import threading
            return threading.Lock()

        try:
            returns.distributed()
        except RuntimeError as error:
            assert "value" in str(error) and "lock" in str(error), str(error)
        else:
            raise AssertionError
        """)


@pytest.mark.parametrize(
    ("way", "word"),
    [("os._exit(0)", "result"), ("sys.exit(0)", "result"), ("sys.exit(3)", "exited with 3"), ("os.kill(os.getpid(), 9)", "SIGKILL")],
)
def test_a_rank_that_ends_without_a_result_fails_the_job(notebook: Notebook, way: str, word: str) -> None:
    notebook(f"""
        from serverless_gpu import distributed

        @distributed(gpus=2, remote=True)
        def leave():
            import os, sys
            if os.environ["RANK"] == "1":
                {way}
            return 1

        try:
            leave.distributed()
        except RuntimeError as error:
            assert "rank 1" in str(error) and {word!r} in str(error), str(error)
        else:
            raise AssertionError
        """)


def test_a_module_of_the_working_folder_travels_and_one_that_the_node_lacks_is_named(notebook: Notebook, tmp_path: Path) -> None:
    (tmp_path / "onlyhere.py").write_text("def f():\n    return 1\n")
    notebook("""
        import onlyhere
        from serverless_gpu import distributed

        def work():
            return onlyhere.f()

        assert distributed(gpus=1, remote=True)(work).distributed() == [1]
        try:
            distributed(gpus=1, remote=True, working_dir=False)(work).distributed()
        except RuntimeError as error:
            assert "onlyhere" in str(error) and "node" in str(error), str(error)
        else:
            raise AssertionError
        """)


def test_an_interrupt_cancels_the_job(cluster: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "notebook.py"
    script.write_text(
        textwrap.dedent(f"""
        import time
        from serverless_gpu import distributed

        @distributed(gpus=2, remote=True, name="interrupted")
        def wait():
            open({str(tmp_path / "up")!r}, "w").close()
            time.sleep(600)

        try:
            wait.distributed()
        except KeyboardInterrupt:
            print("interrupted")
        """)
    )
    env = environment(cluster, tmp_path)
    ran = subprocess.Popen([PYTHON, str(script)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    eventually(lambda: (tmp_path / "up").exists(), "the ranks to run")
    ran.send_signal(signal.SIGINT)
    out, err = ran.communicate(timeout=PATIENCE)
    assert ran.returncode == 0 and out == "interrupted\n", out + err
    assert "cancel" in err
    assert cluster.api.get("/v1/jobs?name=interrupted")["jobs"][0]["state"] == "CANCELED"


def test_a_controller_that_goes_away_is_waited_for(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster(1)
    script = tmp_path / "notebook.py"
    script.write_text(
        textwrap.dedent(f"""
        import os
        from serverless_gpu import distributed

        @distributed(gpus=1, remote=True)
        def count():
            for i in range(3):
                print("line", i)
                while not os.path.exists(f"{tmp_path}/go{{i}}"):
                    pass
            return 42

        print(count.distributed())
        """)
    )
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("w") as stdout, err.open("w") as stderr:
        ran = subprocess.Popen([PYTHON, "-u", str(script)], env=environment(cluster, tmp_path), stdout=stdout, stderr=stderr)
    eventually(lambda: out.read_text() == "line 0\n" or ran.poll() is not None, "the first line")
    cluster.controller.kill()
    eventually(lambda: cluster.url in err.read_text() or ran.poll() is not None, "a word on the lost controller")
    (tmp_path / "go0").touch()
    cluster.start_controller()
    eventually(lambda: out.read_text() == "line 0\nline 1\n" or ran.poll() is not None, "the second line")
    (tmp_path / "go1").touch()
    (tmp_path / "go2").touch()
    assert ran.wait(PATIENCE) == 0, out.read_text() + err.read_text()
    assert out.read_text() == "line 0\nline 1\nline 2\n[42]\n"


WRONG = [
    ("gpus=-1", "f.distributed()", "gpus"),
    ("gpus=1, memory='1X'", "f.distributed()", "memory"),
    ("gpus=1, cpus=0", "f.distributed()", "cpus"),
    ("gpus=1, remote=True, gpu_type='cpuu'", "f.distributed()", "did you mean cpu?"),
    ("gpus=1, remote=False, gpu_type='H100'", "f.distributed()", "no registered node has the GPU type H100; registered: cpu"),
    ("gpus=1, remote=True, retries=-1", "f.distributed()", "retries"),
]


@pytest.mark.parametrize(("options", "call", "word"), WRONG)
def test_a_wrong_use_is_one_clear_line(notebook: Notebook, options: str, call: str, word: str) -> None:
    ran = notebook(
        f"""
        from serverless_gpu import distributed

        @distributed({options})
        def f():
            return 1

        {call}
        """,
        good=False,
    )
    assert ran.returncode == 1 and word in ran.stderr.splitlines()[-1], ran.stderr


def test_a_refused_token_is_one_clear_line(notebook: Notebook, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("gpuctl_0000000000000000_" + "0" * 40 + "\n")
    ran = notebook(
        """
        from serverless_gpu import distributed
        distributed(gpus=1, remote=True)(lambda: 1).distributed()
        """,
        env={"GPUCTL_TOKEN_FILE": str(tmp_path / "wrong")},
        good=False,
    )
    assert ran.returncode == 1 and "token" in ran.stderr.splitlines()[-1] and "GPUCTL_TOKEN_FILE" in ran.stderr, ran.stderr


def test_a_payload_over_the_limit_is_refused_by_the_client(notebook: Notebook) -> None:
    ran = notebook(
        """
        from serverless_gpu import distributed
        distributed(gpus=1, remote=True)(len).distributed(bytes(1024 ** 3 + 1))
        """,
        good=False,
    )
    last = ran.stderr.splitlines()[-1]
    assert ran.returncode == 1 and "1 GiB" in last and "inside the function" in last, ran.stderr


def test_remote_false_without_an_agent_on_the_own_host_names_remote_true(make_cluster: Callable[..., Cluster], tmp_path: Path) -> None:
    cluster = make_cluster()
    ran = subprocess.run(
        [PYTHON, "-c", "from serverless_gpu import distributed; distributed(gpus=1)(lambda: 1).distributed()"],
        env=environment(cluster, tmp_path),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ran.returncode == 1 and "remote=True" in ran.stderr.splitlines()[-1], ran.stderr


def test_remote_false_runs_on_the_own_host_in_the_own_folder(notebook: Notebook, tmp_path: Path) -> None:
    (tmp_path / "onlyhere.py").write_text("ANSWER = 42\n")
    (tmp_path / "data.txt").write_text("here\n")
    notebook("""
        import sys, os
        import onlyhere
        from serverless_gpu import distributed

        @distributed(gpus=2)
        def local():
            return open("data.txt").read(), sys.executable, onlyhere.ANSWER

        assert local.distributed() == [("here\\n", sys.executable, 42)] * 2
        """)


def test_two_notebooks_share_the_embedded_controller_that_the_first_starts(tmp_path: Path) -> None:
    script = tmp_path / "notebook.py"
    script.write_text(
        textwrap.dedent("""
        import os, sys
        from serverless_gpu import distributed

        NAME, FOLDER = sys.argv[1:]

        @distributed(gpus=1, remote=True, name=NAME)
        def work():
            open(f"{FOLDER}/{NAME}", "w").close()
            while not (os.path.exists(FOLDER + "/one") and os.path.exists(FOLDER + "/two")):
                pass  # both run at once
            return os.environ["GPUCTL_NODE"], sys.version_info[:2]

        (node, version), = work.distributed()
        assert version == sys.version_info[:2]
        print(node)
        """)
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GPUCTL_", "DATABRICKS_"))}
    state = tmp_path / "state"
    env = {
        **kept,
        "GPUCTL_STATE": str(state),
        "GPUCTL_LIBEXEC": str(GPUCTL.parent),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONPATH": str(ROOT / "client" / "python" / "src"),
    }
    try:
        commands = [[PYTHON, str(script), name, str(tmp_path)] for name in ("one", "two")]
        both = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for command in commands]
        outs = [notebook.communicate(timeout=PATIENCE)[0] for notebook in both]
        assert [notebook.returncode for notebook in both] == [0, 0] and outs[0] == outs[1] != ""
        listed = json.loads(run_gpuctl("ps", "--all", "-o", "json", env={"GPUCTL_STATE": str(state)}).stdout)["jobs"]
        assert sorted(job["name"] for job in listed) == ["one", "two"]
    finally:
        assert run_gpuctl("down", "--state", str(state), "--force").returncode == 0


# --- one POST -----------------------------------------------------------------------------------------------------------------


def test_one_post_submits_a_command_or_a_function_without_our_client(cluster: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "notebook.py"
    script.write_text(
        textwrap.dedent("""
        import base64, os, sys
        import cloudpickle, requests

        url = os.environ["GPUCTL_URL"]
        headers = {"Authorization": "Bearer " + open(os.environ["GPUCTL_TOKEN_FILE"]).read().strip()}

        def finish(job):
            while True:
                shown = requests.get(f"{url}/v1/jobs/{job}?wait=30", headers=headers).json()
                if shown["exit_code"] is not None:
                    return shown["state"]

        job = requests.post(url + "/v1/jobs", headers=headers, json={"command": ["echo", "hello"], "gpus": 1}).json()["id"]
        assert finish(job) == "SUCCEEDED"
        assert requests.get(f"{url}/v1/jobs/{job}/logs", headers=headers).text == "hello\\n"

        def train(lr):
            import os
            return {"rank": int(os.environ["RANK"]), "lr": lr}

        payload = b"gpuctl-function 1 python=%d.%d\\n" % sys.version_info[:2] + cloudpickle.dumps((train, (0.1,), {}))
        function = {"inline": base64.b64encode(payload).decode()}
        job = requests.post(url + "/v1/jobs", headers=headers, json={"function": function, "gpus": 2}).json()["id"]
        assert finish(job) == "SUCCEEDED"
        results = requests.get(f"{url}/v1/jobs/{job}/results", headers=headers).json()["results"]
        assert [result["json"] for result in results] == [{"rank": 0, "lr": 0.1}, {"rank": 1, "lr": 0.1}], results
        blob = requests.get(f"{url}/v1/blobs/{results[1]['sha256']}", headers=headers).content
        assert cloudpickle.loads(blob) == {"rank": 1, "lr": 0.1}
        """)
    )
    ran = subprocess.run([PYTHON, str(script)], env=environment(cluster, tmp_path), capture_output=True, text=True, timeout=TORCH_PATIENCE)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_function_of_another_python_is_refused_naming_both(cluster: Cluster) -> None:
    payload = b"gpuctl-function 1 python=3.5\n" + b"\x80\x04N."
    job = cluster.api.post("/v1/jobs", {"function": {"inline": base64.b64encode(payload).decode()}, "gpus": 1})["id"]
    view = cluster.api.wait(job)
    here = ".".join(map(str, sys.version_info[:2]))
    assert view["state"] == "FAILED" and "3.5" in view["reason"] and here in view["reason"], view


# --- gpuctl -------------------------------------------------------------------------------------------------------------------


def test_gpuctl_shows_results_and_metrics(notebook: Notebook, cluster: Cluster, tmp_path: Path) -> None:
    notebook("""
        from serverless_gpu import distributed, runtime

        @distributed(gpus=2, remote=True, name="shown")
        def work():
            for step in range(8):
                runtime.log_metric("loss", 8 - step, step=step)
            return {"rank": runtime.get_global_rank()}

        work.distributed()
        """)
    env = environment(cluster, tmp_path)
    job = cluster.api.get("/v1/jobs?name=shown")["jobs"][0]["id"]
    table = run_gpuctl("results", job, env=env)
    assert table.returncode == 0 and '{"rank": 1}' in table.stdout.replace('{"rank":1}', '{"rank": 1}'), table.stdout + table.stderr
    saved = run_gpuctl("results", job, "--rank", "1", "--save", str(tmp_path / "one.pickle"), env=env)
    assert saved.returncode == 0, saved.stderr
    assert pickle.loads((tmp_path / "one.pickle").read_bytes()) == {"rank": 1}
    shown = run_gpuctl("metrics", job, env={**env, "LC_ALL": "C.UTF-8"})
    assert shown.returncode == 0 and "loss" in shown.stdout and "█" in shown.stdout, shown.stdout + shown.stderr
    points = json.loads(run_gpuctl("metrics", job, "-o", "json", env=env).stdout)["metrics"]
    assert sum(not point["name"].startswith("system/") for point in points) == 16  # what nodes measure is there after 10 s
    assert run_gpuctl("metrics", job, "--plot", env=env).stdout.count("\n") > 8
    command = cluster.api.submit(["true"])
    cluster.api.wait(command)
    assert "commands return nothing" in run_gpuctl("results", command, env=env).stderr


# --- files that ranks keep ----------------------------------------------------------------------------------------------------


def test_what_ranks_keep_is_copied_into_a_folder(notebook: Notebook, tmp_path: Path) -> None:
    notebook("""
        import os
        from pathlib import Path
        from serverless_gpu import distributed

        @distributed(gpus=2, remote=True, run_async=True)
        def keep(mark):
            folder = Path(os.environ["GPUCTL_OUTPUT_DIR"])
            (folder / "deep er").mkdir()
            (folder / "deep er" / "model").write_bytes(mark * 2_000_000 + os.environ["RANK"].encode())

        for mark in (b"x", b"y"):
            call = keep.distributed(mark)
            folder = call.output("kept", timeout=60)
            assert folder == Path("kept") and call.done()
            for rank in "01":
                assert (folder / rank / "deep er" / "model").read_bytes() == mark * 2_000_000 + rank.encode()
            names = [file["path"] for file in call.files()]
            assert names == ["0/deep er/model", "1/deep er/model"], names
        assert [path.name for path in Path("kept/0/deep er").iterdir()] == ["model"]
        assert call.output().is_dir() and call.output() != call.output()
        """)
