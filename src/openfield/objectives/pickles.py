"""A reader of published pickles that runs nothing: a few opcodes, five names, integers out.

First station of every table; `records` reads the long uniform stretches, this machine everything between them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.records import Rows, Scalars, read_records
from openfield.objectives.source import Source

FLUSH = 1 << 16
"""Rows gathered one by one before they are handed on as arrays."""
DEEPEST_STACK = 1 << 14
"""Eight times what any pickler puts between two SETITEMS."""
LONGEST_NUMBER = 255
"""Bytes of one integer; an image of 16 x 16 pixels in 16 levels needs 128."""


class Codes(NamedTuple):
    """A stretch of a code book: image codes and the indices they were given."""

    codes: list[int]
    indices: list[int]


class DType(NamedTuple):
    """What a pickled NumPy number says about its bytes."""

    kind: str
    order: str = "<"


class Name(NamedTuple):
    """A global of the allow-list. It stands for the object and is never the object."""

    module: str
    name: str


ALLOWED = {
    Name("numpy.core.multiarray", "scalar"): "scalar",
    Name("numpy._core.multiarray", "scalar"): "scalar",
    Name("numpy", "dtype"): "dtype",
    Name("collections", "defaultdict"): "defaultdict",
    Name("builtins", "int"): "int",
    Name("__builtin__", "int"): "int",  # the same name, as protocols 0 to 2 spell it
}
KINDS = {kind: np.dtype(kind) for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")}


class Refused(InvalidInput):
    """A pickle that holds anything but a transition table."""


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
        except (struct.error, IndexError, ValueError, OverflowError, UnicodeDecodeError) as error:
            reason = "ends in the middle" if source.beyond_end(machine.at) else f"is damaged ({error})"
            raise Refused(f"{path}: the pickle {reason} at byte {source.offset(machine.at)}.") from None
        except Refused as error:
            raise Refused(f"{path}: {error} (byte {source.offset(machine.at)}).") from None


class _Mapping:
    """A dictionary of the file: it remembers what it holds, not the entries."""

    __slots__ = ("kind",)

    def __init__(self) -> None:
        self.kind = ""


_MARK = object()


class _Machine:
    """The stack machine of the pickle format, cut down to what a table needs."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.at = 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}
        self.puts = 0
        self.scalars = Scalars()
        self.mappings: list[_Mapping] = []
        self.columns: tuple[list[Any], ...] = ([], [], [], [])
        self.book: tuple[list[int], list[int]] = ([], [])
        self.patience = 1
        self.wait = 0

    def run(self) -> Iterator[Rows | Codes]:
        """Everything up to STOP, checked to be a mapping or a pair of mappings."""
        source, steps = self.source, _STEPS
        while True:
            if self.at >= source.safe:
                self.at = source.refill(self.at)
            code = source.data[self.at]
            if code == 0x2E:
                break
            step = steps.get(code)
            if step is None:
                raise Refused(f"opcode {_opcode(code)} has no place in a transition table")
            self.at = step(self, source.data, self.at + 1)
            if code in _ENDS_ENTRY:
                yield from self.hand_on(code)
        yield from self._flush()
        self._check_result()

    def hand_on(self, code: int) -> Iterator[Rows | Codes]:
        """Pass gathered rows on, and let the bulk reader run where the next entry begins."""
        if len(self.columns[0]) + len(self.book[0]) >= FLUSH:
            yield from self._flush()
        if self.wait > 0:
            self.wait -= 1
        elif code == 0x28 and self._inside_table():
            yield from self._read_bulk()

    def _inside_table(self) -> bool:
        """The mark just pushed opens a batch of a table whose first entry is known."""
        stack = self.stack
        return len(stack) >= 2 and isinstance(stack[-2], _Mapping) and stack[-2].kind == "table"

    def _read_bulk(self) -> Iterator[Rows]:
        """Uniform entries as arrays; a reader that finds few is asked less and less often."""
        found = 0
        while True:
            self.at = self.source.refill(self.at)
            stretch = read_records(self.source.view, self.at, self.scalars, self.puts)
            if stretch is None:
                break
            if self.columns[0]:
                yield from self._flush()
            self.at, self.puts = stretch.end, stretch.puts
            found += len(stretch.rows.obs)
            yield stretch.rows
        self.patience = 1 if found >= 512 else min(self.patience * 2, 1 << 20)
        self.wait = self.patience - 1

    def _flush(self) -> Iterator[Rows | Codes]:
        if self.columns[0]:
            yield Rows(*(as_column(column) for column in self.columns))
            self.columns = ([], [], [], [])
        if self.book[0]:
            yield Codes(*self.book)
            self.book = ([], [])

    def _check_result(self) -> None:
        source = self.source
        if source.refill(self.at + 1) < len(source.data):
            raise Refused("there are bytes after the end of the pickle")
        if len(self.stack) != 1:
            raise Refused("the pickle leaves more or less than one object")
        top = self.stack[0]
        parts = top if isinstance(top, tuple) else (top,)
        wanted = ("table", "book")
        if not 1 <= len(parts) <= 2 or len(self.mappings) != len(parts):
            raise Refused("neither a mapping nor a pair of mappings")
        for part, mapping, kind in zip(parts, self.mappings, wanted, strict=False):
            if part is not mapping or part.kind not in ("", kind):
                raise Refused("not a mapping of (input, action, next input) to a count, with or without its code book")


