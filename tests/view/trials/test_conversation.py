"""Markdown of models becomes HTML that neither loads nor leads anywhere."""

from __future__ import annotations

import re

import pytest

from openfield.view.trials.conversation import render_prose

SAFE = {"p", "strong", "em", "ul", "ol", "li", "pre", "code", "blockquote", "table", "thead", "tbody", "tr", "th", "td"}


def test_markdown_is_laid_out() -> None:
    found = render_prose("I **think**:\n\n1. go\n2. look\n\n```python\nx < 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |")
    assert found is not None
    for part in ("<strong>think</strong>", "<li>go</li>", "x &lt; 1", "<td>2</td>"):
        assert part in found


@pytest.mark.parametrize("text", ["left", "turn 3: I go left, then right (2 - 1 = 1)", "", "a\nb"])
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert render_prose(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "**a** <script>alert(1)</script>",
        "**a** <img src=x onerror=alert(1)>",
        "![picture](http://evil.example/a.png)\n\n*x*",
        "[click](javascript:alert(1)) *x*",
        "<http://evil.example> *x*",
        "[a]: http://evil.example\n\n[a] *x*",
        '```"><script>alert(1)</script>\nx\n```',
        "> " * 200 + "*x*",
        "*" * 4_000,
    ],
)
def test_nothing_that_loads_or_leads_comes_through(text: str) -> None:
    found = render_prose(text)
    assert found is not None
    assert set(re.findall(r"<\s*/?\s*([a-zA-Z]\w*)", found)) <= SAFE
    assert not re.search(r"<[^>]*\b(src|href|on\w+)\s*=", found)
