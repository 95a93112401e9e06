from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openfield.objectives.tables import counts as module
from openfield.objectives.tables.counts import (
    Columns,
    Counts,
    count_columns,
    count_stream,
    merge_counts,
    pack_rows,
    whole_inputs,
)
from support.objectives.reference import sums

FIELDS = Counts.__struct_fields__


def columns_of(rows):
    o, a, p, c = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return Columns(o, p, a, c)


def plain(counts):
    return [
        dict(zip(getattr(counts, name).values.tolist(), getattr(counts, name).times.tolist(), strict=True))
        for name in FIELDS
    ]


def expected(rows):
    table = Counter()
    for o, a, p, c in rows:
        table[o, a, p] += c
    return [dict(Counter(tally.values())) for tally in sums(table)]


def in_order(columns):
    order = np.lexsort((columns.action, columns.next_obs, columns.obs))
    return Columns(*(column[order] for column in columns))


counts_of_rows = st.one_of(st.integers(1, 5), st.integers(1, 9000), st.integers(1, 2**45))
rows_of_tables = st.lists(
    st.tuples(st.integers(-3, 5), st.integers(-2, 3), st.integers(0, 6), counts_of_rows), min_size=1, max_size=60
)


@given(rows_of_tables)
@settings(deadline=None)
def test_histograms_are_those_of_the_definition(rows):
    assert plain(count_columns(columns_of(rows))) == expected(rows)


@given(rows_of_tables)
@settings(deadline=None)
def test_blocks_change_nothing(rows):
    columns = columns_of(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK", 7)
        assert plain(count_columns(columns)) == expected(rows)
        assert plain(count_columns(in_order(columns), ordered=True)) == expected(rows)


@given(rows_of_tables, st.sampled_from([np.int64, np.int32, np.uint64]))
@settings(deadline=None)
def test_rows_packed_in_blocks_are_packed_the_same(rows, kind):
    columns = columns_of([(abs(o), abs(a), p, c % 2**31) for o, a, p, c in rows])
    columns = columns._replace(obs=columns.obs.astype(kind), next_obs=columns.next_obs.astype(kind))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PACKED_AT_ONCE", 7)
        found = pack_rows(columns)
    whole = pack_rows(columns)
    assert found.keys.tolist() == whole.keys.tolist()
    assert found.large.tolist() == whole.large.tolist()


@given(rows_of_tables, st.integers(1, 7))
@settings(deadline=None)
def test_cuts_change_nothing(rows, size):
    columns = in_order(columns_of(rows))
    parts = [columns.part(at, at + size) for at in range(0, len(rows), size)]
    assert plain(count_stream(parts)) == expected(rows)
    blocks = list(whole_inputs(parts))
    assert sum(len(block.obs) for block in blocks) == len(rows)
    assert len({int(o) for block in blocks for o in set(block.obs.tolist())}) == len(set(columns.obs.tolist()))


def cut(columns, shards):
    """Cut rows into this many shards by source input."""
    place = columns.obs % shards
    return [Columns(*(column[place == number] for column in columns)) for number in range(shards)]


@given(rows_of_tables, st.integers(1, 5))
@settings(deadline=None)
def test_shards_merge_exactly(rows, shards):
    columns = columns_of(rows)
    parts = [count_columns(shard) for shard in cut(columns, shards) if len(shard.obs)]
    assert plain(merge_counts(parts)) == expected(rows)


def random_columns(size, actions=18, low=0):
    random = np.random.default_rng(3)
    obs, nexts = random.integers(low, low + size // 3, (2, size))
    return Columns(obs, nexts, random.integers(0, actions, size), random.zipf(1.3, size).clip(max=2**40))


@pytest.mark.parametrize(("actions", "low"), [(1, 0), (18, 0), (18, -(2**61)), (100, 0), (5000, 7)])
def test_large_tables_by_every_path(actions, low):
    columns = random_columns(150_000, actions, low)
    found = [plain(count_columns(columns)), plain(count_columns(in_order(columns), ordered=True))]
    found.append(plain(merge_counts(count_columns(shard) for shard in cut(columns, 7))))
    assert all(other == found[0] for other in found)
    assert sum(value * times for value, times in found[0][0].items()) == int(columns.counts.sum())


def test_one_input_with_everything():
    """A single input that spans many blocks, with counts that are all too large to tally by position."""
    size = 200_000
    columns = Columns(np.zeros(size, int), np.arange(size), np.arange(size) % 3, np.full(size, 10_000))
    for ordered in (False, True):
        found = count_columns(columns, ordered=ordered)
        assert plain(found)[3] == {10_000: size}
        assert found.inputs.values.tolist() == [size * 10_000]
        assert found.branches.times.sum() == 3


def test_ids_too_wide_to_pack():
    columns = random_columns(2_000)
    wide = columns._replace(obs=columns.obs * (2**50), next_obs=columns.next_obs * (2**50))
    assert pack_rows(wide) is None
    assert plain(count_columns(wide)) == plain(count_columns(columns))
