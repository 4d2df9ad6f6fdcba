# SPDX-License-Identifier: Apache-2.0
"""Runs one rank of a function job on its node.

It loads the pickled call from $GPUCTL_FUNCTION, makes it, and stores the value or the exception in $GPUCTL_RESULT_DIR under the name
$GPUCTL_RANK. A file with its final name is complete. A failure to load, run or store is reported in one sentence with a remedy. The
interpreter's teardown cannot change the exit code of a rank whose value is stored. The agent makes the environment of a rank and collects
its files. gpuctl_store.py, in the same folder, lets torch and JAX find the gang.

It is started by `import sys; sys.path.insert(0, sys.argv[1]); import gpuctl_runner; gpuctl_runner.main()` with its folder as the argument,
so that Python caches its byte code. It needs only the standard library, from Python 3.8 on. Modules that most functions do not need are
imported where they are used.
"""

import os
import pickle
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, BinaryIO, Callable, NoReturn

FORMAT = "1"
VERSION = "{}.{}".format(*sys.version_info[:2])
PICKLE_PROTOCOL = 5
HEADER_LIMIT_BYTES = 256

seal_key = b""  # of the call, with which its sender knows what its ranks have pickled; empty: there is none

JSON_DEPTH = 16
JSON_LIMIT_BYTES = 64 * 1024

ERROR_FILE_LIMIT_BYTES = 16 * 1024
EXCEPTION_LIMIT_BYTES = 1024 * 1024  # a larger one is reported by its text alone
TRACEBACK_LIMIT = 256 * 1024  # characters
MESSAGE_LIMIT = 64 * 1024  # characters
BRIEF_LIMIT = 500  # characters
FRAMES_LIMIT = 256


# --- what is refused --------------------------------------------------------------------------------


class Refusal(RuntimeError):
    """A failure that this file detects itself. Its text names the problem, the place and the remedy."""


def refusal(kind: str, text: str) -> Refusal:
    """Return an error that shows `kind` as the name of its type."""
    return type(kind, (Refusal,), {"__module__": "builtins"})(text)


def place() -> str:
    """Return this node and this Python, for use in a sentence."""
    return f"node {os.environ.get('GPUCTL_NODE', '?')} by Python {VERSION} ({sys.executable})"


def brief(fault: BaseException) -> str:
    """Return `Type: message` in one short line."""
    text = " ".join(f"{type(fault).__name__}: {safe_text(fault)}".split())
    return text if len(text) <= BRIEF_LIMIT else text[: BRIEF_LIMIT - 3] + "..."


# --- the payload ------------------------------------------------------------------------------------


def check_header(line: bytes, path: str) -> None:
    """Refuse a payload of another format or of another Python."""
    words = line.decode("ascii", "replace").split()
    if not line.endswith(b"\n") or len(words) < 3 or words[0] != "gpuctl-function":
        raise refusal("PayloadUnreadable", f"The function's payload on {place()} is cut or damaged ({path}): submit the job again.")
    if words[1] != FORMAT:
        versions = f"format {words[1]}, but it is run on {place()}, where gpuagent reads format {FORMAT}"
        raise refusal("PayloadFormatUnknown", f"The function's payload is of {versions}: bring client and gpuagent to one version.")
    if words[2] != "python=" + VERSION:
        theirs = words[2].replace("python=", "", 1)
        remedy = f"name a Python {theirs} of that node for the job (python=PATH), or start its agent with gpuagent --python PATH."
        raise refusal("PythonVersionMismatch", f"The function was pickled by Python {theirs}, but is run on {place()}: {remedy}")


