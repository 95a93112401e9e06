"""The transitions of a life so far, counted within a cap of memory, and those of its last steps.

Where the cap is reached, inputs are sampled by their hash: half of the hashes are given up, with every transition that
starts at such an input. The kept inputs are complete, so they stand for the rest whatever the agent did.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Hashable
from hashlib import blake2b
from typing import Any

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.frames.encode import index_words, whole
from openfield.objectives.tables.codes import CodeBook
from openfield.objectives.tables.rows import Rows
from openfield.objectives.tables.table import Meta, Table, make_table
from openfield.objectives.tables.transitions import sum_rows
from openfield.objectives.tracking.inputs import Inputs
from openfield.record import action_key

FOLD = 1 << 15
"""Steps that wait before equal ones are added up."""
ROW_BYTES, STEP_BYTES = 32, 48
"""Memory of a distinct transition, and of a step that waits or is in the window; Python's numbers need more."""
KEY_BYTES = 150
"""Memory of an input beside its key: its number, its place in a dictionary and its flag."""
HELD = 0.75
"""The share of the cap at which inputs are given up: numbering the rest anew takes memory of its own."""
MAX_BITS = 40
"""Bits of the hash that may be given up."""
MIN_BYTES = 1 << 22
"""The smallest cap: what waits in `FOLD` steps takes a part of it."""
GONE = -1
"""In place of an input that is not kept."""


