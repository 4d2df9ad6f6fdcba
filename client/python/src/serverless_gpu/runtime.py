# SPDX-License-Identifier: Apache-2.0
"""Functions for the code on the ranks: which rank it is, and metrics and progress for people who watch the job.

Outside of a job a process is rank 0 of a world of 1, and metrics are dropped.
"""

from __future__ import annotations

import json
import os
import sys
import time

from serverless_gpu.exceptions import RuntimeConfigurationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Iterable, Mapping
    from typing import Any

NAME_CHARACTERS = 250
MARK_CHARACTERS = 40
MESSAGE_BYTES = 60 * 1024  # of one datagram; the receiver takes a little more
PATH_BYTES = 107  # of a socket's address
SEND_S = 5.0  # a datagram not taken in this time is lost, and so are the next ones until one is taken at once

# --- which rank ---


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    try:
        return int(text)
    except ValueError:
        raise RuntimeConfigurationError(f"the environment variable {name} is {text!r}, which is no number") from None


def _group(name: str, default: int, ask: str, group: Any = None) -> int:
    """Return the number in the environment, compared with an initialised torch.distributed; torch's number if the environment has none."""
    module = sys.modules.get("torch.distributed")
    ready = module is not None and module.is_available() and module.is_initialized()
    if group is not None:
        if not ready:
            raise RuntimeConfigurationError("a group was given, and torch.distributed is not initialised")
        return int(getattr(module, ask)(group))
    told = int(getattr(module, ask)()) if ready else None
    said = _number(name, default if told is None else told)
    if told is not None and told != said:
        raise RuntimeConfigurationError(f"the environment says {name}={said}, and torch.distributed.{ask}() says {told}")
    return said


def get_global_rank(group: Any = None) -> int:
    """Return the rank of this process in the world, or in a process group of torch.distributed."""
    return _group("RANK", 0, "get_rank", group)


def get_local_rank() -> int:
    """Return the rank of this process on its node."""
    return _number("LOCAL_RANK", 0)


def get_world_size() -> int:
    """Return the number of processes over all nodes."""
    return _group("WORLD_SIZE", 1, "get_world_size")


def get_local_world_size() -> int:
    """Return the number of processes on this node."""
    return _number("LOCAL_WORLD_SIZE", 1)


def get_node_rank() -> int:
    """Return the rank of this node among the job's nodes, from 0."""
    return _number("NODE_RANK", 0)


def get_node_ip() -> str:
    """Return the address by which the other nodes of the gang reach this one; 127.0.0.1 outside of a gang."""
    from serverless_gpu.ray import meeting

    return meeting.own_address(*meeting.rendezvous()) if "MASTER_ADDR" in os.environ else "127.0.0.1"


def get_replica_rank() -> int:
    """Return which copy of the model this process works on, if every node holds one (as with hybrid sharding).

    It is the rank of the node, unless REPLICA_RANK says otherwise.
    """
    return _number("REPLICA_RANK", get_node_rank())


# --- metrics and progress ---


class _Channel:
    """The connection to the node's supervisor. Threads share it without a lock: a datagram is sent whole, and a second connection is
    harmless.
    """

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._key: tuple[int, str] = (0, "")  # the process and the path to which the socket belongs

    def _connected(self, path: str) -> socket.socket:
        key = (os.getpid(), path)
        if self._socket is None or self._key != key:
            self._socket = _connect(path)
            self._key = key
        return self._socket

    def send(self, datagrams: Iterable[bytes]) -> None:
        """Send the datagrams; drop those that cannot be sent, because the node may be shutting down."""
        path = os.environ.get("GPUCTL_SOCKET")
        if not path:
            return
        for datagram in datagrams:
            try:
                connection = self._connected(path)
                connection.send(datagram)
                connection.settimeout(SEND_S)
            except (BlockingIOError, TimeoutError):
                self._give_up_waiting()
            except OSError as error:
                if type(error).__name__ == "timeout":  # socket.timeout is a TimeoutError from Python 3.10 on
                    self._give_up_waiting()
                else:
                    self._socket = None

    def _give_up_waiting(self) -> None:
        """Do not wait for a datagram again until one is taken, so that training goes on."""
        connection = self._socket
        if connection is not None:
            connection.settimeout(0)


def _connect(path: str) -> socket.socket:
    """Return a datagram socket connected to the path, however long it is."""
    import socket

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    connection.settimeout(SEND_S)
    if len(os.fsencode(path)) <= PATH_BYTES:
        connection.connect(path)
        return connection
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
    finally:
        os.close(folder)
    return connection


_channel = _Channel()


def _plain(what: str, value: Any) -> float:
    """Return a number of any kind as int or float. Raises TypeError for other values, ValueError for a number that is too large."""
    item = getattr(value, "item", None)
    if callable(item):  # of numpy, or a tensor of one element
        try:
            value = item()
        except (RuntimeError, ValueError, TypeError) as error:
            raise TypeError(f"{what} must be one number, not {type(value).__name__} of several") from error
    if isinstance(value, bool) or not (isinstance(value, (int, float)) or hasattr(value, "__float__")):
        raise TypeError(f"{what} must be a number, not {value!r}")
    if isinstance(value, int) and -(2**53) <= value <= 2**53:
        return value
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{what} is too large for a metric") from None


