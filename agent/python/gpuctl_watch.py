# SPDX-License-Identifier: Apache-2.0
"""Watches in a rank whether its gang becomes one world of torch.distributed, and names the line that prevents it.

A program that sets MASTER_ADDR itself, or gives init_process_group a separate world, waits for ever or trains alone. This module records
the lines at which the program sets variables of the rendezvous. It watches init_process_group: where the call looks for rank 0 while it
waits, and the size of the resulting world. It writes findings to stderr and into the note file of the rank, which the explanation of the
job's failure quotes. For the program three things change: accelerate's notebook_launcher starts no processes in a rank, because the ranks
are the processes that it asks for; JAX finds the gang; ranks that log to the user's own MLflow server share a run. With one process a node,
whose program makes its own world, only the last one changes. Warm workers start this module themselves, other Pythons through
gpuctl_site.py.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

PATIENCE_S = 30.0  # other ranks may load their data first
RENDEZVOUS = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
OWN_RANKS = "A program that starts its own ranks wants --launch-mode node."

set_at: "dict[str, str]" = {}  # variables of RENDEZVOUS that the program has set, with the line: "train.py:12"
told = False
begun = False


def begin() -> None:
    """Install the watch, once in a process of an attempt."""
    global begun
    if "GPUCTL_SOCKET" not in os.environ or begun:
        return
    begun = True
    adopt("mlflow.tracking.fluent", share_runs)
    if "GPUCTL_MASTER" in os.environ and "GPUCTL_WORLD_SIZE" in os.environ:
        sys.addaudithook(remember)
        adopt("torch.distributed.distributed_c10d", lambda module: replace(module, "init_process_group", watched))
        adopt("accelerate.launchers", lambda module: replace(module, "notebook_launcher", in_this_process))
        if "GPUCTL_FUNCTION" not in os.environ:  # in a function job the runner tells JAX
            adopt("jax._src.clusters", lambda module: tell_jax_of(module, lambda: None))


# --- what the program sets --------------------------------------------------------------------------


def remember(event: str, arguments: tuple) -> None:
    """Record a line that sets a variable. This is an audit hook: os.environ[NAME] = VALUE calls os.putenv."""
    if event == "os.putenv" and os.fsdecode(arguments[0]) in RENDEZVOUS:
        set_at[os.fsdecode(arguments[0])] = place()


def place() -> str:
    """Return the program's current line, "train.py:12"; in a library, the library's line."""
    own = (__file__, os.__file__, "<frozen os>", "<frozen _collections_abc>")
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and (frame.f_code.co_filename in own or frame.f_code.co_filename.endswith("_collections_abc.py")):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


# --- what torch is asked for ------------------------------------------------------------------------


def adopt(name: str, seen: "Callable[[Any], None]", missed: "Callable[[], None]" = lambda: None) -> None:
    """Call seen(module) after the import of a module, or now if it is there; call missed() if its import cannot be seen."""
    if name in sys.modules:  # a warm worker has imported it
        seen(sys.modules[name])
        return
    if not Finder.wanted:
        sys.meta_path.insert(0, Finder())
    Finder.wanted[name] = seen, missed


class Finder:
    """A finder that finds nothing itself: it watches the imports of the wanted modules."""

    wanted: "dict[str, tuple[Callable[[Any], None], Callable[[], None]]]" = {}

    def __init__(self) -> None:
        self.busy = False

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        if name not in self.wanted or self.busy:
            return None
        self.busy = True
        try:
            spec = spec_of(name, path, target)
        finally:
            self.busy = False
        if spec is not None:
            self.wrap(spec.loader, name)
        return spec

    def wrap(self, loader: "Any", name: str) -> None:
        """Have the loader call `seen` after it has executed the module."""
        seen, missed = self.wanted[name]
        try:
            execute = loader.exec_module

            def exec_module(module: "Any") -> None:
                execute(module)
                if module.__name__ == name:
                    seen(module)

            loader.exec_module = exec_module
        except AttributeError:  # a loader without the method, or one that cannot be changed
            missed()


def spec_of(name: str, path: "Any" = None, target: "Any" = None) -> "Any":
    """Return the first spec that a finder offers; nothing is imported."""
    specs = (finder.find_spec(name, path, target) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    return next((spec for spec in specs if spec is not None), None)


def replace(module: "Any", name: str, adopted: "Callable[..., Any]") -> None:
    """Replace a function of the module, and its name in the packages above, if they have it."""
    setattr(module, name, adopted(module, getattr(module, name)))
    for above in (module.__name__.rpartition(".")[0], module.__name__.partition(".")[0]):
        if hasattr(sys.modules[above], name):
            setattr(sys.modules[above], name, getattr(module, name))


def watched(module: "Any", original: "Callable[..., Any]") -> "Callable[..., Any]":
    """Return init_process_group with a watch while it runs."""
    import functools

    @functools.wraps(original)
    def init_process_group(*args: "Any", **named: "Any") -> "Any":
        import threading

        wanted = Wanted(args, named)
        timer = threading.Timer(PATIENCE_S, wanted.waits_in_vain)
        timer.daemon = True
        timer.start()
        try:
            result = original(*args, **named)
        finally:
            timer.cancel()
        wanted.joined(module.get_world_size())
        return result

    return init_process_group


def in_this_process(module: "Any", original: "Callable[..., Any]") -> "Callable[..., Any]":
    """Return accelerate's notebook_launcher for a rank: this process is one of those that it would start, whatever their number."""
    import functools

    @functools.wraps(original)
    def notebook_launcher(function: "Any", args: tuple = (), *more: "Any", **named: "Any") -> "Any":
        precision = str(more[1] if len(more) > 1 else named.get("mixed_precision", "no"))
        with module.patch_environment(ACCELERATE_MIXED_PRECISION=precision):
            return original(function, args, num_processes=1, mixed_precision=precision)

    return notebook_launcher


