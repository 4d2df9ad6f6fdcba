# SPDX-License-Identifier: Apache-2.0
"""Warm workers: processes of a job's Python that have imported the usual modules ahead of time, and wait to become a rank.

gpuagent starts one *forkserver* for each interpreter and set of variables that jobs have used; agent/launch/warm.c is at the other end of
descriptor 3. On request it forks a gpushim, and *workers* below it: each is a child of its shim, like every rank, and waits on a socket for
its identity. Where jobs run as their owners there is no forkserver: each waiting shim starts this program as the owner, to fork workers for
that shim alone. A worker that gets an identity becomes a rank: it takes the session, cgroup, environment, folder, descriptors and command
line that a fresh process would have, then runs the program. In case of doubt the worker executes the command anew, and reports why; so a
start is never wrong, only slower.

Runs under any Python from 3.9 on, and needs only the standard library. agent/shim/shimwire.h describes the messages between the processes.
"""

import array
import ctypes
import os
import signal
import socket
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

CONTROL_FD, CHILD_FD, STORE_FD = 3, 4, 3  # SHIM_CONTROL_FD, SHIM_WARM_FD, SHIM_STORE_FD
HIGH_FD = 64  # above all numbers with a meaning
MESSAGE_BYTES = 4096
STAGE_CGROUP, STAGE_FOLDER, STAGE_NOT_FOUND, STAGE_INTERPRETER, STAGE_COMMAND = range(5)  # of shim_rank.c
PR_SET_PDEATHSIG, PR_SET_MM = 1, 35
PR_SET_MM_ARG_END, PR_SET_MM_ENV_END = 9, 11

libc = ctypes.CDLL(None, use_errno=True)
libc.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong, ctypes.c_ulong]


class Doubt(Exception):
    """Why a fresh process must replace this forked one."""

    word = "cold"


class Stale(Doubt):
    """The forkserver itself must not be used any more."""

    word = "stale"


class Identity(BaseException):
    """Raised in a worker, up to the first frame of the program: the rank that it is from now on."""

    def __init__(self, state: "State", voice: socket.socket, fields: "dict[str, list[bytes]]", fds: "list[int]") -> None:
        self.state, self.voice, self.fields, self.fds = state, voice, fields, fds

    def text(self, key: str) -> str:
        return os.fsdecode(self.fields[key][0])

    def number(self, key: str) -> int:
        return int(self.fields[key][0])

    def environment(self) -> "dict[bytes, bytes]":
        pairs: dict[bytes, bytes] = {}
        for entry in self.fields.get("env", []):
            name, _, value = entry.partition(b"=")
            pairs.setdefault(name, value)  # the first entry counts, as for getenv()
        return pairs


# --- descriptors on sockets -------------------------------------------------------------------------


def send(to: socket.socket, message: bytes, fds: "list[int]") -> None:
    to.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])


def receive(source: socket.socket, size: int, room: int = 8) -> "tuple[bytes, list[int]]":
    """Return a message and its descriptors, which exec closes; b"" at the end."""
    fds = array.array("i")
    message, ancillary, _, _ = source.recvmsg(size, socket.CMSG_SPACE(room * fds.itemsize), socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    return message, list(fds)


def high(fd: int) -> int:
    """Return a duplicate with a number above all numbers that will be set."""
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)


# --- the forkserver ---------------------------------------------------------------------------------


def tasks() -> int:
    return len(os.listdir("/proc/self/task"))


def open_fds() -> "set[str]":
    return {os.readlink("/proc/self/fd/" + name) for name in os.listdir("/proc/self/fd") if os.path.lexists("/proc/self/fd/" + name)}


def preload(names: "list[str]", kept_from_gpus: bool) -> "list[str]":
    """Import the installed modules of `names` and return their names. Raise Doubt if a process with them cannot be forked."""
    import importlib
    import importlib.util

    if not hasattr(os, "pidfd_open"):
        raise Doubt("Python 3.9 is the oldest that serves")
    before = open_fds()
    found = [name for name in names if importlib.util.find_spec(name.partition(".")[0]) is not None]
    for name in found:
        importlib.import_module(name)
    if not found:
        raise Doubt("none of " + ", ".join(names) + " is installed")
    if open_fds() - before:
        raise Doubt("what is imported opens files")
    torch: Any = sys.modules.get("torch")
    if (torch is not None and torch.cuda.is_initialized()) or (kept_from_gpus and has_cuda()):
        raise Doubt("what is imported uses the GPU")
    return found


