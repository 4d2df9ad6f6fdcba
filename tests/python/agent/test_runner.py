# SPDX-License-Identifier: Apache-2.0
"""The runner of function jobs, agent/python/gpuctl_runner.py, as the agent starts it: real processes and real payloads."""

import errno
import hmac
import json
import pickle
import re
import signal
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from runner_rig import HEADER, RUNNER, VERSION, Made, Rank, eventually, payload_of, ran

# --- values -------------------------------------------------------------------------------------------------------------------------------


def test_a_value_is_stored_as_pickle_and_as_json(tmp_path):
    rank = ran(tmp_path, "def call(x): return {'loss': [x, None, True, 'ä\\n']}", 0.5)
    assert rank.value() == {"loss": [0.5, None, True, "ä\n"]}
    assert json.loads((rank.results / "0.json").read_text(encoding="utf-8")) == rank.value()
    assert rank.files() == ["0.json", "0.pickle"]
    assert (rank.out, rank.err) == ("", "")


@pytest.mark.parametrize(
    ("source", "name", "kind"),
    [
        ("def call(): return 'x'", "0.pickle", "value"),
        ("def call(): return __import__('numpy').ones(2**20)", "0.pickle", "value"),
        ("def call(): raise ValueError('no')", "0.error.pickle", "exception"),
    ],
    ids=["small", "large", "exception"],
)
def test_what_a_rank_pickles_has_the_seal_of_its_call(tmp_path, source, name, kind):
    key = bytes(range(32))
    rank = Rank(tmp_path, payload_of(source) + key, GPUCTL_JOB_ID="job7")
    rank.wait()
    data, _, seal = (rank.results / name).read_bytes().rpartition(b"\ngpuctl-seal ")
    assert seal == hmac.new(key, f"job7 0 {kind}\n".encode() + data, "sha256").hexdigest().encode() + b"\n"
    pickle.loads(data)


def test_json_is_left_out_unless_it_says_all_of_the_value(tmp_path):
    sys.path.insert(0, str(RUNNER.parent))
    try:
        from gpuctl_runner import faithful_json
    finally:
        sys.path.remove(str(RUNNER.parent))
    deep: list = []
    for _ in range(15):
        deep = [deep]
    circle: list = []
    circle.append(circle)
    for value in (None, True, 0, -(2**63), 2**63 - 1, 1e-300, -0.0, "", "ü", [], {}, {"a": [{"b": "c"}]}, deep, ["x" * 1000] * 60):
        text = faithful_json(value)
        assert text is not None and repr(json.loads(text)) == repr(value)
    unfaithful = [
        (1, 2),
        {1: 2},
        {"a": (1,)},
        float("nan"),
        float("inf"),
        2**63,
        -(2**63) - 1,
        b"x",
        "\ud800",
        "a\0b",
        {"\0": 1},
        [deep],
        circle,
    ]
    for value in [*unfaithful, ["x" * 1000] * 70, [0] * 70000, {1}, type("Sub", (str,), {})("x"), type("Sub", (dict,), {})(), print]:
        assert faithful_json(value) is None
    assert ran(tmp_path, "def call(): return (1, 2)").files() == ["0.pickle"]


def test_a_value_of_a_class_of_the_notebook_comes_back_whole(tmp_path):
    rank = ran(
        tmp_path, "class Report:\n  def __init__(self, x): self.x = x\n  def twice(self): return 2 * self.x\ndef call(): return Report(21)"
    )
    assert rank.value().twice() == 42


@pytest.mark.parametrize("make", ["bytes(SIZE)", "bytearray(SIZE)", "__import__('numpy').ones(SIZE // 8)"])
def test_a_large_value_is_written_from_where_it_lies(tmp_path, make):
    size = 200 * 2**20
    source = f"""
    SIZE = {size}
    def call():
        import atexit, shutil
        atexit.register(shutil.copyfile, "/proc/self/status", "status-at-the-end")
        value = {make}
        memoryview(value).cast('B')[-1]
        return value
    """
    assert ran(tmp_path, source).process.returncode == 0
    assert (tmp_path / "results/0.pickle").stat().st_size >= size
    peak = re.search(r"VmHWM:\s*(\d+) kB", (tmp_path / "status-at-the-end").read_text())
    assert peak is not None and int(peak[1]) * 1024 < size + 150 * 2**20  # less than a copy


