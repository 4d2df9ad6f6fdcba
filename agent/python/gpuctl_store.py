# SPDX-License-Identifier: Apache-2.0
"""Lets the ranks of a function job find their gang: a store for torch.distributed, and the gang for JAX.

On rank 0 of a gang a socket has listened on MASTER_PORT since before the start ($GPUCTL_STORE_FD). This module hands it to torch's
TCPStore, or lets go of it for a torch that can only bind, and for JAX's coordinator. gpuctl_runner.py, in the same folder, calls it before
the function, and lets it wait for the other ranks afterwards.
"""

import os
import sys

import gpuctl_watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

GUESTS_WAIT_S = 30.0
LIBUV_TAKES_SOCKETS = (2, 8)  # the first torch whose libuv store listens on a socket that it is given


# --- the store of torch.distributed -----------------------------------------------------------------


class Listener:
    """The socket that holds MASTER_PORT on rank 0. While it listens, ranks that connect before the store exists wait in its backlog."""

    def __init__(self, fd: int, port: int) -> None:
        self.fd = fd
        self.port = port
        self.listens = True
        self.given = -1  # the duplicate that the last store received, and closes
        self.ports: set[int] = set()  # of all stores that this process has hosted

    def release(self) -> None:
        """Stop listening: the port stays bound, but any program that sets SO_REUSEADDR can bind it, too."""
        import socket

        held = socket.socket(fileno=os.dup(self.fd))
        held.shutdown(socket.SHUT_RD)
        held.close()
        self.listens = False

    def is_given(self) -> bool:
        """Return whether the last store still has its duplicate: a second server on one socket would steal its connections."""
        try:
            return self.given >= 0 and os.fstat(self.given).st_ino == os.fstat(self.fd).st_ino
        except OSError:
            return False

    def create(self, init: "Callable[..., None]", store: "Any", args: tuple, named: dict) -> None:
        """Make a TCPStore: on the held socket if it is the server of that port, unchanged in all other cases."""
        port = named.get("port", args[1] if len(args) > 1 else None)
        if not named.get("is_master", args[3] if len(args) > 3 else False):
            return init(store, *args, **named)
        if port == self.port and self.listens and "master_listen_fd" not in named and len(args) < 8 and not self.is_given():
            self.given = os.dup(self.fd)
            named = dict(named, master_listen_fd=self.given)
            if "use_libuv" in (init.__doc__ or "") and torch_version() < LIBUV_TAKES_SOCKETS:
                named["use_libuv"] = False
        try:
            init(store, *args, **named)
            self.ports.add(store.port)
        except BaseException:
            if named.get("master_listen_fd") == self.given and self.is_given():
                os.close(self.given)
            raise

    def adopt(self, distributed: "Any") -> None:
        """Make torch's TCPStore use the socket, or let go of it if this torch can only bind."""
        kind = getattr(distributed, "TCPStore", None)
        if kind is None or getattr(kind.__init__, "listener", None) is not None:
            return
        original = kind.__init__
        if self.listens and "master_listen_fd" not in (original.__doc__ or ""):
            self.release()

        def __init__(store: object, *args: object, **named: object) -> None:
            self.create(original, store, args, named)

        __init__.__doc__ = original.__doc__
        setattr(__init__, "listener", self)  # noqa: B010
        kind.__init__ = __init__


def torch_version() -> "tuple[int, ...]":
    """Return (major, minor) of the imported torch; a version in another format counts as new."""
    numbers = str(sys.modules["torch"].__version__).split(".")[:2]
    return tuple(map(int, numbers)) if all(number.isdigit() for number in numbers) else LIBUV_TAKES_SOCKETS


def torch_takes_sockets() -> bool:
    """Return whether this Python has a torch whose TCPStore accepts a socket, according to its type stubs; nothing is imported.

    The answer is needed before any rank can have connected: for an older torch a reset connection is fatal, a refused one is not.
    """
    spec = gpuctl_watch.spec_of("torch")
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        try:
            with open(os.path.join(folder, "_C", "_distributed_c10d.pyi"), "rb") as stubs:
                return b"master_listen_fd" in stubs.read()
        except OSError:
            continue
    return False


def listener_of_rank() -> "Listener | None":
    """Return the socket that this rank inherited, connected to torch; None if there is none."""
    number = os.environ.pop("GPUCTL_STORE_FD", None)
    if number is None:
        return None
    os.set_inheritable(int(number), False)
    listener = Listener(int(number), int(os.environ["MASTER_PORT"]))
    if "torch.distributed" not in sys.modules and not torch_takes_sockets():
        listener.release()
    gpuctl_watch.adopt("torch.distributed", listener.adopt, listener.release)
    return listener


# --- JAX --------------------------------------------------------------------------------------------


def watch_jax(listener: "Listener | None") -> None:
    """Tell JAX about the gang after its import. A JAX with other internals is left unchanged, and needs explicit arguments."""

    def release() -> None:
        if listener is not None and listener.listens:
            listener.release()

    gpuctl_watch.adopt("jax._src.clusters", lambda clusters: gpuctl_watch.tell_jax_of(clusters, release))


# --- the other ranks --------------------------------------------------------------------------------


def wait_for_guests(ports: "set[int]") -> None:
    """Wait until no other rank is connected to a store of this process, at most 30 s: other ranks still need its content."""
    import select
    import time

    end = time.monotonic() + GUESTS_WAIT_S
    while True:
        guests = [fd for fd in guests_of(ports) if not hung_up(select, [fd], 0)]
        left_s = end - time.monotonic()
        if not guests or left_s <= 0:
            return
        hung_up(select, guests, min(left_s, 1.0))  # at most a second, because new connections may come


def hung_up(select: "Any", fds: "list[int]", timeout_s: float) -> bool:
    """Return whether the other end of a connection closes within the time."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLRDHUP)
    return bool(poll.poll(timeout_s * 1000))


def guests_of(ports: "set[int]") -> "list[int]":
    """Return the sockets of this process that are connections from another process to one of the ports."""
    import socket

    own, served = set(), {}
    for name in os.listdir("/proc/self/fd"):
        try:
            if not os.readlink("/proc/self/fd/" + name).startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(name))) as connection:
                if connection.family not in (socket.AF_INET, socket.AF_INET6):
                    continue
                here, there = connection.getsockname(), connection.getpeername()
        except OSError:  # closed meanwhile, or not connected
            continue
        if there[1] in ports:
            own.add(end_of(here))
        if here[1] in ports:
            served[int(name)] = end_of(there)
    return [fd for fd, end in served.items() if end not in own]


def end_of(address: tuple) -> "tuple[str, int]":
    """Return an end of a connection in one spelling, for sockets of both families."""
    return (address[0][len("::ffff:") :] if address[0].startswith("::ffff:") else address[0], address[1])
