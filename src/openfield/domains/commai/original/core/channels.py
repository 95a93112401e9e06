"""`core.channels` and `core.byte_channels` of the original: symbols heard, and symbols still to be said.

In bit mode symbols are bits, which a serializer joins to characters, and a new message replaces the unsaid rest. In
byte mode symbols are characters, and a new message is said behind the rest.
"""

from __future__ import annotations

from typing import Any

from openfield.domains.commai.original.core.events import Observable


class InputChannel:
    """Joins the bits that are heard to a text.

    Args:
        serializer: Turns bits into text.
    """

    def __init__(self, serializer: Any) -> None:
        self.serializer = serializer
        self.message_updated, self.sequence_updated = Observable(), Observable()
        self._text = self._bits = self._tail = ""

    def consume(self, symbol: Any) -> None:
        """Take a symbol."""
        bit = str(symbol)
        self._bits += bit
        self._tail += bit
        self.sequence_updated(self._bits)
        for start in range(0, len(self._tail), 8):  # bytes that belong to no character are skipped
            text = self.serializer.to_text(self._tail[start:])
            if text:
                self._tail = ""
                self._text += text
                self.message_updated(self._text)
                return

    def consume_bit(self, symbol: Any) -> None:
        """Take a symbol: the ancestor's name."""
        self.consume(symbol)

    def clear(self) -> None:
        """Forget everything."""
        self._text = self._bits = self._tail = ""

    def get_text(self) -> str:
        """Return the text so far."""
        return self._text

    def get_binary(self) -> str:
        """Return all symbols so far."""
        return self._bits

    def get_undeserialized(self) -> str:
        """Return the symbols that are not text yet."""
        return self._tail

    def set_deserialized_buffer(self, text: str) -> None:
        """Replace the text so far, without an event."""
        self._text = text


class OutputChannel:
    """The bits that are still to be said.

    Args:
        serializer: Turns text into bits.
    """

    round1 = False
    """Whether the character that is being said is found by trial, as in Round 1, and may be cut."""

    def __init__(self, serializer: Any) -> None:
        self.serializer = serializer
        self.sequence_updated = Observable()
        self._bits, self._at = "", 0

    def set_message(self, message: str) -> None:
        """Say a text instead of the unsaid rest. A character that is being said is finished."""
        said = self._bits[: self._keep()]
        self._bits = said + self.serializer.to_binary(message)
        if self._at == len(self._bits):
            self._bits, self._at = "", 0
        self._tell()

    def add_message(self, message: str) -> None:
        """Say a text behind the unsaid rest."""
        self._bits += self.serializer.to_binary(message)
        self._tell()

    def consume(self) -> str:
        """Return the next symbol, and say it."""
        symbol = self._bits[self._at]
        self._at += 1
        if self._at == len(self._bits):
            self._bits, self._at = "", 0
        self._tell()
        return symbol

    def consume_bit(self) -> str:
        """Return the next symbol, and say it: the ancestor's name."""
        return self.consume()

    def clear(self) -> None:
        """Leave everything unsaid."""
        self._bits, self._at = "", 0
        self._tell()

    def is_empty(self) -> bool:
        """Return whether nothing is left to say."""
        return not self._bits

    def is_silent(self) -> bool:
        """Return whether only spaces are left to say."""
        unsaid = self._bits[self._at :]
        space: str = self.serializer.to_binary(self.serializer.SILENCE_TOKEN)
        return (space * (len(unsaid) // len(space) + 1)).endswith(unsaid)

    @property
    def unsaid(self) -> str:
        """The symbols that are still to be said."""
        return self._bits[self._at :]

    def _keep(self) -> int:
        """Return where the character that is being said ends."""
        find = getattr(self.serializer, "find_boundary", None)
        if find is not None and not self.round1:
            boundary: int = find(self._bits, self._at)
            return boundary
        return next((at for at in range(self._at, len(self._bits)) if self._decodes(at)), len(self._bits))

    def _decodes(self, at: int) -> bool:
        rest = self._bits[at:]
        return len(rest) >= 8 and any(self.serializer.can_deserialize(rest[skip:]) for skip in range(0, len(rest), 8))

    def _tell(self) -> None:
        self.sequence_updated(self.unsaid)


class ByteInputChannel:
    """The characters that were heard. With a scrambling serializer, words are heard when they end."""

    def __init__(self, serializer: Any) -> None:
        self.serializer = serializer
        self.message_updated, self.sequence_updated = Observable(), Observable()
        self._text = self._tail = ""

    def consume(self, symbol: Any) -> None:
        """Take a character."""
        scramble = getattr(self.serializer, "scramble", None)
        if scramble is None:
            self._text += symbol
        else:
            self._tail += symbol
            if symbol.isalnum() or symbol == "_":
                return
            self._text += scramble(self._tail)
            self._tail = ""
        self.message_updated(self._text)
        self.sequence_updated(self._text)

    def consume_bit(self, symbol: Any) -> None:
        """Take a character: the ancestor's name."""
        self.consume(symbol)

    def clear(self) -> None:
        """Forget everything."""
        self._text = self._tail = ""

    def get_text(self) -> str:
        """Return the text so far."""
        return self._text

    def get_binary(self) -> str:
        """Return all symbols so far, which are the text."""
        return self._text

    def get_undeserialized(self) -> str:
        """Return the symbols that are not text yet."""
        return self._tail

    def set_deserialized_buffer(self, text: str) -> None:
        """Replace the text so far, without an event."""
        self._text = text


class ByteOutputChannel:
    """The characters that are still to be said."""

    round1 = False
    """Has no meaning here: a character is one symbol."""

    def __init__(self, serializer: Any) -> None:
        self.serializer = serializer
        self.sequence_updated = Observable()
        self._text, self._at = "", 0

    def set_message(self, message: str) -> None:
        """Say a text behind the unsaid rest."""
        scramble = getattr(self.serializer, "scramble", None)
        self._text = self._text[self._at :] + (message if scramble is None else scramble(message))
        self._at = 0
        self.sequence_updated(self._text)

    def add_message(self, message: str) -> None:
        """Say a text behind the unsaid rest: in byte mode there is no other way."""
        self.set_message(message)

    def consume(self) -> str:
        """Return the next character, and say it."""
        symbol = self._text[self._at]
        self._at += 1
        if self._at == len(self._text):
            self._text, self._at = "", 0
        self.sequence_updated(self.unsaid)
        return symbol

    def consume_bit(self) -> str:
        """Return the next character, and say it: the ancestor's name."""
        return self.consume()

    def clear(self) -> None:
        """Leave everything unsaid."""
        self._text, self._at = "", 0
        self.sequence_updated("")

    def is_empty(self) -> bool:
        """Return whether nothing is left to say."""
        return not self._text

    def is_silent(self) -> bool:
        """Return whether only spaces are left to say."""
        return not self._text[self._at :].strip(" ")

    @property
    def unsaid(self) -> str:
        """The characters that are still to be said."""
        return self._text[self._at :]
