"""Count and compare tables that do not fit into memory.

Small tables are loaded. From `LARGE_ROWS` rows on they are counted shard by shard, and compared by DuckDB through
temporary files, in bounded memory. All sums are of whole numbers, so both ways give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from openfield.errors import InvalidInput
from openfield.files.database import Database, reading
from openfield.objectives.formats.convert import in_order
from openfield.objectives.formats.load import is_parquet, load_table
from openfield.objectives.formats.parquet import (
    DAMAGED,
    HugeIds,
    RowFacts,
    book_path,
    codes_in,
    count_rows,
    open_rows,
)
from openfield.objectives.formats.shards import summarise_shards
from openfield.objectives.measures.entropy import Inputs
from openfield.objectives.measures.similarity import (
    Conditionals,
    Similarity,
    check_thresholds,
    compare_conditionals,
    excess,
    pair_tables,
    similarity_of,
    within_range,
)
from openfield.objectives.tables.images import no_code, several_codes
from openfield.objectives.tables.pairs import Overlap, Pairs, merge_pairs
from openfield.objectives.tables.rows import Array
from openfield.objectives.tables.table import Table, TableSummary, summarise_table

LARGE_ROWS = 12_000_000
"""Rows of a Parquet table from which it is not loaded into memory."""
LARGE_BYTES = 1 << 29
"""Bytes of a pickle from which it is not loaded to be compared: ten million entries in the published form."""
NO_BOOK = "no code book; similarity compares image codes."


def is_large(path: Path) -> bool:
    """Return True if a table is not loaded into memory to be compared."""
    return count_rows(path) >= LARGE_ROWS if is_parquet(path) else path.stat().st_size >= LARGE_BYTES


def open_table(path: str | Path) -> Table | TableSummary:
    """Load a table file, or count it in bounded memory if it is large Parquet, whatever its size."""
    path = Path(path)
    if not is_parquet(path) or count_rows(path) < LARGE_ROWS:
        return load_table(path)
    return summarise_large(path)


def summarise_file(path: str | Path) -> TableSummary:
    """Return the summary of a table file. Large Parquet is counted in bounded memory, whatever its size."""
    found = open_table(path)
    return found if isinstance(found, TableSummary) else summarise_table(found)


def summarise_large(path: Path) -> TableSummary:
    """Return the summary of a Parquet table, counted shard by shard."""
    with in_order(path) as table:
        return summarise_shards(table, name=path)


def _open_positive(base: Database, number: int, table: Path, name: Path) -> RowFacts:
    """Make the view `rows1` or `rows2` of the rows of a table with positive counts."""
    facts = open_rows(base, number, table, name)
    if facts.rows == facts.zeros:
        raise InvalidInput(f"{name}: no positive counts.")
    base.run(f"CREATE VIEW rows{number} AS SELECT * FROM all{number} WHERE count > 0")
    return facts


def compare_files(first: Path, second: Path, *, compat: bool = False, inputs: Inputs = "sources") -> Similarity:
    """Compare two table files as `compare` does. Large ones are joined in bounded memory."""
    return similarity_of(pair_files(first, second, compat=compat, inputs=inputs))


def pair_files(first: Path, second: Path, *, compat: bool = False, inputs: Inputs = "sources") -> Pairs:
    """Count how often two agents met the same images, from their files. Arguments and errors are those of `compare`."""
    if is_large(first) or is_large(second):
        with suppress(HugeIds):
            return pair_large(first, second, compat=compat, inputs=inputs)
    return pair_tables(load_table(first), load_table(second), compat=compat, inputs=inputs)


def pair_large(first: Path, second: Path, *, compat: bool = False, inputs: Inputs = "sources") -> Pairs:
    """Count as `pair_files` does, with DuckDB."""
    with _two_tables(first, second) as base:
        reasons, alone = [], []
        for number, path in ((1, first), (2, second)):
            _make_visits(base, number, ("obs", "next_obs") if inputs == "all" else ("obs",))
            _check_codes(base, number, path, compat=compat)
            if compat:
                reasons.append(_make_original_images(base, number, path))
            else:
                alone += [(0.0, times)[:: 1 if number == 2 else -1] for times in _make_images(base, number)]
        return _pair_images(base, alone, next(filter(None, reasons), ""))


@contextmanager
def _two_tables(first: Path, second: Path) -> Iterator[Database]:
    """Open two tables as `rows1`, `codes1`, `rows2` and `codes2`; `codes1` has the last code of every index."""
    with in_order(first) as one, in_order(second) as other:
        files = (one, book_path(one), other, book_path(other))
        with Database(*files) as base, reading(first, DAMAGED):
            facts = []
            for number, table, path in ((1, one, first), (2, other, second)):
                facts.append(_open_positive(base, number, table, path))
                if facts[-1].huge:
                    raise HugeIds
                if not book_path(table).exists():
                    raise InvalidInput(f"{path}: {NO_BOOK}")
                query = codes_in(base, book_path(table))
                base.run(
                    f"CREATE TABLE book{number} AS SELECT code, id, row_number() OVER () AS place "
                    f"FROM ({query}) AS book (code, id)"
                )
            _make_codes(base)
            check_thresholds((str(first), facts[0].header.meta), (str(second), facts[1].header.meta))
            yield base


def _make_codes(base: Database) -> None:
    """Give all codes one width, and make the tables `codes1` and `codes2` of the last code of every index."""
    width = "(SELECT max(octet_length(code)) FROM (SELECT code FROM book1 UNION ALL SELECT code FROM book2))"
    for number in (1, 2):
        base.run(f"UPDATE book{number} SET code = repeat('\\x00'::BLOB, {width} - octet_length(code)) || code")
        base.run(
            f"CREATE TABLE codes{number} AS "
            f"SELECT id, arg_max(code, place) AS code, count(*) AS codes FROM book{number} GROUP BY id"
        )


def _make_visits(base: Database, number: int, ends: tuple[str, ...]) -> None:
    every = " UNION ALL ".join(f"SELECT {end} AS id, count FROM rows{number}" for end in ends)
    base.run(f"CREATE TABLE visits{number} AS SELECT id, sum(count)::DOUBLE AS times FROM ({every}) GROUP BY id")


def _check_codes(base: Database, number: int, path: Path, *, compat: bool = False) -> None:
    """Check that every input that was visited has a code, and only index 0 several."""
    several = base.row(f"SELECT min(id) FROM codes{number} WHERE codes > 1 AND id <> 0")[0]
    if several is not None and not compat:
        raise several_codes(str(path), several)
    missing = f"SELECT min(id) FROM visits{number} ANTI JOIN codes{number} USING (id)"
    (index,) = base.row(missing + " WHERE id <> 0" if compat else missing)
    if index is not None:
        raise no_code(str(path), index)


def _make_images(base: Database, number: int) -> list[float]:
    """Make `timed1` and `listed1`: how often images were met, and which. Return how often a bucket was met.

    Index 0 with several codes is a bucket, of which every image counts as met.
    """
    met = f"visits{number} JOIN codes{number} USING (id)"
    base.run(f"CREATE TABLE timed{number} AS SELECT code, times FROM {met} WHERE id <> 0 OR codes = 1")
    bucket = base.rows(f"SELECT times FROM {met} WHERE id = 0 AND codes > 1")
    inside = f"SELECT code FROM book{number} WHERE id = 0 AND {len(bucket)} > 0"
    base.run(f"CREATE TABLE listed{number} AS SELECT code FROM timed{number} UNION {inside}")
    return [float(times) for (times,) in bucket]


def _make_original_images(base: Database, number: int, path: Path) -> str:
    """Make `timed1` and `listed1` by the original's rules. Return why images cannot be listed, if they cannot.

    Index 0 is code 0 for how often images were met, and its last code for which were met.
    """
    met = f"visits{number} LEFT JOIN codes{number} USING (id)"
    (width,) = base.row("SELECT max(octet_length(code)) FROM (SELECT code FROM book1 UNION ALL SELECT code FROM book2)")
    zero = f"repeat('\\x00'::BLOB, {width or 16})"
    base.run(
        f"CREATE TABLE timed{number} AS SELECT CASE WHEN id = 0 THEN {zero} ELSE code END AS code, times FROM {met}"
    )
    base.run(f"CREATE TABLE listed{number} AS SELECT DISTINCT code FROM {met} WHERE code IS NOT NULL")
    (missing,) = base.row(f"SELECT count(*) FROM {met} WHERE code IS NULL")
    return str(no_code(str(path), 0)) if missing else ""


def _pair_images(base: Database, alone: list[tuple[float, ...]], reason: str) -> Pairs:
    sides = (f"(SELECT code, sum(times) AS times FROM timed{number} GROUP BY code)" for number in (1, 2))
    found = base.columns(
        "SELECT first, second, count(*) AS times FROM (SELECT coalesce(one.times, 0) AS first, "
        f"coalesce(two.times, 0) AS second FROM {' AS one FULL JOIN '.join(sides)} AS two USING (code)) GROUP BY ALL"
    )
    ((shared,), (union,)) = (
        base.row(f"SELECT count(*) FROM (SELECT code FROM listed1 {word} SELECT code FROM listed2)")
        for word in ("INTERSECT", "UNION")
    )
    first, second = (
        np.append(found[side], [pair[at] for pair in alone]) for at, side in enumerate(("first", "second"))
    )
    times = np.append(found["times"], np.ones(len(alone))).astype(np.int64)
    return merge_pairs([Pairs(first, second, times, Overlap(int(shared), int(union), reason))])


def compare_conditional_files(first: Path, second: Path) -> Conditionals:
    """Compare two table files as `compare_conditionals` does. Large ones are joined in bounded memory."""
    if is_large(first) or is_large(second):
        with suppress(HugeIds):
            return compare_conditional_large(first, second)
    return compare_conditionals(load_table(first), load_table(second))


def compare_conditional_large(first: Path, second: Path) -> Conditionals:
    """Compare as `compare_conditional_files` does, with DuckDB."""
    with _two_tables(first, second) as base:
        paths = ((1, first), (2, second))
        for number, path in paths:
            _make_visits(base, number, ("obs",))
            _check_codes(base, number, path)
            bucket = f"'\\x0{number}'::BLOB"  # shorter than any code: a bucket of one side equals nothing of the other
            base.run(
                f"CREATE VIEW images{number} AS SELECT id, "
                f"CASE WHEN id = 0 AND codes > 1 THEN {bucket} ELSE code END AS image FROM codes{number}"
            )
        actions = _divergence(base, "rows{0} JOIN images{0} AS source ON obs = source.id", "action")
        try:
            for number, path in paths:
                base.run(f"DROP TABLE visits{number}")
                _make_visits(base, number, ("next_obs",))
                _check_codes(base, number, path)
        except InvalidInput as error:
            return Conditionals(action_jsd_nats=actions, next_jsd_nats=None, reasons={"next_jsd_nats": str(error)})
        joined = "rows{0} JOIN images{0} AS source ON obs = source.id JOIN images{0} AS later ON next_obs = later.id"
        return Conditionals(action_jsd_nats=actions, next_jsd_nats=_divergence(base, joined, "later.image"))


def _divergence(base: Database, joined: str, outcome: str) -> float:
    """Return the divergence of an outcome given the image, from a table of how often each occurred on both sides."""
    pairs = (
        f"(SELECT image, outcome, times, sum(times) OVER (PARTITION BY image) AS of_image FROM (SELECT source.image, "
        f"{outcome} AS outcome, sum(count)::DOUBLE AS times FROM {joined.format(number)} GROUP BY ALL))"
        for number in (1, 2)
    )
    found = base.columns(
        "SELECT coalesce(one.times, 0) AS a, coalesce(one.of_image, 1) AS of_a, coalesce(two.times, 0) AS b, "
        f"coalesce(two.of_image, 1) AS of_b, count(*) AS n FROM {' AS one FULL JOIN '.join(pairs)} AS two "
        "USING (image, outcome) GROUP BY ALL ORDER BY ALL"
    )
    a, of_a, b, of_b, n = (np.asarray(found[name]) for name in ("a", "of_a", "b", "of_b", "n"))
    return within_range((_one_sided(a, a / of_a, b / of_b, n) + _one_sided(b, b / of_b, a / of_a, n)) / 2)


def _one_sided(times: Array, given: Array, theirs: Array, n: Array) -> float:
    """Return how far the outcomes of one side are from those of both, weighted by how often they occurred."""
    mine = times > 0
    total = float(times @ n)
    weights = n[mine] * (times[mine] / total)
    return math.fsum((weights * excess(given[mine], theirs[mine])).tolist())
