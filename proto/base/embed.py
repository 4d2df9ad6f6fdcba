# SPDX-License-Identifier: Apache-2.0
"""Write a file's bytes as a C array: embed.py INPUT OUTPUT HEADER NAME."""

import sys
from pathlib import Path


def main() -> None:
    """Read INPUT, write OUTPUT, which defines NAME and NAME_length as HEADER declares them."""
    source, target, header, name = sys.argv[1:]
    data = Path(source).read_bytes()
    lines = [", ".join(str(byte) for byte in data[at : at + 24]) for at in range(0, len(data), 24)]
    text = f'#include "{header}"\n\nconst unsigned char {name}[] = {{\n' + ",\n".join(lines) + "};\n"
    Path(target).write_text(text + f"const size_t {name}_length = sizeof {name};\n")


if __name__ == "__main__":
    main()
