"""Entries read by templates are what pickle.load makes of them, wherever windows, frames and wrong guesses fall."""

import pickle
import pickletools
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import SLOWNESS
from openfield.errors import InvalidInput
from openfield.objectives import load_table
from openfield.objectives.pickle import reader as pickles
from openfield.objectives.pickle import source
from openfield.objectives.pickle.source import OddPickle
from openfield.objectives.pickle.template_reader import TemplateReader
from openfield.objectives.pickle.templates import Memo, learn, learn_tail
from support.objectives.pickles import NUMBERS, REFUSE, read

TRICKY = b"\x87r\x94qKJMhj\x8aC\x86Ru(\x00\x01\xff"
"""Opcodes that entries are made of, and a few other bytes."""
tricky_numbers = st.lists(st.sampled_from(TRICKY), min_size=1, max_size=4).map(
    lambda found: int.from_bytes(bytes(found), "little", signed=True)
)
makers = st.sampled_from([int, int, np.int8, np.int16, np.int32, np.int64, np.uint16, np.uint32, np.uint64, np.float64])


@pytest.fixture
def used(monkeypatch):
    """How many entries were read by templates."""
    sizes, usual = [], TemplateReader.read

    def noted(self, *arguments):
        stretch = usual(self, *arguments)
        sizes.append(0 if stretch is None else len(stretch.rows.obs))
        return stretch

    monkeypatch.setattr(TemplateReader, "read", noted)
    return sizes


def loaded(path):
    return {tuple(map(int, key)): count for key, count in pickle.loads(path.read_bytes()).items()}


def save(path, table, protocol, *, optimized=False):
    raw = pickle.dumps(table, protocol)
    path.write_bytes(pickletools.optimize(raw) if optimized else raw)
    return path


def table_of(part, action, count, numbers, size):
    """Keys that differ, with numbers of every width; those of NumPy are made anew for each entry."""
    parts = [part(n) if part is not int else numbers[n % len(numbers)] + n for n in range(size)]
    return {(parts[n], action(n % 99), n * 400): count(1 + n % 120) for n in range(size)}


@given(makers, makers, makers, st.lists(st.integers(-(2**63), 2**63), min_size=1, max_size=9), st.data())
@settings(suppress_health_check=[SLOWNESS, HealthCheck.function_scoped_fixture], max_examples=60)
def test_reads_numbers_of_all_kinds_and_widths(tmp_path, part, action, count, numbers, data):
    part, action = (int if kind in (np.float64, np.int8) else kind for kind in (part, action))
    plain = part is action is count is int
    table = table_of(part, action, count, numbers, data.draw(st.integers(20, 700)))
    protocol, optimized = data.draw(st.integers(2 if plain else 3, 5)), data.draw(st.booleans())
    path = save(tmp_path / "t.pkl", table, protocol, optimized=optimized)
    assert read(path)[0] == loaded(path) == table


@given(st.lists(st.tuples(tricky_numbers, tricky_numbers), min_size=30, max_size=300, unique=True), st.data())
@settings(suppress_health_check=[SLOWNESS, HealthCheck.function_scoped_fixture], max_examples=60)
def test_is_not_misled_by_numbers_that_look_like_opcodes(tmp_path, pairs, data):
    action = data.draw(st.sampled_from([int, np.int64, np.int32]))
    table = {(o, action(o & 255), p): abs(p) for o, p in pairs}
    protocol = data.draw(st.integers(2 if action is int else 3, 5))
    path = save(tmp_path / "t.pkl", table, protocol, optimized=data.draw(st.booleans()))
    assert read(path)[0] == loaded(path) == table


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("action", [int, np.int64])
@pytest.mark.parametrize("optimized", [False, True])
def test_reads_nearly_everything_that_is_written(tmp_path, used, protocol, action, optimized):
    """With ids of three widths, of which the bytes of the widest are often those of opcodes."""
    table = {(n * 0x8701 % 0x1000000, action(n % 18), n * 3): 1 + n % 300 for n in range(30_000)}
    path = save(tmp_path / "t.pkl", table, max(protocol, 3 if action is not int else 2), optimized=optimized)
    assert read(path)[0] == loaded(path) == table
    assert sum(used) > 29_000


@pytest.mark.parametrize("block", [1 << 13, 10_007, 20_011, 1 << 15])
@pytest.mark.parametrize("protocol", [3, 4])
def test_windows_end_within_entries(tmp_path, monkeypatch, used, block, protocol):
    monkeypatch.setattr(source, "BLOCK", block)
    monkeypatch.setattr(pickles, "BLOCK", block)
    for action, count in ((int, int), (np.int16, np.float64)):
        table = {(n, action(n % 7), n * 50): count(n + 1) for n in range(9_000)}
        assert read(save(tmp_path / "t.pkl", table, protocol))[0] == table
    assert sum(used) > 15_000


def framed(body, border):
    """A pickle of protocol 4 whose second frame begins at a place of its body."""
    parts = (body[:border], body[border:])
    return b"\x80\x04" + b"".join(b"\x95" + struct.pack("<Q", len(part)) + part for part in parts)