class Loader(pickle.Unpickler):
    """Loads a call, and rebuilds objects pickled by value from the sender's `__main__` in the `__main__` of this process.

    Plain pickle then finds them there: for torch.save(model), and for the arguments of a spawned worker.
    """

    def __init__(self, file: "BinaryIO") -> None:
        super().__init__(file)
        self.namespace = sys.modules["__main__"].__dict__
        self.made: list = []

    def find_class(self, module: str, name: str) -> "Any":
        found = super().find_class(module, name)
        if name in ("_make_function", "_make_skeleton_class", "_make_skeleton_enum") and module.startswith("cloudpickle"):
            return self.make_function(found) if name == "_make_function" else self.make_class(found)
        return found

    def make_function(self, make: "Callable[..., Any]") -> "Callable[..., Any]":
        """Return cloudpickle's constructor of functions, with this `__main__` in place of the sender's."""

        def made(code: object, namespace: dict, *rest: object, **named: object) -> "Any":
            if namespace.get("__name__") == "__main__":
                self.namespace.update((key, value) for key, value in namespace.items() if key != "__name__")
                namespace = self.namespace
            self.made.append(make(code, namespace, *rest, **named))
            return self.made[-1]

        return made

    def make_class(self, make: "Callable[..., Any]") -> "Callable[..., Any]":
        """Return cloudpickle's constructor of classes, which records the new classes."""

        def made(*args: object, **named: object) -> "Any":
            self.made.append(make(*args, **named))
            return self.made[-1]

        return made

    def publish(self) -> None:
        """Name the rebuilt objects in `__main__`, unless the payload has a global of that name."""
        mine = [thing for thing in self.made if getattr(thing, "__module__", None) == "__main__"]
        for thing in mine:
            if thing.__name__.isidentifier() and "." not in thing.__qualname__:
                self.namespace.setdefault(thing.__name__, thing)
        if mine:
            sys.modules["__main__"].__class__ = Main


class Main(type(sys)):
    """A `__main__` that multiprocessing can make again in a spawned process, by running the file named here: see the end of this file.

    A function that reads the global `__file__` still sees the sender's.
    """

    __file__ = property(lambda self: os.path.abspath(__file__))


def load() -> tuple:
    """Return the call: (function, args, kwargs). The payload may have the key of its seal behind the pickle."""
    global seal_key
    path = os.environ["GPUCTL_FUNCTION"]
    with open(path, "rb") as payload:
        check_header(payload.readline(HEADER_LIMIT_BYTES), path)
        loader = Loader(payload)
        try:
            call = loader.load()
            loader.publish()
            seal_key = payload.read()
            return call
        except Exception as fault:
            refuse_payload(fault, path)


def refuse_payload(fault: Exception, path: str) -> "NoReturn":
    """Raise the error that explains why a payload did not load."""
    missing = (getattr(fault, "name", None) or "").split(".")[0] if isinstance(fault, ModuleNotFoundError) else None
    if missing == "cloudpickle":
        remedy = f"install it there ({sys.executable} -m pip install cloudpickle), or submit with a client that sends its own."
        text = f"The function cannot be loaded on {place()}, which has no cloudpickle: {remedy}"
        raise refusal("CloudpickleMissing", text) from None
    if isinstance(fault, (EOFError, pickle.UnpicklingError)) and users_frames(fault) is None:
        text = f"The function's payload on {place()} is cut or damaged ({path}: {brief(fault)}): submit the job again."
        raise refusal("PayloadUnreadable", text) from None
    remedy = "install what is missing in that Python, or name one that has it for the job (python=PATH)."
    raise refusal("FunctionNotLoadable", f"The function cannot be loaded on {place()}: {brief(fault)}. Remedy: {remedy}") from fault


# --- the value --------------------------------------------------------------------------------------


def result_path(suffix: str) -> str:
    """Return the path of a result file of this rank, whose folder it makes if necessary."""
    folder = os.environ["GPUCTL_RESULT_DIR"]
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, os.environ["GPUCTL_RANK"] + suffix)


def write_file(path: str, write: "Callable[[BinaryIO], object]") -> None:
    """Let write(file) fill PATH.part, and rename it once it is complete; leave nothing behind on failure."""
    part = path + ".part"
    try:
        with open(part, "wb") as file:
            write(file)
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise


