import io
import os
import pickle
import pickletools
import struct
import subprocess
import sys
import tracemalloc
from collections import Counter, OrderedDict, defaultdict
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openfield.errors import InvalidInput
from openfield.objectives import load_table
from openfield.objectives.formats import load
from openfield.objectives.pickle import reader as pickles
from openfield.objectives.pickle import unpickle
from openfield.objectives.pickle.reader import read_pickled_table, read_published
from openfield.objectives.pickle.source import OddPickle, Source
from support.objectives.pickles import NUMBERS, REFUSE, read
from support.objectives.reference import dump, wide_tables

KINDS = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)


@pytest.fixture(params=["child", "templates"])
def reader(request, monkeypatch):
    """Entries read by the child process, and by templates where they can be."""
    if request.param == "child":
        monkeypatch.setattr(pickles, "read_published", refuse_form)
    return request.param


def refuse_form(path):
    raise OddPickle


@given(wide_tables, st.integers(0, 5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_reads_what_pickle_wrote(tmp_path, table, protocol):
    assert read(dump(tmp_path / "t.pkl", table, protocol)) == (table, {})


@given(wide_tables, st.dictionaries(st.integers(0, 2**128 - 1), st.integers(0, 2**40), max_size=20), st.integers(2, 5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_reads_pairs_with_code_books(tmp_path, table, book, protocol):
    path = dump(tmp_path / "t.pkl", (defaultdict(int, table), book), protocol)
    assert read(path) == (table, book)


def long_table(size, part):
    random = np.random.default_rng(0)
    obs, nexts = random.integers(0, 100_000, (2, size)).tolist()
    actions = random.integers(0, 18, size).tolist()
    counts = random.zipf(1.6, size).clip(max=2**40).tolist()
    return {(part(o), part(a), part(p)): c for o, a, p, c in zip(obs, actions, nexts, counts, strict=True)}


@pytest.mark.parametrize("protocol", range(6))
def test_reads_long_tables(tmp_path, reader, protocol):
    table = long_table(20_000, int)
    assert read(dump(tmp_path / "t.pkl", table, protocol))[0] == table


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_reads_numpy_numbers(tmp_path, reader, kind, protocol):
    table = {(o, kind(a), p): c for (o, a, p), c in long_table(3_000, int).items()}
    assert read(dump(tmp_path / "t.pkl", table, protocol))[0] == table


@pytest.mark.parametrize("protocol", [3, 4])
def test_reads_numpy_numbers_everywhere(tmp_path, reader, protocol):
    table = {key: np.int64(count) for key, count in long_table(5_000, np.int64).items()}
    assert read(dump(tmp_path / "t.pkl", table, protocol))[0] == table


@pytest.mark.parametrize("protocol", [3, 4])
def test_follows_numpy_numbers_that_are_shared(tmp_path, reader, protocol):
    shared = [np.int64(number) for number in range(100_000)]
    table = {(shared[o], shared[a], shared[p]): c for (o, a, p), c in long_table(20_000, int).items()}
    assert read(dump(tmp_path / "t.pkl", table, protocol))[0] == table


BOOKS = {
    "numpy indices": {2**90 + n: np.int64(n) for n in range(3_000)},
    "numpy codes": {np.uint64(2**63 + n): n for n in range(3_000)},
    "shared indices": dict(enumerate([np.int32(1), np.int32(2)] * 1_500)),
    "small": {n: n % 7 for n in range(3_000)},
    "wide and narrow": {2 ** (n % 1_900) + n: -n for n in range(3_000)},
}


@pytest.mark.parametrize("name", BOOKS)
@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("optimized", [False, True])
def test_reads_long_code_books(tmp_path, name, protocol, optimized):
    if "numpy" in name or "shared" in name:
        protocol = max(protocol, 3)
    raw = pickle.dumps(({(1, 2, 3): 4}, BOOKS[name]), protocol)
    (tmp_path / "t.pkl").write_bytes(pickletools.optimize(raw) if optimized else raw)
    assert read(tmp_path / "t.pkl") == ({(1, 2, 3): 4}, BOOKS[name])


@pytest.mark.parametrize("protocol", range(6))
def test_reads_a_mapping_with_a_default(tmp_path, protocol):
    table = long_table(2_000, int)
    path = dump(tmp_path / "t.pkl", defaultdict(int, table), protocol)
    assert load_table(path).counts.total == sum(table.values())
    path.write_bytes(pickletools.optimize(path.read_bytes()))
    assert read(path)[0] == table


@pytest.mark.parametrize("protocol", [1, 2])
def test_reads_integers_in_digits_among_others(tmp_path, protocol):
    """As Python 2 wrote those beyond 32 bits."""
    table = {
        (number if number % 3 else 2**33 + number, number % 5, -number): 10 ** (number % 30) for number in range(4_000)
    }
    key = (b"(%sK%cJ%st%s", b"%sK%cJ%s\x87%s")[protocol - 1]
    items = [key % (numeral(o), a, struct.pack("<i", p), b"L%dL\n" % count) for (o, a, p), count in table.items()]
    (tmp_path / "t.pkl").write_bytes((b"}(", b"\x80\x02}(")[protocol - 1] + b"".join(items) + b"u.")
    assert read(tmp_path / "t.pkl")[0] == pickle.loads((tmp_path / "t.pkl").read_bytes()) == table


def numeral(number):
    return b"J" + struct.pack("<i", number) if number < 2**31 else b"I%d\n" % number


def test_reads_the_name_numpy_1_wrote(tmp_path, reader):
    table = {(o, np.int64(a), p): c for (o, a, p), c in long_table(3_000, int).items()}
    raw = pickle.dumps(table, 3).replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")
    assert b"_core" not in raw
    (tmp_path / "t.pkl").write_bytes(raw)
    assert read(tmp_path / "t.pkl")[0] == table


def test_reads_big_endian_and_fractional_numbers(tmp_path):
    table = {(1, np.array([7], ">i4")[0], 2): np.float64(1.5), (2, 3, 4): 2, (2, 3, 5): np.float32(0.25)}
    assert read(dump(tmp_path / "t.pkl", table))[0] == {(1, 7, 2): 1.5, (2, 3, 4): 2, (2, 3, 5): 0.25}


def test_reads_pickles_without_memo(tmp_path, reader):
    table = long_table(20_000, int)
    (tmp_path / "t.pkl").write_bytes(pickletools.optimize(pickle.dumps(table, 2)))
    assert read(tmp_path / "t.pkl")[0] == table


def test_reads_one_giant_batch(tmp_path, reader):
    """Some writers put all entries between one mark and one SETITEMS."""
    table = {(number, 1, number): 3 for number in range(30_000)}
    items = b"".join(
        b"J" + struct.pack("<i", o) + b"K" + bytes((a,)) + b"J" + struct.pack("<i", p) + b"\x87K" + bytes((c,))
        for (o, a, p), c in table.items()
    )
    (tmp_path / "t.pkl").write_bytes(b"\x80\x02}(" + items + b"u.")
    assert read(tmp_path / "t.pkl")[0] == table


@pytest.fixture(scope="module")
def giants():
    """Tables of every kind with more entries than a batch has."""
    shared = [np.int64(number) for number in range(50)]
    return {
        "large": {(2**70 + n, -n, n): 2**80 + n for n in range(9_000)},
        "fractions": {(n, n % 5, -n): n + 0.5 for n in range(9_000)},
        "numpy": {(np.int8(n % 100), np.uint64(2**63 + n), n): np.float32(n) for n in range(9_000)},
        "shared": {(shared[n % 50], n, shared[n % 7]): 1 for n in range(9_000)},
        "book": ({(1, 2, 3): 4}, {2**120 + n: n for n in range(9_000)}),
        "numpy book": ({(1, 2, 3): 4}, {np.uint64(n): shared[n % 50] for n in range(9_000)}),
    }


@pytest.mark.parametrize("protocol", range(1, 6))
@pytest.mark.parametrize("name", ["large", "fractions", "numpy", "shared", "book", "numpy book"])
def test_reads_one_giant_batch_of_any_kind(tmp_path, monkeypatch, giants, protocol, name):
    monkeypatch.setattr(pickle._Pickler, "_BATCHSIZE", 10**9)
    file = io.BytesIO()
    pickle._Pickler(file, max(protocol, 3) if "numpy" in name or name == "shared" else protocol).dump(giants[name])
    (tmp_path / "t.pkl").write_bytes(file.getvalue())
    expected = giants[name] if isinstance(giants[name], tuple) else (giants[name], {})
    assert read(tmp_path / "t.pkl") == expected


def test_a_batch_that_ends_as_something_else_is_no_batch(tmp_path):
    """It is a tuple or a mapping of all of it, and no entries."""
    entries = b"".join(b"K\x01J" + struct.pack("<i", n) + b"K\x02\x87K\x05" for n in range(3_000))
    for end in (b"K\x01K\x02K\x03tK\x04s.", b"K\x07K\x08d\x86."):
        (tmp_path / "t.pkl").write_bytes(b"\x80\x02}(" + entries + end)
        with pytest.raises(InvalidInput, match=r"t\.pkl: key|t\.pkl: code"):
            load_table(tmp_path / "t.pkl")
    raw = b"\x80\x02}(" + entries + b"d."
    (tmp_path / "t.pkl").write_bytes(raw)
    assert read(tmp_path / "t.pkl") == (pickle.loads(raw), {})


def test_reads_a_table_of_two_entries_as_a_table(tmp_path):
    table = {(1, 2, 3): 4, (5, 6, 7): 8}
    assert read(dump(tmp_path / "t.pkl", table)) == (table, {})


GOOD = pickle.dumps({(number, 0, number): 1 for number in range(30_000)}, 3)


class Evil:
    def __init__(self, call, *arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


def colliding_entry(number):
    """Integers that differ by 2**61 - 1 have one hash: a mapping of them takes quadratic time to build."""
    return b"\x8a\x0a" + (number * (2**61 - 1)).to_bytes(10, "little") + b"K\x00K\x00\x87K\x01"


def hostile_files(mark):
    """Pickles that would create `mark`, or eat time and memory, if anything in them ran."""
    command = f"touch {mark}"
    good = GOOD
    yield "batches without an entry", b"\x80\x02}" + b"(u" * 400_000 + b"."
    yield "system", pickle.dumps(Evil(os.system, command))
    yield "value", pickle.dumps({(1, 2, 3): Evil(os.system, command)})
    yield "key", pickle.dumps({(1, Evil(os.system, command), 3): 1})
    yield "eval", pickle.dumps(Evil(eval, f"open({str(mark)!r}, 'w')"))
    yield "after a good table", good[:-1] + b"0cos\nsystem\n(S'" + command.encode() + b"'\ntR."
    yield (
        "in the middle",
        good[:200_000] + b"cos\nsystem\n(X" + struct.pack("<I", len(command)) + command.encode() + b"tR",
    )
    yield "instance", b"(S'" + command.encode() + b"'\nios\nsystem\n."
    yield "object", b"(cos\nsystem\nS'" + command.encode() + b"'\no."
    yield (
        "dotted",
        b"\x80\x04\x8c\x05numpy\x8c\x0ccore.os.system\x93\x8c" + bytes((len(command),)) + command.encode() + b"\x85R.",
    )
    yield "dotted dtype", b"\x80\x04\x8c\x05numpy\x8c\x0edtype.__init__\x93)R."
    yield "int call", b"cbuiltins\nint\n(X\x03\x00\x00\x00123tR."
    yield "defaultdict of system", b"ccollections\ndefaultdict\n(cos\nsystem\ntR."
    yield "persistent", b"Pabc\n."
    yield "binary persistent", b"K\x01Q."
    for code in (b"\x82\x01", b"\x83\x01\x00", b"\x84\x01\x00\x00\x00"):
        yield f"extension {code!r}", code + b"."
    yield "new object", b"\x80\x02cbuiltins\nint\n)\x81."
    yield "get far away", b"\x80\x03j\xff\xff\xff\xff."
    yield "long text", b"X\xff\xff\xff\x7f" + b"a" * 100 + b"."
    yield "long bytes", b"\x8e" + struct.pack("<Q", 2**60) + b"."
    yield "long integer", b"\x8b\xff\xff\xff\x7f" + b"\x01" * 100 + b"."
    yield "digits", b"L" + b"9" * 900_000 + b"L\n."
    yield "code books of NumPy numbers", pickle.dumps(({(1, 0, 1): 1}, {n: np.int64(n) for n in range(27_000)}), 3)[:-1]
    yield "codes in batches", b"\x80\x02}" + b"(K\x01K\x02u" * 160_000
    yield "names", b"\x80\x03}(" + b"cbuiltins\nint\n" * 60_000
    yield "numbers of many kinds", b"\x80\x03cnumpy\ndtype\nq\x01" + b"h\x01X\x02\x00\x00\x00i8K\x00K\x01\x87R" * 60_000
    yield "marks", b"(" * 1_000_000 + b"."
    yield "numbers", b"K\x01" * 500_000 + b"."
    yield "tuples in tuples", b"K\x01" + b"\x85" * 1_000_000 + b"."
    yield "laughs", b"\x80\x03K\x01" + b"2\x86" * 400_000 + b"."
    yield "puts", b"\x80\x03}" + b"r\x01\x00\x00\x00" * 200_000 + b"K\x01."
    yield "frames", b"\x80\x04" + b"\x95\xff\xff\xff\xff\xff\xff\xff\xff" * 100_000
    yield "empty frames", b"\x80\x04" + b"\x95\x00\x00\x00\x00\x00\x00\x00\x00" * 110_000
    yield "collisions", b"\x80\x02}(" + b"".join(map(colliding_entry, range(40_000))) + b"u.x"
    yield "one at a time", b"\x80\x02}" + b"K\x01K\x02K\x03\x87K\x04s" * 100_000 + b"0."
    yield "nested maps", b"}K\x01" * 300_000
    yield "list", pickle.dumps([1, 2, 3])
    yield "a Counter of a text", b"\x80\x02ccollections\nCounter\nX\x03\x00\x00\x00abc\x85R."
    yield "a Counter of nothing", b"\x80\x02ccollections\nCounter\n)R."
    yield "a Counter of system", b"\x80\x02ccollections\nCounter\ncos\nsystem\n\x85R."
    counter = pickle.dumps(Counter({(1, 2, 3): 4}), 2)
    yield "entries after a Counter", counter[:-1] + b"K\x01K\x02K\x05\x87K\x04s."
    yield "a batch after a Counter", counter[:-1] + b"(K\x01K\x02K\x05\x87K\x04u."
    yield "a Counter of a Counter", b"\x80\x02ccollections\nCounter\n" + counter[2:-1] + b"\x85R."
    yield "a Counter of a pair", b"\x80\x02ccollections\nCounter\n}}\x86R."
    yield "a state for a Counter", counter[:-1] + b"}b."
    yield "an OrderedDict of pairs", b"\x80\x02ccollections\nOrderedDict\n}\x85R."
    yield "a state for an OrderedDict", pickle.dumps(OrderedDict({(1, 2, 3): 4}), 2)[:-1] + b"}b."
    yield "a dotted Counter", b"\x80\x04\x8c\x0bcollections\x8c\x0eCounter.update\x93}\x85R."
    yield "a chain of maps", b"\x80\x02ccollections\nChainMap\n}\x85R."
    yield "a NumPy truth value of 2", pickle.dumps({(1, np.True_, 2): 3}, 4).replace(b"C\x01\x01", b"C\x01\x02")
    yield "array", pickle.dumps(np.arange(10))
    yield "short keys", pickle.dumps({(1, 2): 3})
    yield "text keys", pickle.dumps({("a", 1, 2): 3})
    yield "fractional keys", pickle.dumps({(1.5, 1, 2): 3})
    yield "truth values", pickle.dumps({(True, 1, 2): 3})
    yield "truth counts", pickle.dumps({(1, 1, 2): True})
    yield "no counts", pickle.dumps({(1, 1, 2): None})
    yield "text counts", pickle.dumps({(1, 1, 2): "3"})
    yield "three parts", pickle.dumps(({(1, 2, 3): 4}, {5: 6}, {}))
    yield "book first", pickle.dumps(({5: 6}, {(1, 2, 3): 4}))
    yield "mixed keys", pickle.dumps({(1, 2, 3): 4, 5: 6})
    yield "trailing", pickle.dumps({(1, 2, 3): 4}) + b"more"
    yield "nothing", b""
    yield "text", b"hello, world"
    for cut in (1, 10, 1000, len(good) // 2, len(good) - 1):
        yield f"cut at {cut}", good[:cut]


def all_hostile_files(mark):
    """Those that do not begin as binary pickles do also behind such a beginning, to get past the first look."""
    for name, raw in hostile_files(mark):
        yield name, raw
        if raw[:1] not in (b"\x80", b""):
            yield f"{name}, binary", b"\x80\x02" + raw


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The files by name, and what some of them would make if anything in them ran."""
    mark = tmp_path_factory.mktemp("hostile") / "ran"
    return dict(all_hostile_files(mark)), mark


@pytest.mark.parametrize("name", [name for name, _ in all_hostile_files("x")])
def test_refuses_hostile_files_and_runs_nothing(tmp_path, hostile, name):
    from openfield.objectives import load_table

    files, mark = hostile
    raw = files[name]
    assert len(raw) <= 1_000_010
    path = tmp_path / "bad.pkl"
    path.write_bytes(raw)
    with pytest.raises(InvalidInput, match=r"bad\.pkl") as caught:
        assert load_table(path).counts
    assert "\n" not in str(caught.value)
    assert not mark.exists()


@pytest.mark.parametrize("name", ["marks", "numbers", "laughs", "puts", "long bytes", "collisions"])
def test_refuses_hostile_files_in_little_memory(tmp_path, hostile, name):
    from openfield.objectives import load_table

    path = tmp_path / "bad.pkl"
    path.write_bytes(hostile[0][name])
    tracemalloc.start()
    with pytest.raises(InvalidInput):
        load_table(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 48e6


LARGE_IDS = b"K\x01K\x02\x8a\x09%s\x01\x87K\x01"


@pytest.mark.parametrize(("unit", "parts", "size"), [(NUMBERS, 3, 250_000), (LARGE_IDS, 1, 800_000)])
def test_refuses_large_files_in_little_memory(tmp_path, unit, parts, size):
    """With NumPy numbers and with ids beyond 64 bits: the child takes what a table of this size may."""
    start = (
        b"\x80\x04}\x94(cnumpy._core.multiarray\nscalar\n\x94cnumpy\ndtype\n\x94X\x02\x00\x00\x00i8K\x00K\x01\x87R\x94"
        b"(K\x03X\x01\x00\x00\x00<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tbC\x08aaaaaaaa\x86RK\x01K\x02\x87K\x01"
    )
    units = b"".join(unit % ((struct.pack("<Q", number),) * parts) for number in range(size))
    (tmp_path / "t.pkl").write_bytes(start + units + b"ucos\nsystem\n.")
    said, peak = subprocess.check_output(
        [sys.executable, "-c", REFUSE, str(tmp_path / "t.pkl")], text=True
    ).splitlines()
    assert "names 'os.system'" in said
    assert int(peak) < 64_000


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="memory cannot be limited")
def test_the_child_takes_no_more_memory_and_time_than_it_may(tmp_path, monkeypatch):
    path = dump(tmp_path / "t.pkl", long_table(60_000, int), 1)
    assert len(read_pickled_table(path)[0].obs) > 59_000
    monkeypatch.setattr(pickles, "MEMORY_PER_BYTE", 0)
    monkeypatch.setattr(pickles, "BASE_MEMORY", 30_000_000)
    with pytest.raises(InvalidInput, match=r"t\.pkl: takes more memory.*pickle\.dump\(table, file, 4\)"):
        load_table(path)
    monkeypatch.undo()
    slow = b"\x80\x02}(" + b"".join(map(colliding_entry, range(40_000))) + b"u."
    path.write_bytes(slow)
    with pytest.raises(InvalidInput, match=r"t\.pkl: takes longer"):
        pickles.read_in_child(path)


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_a_system_without_a_limit_of_memory_limits_the_size(tmp_path, monkeypatch, platform):
    path = dump(tmp_path / "t.pkl", long_table(2_000, int), 1)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(pickles, "MAX_UNLIMITED", 20_000)
    with pytest.raises(InvalidInput, match=r"t\.pkl: this system cannot limit the memory"):
        load_table(path)
    assert not unpickle.limit_process(1 << 30, 10, 1 << 30)
    assert unpickle.read(path, limited=False)[0] == pickle.loads(path.read_bytes())


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{}\n",
        b"x" * 20_000,
        b'{"columns": {"obs": {"int64": [8]}}}\n' + bytes(8),
        b'{"columns": {"obs": {"object": [8]}, "action": {}, "next_obs": {}, "counts": {}}}\n' + bytes(8),
        b'{"columns": {"obs": {"int64": [8, 8]}}}\n' + bytes(16),
        b'{"columns": {"obs": {"int64": [-1]}}}\n',
        b'{"columns": {"obs": {"int64": [7]}}}\n' + bytes(7),
        b'{"columns": {"obs": {"int64": [99999999999]}}}\n',
        b'{"columns": {"obs": {"integers": [1]}}}\n1',
        b'{"columns": %s}\n' % b'{"obs": {"int64": [8]}, "action": {"int64": [8]}, "next_obs": {"int64": [0]}, '
        b'"counts": {"int64": [8]}}' + bytes(24),
    ],
)
def test_what_the_child_answers_is_not_trusted(tmp_path, answer):
    with pytest.raises(InvalidInput, match=r"t\.pkl: ") as caught:
        pickles._read_answer(io.BytesIO(answer), 0, tmp_path / "t.pkl")
    assert "\n" not in str(caught.value)


def test_the_reason_of_the_child_is_one_line(tmp_path):
    with pytest.raises(InvalidInput, match=r"t\.pkl: a\?b\."):
        pickles._read_answer(io.BytesIO(b'{"refused": "a\\nb"}\n'), unpickle.REFUSED, tmp_path / "t.pkl")


def test_names_cannot_be_changed(tmp_path):
    """A state for a stand-in, which would be set on it if it were a class or a function."""
    for name in (b"cnumpy\ndtype\n", b"ccollections\nCounter\n", b"cbuiltins\nint\n"):
        (tmp_path / "t.pkl").write_bytes(b"\x80\x02" + name + b"}X\x05\x00\x00\x00_make" + b"K\x01s\x86b.")
        with pytest.raises(InvalidInput, match=r"t\.pkl: "):
            load_table(tmp_path / "t.pkl")
        (tmp_path / "t.pkl").write_bytes(b"\x80\x02" + name + b"N}X\x05\x00\x00\x00_makeK\x01s\x86b.")
        with pytest.raises(InvalidInput, match="a state for something that has none"):
            load_table(tmp_path / "t.pkl")


def test_a_memo_number_takes_no_room(tmp_path):
    (tmp_path / "t.pkl").write_bytes(b"\x80\x03}r\xff\xff\xff\xff(K\x01K\x02K\x03\x87K\x01u.")
    tracemalloc.start()
    assert read(tmp_path / "t.pkl") == ({(1, 2, 3): 1}, {})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6


@pytest.mark.parametrize("protocol", [0, 1, 2])
def test_reads_numpy_numbers_of_old_protocols(tmp_path, protocol):
    table = {(n, np.int64(n % 7), np.uint8(n % 200)): np.float64(n + 0.5) for n in range(500)}
    assert read(dump(tmp_path / "t.pkl", table, protocol))[0] == table


def test_says_what_was_refused_and_where(tmp_path):
    path = dump(tmp_path / "bad.pkl", Evil(os.system, "true"), 3)
    with pytest.raises(InvalidInput, match=r"bad\.pkl: it names 'posix\.system'.*nothing was run\."):
        read(path)


@pytest.mark.slow
@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100)
def test_damage_is_refused_or_read_never_worse(tmp_path, data):
    table = {(o, np.int64(o % 3), o + 1): o for o in range(1, 40)}
    raw = bytearray(pickle.dumps((defaultdict(int, table), {2**100: 1}), data.draw(st.integers(3, 4))))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "t.pkl").write_bytes(raw)
    with suppress(InvalidInput, AssertionError):  # the latter: a key that now occurs twice
        read(tmp_path / "t.pkl")


@pytest.mark.slow
@given(st.binary(max_size=60), st.integers(0, 5))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=100)
def test_garbage_is_refused(tmp_path, garbage, protocol):
    (tmp_path / "t.pkl").write_bytes(bytes((0x80, protocol)) + garbage)
    with suppress(InvalidInput):
        assert read(tmp_path / "t.pkl")[1] == {}


def test_reads_in_bounded_memory(tmp_path):
    path = dump(tmp_path / "t.pkl", long_table(200_000, int))
    tracemalloc.start()
    rows = sum(len(piece.obs) for piece in read_published(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows > 190_000
    assert peak < 12e6


def test_source_takes_frames_out():
    raw = pickle.dumps({(number, 0, number): 1 for number in range(50_000)}, 4)
    source = Source(io.BytesIO(raw))
    at, found, borders = source.refill(0), b"", 0
    while at < len(source.data):
        end = source.borders[0] if source.borders else len(source.data)
        borders += bool(source.borders)
        found += source.data[at:end]
        source.pass_borders(end)
        at = source.refill(end)
    frames = [argument for opcode, argument, _ in pickletools.genops(raw) if opcode.name == "FRAME"]
    assert len(frames) > 3
    assert len(found) == len(raw) - 9 * len(frames)
    assert borders == len(frames)


def test_ids_that_share_a_hash_are_ranked_all_the_same(tmp_path):
    path = tmp_path / "t.pkl"
    path.write_bytes(pickle.dumps({(number * (2**61 - 1), 0, 0): number for number in range(1, 3000)}))
    table = load_table(path)
    assert [table.ids[rank] for rank in table.obs[np.argsort(table.count)]] == [
        number * (2**61 - 1) for number in range(1, 3000)
    ]


def test_a_size_that_is_only_claimed_takes_no_memory(tmp_path):
    path = tmp_path / "big.pkl"
    path.write_bytes(b"\x80\x04}")
    os.truncate(path, 1 << 42)
    with pytest.raises(InvalidInput, match=r"big\.pkl: the pickle is cut short or damaged"):
        load_table(path)


def test_a_table_too_large_for_memory_says_how_to_go_on(tmp_path, monkeypatch):
    def lack(path):
        raise MemoryError

    monkeypatch.setattr(load, "read_pickled_table", lack)
    with pytest.raises(InvalidInput, match=r"t\.pkl: too large for memory.*openfield objectives convert"):
        load_table(dump(tmp_path / "t.pkl", {(1, 2, 3): 4}))


@pytest.mark.parametrize("cut", [10, 389_734, -1])
def test_a_file_that_is_cut_short_says_so(tmp_path, cut):
    raw = pickle.dumps({(number, 0, number): 1 for number in range(60_000)}, 4)[:cut]
    (tmp_path / "t.pkl").write_bytes(raw)
    with pytest.raises(InvalidInput, match=r"t\.pkl: the pickle is cut short.*truncated"):
        load_table(tmp_path / "t.pkl")