def test_a_value_that_cannot_be_pickled_is_an_error_that_names_its_type(tmp_path):
    rank = ran(tmp_path, "def call(): return (n for n in [1])")
    assert rank.process.returncode == 1
    assert rank.files() == ["0.error.pickle"]
    assert rank.error()["type"] == "ResultNotPicklable"
    assert "of type generator, cannot be pickled" in rank.error()["message"]
    assert type(rank.error()["exception"]) is RuntimeError
    assert rank.error_file()["message"].startswith("ResultNotPicklable: The function's value, of type generator")
    assert "gpuctl_runner" not in rank.err


@pytest.mark.parametrize(("value", "limit"), [("bytes(1000000)", 100000), ("'x' * 60000", 60010)], ids=["pickle", "JSON fits"])
def test_a_value_that_finds_no_room_is_an_error_and_leaves_no_half_file(tmp_path, value, limit):
    source = f"""
    def call():
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
        return {value}
    """
    rank = ran(tmp_path, source)
    assert rank.process.returncode == 1
    assert rank.files() == ["0.error.pickle"]
    assert rank.error()["type"] == "ResultNotStored"
    assert f"[Errno {errno.EFBIG}]" in rank.error()["message"]


# --- exceptions ---------------------------------------------------------------------------------------------------------------------------


def test_an_exception_leaves_its_object_its_frames_and_the_error_file(tmp_path):
    source = """
    class Bad(ValueError):
        pass
    def inner():
        raise Bad("loss is nan", 7)
    def call():
        inner()
    """
    rank = ran(tmp_path, source)
    assert rank.process.returncode == 1
    assert rank.files() == ["0.error.pickle"]
    error = rank.error()
    assert (error["type"], error["message"]) == ("Bad", "('loss is nan', 7)")
    assert isinstance(error["exception"], ValueError) and error["exception"].args == ("loss is nan", 7)
    assert error["frames"] == [("<string>", 7, "call"), ("<string>", 5, "inner")]
    assert error["traceback"] == rank.err
    assert rank.err.startswith('Traceback (most recent call last):\n  File "<string>", line 7, in call\n')
    assert rank.err.endswith("Bad: ('loss is nan', 7)\n")
    assert rank.error_file()["message"] == "Bad: ('loss is nan', 7)"
    assert rank.error_file()["extraInfo"]["py_callstack"] == rank.err
    assert abs(int(rank.error_file()["extraInfo"]["timestamp"]) - time.time()) < 60


def test_a_traceback_tells_causes_and_contexts(tmp_path):
    source = """
    def call():
        try:
            try:
                {}["first"]
            except KeyError as fault:
                raise ValueError("second") from fault
        except ValueError:
            raise TypeError("third")
    """
    text = ran(tmp_path, source).error()["traceback"]
    assert text.index("KeyError: 'first'") < text.index("direct cause") < text.index("ValueError: second")
    assert text.index("ValueError: second") < text.index("During handling") < text.index("TypeError: third")


def test_an_exception_whose_arguments_are_not_those_it_was_made_with_travels(tmp_path):
    body = "class Odd(LookupError):\n  def __init__(self, code, text):\n    super().__init__(f'{code}: {text}'); self.code = code"
    fault = ran(tmp_path, f"{body}\ndef call(): raise Odd(7, 'bad')").error()["exception"]
    assert (type(fault).__name__, str(fault), fault.code) == ("Odd", "7: bad", 7)


