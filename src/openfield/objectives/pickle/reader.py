"""Read published pickles without running anything: a few opcodes, seven names, integers out.

`template_reader` reads the long uniform stretches of a file, the steps of `opcodes` what lies between.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from openfield.objectives.pickle.memo import write_whole
from openfield.objectives.pickle.numpy_scalars import Refused
from openfield.objectives.pickle.opcodes import AT_ONCE, STEPS, check_tuple, opcode_name, set_items
from openfield.objectives.pickle.pickle_state import BATCH, Mapping, PickleState
from openfield.objectives.pickle.pickle_state import MARK as MARKED
from openfield.objectives.pickle.source import BLOCK, Source
from openfield.objectives.pickle.template_reader import TemplateReader
from openfield.objectives.pickle.templates import INT1, INT2, MARK, PUT1, PUT4, PUT_NEXT, SETITEMS, TUPLE3
from openfield.objectives.tables.rows import Codes, Rows, as_column

FLUSH = 1 << 15
"""Rows gathered one by one before they are handed on as arrays."""
MAX_STACK = 1 << 12
"""Twice what any usual pickler puts between two SETITEMS."""
UNFINISHED = 8
"""More objects than those on top of the stack of which a number or key is still being made."""
ENOUGH = 512
"""Entries that are worth the 0.2 ms of trying templates."""
MAX_PATIENCE = 1 << 20
MIN_WINDOW, FIRST_WINDOW = 1 << 13, 1 << 17
"""Bytes that templates look at: at least, and at first."""
MAX_ENTRY_STEPS = 128
"""Steps of one entry at most: four NumPy numbers of different kinds with all names spelled out."""
PYTHON_NUMBER = 56
"""Bytes of a large integer of Python and of what refers to it."""
OLD_NUMPY = " NumPy numbers are read from protocols 3 to 5: write the table again with pickle.dump(table, file, 4)."
SETITEM, STOP, INT_TEXT = 0x73, 0x2E, 0x49
SHORT_LINE, ZERO = 12, ord("0")
_ENDS = (SETITEM, SETITEMS)
_PUTS = (PUT1, PUT4, PUT_NEXT)


def read_pickle(path: Path) -> Iterator[Rows | Codes]:
    """Yield every entry of a pickled table in the order of the file, in stretches of bounded size.

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
            machine.state.memo.close()


