# SPDX-License-Identifier: Apache-2.0
"""A function with the arguments of many calls, for the tasks of an array: each task makes the call of its number. All arguments are in one
object, which is sent and stored once; a task unpickles its own arguments alone.
"""

from __future__ import annotations

import array
import functools
import io
import os
import pickle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Callable

_PLAIN = (int, float, str, bytes, bool, type(None))


def _pickled(arguments: tuple[Any, ...]) -> bytes:
    """Return the arguments of a call as a pickle. Raises any exception of pickling."""
    if all(type(argument) in _PLAIN for argument in arguments):
        return pickle.dumps(arguments, 5)
    from serverless_gpu._internal.pack import payload

    file = io.BytesIO()
    payload.dump(arguments, file)
    return file.getvalue()


class Mapped:
    """Takes no arguments and makes the call whose number is $GPUCTL_ARRAY_TASK."""

    def __init__(self, function: Callable[..., Any], calls: Sequence[tuple[Any, ...]]):
        from serverless_gpu._internal.pack import pickle_diagnosis
        from serverless_gpu.exceptions import SerializationError

        functools.update_wrapper(self, function)
        self._function = function
        self._ends = array.array("Q")
        data = bytearray()
        for number, arguments in enumerate(calls):
            try:
                data += _pickled(arguments)
            except Exception as error:
                named = {f"{index}": argument for index, argument in enumerate(arguments)}
                told = pickle_diagnosis.explain(function, named, error)
                raise SerializationError(f"values[{number}]: {told}") from error
            self._ends.append(len(data))
        self._data = bytes(data)

    def __call__(self) -> Any:
        """Make the call of this task."""
        number = int(os.environ["GPUCTL_ARRAY_TASK"])
        start = self._ends[number - 1] if number else 0
        return self._function(*pickle.loads(self._data[start : self._ends[number]]))  # noqa: S301  (of the sender, as the function is)