@pytest.mark.parametrize(
    "body",
    [
        "class Odd(Exception):\n  def __setstate__(self, _): raise OSError\ndef call():\n  fault = Odd('one'); fault.a = 1; raise fault",
        "class Odd(Exception):\n  def __reduce__(self): raise OSError('no')\ndef call(): raise Odd('one')",
        "import threading\nclass Odd(Exception): pass\ndef call():\n  fault = Odd('one'); fault.lock = threading.Lock(); raise fault",
        "class Odd(Exception): pass\ndef call():\n  fault = Odd('one'); fault.data = bytes(2000000); raise fault",
        "class Odd(Exception): pass\ndef call(): raise Odd('one' * 5000000)",
    ],
    ids=["loading fails", "pickling fails", "holds a lock", "holds much", "says much"],
)
def test_an_exception_that_cannot_travel_is_told_by_its_text(tmp_path, body):
    rank = ran(tmp_path, body)
    error = rank.error()
    assert rank.process.returncode == 1
    assert (error["type"], error["exception"]) == ("Odd", None)
    assert error["message"].startswith("one") and "Odd: one" in error["traceback"]
    assert sum(path.stat().st_size for path in rank.results.iterdir()) < 2**20
    assert rank.errors.stat().st_size < 16 * 1024


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def call(): raise ValueError('\\ud800 a\\0b')", "\\ud800 a\\x00b"),
        ("class Odd(Exception):\n  def __str__(self): raise ValueError\ndef call(): raise Odd", "<no text: its __str__ fails>"),
        ("def call(): raise ValueError('\\U0001f600' * 9000)", "\U0001f600" * 9000),
        ("def call(): raise ValueError('\\x01' * 9000)", "\x01" * 9000),
        ("class Odd(BaseException): pass\ndef call(): raise Odd('base')", "base"),
    ],
    ids=["surrogate", "str fails", "wide", "escaped", "no Exception"],
)
def test_an_exception_with_an_odd_text_is_told_in_valid_files(tmp_path, body, message):
    rank = ran(tmp_path, body)
    assert rank.process.returncode == 1
    assert rank.error()["message"] == message
    assert rank.errors.stat().st_size < 16 * 1024
    assert rank.error_file()["message"].split(": ")[1][:5] == message[:5]


def test_a_long_traceback_loses_its_middle_in_the_error_file(tmp_path):
    source = """
    def ping(n):
        pong(n - 1)
    def pong(n):
        if n == 400:
            middle(n)
        if n < 0:
            raise ValueError("deep")
        ping(n - 1)
    def middle(n):
        ping(n - 1)
    def call():
        ping(801)
    """
    rank = ran(tmp_path, source)
    stack = rank.error_file()["extraInfo"]["py_callstack"]
    assert 8 * 1024 < rank.errors.stat().st_size < 16 * 1024
    assert re.search(r"in call\n.* characters left out .*in pong\nValueError: deep\n$", stack, re.DOTALL)
    assert "in middle" not in stack
    assert "in middle" in rank.error()["traceback"]
    assert len(rank.error()["frames"]) == 256


@pytest.mark.parametrize(
    ("argument", "code", "err"), [("", 0, ""), ("0", 0, ""), ("3", 3, ""), ("-1", 255, ""), ("'enough'", 1, "enough\n")]
)
def test_sys_exit_sets_the_exit_code_and_leaves_no_result(tmp_path, argument, code, err):
    rank = ran(tmp_path, f"def call():\n  import sys\n  sys.exit({argument})")
    assert (rank.process.returncode, rank.err, rank.files()) == (code, err, [])
    assert not rank.errors.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_rank_as_it_ends_any_python(tmp_path, number):
    rank = Rank(tmp_path, payload_of("def call():\n  import time\n  open('ready', 'w').close()\n  time.sleep(60)"))
    eventually((tmp_path / "ready").exists, "the function runs")
    rank.process.send_signal(number)
    assert rank.wait() == -number
    assert rank.files() == []


# --- payloads -----------------------------------------------------------------------------------------------------------------------------


