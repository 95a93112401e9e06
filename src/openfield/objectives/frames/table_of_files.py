"""Make a table file from episode files in bounded memory: the same table as `table_of_episodes.build_table` makes.

Used by `openfield objectives frames`. Frames are encoded a batch at a time. Each batch stores the transitions between
its own codes. The codes get their final numbers when all episodes have been read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from openfield.database import Database
from openfield.errors import InvalidInput
from openfield.objectives.formats.convert import check_target, convert
from openfield.objectives.formats.parquet import Header
from openfield.objectives.formats.table_builder import TableBuilder
from openfield.objectives.frames.encode import index_words
from openfield.objectives.frames.table_of_episodes import (
    Recipe,
    bins_for,
    described,
    encoded,
    no_transition,
    open_episode,
    taken_actions,
)
from openfield.objectives.tables.codes import as_bytes
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.rows import Rows
from openfield.objectives.tables.transitions import Alignment, sum_rows

BATCH = 1 << 16
"""Frames in a batch; codes that repeat within it are stored once."""


class Written(NamedTuple):
    """The size of a table that was written."""

    rows: int
    transitions: int
    inputs: int


def write_episodes(
    paths: Sequence[Path], recipe: Recipe, target: str | Path, thresholds: Array | None = None
) -> Written:
    """Write the table of all episodes, with its code book, in the format of the target's name.

    Args:
        paths: The episodes, as `open_episode` reads them.
        recipe: How frames become inputs.
        target: The table file to write.
        thresholds: Thresholds to discretize pixels. The default is found from all episodes.

    Raises:
        InvalidInput: A path is not an episode, no episode has a transition, or the disk is full.
    """
    target = Path(target)
    check_target(target)
    try:
        return _write(paths, recipe, target, thresholds)
    except OSError as error:
        raise InvalidInput(
            f"{target}: cannot be made: {error.strerror or error} (temporary files are in {tempfile.gettempdir()})."
        ) from None


def _write(paths: Sequence[Path], recipe: Recipe, target: Path, thresholds: Array | None) -> Written:
    if target.suffix == ".parquet":
        return _write_parquet(paths, recipe, target, thresholds)
    with tempfile.TemporaryDirectory(prefix="openfield-") as folder:
        between = Path(folder) / "table.parquet"
        written = _write_parquet(paths, recipe, between, thresholds)
        convert(between, target)
    return written


def _write_parquet(paths: Sequence[Path], recipe: Recipe, target: Path, thresholds: Array | None) -> Written:
    bins = bins_for(map(open_episode, paths), recipe, thresholds)
    with TableBuilder(target) as builder:
        base = builder.base
        base.run("CREATE TABLE met (batch INTEGER, number INTEGER, code BLOB)")
        base.run("CREATE TABLE moves (batch INTEGER, obs INTEGER, action BIGINT, next_obs INTEGER, count BIGINT)")
        for number, batch in enumerate(_batches(_pieces(paths, recipe.alignment, bins))):
            _put_aside(base, number, batch)
        _number_codes(builder, recipe.start)
        rows, transitions = base.row("SELECT count(*), sum(count)::BIGINT FROM rows")
        if not rows:
            raise no_transition([str(path) for path in paths])
        written = builder.write(Header(meta=described(None, bins, recipe, len(paths))), single=True)
        return Written(rows, transitions, written.num_inputs or 0)


def _put_aside(base: Database, number: int, batch: _Batch) -> None:
    """Keep the codes and transitions of a batch."""
    size = len(batch.words)
    base.insert("met", {"batch": np.full(size, number), "number": np.arange(size), "code": as_bytes(batch.words)})
    rows = dict(zip(("obs", "action", "next_obs", "count"), batch.rows, strict=True))
    base.insert("moves", {"batch": np.full(len(batch.rows.obs), number), **rows})


def _number_codes(builder: TableBuilder, start: int) -> None:
    """Number all codes in the order they first appear, and add the transitions between them."""
    builder.base.run(
        "INSERT INTO codes SELECT code, place + ?, place FROM (SELECT code, row_number() OVER (ORDER BY first) - 1 "
        "AS place FROM (SELECT code, min((batch, number)) AS first FROM met GROUP BY code))",
        start,
    )
    builder.has_book = True
    builder.base.run("CREATE TABLE numbered AS SELECT batch, number, codes.index FROM met JOIN codes USING (code)")
    builder.base.run(
        "INSERT INTO rows SELECT one.index, two.index, moves.action, sum(count)::BIGINT FROM moves "
        "JOIN numbered AS one ON one.batch = moves.batch AND one.number = moves.obs "
        "JOIN numbered AS two ON two.batch = moves.batch AND two.number = moves.next_obs GROUP BY ALL"
    )


class _Piece(NamedTuple):
    """Frames that follow each other within an episode."""

    words: Array
    actions: Array
    """The action from each frame to the next, one fewer than frames."""


def _pieces(paths: Iterable[Path], alignment: Alignment, bins: Array) -> Iterator[_Piece]:
    """Yield every episode in pieces; each begins with the last frame of the piece before."""
    for path in paths:
        episode = open_episode(path)
        actions, last, start = taken_actions(episode, alignment), None, 0
        for stretch in encoded(episode, bins):
            words = stretch if last is None else np.concatenate((last, stretch))
            last, end = words[-1:], start + len(words) - 1
            yield _Piece(words, actions[start:end])
            start = end


class _Batch(NamedTuple):
    """Transitions between the distinct codes of some pieces."""

    words: Array
    rows: Rows


def _batches(pieces: Iterable[_Piece]) -> Iterator[_Batch]:
    waiting: list[_Piece] = []
    frames = 0
    for piece in pieces:
        waiting.append(piece)
        frames += len(piece.words)
        if frames >= BATCH:
            yield _batch(waiting)
            waiting, frames = [], 0
    if waiting:
        yield _batch(waiting)


def _batch(pieces: Sequence[_Piece]) -> _Batch:
    local, words = index_words(np.concatenate([piece.words for piece in pieces]))
    ends = np.cumsum([len(piece.words) for piece in pieces]) - 1
    at = np.delete(np.arange(len(local)), ends)
    actions = np.concatenate([piece.actions for piece in pieces])
    return _Batch(words, sum_rows(Rows(local[at], actions, local[at + 1], np.ones(len(at), np.int64))))
