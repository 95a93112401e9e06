"""Read pickled transition tables, and run nothing in them.

The published form, which usual picklers write, is read here without unpickling anything: long stretches of entries by
`template_reader`, and what lies between them by patterns. A child process reads any other form.
"""

from __future__ import annotations

import re
import struct
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.pickle import unpickle
from openfield.objectives.pickle.source import BLOCK, OddPickle, Source
from openfield.objectives.pickle.template_reader import TemplateReader
from openfield.objectives.pickle.templates import Memo, hits_border
from openfield.objectives.tables.rows import Array, Codes, Rows, as_column
from openfield.processes.program import run_bounded

MIN_WINDOW, FIRST_WINDOW = 1 << 13, 1 << 17
"""Bytes that templates look at: at least, and at first."""
SINGLE, ONE_SINGLE_IN = 100, 1_000
"""Entries that fit no template, and are read alone: at most, and one more for this many others."""
MAX_CODE = 33
"""Bytes of an image code: 256 bits and the sign."""
KINDS = {kind: np.dtype(kind) for kind in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")}

_PUTS = b"qr\x94"
_PUT = rb"(q.|r.{4}|\x94)?"
_LONG = b"|".join(rb"\x%02x.{%d}" % (size, size) for size in range(1, MAX_CODE + 1))
_INTEGER = rb"(K.|M..|J.{4}|\x8a(?:%b))" % _LONG
BASE_MEMORY, MEMORY_PER_BYTE, MAX_MEMORY = 1 << 28, 64, 1 << 32
"""Bytes that the child may take: at least, for each byte of the file, and at most. A table takes 15 to 40 per byte."""
BASE_SECONDS, BYTES_PER_SECOND = 1, 1_000_000
"""Processor seconds that the child may take, and the bytes that earn it a further one. A table has 12,000,000."""
MAX_UNLIMITED = 1 << 26
"""Bytes of a file where the system cannot limit the memory of a process, as on macOS and Windows."""
MAX_LINE = 10_000
"""Bytes of the line that lists the columns, or says why the file is refused."""
AGAIN = "Write it again with pickle.dump(table, file, 4), with plain integers."
TABLE, BOOK = ("obs", "action", "next_obs", "counts"), ("codes", "indices")


def _pattern(form: bytes) -> re.Pattern[bytes]:
    return re.compile(form, re.DOTALL)


def _spelling(*names: tuple[bytes, bytes]) -> re.Pattern[bytes]:
    """Return the pattern of one of some names, as protocols 2 to 5 spell them."""
    forms = [rb"c%b\n%b\n" % (re.escape(module), name) for module, name in names]
    forms += [rb"%b%b%b%b\x93" % (_short(module), _PUT, _short(name), _PUT) for module, name in names]
    return _pattern(rb"(?:%b)%b" % (b"|".join(forms), _PUT))


def _short(text: bytes) -> bytes:
    return rb"\x8c\x%02x%b" % (len(text), re.escape(text))


def _text(text: bytes) -> re.Pattern[bytes]:
    return _pattern(rb"(?:X\x%02x\0\0\0%b|%b)%b" % (len(text), re.escape(text), _short(text), _PUT))


_LABELS = {
    "scalar": _spelling((b"numpy.core.multiarray", b"scalar"), (b"numpy._core.multiarray", b"scalar")),
    "dtype": _spelling((b"numpy", b"dtype")),
    "defaultdict": _spelling((b"collections", b"defaultdict")),
    "int": _spelling((b"builtins", b"int"), (b"__builtin__", b"int"), (b"__builtin__", b"long")),
    **{text: _text(text.encode()) for text in (*KINDS, "<", ">", "|")},
}
"""Names and texts of tables -> how they are spelled out, once; writers refer to them afterwards."""
_GET = _pattern(rb"[hj](?:(?<=h).|.{4})")
_PLAIN = _pattern(rb"%b|(G.{8})" % _INTEGER)
_MADE = _pattern(rb"C(\x01.|\x02..|\x04.{4}|\x08.{8})%b\x86%bR%b" % (_PUT, _PUT, _PUT))
"""The bytes of a NumPy number, pair, call."""
_FLAGS = _pattern(rb"(?:K\0K\x01|\x89\x88)\x87%bR%b" % (_PUT, _PUT))
_STATE = _pattern(rb"NNNJ\xff{4}J\xff{4}K\0t%bb" % _PUT)
_CODE = _pattern(rb"%b%b(?:u\()?" % (_INTEGER, _INTEGER))
"""An entry of a code book, and where the next batch begins."""


def read_pickled_table(path: Path) -> list[Rows | Codes]:
    """Return every entry of a pickled table, and of its code book, in the order of the file.

    Raises:
        Refused: The file is cut short, or holds something that no transition table holds.
    """
    try:
        return list(read_published(path))
    except OddPickle:
        return read_in_child(path)


def read_published(path: Path) -> Iterator[Rows | Codes]:
    """Yield every entry of a pickle in the published form, in stretches of bounded size.

    Raises:
        OddPickle: It is not in that form. Entries yielded before must not be used.
    """
    with path.open("rb") as file:
        yield from _Published(Source(file)).run()


class _Published:
    """A pickle in the published form: a mapping, or a pair of mappings."""

    def __init__(self, source: Source) -> None:
        self.source, self.memo, self.at = source, Memo(), 0
        self._templates, self._window = TemplateReader(), FIRST_WINDOW
        self._rows = self._single = 0

    def run(self) -> Iterator[Rows | Codes]:
        """Yield all entries up to the end of the file."""
        self._pass(_pattern(rb"\x80[\x02-\x05]"))
        self._begin_mapping()
        yield from self._table()
        if not self._sees(b"."):
            self._begin_mapping()
            yield from self._book()
            self._pass(_pattern(rb"\x86%b" % _PUT))
        self._pass(_pattern(rb"\."))
        if self.at != len(self.source.data):
            raise OddPickle

    def _begin_mapping(self) -> None:
        if self._sees(b"}"):
            self._pass(_pattern(rb"\}%b" % _PUT))
            return
        self._label("defaultdict")
        self._label("int")
        self._pass(_pattern(rb"\x85%bR%b" % (_PUT, _PUT)))

    def _table(self) -> Iterator[Rows]:
        """Yield the entries of the table: batches of many, and at its end perhaps one that stands alone."""
        if self._sees(b"("):
            self.at += 1
            while not self._sees(b"u"):
                stretch = self._read_stretch()
                yield self._read_entry() if stretch is None else stretch
                self.at = self.source.refill(self.at)
            self.at += 1
        if not self._sees(b".") and not self._sees(b"}") and not self._sees(b"c"):
            yield self._read_entry()
            self._pass(_pattern(b"s"))

    def _read_stretch(self) -> Rows | None:
        """Return the entries up to one that fits no template, if there are any."""
        source = self.source
        stretch = self._templates.read(source.view[: self.at + self._window], self.at, self.memo, source.borders)
        if stretch is None:
            return None
        read = stretch.end - self.at
        filled = read > self._window // 2
        self._window = min(2 * self._window, BLOCK) if filled else max(2 * read, MIN_WINDOW)
        self.at = stretch.end
        source.pass_borders(self.at)
        self._rows += len(stretch.rows.obs)
        return stretch.rows

    def _read_entry(self) -> Rows:
        """Read one entry: the first, which spells out names that others refer to, or one that fits no template."""
        self._single += 1
        if self._single > SINGLE + self._rows // ONE_SINGLE_IN:
            raise OddPickle
        obs, action, next_obs = self._number(), self._number(), self._number()
        self._pass(_pattern(rb"\x87%b" % _PUT))
        count = self._number()
        if float in {type(obs), type(action), type(next_obs)}:
            raise OddPickle
        if self._sees(b"u("):
            self.at += 2
        return Rows(*(as_column([value]) for value in (obs, action, next_obs, count)))

    def _number(self) -> int | float:
        """Pass over a number of Python or NumPy, and return it."""
        found = _PLAIN.match(self.source.data, self.at)
        if found is not None:
            self._go_on(found.end())
            return _plain_number(found[0])
        self._label("scalar")
        kind = self._kind()
        raw = self._pass(_MADE)[1][1:]
        if len(raw) != kind.itemsize or kind.kind == "b":
            raise OddPickle
        value: int | float = np.frombuffer(raw, kind)[0].item()
        return value

    def _kind(self) -> np.dtype[Any]:
        """Pass over the type of a NumPy number: a reference to one, or the first of its kind."""
        key = self._reference()
        if key in self.memo.kinds:
            self._pass(_GET)
            return self.memo.kinds[key]
        self._label("dtype")
        kind = KINDS[self._label(*KINDS)]
        puts = self._pass(_FLAGS).groups()
        key = self.memo.top if puts[-1] else -1
        self._pass(_pattern(rb"\(K\x03"))
        order = self._label("<", ">", "|")
        self._pass(_STATE)
        if (order == "|") != (kind.itemsize == 1):
            raise OddPickle
        kind = kind.newbyteorder(">") if order == ">" else kind
        if key >= 0:
            self.memo.kinds[key] = kind
        return kind

    def _label(self, *labels: str) -> str:
        """Pass over one of some names or texts, spelled out or as a reference, and return which it is."""
        key = self._reference()
        if key >= 0:
            found = self.memo.labels.get(key, "")
            if found not in labels:
                raise OddPickle
            self._pass(_GET)
            return found
        for label in labels:
            spelled = _LABELS[label].match(self.source.data, self.at)
            if spelled is not None:
                self._pass(_LABELS[label])
                if spelled.groups()[-1]:
                    self.memo.labels[self.memo.top] = label
                return label
        raise OddPickle

    def _reference(self) -> int:
        """Return the memo number that the next opcode refers to, or -1 if it is another opcode."""
        found = _GET.match(self.source.data, self.at)
        return -1 if found is None else int.from_bytes(found[0][1:], "little")

    def _book(self) -> Iterator[Codes]:
        """Yield the entries of the code book."""
        yield Codes(as_column([]), as_column([]))
        if self._sees(b"("):
            self.at += 1
            while not self._sees(b"u"):
                yield self._read_codes(BLOCK)
            self.at += 1
        if not self._sees(b"\x86"):
            yield self._read_codes(1)
            self._pass(_pattern(b"s"))

    def _read_codes(self, size: int) -> Codes:
        """Return up to a number of codes and their indices."""
        self.at = self.source.refill(self.at)
        data, starts = self.source.data, [self.at]
        codes: list[float] = []
        indices: list[float] = []
        while len(codes) < size and (found := _CODE.match(data, starts[-1])) is not None:
            codes.append(_plain_number(found[1]))
            indices.append(_plain_number(found[2]))
            starts.append(found.end())
        if not codes:
            raise OddPickle
        for border in self.source.borders:
            if border < starts[-1] and not hits_border(
                self.source.view, starts[bisect_right(starts, border) - 1], border
            ):
                raise OddPickle
        self.at = starts[-1]
        self.source.pass_borders(self.at)
        return Codes(as_column(codes), as_column(indices))

    def _sees(self, start: bytes) -> bool:
        self.at = self.source.refill(self.at)
        return self.source.data.startswith(start, self.at)

    def _pass(self, pattern: re.Pattern[bytes]) -> re.Match[bytes]:
        """Pass over opcodes, and note the puts among their groups."""
        self.at = self.source.refill(self.at)
        found = pattern.match(self.source.data, self.at)
        if found is None:
            raise OddPickle
        for put in found.groups():
            if put and put[0] in _PUTS:
                self.memo.add(put)
        self._go_on(found.end())
        return found

    def _go_on(self, end: int) -> None:
        """Go on after the skipped bytes, in which no frame may begin."""
        if self.source.borders and self.source.borders[0] < end and self.source.borders[0] != self.at:
            raise OddPickle
        self.source.pass_borders(end)
        self.at = end


def _plain_number(opcode: bytes) -> int | float:
    """Return the number that an opcode and its argument make."""
    if opcode[:1] == b"G":
        value: float = struct.unpack(">d", opcode[1:])[0]
        return value
    start = 2 if opcode[:1] == b"\x8a" else 1
    return int.from_bytes(opcode[start:], "little", signed=opcode[0] not in b"KM")


class Refused(InvalidInput):
    """A pickle that holds anything but a transition table."""


class _Answer(msgspec.Struct):
    """The first line that the child writes."""

    columns: dict[str, dict[str, list[int]]] = {}
    """The form of each column, and the bytes of its parts."""
    refused: str = ""


def read_in_child(path: Path) -> list[Rows | Codes]:
    """Return the entries of a pickled table and of its code book, which `unpickle` reads in a child process.

    It works on a foreign file, so its answer is not trusted either: it is numbers in files of checked lengths, and
    never unpickled. It has only the standard library.

    Raises:
        Refused: The file is damaged, holds something that no table holds, or takes more memory or time than a table.
    """
    size = path.stat().st_size
    if sys.platform in ("win32", "darwin") and size > MAX_UNLIMITED:
        raise Refused(f"{path}: this system cannot limit the memory of a pickle of {size:,} bytes. {AGAIN}")
    memory = min(BASE_MEMORY + MEMORY_PER_BYTE * size, MAX_MEMORY)
    seconds = BASE_SECONDS + size // BYTES_PER_SECOND
    command = [sys.executable, "-I", "-S", unpickle.__file__, str(path.resolve()), *map(str, (memory, seconds, memory))]
    with tempfile.TemporaryFile(prefix="openfield-") as file:
        ended = run_bounded(command, seconds, file)
        if ended is None:
            raise Refused(f"{path}: took longer than any table of its size. {AGAIN}")
        file.seek(0)
        return _read_answer(file, ended.returncode, path)


def _read_answer(file: BinaryIO, code: int, path: Path) -> list[Rows | Codes]:
    """Check what the child wrote, and return it."""
    if code == unpickle.NO_MEMORY:
        raise Refused(f"{path}: takes more memory than a table of its size may. {AGAIN}")
    try:
        answer = msgspec.json.decode(file.readline(MAX_LINE), type=_Answer)
    except msgspec.DecodeError:
        raise Refused(f"{path}: takes longer than a table, or ends its reader ({code}). {AGAIN}") from None
    if answer.refused or code:
        words = "".join(letter if letter.isprintable() else "?" for letter in answer.refused)
        raise Refused(f"{path}: {words}.")
    try:
        columns = {name: _read_column(file, form) for name, form in answer.columns.items()}
        pieces: list[Rows | Codes] = [Rows(*(columns[name] for name in TABLE))]
        pieces += [Codes(*(columns[name] for name in BOOK))] if BOOK[0] in columns else []
    except (KeyError, ValueError) as error:
        raise Refused(f"{path}: its reader answered something else ({error}).") from None
    if any(len({len(column) for column in piece}) > 1 for piece in pieces):
        raise Refused(f"{path}: its reader answered columns of different lengths.")
    return pieces


def _read_column(file: BinaryIO, form: dict[str, list[int]]) -> Array:
    """Read a column, whose bytes must be there."""
    ((kind, lengths),) = form.items()
    parts = [file.read(max(length, 0)) for length in lengths]
    if [len(part) for part in parts] != lengths:
        raise ValueError("too few bytes")
    if kind in ("int64", "float64"):
        (raw,) = parts
        return np.frombuffer(raw, kind)
    sizes, raw = parts
    ends = np.cumsum(np.frombuffer(sizes, np.uint8)).tolist()
    edges = zip([0, *ends], ends, strict=False)
    return np.array([int.from_bytes(raw[start:end], "little", signed=True) for start, end in edges], object)
