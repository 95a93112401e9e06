"""Conversations of language models that replies note down: their messages, and what is new in each turn.

Models write Markdown, and what a model wrote may have been put into its mouth by anyone. Paragraphs, emphasis, lists,
tables, quotes and code are shown as such; HTML, links and pictures stay the text they were, so that a page neither
loads nor leads anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from markupsafe import Markup

from openfield.view.trials.values import format_value

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

MAX_SEEN = 1_500
"""Characters of what is shown of a value."""
TALKS = ("transcript", "messages")
"""The parts of a note that hold a conversation."""
LEFT_AS_WRITTEN = ("html_block", "html_inline", "image", "link", "autolink", "reference", "entity", "hr", "lheading")
"""The rules that could load or lead somewhere, and those that plain text triggers by chance, such as rows of dashes."""
MARKS = re.compile(r"[*_`#>|~]|^\s*(?:[-+]|\d+[.)])\s|\n\s*\n", re.MULTILINE)
"""What plain text lacks."""


class Message(msgspec.Struct, frozen=True):
    """Something that a language model read or wrote."""

    role: str
    text: str
    thinking: str = ""

    @property
    def is_own(self) -> bool:
        """Whether the agent said it."""
        return self.role == "assistant"

    @property
    def prose(self) -> Markup | None:
        """What the agent said as HTML, if it wrote Markdown. Questions keep the lines in which they were asked."""
        return render_prose(self.text) if self.is_own else None


def read_messages(note: Any) -> tuple[list[Message], Any]:
    """Return the conversation in a note, and the rest of it."""
    name = next((name for name in TALKS if isinstance(note, Mapping) and _is_talk(note.get(name))), None)
    if name is not None:
        rest = {key: value for key, value in note.items() if key != name}
        return [_read_message(each) for each in note[name]], rest or None
    return ([_read_message(each) for each in note], None) if _is_talk(note) else ([], note)


def _is_talk(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, Mapping) and "content" in each for each in value)
    )


def _read_message(message: Mapping[str, Any]) -> Message:
    thinking = message.get("thinking")
    text = format_value(message["content"], MAX_SEEN * 4)
    return Message(str(message.get("role", "")), text, thinking if isinstance(thinking, str) else "")


def leave_out(talk: Sequence[Message], earlier: Sequence[Message]) -> list[Message]:
    """Return the messages after the last answer of the turn before; a conversation may have lost its oldest ones."""
    known = set(earlier)
    before = [at for at, each in enumerate(talk[:-1]) if each.is_own and each in known]
    return list(talk[before[-1] + 1 if before else 0 :])


def render_prose(text: str) -> Markup | None:
    """Return Markdown as HTML; None of a text that has no marks of it, which is shown as it is."""
    if not MARKS.search(text):
        return None
    return Markup(_parser().render(text))  # noqa: S704 - HTML in it was escaped


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # only where a transcript is shown

    return MarkdownIt("commonmark", {"html": False, "maxNesting": 12}).enable("table").disable([*LEFT_AS_WRITTEN])
