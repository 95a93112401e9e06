import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfield import objectives
from openfield.errors import InvalidInput, UnknownName
from openfield.lazy import _find_homes
from openfield.objectives import (
    empowerment,
    empowerment_corrected,
    evaluate,
    info_gain_dirichlet,
    info_gain_log_counts,
    info_gain_per_transition,
    info_gain_sqrt_counts,
    info_gain_total,
    input_entropy,
    input_entropy_corrected,
)
from openfield.objectives.evaluation import NAMES
from support.objectives import reference
from support.objectives.reference import small_tables

LN2 = math.log(2)


@given(small_tables)
def test_values_agree_with_fifty_digits(table):
    assert input_entropy(table) == pytest.approx(float(reference.entropy(table)), rel=1e-14, abs=1e-16)
    assert empowerment(table) == pytest.approx(float(reference.empowerment(table)), rel=1e-12, abs=5e-15)
    assert info_gain_sqrt_counts(table) == pytest.approx(float(reference.root_counts(table)), rel=1e-14)
    assert info_gain_log_counts(table) == pytest.approx(float(reference.log_counts(table)), rel=1e-14)


@given(small_tables, st.sampled_from([7, 10, 50, 63, 64, 65, 200]))
@settings(max_examples=30, deadline=None)
def test_information_gain_agrees_with_fifty_digits(table, size):
    assert info_gain_total(table, size) == pytest.approx(float(reference.gain(table, size)), rel=1e-12)
    assert info_gain_dirichlet(table, size, 4) == info_gain_total(table, size) / 1e8
    true = float(reference.gain(table, size, seen=False))
    assert info_gain_total(table, size, mode="counts") == pytest.approx(true, rel=1e-11)
    per = info_gain_per_transition(table, size, mode="counts")
    assert per == pytest.approx(true / sum(table.values()), rel=1e-11)


@pytest.mark.parametrize("size", [101_509, 37_624_305, 192_911_187, 215_436_546])
def test_information_gain_of_large_environments_is_nearly_linear_in_distinct_transitions(size):
    table = {(0, 0, number): 5 for number in range(20)}
    top = Decimal(size + 20)
    series = sum((1 - Decimal(20 - i) / top).ln() for i in range(20)) + 20 * (1 / (2 * top) + 1 / (12 * top**2))
    assert info_gain_total(table, size) == pytest.approx(float(series + 20 * (1 - reference.EULER)), rel=1e-14)


@given(small_tables)
def test_bounds(table):
    actions, inputs = len({a for _, a, _ in table}), len({o for o, _, _ in table})
    assert 0 <= empowerment(table) <= math.log(actions) + 1e-12
    assert 0 <= input_entropy(table) <= math.log(inputs) + 1e-12
    assert empowerment_corrected(table) >= 0
    assert input_entropy_corrected(table) >= input_entropy(table)


@given(small_tables, st.randoms(use_true_random=False), st.integers(1, 2**61))
def test_names_and_order_change_no_bit(table, shuffle, offset):
    names = list(range(7))
    shuffle.shuffle(names)
    items = [((names[o] * 3 - offset, a + 7, names[p] * 3 - offset), count) for (o, a, p), count in table.items()]
    shuffle.shuffle(items)
    renamed = dict(items)
    for measure in (input_entropy, empowerment, info_gain_sqrt_counts, info_gain_log_counts):
        assert measure(renamed) == measure(table)
    assert info_gain_total(renamed, 50, mode="counts") == info_gain_total(table, 50, mode="counts")


def test_one_input_has_no_entropy_and_no_minus_sign():
    assert math.copysign(1, input_entropy({(3, 0, 3): 7, (3, 1, 4): 2})) == 1
    assert input_entropy({(3, 0, 3): 7}) == 0.0


def test_actions_without_effect_have_exactly_no_empowerment():
    assert empowerment({(0, 0, 1): 10_000_019, (1, 0, 0): 3, (2, 0, 1): 999_983}) == 0.0
    assert empowerment({(o, a, 1): 3**o for o in range(8) for a in range(3)}) == pytest.approx(0, abs=1e-15)


def test_actions_that_decide_have_full_empowerment():
    assert empowerment({(0, a, a): 25 for a in range(4)}) == pytest.approx(math.log(4), rel=1e-15)


def test_miller_madow():
    table = {(0, 0, 1): 3, (1, 0, 0): 5, (1, 1, 2): 2}
    assert input_entropy_corrected(table) == input_entropy(table) + 1 / 20
    surplus = 3 - 3 - 3 + 2
    assert empowerment_corrected(table) == max(0.0, empowerment(table) - surplus / 20)


