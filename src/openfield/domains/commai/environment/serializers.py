"""How text becomes symbols: as it is, as UTF-8 bits, or with every word replaced by a made-up one.

The environment encodes what the teacher says and decodes what the learner said; tasks only ever see plain text.
"""

from __future__ import annotations

import random
import re
import string
from typing import Protocol

from openfield.core import Spec
from openfield.domains.commai.settings import CommaiSettings, Scramble
from openfield.spaces import Discrete

SPACE_BITS = "00100000"
_WORD = re.compile(r"\w+")
_VOWELS, _CONSONANTS = "aeiou", "bcdfghjklmnpqrstvwxyz"
_LETTERS = _VOWELS + _CONSONANTS
_TRIES = 200


class Serializer(Protocol):
    """Changes the words between teacher and learner."""

    def encode(self, text: str) -> str:
        """The teacher's text as the learner gets it."""
        ...

    def decode(self, text: str) -> str:
        """The learner's text as the teacher understands it."""
        ...


class Scrambler:
    """Swaps every alphabetic word for a made-up one of equal length, the same one whenever it occurs.

    Words come in pairs, so that encoding and decoding are the same bijection: saying the real word yields its
    made-up one. Case is kept letter by letter; digits, punctuation and spaces pass.
    """

    def __init__(self, rng: random.Random, readable: bool = True) -> None:
        self._rng = rng
        self._readable = readable
        self._partner: dict[str, str] = {}

    def encode(self, text: str) -> str:
        """The text with its words swapped."""
        return _WORD.sub(self._swap, text)

    decode = encode

    def _swap(self, match: re.Match[str]) -> str:
        word = match[0]
        if not (word.isascii() and word.isalpha()):
            return word
        partner = self._partner.get(word.lower()) or self._pair(word.lower())
        return "".join(new.upper() if old.isupper() else new for old, new in zip(word, partner, strict=True))

    def _pair(self, word: str) -> str:
        partner = self._invent(len(word), word)
        self._partner[word] = partner
        self._partner[partner] = word
        return partner

    def _invent(self, length: int, word: str) -> str:
        """A word that has no partner yet; short lengths run out, and then any free spelling will do, even its own."""
        for attempt in range(_TRIES):
            invented = self._spell(length, self._readable and attempt < _TRIES // 2)
            if invented not in self._partner and invented != word:
                return invented
        return next((letter for letter in _LETTERS if length == 1 and letter not in self._partner), word)

    def _spell(self, length: int, readable: bool) -> str:
        pick = self._rng.choice
        if not readable:
            return "".join(pick(_LETTERS) for _ in range(length))
        first = self._rng.randrange(2)
        return "".join(pick((_VOWELS, _CONSONANTS)[(first + index) % 2]) for index in range(length))


def make_serializer(settings: CommaiSettings, seed: int) -> Serializer | None:
    """The serializer these settings ask for; a scrambler has a generator of its own, so tasks draw the same."""
    kind: Scramble = settings.scramble
    if not kind:
        return None
    return Scrambler(random.Random(f"scramble {seed}"), readable=kind == "readable")


def speaks_bits(spec: Spec) -> bool:
    """Whether the symbols of a trial are bits, not bytes."""
    return isinstance(spec.actions, Discrete) and spec.actions.n == 2


def to_bits(text: str) -> str:
    """The text as the characters 0 and 1: UTF-8, eight per byte, most significant first."""
    return "".join(f"{byte:08b}" for byte in text.encode())


class BitReader:
    """Puts bits together to characters; one that takes several bytes waits for its last."""

    def __init__(self) -> None:
        self._bits = ""
        self._bytes = b""

    def clear(self) -> None:
        """Forgets an unfinished character."""
        self._bits, self._bytes = "", b""

    def feed(self, bit: str) -> str | None:
        """Takes a bit; gives the character it completes, if any."""
        self._bits += bit
        if len(self._bits) < 8:
            return None
        self._bytes = self._bytes[-3:] + bytes([int(self._bits, 2)])
        self._bits = ""
        return self._decode()

    def _decode(self) -> str | None:
        """Skips leading bytes that belong to no character."""
        for start in range(len(self._bytes)):
            try:
                text = self._bytes[start:].decode()
            except UnicodeDecodeError:
                continue
            self._bytes = b""
            return text
        return None


def next_character(bits: str, at: int) -> int:
    """Where the next character starts at or after a bit: behind the one that has been sent in part."""
    start = -(-at // 8) * 8
    while bits.startswith("10", start):  # a continuation byte of UTF-8
        start += 8
    return start


def strip_spaces(bits: str) -> int:
    """How many bits remain when the encoded spaces at the end are left out."""
    end = len(bits)
    while end and bits.startswith(SPACE_BITS, end - 8):
        end -= 8
    return end


_PLAIN = string.ascii_letters + string.digits
_FOREIGN = "".join(map(chr, range(0xC0, 0xC0 + len(_PLAIN))))
"""As many bytes of the upper half, in which the original never says anything."""


def make_byte_table(settings: CommaiSettings) -> dict[int, int]:
    """Which byte stands for which; those that stand for themselves are left out."""
    table: dict[int, int] = {}
    if settings.alphabet == "shifted":
        for letters in (string.ascii_lowercase, string.ascii_uppercase, string.digits):
            half = len(letters) // 2
            table |= _swap(letters[:half], letters[half:])
    elif settings.alphabet == "foreign":
        table |= _swap(_PLAIN, _FOREIGN)
    if settings.separators:
        table |= _swap(".;:", "|~^")
    return table


def _swap(first: str, second: str) -> dict[int, int]:
    return {ord(a): ord(b) for a, b in zip(first + second, second + first, strict=True)}