def refused(folder: Path, payload: bytes, **named: Any) -> dict:
    """The error of a payload that must be refused in one line."""
    rank = Rank(folder, payload, **named)
    assert rank.wait() == 1
    assert rank.err.count("\n") == 1, rank.err
    assert "node-seven" in rank.err
    assert rank.err == f"{rank.error()['type']}: {rank.error()['message']}\n"
    assert rank.error_file()["message"] == rank.err.strip()
    assert type(rank.error()["exception"]) is RuntimeError
    return rank.error()


def test_another_python_is_refused_with_both_versions_and_the_remedy(tmp_path):
    error = refused(tmp_path, b"gpuctl-function 1 python=3.2\nwhatever")
    assert error["type"] == "PythonVersionMismatch"
    for word in ("Python 3.2", f"Python {VERSION}", sys.executable, "python=PATH", "gpuagent --python"):
        assert word in error["message"]


def test_another_format_is_refused_with_both_versions(tmp_path):
    error = refused(tmp_path, payload_of("def call(): pass").replace(b"function 1", b"function 2", 1))
    assert error["type"] == "PayloadFormatUnknown"
    assert "format 2" in error["message"] and "format 1" in error["message"]


@pytest.mark.parametrize("length", [0, 20, 40, -1])
def test_a_cut_payload_is_refused(tmp_path, length):
    assert refused(tmp_path, payload_of("def call(): return 1")[:length])["type"] == "PayloadUnreadable"


def test_a_python_without_cloudpickle_is_named_with_the_remedy(tmp_path, bare_python):
    error = refused(tmp_path, payload_of("def call(): return 1"), python=bare_python)
    assert error["type"] == "CloudpickleMissing"
    assert f"{bare_python} -m pip install cloudpickle" in error["message"]


def test_shipped_modules_come_first(tmp_path, bare_python):
    shipped = tmp_path / "modules"
    shipped.mkdir()
    (shipped / "cloudpickle").symlink_to(Path(cloudpickle.__file__).parent)
    payload = payload_of("def call():\n  import sys, cloudpickle\n  return sys.path[:2], cloudpickle.__file__")
    rank = Rank(tmp_path, payload, python=bare_python, GPUCTL_MODULES=str(shipped))
    rank.wait()
    assert rank.value() == ([str(shipped), ""], str(shipped / "cloudpickle" / "__init__.py"))


def test_plain_functions_run_without_cloudpickle(tmp_path, bare_python):
    rank = Rank(tmp_path, HEADER + pickle.dumps((dict, ([("a", 1)],), {"b": 2})), python=bare_python)
    rank.wait()
    assert rank.value() == {"a": 1, "b": 2}


def test_a_module_that_the_node_lacks_is_named_with_the_remedy(tmp_path):
    (tmp_path / "laptop_only.py").write_text("def helper(): return 1\n")
    sys.path.insert(0, str(tmp_path))
    try:
        payload = payload_of("import laptop_only\ndef call(): return laptop_only.helper()")
    finally:
        sys.path.remove(str(tmp_path))
        del sys.modules["laptop_only"]
    (tmp_path / "node").mkdir()
    rank = Rank(tmp_path / "node", payload)
    assert rank.wait() == 1
    error = rank.error()
    assert error["type"] == "FunctionNotLoadable"
    for word in ("No module named 'laptop_only'", "node-seven", f"Python {VERSION}", sys.executable, "python=PATH"):
        assert word in error["message"]
    assert "\nModuleNotFoundError: No module named 'laptop_only'\n\nThe above exception was the direct cause" in error["traceback"]
    assert rank.err.splitlines()[-1] == f"FunctionNotLoadable: {error['message']}"


def test_an_attribute_that_the_node_lacks_is_named(tmp_path):
    payload = HEADER + b"cjson\nno_such_function\n."
    rank = Rank(tmp_path, payload)
    rank.wait()
    assert "AttributeError" in rank.error()["message"] and "no_such_function" in rank.error()["message"]


# --- the process --------------------------------------------------------------------------------------------------------------------------


