"""Pickles that are right but rare, and disks that are full, give tables or one line that says why not."""

import pickle
import pickletools
import random
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import pytest

from openfield.errors import InvalidInput
from openfield.objectives import evaluate, load_table
from openfield.objectives.pickle import memo
from openfield.objectives.pickle.reader import read_pickle


def save(path, table, protocol=4):
    path.write_bytes(pickle.dumps(table, protocol))
    return path


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("make", [Counter, OrderedDict, lambda table: defaultdict(int, table)])
def test_mappings_of_the_standard_library_are_tables(tmp_path, make, protocol):
    counts = {(number % 50, number % 3, number): number + 1 for number in range(3_000)}
    plain = load_table(save(tmp_path / "plain.pkl", counts, protocol))
    table = load_table(save(tmp_path / "t.pkl", make(counts), protocol))
    assert all(np.array_equal(one, other) for one, other in zip(table.columns, plain.columns, strict=True))
    both = load_table(save(tmp_path / "b.pkl", (make(counts), make({2**100 + n: n for n in range(40)})), protocol))
    assert both.book.codes == [2**100 + n for n in range(40)]
    bare = tmp_path / "bare.pkl"
    bare.write_bytes(pickletools.optimize((tmp_path / "t.pkl").read_bytes()))
    assert np.array_equal(load_table(bare).count, plain.count)


@pytest.mark.parametrize("protocol", range(6))
def test_actions_may_be_truth_values(tmp_path, protocol):
    counts = {(number, number % 3 > 0, number // 2): 2 for number in range(2_000)}
    table = load_table(save(tmp_path / "t.pkl", counts, protocol))
    assert table.action.tolist() == [int(action) for _, action, _ in counts]
    assert evaluate(table).values == evaluate(dict.fromkeys(counts, 2)).values
    if protocol > 2:
        numpy = {(number, np.bool(action), then): count for (number, action, then), count in counts.items()}
        assert load_table(save(tmp_path / "n.pkl", numpy, protocol)).action.tolist() == table.action.tolist()
        assert evaluate(numpy).values == evaluate(table).values


def test_only_actions_may_be_truth_values(tmp_path):
    for wrong in ({(True, 1, 2): 3}, {(1, 1, False): 3}, {(1, 1, 2): True}):
        for protocol in (0, 2, 4):
            with pytest.raises(InvalidInput, match=r"three integers|not a number"):
                load_table(save(tmp_path / "t.pkl", wrong, protocol))


def test_codes_of_600_digits_reach_beyond_a_window(tmp_path):
    chance = random.Random(5)
    book = {chance.getrandbits(2_030): number for number in range(2_500)}
    table = load_table(save(tmp_path / "t.pkl", ({(1, 2, 3): 1, (2, 2, 2): 1}, book), 1))
    assert table.book.codes == list(book)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -0.5])
def test_a_wrong_count_among_those_beyond_64_bits_is_named(tmp_path, wrong):
    counts = {(number, 0, 0): 2**70 for number in range(40_000)} | {(7, 7, 7): wrong, (7, 7, 8): 1.5}
    with pytest.raises(InvalidInput, match=rf"count of key \(7, 7, 7\) is {wrong}"):
        load_table(save(tmp_path / "t.pkl", counts))


def test_fractions_among_counts_beyond_64_bits_are_fractions(tmp_path):
    counts = {(number, 0, 0): 2**70 for number in range(40_000)} | {(7, 7, 7): 0.5}
    table = load_table(save(tmp_path / "t.pkl", counts))
    assert table.count.tolist() == [float(count) for count in counts.values()]
    assert "fractional counts" in table.notes[0]


class FullDisk:
    """A file that takes a few bytes and no more."""

    def __init__(self, **options):
        self.room, self.closed = 100_000, False

    def seek(self, place, whence=0):
        return 0

    def write(self, data):
        if not self.room:
            raise OSError(28, "No space left on device")
        written = min(self.room, len(data))
        self.room -= written
        return written

    def close(self):
        self.closed = True


def test_a_full_disk_is_no_traceback(tmp_path, monkeypatch):
    files = []
    monkeypatch.setattr(memo, "MAX_HELD", 1 << 13)
    monkeypatch.setattr(memo.tempfile, "TemporaryFile", lambda **options: files.append(FullDisk()) or files[-1])
    path = save(tmp_path / "t.pkl", {(np.int64(number), 0, np.int64(number)): 1 for number in range(20_000)})
    with pytest.raises(InvalidInput, match=r"t\.pkl: no room for its NumPy numbers on disk: No space left.*TMPDIR"):
        load_table(path)
    assert files
    assert all(file.closed for file in files)


@pytest.mark.parametrize("factory", [int, None])
@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("key", [(1, 2, 3), (2**40, 283, 3), (2**40, 2**40, 3), (2**2_038, 2**2_038, 5)])
def test_first_keys_in_digits_belong_to_either_old_protocol(tmp_path, factory, protocol, key):
    table = defaultdict(factory, {key: 120})
    (tmp_path / "t.pkl").write_bytes(pickletools.optimize(pickle.dumps(table, protocol)))
    (rows,) = read_pickle(tmp_path / "t.pkl")
    assert [column.tolist() for column in rows] == [[number] for number in (*key, 120)]


START = b"\x80\x04}\x94(cnumpy._core.multiarray\nscalar\n\x94cnumpy\ndtype\n\x94"
KIND = (
    b"X\x02\x00\x00\x00i1K\x00K\x01\x87R\x94"
    b"(K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tbC\x01a\x86RK\x01K\x02\x87K\x01"
)
SECOND = b"cnumpy.core.multiarray\nscalar\n\x94h\x03C\x01b\x86RK\x01K\x02\x87K\x01"


@pytest.mark.parametrize(
    ("start", "function", "kind", "said"),
    [
        (START + KIND + b"h\x01h\x02".join([b""] + [KIND] * 40), 1, 42, "more than 32 kinds"),
        (START + KIND + SECOND, 1, 3, "a second name"),
    ],
)
def test_what_would_have_to_be_read_step_by_step_is_refused(tmp_path, start, function, kind, said):
    unit = b"h%ch%cC\x01a\x86RK\x01K\x02\x87K\x01" % (function, kind)
    (tmp_path / "t.pkl").write_bytes(start + b"u(" + (unit * 50 + b"u(") * 1_200 + b"ucos\nsystem\n.")
    with pytest.raises(InvalidInput, match=said):
        load_table(tmp_path / "t.pkl")


@pytest.mark.parametrize("guess", [b"\x87I", b"\x87I-", b"\x87I11"])
def test_wrong_guesses_of_numbers_in_digits_are_guesses_and_no_more(tmp_path, guess):
    unit = b"\x8a\xff" + (guess * 128)[:255] + b"I1\nI2\n\x87I3\n"
    (tmp_path / "t.pkl").write_bytes(b"\x80\x04}\x94(" + unit * 1_000 + b"ucos\nsystem\n.")
    with pytest.raises(InvalidInput, match=r"os\.system"):
        load_table(tmp_path / "t.pkl")
