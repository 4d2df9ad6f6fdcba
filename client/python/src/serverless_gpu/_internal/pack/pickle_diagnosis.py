# SPDX-License-Identifier: Apache-2.0
"""Finds the part of a call that cannot be pickled, and names it: an argument, or a variable that the function captures.

It pickles the parts one by one, so it is used only after pickling the whole has failed.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from typing import Any, Callable

from serverless_gpu._internal.pack.payload import OnDevice, dump

REMEDY = "create it inside the function, or pass what it is made from"
DEVICE_REMEDY = "move it to the CPU before the call, by .cpu() or model.to('cpu'), and back inside the function, or create it there"
DEPTH = 8  # of functions that capture functions


def _failure(value: Any) -> Exception | None:
    """Return the exception that pickling the value raises, or None."""

    class Sink:
        def write(self, piece: bytes) -> int:
            return len(piece)

    try:
        dump(value, Sink())
    except Exception as error:
        return error
    return None


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield the code of a function and of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _captured(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the captured values of a function: (name for a message, value)."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield f"the captured variable {name!r}", cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    seen = set()
    for code in _codes(function.__code__):
        for name in code.co_names:
            if name in function.__globals__ and name not in seen:
                seen.add(name)
                yield f"the captured global {name!r}", function.__globals__[name]
    for index, value in enumerate(function.__defaults__ or ()):
        count = function.__code__.co_argcount - len(function.__defaults__ or ())
        yield f"the default of the parameter {function.__code__.co_varnames[count + index]!r}", value
    for name, value in (function.__kwdefaults__ or {}).items():
        yield f"the default of the parameter {name!r}", value


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts one level below a value that cannot be pickled."""
    value = getattr(value, "__wrapped__", value)
    if isinstance(value, types.MethodType):
        yield "the object that it is bound to", value.__self__
        yield from _parts(value.__func__)
    elif isinstance(value, types.FunctionType):
        yield from _captured(value)
    elif type(value) is dict:
        yield from ((f"its item {key!r}", item) for key, item in value.items())
    elif type(value) in (list, tuple):
        yield from ((f"its item {index}", item) for index, item in enumerate(value))
    elif isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, (type, types.ModuleType)):
        yield from ((f"its attribute {name!r}", item) for name, item in vars(value).items())


def _trail(what: str, value: Any, error: Exception, depth: int) -> tuple[list[str], Any, Exception]:
    """Return the path from a value that cannot be pickled down to the part that is the reason: the names on the way, the part, its
    exception.
    """
    for name, part in _parts(value) if depth > 0 else ():
        failure = None if part is value else _failure(part)
        if failure is not None:
            names, end, reason = _trail(name, part, failure, depth - 1)
            return [what, *names], end, reason
    return [what], value, error


def explain(function: Callable[..., Any], arguments: Mapping[str, Any], error: Exception) -> str:
    """Return one line about the part that cannot be pickled. `arguments` are keyed by parameter name; `error` is the exception of pickling
    the whole.
    """
    title = getattr(function, "__name__", None) or type(function).__name__
    candidates = [(f"the argument {name!r} of {title}()", value) for name, value in arguments.items()]
    candidates.append((f"{title}()", function))
    for what, value in candidates:
        failure = _failure(value)
        if failure is not None:
            names, end, reason = _trail(what, value, failure, DEPTH)
            kind = f"{type(end).__module__}.{type(end).__qualname__}".replace("builtins.", "")
            if isinstance(reason, OnDevice):
                return f"cannot send {': '.join(names)}: {reason}, which stays on this machine; {DEVICE_REMEDY}"
            message = " ".join(f"{type(reason).__name__}: {reason}".split())
            return f"cannot pickle {': '.join(names)}, which is of type {kind} ({message}); {REMEDY}"
    message = " ".join(f"{type(error).__name__}: {error}".split())
    return f"cannot pickle {title}() and its arguments ({message}); {REMEDY}"