def beside(name: str) -> "Any":
    """Import a module from the folder of this file, which is not on sys.path."""
    import importlib

    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


def tell_jax_of(clusters: "Any", release: "Callable[[], None]") -> None:
    """Tell JAX about the gang; `release` lets go of MASTER_PORT if this process listens on it."""
    quietly(lambda: beside("gpuctl_jax").tell(clusters, release))


def share_runs(fluent: "Any") -> None:
    mlflow = beside("gpuctl_mlflow")
    replace(fluent, "start_run", mlflow.shared)
    replace(fluent, "set_experiment", mlflow.surely)


class Wanted:
    """A call of init_process_group: its address of rank 0 and its world, compared with those of the gang."""

    def __init__(self, args: tuple, named: "dict[str, Any]") -> None:
        names = ("backend", "init_method", "timeout", "world_size", "rank", "store")
        said = {**dict(zip(names, args)), **named}
        self.rank = os.environ.get("GPUCTL_RANK", "?")
        self.gang = int(os.environ["GPUCTL_WORLD_SIZE"])
        self.master, _, self.port = os.environ["GPUCTL_MASTER"].rpartition(":")
        self.call = place()
        self.world = said.get("world_size") or -1
        self.says_world = self.world > 0
        if not self.says_world and os.environ.get("WORLD_SIZE", "").isdigit():
            self.world = int(os.environ["WORLD_SIZE"])
        method = said.get("init_method") or "env://"
        self.by_variables = method.startswith("env://")
        address = f"{os.environ.get('MASTER_ADDR', '')}:{os.environ.get('MASTER_PORT', '')}"
        if not self.by_variables:
            address = method[len("tcp://") :].partition("?")[0] if method.startswith("tcp://") else ""
        self.host, _, self.its_port = address.rpartition(":") if said.get("store") is None else ("", "", "")

    def is_elsewhere(self) -> bool:
        """Return whether the call looks for rank 0 at another place than the gang's rank 0."""
        same_host = self.host == self.master or self.master in addresses_of(self.host)
        return bool(self.host) and not (same_host and self.its_port == self.port)

    def is_of_one_node(self) -> bool:
        """Return whether the call looks for rank 0 only on this node, although the gang spans several nodes."""
        if self.host == self.master or self.master.startswith("127.") or os.environ.get("GPUCTL_NODES", "1") == "1":
            return False
        return any(address.startswith("127.") or address == "::1" for address in addresses_of(self.host))

    def who_says_where(self) -> str:
        if not self.by_variables:
            return f"the init_method of {self.call}"
        return " and ".join(dict.fromkeys(set_at[name] for name in ("MASTER_ADDR", "MASTER_PORT") if name in set_at)) or "its environment"

    def who_says_world(self) -> str:
        return f"world_size of {self.call}" if self.says_world else set_at.get("WORLD_SIZE", "its environment")

    def waits_in_vain(self) -> None:
        """Report a wrong address or world, on its own thread while init_process_group waits. Ranks with the right ones are only early."""
        where = f"{self.host}:{self.its_port}, as {self.who_says_where()} says"
        if self.is_elsewhere():
            tell(
                f"rank {self.rank} has not met the others: it looks for rank 0 at {where}, but rank 0 is at {self.master}:{self.port}."
                " Leave that line out: MASTER_ADDR and MASTER_PORT are set already."
            )
        elif self.world > self.gang:
            tell(
                f"rank {self.rank} has not met the others: it waits for {self.world} ranks, as {self.who_says_world()} says, but the job"
                f" has {self.gang}. Leave that line out, WORLD_SIZE is set already, or ask for more GPUs."
            )

    def joined(self, world: int) -> None:
        if world < self.gang:
            tell(
                f"rank {self.rank} is in a world of {world}, but the job has {self.gang} ranks: see {self.who_says_world()}."
                f" Leave rank and world_size out: RANK and WORLD_SIZE are set already. {OWN_RANKS}"
            )
        elif self.is_of_one_node():
            tell(
                f"rank {self.rank} is in a world of its own node: {self.who_says_where()} looks for rank 0 at {self.host}, but rank 0 is at"
                f" {self.master}. Leave that line out: MASTER_ADDR is set already. {OWN_RANKS}"
            )
        elif told:
            quietly(lambda: os.unlink(os.environ["GPUCTL_NOTE_FILE"]))  # the other ranks were only late


def addresses_of(host: str) -> "set[str]":
    import socket

    try:
        return {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)} if host else set()
    except OSError:
        return set()


# --- what is found ----------------------------------------------------------------------------------


def tell(text: str) -> None:
    """Report a finding once in a process: to people in the output, to the agent in the note file."""
    global told
    if told:
        return
    told = True
    quietly(lambda: write_note(text))  # first, because a reader of the line may end the process
    quietly(lambda: print("gpuctl: " + text, file=sys.stderr, flush=True))


def write_note(text: str) -> None:
    with open(os.environ["GPUCTL_NOTE_FILE"], "w") as file:
        file.write(text + "\n")


def quietly(action: "Callable[[], object]") -> None:
    """Run an action whose failure must not matter to the program."""
    try:
        action()
    except Exception:  # such as a closed stream or a removed folder
        return
