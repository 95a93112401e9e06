"""Whatever the safe reader takes, `pickle.load` takes as well, and both get the same mapping.

`OPENFIELD_MUTATIONS=200000 pytest tests/objectives/test_differential.py` tries as many damaged files.
"""

import ast
import io
import os
import pickle
import pickletools
import random
import struct
import subprocess
import sys
from collections import defaultdict

import numpy as np
import pytest

from openfield.errors import InvalidInput
from openfield.objectives.formats import load
from openfield.objectives.pickle.reader import read_in_child, read_pickled_table, read_published
from openfield.objectives.pickle.source import OddPickle
from openfield.objectives.tables.rows import Codes
from support.objectives.oracle import spelling
from support.places import SUPPORT

MUTATIONS = int(os.environ.get("OPENFIELD_MUTATIONS", "3000"))
IN_A_CHILD = 20
"""One of this many damaged files is also read in the child process, which takes longer to start than to read it."""
ORACLE = SUPPORT / "objectives" / "oracle.py"


class Oracle:
    """The process that unpickles."""

    def __init__(self):
        quiet = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, str(ORACLE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=quiet
        )

    def ask(self, raw):
        self.process.stdin.write(struct.pack("<Q", len(raw)) + raw)
        self.process.stdin.flush()
        return self.process.stdout.readline().decode().rstrip("\n")

    def close(self):
        self.process.communicate()
        assert self.process.returncode == 0


@pytest.fixture(scope="module")
def oracle():
    process = Oracle()
    yield process
    process.close()


def ours(path, read=read_pickled_table):
    """The same spelling of what we read, or None if it is refused."""
    try:
        pieces = list(read(path))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(load, "read_pickled_table", lambda path: pieces)
            assert load.load_table(path).counts.total > 0
    except (InvalidInput, OddPickle):
        return None
    rows = [piece for piece in pieces if not isinstance(piece, Codes)]
    books = [piece for piece in pieces if isinstance(piece, Codes)]
    table = [row for piece in rows for row in zip(*(column.tolist() for column in piece), strict=True)]
    codes = [pair for piece in books for pair in zip(piece.codes.tolist(), piece.indices.tolist(), strict=True)]
    assert len({row[:3] for row in table}) == len(table), "a key twice"
    assert len(dict(codes)) == len(codes), "a code twice"
    return spelling(({row[:3]: row[3] for row in table}, dict(codes)))


def same(mine, theirs):
    """Of an empty code book nothing is handed on, so it reads like none; beside fractions integers are fractions."""
    return theirs in (mine, mine.replace("[])", "None)")) or with_fractions(mine) == with_fractions(theirs) is not None


def with_fractions(spelled):
    """The same with all counts as float64, if there is a fraction among them."""
    if not spelled.startswith("("):
        return None
    table, book = ast.literal_eval(spelled)
    if not any(isinstance(count, float) for _, count in table):
        return None
    return [(key, float(count)) for key, count in table], book or None


def valid_files():
    """Both published forms, small and long enough for bulk reading, with all kinds of keys, in all protocols."""
    shared = [np.int64(number) for number in range(9)]
    for size in (3, 60):
        plain = {(number % 9, number % 4, number * 300): number + 1 for number in range(size)}
        scalar = {(o, np.int64(a), p): c for (o, a, p), c in plain.items()}
        every = {(shared[o], shared[a], np.int32(p)): np.int64(c) for (o, a, p), c in plain.items()}
        kinds = [{(o, kind(a - 2), p): c for (o, a, p), c in plain.items()} for kind in (np.int8, np.int16, np.int32)]
        kinds += [{(o, kind(a + 200), p): c for (o, a, p), c in plain.items()} for kind in (np.uint16, np.uint64)]
        book = {2 ** (number + 60): number * 300 for number in range(size)}
        books = [{n: np.int64(n % 40) for n in range(size)}, {np.uint64(n): n + 1 for n in range(3, size)}]
        for protocol in range(3, 6):
            for other in books:
                yield pickle.dumps((plain, other), protocol)
                yield pickletools.optimize(in_short_batches((plain, other), protocol))
        for protocol in range(6):
            yield pickle.dumps((defaultdict(int, plain), {n * 7**n: n for n in range(size)}), protocol)
            yield pickletools.optimize(pickle.dumps((plain, {n: n for n in range(size)}), protocol))
        for table in (plain, scalar, every, *kinds):
            for protocol in range(0 if table is plain else 3, 6):
                yield pickle.dumps(table, protocol)
                yield pickle.dumps((defaultdict(int, table), book), protocol)
                yield pickletools.optimize(pickle.dumps((table, book), protocol))
    for table in every_kind():
        for protocol in range(3, 6):
            yield in_short_batches(table, protocol)
            yield pickletools.optimize(in_short_batches(table, protocol))
    for counts in ((1.5, 1e300), (2**70, 3), (1, 2)):
        for protocol in (0, 1):
            yield pickle.dumps({(2**66 * (n % 3), n, -n): counts[n % len(counts)] for n in range(40)}, protocol)