def has_cuda() -> bool:
    """Tell whether CUDA may have been asked for GPUs: it asks once in a process, and where they are kept from it finds none for ever."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        return any("/libcuda.so" in line for line in maps)


def check_forks() -> None:
    """Raise Doubt if threads are left, which do not survive a fork. Some libraries, such as OpenBLAS, end their threads before a fork and
    start them again when needed.
    """
    if tasks() == 1:
        return
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    if tasks() > 1:
        raise Doubt("what is imported has threads")


def folders_of_modules() -> "dict[str, int]":
    """Return the folders of the imported modules, each with the time of its last addition, replacement or removal, in ns since 1970."""
    folders = {os.path.dirname(path) for path in map(file_of, list(sys.modules.values())) if path}
    folders.discard(os.path.dirname(__file__))  # the agent's, where Python keeps byte code
    return {folder: os.stat(folder).st_mtime_ns for folder in folders if os.path.isdir(folder)}


def file_of(module: object) -> "str | None":
    path = getattr(module, "__file__", None)
    return path if isinstance(path, str) and os.path.isabs(path) else None


def variables_of(pid: int) -> "dict[bytes, bytes]":
    with open(f"/proc/{pid}/environ", "rb") as file:
        entries = file.read().split(b"\0")
    return dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)


def load(control: socket.socket, names: "list[str]", kept_from_gpus: bool = False) -> "State":
    """Import the modules. Where that cannot be, say why and end."""
    try:
        imported = preload(names, kept_from_gpus)
        check_forks()
        state = State(imported, folders_of_modules())
        import gc

        gc.freeze()  # a garbage collection would copy all pages
    except Doubt as doubt:
        control.send(f"unfit {doubt}".encode())
        os._exit(0)
    except BaseException as fault:  # an import may raise anything
        control.send(f"unfit {type(fault).__name__}: {fault}".encode()[:MESSAGE_BYTES])
        os._exit(0)
    return state


def serve_shim(count: int, names: "list[str]") -> "NoReturn":
    """Fork the workers of the shim that started this process as the user of its ranks, in a cgroup without GPUs."""
    shim = socket.socket(fileno=CONTROL_FD)
    breed(load(shim, names, kept_from_gpus=True), shim, count)


def serve(program: str, options: "list[str]", names: "list[str]") -> None:
    """Serve until the agent ends. Never returns; in a worker that got an identity it raises the identity."""
    control = socket.socket(fileno=CONTROL_FD)
    variables = variables_of(os.getppid())  # a shim gets the agent's variables
    state = load(control, names)
    control.send(("ready " + ",".join(state.imported)).encode())
    while True:
        message, fds = receive(control, MESSAGE_BYTES)
        reap()
        if not message:
            os._exit(0)
        word, count = message.decode().split(" ")
        assert word == "shim" and len(fds) == 2
        pid = os.fork()
        if pid == 0:
            control.close()
            become_shim(state, int(count), fds, program, options, variables)
        pidfd = os.pidfd_open(pid)
        for fd in fds:
            os.close(fd)
        send(control, f"shim {pid}".encode(), [pidfd])
        os.close(pidfd)


def reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        return


def become_shim(
    state: "State", count: int, fds: "list[int]", program: str, options: "list[str]", variables: "dict[bytes, bytes]"
) -> "NoReturn":
    """Leave a child that will fork the workers, and become gpushim, so that the child is gpushim's."""
    os.setsid()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    null = high(os.open(os.devnull, os.O_RDWR))
    if os.fork() == 0:
        theirs.close()
        for fd, number in ((null, 0), (null, 1), (fds[1], 2)):
            os.dup2(fd, number)
        for fd in (null, *fds):
            os.close(fd)
        breed(state, ours, count)
    ours.close()
    own, complaints, child = (high(fd) for fd in (fds[0], fds[1], theirs.fileno()))
    for fd, number in ((null, 0), (null, 1), (complaints, 2), (own, CONTROL_FD), (child, CHILD_FD)):
        os.dup2(fd, number)
    restore_signals()
    try:
        os.execve(program, [program, *options], variables)
    finally:
        os._exit(126)


