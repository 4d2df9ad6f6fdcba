# SPDX-License-Identifier: Apache-2.0
"""A function and its arguments as bytes: one line that names the Python that made them, then the pickle of (function, args, kwargs).

Pickling is cloudpickle's: what belongs to `__main__` travels by value, what belongs to an importable module by name. What cannot be
pickled, or lies on a GPU, is named before anything is sent.
"""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable, Protocol

from serverless_gpu.exceptions import SerializationError

LIMIT_BYTES = 1024**3  # of one blob
INLINE_BYTES = 32 * 1024  # what rides in the job itself


class Blob(Protocol):
    """Bytes that are sent, in pieces that can be asked for again and again."""

    @property
    def sha256(self) -> str:
        """64 hex digits."""

    @property
    def size(self) -> int:
        """How many bytes."""

    def __iter__(self) -> Iterator[bytes]: ...

    def __len__(self) -> int: ...


class OnDevice(TypeError):
    """A tensor lies in the memory of a GPU, or of another device of this machine, from where it does not travel."""


class Payload:
    """Bytes in pieces, with their size and SHA-256. Large objects of the caller are referred to, not copied."""

    def __init__(self, pieces: Sequence[bytes] = ()) -> None:
        self._pieces: list[bytes] = []
        self._hash = hashlib.sha256()
        self.size = 0  # bytes; beyond LIMIT_BYTES they are counted and dropped
        for piece in pieces:
            self.write(piece)

    def write(self, piece: Any) -> int:
        """Append the bytes of any buffer and return how many they are."""
        part = piece if type(piece) is bytes else bytes(piece)
        self.size += len(part)
        if self.size > LIMIT_BYTES:
            self._pieces.clear()
        else:
            self._hash.update(part)
            self._pieces.append(part)
        return len(part)

    @property
    def sha256(self) -> str:
        """64 hex digits."""
        return self._hash.hexdigest()

    def __iter__(self) -> Iterator[bytes]:
        """The pieces, again and again."""
        return iter(self._pieces)

    def __len__(self) -> int:
        """How many bytes, which is what an upload names as its length."""
        return self.size

    def joined(self) -> bytes:
        """All bytes."""
        return b"".join(self._pieces)


def _refuse_on_device(tensor: Any) -> None:
    """Raise OnDevice for a tensor that is neither in ordinary memory nor without any."""
    device = getattr(tensor, "device", None)
    if getattr(tensor, "is_cuda", False) or getattr(device, "type", "cpu") not in ("cpu", "meta"):
        raise OnDevice(f"it is a tensor on {device}")


def dump(value: Any, file: Any) -> None:
    """Pickle a value by cloudpickle. Raises OnDevice, or whatever pickling raises."""
    import cloudpickle

    tensor: Any = getattr(sys.modules.get("torch"), "Tensor", None)
    if tensor is None:  # then there can be none
        cloudpickle.dump(value, file)
        return

    class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, tensor):
                _refuse_on_device(thing)
            return super().reducer_override(thing)

    Pickler(file).dump(value)


def pack(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], names: Mapping[str, Any]) -> Payload:
    """Pickle a call.

    `names` holds the arguments by the names of the parameters, for messages. Raises SerializationError, a TypeError, where something cannot
    be pickled, naming it, and ValueError where the whole is larger than LIMIT_BYTES.
    """
    payload = Payload([b"gpuctl-function 1 python=%d.%d\n" % sys.version_info[:2]])
    try:
        dump((function, args, dict(kwargs)), payload)
    except Exception as error:
        from serverless_gpu._internal.pickle_diagnosis import explain

        raise SerializationError(explain(function, names, error)) from error
    if payload.size > LIMIT_BYTES:
        raise ValueError(
            f"the function and its arguments are {payload.size} bytes when pickled ({payload.size / LIMIT_BYTES:.2f} GiB), and the limit is"
            " 1 GiB: load large data inside the function"
        )
    return payload


def loads(data: bytes) -> Any:
    """What a pickle of a rank holds. Raises whatever unpickling raises."""
    return load(io.BytesIO(data))


def load(file: Any) -> Any:
    """The same from a file that is open for reading."""
    import pickle

    import cloudpickle  # noqa: F401  (its pickles name it, and a failure to import it is better seen here)

    return pickle.load(file)