def test_both_ends_of_transitions_can_be_counted():
    table = {(0, 0, 1): 3, (1, 0, 2): 1}
    visits = [3, 4, 1]
    expected = -sum(v / 8 * math.log(v / 8) for v in visits)
    assert input_entropy(table, inputs="all") == pytest.approx(expected, rel=1e-15)
    assert evaluate(table, inputs="all").values["input_entropy"] == input_entropy(table, inputs="all")


@pytest.mark.parametrize("table", [{}, {(1, 2, 3): 0}, {(1, 2, 3): 0.0}])
@pytest.mark.parametrize("measure", [input_entropy, empowerment, info_gain_sqrt_counts, info_gain_log_counts])
def test_nothing_counted_is_an_error(table, measure):
    with pytest.raises(InvalidInput, match="no positive counts"):
        measure(table)
    with pytest.raises(InvalidInput, match="no positive counts"):
        info_gain_dirichlet(table, 10)


@pytest.mark.parametrize("count", [-1, -0.5, math.nan, math.inf, "3", None, True])
def test_counts_that_mean_nothing_are_refused_by_key(count):
    with pytest.raises(InvalidInput, match=r"\(4, 5, 6\)"):
        input_entropy({(1, 2, 3): 1, (4, 5, 6): count})


def test_zeros_are_left_out_and_reported():
    found = evaluate({(1, 2, 3): 4, (1, 2, 4): 0, (5, 2, 4): 0})
    assert found.zeros == 2
    assert found.distinct["inputs"] == 2
    assert found.values["input_entropy"] == 0.0


def test_fractions_are_weights():
    table = {(0, 0, 1): 1.5, (0, 1, 2): 0.5, (1, 0, 0): 2.0}
    doubled = {key: round(2 * count) for key, count in table.items()}
    assert input_entropy(table) == pytest.approx(input_entropy(doubled), rel=1e-15)
    assert empowerment(table) == pytest.approx(empowerment(doubled), rel=1e-14)
    assert info_gain_sqrt_counts(table) == pytest.approx((1.5**0.5 + 0.5**0.5 + 2**0.5) / 4, rel=1e-15)
    assert evaluate(table, num_obs=5).forms["true_counts_total"] > 0


@pytest.mark.parametrize("count", [2**24 + 1, 2**53 + 1, 2**61])
def test_large_counts_are_exact(count):
    table = {(0, 0, 1): count, (1, 0, 0): 1}
    assert evaluate(table).n == count + 1
    assert input_entropy(table) == pytest.approx(float(reference.entropy(table)), rel=1e-12)


@pytest.mark.parametrize("count", [2**53 + 1, 2**61, 2**63 - 2])
def test_what_little_a_rare_input_says_beside_a_large_count_is_exact(count):
    rare, decided = {(0, 0, 1): count, (1, 0, 0): 1}, {(0, 0, 1): count, (0, 1, 2): 1}
    assert input_entropy(rare) == pytest.approx(float(reference.entropy(rare)), rel=1e-15, abs=0)
    assert empowerment(decided) == pytest.approx(float(reference.empowerment(decided)), rel=1e-15, abs=0)


@pytest.mark.parametrize("size", [7, 63, 64, 101_509])
@pytest.mark.parametrize("count", [2**40, 2**53 + 1, 2**62])
def test_what_is_learned_from_large_counts_is_exact(count, size):
    """Two terms as large as the counts cancel in it; at 2^53 nothing of the gain was left."""
    table = {(0, 0, 1): count, (0, 0, 2): 3, (1, 0, 0): 1}
    exact = float(reference.gain(table, size, seen=False))
    assert info_gain_total(table, size, mode="counts") == pytest.approx(exact, rel=1e-13)


def test_counts_beyond_64_bits_are_rounded_and_say_so():
    table = {(0, 0, 1): 2**70, (1, 0, 0): 2**70}
    found = evaluate(table)
    assert found.values["input_entropy"] == pytest.approx(LN2, rel=1e-15)
    assert any("float64" in note for note in found.notes)
    assert any("float64" in note for note in evaluate({(0, 0, 1): 2**62, (1, 0, 0): 2**62, (2, 0, 0): 2**62}).notes)
    with pytest.raises(InvalidInput, match="beyond the range"):
        input_entropy({(0, 0, 1): 10**400})


def test_enormous_and_negative_ids_are_only_names():
    table = {(2**62, 0, -5): 3, (-(2**127), 2**70, 2**62): 4, (2**128 - 1, -1, -(2**127)): 5}
    plain = {(0, 0, 1): 3, (2, 1, 0): 4, (3, 2, 2): 5}
    for measure in (input_entropy, empowerment, info_gain_sqrt_counts):
        assert measure(table) == measure(plain)
    assert evaluate(table).distinct["inputs"] == 4


