import math
import pickle

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from openfield.errors import InvalidInput
from openfield.objectives import (
    compare,
    compare_conditionals,
    jaccard,
    jensen_shannon,
    load_table,
)
from openfield.objectives.formats import large_tables
from openfield.objectives.formats.convert import convert_table
from openfield.objectives.formats.large_tables import (
    compare_conditional_files,
    compare_conditional_large,
    compare_files,
    pair_large,
)
from openfield.objectives.measures.rarefaction import chance_met, coverage_of, default_sizes, rarefy_pairs
from openfield.objectives.measures.similarity import pair_tables, similarity_of
from openfield.objectives.tables.table import Meta, Table, as_table

LN2 = math.log(2)


@st.composite
def coded_tables(draw):
    """A table with a code book over a few images, some of them wide."""
    codes = draw(st.permutations([0, 1, 5, 2**64, 2**64 + 5, 2**127, 2**128 - 1]))
    book = {code: number + 1 for number, code in enumerate(codes)}
    keys = st.tuples(st.integers(1, 7), st.integers(0, 2), st.integers(1, 7))
    return draw(st.dictionaries(keys, st.integers(1, 30), min_size=1, max_size=20)), book


def marginal(pair):
    table, book = pair
    names = {index: code for code, index in book.items()}
    found = {}
    for (o, _, _), count in table.items():
        found[names[o]] = found.get(names[o], 0) + count
    return found


def literal_jsd(p, q):
    n, m = sum(p.values()), sum(q.values())
    total = 0.0
    for code in {*p, *q}:
        a, b = p.get(code, 0) / n, q.get(code, 0) / m
        middle = (a + b) / 2
        total += (a * math.log(a / middle) if a else 0) + (b * math.log(b / middle) if b else 0)
    return total / 2


@given(coded_tables(), coded_tables())
def test_agrees_with_the_definition(first, second):
    p, q = marginal(first), marginal(second)
    found = compare(first, second)
    assert found.jaccard == len({*p} & {*q}) / len({*p} | {*q})
    assert (found.shared, found.union) == (len({*p} & {*q}), len({*p} | {*q}))
    assert found.jsd_nats == pytest.approx(literal_jsd(p, q), rel=1e-12, abs=1e-15)
    assert found.jsd_similarity == pytest.approx(1 - found.jsd_nats / LN2, abs=1e-15)
    assert found.first_in_second == pytest.approx(sum(p[c] for c in p if c in q) / sum(p.values()), rel=1e-14)
    assert found.second_in_first == pytest.approx(sum(q[c] for c in q if c in p) / sum(q.values()), rel=1e-14)
    assert jaccard(first, second) == found.jaccard
    assert jensen_shannon(first, second) == found.jsd_nats


@given(coded_tables(), coded_tables())
def test_bounds_and_symmetry(first, second):
    there, back = compare(first, second), compare(second, first)
    assert 0 <= there.jsd_nats <= LN2
    assert there.jsd_nats == pytest.approx(back.jsd_nats, rel=1e-14)
    assert (there.jaccard, there.first_in_second) == (back.jaccard, back.second_in_first)
    conditionals = compare_conditionals(first, second)
    assert 0 <= conditionals.action_jsd_nats <= LN2
    assert 0 <= conditionals.next_jsd_nats <= LN2


@given(coded_tables(), st.permutations(range(1, 8)))
def test_only_codes_matter(pair, names):
    table, book = pair
    renamed = {(names[o - 1], a, names[p - 1]): count for (o, a, p), count in table.items()}
    same = renamed, {code: names[index - 1] for code, index in book.items()}
    assert compare(pair, same).jaccard == 1
    assert compare(pair, same).jsd_nats == 0
    assert compare_conditionals(pair, same).next_jsd_nats == 0


@given(coded_tables(), coded_tables())
def test_conditionals_agree_with_the_definition(first, second):
    sides = [conditional(pair) for pair in (first, second)]
    total = 0.0
    for (joint, given_, _), (_, other, _) in (sides, sides[::-1]):
        for key, share in joint.items():
            middle = (given_[key] + other.get(key, 0)) / 2
            total += share * math.log(given_[key] / middle)
    assert compare_conditionals(first, second).action_jsd_nats == pytest.approx(total / 2, rel=1e-11, abs=1e-14)