def test_output_is_utf8_by_lines_whatever_the_locale(tmp_path):
    source = """
    def call():
        import os, sys
        print("ä \\udcff", flush=False)
        print("ü", file=sys.stderr)
        os.kill(os.getpid(), 9)
    """
    rank = ran(tmp_path, source, LC_ALL="C", PYTHONIOENCODING="ascii")
    assert (rank.process.returncode, rank.out, rank.err) == (-9, "ä \\udcff\n", "ü\n")


def test_the_function_sees_the_arguments_and_paths_of_a_python_c(tmp_path):
    rank = ran(tmp_path, "def call():\n  import sys\n  return sys.argv, sys.path[0], [path for path in sys.path if path.endswith('agent')]")
    assert rank.value() == (["-c"], "", [])


def test_threads_exit_functions_and_open_files_are_finished(tmp_path):
    source = """
    import threading
    def late():
        threading.main_thread().join()
        print("thread")
    def call():
        global kept
        import atexit
        kept = open("kept", "w")
        kept.write("half a line")
        atexit.register(print, "atexit", end="")
        atexit.register(lambda: 1 / 0)
        threading.Thread(target=late).start()
        return 1
    """
    rank = ran(tmp_path, source)
    assert rank.value() == 1
    assert rank.out == "thread\natexit"
    assert "ZeroDivisionError" in rank.err
    assert (tmp_path / "kept").read_text() == "half a line"


def test_a_crash_in_the_teardown_does_not_fail_the_rank(tmp_path):
    source = """
    import os
    class Abort:
        def __del__(self, abort=os.abort): abort()
    def call():
        import sys
        sys.kept = Abort()
        return 1
    """
    assert ran(tmp_path, source).value() == 1


def test_a_closed_stdout_is_ignored(tmp_path):
    source = """
    def call():
        import os, sys
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 1)
        sys.stdout.write("x")
        return 1
    """
    assert ran(tmp_path, source).value() == 1


# --- __main__ -----------------------------------------------------------------------------------------------------------------------------

NOTEBOOK = """
    import pickle
    class Model:
        size = 3
    class Unnamed:
        pass
    def helper(n):
        return n + Model.size
    count = 1
"""


def test_plain_pickle_finds_what_came_from_the_notebook(tmp_path):
    source = """
    def call(thing):
        global Later, count
        class Later:
            pass
        count += 1
        import __main__
        again = [pickle.loads(pickle.dumps(one)) for one in (Model(), helper, thing, Later())]
        return [type(again[0]) is Model, again[1] is helper, type(again[2]) is type(thing), type(again[3]) is Later, __main__.count]
    """
    rank = Rank(tmp_path, payload_of(textwrap.dedent(NOTEBOOK) + textwrap.dedent(source), Made("Unnamed")))
    rank.wait()
    assert rank.value() == [True, True, True, True, 2]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_spawned_processes_find_what_came_from_the_notebook(tmp_path, method):
    source = f"""
    def main(model):
        return type(model).__name__, helper(4)
    def call():
        import multiprocessing
        with multiprocessing.get_context("{method}").Pool(1) as pool:
            return pool.apply(main, (Model(),))
    """
    rank = ran(tmp_path, textwrap.dedent(NOTEBOOK) + textwrap.dedent(source))
    assert rank.value() == ("Model", 7)


def test_processes_spawn_for_a_function_that_is_no_notebooks(tmp_path):
    source = """
    import multiprocessing
    def call():
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return pool.apply(len, ("four",))
    """
    (tmp_path / "library.py").write_text(textwrap.dedent(source))
    rank = Rank(tmp_path, HEADER + b"(clibrary\ncall\n(t(dt.")
    rank.wait()
    assert rank.value() == 4


def test_a_function_sees_the_file_of_its_own_script(tmp_path):
    source = """
    def call():
        import multiprocessing
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            return __file__, pool.apply(helper, (1,))
    """
    rank = Rank(tmp_path, payload_of(textwrap.dedent(NOTEBOOK) + textwrap.dedent(source), __file__="/home/ann/train.py"))
    rank.wait()
    assert rank.value() == ("/home/ann/train.py", 4)
