"""Shards of a table, counted here, in processes or over Ray, give what the whole table gives, to the last bit."""

import json

import numpy as np
import pytest

from openfield.errors import InvalidInput
from openfield.files.database import Database
from openfield.objectives import evaluate, evaluate_shards, load_table
from openfield.objectives.formats.parquet import FIELDS, KEY
from openfield.objectives.formats.shards import map_over_ray
from openfield.objectives.formats.table_builder import write_table
from openfield.objectives.tables.rows import Rows
from openfield.objectives.tables.table import make_table
from openfield.objectives.tables.transitions import sum_rows


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    columns = (random.integers(0, top, 60_000) for top in (900, 6, 900))
    rows = sum_rows(Rows(*columns, random.integers(1, 5, 60_000)))
    heavy = rows.obs == 450  # one input that fills several parts of the file
    return make_table([rows._replace(counts=np.where(heavy, 10**12, rows.counts))], ordered=True)


@pytest.fixture(scope="module")
def path(table, tmp_path_factory):
    place = tmp_path_factory.mktemp("shards") / "table.parquet"
    write_table(table, place)
    small = place.with_name("small.parquet")
    with Database(place, small) as base:
        said = "SELECT value FROM parquet_kv_metadata(?) WHERE key = 'openfield'"
        header = base.row(said, str(place))[0].decode()
        base.run(
            f"COPY (SELECT * FROM read_parquet('{place}')) TO '{small}' "
            f"(FORMAT parquet, ROW_GROUP_SIZE 4096, KV_METADATA {{{KEY}: '{header}'}})"
        )
    return small


@pytest.mark.parametrize("rows", [1, 5000, 20_000, 10**9])
def test_any_cut_gives_the_same_bits(table, path, rows):
    cut = []

    def note(function, shards):
        cut.extend(map(function, shards))
        return cut

    assert evaluate_shards(path, note, rows=rows, num_obs=900).values == evaluate(table, num_obs=900).values
    assert len(cut) == 1 if rows == 10**9 else len(cut) > 1
    assert sum(shard.rows for shard in cut) == len(table.obs)


def test_what_is_known_beside_the_values_is_the_same(table, path):
    found, whole = evaluate_shards(path, rows=5000), evaluate(table)
    assert (found.n, found.distinct) == (whole.n, whole.distinct)


def test_large_ids_are_added_up_exactly(tmp_path):
    rows = Rows(*(np.array(column) for column in ([2**62, 2**62 + 1, 2**62 + 2], [0, 1, 0], [2**62] * 3, [1, 2, 3])))
    table = make_table([rows], ordered=True)
    write_table(table, tmp_path / "large.parquet")
    assert evaluate_shards(tmp_path / "large.parquet").values == evaluate(table).values


def test_shards_in_any_order(table, path):
    def backwards(function, shards):
        return map(function, reversed(list(shards)))

    assert evaluate_shards(path, backwards, rows=5000).values == evaluate(table).values


def test_ray_must_be_connected(path):
    pytest.importorskip("ray")
    with pytest.raises(InvalidInput, match=r"Ray is not connected. Call ray.init\(\)"):
        evaluate_shards(path, map_over_ray)


def write_rows(path, columns, header):
    with Database(path) as base:
        kind = "BIGINT" if isinstance(columns[3][0], int) else "DOUBLE"
        base.run(f"CREATE TABLE rows (obs BIGINT, next_obs BIGINT, action BIGINT, count {kind})")
        base.insert("rows", {name: np.array(column) for name, column in zip(FIELDS, columns, strict=True)})
        base.write_parquet("SELECT * FROM rows", path, {KEY: header} if header else None)
    return path


ORDERED = '{"ordered": true, "num_inputs": 3}'


@pytest.mark.parametrize(
    ("columns", "header", "said"),
    [
        (([1, 2], [2, 1], [0, 0], [1, 1]), None, "not a sorted table; openfield objectives convert"),
        (([2, 1], [1, 2], [0, 0], [1, 1]), ORDERED, "not in the order"),
        (([1, 1], [2, 2], [0, 0], [1, 1]), ORDERED, r"key \(1, 0, 2\) occurs more than once"),
        (([1, 2], [2, 1], [0, 0], [1, -1]), ORDERED, r"key \(2, 0, 1\) is -1; counts are positive"),
        (([1, 2], [2, 1], [0, 0], [1, 1]), '{"num_inputs": 1}', "speaks of 1 inputs, its rows have 2"),
        (([1, 2], [2, 1], [0, 0], [1, 1]), ORDERED[:-1] + ', "sums": ["9", "3", "0", "2"]}', "damaged"),
    ],
)
def test_bad_tables_are_refused_in_one_line(columns, header, said, tmp_path):
    with pytest.raises(InvalidInput, match=said):
        evaluate_shards(write_rows(tmp_path / "bad.parquet", columns, header))


@pytest.mark.parametrize("counts", [[3, 0, 4], [0.5, 2.25, 0.125], [2**62, 2**62, 2**62], [2**53 + 1, 1, 2]], ids=str)
def test_unusual_counts_are_those_of_the_whole(counts, tmp_path):
    columns = ([1, 2, 3], [2, 1, 1], [0, 1, 0], counts)
    path = write_rows(tmp_path / "odd.parquet", columns, '{"ordered": true}')
    whole, found = evaluate(load_table(path), num_obs=3), evaluate_shards(path, rows=1, num_obs=3)
    assert found == whole


def test_counts_beyond_any_number_are_refused(tmp_path):
    path = write_rows(tmp_path / "t.parquet", ([1, 2], [2, 1], [0, 0], [1.5e308, 1.5e308]), '{"ordered": true}')
    with pytest.raises(InvalidInput, match="beyond the range of float64"):
        evaluate_shards(path)


def test_the_command_counts_in_processes(path, table, run):
    status, said, _ = run(path, "--executor", "processes", "--num-obs", 900, "--json")
    assert status == 0
    assert json.loads(said)["values"] == evaluate(table, num_obs=900).values
    for words, wrong in (
        (("--executor", "cloud"), "There is no executor 'cloud'"),
        (("--executor", "processes", "--null"), "--executor counts shards"),
    ):
        assert wrong in run(path, *words)[2]


def test_other_files_are_refused(tmp_path):
    for content, said in ((b"no table", "neither a pickled"), (b"\x80\x04}.", "not a sorted table; .* convert")):
        (tmp_path / "other.parquet").write_bytes(content)
        with pytest.raises(InvalidInput, match=said):
            evaluate_shards(tmp_path / "other.parquet")