class Life:
    """All transitions of one agent. A slot is one of several environments that it lives in at the same time."""

    def __init__(self, inputs: Inputs, *, window: int = 10_000, max_bytes: int = 1 << 28) -> None:
        """Begin a life.

        Args:
            inputs: What turns observations into inputs.
            window: How many of the last transitions are held, so that they can be measured alone.
            max_bytes: The cap of memory for everything that is held.
        """
        if whole(window, "window") < 0:
            raise InvalidInput(f"The window is {window}; it must not be negative.")
        least = MIN_BYTES + 2 * window * STEP_BYTES
        if whole(max_bytes, "cap of memory") < least:
            raise InvalidInput(f"The cap of memory is {max_bytes:,} bytes; a window of {window:,} needs {least:,}.")
        self.inputs, self.window, self.max_bytes = inputs, window, max_bytes
        self.episodes = self.transitions = self.bits = 0
        self._key = inputs.key
        self._numbers: dict[Hashable, int] = {}
        self._kept: list[bool] = []
        self._key_bytes = 0
        self._at: dict[int, int] = {}
        self._obs: list[int] = []
        self._action: list[int] = []
        self._next: list[int] = []
        self._actions: dict[bytes, int] = {}
        self._parts: list[Rows] = []
        self._recent: deque[Rows] = deque()

    @property
    def sample(self) -> float:
        """The share of hashes that are kept: 1.0 until the cap was reached."""
        return 2.0**-self.bits

    @property
    def num_bytes(self) -> int:
        """About how much memory is used."""
        rows = sum(len(part.obs) for part in self._parts)
        steps = len(self._obs) + sum(len(part.obs) for part in self._recent)
        return self._key_bytes + rows * ROW_BYTES + steps * STEP_BYTES

    def begin(self, observation: Any, slot: int = 0) -> None:
        """Begin an episode with its first observation."""
        number = self._number(observation, needed=False)
        self.episodes += 1
        self._start_from(number, slot)

    def is_open(self, slot: int = 0) -> bool:
        """Return whether an episode has begun and not ended."""
        return slot in self._at

    def step(self, action: Any, observation: Any, over: bool, slot: int = 0) -> None:
        """Count a transition, from the last observation of the slot to this one.

        Args:
            action: The action that led here.
            observation: The next observation, also at the end of an episode.
            over: Whether the episode ended.
            slot: Which environment it is.
        """
        here = self._at[slot]
        taken = action if type(action) is int else self._action_number(action)
        number = self._number(observation, needed=here >= 0)
        self._obs.append(self._at[slot])  # not `here`: giving up inputs numbers them anew
        self._action.append(taken)
        self._next.append(number)
        self.transitions += 1
        if over:
            del self._at[slot]
        else:
            self._start_from(number, slot)
        if len(self._obs) >= FOLD:
            self._fold()
            self._keep_cap()

    def _start_from(self, number: int, slot: int) -> None:
        """Note the input that the next transition of a slot starts from, if it is kept."""
        self._at[slot] = number if number >= 0 and self._kept[number] else GONE

    def _number(self, observation: Any, *, needed: bool) -> int:
        """Return the number of an input. A new one gets the next, unless it is not kept and no transition needs it."""
        key = self._key(observation)
        try:
            number = self._numbers.get(key)
        except TypeError:
            raise InvalidInput(
                f"The code of an observation is a {type(key).__name__}, which is not hashable; "
                "return a number, a text, bytes or a tuple."
            ) from None
        if number is not None:
            return number if needed or self._kept[number] else GONE
        kept = not self.bits or self._is_kept(key)
        if not (kept or needed):
            return GONE
        if not self._numbers:
            self.inputs.payload(key)  # says at once if codes have no lasting form
        self._key_bytes += sys.getsizeof(key) + KEY_BYTES
        number = len(self._kept)
        self._numbers[key] = number
        self._kept.append(kept)
        if self._key_bytes > HELD * self.max_bytes:
            return self._keep_cap(number)
        return number

    def _is_kept(self, key: Any) -> bool:
        digest = blake2b(self.inputs.payload(key), digest_size=8).digest()
        return int.from_bytes(digest, "big") >> (64 - self.bits) == 0

    def _action_number(self, action: Any) -> int:
        """Return a whole number as it is, and the number of any other action in the order of their first use."""
        try:
            return action.__index__()  # type: ignore[no-any-return]
        except (AttributeError, TypeError):
            return self._actions.setdefault(action_key(action), len(self._actions))

    def _fold(self) -> None:
        """Add the steps that wait to the counts, and to the window."""
        if not self._obs:
            return
        obs, action, following = (np.array(column, np.int64) for column in (self._obs, self._action, self._next))
        self._obs, self._action, self._next = [], [], []
        steps = Rows(obs, action, following, np.ones(len(obs), np.int64))
        if self.window:
            self._recent.append(steps)
            while sum(len(part.obs) for part in self._recent) - len(self._recent[0].obs) >= self.window:
                self._recent.popleft()
        self._parts.append(sum_rows(_kept_rows(steps)))
        while len(self._parts) > 1 and 2 * len(self._parts[-1].obs) > len(self._parts[-2].obs):
            self._parts[-2:] = [_joined(self._parts[-2:])]

    def _keep_cap(self, number: int = GONE) -> int:
        """Give up inputs while memory is above the cap. Return the new number of an input."""
        if self.num_bytes <= HELD * self.max_bytes:
            return number
        self._fold()
        self._parts = [_joined(self._parts)]
        while self.num_bytes > HELD**2 * self.max_bytes and self.bits < MAX_BITS:
            self.bits += 1
            number = self._drop_inputs(number)
        return number

    def _drop_inputs(self, number: int) -> int:
        """Give up the inputs that are no longer kept, with their transitions, and number the rest anew."""
        self._kept = [kept and self._is_kept(key) for key, kept in zip(self._numbers, self._kept, strict=True)]
        kept = np.array([*self._kept, False])
        rows = self._parts[0]
        rows = Rows(*(column[kept[rows.obs]] for column in rows))
        used = np.zeros(len(kept), bool)
        used[rows.obs] = used[rows.next_obs] = True
        used[[*self._at.values(), number]] = True
        used[-1] = False  # where GONE points
        new = np.where(used, np.cumsum(used) - 1, GONE)
        self._parts = [rows._replace(obs=new[rows.obs], next_obs=new[rows.next_obs])]
        self._numbers = {key: int(new[old]) for key, old in self._numbers.items() if used[old]}
        self._kept = kept[used].tolist()
        self._key_bytes = sum(sys.getsizeof(key) + KEY_BYTES for key in self._numbers)
        self._at = {slot: int(new[old]) if kept[old] else GONE for slot, old in self._at.items()}
        for place, part in enumerate(self._recent):
            stays = kept[part.obs]
            obs, following = (np.where(stays, new[column], GONE) for column in (part.obs, part.next_obs))
            self._recent[place] = part._replace(obs=obs, next_obs=following)
        return int(new[number])

    def rows(self, last: int | None = None) -> tuple[Rows, int]:
        """Return the distinct transitions, of the whole life or of its last ones, and how many steps they are of.

        Raises:
            InvalidInput: More steps are asked for than the window has.
        """
        self._fold()
        if last is None:
            self._parts = [_joined(self._parts)] if self._parts else []
            return (self._parts[0] if self._parts else _EMPTY), self.transitions
        if not 1 <= whole(last, "window") <= self.window:
            raise InvalidInput(f"The last {last:,} transitions are asked for; the window has {self.window:,}.")
        recent = Rows(*(np.concatenate(columns)[-last:] for columns in zip(_EMPTY, *self._recent, strict=True)))
        return sum_rows(_kept_rows(recent)), len(recent.obs)

    def table(self, last: int | None = None, meta: Meta | None = None) -> Table:
        """Make the table of the life, or of its last transitions, with its code book.

        Inputs are numbered from 1 in the order they first appeared.
        """
        rows, _ = self.rows(last)
        if not len(rows.obs):
            raise InvalidInput("There are no transitions yet; a table needs one.")
        coded = self.inputs.codes(list(self._numbers))
        number, words = index_words(coded.words, 1)
        rows = sum_rows(rows._replace(obs=number[rows.obs], next_obs=number[rows.next_obs]))
        known = msgspec.structs.replace(
            meta or Meta(),
            thresholds=coded.thresholds,
            bins=None if coded.bins is None else coded.bins.tolist(),
            alignment="action_leads_to_next",
            episodes=self.episodes,
        )
        return msgspec.structs.replace(
            make_table([rows], meta=known, ordered=True),
            book=CodeBook(words, np.arange(1, len(words) + 1)),
            notes=(self.note,) if self.note else (),
        )

    @property
    def note(self) -> str:
        """A caution about the counts; empty while all inputs are kept."""
        if not self.bits:
            return ""
        return f"sampled by hash: 1 of {2**self.bits:,} inputs is kept, with all transitions from it"


_EMPTY = Rows(*(np.empty(0, np.int64) for _ in range(4)))


def _kept_rows(rows: Rows) -> Rows:
    stays = rows.obs >= 0
    return rows if stays.all() else Rows(*(column[stays] for column in rows))


def _joined(parts: list[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    return sum_rows(Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True))))
