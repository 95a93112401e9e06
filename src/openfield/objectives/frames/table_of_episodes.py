"""Open episodes of frames (NPZ files, image folders, videos, arrays) and make one table of them.

The frames are read twice: first to find the thresholds, then to encode them and count transitions.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec
import numpy as np

from openfield.errors import InvalidInput
from openfield.files.database import Database
from openfield.objectives.formats.convert import check_target, convert_table
from openfield.objectives.formats.parquet import Header
from openfield.objectives.formats.table_builder import TableBuilder
from openfield.objectives.frames.encode import (
    check_bins,
    check_finite,
    downscale,
    encode_frames,
    index_words,
    marks_of,
    percentiles,
)
from openfield.objectives.frames.episode_files import (
    find_images,
    listed,
    member_names,
    read_action_file,
    read_actions,
    read_array,
    read_images,
    read_length,
    read_stretches,
)
from openfield.objectives.frames.videos import VIDEO_ENDINGS, count_video_frames, find_video_actions, read_video
from openfield.objectives.tables.checks import MAX_INT64
from openfield.objectives.tables.codes import as_bytes, integers_of, make_book
from openfield.objectives.tables.rows import Array, Rows
from openfield.objectives.tables.table import Meta, Table, make_table
from openfield.objectives.tables.transitions import Alignment, sum_rows

FRAME_NAMES = ("observ", "observations", "observation", "obs", "images", "frames")
ACTION_NAMES = ("action", "actions")
MAX_HELD = 1 << 21
"""Values of all pixels together that are held in memory: 16 MB, and several times that while they are sorted."""
WAITING = 1 << 20
"""Values that wait, at least, before they are merged into the known ones."""
STRETCH = 1 << 12
"""Frames read at once."""
MERGE = 1 << 20
"""Rows gathered before equal ones are added up."""


class FrameEpisode(NamedTuple):
    """One episode of frames and actions. The frames are read again each time `frames` is called.

    There is one action per frame, or one fewer if the last action led to the last frame.
    """

    name: str
    frames: Callable[[], Iterator[Array]]
    actions: Array
    length: int
    """Number of frames."""


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """How frames become inputs."""

    size: int = 8
    levels: int = 4
    alignment: Alignment = "action_leads_to_next"
    start: int = 1
    """The first index. Comparisons of tables treat index 0 specially."""


def open_episode(path: str | Path) -> FrameEpisode:
    """Open an NPZ file, a folder of images with its actions, or a video with its actions beside it, as an episode.

    Raises:
        InvalidInput: It has no frames or no actions, or their numbers do not fit.
        MissingExtra: It is a video, and there is no decoder.
    """
    path = Path(path)
    if path.is_dir():
        images = find_images(path)
        actions = _whole(read_actions(path), path)
        return FrameEpisode(str(path), lambda: read_images(images, STRETCH // 16), actions, len(images))
    if path.suffix.lower() in VIDEO_ENDINGS:
        length = count_video_frames(path)
        actions = _read_video_actions(find_video_actions(path))
        return FrameEpisode(str(path), lambda: read_video(path, STRETCH // 16), actions, length)
    names = member_names(path)
    frames, taken = _first_of(path, names, FRAME_NAMES), _first_of(path, names, ACTION_NAMES)
    length = read_length(path, frames)
    _check_lengths(str(path), length, read_length(path, taken))  # before anything is unpacked
    actions = _whole(read_array(path, taken), path)
    return FrameEpisode(str(path), lambda: read_stretches(path, frames, STRETCH), actions, length)


def _read_video_actions(file: Path) -> Array:
    if file.suffix != ".npz":
        return _whole(read_action_file(file), file)
    return _whole(read_array(file, _first_of(file, member_names(file), ACTION_NAMES)), file)


def episodes_of_arrays(observations: Array, actions: Array, ends: Array, name: str = "arrays") -> list[FrameEpisode]:
    """Split arrays, as Gymnasium loops and Minari data sets have them, into episodes.

    Args:
        observations: Frames of all episodes, one after the other.
        actions: Actions, one per frame.
        ends: One flag per frame, true at the last frame of each episode (terminations or truncations).
        name: The name that messages use.
    """
    ends = np.asarray(ends, bool)
    if not len(observations) == len(actions) == len(ends):
        raise InvalidInput(f"{name}: {len(observations)} frames, {len(actions)} actions and {len(ends)} flags.")
    cuts = [0, *(np.flatnonzero(ends) + 1).tolist(), len(ends)]
    spans = [(start, stop) for start, stop in pairwise(cuts) if stop > start]
    return [
        FrameEpisode(
            f"{name}[{start}:{stop}]", _slices(observations, start, stop), np.asarray(actions[start:stop]), stop - start
        )
        for start, stop in spans
    ]


def find_thresholds(episodes: Iterable[FrameEpisode], recipe: Recipe) -> Array:
    """Find the thresholds that `discretize` finds for all frames of all episodes together, in bounded memory."""
    with PixelValues(recipe.size**2) as pixels:
        for episode in episodes:
            frames = 0
            for part in _small_frames(episode, recipe.size):
                frames += len(part)
                pixels.add(part.reshape(len(part), -1))
            if not frames:
                raise InvalidInput(f"{episode.name}: there are no frames in it.")
        found = pixels.thresholds(recipe.levels)
    if found is None:
        raise InvalidInput("There are no frames to find thresholds for.")
    return found.reshape(recipe.size, recipe.size, recipe.levels - 1)


def build_table(
    episodes: Sequence[FrameEpisode], recipe: Recipe, thresholds: Array | None = None, meta: Meta | None = None
) -> Table:
    """Build the table of all episodes, with its code book. There is no transition from one episode to the next.

    The table and its codes are in memory. `table_of_files` writes the same table as a file, for any number of episodes.

    Thresholds to discretize pixels are found from all episodes if none are given.
    """
    bins = bins_for(episodes, recipe, thresholds)
    seen: dict[int, int] = {}
    parts: list[Rows] = []
    waiting = 0  # rows since equal ones were added up
    for episode in episodes:
        actions, words = taken_actions(episode, recipe.alignment), list(encoded(episode, bins))
        inputs = _number(np.concatenate(words), seen, recipe.start) if words else np.empty(0, np.int64)
        parts.append(Rows(inputs[:-1], actions, inputs[1:], np.ones(len(actions), np.int64)))
        waiting += len(actions)
        if waiting > MERGE:
            parts, waiting = [_add_up(parts)], 0
    if not any(len(part.obs) for part in parts):
        raise no_transition([episode.name for episode in episodes])
    table = make_table([_add_up(parts)], meta=described(meta, bins, recipe, len(episodes)), ordered=True)
    return msgspec.structs.replace(table, book=make_book(list(seen), seen.values()))


def bins_for(episodes: Iterable[FrameEpisode], recipe: Recipe, thresholds: Array | None) -> Array:
    """Check the given thresholds, or find those of the episodes if none are given."""
    if recipe.levels < 1:
        raise InvalidInput(f"The number of levels is {recipe.levels}; it must be positive.")
    bins = find_thresholds(episodes, recipe) if thresholds is None else thresholds
    return check_bins(bins, (recipe.size, recipe.size))


def encoded(episode: FrameEpisode, bins: Array) -> Iterator[Array]:
    """Yield the codes of an episode's frames, a stretch at a time."""
    return (encode_frames(part, bins) for part in _small_frames(episode, len(bins)))


