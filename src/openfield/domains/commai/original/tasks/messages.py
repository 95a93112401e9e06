"""`tasks.competition.messages` of the original: praise, blame, numbers and small helpers of grammar."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from openfield.domains.commai.environment.grid_world import with_article
from openfield.domains.commai.tasks.draws import load_phrasebook

BOOK = load_phrasebook()
congratulations = list(BOOK.congratulations)
failed = list(BOOK.failed)
timeout = list(BOOK.timeout)
numbers_in_words = list(BOOK.numbers)


def number_to_strings(number: int) -> list[str]:
    """Return a number in digits, and up to ten also in words."""
    return [str(number), *([numbers_in_words[number]] if 0 <= number < len(numbers_in_words) else [])]


def number_to_string(number: int, rng: Any = random) -> str:
    """Return a number in digits or in words."""
    drawn: str = rng.choice(number_to_strings(number))
    return drawn


def string_to_number(text: str) -> int:
    """Return the number of a word or of digits.

    Raises:
        ValueError: It is neither.
    """
    return numbers_in_words.index(text) if text in numbers_in_words else int(text)


def indef_article(noun: str) -> str:
    """Return a noun with `a` or `an` before it."""
    return with_article(noun)


def pluralize(noun: str, number: int) -> str:
    """Return a noun, with an s unless there is one of it."""
    return noun if number == 1 else f"{noun}s"


def lemmatize(noun: str) -> str:
    """Return a noun without its last s."""
    return noun[:-1] if noun.endswith("s") else noun


def enumerate_with_articles(items: Sequence[str]) -> str:
    """Return things with their articles: commas between them, and `and` before the last."""
    named = [with_article(item) for item in items]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
