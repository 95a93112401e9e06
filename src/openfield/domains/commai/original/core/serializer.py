"""`core.serializer` of the original: from text to bits and back, and made-up words for real ones."""

from __future__ import annotations

import random
import re
from typing import Any

from openfield.domains.commai.environment.serializers import Scrambler, next_character, to_bits


class StandardSerializer:
    """UTF-8, eight bits a byte, the most significant first; bits are the characters 0 and 1."""

    SILENCE_TOKEN = " "  # noqa: S105

    def to_binary(self, message: str) -> str:
        """Return a text as bits."""
        return to_bits(message)

    def to_text(self, data: Any) -> str | None:
        """Return bits as a text; None if they are fewer than eight or no text. A partial byte at the end is ignored."""
        bits = "".join(map(str, data))
        if len(bits) < 8:
            return None
        whole = range(0, len(bits) - 7, 8)
        try:
            return bytes(int(bits[at : at + 8], 2) for at in whole).decode()
        except ValueError:
            return None

    def can_deserialize(self, data: Any) -> bool:
        """Return whether bits are a text."""
        return bool(self.to_text(data))

    def find_boundary(self, data: str, at: int) -> int:
        """Return where the character behind the one that is being said begins."""
        return next_character(data, at)


class IdentitySerializer:
    """Symbols are characters; nothing is encoded."""

    SILENCE_TOKEN = " "  # noqa: S105

    def to_binary(self, message: str) -> str:
        """Return the text itself."""
        return message

    def to_text(self, data: Any) -> str | None:
        """Return the symbols themselves."""
        return "".join(map(str, data)) or None

    def can_deserialize(self, data: Any) -> bool:
        """Return whether there is anything."""
        return bool(data)

    def find_boundary(self, data: str, at: int) -> int:
        """Return the same place: every symbol is a character."""
        return at


class ScramblingSerializerWrapper:
    """Another serializer with a made-up word of equal length for every word.

    Args:
        serializer: The other serializer.
        readable: Whether vowels and consonants of a made-up word alternate.
        scrambler: The words; by default new ones, drawn with the global generator.
    """

    def __init__(self, serializer: Any, readable: bool = True, scrambler: Scrambler | None = None) -> None:
        self._serializer = serializer
        self.SILENCE_TOKEN = serializer.SILENCE_TOKEN
        self._scrambler = scrambler or Scrambler(random.Random(random.random()), readable)

    @property
    def word_mapping(self) -> dict[str, str]:
        """The words that were replaced so far, both ways."""
        return self._scrambler.partners

    def tokenize(self, message: str) -> list[tuple[str, str]]:
        """Return the words of a text, each with what stands behind it; all of them joined are the text."""
        return [(word, behind) for word, behind in re.findall(r"(\w*)(\W|$)", message) if word or behind]

    tokenise = tokenize

    def scramble(self, message: str) -> str:
        """Return a text with other words; the same function brings the real ones back."""
        return self._scrambler.encode(message)

    def to_binary(self, message: str) -> Any:
        """Return a text as symbols, with other words."""
        return self._serializer.to_binary(self.scramble(message))

    def to_text(self, data: Any) -> str | None:
        """Return symbols as a text with the real words; None until a word has ended."""
        text = self._serializer.to_text(data)
        if not text or re.search(r"\w$", text):
            return None
        return self.scramble(text)

    def can_deserialize(self, data: Any) -> bool:
        """Return whether symbols are a text whose last word has ended."""
        return bool(self.to_text(data))

    def find_boundary(self, data: str, at: int) -> int:
        """Return where the character behind the one that is being said begins."""
        boundary: int = self._serializer.find_boundary(data, at)
        return boundary