def as_column(values: list[Any]) -> np.ndarray[Any, Any]:
    """Numbers as int64 where all fit, float64 if there are fractions, else as Python integers."""
    if any(isinstance(value, float) for value in values):
        return np.array([float(value) for value in values], np.float64)
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return np.array(values, object)


# Every step takes the machine, the bytes and the position after the opcode; it returns the position after its argument.
_Step = Callable[[_Machine, bytes, int], int]


def _push(machine: _Machine, value: Any) -> None:
    stack = machine.stack
    if len(stack) >= DEEPEST_STACK:
        raise Refused("too many objects wait on the stack")
    stack.append(value)


def _protocol(machine: _Machine, data: bytes, at: int) -> int:
    if machine.source.offset(at) != 1 or data[at] > 5:
        raise Refused("a second or unknown protocol mark")
    return at + 1


def _frame(machine: _Machine, data: bytes, at: int) -> int:
    return at + 8


def _mark(machine: _Machine, data: bytes, at: int) -> int:
    _push(machine, _MARK)
    return at


def _int1(machine: _Machine, data: bytes, at: int) -> int:
    _push(machine, data[at])
    return at + 1


def _int2(machine: _Machine, data: bytes, at: int) -> int:
    _push(machine, data[at] | data[at + 1] << 8)
    return at + 2


def _int4(machine: _Machine, data: bytes, at: int) -> int:
    _push(machine, struct.unpack_from("<i", data, at)[0])
    return at + 4


def _float(machine: _Machine, data: bytes, at: int) -> int:
    _push(machine, struct.unpack_from(">d", data, at)[0])
    return at + 8


def _long1(machine: _Machine, data: bytes, at: int) -> int:
    return _long(machine, data, at + 1, data[at])


def _long4(machine: _Machine, data: bytes, at: int) -> int:
    return _long(machine, data, at + 4, struct.unpack_from("<I", data, at)[0])


def _long(machine: _Machine, data: bytes, at: int, size: int) -> int:
    if size > LONGEST_NUMBER:
        raise Refused(f"an integer of {size} bytes")
    _push(machine, int.from_bytes(_take(data, at, size), "little", signed=True))
    return at + size


def _take(data: bytes, at: int, size: int) -> bytes:
    """The next bytes, all of them."""
    part = data[at : at + size]
    if len(part) != size:
        raise IndexError("cut short")
    return part


