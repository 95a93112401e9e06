"""From text to symbols and back: made-up words, UTF-8 bits, and other bytes for the same characters.

The environment encodes what the teacher says and decodes what the learner said, so tasks see plain text only. The
byte tables of the alphabet novelties are applied by the world, between the environment and the learner.
"""

from __future__ import annotations

import random
import re
import string

from openfield.core import Spec
from openfield.domains.commai.settings import CommaiSettings
from openfield.spaces import Discrete

SPACE_BITS = "00100000"
_WORD = re.compile(r"\w+")
_VOWELS, _CONSONANTS = "aeiou", "bcdfghjklmnpqrstvwxyz"
_LETTERS = _VOWELS + _CONSONANTS
_TRIES = 200


class Scrambler:
    """Swaps every alphabetic word for a made-up one of equal length, always the same one.

    The environment encodes the teacher's text with it and decodes the learner's. Words come in pairs, so both are one
    bijection: saying the real word yields its made-up one. Case is kept letter by letter; digits, punctuation and
    spaces stay.
    """

    def __init__(self, rng: random.Random, readable: bool = True) -> None:
        self._rng = rng
        self._readable = readable
        self.partners: dict[str, str] = {}

    def encode(self, text: str) -> str:
        """Return the text with its words swapped."""
        return _WORD.sub(self._swap, text)

    decode = encode

    def _swap(self, match: re.Match[str]) -> str:
        word = match[0]
        if not (word.isascii() and word.isalpha()):
            return word
        partner = self.partners.get(word.lower()) or self._pair(word.lower())
        return "".join(new.upper() if old.isupper() else new for old, new in zip(word, partner, strict=True))

    def _pair(self, word: str) -> str:
        partner = self._invent(len(word), word)
        self.partners[word] = partner
        self.partners[partner] = word
        return partner

    def _invent(self, length: int, word: str) -> str:
        """Return a word without a partner; if none is found, any free letter or the word itself."""
        for attempt in range(_TRIES):
            invented = self._spell(length, self._readable and attempt < _TRIES // 2)
            if invented not in self.partners and invented != word:
                return invented
        return next((letter for letter in _LETTERS if length == 1 and letter not in self.partners), word)

    def _spell(self, length: int, readable: bool) -> str:
        pick = self._rng.choice
        if not readable:
            return "".join(pick(_LETTERS) for _ in range(length))
        first = self._rng.randrange(2)
        return "".join(pick((_VOWELS, _CONSONANTS)[(first + index) % 2]) for index in range(length))


def make_serializer(settings: CommaiSettings, seed: int) -> Scrambler | None:
    """Make the serializer of these settings. It has its own generator, so tasks draw the same with and without it."""
    if not settings.scramble:
        return None
    return Scrambler(random.Random(f"scramble {seed}"), readable=settings.scramble == "readable")


def speaks_bits(spec: Spec) -> bool:
    """Return whether the symbols of a trial are bits, not bytes."""
    return isinstance(spec.actions, Discrete) and spec.actions.n == 2


def to_bits(text: str) -> str:
    """Return the text as characters 0 and 1: UTF-8, eight bits per byte, most significant first."""
    return "".join(f"{byte:08b}" for byte in text.encode())


class BitReader:
    """Joins bits to characters. A character of several bytes is complete with its last one."""

    def __init__(self) -> None:
        self._bits = ""
        self._bytes = b""

    def clear(self) -> None:
        """Forget an unfinished character."""
        self._bits, self._bytes = "", b""

    def feed(self, bit: str) -> str | None:
        """Take a bit; return the character it completes, or None."""
        self._bits += bit
        if len(self._bits) < 8:
            return None
        self._bytes = self._bytes[-3:] + bytes([int(self._bits, 2)])
        self._bits = ""
        return self._decode()

    def _decode(self) -> str | None:
        """Skip leading bytes that belong to no character."""
        for start in range(len(self._bytes)):
            try:
                text = self._bytes[start:].decode()
            except UnicodeDecodeError:
                continue
            self._bytes = b""
            return text
        return None


def next_character(bits: str, at: int) -> int:
    """Return where the next character starts: behind the one that was sent in part, if any."""
    start = -(-at // 8) * 8
    while bits.startswith("10", start):  # a continuation byte of UTF-8
        start += 8
    return start


def strip_spaces(bits: str) -> int:
    """Return how many bits remain without the encoded spaces at the end."""
    end = len(bits)
    while end and bits.startswith(SPACE_BITS, end - 8):
        end -= 8
    return end


_PLAIN = string.ascii_letters + string.digits
_FOREIGN = "".join(map(chr, range(0xC0, 0xC0 + len(_PLAIN))))
"""As many bytes of the upper half, which the original never uses."""


def make_byte_table(settings: CommaiSettings) -> dict[int, int]:
    """Return which byte stands for which; bytes that stand for themselves are left out."""
    table: dict[int, int] = {}
    if settings.alphabet == "shifted":
        for letters in (string.ascii_lowercase, string.ascii_uppercase, string.digits):
            half = len(letters) // 2
            table |= _swap(*_pick_pairs(letters[:half], letters[half:], settings.alphabet_share))
    elif settings.alphabet == "foreign":
        table |= _swap(*_pick_pairs(_PLAIN, _FOREIGN, settings.alphabet_share))
    if settings.separators:
        table |= _swap(".;:", "|~^")
    return table


def _pick_pairs(first: str, second: str, share: float) -> tuple[str, str]:
    """Return a share of the pairs of two texts. A larger share has all pairs of a smaller one."""
    order = random.Random("alphabet").sample(range(len(first)), len(first))[: round(share * len(first))]
    return "".join(first[at] for at in order), "".join(second[at] for at in order)


def _swap(first: str, second: str) -> dict[int, int]:
    return {ord(a): ord(b) for a, b in zip(first + second, second + first, strict=True)}
