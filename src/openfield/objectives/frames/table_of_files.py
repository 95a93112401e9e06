"""Episode files made into a table file in bounded memory: the same table that `episodes.build_table` makes.

Beside `episodes`; used by `openfield objectives frames`. Frames become codes a batch at a time; a batch keeps its
transitions between its own codes, which get their numbers once all episodes have been read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from openfield.errors import InvalidInput
from openfield.objectives.formats.convert import check_target, convert
from openfield.objectives.formats.parquet import Header, TableWriter
from openfield.objectives.frames.encode import encode_frames, index_words
from openfield.objectives.frames.numbering import Numbering
from openfield.objectives.frames.table_of_episodes import (
    Recipe,
    bins_for,
    described,
    encoded,
    no_transition,
    open_episode,
    taken_actions,
)
from openfield.objectives.outofcore.spill import BookSpill, Spill
from openfield.objectives.tables.histograms import Array
from openfield.objectives.tables.rows import Rows
from openfield.objectives.tables.transitions import Alignment, sum_rows

BATCH = 1 << 16
"""Frames whose codes are compared in memory; what repeats within them is put aside once."""
HANDLED = 500_000
"""Codes or rows handled at once."""
_MOVE = np.dtype([("obs", "<i4"), ("action", "<i8"), ("next_obs", "<i4"), ("count", "<i8")])


class Written(NamedTuple):
    """What a table made from episodes has in it."""

    rows: int
    transitions: int
    inputs: int


def write_episodes(
    paths: Sequence[Path], recipe: Recipe, target: str | Path, thresholds: Array | None = None
) -> Written:
    """Make the table of all episodes, with its code book, in the form the target's name asks for.

    Raises:
        InvalidInput: An episode is something else, none has a transition, or there is no room for the table.
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
    width = encode_frames(np.empty((0, *bins.shape[:2])), bins).shape[1]
    with (
        Numbering(width, recipe.start, HANDLED) as numbering,
        Spill(HANDLED) as spill,
        BookSpill(str(target), HANDLED) as book,
        tempfile.TemporaryFile(prefix="openfield-") as moves,
    ):
        sizes = _put_aside(_batches(_pieces(paths, recipe.alignment, bins)), numbering, moves)
        for rows in _numbered(numbering.numbers(book), moves, sizes):
            spill.add(rows)
        if not spill.rows:
            raise no_transition([str(path) for path in paths])
        header = Header(meta=described(None, bins, recipe, len(paths)), num_inputs=numbering.inputs)
        return _write_in_order(spill, target, header, book)


def _write_in_order(spill: Spill, target: Path, header: Header, book: BookSpill) -> Written:
    rows = transitions = 0
    with TableWriter(target) as writer:
        for part in spill.in_order():
            writer.add(part)
            rows, transitions = rows + len(part.obs), transitions + int(part.counts.sum())
        writer.finish(header, book.in_order())
    return Written(rows, transitions, header.num_inputs or 0)


class _Piece(NamedTuple):
    """Frames that follow each other within an episode."""

    words: Array
    actions: Array
    """What led from each to the next, one fewer than frames."""


def _pieces(paths: Iterable[Path], alignment: Alignment, bins: Array) -> Iterator[_Piece]:
    """Every episode in pieces, each of which begins with the last frame of the one before."""
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

    @property
    def used(self) -> Array:
        """Which codes are in a transition."""
        used = np.zeros(len(self.words), bool)
        used[self.rows.obs] = used[self.rows.next_obs] = True
        return used


class _Size(NamedTuple):
    """How much of a batch was put aside."""

    codes: int
    rows: int


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


def _put_aside(batches: Iterable[_Batch], numbering: Numbering, moves: IO[bytes]) -> list[_Size]:
    sizes = []
    for batch in batches:
        numbering.add(batch.words, batch.used)
        records = np.empty(len(batch.rows.obs), _MOVE)
        for name, column in zip(_MOVE.names or (), batch.rows, strict=True):
            records[name] = column
        moves.write(records.tobytes())
        sizes.append(_Size(len(batch.words), len(records)))
    return sizes


def _numbered(numbers: Iterator[Array], moves: IO[bytes], sizes: Iterable[_Size]) -> Iterator[Rows]:
    """The rows of every batch with the numbers of its codes, which come in the same order."""
    held = np.empty(0, np.int64)
    moves.seek(0)
    for size in sizes:
        while len(held) < size.codes:
            held = np.concatenate((held, next(numbers)))
        records = np.frombuffer(moves.read(size.rows * _MOVE.itemsize), _MOVE)
        yield Rows(held[records["obs"]], records["action"], held[records["next_obs"]], records["count"])
        held = held[size.codes :]