@pytest.mark.parametrize("action", [int, np.int32])
def test_frames_begin_where_opcodes_do(tmp_path, used, action):
    table = {(n * 0x9501, action(n % 18), n * 3): 1 + n for n in range(9_000)}
    raw = pickle.dumps(table, 4)
    marks = [at for code, _, at in pickletools.genops(raw) if code.name == "FRAME"]
    body = b"".join(raw[at + 9 : end] for at, end in zip(marks, [*marks[1:], len(raw)], strict=True))
    opcodes = {at - 2 for _, _, at in pickletools.genops(b"\x80\x04" + body)}
    path, start = tmp_path / "t.pkl", body.index(b"u(", 66_000) - 30
    for border in range(start, start + 70):
        path.write_bytes(framed(body, border))
        if border in opcodes:
            assert read(path)[0] == table
        else:
            with pytest.raises(OddPickle):
                list(pickles.read_published(path))
    assert sum(used) > 70 * 3_000


@pytest.mark.parametrize("protocol", [3, 4])
def test_numbers_read_by_templates_can_be_asked_for(tmp_path, used, protocol):
    fresh = [np.int64(n % 50) for n in range(5_000)]
    reals = [np.float32(n + 0.5) for n in range(5_000)]
    table = {(n, fresh[n], n): reals[n] for n in range(5_000)}
    table |= {(n, fresh[n * 7 % 5_000], n): reals[n * 11 % 5_000] for n in range(6_000, 8_000)}
    path = save(tmp_path / "t.pkl", table, protocol)
    assert read(path)[0] == loaded(path) == table
    assert sum(used) >= 3_000


def test_numbers_beyond_63_bits_are_left_to_others(tmp_path, used):
    table = {(n, np.uint64(n if n % 1_000 else 2**64 - 1 - n), n): 1 for n in range(6_000)}
    assert read(save(tmp_path / "t.pkl", table, 4))[0] == table
    assert 900 < sum(used) < 6_000


def test_memo_numbers_rise_in_the_published_form(tmp_path):
    entries = [
        b"K\x01J" + struct.pack("<i", n) + b"K\x02\x87r" + struct.pack("<I", n + 1) + b"K\x05" for n in range(3_000)
    ]
    path = tmp_path / "t.pkl"
    path.write_bytes(b"\x80\x03}(" + b"".join(entries) + b"u.")
    assert len(read(path)[0]) == 3_000
    for wrong in (1_500, 2_999):
        entries[wrong] = entries[wrong].replace(b"r" + struct.pack("<I", wrong + 1), b"r" + struct.pack("<I", wrong))
        path.write_bytes(b"\x80\x03}(" + b"".join(entries) + b"u.")
        with pytest.raises(OddPickle):
            list(pickles.read_published(path))
        assert read(path)[0] == loaded(path)


@pytest.mark.parametrize("odd", [b"N", b"G" + bytes(8), b"h\x05", b"X\x01\x00\x00\x00a"])
def test_what_is_no_key_of_integers_is_refused_among_those_that_are(tmp_path, odd):
    some = b"".join(b"K\x01M" + struct.pack("<H", n) + b"K\x02\x87K\x05" for n in range(2_000))
    path = tmp_path / "t.pkl"
    path.write_bytes(b"\x80\x03}(" + some + odd + b"K\x01K\x02\x87K\x05" + some + b"u.")
    with pytest.raises(InvalidInput, match=r"t\.pkl: "):
        load_table(path)


def test_a_template_is_what_is_fixed_and_what_is_not():
    plain = learn(b"M\x01\x02K\x07", 2, Memo())
    assert (plain.length, [field.offset for field in plain.numbers], plain.puts) == (5, [1, 4], ())
    tail = learn_tail(b"\x94\x8a\x05abcde", Memo())
    assert (tail.length, tail.first, tail.numbers[0].unused, tail.implicit) == (8, 0x94, 24, (True,))
    for none in (b"", b"N", b"\x8a\x00", b"\x8a\x09", b"h\x01h\x02C\x08", b"I5\n", b"G" + bytes(8)):
        assert learn(none, 1, Memo()) is None
    assert learn_tail(b"G" + bytes(8), Memo()).length == 9


PLAIN = b"J%sK\x07J\x01\x02\x03\x04\x87\x94K\x01"


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "parts"), [(PLAIN, 1), (NUMBERS, 3)])
def test_refuses_files_of_more_than_100_mb_in_the_memory_of_their_rows(tmp_path, unit, parts):
    """Twelve bytes and more of the file make a row of sixteen, which is kept until the file is refused."""
    start = (
        b"\x80\x04}\x94(cnumpy._core.multiarray\nscalar\n\x94cnumpy\ndtype\n\x94X\x02\x00\x00\x00i8K\x00K\x01\x87R\x94"
        b"(K\x03X\x01\x00\x00\x00<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tbC\x08aaaaaaaa\x86RK\x01K\x02\x87K\x01"
    )
    form = "<I" if parts == 1 else "<Q"
    units = b"".join(unit % ((struct.pack(form, number),) * parts) for number in range(5_000))
    with (tmp_path / "t.pkl").open("wb") as file:
        file.write(start)
        for _ in range(120_000_000 // len(units)):
            file.write(units)
        file.write(b"ucos\nsystem\n.")
    said, peak = subprocess.check_output(
        [sys.executable, "-c", REFUSE, str(tmp_path / "t.pkl")], text=True
    ).splitlines()
    assert "names 'os.system'" in said
    assert int(peak) < 64_000 + 160_000
