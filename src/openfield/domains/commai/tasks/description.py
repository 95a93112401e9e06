"""Descriptions of string sets for the mini tasks, and strings that belong to them or nearly do.

The teacher shows a description; `accepts` checks a string, `draw_member` and `draw_nonmember` draw one to verify.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from random import Random

from openfield.domains.commai.tasks.draws import between, pick, sample

LETTERS = string.ascii_uppercase
_FILLER = 5
"""`anything` stands for up to this many letters between two n-grams."""
MIN_LETTERS = 2
"""Letters of a string that nearly belongs, at least."""
_TRIES = 20


@dataclass(frozen=True)
class Description:
    """N-grams that must or must not occur, joined by one operator; `anything` allows letters in between."""

    required: tuple[str, ...]
    banned: tuple[str, ...] = ()
    anything: bool = False
    operator: str = "and"

    def text(self, rng: Random) -> str:
        """Return the description as the teacher says it, its groups in random order."""
        groups = [*self.required, *(f"not {ngram}" for ngram in self.banned)]
        if self.anything:
            groups.append("anything")
        return f" {self.operator} ".join(sample(rng, groups, len(groups)))

    def accepts(self, verified: str) -> bool:
        """Return whether the string belongs to the set."""
        if any(ngram in verified for ngram in self.banned):
            return False
        if self.operator == "and" and not all(ngram in verified for ngram in self.required):
            return False
        return self.anything or _covered(verified, self.required)


def draw_member(description: Description, length: int, rng: Random) -> str:
    """Draw a string of the set: n-grams in random order until it is longer than `length` and has all it needs."""
    writer = _Writer(description, rng)
    required = description.required
    missing = set(required) if description.operator == "and" else set()
    while (room := length - len(writer.text)) >= 0:
        if description.anything and (not required or rng.random() < 0.5):
            writer.fill(room + 1)
        else:
            missing.discard(writer.add(pick(rng, required)))
    for ngram in sorted(missing):
        if ngram not in writer.text:
            writer.add(ngram)
    return writer.text


def draw_nonmember(description: Description, length: int, rng: Random) -> str:
    """Draw a string that nearly belongs: a member with one edit that excludes it.

    Every string belongs to plain `anything`. Its nonmember is the empty string, as in the original.
    """
    if description.anything and not description.required and not description.banned:
        return ""
    edits = [_insert_unused, _insert_own, _remove_required, _insert_banned]
    text = draw_member(description, length, rng)
    for _ in range(_TRIES):
        changed = pick(rng, edits)(description, text, rng)
        if len(changed) >= MIN_LETTERS and not description.accepts(changed):
            return changed
    return _spoil(description, text, rng)


class _Writer:
    """Writes a member n-gram by n-gram."""

    def __init__(self, description: Description, rng: Random) -> None:
        self.text = ""
        self._description, self._rng = description, rng
        self._unused = unused_letters(description)

    def add(self, ngram: str) -> str:
        """Appends an n-gram, sometimes overlapping what is there."""
        overlap = _overlap(self.text, ngram) if len(ngram) > 1 and self._rng.random() < 0.5 else 0
        self.text += ngram[overlap:]
        return ngram

    def fill(self, most: int) -> None:
        """Append up to five letters that complete nothing: unused ones, or letters of banned n-grams."""
        rng, banned = self._rng, self._description.banned
        size = min(between(rng, 1, _FILLER), most)
        if not banned:
            self.text += "".join(rng.choices(self._unused, k=size))
            return
        for _ in range(size):
            grown = self.text + pick(rng, pick(rng, (*banned, self._unused)))
            if grown.endswith(banned):
                grown = self.text + pick(rng, self._unused)
            self.text = grown


def unused_letters(description: Description) -> str:
    """Return the letters that occur in no n-gram."""
    used = set("".join(description.required + description.banned))
    return "".join([letter for letter in LETTERS if letter not in used])


def _insert_unused(description: Description, text: str, rng: Random) -> str:
    return _insert(text, pick(rng, unused_letters(description)), rng)


def _insert_own(description: Description, text: str, rng: Random) -> str:
    letters = "".join(description.required)
    return _insert(text, pick(rng, letters), rng) if letters else text


def _remove_required(description: Description, text: str, rng: Random) -> str:
    if description.operator != "and" or not description.required:
        return text
    ngram, unused = pick(rng, description.required), unused_letters(description)
    while ngram in text:
        text = text.replace(ngram, pick(rng, unused) * len(ngram) if description.anything else "", 1)
    return text


def _insert_banned(description: Description, text: str, rng: Random) -> str:
    return _insert(text, pick(rng, description.banned), rng) if description.banned else text


def _spoil(description: Description, text: str, rng: Random) -> str:
    """Make the edit that always works, for the rare string that stays a member after all others."""
    if not description.anything:
        return _insert_unused(description, text, rng)
    return (_insert_banned if description.banned else _remove_required)(description, text, rng)


def _insert(text: str, part: str, rng: Random) -> str:
    at = int(rng.random() * (len(text) + 1))
    return text[:at] + part + text[at:]


def _overlap(text: str, ngram: str) -> int:
    """Return how many letters of the n-gram the text already ends with."""
    for size in range(len(ngram) - 1, 0, -1):
        if text.endswith(ngram[:size]):
            return size
    return 0


def _covered(text: str, ngrams: tuple[str, ...]) -> bool:
    """Return whether occurrences of the n-grams, overlapping or touching, cover every letter."""
    reach = 0
    while reach < len(text):
        ends = [_furthest(text, ngram, reach) for ngram in ngrams]
        further = max(ends, default=reach)
        if further <= reach:
            return False
        reach = further
    return True


def _furthest(text: str, ngram: str, reach: int) -> int:
    """Return the end of the last occurrence that starts at or before `reach`, if it ends behind it."""
    at = text.rfind(ngram, max(0, reach - len(ngram) + 1), reach + len(ngram))
    return at + len(ngram) if at >= 0 else 0
