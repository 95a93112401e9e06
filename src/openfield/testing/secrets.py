"""Look for the truth in what an agent is shown.

Part of the conformance kit. It walks through everything an agent receives, leaf by leaf.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from openfield.core import Spec, Truth, Turn
from openfield.novelty import Novelty
from openfield.record import SMALL_ARRAY
from openfield.trial import Trial

TELLING = frozenset({"novel", "novelty", "novelties", "is_novel", "truth", "onset"})
"""Keys that say by their name what an agent must find out."""
MIN_WORD_LENGTH = 4
MIN_NUMBER = 10_000
"""Shorter words and smaller numbers occur by themselves."""
Leaf = tuple[str, Any, bool]
"""Where something is shown, what, and whether it is a key."""


def find_named(turns: Sequence[Turn], spec: Spec, trial: Trial, novelties: Iterable[Novelty[Any]]) -> Iterator[str]:
    """Yield everything shown that names a novelty, the trial, its seed, or a phase other than training and test."""
    known = set(words_of(spec))
    names = {name for novelty in novelties for name in (novelty.id, novelty.name)} - known
    secrets = {*names, trial.id, str(trial.seed)}
    for number, turn in enumerate(turns):
        if turn.phase not in ("training", "test"):
            yield f"turn {number} shows the phase '{turn.phase}'; only training and test may be shown"
        for path, leaf, is_key in chain(walk(turn.observation, "observation"), walk(turn.feedback, "feedback")):
            if is_key and leaf in TELLING:
                yield f"turn {number} shows a key '{leaf}' ({path})"
            if str(leaf) in secrets or (isinstance(leaf, str) and secrets & set(_words(leaf))):
                yield f"turn {number} shows '{leaf}' ({path})"


def find_detail(turn: Turn, truth: Truth, known: frozenset[str], shown: Iterable[str]) -> Iterator[str]:
    """Yield values of the truth's detail that the observation also shows, unless `shown` declares their keys."""
    hidden = {str(leaf) for leaf in _distinctive(truth.detail, frozenset(shown))} - known
    for path, leaf, is_key in walk(turn.observation, "observation"):
        if not is_key and hidden and (str(leaf) in hidden or (isinstance(leaf, str) and hidden & set(_words(leaf)))):
            yield f"{path} shows '{leaf}', which the truth's detail holds"


def words_of(spec: Spec) -> Iterator[str]:
    """Yield the texts of a spec, and each of their words."""
    for _, leaf, _ in walk(msgspec.to_builtins(spec), "spec"):
        if isinstance(leaf, str):
            yield leaf
            yield from _words(leaf)


def walk(value: Any, path: str) -> Iterator[Leaf]:
    """Yield all keys and leaves of a value. Large arrays are skipped."""
    parts = parts_of(value)
    for name, part in parts:
        is_key = not name.startswith("[")
        inner = f"{path}.{name}" if is_key else f"{path}{name}"
        if is_key:
            yield inner, name, True
        yield from walk(part, inner)
    if not parts and not _is_container(value):
        yield path, _plain(value), False


def parts_of(value: Any) -> list[tuple[str, Any]]:
    """Return the parts of a value: fields by name, items by `[number]`. A value without parts gives an empty list."""
    if isinstance(value, dict):
        return [(str(key), part) for key, part in value.items()]
    if isinstance(value, msgspec.Struct):
        return [(name, getattr(value, name)) for name in value.__struct_fields__]
    if is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, np.ndarray) and value.ndim > 0 and value.size <= SMALL_ARRAY:
        value = value.tolist()
    if isinstance(value, (list, tuple, set, frozenset)):
        return [(f"[{number}]", part) for number, part in enumerate(value)]
    return []


def _is_container(value: Any) -> bool:
    return isinstance(value, (dict, list, tuple, set, frozenset, msgspec.Struct)) or (
        isinstance(value, np.ndarray) and value.ndim > 0
    )


def _plain(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        return value.item()
    return bytes(value).decode(errors="replace") if isinstance(value, (bytes, bytearray)) else value


def _distinctive(detail: Any, shown: frozenset[str]) -> Iterator[str | int]:
    """Yield the values of a detail that would not occur elsewhere by chance."""
    if isinstance(detail, dict):
        detail = {key: value for key, value in detail.items() if key not in shown}
    for _, leaf, is_key in walk(detail, "detail"):
        long = isinstance(leaf, str) and len(leaf) >= MIN_WORD_LENGTH
        large = isinstance(leaf, int) and abs(leaf) >= MIN_NUMBER
        if not is_key and (long or large):
            yield leaf


def _words(text: str) -> list[str]:
    """Return the words of a text, and the pairs of words that a colon joins."""
    return re.findall(r"[\w-]+(?::[\w-]+)?", text) + re.findall(r"[\w-]+", text)