class ShortBatches(pickle._Pickler):
    """Writes batches of a few entries, so that bulk reading begins after a few."""

    _BATCHSIZE = 9


def in_short_batches(table, protocol):
    file = io.BytesIO()
    ShortBatches(file, protocol).dump(table)
    return file.getvalue()


SWAPPED = {name: np.dtype(">" + name) for name in ("i2", "i4", "i8", "u2", "u4", "u8", "f4", "f8")}


class Swapped:
    """A NumPy number of a machine with the other byte order, which unpickles to a usual one."""

    def __init__(self, value):
        self.value = value

    def __reduce__(self):
        kind = SWAPPED[self.value.dtype.str[1:]]
        return np.int64(0).__reduce__()[0], (kind, np.array(self.value).astype(kind).tobytes())


def every_kind():
    """Tables with NumPy numbers of every kind, alone and mixed, spelled out and referred to, and with other numbers.

    Integers do not stand beside fractions, for a column with fractions is one of fractions.
    """
    for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        kind, limits = np.dtype(name).type, np.iinfo(name)
        numbers = [kind(limits.min), kind(limits.max), *(kind(value) for value in range(3))]
        yield {(n, kind(n % 100), n): kind(1 + n % 90) for n in range(90)}
        yield {(numbers[n % 5], n, numbers[n % 3]): numbers[1 + n % 4] for n in range(90) if n % 4 != 1}
        if limits.bits > 8:
            yield {(n, Swapped(kind(n % 100)), n): Swapped(kind(1 + n % 90)) for n in range(90)}
    for real in (np.float32, np.float64):
        shared = [real(0.1), real(7)]
        yield {(n, np.int64(n % 4), n): real(n + 0.25) for n in range(90)}
        yield {(n, 1, n): (shared[n % 2], Swapped(real(n + 3)), n + 1.5)[n % 3] for n in range(90)}
    mixed = (2, 2**70, np.int8(3), np.uint64(2**63 + 5), np.uint8(200), np.int8(3), 2)
    yield {(n * 2**60, np.int8(-n), -n): mixed[n % 7] for n in range(90)}
    yield {(2 ** (n + 50), -(2 ** (3 * n)), n): 2 ** (n + 7) for n in range(90)}


def opcode_borders(raw):
    return [at for _, _, at in pickletools.genops(raw)] + [len(raw)]


def mutate(raw, draw):
    """Damage as a disk does it, and damage as somebody does it who knows pickles."""
    raw = bytearray(raw)
    borders = opcode_borders(raw)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        kind = draw.randrange(8)
        at = draw.randrange(len(raw))
        first, second = sorted(draw.sample(borders, 2))
        if kind == 0:
            raw[at] = draw.randrange(256)
        elif kind == 1:
            raw[at] ^= 1 << draw.randrange(8)
        elif kind == 2:
            raw[at] = raw[draw.randrange(len(raw))]
        elif kind == 3:
            _change_argument(raw, draw)
        elif kind == 4:
            del raw[first : draw.choice((first + 1, second))]
        elif kind == 5:
            raw[draw.choice(borders) : 0] = raw[first : min(second, first + 40)]
        elif kind == 6:
            raw[first:first] = draw.choice(INSERTED)
        else:
            raw[first:second] = raw[first:second][::-1] if second - first < 3 else raw[second:] + raw[first:second]
        if not raw:
            break
    return bytes(raw)


INSERTED = (
    *(b"q\x00", b"q\x05", b"r\x07\x00\x00\x00", b"p3\n", b"\x94", b"h\x00", b"h\x03", b"h\x06", b"j\x03\x00\x00\x00"),
    *(b"g2\n", b"(", b"u", b"s", b"}", b"0", b"2", b"1", b"K\x95", b"J\x95\x95\x00\x00", b"N", b"b", b"R", b")", b"t"),
    *(b"I01\n", b"I010\n", b"I5L\n", b"L7L\n", b"F1e3\n", b"\x80\x02", b"\x95" + b"\x04" + b"\x00" * 7, b"."),
)
MEMO = ("BINPUT", "LONG_BINPUT", "PUT", "BINGET", "LONG_BINGET", "GET", "BININT1", "BININT")