def conditional(pair):
    table, book = pair
    names = {index: code for code, index in book.items()}
    per, joint = {}, {}
    for (o, a, _), count in table.items():
        per[names[o]] = per.get(names[o], 0) + count
        joint[names[o], a] = joint.get((names[o], a), 0) + count
    n = sum(per.values())
    return {k: c / n for k, c in joint.items()}, {k: c / per[k[0]] for k, c in joint.items()}, per


@st.composite
def bucketed_tables(draw, actions=1):
    """The same with inputs far apart, and index 0 with no code, one, or several."""
    codes = [*range(1, 40), 2**64, 2**127, 2**128 - 1, 2**190]
    met = draw(st.lists(st.sampled_from(codes), min_size=1, max_size=30, unique=True))
    indices = draw(st.lists(st.integers(1, 10**12), min_size=len(met), max_size=len(met), unique=True))
    book = dict(zip(met, indices, strict=True))
    inside = draw(
        st.lists(st.sampled_from([code for code in [0, *codes] if code not in book]), max_size=3, unique=True)
    )
    book |= dict.fromkeys(inside, 0)
    ids = st.sampled_from(sorted({*book.values(), 0}))
    keys = st.tuples(ids, st.integers(0, actions - 1), ids)
    return draw(st.dictionaries(keys, st.integers(1, 9), min_size=1, max_size=60)), book


