# SPDX-License-Identifier: Apache-2.0
"""Hooks of mkdocs: what stands behind the language of a block says to tests/pages how it is executed, and is no part of the site."""

from __future__ import annotations

import re
from typing import Any


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Leave only the language behind a fence, and take away the comments that belong to blocks."""
    without = re.sub(r"^<!-- block.*?-->\n", "", markdown, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^```(\w+) .*$", r"```\1", without, flags=re.MULTILINE)