def _change_argument(raw, draw):
    """Another number for a memo opcode or an integer, in the same room."""
    try:
        places = [(op, at) for op, _, at in pickletools.genops(bytes(raw)) if op.name in MEMO]
    except Exception:  # damaged already
        return
    if places:
        op, at = draw.choice(places)
        raw[at + 1] = ord(draw.choice("0123456789")) if op.name in ("PUT", "GET") else draw.randrange(40)


@pytest.mark.slow
def test_whatever_is_taken_is_what_pickle_loads(tmp_path, oracle):
    draw = random.Random(4)
    files, path, taken = list(valid_files()), tmp_path / "t.pkl", 0
    for number in range(MUTATIONS):
        raw = mutate(draw.choice(files), draw)
        path.write_bytes(raw)
        try:
            mine = ours(path, read_pickled_table if number % IN_A_CHILD == 0 else read_published)
        except AssertionError as error:
            raise AssertionError(f"{error}: {raw!r}") from None
        if mine is not None:
            taken += 1
            theirs = oracle.ask(raw)
            assert same(mine, theirs), f"{raw!r}:\n{mine}\n{theirs}"
    assert MUTATIONS // 40 < taken < MUTATIONS


@pytest.mark.slow
def test_valid_files_are_taken(tmp_path, oracle):
    for number, raw in enumerate(valid_files()):
        (tmp_path / "t.pkl").write_bytes(raw)
        assert same(ours(tmp_path / "t.pkl"), oracle.ask(raw)), f"file {number}: {raw!r}"


@pytest.mark.slow
def test_what_would_run_is_refused_wherever_it_stands(tmp_path):
    mark, path, draw = tmp_path / "ran", tmp_path / "t.pkl", random.Random(5)
    command = f"touch {mark}".encode()
    for raw in list(valid_files())[::5]:  # each starts a process
        at = draw.choice(opcode_borders(raw)[:-1])
        call = b"cos\nsystem\n(X" + struct.pack("<I", len(command)) + command + b"tR0"
        path.write_bytes(raw[:at] + call + raw[at:])
        assert ours(path) is None
    assert not mark.exists()


def entries(*keys):
    """Opcodes of entries, each with a put of its key under the memo number given; enough of them for bulk reading."""
    return b"".join(
        b"K\x01J" + struct.pack("<i", place) + b"K\x02\x87r" + struct.pack("<I", key) + b"K\x05"
        for place, key in enumerate(keys)
    )