@pytest.mark.slow
@pytest.mark.parametrize("form", ["pkl", "parquet"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=12)
@given(
    first=bucketed_tables(), second=bucketed_tables(), compat=st.booleans(), inputs=st.sampled_from(["sources", "all"])
)
def test_large_tables_give_the_same_bit_for_bit(tmp_path, form, first, second, compat, inputs):
    paths = [tmp_path / "first.pkl", tmp_path / "second.pkl"]
    for path, table in zip(paths, (first, second), strict=True):
        path.write_bytes(pickle.dumps(table))
        if form == "parquet":
            convert_table(path, path.with_suffix(".parquet"))
    paths = [path.with_suffix(f".{form}") for path in paths]
    options = {"compat": compat, "inputs": inputs}
    assert outcome(lambda: similarity_of(pair_large(*paths, **options))) == outcome(
        lambda: compare(*map(load_table, paths), **options)
    )


@pytest.mark.slow
@pytest.mark.parametrize("form", ["pkl", "parquet"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=12)
@given(first=bucketed_tables(actions=3), second=bucketed_tables(actions=3))
def test_conditionals_of_large_tables_are_the_same(tmp_path, form, first, second):
    paths = [tmp_path / "first.pkl", tmp_path / "second.pkl"]
    for path, table in zip(paths, (first, second), strict=True):
        path.write_bytes(pickle.dumps(table))
        if form == "parquet":
            convert_table(path, path.with_suffix(".parquet"))
    paths = [path.with_suffix(f".{form}") for path in paths]
    mine = outcome(lambda: compare_conditional_large(*paths))
    theirs = outcome(lambda: compare_conditionals(*map(load_table, paths)))
    if isinstance(mine, str):
        assert mine == theirs
        return
    assert mine.reasons == theirs.reasons
    assert mine.action_jsd_nats == pytest.approx(theirs.action_jsd_nats, rel=1e-14, abs=1e-15)
    assert (mine.next_jsd_nats is None) == (theirs.next_jsd_nats is None)
    assert mine.next_jsd_nats is None or mine.next_jsd_nats == pytest.approx(theirs.next_jsd_nats, rel=1e-14, abs=1e-15)


def test_conditionals_of_large_tables_are_not_loaded(tmp_path, monkeypatch, run):
    random = np.random.default_rng(0)
    for name in ("a", "b"):
        keys = np.unique(random.integers(0, [[5_000], [4], [5_000]], (3, 20_000)), axis=1).T.tolist()
        table = {tuple(key): 1 + number % 7 for number, key in enumerate(keys)}
        (tmp_path / f"{name}.pkl").write_bytes(pickle.dumps((table, {7 * o + 2**90: o for o in range(5_000)})))
    paths = [tmp_path / f"{name}.pkl" for name in "ab"]
    expected = compare_conditionals(*map(load_table, paths))
    paths = [convert_table(path, path.with_suffix(".parquet")) and path.with_suffix(".parquet") for path in paths]
    monkeypatch.setattr(large_tables, "LARGE_ROWS", 10)
    monkeypatch.setattr(large_tables, "load_table", None)  # must not be used
    found = compare_conditional_files(*paths)
    assert found.action_jsd_nats == pytest.approx(expected.action_jsd_nats, rel=1e-13)
    assert found.next_jsd_nats == pytest.approx(expected.next_jsd_nats, rel=1e-13)
    assert run("similarity", *paths, "--conditional")[0] == 0


def outcome(call):
    try:
        found = call()
    except InvalidInput as error:
        return str(error).split(": ", 1)[1]
    return replace(found, reasons={name: text.split(": ", 1)[1] for name, text in found.reasons.items()})


def test_large_files_are_not_loaded(tmp_path, monkeypatch):
    tables = ({(o, 0, o): o + 1 for o in range(50)}, {7 * o: o for o in range(50)})
    paths = [tmp_path / name for name in ("a.pkl", "b.parquet")]
    paths[0].write_bytes(pickle.dumps(tables))
    convert_table(paths[0], paths[1])
    found = compare_files(*paths)
    monkeypatch.setattr(large_tables, "LARGE_ROWS", 10)
    monkeypatch.setattr(large_tables, "load_table", None)  # must not be used
    assert compare_files(*paths) == found
    assert found.jaccard == 1
    monkeypatch.undo()
    monkeypatch.setattr(large_tables, "LARGE_BYTES", 10)
    paths[0].write_bytes(pickle.dumps(({(2**70, 0, 1): 3, (0, 0, 1): 1}, {7: 2**70, 8: 0})))
    assert compare_files(paths[0], paths[0]).jaccard == 1  # ids beyond 64 bits go through memory


def test_tables_that_start_at_zero():
    first = {(0, 0, 1): 3, (1, 1, 0): 4}, {10: 0, 20: 1}
    second = {(0, 0, 1): 3, (1, 1, 0): 4}, {30: 0, 40: 1}
    assert compare(first, second).jsd_nats == LN2
    assert compare(first, second, compat=True).jsd_nats == pytest.approx(0.396, abs=5e-4)
    assert compare(first, second, compat=True).jaccard == 0


def test_a_bucket_of_images_equals_nothing():
    human = {(1, 0, 1): 5, (2, 0, 1): 5}, {0: 1, 77: 2}
    agent = {(0, 0, 1): 6, (1, 0, 0): 4}, {100: 0, 200: 0, 300: 0, 77: 1}
    found = compare(human, agent)
    assert found.jaccard == 1 / 5  # 77 of 0, 77, 100, 200, 300
    assert found.second_in_first == 0.4
    p, q = {"0": 5, "77": 5}, {"bucket": 6, "77": 4}
    assert found.jsd_nats == pytest.approx(literal_jsd(p, q), rel=1e-14)
    old = compare(human, agent, compat=True)
    assert old.jaccard == 1 / 3  # the bucket is its last code
    assert old.jsd_nats == pytest.approx(literal_jsd({"0": 5, "77": 5}, {"0": 6, "77": 4}), rel=1e-14)


def test_an_input_without_code_is_named():
    good = {(1, 0, 2): 3}, {10: 1}
    assert compare(good, good).jaccard == 1  # the successor needs none
    with pytest.raises(InvalidInput, match="index 9 has no code"):
        compare(good, ({(9, 0, 1): 1}, {10: 1}))
    with pytest.raises(InvalidInput, match="index 2 has no code"):
        compare(good, good, inputs="all")
    assert "next_jsd_nats" in compare_conditionals(good, good).reasons


def test_index_zero_needs_no_code_for_the_old_divergence():
    pair = {(0, 0, 1): 3, (1, 0, 0): 1}, {10: 1}
    with pytest.raises(InvalidInput, match="index 0 has no code"):
        compare(pair, pair)
    found = compare(pair, pair, compat=True)
    assert found.jsd_nats == 0
    assert found.jaccard is None
    assert "index 0" in found.reasons["jaccard"]


def test_an_index_has_one_code():
    twice = {(1, 0, 1): 3}, {10: 1, 20: 1}
    with pytest.raises(InvalidInput, match="index 1 has more than one code"):
        compare(twice, twice)
    assert compare(twice, ({(1, 0, 1): 3}, {20: 1}), compat=True).jaccard == 1


def test_what_is_missing_is_said():
    good = {(1, 0, 2): 3}, {10: 1}
    with pytest.raises(InvalidInput, match="no code book"):
        compare(good, {(1, 0, 2): 3})
    with pytest.raises(InvalidInput, match="no positive counts"):
        compare(good, ({(1, 0, 2): 0}, {10: 1}))
    with pytest.raises(InvalidInput, match="not negative"):
        compare(good, ({(1, 0, 2): 1}, {-10: 1}))


def rarefy(first, second, sizes=None):
    return rarefy_pairs(pair_tables(first, second), sizes)


def test_thresholds_must_agree():
    def table(thresholds):
        made = as_table(({(1, 0, 2): 3}, {10: 1}))
        fields = {name: getattr(made, name) for name in Table.__struct_fields__}
        return Table(**fields | {"meta": Meta(thresholds=thresholds)})

    assert compare(table("a"), table("a")).jaccard == 1
    assert compare(table("a"), table(None)).jaccard == 1
    for measure in (compare, jaccard, jensen_shannon, compare_conditionals, rarefy):
        with pytest.raises(InvalidInput, match="different thresholds"):
            measure(table("a"), table("b"))


def test_enormous_ids_have_codes_too():
    far = {(2**100, 0, 3): 2, (0, 0, 3): 1}, {10: 2**100, 11: 0, 12: 5}
    near = {(1, 0, 3): 2, (2, 0, 3): 1}, {10: 1, 11: 2}
    assert compare(far, near).jsd_nats == 0


def test_rarefied_overlap_at_full_size_is_the_jaccard_index():
    first = {(1, 0, 2): 3, (2, 0, 1): 4}, {10: 1, 20: 2}
    second = {(1, 0, 2): 6, (3, 0, 1): 1}, {20: 1, 30: 3}
    full = rarefy(first, second, [7])[0]
    assert full.jaccard == pytest.approx(compare(first, second).jaccard)
    single = rarefy(first, second, [1])[0]
    assert single.first_images == pytest.approx(1)
    assert single.jaccard == pytest.approx((4 / 7 * 6 / 7) / (2 - 4 / 7 * 6 / 7))
    assert [point.transitions for point in rarefy(first, second)] == default_sizes(7)
    with pytest.raises(InvalidInput, match="cannot be drawn"):
        rarefy(first, second, [8])
    with pytest.raises(InvalidInput, match="whole"):
        rarefy(({(1, 0, 2): 1.5}, {10: 1}), second)


def test_chance_of_meeting_agrees_with_scipy():
    from scipy.stats import hypergeom

    counts = np.array([1, 2, 30, 999, 1000, 1001, 5000])
    total = int(counts.sum())
    for number in (1, 10, 1000, total - 5, total):
        expected = [1 - hypergeom.pmf(0, total, count, number) for count in counts.tolist()]
        assert chance_met(counts, number) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_coverage_is_that_of_good_and_turing():
    assert coverage_of(as_table({(1, 0, 2): 1, (2, 0, 3): 1, (3, 0, 3): 8}).counts.inputs) == 1 - 2 / 10


def test_nothing_is_drawn_from_a_bucket():
    first = {(1, 0, 2): 5, (2, 1, 1): 4, (3, 0, 3): 1}, {10: 1, 20: 2, 30: 3}
    second = {(0, 0, 1): 6, (1, 0, 0): 4}, {30: 0, 333: 0, 555: 0, 10: 1}
    assert jaccard(first, second) == 0.4
    with pytest.raises(InvalidInput, match="Index 0 stands for many images"):
        rarefy(first, second)
