"""Markdown that language models write, as HTML that is safe to show.

What a model wrote may have been put into its mouth by anyone. Paragraphs, emphasis, lists, tables, quotes and code are
shown as such; HTML, links and pictures stay the text they were, so that a page neither loads nor leads anywhere.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LEFT_AS_WRITTEN = ("html_block", "html_inline", "image", "link", "autolink", "reference", "entity", "hr", "lheading")
"""The rules that could load or lead somewhere, and those that plain text triggers by chance, such as rows of dashes."""
MARKS = re.compile(r"[*_`#>|~]|^\s*(?:[-+]|\d+[.)])\s|\n\s*\n", re.MULTILINE)
"""What plain text lacks."""


def render_prose(text: str) -> Markup | None:
    """Return Markdown as HTML; None of a text that has no marks of it, which is shown as it is."""
    if not MARKS.search(text):
        return None
    return Markup(_parser().render(text))  # noqa: S704 - HTML in it was escaped


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # only where a transcript is shown

    return MarkdownIt("commonmark", {"html": False, "maxNesting": 12}).enable("table").disable([*LEFT_AS_WRITTEN])