def write_sealed(kind: str, suffix: str, dump: "Callable[..., object]", value: object) -> None:
    """Write a pickle into a result file, and behind it a seal: an HMAC, by the call's key, over the job, the rank, the kind and the pickle.

    The sender of the call opens no pickle without it. A reader of pickles ignores what is behind one.
    """
    if not seal_key:
        write_file(result_path(suffix), lambda file: dump(value, file, PICKLE_PROTOCOL))
        return
    import hmac

    told = "{} {} {}\n".format(os.environ["GPUCTL_JOB_ID"], os.environ["GPUCTL_RANK"], kind)
    seal = hmac.new(seal_key, told.encode(), "sha256")

    class Sealed:
        """Takes what a pickler writes."""

        def __init__(self, file: "BinaryIO") -> None:
            self.file = file

        def write(self, data: "Any") -> int:
            seal.update(data)
            return self.file.write(data)

    def write(file: "BinaryIO") -> None:
        dump(value, Sealed(file), PICKLE_PROTOCOL)
        file.write(b"\ngpuctl-seal " + seal.hexdigest().encode() + b"\n")

    write_file(result_path(suffix), write)


def keep(value: object) -> None:
    """Store the value of the call: R.json if JSON can express all of it, then R.pickle, straight from the value's own memory."""
    try:
        text = faithful_json(value)
        if text is not None:
            encoded = text.encode()
            write_file(result_path(".json"), lambda file: file.write(encoded))
            write_sealed("value", ".pickle", pickle.dump, value)
            return
        write_sealed("value", ".pickle", pickler().dump, value)
    except OSError as fault:
        text = f"The function's value, of type {type_name(value)}, cannot be stored on {place()}: {brief(fault)}."
        raise refusal("ResultNotStored", text) from fault
    except Exception as fault:
        remedy = "Return plain values, arrays or tensors, and leave open files, locks, generators and processes out."
        text = f"The function's value, of type {type_name(value)}, cannot be pickled: {brief(fault)}. {remedy}"
        raise refusal("ResultNotPicklable", text) from fault


def pickler() -> "Any":
    """Return cloudpickle, or pickle on a node without cloudpickle."""
    try:
        import cloudpickle
    except ImportError:
        return pickle
    return cloudpickle


def type_name(value: object) -> str:
    """Return the name of a value's type, with its module unless that is builtins or `__main__`."""
    kind = type(value)
    return kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"


def faithful_json(value: object) -> "str | None":
    """Return the value as JSON text, or None if JSON would not give back the same value."""
    if value is None:
        return "null"
    if not is_faithful(value, 0, [JSON_LIMIT_BYTES]):
        return None
    import json

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text if len(text.encode()) <= JSON_LIMIT_BYTES else None


def is_faithful(value: "Any", depth: int, budget: "list[int]") -> bool:
    """Return whether a value and all its parts are of JSON's own types. budget[0]: bytes that may follow, at least one for each item."""
    kind = type(value)
    budget[0] -= 1
    if kind is bool or value is None:
        return True
    if kind is int:
        return -(2**63) <= value < 2**63
    if kind is float:
        return value - value == 0.0  # neither NaN nor infinite
    if kind is str:
        budget[0] -= len(value)
        return budget[0] >= 0 and "\0" not in value and value.encode("utf-8", "ignore").decode() == value
    if kind not in (list, dict) or depth == JSON_DEPTH or len(value) > budget[0]:
        return False
    if kind is list:
        return all(is_faithful(item, depth + 1, budget) for item in value)
    return all(type(key) is str and is_faithful(key, depth, budget) and is_faithful(item, depth + 1, budget) for key, item in value.items())


# --- the exception ----------------------------------------------------------------------------------


def fail(fault: BaseException) -> None:
    """Report an exception: in R.error.pickle, in torch elastic's error file, and as a traceback on stderr."""
    trace = users_frames(fault)
    text = trace_text(fault, trace)
    message = shorten(safe_text(fault), MESSAGE_LIMIT)
    row = {
        "type": type(fault).__name__,
        "message": message,
        "traceback": text,
        "frames": frames(trace),
        "exception": portable(RuntimeError(str(fault)) if isinstance(fault, Refusal) else fault),
    }
    for write in (lambda: write_error_pickle(row), lambda: write_error_file(f"{row['type']}: {message}", text)):
        try:
            write()
        except Exception as other:
            say(f"gpuctl: an error file cannot be written on {place()}: {brief(other)}\n")
    say(text)


