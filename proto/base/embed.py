# SPDX-License-Identifier: Apache-2.0
"""Write files' bytes as C: embed.py INPUT OUTPUT HEADER NAME, or embed.py --table OUTPUT HEADER NAME INPUT..."""

import sys
from pathlib import Path


def initializer(path: str) -> str:
    """The bytes of a file between braces."""
    data = Path(path).read_bytes()
    return "{\n" + ",\n".join(", ".join(str(byte) for byte in data[at : at + 24]) for at in range(0, len(data), 24)) + "}"


def one(source: str, target: str, header: str, name: str) -> None:
    """Define NAME and NAME_length as HEADER declares them."""
    text = f'#include "{header}"\n\nconst unsigned char {name}[] = {initializer(source)};\n'
    Path(target).write_text(text + f"const size_t {name}_length = sizeof {name};\n")


def table(target: str, header: str, name: str, *sources: str) -> None:
    """Define NAME: an array of {file name, bytes, length}, of a struct called as NAME without its s, with an empty one at its end."""
    arrays = "".join(f"static const unsigned char file_{i}[] = {initializer(source)};\n" for i, source in enumerate(sources))
    rows = "".join(f'    {{"{Path(source).name}", file_{i}, sizeof file_{i}}},\n' for i, source in enumerate(sources))
    text = f'#include "{header}"\n\n{arrays}\nconst struct {name.removesuffix("s")} {name}[] = {{\n{rows}    {{0}},\n}};\n'
    Path(target).write_text(text)


if __name__ == "__main__":
    if sys.argv[1] == "--table":
        table(*sys.argv[2:])
    else:
        one(*sys.argv[1:])
