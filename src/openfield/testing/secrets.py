"""Looks for the truth in what an agent is shown.

Part of the conformance kit: it walks everything an agent receives, leaf by leaf.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import msgspec
import numpy as np

from openfield.core import Spec, Truth, Turn
from openfield.novelty import Novelty
from openfield.record import SMALL_ARRAY
from openfield.trial import Trial

TELLING = frozenset({"novel", "novelty", "novelties", "is_novel", "truth", "onset"})
"""Keys that say by their name what an agent must find out."""
LEAST_TURNS = 5
"""On each side of the onset, before a value that follows the truth is more than chance."""
SHORTEST_WORD = 4
LEAST_NUMBER = 10_000
"""Shorter words and smaller numbers occur by themselves."""
Leaf = tuple[str, Any, bool]
"""Where something is shown, what, and whether it is a key."""


def find_named(turns: Sequence[Turn], spec: Spec, trial: Trial, novelties: Iterable[Novelty[Any]]) -> Iterator[str]:
    """Everything shown that names a novelty, the trial, its seed, or a phase other than training and test."""
    known = set(words_of(spec))
    names = {name for novelty in novelties for name in (novelty.id, novelty.name)} - known
    secrets = {*names, trial.id, str(trial.seed)}
    for number, turn in enumerate(turns):
        if turn.phase not in ("training", "test"):
            yield f"turn {number} shows the phase '{turn.phase}'; only training and test may be shown"
        for path, leaf, is_key in leaves_of_turn(turn):
            if is_key and leaf in TELLING:
                yield f"turn {number} shows a key '{leaf}' ({path})"
            if str(leaf) in secrets or (isinstance(leaf, str) and secrets & set(_words(leaf))):
                yield f"turn {number} shows '{leaf}' ({path})"


def find_detail(turn: Turn, truth: Truth, known: frozenset[str], shown: Iterable[str]) -> Iterator[str]:
    """Values of the truth's detail that the observation shows as well, unless their keys are declared as shown."""
    hidden = {str(leaf) for leaf in _distinctive(truth.detail, frozenset(shown))} - known
    for path, leaf, is_key in walk(turn.observation, "observation"):
        if not is_key and hidden and (str(leaf) in hidden or (isinstance(leaf, str) and hidden & set(_words(leaf)))):
            yield f"{path} shows '{leaf}', which the truth's detail holds"


def find_mirrors(turns: Sequence[Turn], truths: Sequence[Truth]) -> set[str]:
    """The places where a value is 1 exactly when the world is novel."""
    sides = [truth.novel for truth in truths]
    if min(sides.count(True), sides.count(False)) < LEAST_TURNS:
        return set()
    agreed: dict[str, set[bool]] = {}
    refuted: set[str] = set()
    for turn, truth in zip(turns, truths, strict=True):
        for path, leaf, is_key in leaves_of_turn(turn):
            if is_key or not isinstance(leaf, (bool, int, float)) or leaf != truth.novel:
                refuted.add(path)
            else:
                agreed.setdefault(path, set()).add(truth.novel)
    return {path for path, seen in agreed.items() if len(seen) == 2} - refuted


def words_of(spec: Spec) -> Iterator[str]:
    """The vocabulary a domain declares: what its spec says, words of it included."""
    for _, leaf, _ in walk(msgspec.to_builtins(spec), "spec"):
        if isinstance(leaf, str):
            yield leaf
            yield from _words(leaf)


def leaves_of_turn(turn: Turn) -> Iterator[Leaf]:
    """The leaves of all that a world fills in freely."""
    yield from walk(turn.observation, "observation")
    yield from walk(turn.feedback, "feedback")


def walk(value: Any, path: str) -> Iterator[Leaf]:
    """All leaves and keys of a value. Large arrays hold no words."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield f"{path}.{key}", key, True
            yield from walk(part, f"{path}.{key}")
    elif isinstance(value, (list, tuple, set, frozenset)):
        for number, part in enumerate(value):
            yield from walk(part, f"{path}[{number}]")
    elif isinstance(value, msgspec.Struct):
        yield from walk({name: getattr(value, name) for name in value.__struct_fields__}, path)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from walk({field.name: getattr(value, field.name) for field in fields(value)}, path)
    elif isinstance(value, np.ndarray):
        if value.size <= SMALL_ARRAY:
            yield from walk(value.tolist(), path)
    elif isinstance(value, np.generic):
        yield path, value.item(), False
    elif isinstance(value, (bytes, bytearray)):
        yield path, bytes(value).decode(errors="replace"), False
    else:
        yield path, value, False


def _distinctive(detail: Any, shown: frozenset[str]) -> Iterator[str | int]:
    """What in a detail would not occur by itself elsewhere."""
    if isinstance(detail, dict):
        detail = {key: value for key, value in detail.items() if key not in shown}
    for _, leaf, is_key in walk(detail, "detail"):
        if is_key or isinstance(leaf, bool):
            continue
        if (isinstance(leaf, str) and len(leaf) >= SHORTEST_WORD) or (
            isinstance(leaf, int) and abs(leaf) >= LEAST_NUMBER
        ):
            yield leaf


def _words(text: str) -> list[str]:
    """The words of a text, each also together with what a colon joins to it."""
    return re.findall(r"[\w-]+(?::[\w-]+)?", text) + re.findall(r"[\w-]+", text)