def users_frames(fault: BaseException) -> "TracebackType | None":
    """Return the exception's traceback without its first frames in this file or the import system; None if no other frame is left."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith((__file__, "<frozen importlib")):
        trace = trace.tb_next
    return trace


def trace_text(fault: BaseException, trace: "TracebackType | None") -> str:
    """Return the traceback as Python would print it, causes and contexts included, without the middle of a very long one."""
    import traceback

    if isinstance(fault, Refusal) and fault.__cause__ is not None:
        fault.__cause__.__traceback__ = users_frames(fault.__cause__)
    try:
        return printable(shorten("".join(traceback.format_exception(type(fault), fault, trace)), TRACEBACK_LIMIT))
    except Exception as other:  # an exception that cannot be printed
        return f"{brief(fault)} (its traceback cannot be shown: {brief(other)})\n"


def frames(trace: "TracebackType | None") -> "list[tuple[str, int, str]]":
    """Return (file, line, name) of each frame, the outermost first."""
    found = []
    while trace is not None:
        code = trace.tb_frame.f_code
        found.append((code.co_filename, trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    half = FRAMES_LIMIT // 2
    return found if len(found) <= FRAMES_LIMIT else found[:half] + found[-half:]


class Remade:
    """Pickles as an exception that is made without a call of its __init__, whose arguments may differ from the exception's args."""

    def __init__(self, fault: BaseException) -> None:
        self.fault = fault

    def __reduce__(self) -> tuple:
        kind = type(self.fault)
        builtin = next(base for base in kind.__mro__ if base.__module__ == "builtins")
        return builtin.__new__, (kind, *self.fault.args), self.fault.__dict__ or None


def portable(fault: "BaseException | Remade") -> "BaseException | Remade | None":
    """Return the exception, or an object that pickles as it; None if it cannot be pickled and loaded again, or is too large."""
    import io

    class Bounded(io.BytesIO):
        def write(self, data: "Any") -> int:
            if self.tell() + memoryview(data).nbytes > EXCEPTION_LIMIT_BYTES:
                raise OverflowError
            return super().write(data)

    try:
        file = Bounded()
        pickler().dump(fault, file, PICKLE_PROTOCOL)
        return fault if isinstance(pickle.loads(file.getvalue()), BaseException) else None  # noqa: S301  (its own pickle)
    except TypeError:
        return None if isinstance(fault, Remade) else portable(Remade(fault))
    except Exception:
        return None


def write_error_pickle(row: dict) -> None:
    """Write R.error.pickle, and remove an already stored value."""
    for suffix in (".json", ".pickle"):
        if os.path.exists(result_path(suffix)):
            os.unlink(result_path(suffix))
    write_sealed("exception", ".error.pickle", pickler().dump, row)


def write_error_file(message: str, text: str) -> None:
    """Write torch elastic's error file as its `record` does, cut to its limit."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return
    import json
    import time

    limit, encoded = ERROR_FILE_LIMIT_BYTES, b""
    while not encoded or len(encoded) >= ERROR_FILE_LIMIT_BYTES:
        extra = {"py_callstack": printable(shorten(text, limit)), "timestamp": str(int(time.time()))}
        whole = {"message": {"message": printable(shorten(message, limit // 4)), "extraInfo": extra}}
        encoded = json.dumps(whole, ensure_ascii=False).encode()
        limit = limit * 3 // 4
    write_file(path, lambda file: file.write(encoded))


def safe_text(fault: BaseException) -> str:
    """Return str(fault), even if that raises."""
    try:
        return printable(str(fault))
    except Exception:
        return "<no text: its __str__ fails>"


def printable(text: str) -> str:
    """Return text that any reader of UTF-8 and JSON accepts: lone surrogates and NULs are escaped."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def shorten(text: str, limit: int) -> str:
    """Return at most `limit` characters: head and tail of a longer text."""
    if len(text) <= limit:
        return text
    gap = f"\n... {len(text) - limit} characters left out ...\n"
    head = max(limit - len(gap), 0) // 2
    return text[:head] + gap + text[len(text) - head :]