def taken_actions(episode: FrameEpisode, alignment: Alignment) -> Array:
    """Return the action that led from each frame to the next."""
    actions, frames = episode.actions, episode.length
    _check_lengths(episode.name, frames, len(actions))
    late = alignment == "action_led_here" and len(actions) == frames
    return actions[1:] if late else actions[: max(frames - 1, 0)]


def described(meta: Meta | None, bins: Array, recipe: Recipe, episodes: int) -> Meta:
    """Return the meta data of a table with its thresholds, alignment and number of episodes added."""
    return msgspec.structs.replace(
        meta or Meta(),
        thresholds=hash_of(bins),
        bins=bins.tolist(),
        alignment=recipe.alignment,
        episodes=episodes,
    )


def no_transition(names: Sequence[str]) -> InvalidInput:
    """Return the error for episodes without a transition."""
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    who = f"{names[0]}{more}" if names else "No episodes"
    return InvalidInput(f"{who}: no transition in it; an episode needs two frames at least.")


def hash_of(thresholds: Array) -> str:
    """Return a short hash of thresholds. Tables with the same hash can be compared."""
    return hashlib.sha256(np.ascontiguousarray(thresholds, "<f8").tobytes()).hexdigest()[:16]


class Written(NamedTuple):
    """The size of a table that was written."""

    rows: int
    transitions: int
    inputs: int


