# SPDX-License-Identifier: Apache-2.0
"""The pages as a site: it is built without warnings, is complete, can be searched and loads nothing from elsewhere. Every link of a page
leads to a file and a heading that exist. Nothing here needs a network.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest

from pages import ROOT, of_site

DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "client").glob("*/README.md"))]
LOADED = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src"}


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def slug(heading: str) -> str:
    """The anchor that code-hosting sites and the site give a heading."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", words.strip()))


def anchors(path: Path) -> set[str]:
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+)$", without_code(path.read_text()), re.MULTILINE):
        name = slug(heading)
        found.add(name if name not in found else f"{name}-1")
    return found


def links(path: Path) -> list[str]:
    text = re.sub(r"`[^`\n]*`", "", without_code(path.read_text()))
    return re.findall(r"(?<!\\)\]\(([^)\s]+)\)", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_link_of_a_page_leads_somewhere(page: Path) -> None:
    wrong = []
    for link in links(page):
        target, _, anchor = link.partition("#")
        if re.match(r"https?://", link):
            continue
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or anchor and path.suffix == ".md" and anchor not in anchors(path):
            wrong.append(link)
        if DOCS in page.parents and DOCS not in path.parents:
            wrong.append(f"{link}: not part of the site")
    assert wrong == []


@pytest.mark.parametrize("page", of_site(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_list_and_a_table_begin_behind_an_empty_line(page: Path) -> None:
    """Or the site shows them as one paragraph."""
    lines = without_code(page.read_text()).splitlines()
    begins = [
        f"{page.name}: {line}"
        for before, line in zip(lines, lines[1:])
        if re.match(r"(- |\d+\. |\|)", line) and before.strip() and not re.match(r"(- |\d+\. |\||  |<!--)", before)
    ]
    assert begins == []


def test_each_source_file_that_a_page_names_exists() -> None:
    """In the pages about the code. A name without a folder may be in any."""
    folders = ("agent", "client", "daemon", "deploy", "docs", "proto", "tests")
    files = {path.relative_to(ROOT).as_posix() for folder in folders for path in (ROOT / folder).rglob("*.*")}
    named = [DOCS / "architecture.md", *(DOCS / "architecture").glob("*.md"), DOCS / "hacking.md", ROOT / "CONTRIBUTING.md"]
    missing = []
    for page in named:
        for name in re.findall(r"`([\w./*-]+\.(?:c|h|py|js|pml))`", page.read_text()):
            if not fnmatch.filter(files, name) and not fnmatch.filter(files, f"*/{name}"):
                missing.append(f"{page.name}: {name}")
    assert missing == []


def test_each_page_is_in_the_navigation_once() -> None:
    listed = of_site()
    assert sorted(listed) == sorted(DOCS.rglob("*.md"))


def test_the_first_page_is_short() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 250 and max(map(len, lines)) <= 120


class Loads(HTMLParser):
    """What a page of HTML makes a browser load, and where its anchors lead."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        address = named.get(LOADED.get(tag, ""))
        if address and not (tag == "link" and named.get("rel") in ("canonical", "next", "prev")):
            self.loaded.append(address)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if find_spec("mkdocs") is None or find_spec("material") is None:
        pytest.skip("mkdocs-material is not installed: .venv was made from Debian's packages")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "true"}  # an announcement of the theme
    made = subprocess.run(command, cwd=ROOT, env=quiet, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert made.returncode == 0 and "WARNING" not in made.stdout, made.stdout
    return folder


def test_the_site_has_all_pages_and_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in of_site():
        made = site / page.relative_to(DOCS).with_suffix(".html")
        made = made.with_name("index.html") if made.name == "README.html" else made
        read = Loads()
        read.feed(made.read_text())
        assert read.loaded, f"{made} loads no style"
        assert [address for address in read.loaded if re.match(r"(https?:)?//", address)] == []
        assert [address for address in read.loaded if not (made.parent / address.split("?")[0].split("#")[0]).exists()] == []
    styles = [path.read_text() for path in site.rglob("*.css")]
    assert styles and not any(re.search(r"url\(['\"]?(https?:)?//", text) for text in styles)


def test_the_site_can_be_searched(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    found = [each["location"] for each in index["docs"] if "MASTER_PORT" in each["text"]]
    assert any(location.startswith("guide/functions.html") for location in found)


def test_the_site_shows_no_directive_of_a_block(site: Path) -> None:
    text = "".join(path.read_text() for path in site.rglob("*.html"))
    assert "on=checkout" not in text and "&lt;!-- block" not in text and "<!-- block" not in text