def say(text: str) -> None:
    """Print on stderr; ignore a closed one."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except Exception:
        return


# --- the life of a rank -----------------------------------------------------------------------------


def beside(name: str) -> "Any":
    """Import a module from the folder of this file, which is not on sys.path."""
    import importlib

    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


def flush_files() -> None:
    """Flush files that are still open, as their finalizers would. Costs nothing unless one is open for writing."""
    import fcntl
    import stat

    def is_written(name: str) -> bool:
        try:
            writes = fcntl.fcntl(int(name), fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
            return int(name) > 2 and writes and stat.S_ISREG(os.fstat(int(name)).st_mode)
        except OSError:
            return False

    if not any(is_written(name) for name in os.listdir("/proc/self/fd")):
        return
    import gc
    import io

    for thing in gc.get_objects():
        if issubclass(type(thing), (io.BufferedWriter, io.BufferedRandom, io.TextIOWrapper)):
            try:
                thing.flush()
            except Exception:  # noqa: S112  closed, only read, or no space: a finalizer would be silent, too
                continue


def quietly(action: "Callable[[], object]") -> None:
    """Do a last action; its failure changes nothing, because the exit code is decided."""
    try:
        action()
    except Exception:  # already reported if possible; a closed stream can report nothing
        return


def finish(code: int) -> None:
    """End the process as Python does up to the exit functions, and skip its teardown."""
    import atexit

    if "threading" in sys.modules:
        quietly(sys.modules["threading"]._shutdown)
    quietly(atexit._run_exitfuncs)
    quietly(flush_files)
    quietly(lambda: sys.stdout.flush())
    quietly(lambda: sys.stderr.flush())
    os._exit(code & 0xFF)


def exit_code(request: SystemExit) -> int:
    """Return the code with which Python would exit; print a text to stderr."""
    if request.code is None or isinstance(request.code, int):
        return request.code or 0
    say(printable(str(request.code)) + "\n")
    return 1


def run() -> int:
    """Load and make the call, and store its outcome. Return the exit code; KeyboardInterrupt passes."""
    try:
        store = beside("gpuctl_store")
        listener = store.listener_of_rank()
        store.watch_jax(listener)
        function, args, kwargs = load()
        keep(function(*args, **kwargs))
    except SystemExit as request:
        return exit_code(request)
    except KeyboardInterrupt:
        raise
    except BaseException as fault:
        fail(fault)
        return 1
    if listener is not None and listener.ports:
        quietly(lambda: store.wait_for_guests(listener.ports))
    return 0


def main() -> None:
    """Run the whole life of the rank; does not return."""
    folder = sys.argv.pop(1)
    if folder in sys.path:
        sys.path.remove(folder)
    if os.environ.get("GPUCTL_MODULES"):
        sys.path.insert(0, os.environ["GPUCTL_MODULES"])
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    for name in ("sys", "gpuctl_runner"):  # from the line that started this file
        sys.modules["__main__"].__dict__.pop(name, None)
    finish(run())


# --- spawned processes ------------------------------------------------------------------------------


def find_in_payload(name: str) -> "Any":
    """`__main__.__getattr__` of a spawned process: load the payload when a name of the sender's `__main__` is needed."""
    namespace = sys.modules["__main__"].__dict__
    if not name.startswith("__") and namespace.pop("__getattr__", None) is not None:
        load()
    if name not in namespace:
        raise AttributeError(f"module '__main__' has no attribute {name!r}")
    return namespace[name]


def become_main(namespace: dict) -> None:
    """Leave nothing in a spawned process's `__main__` except the access to the payload."""
    runner = beside("gpuctl_runner")
    for name in [name for name in namespace if not name.startswith("__")]:
        del namespace[name]
    namespace["__getattr__"] = runner.find_in_payload


if __name__ == "__mp_main__":
    become_main(globals())
