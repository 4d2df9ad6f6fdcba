# SPDX-License-Identifier: Apache-2.0
"""Bundles the web page and writes its files as C: bundle.py ESBUILD SOURCES OUTPUT.

The scripts and the style sheet are bundled by esbuild under names that hold a hash of their bytes, so browsers keep them for good. The page
names the first script, which names the one that draws charts. Each file comes as it is and compressed. Scripts end with the licences of
libraries.
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
    licences = "".join(f"/* {name}\n{(sources / 'node_modules' / name / 'LICENSE').read_text()}*/\n" for name in ("preact", "uplot"))
    options = ["--bundle", "--minify", "--format=esm", "--splitting", "--target=es2022", "--log-level=warning", f"--footer:js={licences}"]
    names = ["--entry-names=[name]-[hash]", "--chunk-names=[name]-[hash]"]
    words = [esbuild, str(sources / "src" / "main.tsx"), *options, f"--outdir={folder}", *names]
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
