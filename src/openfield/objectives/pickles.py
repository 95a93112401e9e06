"""A reader of published pickles that runs nothing: a few opcodes, five names, integers out.

First station of every table; `records` reads the long uniform stretches, the steps of `opcodes` what lies between.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from openfield.objectives.entries import Mapping, State, take_codes, take_rows
from openfield.objectives.forms import as_column
from openfield.objectives.old_records import read_old
from openfield.objectives.opcodes import STEPS, check_tuple, opcode_name
from openfield.objectives.records import Rows, Stretch, hits_border, read_records
from openfield.objectives.scalars import Refused, Scalars
from openfield.objectives.source import Source

FLUSH = 1 << 15
"""Rows gathered one by one before they are handed on as arrays."""
DEEPEST_STACK = 1 << 14
"""Eight times what any pickler puts between two SETITEMS."""
WORTH_CALLING = 4_000_000
"""Bytes from which compiled code is used if it is imported already: nobody waits for a compiler to refuse 1 MB."""
WORTH_COMPILING = 80_000_000
"""Bytes from which compiled code gains more than the 0.6 s it takes to import and load it."""
OLD_NUMPY = " NumPy numbers are read from protocols 3 to 5: write the table again with pickle.dump(table, file, 4)."
INT1, INT2, TUPLE3, MARK, SETITEM, SETITEMS, STOP = 0x4B, 0x4D, 0x87, 0x28, 0x73, 0x75, 0x2E
_ENDS = (SETITEM, SETITEMS)


class Codes(NamedTuple):
    """A stretch of a code book: image codes and the indices they were given."""

    codes: list[int]
    indices: list[int]


def read_pickle(path: Path) -> Iterator[Rows | Codes]:
    """Every entry of a pickled table, in the order of the file, in stretches of bounded size.

    Raises:
        Refused: The file is cut short, or holds something that no transition table holds.
    """
    with path.open("rb") as file:
        source = Source(file)
        machine = _Machine(source)
        try:
            yield from machine.run()
        except (struct.error, IndexError, ValueError, OverflowError) as error:
            reason = "ends in the middle" if source.beyond_end(machine.at) else f"is damaged ({error})"
            raise Refused(f"{path}: the pickle {reason} at byte {source.offset(machine.at)}.") from None
        except Refused as error:
            advice = OLD_NUMPY if machine.state.old_numpy else ""
            raise Refused(f"{path}: {error} (byte {source.offset(machine.at)}).{advice}") from None


def _choose_reader(source: Source) -> Callable[[Any, int, Scalars], Stretch | None]:
    """The compiled reader of entries where it is at hand or the file is large enough to wait for it."""
    at_hand = "numba" in sys.modules and source.size >= WORTH_CALLING
    if at_hand or (source.size >= WORTH_COMPILING and find_spec("numba") is not None):
        from openfield.objectives.compiled_records import read_stretch

        return read_stretch
    return read_records


class _Machine:
    """The stack machine of the pickle format, cut down to what a table needs."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.state = State()
        self.at = 0
        self._reader = _choose_reader(source)
        self._patience = 1
        self._wait = 0

    def run(self) -> Iterator[Rows | Codes]:
        """Everything up to STOP, checked to be a mapping or a pair of mappings."""
        while True:
            code = self._step_to_border()
            if code == STOP:
                break
            yield from self._hand_on(code)
        yield from self._flush()
        self._check_result()

    def _step_to_border(self) -> int:
        """Run up to the next mark, a good number of entries or the end; what is most common is done in place."""
        source, state, stack = self.source, self.state, self.state.stack
        data, safe, at, push, pop = source.data, source.safe, self.at, stack.append, stack.pop
        keys, counts, wait = state.keys, state.counts, self._wait
        try:
            while True:
                if at >= safe:
                    at = self._refill(at)
                    data, safe = source.data, source.safe
                code = data[at]
                if code == INT1:
                    push(data[at + 1])
                    at += 2
                elif code == INT2:
                    push(data[at + 1] | data[at + 2] << 8)
                    at += 3
                elif code == TUPLE3:
                    last, middle, first = pop(), pop(), pop()
                    whole = type(first) is type(middle) is type(last) is int
                    push((first, middle, last) if whole else check_tuple((first, middle, last)))
                    at += 1
                elif code == SETITEM and type(stack[-3]) is Mapping and stack[-3].kind == "table":
                    counts.append(pop())
                    keys.append(pop())
                    at += 1
                    if len(keys) >= FLUSH:
                        return code
                elif code == STOP:
                    return code
                else:
                    step = STEPS.get(code)
                    if step is None:
                        raise Refused(f"opcode {opcode_name(code)} has no place in a transition table")
                    at = step(state, data, at + 1)
                    if code == MARK:
                        wait -= 1
                        if wait < 0:
                            return code
                    elif code in _ENDS and len(keys) + len(state.codes) >= FLUSH:
                        return code
        finally:
            self.at, self._wait = at, wait

    def _refill(self, at: int) -> int:
        if len(self.state.stack) > DEEPEST_STACK:
            raise Refused("too many objects wait on the stack")
        return self.source.refill(at)

    def _hand_on(self, code: int) -> Iterator[Rows | Codes]:
        """Pass gathered rows on, and let the bulk reader run where the next entry begins."""
        if code == SETITEM and self.state.protocol:
            raise Refused(f"{FLUSH:,} entries are set one by one, which no writer of binary pickles does")
        if self.state.gathered >= FLUSH:
            yield from self._flush()
        if code == MARK and self._inside_table():
            yield from self._read_bulk()

    def _inside_table(self) -> bool:
        """The mark just pushed opens a batch of what is, or may become, a table."""
        stack = self.state.stack
        return len(stack) >= 2 and isinstance(stack[-2], Mapping) and stack[-2].kind in ("", "table")

    def _read_bulk(self) -> Iterator[Rows | Codes]:
        """Uniform entries as arrays; a reader that finds few is asked less and less often."""
        found, state, source = 0, self.state, self.source
        read = self._reader if state.protocol else read_old
        while True:
            self.at = source.refill(self.at)
            stretch = read(source.up_to_border, self.at, state.scalars)
            if stretch is None:
                if source.borders and hits_border(source.view, self.at, source.borders[0]):
                    source.pass_border()
                    continue
                break
            yield from self._flush()
            state.stack[-2].kind, state.empty = "table", 0
            self.at = stretch.end
            found += len(stretch.rows.obs)
            yield stretch.rows
        self._patience = 1 if found >= 512 else min(self._patience * 2, 1 << 20)
        self._wait = self._patience - 1

    def _flush(self) -> Iterator[Rows | Codes]:
        if self.state.keys:
            parts, counts = take_rows(self.state)
            obs, action, next_obs = (as_column(part) for part in parts)
            yield Rows(obs, action, next_obs, as_column(counts))
        if self.state.codes:
            yield Codes(*take_codes(self.state))

    def _check_result(self) -> None:
        source, state = self.source, self.state
        if source.refill(self.at + 1) < len(source.data):
            raise Refused("there are bytes after the end of the pickle")
        if len(state.stack) != 1:
            raise Refused("the pickle leaves more or less than one object")
        top = state.stack[0]
        pair = type(top) is tuple
        parts = top if pair else (top,)
        if len(parts) != 1 + pair or len(state.mappings) != len(parts):
            raise Refused("neither a mapping nor a pair of mappings")
        for part, mapping, kind in zip(parts, state.mappings, ("table", "book"), strict=False):
            if part is not mapping or part.kind not in ("", kind):
                raise Refused("not a mapping of (input, action, next input) to a count, with or without its code book")