def restore_signals() -> None:
    """Restore the default of signals that Python ignores."""
    for name in ("SIGPIPE", "SIGXFSZ"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)


def breed(state: "State", shim: socket.socket, count: int) -> "NoReturn":
    """Fork workers in the namespaces of the shim, give the shim each worker's socket, and end, so that they become the shim's children."""
    message, namespaces = receive(shim, MESSAGE_BYTES)
    if not message:
        os._exit(0)
    for namespace in namespaces:
        if libc.setns(namespace, 0) != 0:
            os._exit(1)
        os.close(namespace)
    for _ in range(count):
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        pid = os.fork()
        if pid == 0:
            theirs.close()
            shim.close()
            raise wait_for_identity(state, mine)
        mine.close()
        send(shim, f"worker {pid}".encode(), [theirs.fileno()])
        theirs.close()
    os._exit(0)


# --- a worker ---------------------------------------------------------------------------------------


class State:
    """The state that a worker keeps from its forkserver."""

    def __init__(self, imported: "list[str]", folders: "dict[str, int]") -> None:
        self.imported = imported
        self.folders = folders
        self.names = {name.partition(".")[0] for name in sys.modules} | {"sitecustomize", "usercustomize"}
        self.python_path = os.environb.get(b"PYTHONPATH")
        self.area = memory_area()


def memory_area() -> "tuple[int, int, int, int]":
    """Return the addresses of this process's command line and variables in /proc: arg_start, arg_end, env_start, env_end."""
    with open("/proc/self/stat", "rb") as file:
        words = file.read().rpartition(b")")[2].split()
    start, end, env_start, env_end = (int(word) for word in words[45:49])
    return start, end, env_start, env_end


def wait_for_identity(state: State, voice: socket.socket) -> Identity:
    """Return the identity that the shim gives; end with the shim."""
    header, fds = receive(voice, 8)
    if len(header) < 8:
        os._exit(0)
    (size,) = struct.unpack("=q", header)
    parts = []
    while size > 0:
        part = voice.recv(min(size, 1 << 20))
        if not part:
            os._exit(0)
        parts.append(part)
        size -= len(part)
    words = b"".join(parts).split(b"\0")
    fields: dict[str, list[bytes]] = {}
    for key, value in zip(words[0::2], words[1::2]):
        fields.setdefault(key.decode(), []).append(value)
    return Identity(state, voice, fields, fds)


def stand_below(shim: int) -> None:
    """Make this process end with the shim. The process that forked it ends about now, and the shim then is the parent."""
    while os.getppid() != shim:
        if os.getppid() == 1:
            os._exit(126)
        os.sched_yield()
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != shim:
        os._exit(126)