class _Machine:
    """The stack machine of the pickle format, reduced to what a table needs."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.state = PickleState()
        self.at = 0
        self._templates = TemplateReader()
        self._window = FIRST_WINDOW
        self._patience = 1
        """How many marks are passed until templates are tried again; it doubles each time they find little."""
        self._wait = 0

    def run(self) -> Iterator[Rows | Codes]:
        """Yield everything up to STOP, checked to be a mapping or a pair of mappings."""
        while (code := self._step_on()) != STOP:
            if self.state.gathered >= FLUSH:
                yield from self._flush()
            if code == MARK and (mapping := self._open_table()) is not None:
                yield from self._read_by_templates(mapping)
        yield from self._flush()
        self._check_result()
        if [mapping.kind for mapping in self.state.mappings[1:]] == [""]:
            yield Codes(as_column([]), as_column([]))

    def _step_on(self) -> int:
        """Run up to where templates may be tried, up to a good number of entries, or to the end.

        The most common opcodes are done in place.
        """
        source, state, stack = self.source, self.state, self.state.stack
        data, safe, at, push, pop = source.data, source.safe, self.at, stack.append, stack.pop
        wait, steps = self._wait, STEPS
        try:
            while True:
                if at >= safe:
                    at = self._refill(at)
                    data, safe = source.data, source.safe
                    if state.gathered >= FLUSH:
                        return SETITEM
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
                elif code in AT_ONCE and (end := AT_ONCE[code](state, data, at, safe)):
                    at = end
                elif code == INT_TEXT and (end := data.find(b"\n", at, at + SHORT_LINE)) > 0 and data[at + 1] != ZERO:
                    digits = data[at + 1 : end]
                    if digits.isdigit():
                        push(int(digits))
                        at = end + 1
                    else:
                        at = steps[code](state, data, at + 1)
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
        finally:
            self.at, self._wait = at, wait

    def _refill(self, at: int) -> int:
        if len(self.state.stack) > MAX_STACK:
            self._take_early()
        return self.source.refill(at)

    def _take_early(self) -> None:
        """Take the finished entries of a batch that is longer than those of usual writers."""
        stack = self.state.stack
        marks = [at for at, item in enumerate(stack) if item is MARKED or item is BATCH]
        base = next((at for at in marks if at and isinstance(stack[at - 1], Mapping)), None)
        if base is None:
            raise Refused("too many objects wait on the stack")
        end = min([at for at in marks if at > base], default=len(stack))
        size = (end - base - 1 - UNFINISHED) // 2 * 2
        if size <= 0:
            raise Refused("too many objects wait on the stack")
        set_items(self.state, stack[base - 1], stack[base + 1 : base + 1 + size])
        del stack[base + 1 : base + 1 + size]
        stack[base] = BATCH

    def _open_table(self) -> Mapping | None:
        """Return the table for which a batch of entries begins here, if one does."""
        stack = self.state.stack
        if len(stack) < 2 or not isinstance(stack[-2], Mapping) or len(self.state.mappings) == 2:
            return None
        if not stack[-2].open:
            return None
        return stack[-2] if stack[-2].kind != "book" else None

    def _read_by_templates(self, mapping: Mapping) -> Iterator[Rows | Codes]:
        """Yield uniform entries as arrays, and take single others among them step by step."""
        best, going, base = 0, True, len(self.state.stack) - 1
        while going:
            found = yield from self._read_stretches(mapping)
            going = (found >= ENOUGH or not best) and self._step_over(mapping)
            if found or going:
                self.state.stack[base] = BATCH
            best = max(best, found, 1)  # the first entry may be one that spells out what all others refer to
        if best >= ENOUGH:
            self._patience, self.state.short = 1, 0
        else:
            self._patience = min(self._patience * 2, MAX_PATIENCE)
        self._wait = self._patience - 1

    def _read_stretches(self, mapping: Mapping) -> Generator[Rows | Codes, None, int]:
        """Yield entries up to one that fits no template, and return how many there were."""
        found, source = 0, self.source
        while True:
            self.at = source.refill(self.at)
            view = source.view[: self.at + self._window]
            stretch = self._templates.read(view, self.at, self.state.memo, source.borders)
            if stretch is None:
                return found
            yield from self._flush()
            mapping.kind = "table"
            found += len(stretch.rows.obs)
            self._adapt(stretch.end - self.at)
            self.at = stretch.end
            source.pass_borders(stretch.end)
            yield stretch.rows

    def _adapt(self, read: int) -> None:
        """Look further ahead after a stretch that filled the window, and no further than it reached after another."""
        filled = read > self._window // 2
        self._window = min(2 * self._window, BLOCK) if filled else max(2 * read, MIN_WINDOW)

    def _step_over(self, mapping: Mapping) -> bool:
        """Take one entry that fits no template step by step. Return False if it was none."""
        source, stack = self.source, self.state.stack
        base = len(stack)
        for _ in range(MAX_ENTRY_STEPS):
            if self.at >= source.safe:
                self.at = self._refill(self.at)
            code = source.data[self.at]
            if len(stack) < base or (stack[base - 1] is not MARKED and stack[base - 1] is not BATCH):
                return False  # the mark of the batch was used up
            if len(stack) == base + 2 and code not in _PUTS and _is_entry(stack[base], stack[-1]):
                set_items(self.state, mapping, stack[base:])
                del stack[base:]
                return True
            if code in _ENDS or code == STOP:
                return False
            step = STEPS.get(code)
            if step is None:
                raise _unknown(code)
            self.at = step(self.state, source.data, self.at + 1)
        return False

    def _flush(self) -> Iterator[Rows | Codes]:
        if self.state.keys:
            parts, counts = self.state.take_rows()
            obs, action, next_obs = (as_column(part) for part in parts)
            yield Rows(obs, action, next_obs, as_column(counts))
        if self.state.codes:
            yield Codes(*map(as_column, self.state.take_codes()))

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


def _unknown(code: int) -> Refused:
    return Refused(f"opcode {opcode_name(code)} has no place in a transition table")


def _is_entry(key: Any, value: Any) -> bool:
    """Return True if both are complete, so that nothing that follows can be part of them."""
    return type(key) is tuple and type(value) in (int, float)


def read_checked(path: Path, unchecked: int) -> Iterator[Rows | Codes]:
    """Yield the entries of a pickled table as `read_pickle` does, but little of a file that is refused.

    Args:
        path: The file.
        unchecked: Bytes of entries that may be given before the file was read to its end.

    Raises:
        Refused: As `read_pickle`.
    """
    deferred, given, checked = DeferredRows(), 0, False
    try:
        for piece in read_pickle(path):
            given += _room(piece)
            if checked or given <= unchecked:
                yield piece
            elif isinstance(piece, Codes) or not deferred.add(piece):
                for _ in read_pickle(path):  # to its end, where something foreign may wait
                    pass
                checked = True
                yield from deferred.take()
                yield piece
        yield from deferred.take()
    finally:
        deferred.close()


class DeferredRows:
    """Rows in a file without a name."""

    def __init__(self) -> None:
        self._file: Any = None
        self._kinds: list[tuple[int, list[np.dtype[Any]]]] = []
        """The length and the column types of every piece."""

    def add(self, rows: Rows) -> bool:
        """Write rows to the file. Return False if the disk is full or integers are beyond 64 bits."""
        if any(column.dtype.hasobject for column in rows):
            return False
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="openfield-", buffering=0)  # noqa: SIM115
            for column in rows:
                write_whole(self._file, column)
        except OSError:
            return False
        self._kinds.append((len(rows.obs), [column.dtype for column in rows]))
        return True

    def take(self) -> Iterator[Rows]:
        """Yield all rows in the order in which they were added, and forget them."""
        pieces, self._kinds = self._kinds, []
        if pieces:
            self._file.seek(0)
        for size, kinds in pieces:
            yield Rows(*(self._column(size, kind) for kind in kinds))

    def _column(self, size: int, kind: np.dtype[Any]) -> np.ndarray[Any, Any]:
        column = np.empty(size, kind)
        left = column.data.cast("B")
        while left:
            left = left[self._file.readinto(left) :]
        return column

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()


def _room(piece: Iterable[np.ndarray[Any, Any]]) -> int:
    """Return about how many bytes a piece takes."""
    return sum(PYTHON_NUMBER * len(column) if column.dtype.hasobject else column.nbytes for column in piece)
