"""Quote a conversation around its change: what was said and what was answered, symbol below symbol.

For domains in which an agent exchanges letters, and which so have no pictures.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from openfield.journal.reader import CellRecord, Run
from openfield.record import Step

LINE_LENGTH, MAX_LINES = 16, 6
"""Symbols in a line, which two of them leave room for on a phone, and how many lines there are."""
UNSEEN = "·"
"""Stands for a symbol that cannot be seen, and for no answer."""
Line = tuple[str, str]
"""What was said, and what was answered."""


def quote_change(run: Run, cell: CellRecord) -> tuple[list[Line], list[Line], int]:
    """Return the last lines before the change, the first ones after it, and the turn of the change.

    Args:
        run: The run file.
        cell: A cell in which the world changed.
    """
    before: deque[Line] = deque(maxlen=LINE_LENGTH * MAX_LINES)
    after: list[Line] = []
    turn = 0
    for said, answered, novel in _list_symbols(run.steps(cell.id, cell.attempt)):
        (after if novel else before).append((said, answered))
        turn += not novel
        if len(after) == LINE_LENGTH * MAX_LINES:
            break
    return _fold(list(before)), _fold(after), turn


def _list_symbols(steps: Iterable[Step]) -> Iterator[tuple[str, str, bool]]:
    """Yield each symbol that was said, what was answered, and whether the world had changed."""
    for step, following in itertools.pairwise(steps):
        if step.turn is not None and step.truth is not None:
            answer = None if following.reply is None else following.reply.action
            yield _show(step.turn.observation), _show(answer), step.truth.novel


def _show(code: Any) -> str:
    letter = chr(code) if isinstance(code, int) and 0 <= code < 256 else UNSEEN
    return letter if letter.isprintable() else UNSEEN


def _fold(symbols: Sequence[Line]) -> list[Line]:
    """Return symbols in lines."""
    lines = (symbols[first : first + LINE_LENGTH] for first in range(0, len(symbols), LINE_LENGTH))
    return [("".join(said for said, _ in line), "".join(answered for _, answered in line)) for line in lines]