class Report:
    """The failed step of a start, for the shim; an empty report means success."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def fail(self, stage: int, error: "int | None") -> "NoReturn":
        os.write(self.fd, struct.pack("=ii", stage, error or 0))
        os._exit(127 if stage == STAGE_NOT_FOUND else 126)


def take_place(identity: Identity) -> Report:
    """Take over session, cgroup, folder and descriptors, in the order of shim_rank.c."""
    fds = [high(fd) for fd in identity.fds]
    out, err, given = fds[:3]
    report = Report(given)
    rest = fds[3:]
    os.setsid()
    stand_below(identity.number("shim"))
    if identity.number("cgroup"):
        try:
            os.write(rest.pop(0), b"0")
        except PermissionError:
            os._exit(0)  # a kernel that asks for the rights of who writes, not of who opened the file; the shim starts the rank anew
        except OSError as error:
            report.fail(STAGE_CGROUP, error.errno)
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("0")
    null = high(os.open(os.devnull, os.O_RDWR))
    for fd, number in ((null, 0), (out, 1), (err, 2)):
        os.dup2(fd, number)
    voice = high(identity.voice.fileno())
    identity.voice.close()
    first = 3
    if identity.number("store"):
        os.dup2(rest.pop(0), STORE_FD)
        first = STORE_FD + 1
    os.closerange(first, HIGH_FD)
    for fd in range(HIGH_FD, max(voice, null, *fds) + 1):
        if fd not in (voice, given):
            close_quietly(fd)
    identity.voice = socket.socket(fileno=voice)
    try:
        os.chdir(identity.fields["cwd"][0])
    except OSError as error:
        report.fail(STAGE_FOLDER, error.errno)
    return report


def close_quietly(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:
        return


def show(area: "tuple[int, int, int, int]", arguments: "list[bytes]", variables: "dict[bytes, bytes]") -> None:
    """Make ps and /proc show command line and variables of the rank. Raise Doubt if they do not fit."""
    start, arguments_end, env_start, end = area
    line = b"".join(word + b"\0" for word in arguments)
    block = b"".join(name + b"=" + value + b"\0" for name, value in variables.items())
    if len(line) > arguments_end - start or len(block) > end - env_start:
        raise Doubt("its variables need too much room")
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, line, len(line))
    ctypes.memmove(env_start, block, len(block))
    for field, at in ((PR_SET_MM_ARG_END, start + len(line)), (PR_SET_MM_ENV_END, env_start + len(block))):
        libc.prctl(PR_SET_MM, field, at, 0, 0)  # only root may; for others the texts end with empty words


def check(state: State, arguments: "list[str]", python_path: "list[str]") -> None:
    """Raise Doubt if a fresh process would import other modules."""
    for folder, at_ns in state.folders.items():
        try:
            changed = os.stat(folder).st_mtime_ns != at_ns
        except OSError:
            changed = True
        if changed:
            raise Stale(f"{folder} has changed")
    for folder in [*first_folder(arguments), *python_path]:
        try:
            there = {name.partition(".")[0] for name in os.listdir(folder or ".")}
        except OSError:
            continue  # Python would find nothing there, either
        if there & state.names:
            raise Doubt(f"{folder or 'the working folder'} has a {min(there & state.names)} of its own")


def first_folder(arguments: "list[str]") -> "list[str]":
    """Return the folder that Python puts first in sys.path."""
    if getattr(sys.flags, "safe_path", False):
        return []
    if arguments[1] == "-c":
        return [""]
    return [os.getcwd() if arguments[1] == "-m" else os.path.dirname(os.path.realpath(arguments[1]))]


def check_arguments(arguments: "list[str]") -> None:
    if len(arguments) < 2 or (arguments[1].startswith("-") and (arguments[1] not in ("-c", "-m") or len(arguments) < 3)):
        raise Doubt("it has options of Python")
    if not arguments[1].startswith("-") and not os.path.isfile(arguments[1]):
        raise Doubt(f"{arguments[1]} is not a file")


def added_path(state: State, variables: "dict[bytes, bytes]") -> "list[str]":
    """Return the PYTHONPATH entries of the rank that the forkserver did not have."""
    wanted = variables.get(b"PYTHONPATH")
    if wanted == state.python_path or not wanted:
        if wanted != state.python_path:
            raise Doubt("PYTHONPATH is another")
        return []
    if state.python_path is not None:
        raise Doubt("PYTHONPATH is another")
    return [os.path.abspath(os.fsdecode(entry)) for entry in wanted.split(b":")]


def open_streams() -> None:
    """Make sys.stdin, stdout and stderr as Python does: the forkserver had other kinds of files there."""
    import io

    stdout: Any = sys.stdout
    buffered = not stdout.write_through
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        raw_only = fd > 0 and not buffered
        binary: Any = open(fd, "rb" if fd == 0 else "wb", 0 if raw_only else -1, closefd=False)  # noqa: SIM115  # as long as the process
        (binary if raw_only else binary.raw).name = f"<{name}>"
        made = io.TextIOWrapper(binary, old.encoding, old.errors, "\n", line_buffering=buffered and fd == 2, write_through=not buffered)
        made.mode = "r" if fd == 0 else "w"
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)


def seed_anew() -> None:
    """Seed generators that were seeded on import; Python's own random does so itself."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and "numpy.random" in sys.modules:
        numpy.random.seed()


def with_watch(variables: "dict[bytes, bytes]") -> "dict[bytes, bytes]":
    """Return the variables with gpuctl_watch's folder first on PYTHONPATH, as in shim_rank.c, for Pythons that the rank starts."""
    if b"GPUCTL_WATCH" not in variables:
        return variables
    folders = [variables[b"GPUCTL_WATCH"] + b"/watch", *([variables[b"PYTHONPATH"]] if b"PYTHONPATH" in variables else [])]
    return {**variables, b"PYTHONPATH": b":".join(folders)}