def _spelled(number: float) -> Any:
    """Return the number as it is written in JSON; infinities and NaN become texts."""
    if number != number:
        return "NaN"
    return {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(number, number)


def _checked_name(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a metric must be a text, not {name!r}")
    if not 1 <= len(name) <= NAME_CHARACTERS:
        raise ValueError(f"the name of a metric must have 1 to {NAME_CHARACTERS} characters, {name[:40]!r} has {len(name)}")
    return name


def _checked_step(step: Any) -> int | None:
    if step is None:
        return None
    number = _plain("step", step)
    if number != int(number) or abs(number) >= 2**63:
        raise ValueError(f"step must be a whole number, not {step!r}")
    return int(number)


def _batches(lines: Iterable[bytes]) -> Iterable[bytes]:
    """Yield the fewest datagrams that hold all the lines."""
    batch = b""
    for line in lines:
        if batch and len(batch) + len(line) > MESSAGE_BYTES:
            yield batch
            batch = b""
        batch += line
    if batch:
        yield batch


def log_metric(name: str, value: Any, step: int | None = None) -> None:
    """Record a number under a name of 1 to 250 characters; `step` is a whole number that orders the values.

    The value may be a number of Python or numpy, or a tensor of one element; a tensor on a GPU is waited for. Raises TypeError and
    ValueError for anything else, and nothing if the node does not take it.
    """
    log_metrics({name: value}, step)


def log_metrics(metrics: Mapping[str, Any], step: int | None = None) -> None:
    """Record several numbers of the same moment; names, values, `step` and errors are those of `log_metric`."""
    when = _checked_step(step)
    points = [(_checked_name(name), _spelled(_plain(f"metric {name!r}", value))) for name, value in metrics.items()]
    common: dict[str, Any] = {} if when is None else {"step": when}
    common.update(rank=_number("RANK", 0), time=round(time.time(), 3))
    _channel.send(_batches(json.dumps({"metric": name, "value": value, **common}).encode() + b"\n" for name, value in points))


def progress(fraction: float | None = None, text: str | None = None) -> None:
    """Report the progress of this rank: a fraction from 0 to 1, or None if it is not known, and a text, cut at 1000 characters.

    Raises TypeError and ValueError for anything else.
    """
    share = None if fraction is None else float(_plain("fraction", fraction))
    if share is not None and not 0 <= share <= 1:
        raise ValueError(f"fraction must lie between 0 and 1, it is {share}")
    if text is not None and not isinstance(text, str):
        raise TypeError(f"text must be a text, not {text!r}")
    line: dict[str, Any] = {"progress": share, **({} if text is None else {"text": text[:1000]})}
    line.update(rank=_number("RANK", 0), time=round(time.time(), 3))
    _channel.send([json.dumps(line).encode() + b"\n"])


def checkpointed(step: int | None = None) -> None:
    """Report that this rank has saved its state; call it last, when nothing is left to write.

    A signal asks a job to end: its `early_signal`, or TERM on a cancel, a time limit or a preemption. When all ranks of a node have
    reported after it, the node does not wait out the rest of their grace: TERM or KILL comes at once. At any other time the report only
    notes the time of the last checkpoint. `step` is a whole number that names the checkpoint.

    Sends one line of JSON to $GPUCTL_SOCKET, as a command in any language may: {"checkpoint": {"step": 100}, "rank": 3, "time": ...}. A
    process that knows its place on the node (torchrun's, for instance) adds "local_rank" and "local_world_size". Returns at once, does
    nothing outside of a job, and raises nothing if the node does not take it. Raises TypeError and ValueError for any other `step`.
    """
    when = _checked_step(step)
    line: dict[str, Any] = {"checkpoint": {} if when is None else {"step": when}}
    if "LOCAL_RANK" in os.environ:
        line.update(local_rank=get_local_rank(), local_world_size=_number("LOCAL_WORLD_SIZE", 1))
    line.update(rank=_number("RANK", 0), time=round(time.time(), 3))
    _channel.send([json.dumps(line).encode() + b"\n"])


def mark(name: str) -> None:
    """Name this moment of the job's start, as in mark("first all-reduce"); `gpuctl get ID --timing` shows its time.

    Only the first mark of each name counts, and only the first 8 names of a node. A name has 1 to 40 characters of ASCII, without quotes
    and backslashes. Raises TypeError and ValueError for others. Sends one line of JSON to $GPUCTL_SOCKET, as a command in any language may:
    {"mark": "first all-reduce", "rank": 3}. Returns at once, does nothing outside of a job, and raises nothing if the node does not take
    it.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a mark must be a text, not {name!r}")
    if not 1 <= len(name) <= MARK_CHARACTERS:
        raise ValueError(f"the name of a mark must have 1 to {MARK_CHARACTERS} characters, {name[:MARK_CHARACTERS]!r} has {len(name)}")
    if any(not " " <= character <= "~" or character in '"\\' for character in name):
        raise ValueError(f"the name of a mark must be of ASCII, without quotes and backslashes, not {name!r}")
    _channel.send([json.dumps({"mark": name, "rank": _number("RANK", 0), "time": round(time.time(), 3)}).encode() + b"\n"])
