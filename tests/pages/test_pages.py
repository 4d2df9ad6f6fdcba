# SPDX-License-Identifier: Apache-2.0
"""Every block of our pages is executed, in the order of its page, and says what the page shows; those of machines in tests/machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from pages import Block, block, pages, read_markdown
from reader import Reader, Wrong, is_said
from session import is_as_promised

PAGES = pages()


def here() -> list[tuple[str, Block]]:
    """The blocks that are executed or compared on this machine, in the order of their pages."""
    found: list[tuple[str, Block]] = []
    for page, blocks in PAGES.items():
        mine = [each for each in blocks if not each.is_machine and "skip" not in each.directives and "figure" not in each.flags]
        found += [(page, each) for each in sorted(mine, key=lambda each: "later" in each.flags)]
    return found


@pytest.mark.parametrize(("reader", "written"), here(), indirect=["reader"], scope="module", ids=lambda value: getattr(value, "name", ""))
def test_what_is_written_runs(reader: Reader, written: Block) -> None:
    reader.execute(written)


def test_few_blocks_are_left_out_and_each_says_why() -> None:
    left_out = {each.name: each.directives["skip"] for blocks in PAGES.values() for each in blocks if "skip" in each.directives}
    assert len(left_out) < 7, left_out
    assert all(len(why.split()) > 3 for why in left_out.values()), left_out


def test_a_block_whose_directives_mean_nothing_is_refused() -> None:
    for info in ("", "yaml", "sh latter", "sh on=moon", "sh JOB=1", "text", 'text output varies="word"'):
        with pytest.raises(ValueError, match=r"README.md:7"):
            block("README.md", 7, info, "gpuctl get ID\n")
    made = block("README.md", 7, 'sh ID="$(gpuctl submit -- true)" on=checkout', "gpuctl get ID\n")
    assert (made.place, made.placeholders) == ("checkout", {"ID": "$(gpuctl submit -- true)"})


def test_a_comment_above_a_block_says_how_it_is_executed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("pages.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text('<!-- block JOB="$(gpuctl submit --\n     true)"\n     later -->\n```sh on=checkout\ngpuctl get JOB\n```\n')
    (made,) = read_markdown(page)
    assert (made.place, made.flags, made.placeholders) == ("checkout", {"later"}, {"JOB": "$(gpuctl submit -- true)"})
    assert made.text == "gpuctl get JOB\n"
    page.write_text("<!-- block later -->\nwords\n")
    with pytest.raises(ValueError, match="of no block"):
        read_markdown(page)


def test_the_blocks_of_administrators_come_in_the_order_of_the_navigation() -> None:
    found = [page for page, blocks in PAGES.items() if any(each.is_machine for each in blocks)]
    admin = [page for page in found if page.startswith("docs/admin/")]
    names = ("install", "cluster", "security", "backup", "retention", "object-store", "upgrade")
    assert found[0] == "README.md" and admin == [f"docs/admin/{name}.md" for name in names]


def test_what_is_shown_is_compared() -> None:
    said = "job  x7 is QUEUED\nwhy   needs 2\n"
    assert is_said("job     x7 is QUEUED\nwhy needs 2\n", [], said, whole=True)
    assert is_said("job b3 is QUEUED\n... 2\n", ["b3"], said, whole=True)
    assert is_said("job b3 was held\nwhy needs 10", ["b3", "was held", "10"], said, whole=True)
    assert is_said("why needs 2", [], said, whole=False)
    assert not is_said("why needs 2", [], said, whole=True)
    assert not is_said("job x8 is QUEUED\nwhy needs 2\n", [], said, whole=True)
    assert not is_said("needs 2", [], said, whole=False)


def test_values_that_a_comment_names_are_compared() -> None:
    assert is_as_promised([0, 3], [0, 3]) and is_as_promised([1, None], [1, None, ...]) and is_as_promised([[1, 2]], [...])
    assert not is_as_promised([0, 4], [0, 3]) and not is_as_promised([1], [1, None, ...])


def test_a_block_that_fails_is_a_failure(reader_of_nothing: Reader) -> None:
    for info, text in (
        ("sh", "true\nfalse\ntrue\n"),
        ("console", "$ echo one\ntwo\n"),
        ("python", "6 * 7   # 43\n"),
        ("python", "raise SystemExit\n"),
        ("sh JOB=$(false)", "echo JOB\n"),
    ):
        with pytest.raises(Wrong):
            reader_of_nothing.execute(block("README.md", 1, info, text))
    reader_of_nothing.execute(block("README.md", 1, 'sh NAME="$((6 * 7))"', "said=NAME; cd /\n"))
    reader_of_nothing.execute(block("README.md", 1, "console", "$ echo $said; pwd\n42\n/\n"))
    reader_of_nothing.execute(block("README.md", 1, "text output", "/\n"))
    reader_of_nothing.execute(block("README.md", 1, "python", "numbers = [6 * 7, 1]\nnumbers   # [42, ...]\n"))
