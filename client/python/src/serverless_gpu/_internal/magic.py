# SPDX-License-Identifier: Apache-2.0
"""The cell magic `%%distributed gpus=2 gpu_type=H100`: the cell's body runs on each rank, with the names of the notebook that it uses."""

from __future__ import annotations

import ast
import builtins
import difflib
import inspect
import shlex
import sys
from typing import Any, Callable

from serverless_gpu.launcher import DistributedFunction, distributed

USAGE = "write for instance %%distributed gpus=2 gpu_type=H100 remote=True"
VALUE = "_gpuctl_value"


class _Cell:
    """The body of a cell as a function. It is compiled on the rank, so that its text is what travels."""

    __name__ = __qualname__ = "cell"

    def __init__(self, source: str, file: str, flags: int):
        self._source = source
        self._file = file
        self._flags = flags  # from the notebook's own `from __future__ import ...`

    def __call__(self, names: dict[str, Any]) -> Any:
        """Run the body and return the value of its last expression; None if its last statement is none."""
        namespace = sys.modules["__main__"].__dict__
        namespace.update(names)
        tree = _with_value(ast.parse(self._source))
        exec(compile(tree, self._file, "exec", self._flags, dont_inherit=True), namespace)  # noqa: S102  (the person's own cell)
        return namespace.pop(VALUE, None)


def _with_value(tree: ast.Module) -> ast.Module:
    """Return the tree with its last expression assigned to VALUE."""
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body[-1]
        target = ast.copy_location(ast.Name(VALUE, ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
    return tree


def _options(line: str) -> dict[str, Any]:
    """Return the options in the line of the magic. Raises ValueError that names the option and the remedy."""
    known = [name for name in inspect.signature(distributed).parameters if name != "run_async"]
    options: dict[str, Any] = {}
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ValueError(f"%%distributed: the options cannot be read ({error}); {USAGE}") from None
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise ValueError(f"%%distributed: {word!r} has no value; {USAGE}")
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            remedy = f"is it {near[0]}?" if near else f"its options are {', '.join(known)}"
            raise ValueError(f"%%distributed: there is no option {name!r}; {remedy}")
        if name in options:
            raise ValueError(f"%%distributed: {name} is given twice; leave one out")
        try:
            options[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            options[name] = text
    if "gpus" not in options:
        raise ValueError(f"%%distributed: gpus is missing, the total over all nodes; {USAGE}")
    return options


def _used(source: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of the notebook that the body reads, by name."""
    read = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
    hidden = ("get_ipython", "In", "Out", "exit", "quit", "open")
    return {
        name: namespace[name]
        for name in sorted(read & namespace.keys())
        if not (name.startswith("_") or name in hidden or namespace[name] is getattr(builtins, name, VALUE))
    }


def _plain_function(value: Any) -> Any:
    """Return the function below a distributed one, which may be called in the body as such; other values as they are."""
    return value.func if isinstance(value, DistributedFunction) else value


def run(shell: Any, line: str, body: str) -> list[Any]:
    """Run the body on each rank and return the values of its last expression, by rank."""
    options = _options(line)
    source = body if body.endswith("\n") else f"{body}\n"
    for number, text in enumerate(source.splitlines(), 1):
        if text.startswith(("%", "!")):
            raise ValueError(f"%%distributed: line {number} of the body begins with {text[0]!r}, and ranks have no IPython: write Python")
    ast.parse(source)  # a SyntaxError shows its line
    cache: Callable[..., str] | None = getattr(shell.compile, "cache", None)
    file = cache(source) if cache is not None else "<%%distributed>"
    names = {name: _plain_function(value) for name, value in _used(source, shell.user_ns).items()}
    decorate: Callable[[Any], DistributedFunction[..., Any]] = distributed(**{"name": "cell", **options})
    return decorate(_Cell(source, file, getattr(shell.compile, "flags", 0))).distributed(names)


def load(shell: Any) -> None:
    """Register the magic with the shell of a notebook."""
    shell.register_magic_function(lambda line, cell: run(shell, line, cell), "cell", "distributed")
