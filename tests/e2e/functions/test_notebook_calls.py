# SPDX-License-Identifier: Apache-2.0
"""What people of notebooks expect of calls: many at once, taken up again by another process, awaited, planned, and cells on ranks."""

from __future__ import annotations

import json
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import PYTHON, Cluster
from slowness import patient
from test_functions import environment

Notebook = Callable[[str], str]


@pytest.fixture
def notebook(cluster: Cluster, tmp_path: Path) -> Notebook:
    """Run a script against the shared cluster, in a process of its own with a state folder of its own; return what it prints."""

    def run(script: str) -> str:
        path = tmp_path / "notebook.py"
        path.write_text(textwrap.dedent(script))
        env = {**environment(cluster, tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
        ran = subprocess.run([PYTHON, str(path)], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=patient(180.0))
        assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-8000:]
        return ran.stdout

    return run


def test_each_value_is_a_task_and_comes_back_in_order_or_as_it_ends(notebook: Notebook, cluster: Cluster) -> None:
    told = notebook("""
        import json, os
        from serverless_gpu import attach, distributed
        from urllib3.connection import HTTPConnection

        class Wrong(Exception):
            def __init__(self, number, *, unit):
                super().__init__(f"{number} {unit}")
                self.number = number

        class Box:
            def __init__(self, value):
                self.value = value

        @distributed(gpus=1, remote=True, requirements=None, working_dir=None, quiet=True, name="mapped")
        def square(x):
            if x == 3:
                raise Wrong(x, unit="apples")
            return Box(x * x), int(os.environ["GPUCTL_ARRAY_TASK"])

        call = square.map(range(12), max_concurrent=3, return_exceptions=True)
        values = list(call)
        assert len(call) == 12 and isinstance(values[3], Wrong) and values[3].number == 3
        assert "call 3 (3): " in str(values[3]) and "3 apples" in str(values[3])
        assert [(box.value, task) for box, task in values[:3] + values[4:]] == [(x * x, x) for x in range(12) if x != 3]
        frame = call.dataframe()
        assert list(frame.columns) == ["x", "value", "error"] and list(frame["x"]) == list(range(12)) and frame["value"][3] is None

        call = square.map([2, 3, 4])
        assert next(call)[0].value == 4
        try:
            next(call)
            raise SystemExit("the call of 3 did not raise")
        except Wrong as wrong:
            assert wrong.number == 3 and type(wrong.__cause__) is Wrong and "in square" in wrong.__cause__.__cause__.text
        assert next(call)[0].value == 16

        @distributed(gpus=2, remote=True, requirements=None, working_dir=None)
        def power(base, exponent=2):
            return int(os.environ["RANK"]), base**exponent

        call = power.starmap([(2, 3), (5,), (7, 1)], ordered=False)
        assert sorted(call) == [[(0, 7), (1, 7)], [(0, 8), (1, 8)], [(0, 25), (1, 25)]]
        assert call.result()[1] == [(0, 25), (1, 25)] and call.task(1).result() == [(0, 25), (1, 25)]
        again = attach(call.job_id)
        assert again.result() == call.result() and len(again) == 3 and list(power.map([])) == []

        @distributed(gpus=1, remote=True, requirements=None, working_dir=None)
        def twice(x):
            return 2 * x
        made = []
        connect = HTTPConnection.connect
        HTTPConnection.connect = lambda self: (made.append(1), connect(self))[1]
        call = twice.map(range(300))
        assert call.result() == [2 * x for x in range(300)]
        assert len(made) <= 10, made  # one for each of the threads that fetch
        print(json.dumps(call.job_id))
        """)
    view = cluster.api.job(json.loads(told))
    assert view["array"]["tasks"] == view["array"]["succeeded"] == 300 and set(view["spec"]["function"]) == {"inline_bytes", "modules"}


def test_another_process_takes_up_a_job_and_opens_only_what_its_ranks_have_sealed(notebook: Notebook, cluster: Cluster) -> None:
    ids = json.loads(
        notebook("""
        import json
        from serverless_gpu import distributed

        def options(**more):
            return dict(gpus=1, remote=True, run_async=True, requirements=None, working_dir=None, **more)

        kept = distributed(**options(name="kept"))(lambda: {1, 2}).distributed()
        plain = distributed(**options(name="plain"))(lambda: {"loss": 0.5}).distributed()
        large = distributed(**options(name="large"))(lambda data: (len(data),)).distributed(bytes(100_000))
        def wrong():
            raise KeyError("gone")
        failed = distributed(**options(name="failed"))(wrong).distributed()
        print(json.dumps([call.job_id for call in (kept, plain, large, failed)]))
        """)
    )
    operator = cluster.api.post("/v1/tokens", {"role": "operator", "owner": "somebody"})["secret"]
    wait = "until [ -s pid ]; do sleep 0.01; done; while kill -0 $(cat pid) 2>/dev/null; do sleep 0.01; done"  # else rank 0 is ended
    command = cluster.api.submit(["sh", "-c", f"if [ $RANK = 0 ]; then echo $$ >pid; exit 0; fi; {wait}; exit 3"], gpus=2, nodes=1)
    tasks = cluster.api.submit(["sh", "-c", "exit {task}"], gpus=1, array={"tasks": 3})
    script = f"""
        import os, sys
        from pathlib import Path
        import serverless_gpu
        from serverless_gpu.errors import ControllerError, JobFailed, RemoteError, ResultUnreadable

        kept, plain, large, failed = (serverless_gpu.attach(name) for name in {ids!r})
        assert kept.result() == [{{1, 2}}] and plain.result() == [{{"loss": 0.5}}] and large.result() == [(100_000,)]
        try:
            failed.result()
            raise SystemExit("no failure")
        except KeyError as error:
            assert isinstance(error, JobFailed) and error.__cause__.args == ("gone",)
        assert kept.status() == "SUCCEEDED" and kept.logs() == "" and kept.files() == []
        command = serverless_gpu.attach({command!r})
        assert command.result(60) == [0, 3] and command.status == "FAILED"
        assert serverless_gpu.attach({tasks!r}).result(60) == [0, 1, 2]
        listed = serverless_gpu.jobs(name="kept", state=["SUCCEEDED", "failed"], limit=1)
        assert [call.job_id for call in listed] == [kept.job_id] and listed[0].result() == [{{1, 2}}]
        head, row = repr(listed).splitlines()
        assert head.split()[:3] == ["id", "name", "state"] and row.split()[:3] == [kept.job_id, "kept", "SUCCEEDED"]
        assert f"<td>{{kept.job_id}}</td><td>kept</td>" in listed._repr_html_()
        try:
            serverless_gpu.attach("aaaaaaaaaaaaaaaa")
        except ControllerError as error:
            assert error.status == 404
        else:
            raise SystemExit("an unknown job was found")

        keys = Path(os.environ["XDG_STATE_HOME"]) / "gpuctl" / "call-keys"
        assert keys.stat().st_mode & 0o777 == 0o600
        keys.unlink()      # as on another host
        kept, plain, large, failed = (serverless_gpu.attach(name) for name in {ids!r})
        assert kept.result() == [{{1, 2}}] and plain.result() == [{{"loss": 0.5}}] and large.result() == [(100_000,)]
        assert isinstance(failed.exception(), KeyError)

        Path("operators-token").touch(0o600)
        Path("operators-token").write_text({operator!r})
        os.environ["GPUCTL_TOKEN_FILE"] = "operators-token"      # it sees the job of another, and opens nothing of it
        kept, plain, large, failed = (serverless_gpu.attach(name) for name in {ids!r})
        for call in kept, large:
            try:
                call.result()
                raise SystemExit("a pickle of another was opened")
            except ResultUnreadable as error:
                assert "the key of job" in str(error) and "as the user" in str(error)
        assert plain.result() == [{{"loss": 0.5}}]
        assert isinstance(failed.exception().__cause__, RemoteError) and "KeyError" in str(failed.exception())
        assert serverless_gpu.jobs(limit=3) == [] and repr(serverless_gpu.jobs()) == "no jobs"
        """
    notebook(script)


def test_calls_are_awaited_side_by_side_and_planned_before(notebook: Notebook) -> None:
    notebook("""
        import asyncio, threading
        from serverless_gpu import distributed

        @distributed(gpus=1, remote=True, requirements=None, working_dir=None)
        def twice(x):
            if x < 0:
                raise ValueError("negative")
            return 2 * x

        async def main():
            calls = [twice.submit(x) for x in (*range(12), -1)]
            values = await asyncio.gather(*calls, return_exceptions=True)
            assert values[:12] == [[2 * x] for x in range(12)] and isinstance(values[12], ValueError), values
            assert sum(thread.name.startswith("gpuctl-await") for thread in threading.enumerate()) <= 8

        asyncio.run(main())
        assert twice.remote is True
        plan = twice.plan(1)
        assert repr(plan).startswith("twice on 1 GPU would ") and plan["admitted"] and "<b>twice on 1 GPU" in plan._repr_html_()
        try:
            twice.plan(1, 2)
            raise SystemExit("two arguments were accepted")
        except TypeError as error:
            assert "too many positional arguments" in str(error)
        refused = distributed(gpus=1000, remote=True)(twice.func).plan()
        assert repr(refused).startswith("twice on 1000 GPUs would "), repr(refused)
        """)


def test_the_body_of_a_cell_runs_on_each_rank(notebook: Notebook) -> None:
    notebook("""
        import os, sys
        from IPython.core.interactiveshell import InteractiveShell

        shell = InteractiveShell.instance()
        shell.run_line_magic("load_ext", "serverless_gpu")
        shell.run_cell("import math\\nfactor = 3\\nself = 1\\ndef helper(x):\\n    return factor * x").raise_error()
        options = "gpus=2 remote=True requirements=None working_dir=None"
        cell = f"%%distributed {options} name=cell-1\\nimport os\\nrank = int(os.environ['RANK'])\\ndef inner(x): return rank + x\\n"
        ran = shell.run_cell(cell + "[helper(inner(i)) for i in range(2)] + [math.floor(factor + self / 2)]", store_history=True)
        ran.raise_error()
        assert ran.result == [[0, 3, 3], [3, 6, 3]] == shell.user_ns["_"], ran.result
        assert shell.run_cell(f"%%distributed {options}\\nfactor = 4").result == [None, None]
        shell.showtraceback = lambda *args, **kwargs: None
        failed = shell.run_cell(f"%%distributed {options}\\nx = 1\\nx / 0").error_in_exec
        assert isinstance(failed, ZeroDivisionError) and "x / 0" in failed.__cause__.__cause__.text
        for line, body, told in (
            ("remote=True", "1", "gpus is missing"), ("gpus=1 gpu_typ=H100", "1", "is it gpu_type?"), ("gpus", "1", "'gpus' has no value"),
            ("gpus=1 gpus=2", "1", "given twice"), ("gpus=1", "!ls", "ranks have no IPython"),
            ("gpus=x", "1", "gpus must be a whole number"),
        ):
            error = shell.run_cell(f"%%distributed {line}\\n{body}").error_in_exec
            assert told in str(error), error
        """)