def test_environments_have_at_least_what_was_seen():
    table = {(0, 0, 1): 3, (1, 4, 2): 4}
    with pytest.raises(InvalidInput, match="3 distinct inputs were seen; the environment is said to have 2"):
        info_gain_dirichlet(table, 2)
    with pytest.raises(InvalidInput, match="2 distinct actions were seen; the environment is said to have 1"):
        info_gain_dirichlet(table, 3, 1)
    with pytest.raises(InvalidInput, match="must be positive"):
        info_gain_dirichlet(table, 0)
    assert info_gain_dirichlet(table, 3, 2) > 0


def test_sizes_are_checked_whatever_is_asked_for():
    table = {(0, 0, 1): 3, (1, 4, 2): 4}
    assert "2 distinct actions" in evaluate(table, num_actions=1).faults[0]
    assert "3 distinct inputs" in evaluate(table, num_obs=2, only=["empowerment"]).faults[0]
    assert evaluate(table, num_actions=1).values["empowerment"] == empowerment(table)
    assert "--num-obs" in evaluate(table, num_actions=1).reasons["info_gain_dirichlet"]


@given(st.integers(1, 40), st.integers(0, 200))
def test_a_gain_is_never_negative(branches, room):
    assert info_gain_total({(0, 0, p): 1 for p in range(branches)}, branches + 1 + room) > 0


def test_all_at_once():
    table = {(0, 0, 1): 3, (1, 0, 0): 5, (1, 1, 2): 2}
    found = evaluate(table, num_obs=10, num_actions=2)
    assert list(found.values) == list(NAMES)
    assert found.values["info_gain_dirichlet"] == info_gain_dirichlet(table, 10)
    assert found.corrected["empowerment"] == empowerment_corrected(table)
    assert found.forms["per_transition"] == info_gain_total(table, 10) / 10
    assert found.distinct == {"inputs": 3, "sources": 2, "actions": 2, "pairs": 3, "moves": 3, "transitions": 3}
    assert found.faults == ()


def test_what_is_not_defined_says_why():
    found = evaluate({(0, 0, 1): 3})
    assert found.values["info_gain_dirichlet"] is None
    assert "--num-obs" in found.reasons["info_gain_dirichlet"]
    assert found.faults == ()
    assert evaluate({(0, 0, 1): 3}, num_obs=1).faults != ()


def test_bits():
    table = {(0, 0, 1): 3, (1, 0, 0): 5, (1, 1, 2): 2}
    nats, bits = evaluate(table, num_obs=9), evaluate(table, num_obs=9, unit="bits")
    for name in NAMES:
        factor = 1 if name == "info_gain_sqrt_counts" else LN2
        assert bits.values[name] * factor == pytest.approx(nats.values[name], rel=1e-15)
    assert bits.corrected["input_entropy"] * LN2 == pytest.approx(nats.corrected["input_entropy"], rel=1e-15)


def test_some_of_them():
    assert list(evaluate({(0, 0, 1): 3}, only=["empowerment"]).values) == ["empowerment"]
    with pytest.raises(UnknownName, match="Did you mean 'empowerment'"):
        evaluate({(0, 0, 1): 3}, only=["empowerement"])


@pytest.mark.parametrize("table", [[1], {(1, 2): 3}, {1: 2}, {("a", "b", "c"): 1}, 7])
def test_what_is_not_a_table_is_refused(table):
    with pytest.raises(InvalidInput):
        input_entropy(table)


def test_numpy_numbers_are_numbers():
    table = {(np.int64(1), np.uint8(2), np.int32(3)): np.int64(4), (np.int64(2), np.uint8(2), np.int32(3)): np.int64(4)}
    assert input_entropy(table) == pytest.approx(LN2, rel=1e-15)


def test_public_names():
    """Every public name is there, and a function that has the name of its module is the function."""
    import openfield.objectives as package

    assert sorted(package.__all__) == package.__all__
    assert {*_find_homes(package.__name__), "empowerment", "empowerment_corrected"} == set(package.__all__)
    assert all(callable(getattr(package, name)) for name in package.__all__)
    with pytest.raises(AttributeError):
        package.nothing  # noqa: B018


@pytest.mark.parametrize("key", [(1.5, 0, 3), (1, 2), ("a", 0, 1), 7, (1, None, 2)])
def test_keys_of_mappings_are_whole_numbers(key):
    with pytest.raises(InvalidInput, match="is not a tuple of three integers") as error:
        input_entropy({(1, 0, 2): 3, key: 4})
    assert repr(key) in str(error.value)


def test_public_names_are_listed_before_they_are_imported():
    assert set(objectives.__all__) <= set(dir(objectives))