def write_episode_table(
    paths: Sequence[Path], recipe: Recipe, target: str | Path, thresholds: Array | None = None
) -> Written:
    """Write the table of all episodes, with its code book, in the format of the target's name.

    Thresholds to discretize pixels are found from all episodes if none are given.

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
        convert_table(between, target)
    return written


def _write_parquet(paths: Sequence[Path], recipe: Recipe, target: Path, thresholds: Array | None) -> Written:
    bins = bins_for(map(open_episode, paths), recipe, thresholds)
    with TableBuilder(target) as builder:
        base = builder.base
        base.run("CREATE TABLE frames (place BIGINT, code BLOB)")
        base.run("CREATE TABLE actions (place BIGINT, action BIGINT)")
        place = 0
        for episode in map(open_episode, paths):
            actions = taken_actions(episode, recipe.alignment)
            base.insert("actions", {"place": place + np.arange(len(actions)), "action": actions})
            for words in encoded(episode, bins):
                base.insert("frames", {"place": place + np.arange(len(words)), "code": as_bytes(words)})
                place += len(words)
        _number_codes(builder, recipe.start)
        rows, transitions = base.row("SELECT count(*), sum(count)::BIGINT FROM rows")
        if not rows:
            raise no_transition([str(path) for path in paths])
        written = builder.write(Header(meta=described(None, bins, recipe, len(paths))), single=True)
        return Written(rows, transitions, written.num_inputs or 0)


def _number_codes(builder: TableBuilder, start: int) -> None:
    """Number all codes in the order they first appear, and add the transitions between them."""
    builder.base.run(
        "INSERT INTO codes SELECT code, number + ?, number FROM (SELECT code, row_number() OVER (ORDER BY min(place)) "
        "- 1 AS number FROM frames GROUP BY code)",
        start,
    )
    builder.has_book = True
    builder.base.run(
        "CREATE TABLE inputs AS SELECT frames.place, codes.index AS input FROM frames JOIN codes USING (code)"
    )
    builder.base.run(
        "INSERT INTO rows SELECT one.input, two.input, action, count(*) FROM actions JOIN inputs AS one "
        "ON one.place = actions.place JOIN inputs AS two ON two.place = actions.place + 1 GROUP BY ALL"
    )


def _number(words: Array, seen: dict[int, int], start: int) -> Array:
    """Number codes in the order they first appear over all episodes, and keep the new ones in `seen`."""
    local, distinct = index_words(words)
    return np.array([seen.setdefault(code, len(seen) + start) for code in integers_of(distinct)], np.int64)[local]


def _add_up(parts: Sequence[Rows]) -> Rows:
    return sum_rows(Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True))))


def _check_lengths(name: str, frames: int, actions: int) -> None:
    if actions not in (frames, frames - 1):
        raise InvalidInput(f"{name}: {frames} frames and {actions} actions; one per frame is needed.")


def _small_frames(episode: FrameEpisode, size: int) -> Iterator[Array]:
    """Yield frames downscaled to (T, size, size) float64; frames of that size stay as they are."""
    start = 0
    for part in filter(len, episode.frames()):
        if part.ndim != 3:
            raise InvalidInput(f"{episode.name}: frames must be (T, H, W); these are {part.shape}.")
        small = part.shape[1:] == (size, size)
        try:
            check_finite(part, np.float64 if small else np.float32, start)
        except InvalidInput as error:
            raise InvalidInput(f"{episode.name}: {error}") from None
        yield part.astype(np.float64) if small else downscale(part, size)
        start += len(part)


def _first_of(path: Path, names: Sequence[str], wanted: Sequence[str]) -> str:
    for name in wanted:
        if name in names:
            return name
    raise InvalidInput(f"{path}: no array '{wanted[0]}'; it has {listed(names)}.")


def _whole(actions: Array, path: Path) -> Array:
    if actions.ndim != 1 or actions.dtype.kind not in "biu":
        raise InvalidInput(f"{path}: actions must be whole numbers, one per frame; these are {actions.dtype}.")
    if len(actions) and int(actions.max()) > MAX_INT64:
        raise InvalidInput(f"{path}: action {actions.max()} is beyond 64 bits.")
    return actions.astype(np.int64)


def _slices(frames: Array, start: int, stop: int) -> Callable[[], Iterator[Array]]:
    return lambda: (np.asarray(frames[at : min(at + STRETCH, stop)]) for at in range(start, stop, STRETCH))


class PixelValues:
    """The distinct values of every pixel. New values are merged when they are as many as the known ones."""

    def __init__(self, pixels: int) -> None:
        self._known = [np.empty(0) for _ in range(pixels)]
        self._waiting: list[Array] = []
        self._held = self._waits = 0
        self._base: Database | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._base is not None:
            self._base.__exit__(kind, error, trace)

    def add(self, frames: Array) -> None:
        """Note the values of frames, one frame a row."""
        self._waiting.append(frames)
        self._waits += frames.size
        if self._waits > max(WAITING, self._held):
            self._merge()
            if self._held > MAX_HELD:
                self._spill()

    def thresholds(self, levels: int) -> Array | None:
        """Return the thresholds of each pixel, a row each; None if there has been no frame."""
        self._merge()
        if self._base is None:
            found = [percentiles(values, levels) for values in self._known if len(values)]
            return np.array(found) if found else None
        base = self._spill()
        return np.array([_thresholds(base, pixel, levels) for pixel in range(len(self._known))])

    def _merge(self) -> None:
        if self._waiting:
            columns = np.concatenate(self._waiting).T
            self._known = [np.union1d(known, new) for known, new in zip(self._known, columns, strict=True)]
            self._waiting, self._waits = [], 0
            self._held = sum(map(len, self._known))

    def _spill(self) -> Database:
        """Move the known values into a database."""
        if self._base is None:
            self._base = Database()
            self._base.run("CREATE TABLE seen (pixel INTEGER, value DOUBLE)")
        pixels = np.repeat(np.arange(len(self._known)), [len(values) for values in self._known])
        self._base.insert("seen", {"pixel": pixels, "value": np.concatenate(self._known)})
        self._known, self._held = [np.empty(0) for _ in self._known], 0
        return self._base


def _thresholds(base: Database, pixel: int, levels: int) -> list[float]:
    """Return what `percentiles` finds, from the two values beside each place that is asked for."""
    base.run("CREATE OR REPLACE TABLE ordered AS SELECT DISTINCT value FROM seen WHERE pixel = ? ORDER BY value", pixel)
    (size,) = base.row("SELECT count(*) FROM ordered")
    found = []
    for mark in marks_of(levels):
        place = (size - 1) * np.true_divide(mark, 100)
        below = int(np.floor(place))
        beside = base.columns("SELECT value FROM ordered WHERE rowid >= ? AND rowid < ?", below, below + 2)["value"]
        found.append(float(np.quantile(beside, place - below)))
    return found
