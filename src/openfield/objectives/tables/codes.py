"""Image codes: integers of 128 bits and more, stored as rows of 64-bit words so that millions can be sorted and joined.

Made by `frames`, stored with a table as its code book, compared by `measures.similarity`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.tables.histograms import Array

WORD = 64


class CodeBook(msgspec.Struct, frozen=True, eq=False):
    """The index of each image code. Index 0 may have many codes."""

    words: Array
    """(K, W) of uint64, the lowest word first."""
    indices: Array
    """(K,) of int64."""

    @property
    def codes(self) -> list[int]:
        """The codes as integers."""
        return integers_of(self.words)


def make_book(codes: Sequence[int] | Array, indices: Iterable[int], name: str = "code book") -> CodeBook:
    """Make a code book from integers.

    Raises:
        InvalidInput: A code is negative, or an index is beyond 64 bits.
    """
    try:
        return CodeBook(to_words(codes), np.array(list(indices), np.int64))
    except OverflowError:
        raise InvalidInput(f"{name}: an index of the code book is beyond 64 bits.") from None
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from None


def check_codes(book: CodeBook, name: str) -> None:
    """Check that every code occurs once.

    Raises:
        InvalidInput: A code occurs twice; the message names it.
    """
    ranks, size = rank(book.words)
    if size < len(ranks):
        again = int(np.argmax(np.bincount(ranks) > 1))
        code = integers_of(book.words[ranks == again][:1])[0]
        raise InvalidInput(f"{name}: code {code} occurs more than once in the code book.")


def to_words(codes: Sequence[int] | Array) -> Array:
    """Convert integers to rows of 64-bit words, at least two.

    Raises:
        InvalidInput: A code is negative.
    """
    if len(codes) and min(codes) < 0:
        raise InvalidInput(f"an image code is {min(codes)}; codes are not negative.")
    if isinstance(codes, np.ndarray) and codes.dtype != object:
        words = np.zeros((len(codes), 2), np.uint64)
        words[:, 0] = codes
        return words
    needed = -(-max((code.bit_length() for code in codes), default=0) // WORD)
    size = 8 * max(2, needed)
    raw = b"".join([code.to_bytes(size, "little") for code in codes])
    return np.frombuffer(raw, "<u8").reshape(len(codes), size // 8)


def integers_of(words: Array) -> list[int]:
    """Convert rows of words to integers."""
    if words.shape[1] == 2:
        low, high = words[:, 0].tolist(), words[:, 1].tolist()
        return [a | b << WORD for a, b in zip(low, high, strict=True)]
    size = 8 * words.shape[1]
    raw = np.ascontiguousarray(words, "<u8").tobytes()
    return [int.from_bytes(raw[at : at + size], "little") for at in range(0, len(raw), size)]


def as_bytes(words: Array) -> Array:
    """Return codes as bytes objects of one width, the most significant first, so that they sort as numbers."""
    raw, size = np.ascontiguousarray(words[:, ::-1].astype(">u8")).tobytes(), 8 * words.shape[1]
    return np.array([raw[at : at + size] for at in range(0, len(raw), size)], object)


def same_width(first: Array, second: Array) -> tuple[Array, Array]:
    """Widen the narrower of two arrays, so that both have the same number of words."""
    width = max(first.shape[1], second.shape[1])
    return _widened(first, width), _widened(second, width)


def rank(words: Array) -> tuple[Array, int]:
    """Rank codes from 0; equal codes get equal ranks. Return also the number of distinct codes."""
    order = np.lexsort(words.T)
    ordered = words[order]
    new = np.empty(len(words), bool)
    new[:1] = True
    np.any(ordered[1:] != ordered[:-1], axis=1, out=new[1:])
    ranks = np.empty(len(words), np.int64)
    ranks[order] = np.cumsum(new) - 1
    return ranks, int(new.sum())


def _widened(words: Array, width: int) -> Array:
    missing = width - words.shape[1]
    return np.pad(words, ((0, 0), (0, missing))) if missing else words