def _line(data: bytes, at: int) -> tuple[str, int]:
    """Text up to the end of the line, which is near in every table."""
    end = data.find(b"\n", at, at + 2 * LONGEST_NUMBER + 100)
    if end < 0:
        if len(data) - at < 2 * LONGEST_NUMBER + 100:
            raise IndexError("cut short")
        raise Refused("a line longer than any number or name")
    return data[at:end].decode("ascii"), end + 1


def _int_text(machine: _Machine, data: bytes, at: int) -> int:
    text, end = _line(data, at)
    if text in ("00", "01"):
        raise Refused("a truth value where a number should be")
    _push(machine, int(text))
    return end


def _long_text(machine: _Machine, data: bytes, at: int) -> int:
    text, end = _line(data, at)
    _push(machine, int(text.removesuffix("L")))
    return end


def _float_text(machine: _Machine, data: bytes, at: int) -> int:
    text, end = _line(data, at)
    _push(machine, float(text))
    return end


def _text1(machine: _Machine, data: bytes, at: int) -> int:
    _push(machine, _take(data, at + 1, data[at]).decode("ascii"))
    return at + 1 + data[at]


def _text4(machine: _Machine, data: bytes, at: int) -> int:
    size = struct.unpack_from("<I", data, at)[0]
    if size > LONGEST_NUMBER:
        raise Refused(f"a text of {size} bytes")
    _push(machine, _take(data, at + 4, size).decode("ascii"))
    return int(at + 4 + size)


def _bytes1(machine: _Machine, data: bytes, at: int) -> int:
    _push(machine, _take(data, at + 1, data[at]))
    return at + 1 + data[at]


def _constant(value: Any) -> _Step:
    def step(machine: _Machine, data: bytes, at: int) -> int:
        _push(machine, value)
        return at

    return step


def _mapping(machine: _Machine, data: bytes, at: int) -> int:
    _push(machine, _new_mapping(machine))
    return at


def _new_mapping(machine: _Machine) -> _Mapping:
    if len(machine.mappings) == 2:
        raise Refused("more than a table and its code book")
    machine.mappings.append(_Mapping())
    return machine.mappings[-1]


def _mapping_of(machine: _Machine, data: bytes, at: int) -> int:
    mapping, items = _new_mapping(machine), _above_mark(machine)
    _set_items(machine, mapping, items)
    machine.stack.append(mapping)
    return at


def _tuple_of(size: int) -> _Step:
    def step(machine: _Machine, data: bytes, at: int) -> int:
        stack = machine.stack
        items = tuple(stack[-size:])
        if len(items) != size:
            raise Refused("a tuple without its parts")
        stack[-size:] = [_tuple(items)]
        return at

    return step


def _tuple_to_mark(machine: _Machine, data: bytes, at: int) -> int:
    machine.stack.append(_tuple(tuple(_above_mark(machine))))
    return at


