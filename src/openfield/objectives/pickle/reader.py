"""A reader of published pickles that runs nothing: a few opcodes, five names, integers out.

First station of every table; `records` reads the long uniform stretches, the steps of `opcodes` what lies between.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

from openfield.objectives.pickle.bulk_reader import (
    INT1,
    INT2,
    MARK,
    PUT1,
    PUT4,
    PUT_NEXT,
    SETITEMS,
    TUPLE3,
    Codes,
    Rows,
    Stretch,
    read_marked,
    read_records,
)
from openfield.objectives.pickle.code_book_reader import read_codes
from openfield.objectives.pickle.number_forms import Bytes, as_column
from openfield.objectives.pickle.opcodes import OLD_STEPS, STEPS, TEXT_STEPS, check_tuple, opcode_name, set_items
from openfield.objectives.pickle.scalars import Refused, Scalars
from openfield.objectives.pickle.source import BLOCK, Source, hits_border
from openfield.objectives.pickle.state import Mapping, State, take_codes, take_rows
from openfield.objectives.pickle.template_reader import TemplateReader
from openfield.objectives.pickle.text_reader import is_text, read_text, read_text_codes

FLUSH = 1 << 15
"""Rows gathered one by one before they are handed on as arrays."""
DEEPEST_STACK = 1 << 12
"""Twice what any pickler puts between two SETITEMS."""
MANY, FEW = 512, 16
"""Entries that are worth the 0.2 ms of reading in bulk, and the 10 µs of trying a pattern."""
LEAST_WINDOW, NARROW = 1 << 13, 1 << 17
"""Bytes that are looked at in bulk at least, and at most by readers that make more of them than templates do."""
LONGEST_ENTRY = 128
"""Steps of one entry at most: four NumPy numbers of different kinds with all names spelled out."""
OLD_NUMPY = " NumPy numbers are read from protocols 3 to 5: write the table again with pickle.dump(table, file, 4)."
SETITEM, STOP = 0x73, 0x2E
PROTOCOL = b"\x80"
_ENDS = (SETITEM, SETITEMS)
_PUTS = (PUT1, PUT4, PUT_NEXT)

Reader = Callable[[Any, int, Scalars], Stretch | None]


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
        finally:
            machine.state.scalars.close()


def _unknown(code: int) -> Refused:
    return Refused(f"opcode {opcode_name(code)} has no place in a transition table")


def _is_entry(key: Any, value: Any, kind: str) -> bool:
    """Whether both are complete, so that nothing that comes after them can be part of them."""
    return type(key) is (tuple if kind == "table" else int) and type(value) in (int, float)


class _Machine:
    """The stack machine of the pickle format, cut down to what a table needs."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.state = State()
        self.at = 0
        self._text = is_text(source.start)
        self._later = source.start[:1] == PROTOCOL
        self._steps = TEXT_STEPS if self._text else STEPS if self._later else OLD_STEPS
        self._templates = TemplateReader()
        self._window = NARROW
        self._patience = 1
        self._wait = 0

    def run(self) -> Iterator[Rows | Codes]:
        """Everything up to STOP, checked to be a mapping or a pair of mappings."""
        while True:
            code = self._step_text() if self._text else self._step_binary()
            if code == STOP:
                break
            if self.state.gathered >= FLUSH:
                yield from self._flush()
            if (mapping := self._mapping_at(code)) is not None:
                yield from self._read_bulk(mapping)
        yield from self._flush()
        self._check_result()
        if [mapping.kind for mapping in self.state.mappings[1:]] == [""]:
            yield Codes(as_column([]), as_column([]))

    def _step_text(self) -> int:
        """Run up to where entries may begin, a good number of them or the end, in a pickle of protocol 0."""
        source, state = self.source, self.state
        while True:
            if self.at >= source.safe:
                self.at = self._refill(self.at)
            code = source.data[self.at]
            if code == STOP:
                return code
            self._step(code)
            if code == MARK or (code == SETITEM and state.stack[-1].kind == "book"):
                self._wait -= 1
                if self._wait < 0:
                    return code
            elif code == SETITEM and state.gathered >= FLUSH:
                return code

    def _step(self, code: int) -> None:
        step = self._steps.get(code)
        if step is None:
            raise _unknown(code)
        self.at = step(self.state, self.source.data, self.at + 1)

    def _step_binary(self) -> int:
        """The same in all later protocols; what is most common is done in place."""
        source, state, stack = self.source, self.state, self.state.stack
        data, safe, at, push, pop = source.data, source.safe, self.at, stack.append, stack.pop
        steps, later, wait = self._steps, self._later, self._wait
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
                elif code == TUPLE3 and later:
                    last, middle, first = pop(), pop(), pop()
                    whole = type(first) is type(middle) is type(last) is int
                    push((first, middle, last) if whole else check_tuple((first, middle, last)))
                    at += 1
                elif code == STOP:
                    return code
                else:
                    step = steps.get(code)
                    if step is None:
                        raise _unknown(code)
                    at = step(state, data, at + 1)
                    if code == MARK:
                        wait -= 1
                        if wait < 0:
                            return code
                    elif code in _ENDS and state.gathered >= FLUSH:
                        return code
        finally:
            self.at, self._wait = at, wait

    def _refill(self, at: int) -> int:
        if len(self.state.stack) > DEEPEST_STACK:
            raise Refused("too many objects wait on the stack")
        return self.source.refill(at)

    def _mapping_at(self, code: int) -> Mapping | None:
        """The mapping for which entries may begin here."""
        stack = self.state.stack
        if code == MARK and len(stack) >= 2 and isinstance(stack[-2], Mapping):
            return stack[-2]
        return stack[-1] if code == SETITEM and self._text and stack[-1].kind == "book" else None

    def _read_bulk(self, mapping: Mapping) -> Iterator[Rows | Codes]:
        """Uniform entries as arrays, and single others among them; a reader that finds few is asked less and less."""
        most, going, worth = 0, True, FEW if self._text else MANY
        kind = mapping.kind or ("book" if len(self.state.mappings) == 2 and not self._text else "table")
        while going:
            found = yield from self._read_stretches(mapping, kind)
            going = not self._text and (found >= worth or not most) and self._step_over(mapping, kind)
            most = max(most, found, 1)  # the first entry may be one that spells out what all others refer to
        if most >= worth:
            self._patience, self.state.short = 1, 0
        else:
            self._patience = min(self._patience * 2, 1 << 20)
        self._wait = self._patience - 1

    def _read_stretches(self, mapping: Mapping, kind: str) -> Generator[Rows | Codes, None, int]:
        """Entries up to one that cannot be read in bulk; says how many."""
        found, state, source, read = 0, self.state, self.source, self._reader_of(kind)
        while True:
            self.at = source.refill(self.at)
            stretch = read(source.up_to_border[: self.at + min(self._window, NARROW)], self.at, state.scalars)
            if stretch is not None:
                yield from self._flush()
                mapping.kind = kind
                found += len(stretch.entries[0])
                self._adapt(stretch.end - self.at)
                self.at = stretch.end
                source.pass_borders(stretch.end)
                yield stretch.entries
            elif source.borders and hits_border(source.view, self.at, source.borders[0]):
                source.pass_border()
            else:
                return found

    def _reader_of(self, kind: str) -> Reader:
        if kind == "book":
            return read_text_codes if self._text else read_codes
        if self._text:
            return read_text
        return self._read_later if self._later else read_marked

    def _read_later(self, view: Bytes, at: int, scalars: Scalars) -> Stretch | None:
        """By templates, which also find their way across borders; what they leave as a whole window of columns."""
        whole = self.source.view[: at + self._window]
        return self._templates.read(whole, at, scalars, self.source.borders) or read_records(view, at, scalars)

    def _adapt(self, read: int) -> None:
        """Look further ahead after a stretch that filled the window, and no further than it reached after another."""
        filled = read > self._window // 2
        self._window = min(2 * self._window, BLOCK) if filled else max(2 * read, LEAST_WINDOW)

    def _step_over(self, mapping: Mapping, kind: str) -> bool:
        """Take one entry that cannot be read in bulk step by step; says whether it was one."""
        source, stack = self.source, self.state.stack
        base = len(stack)
        for _ in range(LONGEST_ENTRY):
            if self.at >= source.safe:
                self.at = self._refill(self.at)
            code = source.data[self.at]
            if len(stack) == base + 2 and code not in _PUTS and _is_entry(stack[base], stack[-1], kind):
                set_items(self.state, mapping, stack[base:])
                del stack[base:]
                return True
            if code in _ENDS or code == STOP:
                return False
            self._step(code)
        return False

    def _flush(self) -> Iterator[Rows | Codes]:
        if self.state.keys:
            parts, counts = take_rows(self.state)
            obs, action, next_obs = (as_column(part) for part in parts)
            yield Rows(obs, action, next_obs, as_column(counts))
        if self.state.codes:
            yield Codes(*map(as_column, take_codes(self.state)))

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
