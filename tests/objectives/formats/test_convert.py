import json
import pickle
import tempfile
from collections import defaultdict
from contextlib import nullcontext, suppress
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openfield.errors import InvalidInput
from openfield.files import database
from openfield.files.database import Database
from openfield.objectives import compare, evaluate, evaluate_file, load_table
from openfield.objectives.formats.convert import convert_table
from openfield.objectives.formats.large_tables import compare_files, pair_large, summarise_file, summarise_large
from openfield.objectives.formats.parquet import Header, book_path, read_header
from openfield.objectives.formats.table_builder import TableBuilder, write_table
from openfield.objectives.measures.similarity import similarity_of
from openfield.objectives.tables.rows import Rows
from openfield.objectives.tables.table import as_table, make_table, meta_of_name
from support.objectives.parquet import read_parquet, write_parquet
from support.objectives.reference import dump, wide_tables
from support.places import SUPPORT

DATA = SUPPORT / "objectives" / "data"
books = st.dictionaries(st.integers(0, 2**140), st.integers(0, 1000), min_size=1, max_size=20)
quiet = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20)
narrow_tables = st.dictionaries(
    st.tuples(st.integers(-(2**62), 2**62), st.integers(-3, 300), st.integers(-5, 2**40)),
    st.one_of(st.integers(1, 2**45), st.floats(0.1, 100)),
    min_size=1,
    max_size=30,
)


@pytest.mark.slow
@given(narrow_tables, st.one_of(st.none(), books))
@quiet
def test_conversion_goes_there_and_back_and_large_tables_are_counted_to_the_same_bit(tmp_path, table, book):
    source = dump(tmp_path / "t.pkl", (table, book) if book else table)
    assert convert_table(source, tmp_path / "t.parquet").rows == len(table)
    assert convert_table(tmp_path / "t.parquet", tmp_path / "back.pkl").rows == len(table)
    back = pickle.loads((tmp_path / "back.pkl").read_bytes())
    assert (back if book else (back, None)) == (table, book)
    found = evaluate_file(tmp_path / "t.parquet")
    large, held = summarise_large(tmp_path / "t.parquet"), summarise_file(tmp_path / "t.parquet")
    if all(isinstance(count, int) for count in table.values()):
        assert found.values == evaluate_file(source).values
        assert counts_of(large.counts) == counts_of(held.counts) == counts_of(load_table(source).counts)
    assert (large.num_inputs, large.num_actions, large.rows) == (held.num_inputs, held.num_actions, held.rows)
    assert (large.notes, large.zeros, large.meta) == (held.notes, held.zeros, held.meta)
    book_path(tmp_path / "t.parquet").unlink(missing_ok=True)


@given(wide_tables)
@quiet
def test_ids_too_large_for_columns_are_ranked(tmp_path, table):
    source = dump(tmp_path / "t.pkl", table)
    convert_table(source, tmp_path / "t.parquet")
    assert evaluate_file(tmp_path / "t.parquet").values == evaluate_file(source).values


def test_published_names_say_what_a_table_is(tmp_path):
    meta = meta_of_name("montezuma_icm_noreward_shared_disc.pkl")
    assert (meta.environment, meta.agent, meta.reward, meta.levels) == ("montezuma", "icm", False, "shared")
    meta = meta_of_name("montezuma_noop_human_disc.parquet")
    assert (meta.environment, meta.agent, meta.reward, meta.levels) == ("montezuma", "noop", None, "human")
    assert meta_of_name("table.pkl").environment is None
    source = dump(tmp_path / "sea_quest_rnd_reward_human_disc.pkl", {(1, 2, 3): 4})
    convert_table(source, tmp_path / "x.parquet")
    assert read_header(tmp_path / "x.parquet").meta.environment == "sea_quest"
    convert_table(tmp_path / "x.parquet", tmp_path / "y.parquet")
    assert read_header(tmp_path / "y.parquet").meta.reward is True