def _tuple(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tuples hold numbers, or the parts of a NumPy number; never tuples, so nothing can grow by nesting."""
    for item in items:
        if isinstance(item, tuple) and not isinstance(item, DType | Name):
            raise Refused("a tuple within a tuple")
        if item is _MARK:
            raise Refused("a tuple without its parts")
    return items


def _above_mark(machine: _Machine) -> list[Any]:
    stack = machine.stack
    for depth in range(len(stack) - 1, -1, -1):
        if stack[depth] is _MARK:
            items = stack[depth + 1 :]
            del stack[depth:]
            return items
    raise Refused("an end without a beginning")


def _set_item(machine: _Machine, data: bytes, at: int) -> int:
    stack = machine.stack
    items = stack[-2:]
    del stack[-2:]
    _set_items(machine, stack[-1], items)
    return at


def _set_marked(machine: _Machine, data: bytes, at: int) -> int:
    items = _above_mark(machine)
    _set_items(machine, machine.stack[-1], items)
    return at


def _set_items(machine: _Machine, mapping: Any, items: list[Any]) -> None:
    if not isinstance(mapping, _Mapping) or len(items) % 2:
        raise Refused("entries for something that is not a mapping")
    for key, value in zip(items[::2], items[1::2], strict=True):
        kind = _kind(key)
        if mapping.kind not in ("", kind):
            raise Refused(f"key {_shown(key)} differs in kind from the keys before it")
        mapping.kind = kind
        (_add_row if kind == "table" else _add_code)(machine, key, value)


def _kind(key: Any) -> str:
    if type(key) is tuple and len(key) == 3 and all(type(part) is int for part in key):
        return "table"
    if type(key) is int:
        return "book"
    raise Refused(f"key {_shown(key)} is not a tuple of three integers")


def _add_row(machine: _Machine, key: tuple[int, int, int], count: Any) -> None:
    if type(count) not in (int, float):
        raise Refused(f"the count of key {key} is {_shown(count)}, not a number")
    for column, value in zip(machine.columns, (*key, count), strict=True):
        column.append(value)


def _add_code(machine: _Machine, code: int, index: Any) -> None:
    if type(index) is not int:
        raise Refused(f"the index of code {code} is {_shown(index)}, not an integer")
    machine.book[0].append(code)
    machine.book[1].append(index)


def _shown(value: Any) -> str:
    """A value in at most forty characters."""
    return repr(value) if len(repr(value)) <= 40 else repr(value)[:37] + "..."


def _global(machine: _Machine, data: bytes, at: int) -> int:
    module, at = _line(data, at)
    name, at = _line(data, at)
    _push(machine, _allowed(module, name))
    return at


def _stack_global(machine: _Machine, data: bytes, at: int) -> int:
    name, module = machine.stack.pop(), machine.stack.pop()
    _push(machine, _allowed(module, name))
    return at


def _allowed(module: Any, name: Any) -> Name:
    if not isinstance(module, str) or not isinstance(name, str) or Name(module, name) not in ALLOWED:
        raise Refused(f"it names {_shown(f'{module}.{name}')}, which no transition table needs; nothing was run")
    return Name(module, name)


def _reduce(machine: _Machine, data: bytes, at: int) -> int:
    arguments, function = machine.stack.pop(), machine.stack.pop()
    if not isinstance(function, Name) or type(arguments) is not tuple:
        raise Refused("a call of something that cannot be called")
    role = ALLOWED[function]
    if role == "scalar":
        machine.stack.append(_scalar(arguments))
    elif role == "dtype":
        machine.stack.append(_dtype(arguments))
    elif role == "defaultdict" and all(isinstance(item, Name) and ALLOWED[item] == "int" for item in arguments):
        machine.stack.append(_new_mapping(machine))
    else:
        raise Refused(f"a call of {function.module}.{function.name}")
    return at


def _scalar(arguments: tuple[Any, ...]) -> int | float:
    """The number behind a NumPy scalar: a kind and its bytes."""
    if len(arguments) != 2 or not isinstance(arguments[0], DType) or not isinstance(arguments[1], bytes):
        raise Refused("a NumPy number of an unknown form")
    kind, raw = arguments
    form = KINDS[kind.kind].newbyteorder(kind.order)
    if len(raw) != form.itemsize:
        raise Refused(f"a NumPy number of {len(raw)} bytes where {form.itemsize} belong")
    value: int | float = np.frombuffer(raw, form)[0].item()
    return value


def _dtype(arguments: tuple[Any, ...]) -> DType:
    kind = arguments[0] if arguments else None
    kind = kind.decode("ascii") if isinstance(kind, bytes) else kind
    if not isinstance(kind, str) or kind not in KINDS:
        raise Refused(f"NumPy numbers of kind {_shown(kind)}")
    return DType(kind)


def _build(machine: _Machine, data: bytes, at: int) -> int:
    state = machine.stack.pop()
    if not isinstance(machine.stack[-1], DType) or type(state) is not tuple or len(state) < 2:
        raise Refused("a state for something that has none")
    order = state[1].decode("ascii") if isinstance(state[1], bytes) else state[1]
    if order not in ("<", ">", "|", "="):
        raise Refused("an unknown byte order")
    machine.stack[-1] = machine.stack[-1]._replace(order=order)
    _refresh(machine, machine.stack[-1])
    return at


def _refresh(machine: _Machine, kind: DType) -> None:
    """The memo holds the kind as it was before its byte order was known: the last one put is this one."""
    for key in reversed(machine.memo):
        if isinstance(machine.memo[key], DType):
            machine.memo[key] = kind
            machine.scalars.learn(key, kind)
            return


def _put1(machine: _Machine, data: bytes, at: int) -> int:
    _remember(machine, data[at])
    return at + 1


def _put4(machine: _Machine, data: bytes, at: int) -> int:
    _remember(machine, struct.unpack_from("<I", data, at)[0])
    return at + 4


def _put_text(machine: _Machine, data: bytes, at: int) -> int:
    text, end = _line(data, at)
    _remember(machine, int(text))
    return end


def _put_next(machine: _Machine, data: bytes, at: int) -> int:
    _remember(machine, machine.puts)
    return at


def _remember(machine: _Machine, key: int) -> None:
    """Keys of the table are never asked for again, and a million of them would cost 200 MB: tuples are not kept."""
    value = machine.stack[-1]
    machine.puts += 1
    if value is _MARK:
        raise Refused("a memo of nothing")
    if type(value) is int:
        machine.scalars.add(key, value)
    elif type(value) is not tuple:
        machine.memo[key] = value
        if isinstance(value, Name) and ALLOWED[value] == "scalar":
            machine.scalars.learn(key, None)


def _get1(machine: _Machine, data: bytes, at: int) -> int:
    _recall(machine, data[at])
    return at + 1


def _get4(machine: _Machine, data: bytes, at: int) -> int:
    _recall(machine, struct.unpack_from("<I", data, at)[0])
    return at + 4


def _get_text(machine: _Machine, data: bytes, at: int) -> int:
    text, end = _line(data, at)
    _recall(machine, int(text))
    return end


def _recall(machine: _Machine, key: int) -> None:
    value = machine.memo.get(key)
    if value is None:
        value = machine.scalars.find(key)
    if value is None:
        raise Refused(f"it refers to memo entry {key}, which holds nothing a table needs")
    _push(machine, value)


def _opcode(code: int) -> str:
    import pickletools

    return next((known.name for known in pickletools.opcodes if known.code == chr(code)), f"0x{code:02x}")


_STEPS: dict[int, _Step] = {
    0x80: _protocol, 0x95: _frame, 0x28: _mark,
    0x4B: _int1, 0x4D: _int2, 0x4A: _int4, 0x8A: _long1, 0x8B: _long4, 0x47: _float,
    0x49: _int_text, 0x4C: _long_text, 0x46: _float_text,
    0x58: _text4, 0x8C: _text1, 0x43: _bytes1, 0x55: _bytes1,
    0x4E: _constant(None), 0x88: _constant(True), 0x89: _constant(False), 0x29: _constant(()),
    0x7D: _mapping, 0x64: _mapping_of, 0x74: _tuple_to_mark, 0x85: _tuple_of(1), 0x86: _tuple_of(2), 0x87: _tuple_of(3),
    0x73: _set_item, 0x75: _set_marked,
    0x63: _global, 0x93: _stack_global, 0x52: _reduce, 0x62: _build,
    0x71: _put1, 0x72: _put4, 0x70: _put_text, 0x94: _put_next,
    0x68: _get1, 0x6A: _get4, 0x67: _get_text,
}  # fmt: skip
_ENDS_ENTRY = frozenset((0x28, 0x73, 0x75))
