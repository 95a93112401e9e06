"""Pickles that are right but rare give tables, or one line that says why not."""

import pickle
import pickletools
import random
from collections import Counter, OrderedDict, defaultdict

import numpy as np
import pytest

from openfield.errors import InvalidInput
from openfield.objectives import evaluate, load_table
from openfield.objectives.pickle.reader import read_pickled_table


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


@pytest.mark.parametrize("factory", [int, None])
@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("key", [(1, 2, 3), (2**40, 283, 3), (2**40, 2**40, 3), (2**2_038, 2**2_038, 5)])
def test_first_keys_in_digits_belong_to_either_old_protocol(tmp_path, factory, protocol, key):
    table = defaultdict(factory, {key: 120})
    (tmp_path / "t.pkl").write_bytes(pickletools.optimize(pickle.dumps(table, protocol)))
    (rows,) = read_pickled_table(tmp_path / "t.pkl")
    assert [column.tolist() for column in rows] == [[number] for number in (*key, 120)]


@pytest.mark.parametrize("guess", [b"\x87I", b"\x87I-", b"\x87I11"])
def test_wrong_guesses_of_numbers_in_digits_are_guesses_and_no_more(tmp_path, guess):
    unit = b"\x8a\xff" + (guess * 128)[:255] + b"I1\nI2\n\x87I3\n"
    (tmp_path / "t.pkl").write_bytes(b"\x80\x04}\x94(" + unit * 1_000 + b"ucos\nsystem\n.")
    with pytest.raises(InvalidInput, match=r"os\.system"):
        load_table(tmp_path / "t.pkl")
