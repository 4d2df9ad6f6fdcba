# SPDX-License-Identifier: Apache-2.0
"""The words of the code: those that docs/glossary.md explains are where it says, and those that were given up stay away."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

#: Part of an identifier or word of a comment: what is said instead.
RETIRED = {
    "door": "writer",
    "mailbox": "outbox",
    "ballast": "reserve file",
    "lane": "job class",
    "horizon": "availability profile",
    "crowd": "gang placement",
    "sieve": "node filter",
    "seat": "device",
    "stock": "node capacity",
    "duty": "reconciler",
    "converse": "shim client",
    "beat": "heartbeat",
    "sheet": "change set",
    "complain": "log an error",
    "farewell": "disconnect",
    "bury": "tombstone",
    "wish": "resource request, query or desired state",
    "trail": "log cursor",
}
#: (file, word) where the word means something else, or is part of an interface.
KEPT = {("daemon/store/database/pages.c", "lane")}
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')


def sources() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.c", "*.h"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("no checkout of git: the sources cannot be told from what was built")
    return [Path(line) for line in listed.stdout.splitlines()]


def test_a_word_that_was_given_up_is_in_no_source() -> None:
    pattern = re.compile(rf"(?<![A-Za-z])({'|'.join(RETIRED)})s?(?![a-z])", re.IGNORECASE)
    found = []
    for path in sources():
        text = STRING.sub('""', (ROOT / path).read_text(encoding="utf-8"))
        for number, line in enumerate(text.splitlines(), 1):
            for match in pattern.finditer(line):
                word = match[1].lower()
                if (str(path), word) not in KEPT and "/v1/agent/beat" not in line and "flag_beats" not in line:
                    found.append(f"{path}:{number}: {match[0]}: say {RETIRED[word]}")
    assert found == []


def test_each_word_of_the_glossary_is_where_it_says() -> None:
    rows = [line.split("|")[1:-1] for line in (ROOT / "docs" / "glossary.md").read_text().splitlines() if line.startswith("| ")]
    words = [(word.strip(), meaning.strip(), where.strip()) for word, meaning, where in rows if word.strip() not in ("word", "---")]
    assert len(words) > 30 and len({word for word, _, _ in words}) == len(words)
    assert [where for _, _, where in words if not (ROOT / where).exists()] == []
    assert [word for word, meaning, _ in words if not meaning.endswith(".")] == []


def test_what_is_no_public_module_of_the_client_is_internal() -> None:
    package = ROOT / "client" / "python" / "src" / "serverless_gpu"
    public = {path.stem for path in package.glob("*.py")} | {path.parent.name for path in package.glob("[a-z]*/__init__.py")}
    page = (ROOT / "client" / "python" / "README.md").read_text()
    assert public - {"__init__"} == {name for name in public if f"serverless_gpu.{name}" in page}
