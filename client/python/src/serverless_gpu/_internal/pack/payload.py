# SPDX-License-Identifier: Apache-2.0
"""A function and its arguments as bytes: one line with the version of the pickling Python, the pickle of (function, args, kwargs), and
a key. The ranks seal with the key what they pickle, so that nothing else is opened here.

cloudpickle pickles objects of `__main__` by value and objects of importable modules by name. Objects that cannot be pickled, or that lie on
a GPU, are named in an error before anything is sent.
"""

from __future__ import annotations

import hashlib
import io
import secrets
import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, Callable

from serverless_gpu.exceptions import SerializationError

LIMIT_BYTES = 1024**3  # of one blob
INLINE_BYTES = 32 * 1024  # largest size inside the job itself
KEY = secrets.token_bytes(32)  # of larger calls of this process: the same call again is the same blob, and uploaded once


class OnDevice(TypeError):
    """A tensor lies in the memory of a GPU or another device of this machine, so it cannot be sent."""


class Payload:
    """Bytes in pieces, with their size and SHA-256. Large objects of the caller are referenced, not copied."""

    def __init__(self, pieces: Sequence[bytes] = ()) -> None:
        self._pieces: list[bytes] = []
        self._hash = hashlib.sha256()
        self.seal_key = b""  # of a call
        self.size = 0  # bytes; beyond LIMIT_BYTES they are counted and dropped
        for piece in pieces:
            self.write(piece)

    def write(self, piece: Any) -> int:
        """Append the bytes of any buffer and return their number."""
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
        """Iterate over the pieces, repeatedly if needed."""
        return iter(self._pieces)

    def __len__(self) -> int:
        """Return the size in bytes, which an upload uses as its length."""
        return self.size

    def joined(self) -> bytes:
        """All bytes."""
        return b"".join(self._pieces)


def _refuse_on_device(tensor: Any) -> None:
    """Raise OnDevice for a tensor that is not in ordinary memory, unless it has no memory (meta)."""
    device = getattr(tensor, "device", None)
    if getattr(tensor, "is_cuda", False) or getattr(device, "type", "cpu") not in ("cpu", "meta"):
        raise OnDevice(f"it is a tensor on {device}")


def _reduce_code(code: CodeType) -> Any:
    """Reduce a code object as cloudpickle does, with its file: version 3.1.3 calls every file "<dynamic-code>", and tracebacks say so."""
    import cloudpickle

    make, arguments, *rest = cloudpickle.CloudPickler.dispatch_table[CodeType](code)
    return (make, tuple(code.co_filename if argument == "<dynamic-code>" else argument for argument in arguments), *rest)


def dump(value: Any, file: Any) -> None:
    """Pickle a value with cloudpickle. Raises OnDevice, or any exception of pickling."""
    import cloudpickle

    tensor: Any = getattr(sys.modules.get("torch"), "Tensor", ())  # without torch there are no tensors

    class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
        dispatch_table = ChainMap({CodeType: _reduce_code}, cloudpickle.CloudPickler.dispatch_table)

        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, tensor):
                _refuse_on_device(thing)
            return super().reducer_override(thing)

    Pickler(file).dump(value)


def pack(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], names: Mapping[str, Any]) -> Payload:
    """Pickle a call.

    `names` maps parameter names to arguments, for messages. Raises SerializationError, a TypeError that names the part that cannot be
    pickled, and ValueError if the whole is larger than LIMIT_BYTES.
    """
    payload = Payload([b"gpuctl-function 1 python=%d.%d\n" % sys.version_info[:2]])
    try:
        dump((function, args, dict(kwargs)), payload)
    except Exception as error:
        from serverless_gpu._internal.pack.pickle_diagnosis import explain

        raise SerializationError(explain(function, names, error)) from error
    payload.seal_key = secrets.token_bytes(32) if payload.size < INLINE_BYTES else KEY
    payload.write(payload.seal_key)
    if payload.size > LIMIT_BYTES:
        raise ValueError(
            f"the function and its arguments are {payload.size} bytes when pickled ({payload.size / LIMIT_BYTES:.2f} GiB), and the limit is"
            " 1 GiB: load large data inside the function"
        )
    return payload


def loads(data: bytes) -> Any:
    """Unpickle bytes from a rank. Raises any exception of unpickling."""
    return load(io.BytesIO(data))


def load(file: Any) -> Any:
    """Unpickle from an open file. Raises any exception of unpickling."""
    import pickle

    import cloudpickle  # noqa: F401  (its pickles name it, and a failure to import it is better seen here)

    return pickle.load(file)  # noqa: S301  (the caller has checked the seal)
