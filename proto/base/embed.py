# SPDX-License-Identifier: Apache-2.0
"""Write a file's bytes as C: embed.py INPUT OUTPUT HEADER NAME defines NAME and NAME_length as HEADER declares them."""

import sys
from pathlib import Path


def initializer(data: bytes) -> str:
    """Bytes between braces."""
    return "{\n" + ",\n".join(", ".join(str(byte) for byte in data[at : at + 24]) for at in range(0, len(data), 24)) + "}"


def main(source: str, target: str, header: str, name: str) -> None:
    data = initializer(Path(source).read_bytes())
    Path(target).write_text(f'#include "{header}"\n\nconst unsigned char {name}[] = {data};\nconst size_t {name}_length = sizeof {name};\n')


if __name__ == "__main__":
    main(*sys.argv[1:])
