# SPDX-License-Identifier: Apache-2.0
"""The Python of a page's reader: `python -c 'import session; session.serve()'` executes one block a line of stdin, all of them in __main__.

A line is JSON, {"name": ..., "text": ...}; the answer, on descriptor 3, is an empty line, or the traceback as a JSON text. Where a block
says in a comment behind an expression what its value is, [0, 3] for example, the value has to be that; `...` in it stands for any items.
"""

from __future__ import annotations

import ast
import io
import json
import os
import sys
import tokenize
import traceback
from typing import Any


def promised(text: str) -> dict[int, Any]:
    """The values that comments name, by their lines."""
    found = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            try:
                found[token.start[0]] = ast.literal_eval(token.string.lstrip("# "))
            except (ValueError, SyntaxError):
                continue  # words
    return found


def is_as_promised(value: Any, wanted: Any) -> bool:
    if wanted is Ellipsis:
        return True
    if isinstance(wanted, (list, tuple)) and isinstance(value, type(wanted)):
        whole = Ellipsis not in wanted
        return (len(value) == len(wanted) if whole else len(value) >= len(wanted) - 1) and all(map(is_as_promised, value, wanted))
    return bool(value == wanted)


def execute(text: str, name: str, scope: dict[str, Any]) -> None:
    values = promised(text)
    for statement in ast.parse(text, name).body:
        line = statement.end_lineno or statement.lineno
        if isinstance(statement, ast.Expr) and line in values:
            value = eval(compile(ast.Expression(statement.value), name, "eval"), scope)
            assert is_as_promised(value, values[line]), f"{name}, line {line}: the value is {value!r}"
        else:
            exec(compile(ast.Module([statement], []), name, "exec"), scope)


def serve() -> None:
    with os.fdopen(3, "w", buffering=1) as answers:
        os.set_inheritable(3, False)
        for line in sys.stdin:
            order = json.loads(line)
            try:
                execute(order["text"], order["name"], sys.modules["__main__"].__dict__)
                answers.write("\n")
            except BaseException:
                answers.write(json.dumps(traceback.format_exc()) + "\n")