NUMPY = b"cnumpy._core.multiarray\nscalar\nq\x01cnumpy\ndtype\nq\x02X\x02\x00\x00\x00i8K\x00K\x01\x87Rq\x03"
STATE = b"(K\x03X\x01\x00\x00\x00<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
NUMBER = b"C\x08\x07\x00\x00\x00\x00\x00\x00\x00\x86R"
FIRST = b"\x80\x03}(" + NUMPY + STATE + NUMBER + b"q\x09K\x01K\x02\x87K\x03"
"""A table that begins with the key (7, 1, 2), whose 7 is memo entry 9; the function is entry 1, the kind entry 3."""
LATER = b"h\x01h\x03C\x08\x08\x00\x00\x00\x00\x00\x00\x00\x86Rq"
REST = entries(*range(60, 160)) + b"u."
CRAFTED = {
    "a key put over another": b"\x80\x03}(" + entries(*range(50), 7, *range(51, 100)) + b"u.",
    "a key put over a number": FIRST + entries(*range(10, 50), 9, *range(51, 100)) + b"h\x09K\x01K\x09\x87K\x01u.",
    "a number put over a number": FIRST + LATER + b"\x09K\x01K\x03\x87K\x03h\x09K\x01K\x04\x87K\x03" + REST,
    "a number put over its kind": FIRST + LATER + b"\x03K\x01K\x03\x87K\x03" + REST,
    "the next number after a higher one": FIRST + b"K\x01K\x02K\x03\x87\x94K\x01" + REST,
    "a text put over another": b"(dp0\n"
    + b"".join(b"(I1\nI%d\nI2\ntp%d\nI3\ns" % (n, n % 40 + 1) for n in range(90))
    + b".",
    "a number asked for before it is put": FIRST
    + b"h\x0cK\x01K\x03\x87K\x03"
    + LATER
    + b"\x0cK\x01K\x04\x87K\x03"
    + REST,
    "one that is put in the same entry": FIRST + b"h\x0cK\x01" + LATER + b"\x0c\x87K\x03" + REST,
    "flags of a kind": FIRST.replace(b"K\x00K\x01\x87R", b"K\x00K\x00\x87R") + REST,
    "a kind without flags": FIRST.replace(b"K\x00K\x01\x87R", b"\x85R") + REST,
    "another state of a kind": FIRST.replace(b"K\x00tb", b"K\x10tb") + REST,
    "a state of another version": FIRST.replace(b"(K\x03X", b"(K\x04X") + REST,
    "a number without the state of its kind": b"\x80\x03}(" + NUMPY + NUMBER + b"q\x09K\x01K\x02\x87K\x03" + REST,
    "a second state of a kind": b"\x80\x03}("
    + NUMPY
    + STATE
    + STATE.replace(b"<", b">")
    + NUMBER
    + b"K\x01K\x02\x87K\x03u.",
    "a default that is two": b"\x80\x02ccollections\ndefaultdict\ncbuiltins\nint\ncbuiltins\nint\n\x86R(" + REST,
    "a truth value equal to an input": b"\x80\x03}(" + REST[:-2] + b"\x88K\x05K\x02\x87K\x05u.",
    "one mapping in a tuple": b"\x80\x02}(" + REST[:-1] + b"\x85.",
    "a mark that a tuple used up": b"}q\x00(t(K\x00K\x00K\x00tq\x01K\x01(K\x01K\x01M,\x01tq\x02K\x02u.",
    "a second protocol": b"\x80\x02\x80\x03}(" + REST,
    "octal or decimal": b"(dp0\n(I1\nI010\nI2\ntI3\ns.",
    "a fraction where a long should be": b"(dp0\n" + b"(I1\nI5\nI2\ntLF1.5\ns" * 20 + b".",
    "a long where none is": b"(dp0\n" + b"(I1\nI5L\nI2\ntI3\ns" * 2 + b".",
    "a count of zero after another": b"\x80\x02}(K\x01K\x01K\x01\x87K\x05K\x01K\x01K\x01\x87K\x00" + REST,
    "a code twice": pickle.dumps(({(1, 2, 3): 4}, {5: 1, 6: 2}), 2).replace(b"K\x06K\x02", b"K\x05K\x02"),
    "a plain number in the memo": b"\x80\x03}(K\x01q\x01K\x02K\x03\x87K\x04h\x01K\x03K\x03\x87K\x04" + REST,
    "a short tuple in the long form": b"\x80\x02}(" + b"(K\x01K\x02K\x03tK\x04" + REST,
    "a frame within a number": pickle.dumps({(1, 149, 2): 3}, 4)[:2] + b"\x95\x04" + b"\x00" * 7 + b"}K\x01K"
    b"\x95\x10" + b"\x00" * 7 + b"K\x02\x87K\x03s.",
    "bytes after a frame": (raw := pickle.dumps({(1, 149, 2): 3}, 4))[:3] + b"\x06" + raw[4:],
    "a short frame before another": b"\x80\x04\x95\x05"
    + b"\x00" * 7
    + b"}(K\x01K\x95\x0a"
    + b"\x00" * 7
    + b"\x02K\x03\x87K\x04u.",
}


@pytest.mark.parametrize("name", CRAFTED)
def test_what_two_readers_could_see_differently_is_refused_or_read_as_pickle_reads_it(tmp_path, oracle, name):
    path = tmp_path / "t.pkl"
    path.write_bytes(CRAFTED[name])
    for read in (read_published, read_pickled_table, read_in_child):
        mine = ours(path, read)
        assert mine is None or same(mine, oracle.ask(CRAFTED[name]))


def test_frames_may_end_within_entries(tmp_path, oracle):
    """They do wherever the writer happened to have 64 KB; all bytes are those of frames but one mark in them."""
    table = {(number * 149, number % 149, number): 149 for number in range(30_000)}
    path = tmp_path / "t.pkl"
    for protocol in (4, 5):
        path.write_bytes(pickle.dumps(table, protocol))
        assert ours(path) == spelling((table, {}))


def test_the_example_of_numpy_numbers_is_taken(tmp_path, oracle):
    raw = FIRST + LATER + b"\x0cK\x01K\x03\x87K\x03h\x09K\x01h\x0c\x87K\x03" + REST
    (tmp_path / "t.pkl").write_bytes(raw)
    assert same(ours(tmp_path / "t.pkl"), oracle.ask(raw))
