"""Unpickle a transition table by an allow-list, as a program of its own: `child` runs it on files of any writer.

It loads only the standard library and limits its memory and time before it opens the file. No name in the file becomes
the names in it: `Unpickler.find_class` knows a few stand-ins and refuses all others, so nothing of the file is run.

On standard output it writes one line of JSON and then the columns that the line lists. If the file is refused, the line
says why.
"""

from __future__ import annotations

import json
import pickle
import struct
import sys
from array import array
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO

MAX_NUMBER = 255
"""Bytes of one integer; an image of 16 x 16 pixels in 16 levels needs 128."""
REFUSED, NO_MEMORY = 3, 4
"""How the program ends if it does not end well."""
STRUCTS = {"b1": "B", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I", "u8": "Q"} | {
    "f4": "f",
    "f8": "d",
}
STATE = (3, None, None, None, -1, -1, 0)
"""What NumPy writes about a type of numbers, without its byte order."""


class NotATable(Exception):
    """A pickle that holds anything but a transition table."""


class StandIn:
    """Something that a file may name. Files can call it, and change nothing about it."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def __call__(self, *arguments: Any) -> Any:
        """Return the value made of the arguments."""
        return self._make(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise NotATable("a state for something that has none")


class Kind:
    """A NumPy type of numbers. Its byte order is known once its state was set."""

    __slots__ = ("name", "unpack")

    def __init__(self, name: Any, *flags: Any) -> None:
        if not isinstance(name, str) or name not in STRUCTS or flags != (0, 1):
            raise NotATable(f"NumPy numbers of kind {shorten_repr(name)} are not read, only {', '.join(STRUCTS)}")
        self.name = name

    def __setstate__(self, state: Any) -> None:
        _, order, *_ = state
        if (state[0], *state[2:]) != STATE or order not in (("|",) if self.name[1] == "1" else ("<", ">")):
            raise NotATable(f"a state that is not that of a NumPy number: {shorten_repr(state)}")
        self.unpack = struct.Struct(order.replace("|", "<") + STRUCTS[self.name]).unpack


class FixedMapping(dict[Any, Any]):
    """A `Counter`, which has all its entries when it is made."""

    __slots__ = ()

    def __setitem__(self, key: Any, value: Any) -> None:
        raise NotATable("entries for a mapping of which a Counter was made before")


def make_number(kind: Kind, raw: bytes) -> int | float:
    """Return the plain number behind a NumPy number."""
    value: int | float = kind.unpack(raw)[0]
    if kind.name == "b1" and value > 1:
        raise NotATable("a NumPy truth value that is neither 0 nor 1")
    return value


def make_bytes(text: str, encoding: str) -> bytes:
    """Return bytes as protocols 0 to 2 write them."""
    if encoding != "latin1":
        raise NotATable(f"bytes in the encoding {shorten_repr(encoding)}")
    return text.encode("latin1")


def make_mapping(*arguments: Any) -> dict[Any, Any]:
    """Return a `defaultdict` or an `OrderedDict` without entries, which follow."""
    if arguments not in ((), (_INT,)):
        raise NotATable("a mapping that is made of something")
    return {}


def make_counter(entries: Any) -> FixedMapping:
    """Return a `Counter`."""
    if type(entries) is not dict:
        raise NotATable("a Counter of something that is not a mapping")
    return FixedMapping(entries)


def make_nothing(*_: Any) -> Any:
    """Refuse to call a name that is only passed on."""
    raise NotATable("a call of int")


_NUMBER, _INT = StandIn(make_number), StandIn(make_nothing)
NAMES = {
    ("numpy.core.multiarray", "scalar"): _NUMBER,
    ("numpy._core.multiarray", "scalar"): _NUMBER,
    ("numpy", "dtype"): StandIn(Kind),
    ("_codecs", "encode"): StandIn(make_bytes),
    ("collections", "defaultdict"): StandIn(make_mapping),
    ("collections", "OrderedDict"): StandIn(make_mapping),
    ("collections", "Counter"): StandIn(make_counter),
    **dict.fromkeys((("builtins", "int"), ("__builtin__", "int"), ("__builtin__", "long")), _INT),
}
"""The names that tables use, as Python 2 and 3 and NumPy 1 and 2 spell them."""


def find_stand_in(module: str, name: str) -> StandIn:
    """Return the stand-in for a name.

    Raises:
        NotATable: It is not in the allow-list. Dotted names are not either.
    """
    found = NAMES.get((module, name))
    if found is None:
        raise NotATable(
            f"it names {shorten_repr(f'{module}.{name}')}, which no transition table needs; nothing was run"
        )
    return found


class Unpickler(pickle.Unpickler):
    """Python's reader of pickles with our names and no others."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for a name."""
        return find_stand_in(module, name)


