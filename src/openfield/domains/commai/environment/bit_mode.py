"""The environment in bit mode: the same teacher, a bit a step.

`curriculum.py` makes one if the settings ask for it; the older sets were written for it.
"""

from __future__ import annotations

from typing import Any

from openfield.domains.commai.environment.loop import Environment
from openfield.domains.commai.environment.serializers import (
    SPACE_BITS,
    BitReader,
    next_character,
    strip_spaces,
    to_bits,
)


class BitEnvironment(Environment):
    """The same teacher in bit mode: eight steps carry a byte of UTF-8, and all limits count bits.

    `alphabet` translates characters on their way out and in; it must be its own inverse.
    """

    __slots__ = ("_reader", "alphabet")
    symbols = "'0' or '1'"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.alphabet: dict[int, int] = {}
        self._reader = BitReader()

    def next(self, heard: Any) -> tuple[str, int]:
        """Takes the learner's bit (None: nothing heard), gives the teacher's and the reward for what was heard."""
        character = None if heard is None else self._reader.feed(self._bit(heard))
        return super().next(character if character is None else character.translate(self.alphabet))

    @property
    def unsaid(self) -> int:
        """How many characters are still to be begun before nothing but spaces remains."""
        return max(0, (self.spoken - self.at) // 8)

    def _bit(self, heard: object) -> str:
        bit = str(heard)
        if bit not in ("0", "1"):
            super()._admit(heard)
        return bit

    def _admit(self, heard: object) -> None:
        """Lets every character pass that bits can spell."""

    def _switch(self) -> None:
        self._reader.clear()
        super()._switch()

    def say(self, text: str, priority: int = 1) -> None:
        """Replaces what is unsaid except for a character sent in part, unless that is more important."""
        if not text or (self.at < self.spoken and priority < self._priority):
            return
        self._priority = priority
        if self.serializer is not None:
            text = self.serializer.encode(text)
        self.text = self.text[: next_character(self.text, self.at)] + to_bits(text.translate(self.alphabet))
        self._end, self.spoken = len(self.text), strip_spaces(self.text)

    def _pause(self) -> str:
        """Begins to say a space, which takes eight bits."""
        self._due -= self.at
        self.text, self.at, self._end, self.spoken = SPACE_BITS, 1, len(SPACE_BITS), 0
        return self.text[0]