def begin_watch() -> None:
    folder = os.environ.get("GPUCTL_WATCH")
    if folder is not None:
        sys.path.insert(0, folder)
        try:
            import gpuctl_watch  # type: ignore[import-not-found, unused-ignore]

            gpuctl_watch.begin()
        finally:
            sys.path.remove(folder)


def become(identity: Identity) -> "list[str]":
    """Become the rank, up to its first instruction. Returns the command line, or executes it anew."""
    state = identity.state
    report = take_place(identity)
    variables = identity.environment()
    words = identity.fields["arg"]
    arguments = [os.fsdecode(word) for word in words]
    try:
        check_arguments(arguments)
        python_path = added_path(state, variables)
        check(state, arguments, python_path)
        show(state.area, words, with_watch(variables))
    except Doubt as doubt:
        identity.voice.send(f"{doubt.word} {doubt}".encode()[:MESSAGE_BYTES])
        execute(report, words, with_watch(variables))
    os.environ.clear()
    os.environb.update(with_watch(variables))
    begin_watch()
    import time

    time.tzset()
    open_streams()
    seed_anew()
    sys.path[0:0] = [*first_folder(arguments), *python_path]
    identity.voice.send(b"warm")
    identity.voice.close()
    os.close(report.fd)
    return arguments


def execute(report: Report, words: "list[bytes]", variables: "dict[bytes, bytes]") -> "NoReturn":
    restore_signals()
    try:
        os.execvpe(words[0], words, variables)
    except OSError as error:
        report.fail(STAGE_NOT_FOUND if isinstance(error, FileNotFoundError) else STAGE_COMMAND, error.errno)


# --- the program ------------------------------------------------------------------------------------


def fresh_main() -> dict:
    """Return the namespace of a fresh __main__."""
    namespace = sys.modules["__main__"].__dict__
    namespace.clear()
    namespace.update(__name__="__main__", __doc__=None, __package__=None, __spec__=None, __builtins__=sys.modules["builtins"])
    namespace["__annotations__"] = {}
    return namespace


def run(arguments: "list[str]") -> None:
    """Run the command line as Python does."""
    namespace = fresh_main()
    sys.modules.pop(__name__, None)
    if hasattr(sys, "orig_argv"):
        sys.orig_argv = arguments[:]
    if arguments[1] == "-m":
        import runpy

        sys.argv = ["-m", *arguments[3:]]
        runpy._run_module_as_main(arguments[2])  # type: ignore[attr-defined]  # what `python -m` calls
        return
    import importlib.machinery
    import io

    path = arguments[1]
    if path == "-c":
        sys.argv = ["-c", *arguments[3:]]
        namespace["__loader__"] = importlib.machinery.BuiltinImporter
        source: str | bytes = arguments[2]
        path = "<string>"
    else:
        sys.argv = arguments[1:]
        namespace.update(__loader__=importlib.machinery.SourceFileLoader("__main__", path), __file__=path, __cached__=None)
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
    exec(compile(source, path, "exec"), namespace)  # noqa: S102  (to run the program of the job is the purpose)


def main() -> None:
    """Arguments: FOLDER (of this file) PROGRAM (the shim) OPTIONS (of the shim) NAMES (modules to import, with commas) ROOM (unused).

    For one shim, which started this process: no PROGRAM, and the number of its workers for OPTIONS.
    """
    folder, program, options, names = sys.argv[1:5]
    sys.path[:] = [entry for entry in sys.path if entry not in ("", folder)]
    identity = None
    modules = [name for name in names.split(",") if name]
    try:
        if program:
            serve(program, options.split(), modules)
        serve_shim(int(options), modules)
    except Identity as found:
        identity = found
    assert identity is not None
    arguments = become(identity)
    del identity
    try:
        run(arguments)
    except SystemExit:
        raise
    except KeyboardInterrupt as fault:
        tell(fault)
        sys.excepthook = lambda *_: None
        raise
    except BaseException as fault:
        tell(fault)
        sys.exit(1)


def tell(fault: BaseException) -> None:
    """Report an uncaught exception as Python does, without the frames of this file."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    sys.excepthook(type(fault), fault.with_traceback(trace), trace)