class SlowUnpickler(pickle._Unpickler):
    """The same without compiled code, whose memo may take any memory: for systems that cannot limit it."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for a name."""
        return find_stand_in(module, name)


def limit_process(memory: int, seconds: int, output: int) -> bool:
    """Limit what this process may take, as far as the system can. Return False if it cannot limit memory."""
    if sys.platform in ("win32", "darwin"):  # no limits on the one; memory has none on the other
        return False
    import resource

    limits = {"AS": memory, "CPU": seconds, "FSIZE": output, "CORE": 0}
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    return True


def read(path: Path, *, limited: bool) -> tuple[dict[Any, Any], dict[Any, Any] | None]:
    """Return the table of a file, and its code book if it has one."""
    with path.open("rb") as file:
        found = (Unpickler if limited else SlowUnpickler)(file).load()
        if file.read(1):
            raise NotATable("there are bytes after the end of the pickle")
    pair = type(found) is tuple and len(found) == 2
    table, book = found if pair else (found, None)
    if not isinstance(table, dict) or (pair and not isinstance(book, dict)):
        raise NotATable("neither a mapping nor a pair of mappings")
    return table, book


def columns_of(table: dict[Any, Any], book: dict[Any, Any] | None) -> dict[str, list[Any]]:
    """Check the entries of a table and its code book, and return them as columns."""
    if any(type(key) is not tuple or len(key) != 3 for key in table):
        raise wrong_key(table)
    parts = [list(part) for part in zip(*table, strict=True)] or [[], [], []]
    parts[1] = [int(part) if part is True or part is False else part for part in parts[1]]
    if any(set(map(type, part)) - {int} for part in parts):
        raise wrong_key(table)
    counts = list(table.values())
    if set(map(type, counts)) - {int, float}:
        key, count = next(pair for pair in table.items() if type(pair[1]) not in (int, float))
        raise NotATable(f"the count of key {shorten_repr(key)} is {shorten_repr(count)}, not a number")
    columns = dict(zip(("obs", "action", "next_obs", "counts"), (*parts, counts), strict=True))
    if book is None:
        return columns
    for code, index in book.items():
        if type(code) is not int or type(index) is not int:
            raise NotATable(f"code {shorten_repr(code)} with index {shorten_repr(index)}; both must be integers")
    return columns | {"codes": list(book), "indices": list(book.values())}


def wrong_key(keys: Iterable[Any]) -> NotATable:
    """Return the error for the first key that is not three integers."""
    for key in keys:
        if type(key) is not tuple or len(key) != 3 or any(type(part) is not int for part in key):
            return NotATable(f"key {shorten_repr(key)} is not a tuple of three integers")
    return NotATable("keys that are not tuples of three integers")


def pack_column(column: list[Any]) -> dict[str, list[Any]]:
    """Return the form of a column and its bytes: float64, int64, or integers of any size after their lengths."""
    if float in set(map(type, column)):
        return {"float64": [array("d", column).tobytes()]}
    try:
        return {"int64": [array("q", column).tobytes()]}
    except OverflowError:
        sizes = [number.bit_length() // 8 + 1 for number in column]
    if max(sizes) > MAX_NUMBER:
        raise NotATable(f"an integer of {max(sizes)} bytes")
    numbers = (number.to_bytes(size, "little", signed=True) for number, size in zip(column, sizes, strict=True))
    return {"integers": [bytes(sizes), b"".join(numbers)]}


def write(file: BinaryIO, columns: dict[str, list[Any]]) -> None:
    """Write the line that lists the columns with the lengths of their parts, and the parts."""
    packed = {name: pack_column(column) for name, column in columns.items()}
    listed = {
        name: {kind: [len(part) for part in parts] for kind, parts in form.items()} for name, form in packed.items()
    }
    file.write(json.dumps({"columns": listed}).encode() + b"\n")
    for form in packed.values():
        for parts in form.values():
            file.writelines(parts)


def shorten_repr(value: Any) -> str:
    """Return the repr of a value, cut to forty characters."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def main(path: str, memory: str, seconds: str, output: str) -> int:
    """Read a file and write its columns."""
    limited = limit_process(int(memory), int(seconds), int(output))
    try:
        write(sys.stdout.buffer, columns_of(*read(Path(path), limited=limited)))
        sys.stdout.buffer.flush()
    except MemoryError:
        return NO_MEMORY
    except NotATable as error:
        reason = str(error)
    except Exception as error:  # whatever a damaged file leads to
        reason = f"the pickle is cut short or damaged ({type(error).__name__}: {str(error)[:80]})"
    else:
        return 0
    sys.stdout.buffer.write(json.dumps({"refused": reason}).encode() + b"\n")
    return REFUSED


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