def random_rows(size, seed=0):
    random = np.random.default_rng(seed)
    obs, nexts = random.integers(0, size, (2, size))
    keys = np.unique(np.stack((obs, random.integers(0, 5, size), nexts)), axis=1)
    keys = keys[:, random.permutation(keys.shape[1])]
    return Rows(*keys, random.integers(1, 100, keys.shape[1]))


def test_code_books_are_sorted_by_code_and_read_in_their_order(tmp_path):
    random = np.random.default_rng(0)
    words = random.integers(0, 2**62, (1000, 3)).tolist()
    codes = {
        a if number % 3 else a + (b << 64) + (c << 128 if number % 5 else 0) for number, (a, b, c) in enumerate(words)
    }
    pair = {(1, 0, 2): 3}, {code: number for number, code in enumerate(codes)}
    convert_table(dump(tmp_path / "t.pkl", pair), tmp_path / "t.parquet")
    book = load_table(tmp_path / "t.parquet").book
    assert book.codes == list(pair[1])
    stored = [row["code"] for row in read_parquet(tmp_path / "t.codes.parquet")]
    assert stored == sorted(stored)
    assert dict(zip(book.codes, book.indices.tolist(), strict=True)) == pair[1]
    convert_table(tmp_path / "t.parquet", tmp_path / "back.pkl")
    back = pickle.loads((tmp_path / "back.pkl").read_bytes())
    assert back == pair
    assert list(back[1]) == list(pair[1])


def counts_of(counts):
    return [
        (getattr(counts, name).values.tolist(), getattr(counts, name).times.tolist())
        for name in counts.__struct_fields__
    ]


def test_many_rows_are_counted_to_the_same_bit(tmp_path):
    rows = random_rows(300_000)
    table = as_table(
        dict(zip(zip(*(column.tolist() for column in rows[:3]), strict=True), rows.counts.tolist(), strict=True))
    )
    write_table(table, tmp_path / "t.parquet")
    large = summarise_large(tmp_path / "t.parquet")
    assert counts_of(large.counts) == counts_of(table.counts)
    assert evaluate(large, num_obs=10**6) == evaluate(summarise_file(tmp_path / "t.parquet"), num_obs=10**6)


def build(path, *pieces):
    with TableBuilder(path) as builder:
        for rows in pieces:
            builder.add(rows)
        builder.write(Header(), single=True)


