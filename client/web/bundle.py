# SPDX-License-Identifier: Apache-2.0
"""Bundles the web page and writes its files as C: bundle.py ESBUILD SOURCES OUTPUT.

The script and the style sheet are bundled by esbuild under names that hold a hash of their bytes, so browsers keep them for good; the page
itself names them. Each file comes as it is and compressed. The script ends with the licence of the library that is in it.
"""

import gzip
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "proto" / "base"))
from embed import initializer  # noqa: E402


def bundle(esbuild: str, sources: Path, folder: Path) -> list[Path]:
    """The script, the style sheet and what they refer to, in the folder."""
    licence = (sources / "node_modules" / "preact" / "LICENSE").read_text()
    options = ["--bundle", "--minify", "--format=esm", "--target=es2022", "--log-level=warning", f"--footer:js=/* Preact\n{licence}*/"]
    words = [esbuild, str(sources / "src" / "main.tsx"), *options, f"--outdir={folder}", "--entry-names=[name]-[hash]"]
    subprocess.run(words, check=True, cwd=sources)
    return sorted(folder.iterdir())


def main(esbuild: str, sources: Path, output: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        bundled = {path.name: path.read_bytes() for path in bundle(esbuild, sources, Path(folder))}
    page = (sources / "index.html").read_text()
    for name in bundled:
        page = page.replace(re.sub(r"-[A-Z0-9]{8}(?=\.)", "", name), name)
    files = {"index.html": page.encode(), "icon.svg": (sources / "icon.svg").read_bytes(), **bundled}
    text = '#include "daemon/http/web.h"\n\n'
    rows = ""
    for number, (name, data) in enumerate(files.items()):
        text += f"static const unsigned char plain_{number}[] = {initializer(data)};\n"
        text += f"static const unsigned char packed_{number}[] = {initializer(gzip.compress(data, 9, mtime=0))};\n"
        keep = "true" if name in bundled else "false"
        rows += f'    {{"{name}", {keep}, {{plain_{number}, sizeof plain_{number}}}, {{packed_{number}, sizeof packed_{number}}}}},\n'
    Path(output).write_text(f"{text}\nconst struct web_file web_files[] = {{\n{rows}    {{0}},\n}};\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).resolve(), sys.argv[3])