@pytest.mark.slow
def test_rows_beyond_memory_are_sorted_through_temporary_files(tmp_path, monkeypatch):
    """Which are gone afterwards, also if it fails."""
    monkeypatch.setattr(database, "MAX_MEMORY", "60MB")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = random_rows(1_000_000)
    with TableBuilder(tmp_path / "t.parquet") as builder:
        for at in range(0, len(rows.obs), 100_000):
            builder.add(Rows(*(column[at : at + 100_000] for column in rows)))
        builder.write(Header(), single=True)
        assert list(tmp_path.glob("openfield-*/*"))
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]
    monkeypatch.setattr(database, "MAX_MEMORY", "1GB")
    found, order = load_table(tmp_path / "t.parquet"), np.lexsort((rows.action, rows.next_obs, rows.obs))
    for name, column in zip(("obs", "action", "next_obs", "count"), rows, strict=True):
        assert np.array_equal(getattr(found, name), column[order])
    with pytest.raises(InvalidInput, match="occurs more than once"):
        build(tmp_path / "u.parquet", Rows(*(column[:2] * 0 for column in rows)))
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_parquet('{other}')",
        "COPY (SELECT 1) TO '{other}2'",
        "SET memory_limit = '9GB'",
        "SET enable_external_access = true",
        "INSTALL httpfs",
        "LOAD httpfs",
        "ATTACH '{other}.db'",
    ],
)
def test_a_session_touches_only_the_files_it_was_given(tmp_path, statement):
    for name in ("a.parquet", "b.parquet"):
        convert_table(dump(tmp_path / "t.pkl", {(1, 2, 3): 4}), tmp_path / name)
    with Database(tmp_path / "a.parquet") as base:
        assert base.row("SELECT obs FROM read_parquet(?)", str(tmp_path / "a.parquet")) == (1,)
        with pytest.raises(Exception, match=r"disabled|locked|Permission"):
            base.run(statement.format(other=tmp_path / "b.parquet"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.parquet", "t.pkl"]


@pytest.mark.parametrize("name", ["a [1].parquet", "it's.parquet", "a*.parquet", "a?{b}.parquet"])
def test_names_of_files_are_no_patterns(tmp_path, name):
    convert_table(dump(tmp_path / "t.pkl", ({(1, 2, 3): 4}, {9: 1})), tmp_path / name)
    convert_table(dump(tmp_path / "t.pkl", {(5, 6, 7): 8}), tmp_path / "a1.parquet")
    assert load_table(tmp_path / name).obs.tolist() == [1]
    assert load_table(tmp_path / name).book.codes == [9]


def test_parquet_of_other_makers(tmp_path):
    columns = {
        "obs": [2, 1, 2],
        "action": [0, 0, 0],
        "next_obs": [1, 2, 1],
        "count": [3, 4, 5],
        "note": ["a", "b", "c"],
    }
    write_parquet(tmp_path / "t.parquet", columns)
    assert evaluate_file(tmp_path / "t.parquet").n == 12
    assert load_table(tmp_path / "t.parquet").counts.triples.values.tolist() == [4, 8]
    write_parquet(tmp_path / "t.parquet", {"obs": [1]})
    with pytest.raises(InvalidInput, match="no column next_obs"):
        load_table(tmp_path / "t.parquet")
    write_parquet(tmp_path / "t.parquet", columns | {"obs": [1.5, 2, 3]})
    with pytest.raises(InvalidInput, match="column obs holds double"):
        load_table(tmp_path / "t.parquet")
    write_parquet(tmp_path / "t.parquet", columns | {"count": [1, -2, 3]})
    with pytest.raises(InvalidInput, match=r"key \(1, 0, 2\) is -2"):
        load_table(tmp_path / "t.parquet")
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and nothing else PAR1")
    with pytest.raises(InvalidInput, match="cannot be read as Parquet"):
        load_table(tmp_path / "t.parquet")


def claim(path, columns):
    """A file that says it is sorted by us, whatever it holds."""
    save(path, columns, Header())


def save(path, columns, header):
    arrays = {name: np.array(column).tolist() for name, column in zip(NAMES, columns, strict=True)}
    write_parquet(path, arrays, kind="BIGINT", header=msgspec.json.encode(header).decode())


NAMES = ("obs", "next_obs", "action", "count")


@pytest.mark.parametrize("summarise_file", [summarise_file, summarise_large])
def test_files_that_lie_about_themselves(tmp_path, summarise_file):
    path = tmp_path / "t.parquet"
    claim(path, ([2, 1], [1, 1], [0, 0], [1, 1]))
    with pytest.raises(InvalidInput, match="not in the order"):
        summarise_file(path)
    for columns in (([1, 1], [2, 1], [0, 0], [1, 1]), ([1, 1], [1, 1], [1, 0], [1, 1])):
        claim(path, columns)  # in order of the input, but not of what follows
        with pytest.raises(InvalidInput, match="not in the order"):
            summarise_file(path)
    claim(path, ([1, 2], [1, 1], [0, 0], [1, -1]))
    with pytest.raises(InvalidInput, match=r"key \(2, 0, 1\) is -1"):
        summarise_file(path)
    claim(path, ([1, 2], [1, 1], [0, 0], [1, 0]))
    assert summarise_file(path).zeros == 1
    claim(path, ([], [], [], []))
    with pytest.raises(InvalidInput, match="no positive counts"):
        summarise_file(path)


def test_damage_inside_is_told(tmp_path):
    rows = random_rows(5000)
    write_table(make_table([rows]), tmp_path / "t.parquet")
    raw = bytearray((tmp_path / "t.parquet").read_bytes())
    raw[20:4000] = b"\xff" * 3980
    (tmp_path / "t.parquet").write_bytes(raw)
    for read in (load_table, evaluate_file):
        with pytest.raises(InvalidInput, match=r"t\.parquet: the file is damaged"):
            read(tmp_path / "t.parquet")


def test_ids_of_64_bits_do_not_wrap_around(tmp_path):
    columns = {"obs": [2**63 + 5, 1], "action": [0, 0], "next_obs": [1, 2**64 - 1], "count": [3, 4]}
    write_parquet(tmp_path / "t.parquet", columns, kind="UBIGINT")
    assert load_table(tmp_path / "t.parquet").ids == (1, 2**63 + 5, 2**64 - 1)
    convert_table(tmp_path / "t.parquet", tmp_path / "u.parquet")
    convert_table(tmp_path / "u.parquet", tmp_path / "u.pkl")
    assert pickle.loads((tmp_path / "u.pkl").read_bytes()) == {(2**63 + 5, 0, 1): 3, (1, 0, 2**64 - 1): 4}


@pytest.mark.slow
@quiet
@given(wide_tables, st.dictionaries(st.integers(0, 2**140), st.integers(-5, 2**130), max_size=9))
def test_enormous_ids_go_there_and_back(tmp_path, table, book):
    pair = (table, {code: min(key[0] for key in table) if index == -5 else index for code, index in book.items()})
    huge = {(o + 2**127, a % 2**60, p + 2**127): count for (o, a, p), count in table.items()}
    source = dump(tmp_path / "t.pkl", (huge, pair[1]) if book else huge)
    between = [tmp_path / name for name in ("a.parquet", "b.parquet", "c.pkl", "d.pkl")]
    for one, other in pairwise([source, *between]):
        convert_table(one, other)
    for path in between[2:]:
        assert pickle.loads(path.read_bytes()) == pickle.loads(source.read_bytes())
    if book:
        assert outcome(between[0]) == outcome(source)


def test_a_book_goes_with_its_table(tmp_path):
    for pair, has_book in ((({(1, 0, 2): 3}, {7: 1}), True), ({(1, 0, 2): 3}, False)):
        convert_table(dump(tmp_path / "t.pkl", pair), tmp_path / "t.parquet")
        assert book_path(tmp_path / "t.parquet").exists() == has_book


def outcome(path):
    try:
        return compare(load_table(path), load_table(path)).jaccard
    except InvalidInput as error:
        return str(error).split(": ", 1)[1]


def test_counts_beyond_64_bits_are_noted(tmp_path):
    source = dump(tmp_path / "t.pkl", {(1, 0, 2): 2**70})
    assert convert_table(source, tmp_path / "t.parquet").notes == ("counts beyond 64 bits: computed as float64",)


def test_later_forms_are_not_guessed_at(tmp_path):
    save(tmp_path / "t.parquet", [[1]] * 4, Header(schema=99))
    for read in (load_table, evaluate_file):
        with pytest.raises(InvalidInput, match="later version"):
            read(tmp_path / "t.parquet")


def test_ids_that_are_not_those_of_the_rows(tmp_path):
    save(tmp_path / "t.parquet", ([0], [5], [0], [1]), Header(ids=("7", "8")))
    with pytest.raises(InvalidInput, match="ids in its description"):
        load_table(tmp_path / "t.parquet")


def test_a_book_must_be_one(tmp_path):
    write_table(make_table([Rows(*(np.arange(3) for _ in range(3)), np.ones(3, int))]), tmp_path / "t.parquet")
    for columns in ({"code": ["a"], "index": [1]}, {"index": [1]}):
        write_parquet(tmp_path / "t.codes.parquet", columns)
        with pytest.raises(InvalidInput, match=r"t\.codes\.parquet: no code book"):
            load_table(tmp_path / "t.parquet")


def test_a_failed_write_leaves_nothing(tmp_path):
    source = dump(tmp_path / "t.pkl", {(1, 2, 3): 4, (5, 6, 7): -1})
    for target in ("x.parquet", "x.pkl"):
        with pytest.raises(InvalidInput, match=r"key \(5, 6, 7\)"):
            convert_table(source, tmp_path / target)
    assert [path.name for path in tmp_path.iterdir()] == ["t.pkl"]


def test_conversions_that_make_no_sense(tmp_path):
    source = dump(tmp_path / "t.pkl", {(1, 2, 3): 4})
    with pytest.raises(InvalidInput, match="same file"):
        convert_table(source, source)
    with pytest.raises(InvalidInput, match="must end in"):
        convert_table(source, tmp_path / "t.csv")
    with pytest.raises(InvalidInput, match="No such file"):
        convert_table(tmp_path / "none.pkl", tmp_path / "t.parquet")


def test_a_key_that_occurs_twice_is_a_mistake_in_a_pickle(tmp_path):
    path = tmp_path / "t.pkl"
    path.write_bytes(b"\x80\x02}(K\x01K\x02K\x03\x87K\x04K\x01K\x02K\x03\x87K\x05u.")
    with pytest.raises(InvalidInput, match="more than once"):
        evaluate_file(path)
    with pytest.raises(InvalidInput, match="more than once"):
        convert_table(path, tmp_path / "t.parquet")


@pytest.mark.parametrize(
    ("raw", "words"), [(b"", "empty"), (b"PK\x03\x04", "frames"), (b"hello", "neither"), (b"\x80", "cut short")]
)
def test_other_files_are_refused(tmp_path, raw, words):
    (tmp_path / "t").write_bytes(raw)
    with pytest.raises(InvalidInput, match=words):
        load_table(tmp_path / "t")


def test_missing_files_and_folders(tmp_path):
    for path in (tmp_path / "none.pkl", tmp_path):
        with pytest.raises(InvalidInput, match=str(tmp_path)):
            load_table(path)


def test_pieces_of_rows_are_joined_whatever_their_kinds():
    pieces = [
        Rows(*(np.array([value], np.int64) for value in (1, 2, 3, 4))),
        Rows(*(np.array([value]) for value in (2**40, 2, 3, 0.5))),
        Rows(np.array([2**100], object), *(np.array([value]) for value in (2, 3, 4))),
    ]
    table = make_table(pieces)
    assert [table.ids[number] for number in table.obs] == [1, 2**40, 2**100]
    assert table.count.tolist() == [4.0, 0.5, 4.0]


@pytest.mark.parametrize("offset", [-5, 2**40])
def test_inputs_only_led_to_count_in_the_stream_whatever_their_ids(tmp_path, offset):
    source = dump(tmp_path / "t.pkl", {(offset, 0, offset + 1): 3, (offset, 0, offset + 2): 4})
    convert_table(source, tmp_path / "t.parquet")
    for path in (source, tmp_path / "t.parquet"):
        found = evaluate_file(path, num_obs=2)
        assert found.distinct["inputs"] == 3
        assert "3 distinct inputs were seen" in found.faults[0]


@pytest.mark.parametrize(("count", "said"), [(0.5, "fractional counts"), (2**70, "counts beyond 64 bits")])
def test_what_is_to_be_known_of_counts_is_said_once_in_every_form(tmp_path, count, said):
    source, place, back = dump(tmp_path / "t.pkl", {(1, 0, 2): count}), tmp_path / "t.parquet", tmp_path / "back.pkl"
    notes = [convert_table(source, place).notes, convert_table(place, back).notes]
    notes += [evaluate_file(place).notes, load_table(place).notes]
    assert all(len(found) == 1 and found[0].startswith(said) for found in notes)


@pytest.mark.parametrize(
    ("start", "said"),
    [(b"PK\3\4", "For NPZ episodes"), (b"SQLite format 3\0", "For runs"), (b"", "is empty"), (b"x", "")],
)
def test_what_is_no_table_is_not_converted_and_says_what_it_may_be(tmp_path, start, said):
    (tmp_path / "t.pkl").write_bytes(start)
    for target in ("u.parquet", "u.pkl"):
        with pytest.raises(InvalidInput, match=f"neither a pickled transition table nor a Parquet file.*{said}"):
            convert_table(tmp_path / "t.pkl", tmp_path / target)
        assert not (tmp_path / target).exists()


def test_defaultdict_with_code_book(tmp_path):
    path = dump(tmp_path / "t.pkl", (defaultdict(int, {(1, 0, 2): 3}), {7: 1, 2**127: 2}), 3)
    table = load_table(path)
    assert table.book.codes == [7, 2**127]
    assert load_table(_converted(path)).obs.tolist() == [1]


def _converted(path):
    target = path.with_suffix(".parquet")
    convert_table(path, target)
    return target


@pytest.mark.parametrize("summarise_file", [summarise_file, summarise_large])
def test_order_is_checked_in_all_of_a_file(tmp_path, summarise_file):
    rows = 70_000
    nexts = np.arange(rows)
    nexts[65_536:] -= 10
    claim(tmp_path / "t.parquet", (np.zeros(rows, int), nexts, np.zeros(rows, int), np.ones(rows, int)))
    with pytest.raises(InvalidInput, match="not in the order"):
        summarise_file(tmp_path / "t.parquet")


@pytest.mark.parametrize("size", [2, 70_000])
def test_a_repeated_key_of_a_sorted_file_is_refused_by_everything(tmp_path, size):
    """Also where it lies across two batches."""
    path, zeros, nexts = tmp_path / "t.parquet", np.zeros(size, int), np.arange(size)
    nexts[min(size - 1, 65_536) :] -= 1
    claim(path, (zeros, nexts, zeros, zeros + 1))
    ways = (load_table, evaluate_file, summarise_large, lambda path: convert_table(path, tmp_path / "t.pkl"))
    for way in (*ways, lambda path: convert_table(path, tmp_path / "other.parquet")):
        with pytest.raises(InvalidInput, match=r"t\.parquet: key \(0, 0, \d+\) occurs more than once\."):
            way(path)
    assert not (tmp_path / "t.pkl").exists()


def test_a_description_is_held_against_the_rows(tmp_path):
    path = tmp_path / "t.parquet"
    columns = {"obs": [1, 2], "next_obs": [2, 3], "action": [0, 0], "count": [1, 1]}
    for said, right in (
        ({"num_inputs": 2}, False),
        ({"zeros": -1}, False),
        ({"num_inputs": 9}, True),
        ({"zeros": 4}, True),
    ):
        write_parquet(path, columns, header=json.dumps({"ordered": True, **said}))
        with nullcontext() if right else pytest.raises(InvalidInput, match=r"t\.parquet: .*description"):
            assert evaluate_file(path).distinct["inputs"] == 3


def test_the_order_of_a_code_book_survives_conversion(tmp_path):
    """By the published rules the last code of index 0 stands for it."""
    pair = {(0, 0, 1): 3, (1, 1, 0): 2}, {9: 0, 5: 0, 7: 1, 3: 2}
    other = dump(tmp_path / "other.pkl", ({(1, 0, 2): 1, (2, 0, 1): 1}, {5: 1, 8: 2}))
    files = [dump(tmp_path / "t.pkl", pair), tmp_path / "t.parquet", tmp_path / "again.parquet", tmp_path / "back.pkl"]
    for source, target in pairwise(files):
        convert_table(source, target)
        assert load_table(target).book.codes == [9, 5, 7, 3]
    assert list(pickle.loads(files[-1].read_bytes())[1].items()) == list(pair[1].items())
    for way in (compare_files, lambda *files, compat: similarity_of(pair_large(*files, compat=compat))):
        assert {way(file, other, compat=True).jaccard for file in files} == {1 / 3}


def test_an_empty_code_book_is_a_code_book(tmp_path):
    files = [dump(tmp_path / "t.pkl", ({(1, 0, 2): 3}, {})), tmp_path / "t.parquet", tmp_path / "back.pkl"]
    for source, target in pairwise(files):
        convert_table(source, target)
    for path in files:
        assert load_table(path).book.codes == []
        with pytest.raises(InvalidInput, match="the code book is empty"):
            compare_files(path, path)


@pytest.mark.slow
def test_every_flipped_bit_of_the_rows_is_seen(tmp_path):
    rows = Rows(np.arange(300), np.arange(300) % 4, np.arange(300) * 7, np.arange(1, 301))
    write_table(make_table([rows]), tmp_path / "t.parquet")
    raw = (tmp_path / "t.parquet").read_bytes()
    good = evaluate_file(tmp_path / "t.parquet", num_obs=10_000).values
    end = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    for at in range(4, end, 3):
        (tmp_path / "t.parquet").write_bytes(raw[:at] + bytes((raw[at] ^ 1 << at % 8,)) + raw[at + 1 :])
        with suppress(InvalidInput):  # what does not matter may pass
            assert evaluate_file(tmp_path / "t.parquet", num_obs=10_000).values == good


def test_counts_beyond_64_bits_are_streamed_with_a_note(tmp_path):
    columns = {"obs": [1, 2], "next_obs": [1, 1], "action": [0, 0], "count": [2**63 + 1, 3]}
    write_parquet(tmp_path / "t.parquet", columns, kind="UBIGINT", header='{"ordered": true}')
    found = evaluate_file(tmp_path / "t.parquet")
    assert found.n == 2.0**63 + 4
    assert found.notes == ("counts beyond 64 bits: computed as float64",)


def test_odd_actions_are_counted_in_the_stream_as_well(tmp_path):
    table = {(1, action, 2): 1 for action in (-1, 0, 5, 2**40, 2**62)}
    convert_table(dump(tmp_path / "t.pkl", table), tmp_path / "t.parquet")
    for path in (tmp_path / "t.pkl", tmp_path / "t.parquet"):
        assert evaluate_file(path).distinct["actions"] == 5
        assert "said to have 4" in evaluate_file(path, num_obs=9, num_actions=4).reasons["info_gain_dirichlet"]


def test_keys_that_are_there_twice_are_added_up_on_the_way_to_a_pickle(tmp_path):
    columns = {"obs": [1, 1], "next_obs": [2, 2], "action": [0, 0], "count": [3, 4]}
    write_parquet(tmp_path / "t.parquet", columns)
    convert_table(tmp_path / "t.parquet", tmp_path / "t.pkl")
    assert pickle.loads((tmp_path / "t.pkl").read_bytes()) == {(1, 0, 2): 7}


def test_an_odd_key_of_a_large_pickle_is_refused_when_tables_are_compared(tmp_path):
    table = b"\x80\x02}(K\x01K\x01K\x01\x87K\x05K\x01K\x01K\x01\x87K\x06u}(K\x09K\x01u\x86."
    (tmp_path / "t.pkl").write_bytes(table)
    for way in (compare_files, pair_large):
        with pytest.raises(InvalidInput, match=r"t\.pkl: key \(1, 1, 1\) occurs more than once"):
            way(tmp_path / "t.pkl", tmp_path / "t.pkl")


def test_files_of_0_1_0_are_read(tmp_path):
    """Which wrote Parquet with another library, codes of fixed length and checksums of pages."""
    table = {(o, a, (o * 7 + a) % 50): 1 + o * a for o in range(40) for a in range(3)}
    book = {2**100 + 3 * o: o for o in range(50)}
    found = load_table(DATA / "table_of_0_1_0.parquet")
    rows = zip(*(column.tolist() for column in (found.obs, found.action, found.next_obs, found.count)), strict=True)
    assert {row[:3]: row[3] for row in rows} == table
    assert dict(zip(found.book.codes, found.book.indices.tolist(), strict=True)) == book
    assert list(found.book.codes) == list(book)
    assert (found.meta.environment, found.meta.agent, found.meta.levels) == ("maze", "ppo", "human")
    convert_table(DATA / "table_of_0_1_0.parquet", tmp_path / "t.pkl")
    assert pickle.loads((tmp_path / "t.pkl").read_bytes()) == (table, book)
    assert counts_of(summarise_large(DATA / "table_of_0_1_0.parquet").counts) == counts_of(found.counts)
