"""Episodes from NPZ files, image folders and arrays, made into one table in bounded memory.

Before `tables`: thresholds are found in a first reading, codes and transitions in a second.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from openfield.errors import InvalidInput, MissingExtra
from openfield.objectives.checks import LARGEST
from openfield.objectives.codes import CodeBook, integers_of, make_book
from openfield.objectives.frames import (
    Alignment,
    check_bins,
    check_finite,
    downscale,
    encode_frames,
    grey,
    index_words,
    percentiles,
    sum_rows,
)
from openfield.objectives.histograms import Array
from openfield.objectives.npz import listed, member_names, read_array, read_length, read_stretches
from openfield.objectives.records import Rows
from openfield.objectives.tables import Meta, Table, make_table

FRAME_NAMES = ("observ", "observations", "observation", "obs", "images", "frames")
ACTION_NAMES = ("action", "actions")
IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif")
STRETCH = 1 << 12
"""Frames read at once."""
MERGE = 1 << 20
"""Rows gathered before equal ones are added up."""


class Episode(NamedTuple):
    """One episode: its frames, read anew each time they are asked for, and its actions.

    There is one action per frame, or one fewer: then the last frame is what the last action led to.
    """

    name: str
    frames: Callable[[], Iterator[Array]]
    actions: Array


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """How frames become inputs."""

    size: int = 8
    levels: int = 4
    alignment: Alignment = "action_leads_to_next"
    start: int = 1
    """The first index; 0 has a meaning of its own where tables are compared."""


def open_episode(path: str | Path) -> Episode:
    """An episode from an NPZ file, or from a folder of images with an `actions.npy` or `actions.txt`.

    Raises:
        InvalidInput: There are no frames or actions in it.
    """
    path = Path(path)
    if path.is_dir():
        return _open_folder(path)
    names = member_names(path)
    frames, actions = _first_of(path, names, FRAME_NAMES), _first_of(path, names, ACTION_NAMES)
    _check_lengths(str(path), *(read_length(path, name) for name in (frames, actions)))  # before anything is unpacked
    return Episode(str(path), lambda: read_stretches(path, frames, STRETCH), _whole(read_array(path, actions), path))


def episodes_of_arrays(observations: Array, actions: Array, ends: Array, name: str = "arrays") -> list[Episode]:
    """Episodes from arrays as Gymnasium loops and Minari data sets have them.

    Args:
        observations: Frames of all episodes, one after the other.
        actions: Actions, one per frame.
        ends: One flag per frame, true at the last of each episode: terminations or truncations.
        name: What messages call it.
    """
    ends = np.asarray(ends, bool)
    if not len(observations) == len(actions) == len(ends):
        raise InvalidInput(f"{name}: {len(observations)} frames, {len(actions)} actions and {len(ends)} flags.")
    cuts = [0, *(np.flatnonzero(ends) + 1).tolist(), len(ends)]
    spans = [(start, stop) for start, stop in pairwise(cuts) if stop > start]
    return [
        Episode(f"{name}[{start}:{stop}]", _slices(observations, start, stop), np.asarray(actions[start:stop]))
        for start, stop in spans
    ]


def find_thresholds(episodes: Iterable[Episode], recipe: Recipe) -> Array:
    """The thresholds `discretize` would find for all frames of all episodes together, kept as distinct values only."""
    pixels: list[Array] = []
    for episode in episodes:
        frames = 0
        for part in _small_frames(episode, recipe.size):
            frames += len(part)
            columns = part.reshape(len(part), -1).T
            pixels = pixels or [np.empty(0) for _ in columns]
            pixels = [np.union1d(known, column) for known, column in zip(pixels, columns, strict=True)]
        if not frames:
            raise InvalidInput(f"{episode.name}: there are no frames in it.")
    if not pixels:
        raise InvalidInput("There are no frames to find thresholds for.")
    flat = np.array([percentiles(values, recipe.levels) for values in pixels])
    return flat.reshape(recipe.size, recipe.size, recipe.levels - 1)


def build_table(
    episodes: Sequence[Episode], recipe: Recipe, thresholds: Array | None = None, meta: Meta | None = None
) -> Table:
    """The table of all episodes, with its code book; nothing leads from one episode into the next."""
    if recipe.levels < 1:
        raise InvalidInput(f"The number of levels is {recipe.levels}; it must be positive.")
    bins = find_thresholds(episodes, recipe) if thresholds is None else thresholds
    bins = check_bins(bins, (recipe.size, recipe.size))
    indexer, counter = _Indexer(recipe.start), _Counter()
    for episode in episodes:
        words = [encode_frames(part, bins) for part in _small_frames(episode, recipe.size)]
        inputs = indexer.index(np.concatenate(words)) if words else np.empty(0, np.int64)
        counter.add(_transitions(episode, inputs, recipe.alignment))
    described = msgspec.structs.replace(
        meta or Meta(),
        thresholds=hash_of(bins),
        bins=bins.tolist(),
        alignment=recipe.alignment,
        episodes=len(episodes),
    )
    rows = counter.rows()
    if not len(rows.obs):
        raise InvalidInput(f"{_names(episodes)}: no transition in it; an episode needs two frames at least.")
    table = make_table([rows], meta=described, ordered=True)
    return msgspec.structs.replace(table, book=indexer.book())


def _names(episodes: Sequence[Episode]) -> str:
    more = f" and {len(episodes) - 1} more" if len(episodes) > 1 else ""
    return f"{episodes[0].name}{more}" if episodes else "No episodes"


def hash_of(thresholds: Array) -> str:
    """A short name for thresholds: tables with the same one can be compared."""
    return hashlib.sha256(np.ascontiguousarray(thresholds, "<f8").tobytes()).hexdigest()[:16]


class _Indexer:
    """Codes numbered in the order they first appear, over all episodes."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._seen: dict[int, int] = {}

    def index(self, words: Array) -> Array:
        local, distinct = index_words(words)
        seen, start = self._seen, self._start
        numbers = [seen.setdefault(code, len(seen) + start) for code in integers_of(distinct)]
        return np.array(numbers, np.int64)[local]

    def book(self) -> CodeBook:
        return make_book(list(self._seen), self._seen.values())


class _Counter:
    """Rows with equal ones added up whenever a million have gathered."""

    def __init__(self) -> None:
        self._parts: list[Rows] = []
        self._waiting = 0

    def add(self, rows: Rows) -> None:
        self._parts.append(rows)
        self._waiting += len(rows.obs)
        if self._waiting > MERGE:
            self._parts, self._waiting = [self.rows()], 0

    def rows(self) -> Rows:
        if not self._parts:
            return Rows(*(np.empty(0, np.int64) for _ in range(4)))
        return sum_rows(Rows(*(np.concatenate(columns) for columns in zip(*self._parts, strict=True))))


def _transitions(episode: Episode, inputs: Array, alignment: Alignment) -> Rows:
    actions = episode.actions
    _check_lengths(episode.name, len(inputs), len(actions))
    steps = max(len(inputs) - 1, 0)
    late = alignment == "action_led_here" and len(actions) == len(inputs)
    taken = actions[1:] if late else actions[:steps]
    return Rows(inputs[:-1], taken, inputs[1:], np.ones(steps, np.int64))


def _check_lengths(name: str, frames: int, actions: int) -> None:
    if actions not in (frames, frames - 1):
        raise InvalidInput(f"{name}: {frames} frames and {actions} actions; one per frame is needed.")


def _small_frames(episode: Episode, size: int) -> Iterator[Array]:
    """Frames as (T, size, size) float64; those that have the size already are taken as they are."""
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
    if actions.ndim != 1 or actions.dtype.kind not in "iu":
        raise InvalidInput(f"{path}: actions must be whole numbers, one per frame; these are {actions.dtype}.")
    if len(actions) and int(actions.max()) > LARGEST:
        raise InvalidInput(f"{path}: action {actions.max()} is beyond 64 bits.")
    return actions.astype(np.int64)


def _slices(frames: Array, start: int, stop: int) -> Callable[[], Iterator[Array]]:
    return lambda: (np.asarray(frames[at : min(at + STRETCH, stop)]) for at in range(start, stop, STRETCH))


def _open_folder(path: Path) -> Episode:
    images = sorted((file for file in path.iterdir() if file.suffix.lower() in IMAGE_ENDINGS), key=_in_sequence)
    if not images:
        raise InvalidInput(f"{path}: no images ({', '.join(IMAGE_ENDINGS)}) in the folder.")
    return Episode(str(path), lambda: _read_images(images), _whole(_read_actions(path), path))


def _in_sequence(file: Path) -> list[tuple[int, str]]:
    """Names with numbers in the order of the numbers: frame 10 comes after frame 9."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", file.name)]


def _read_actions(folder: Path) -> Array:
    array, text = folder / "actions.npy", folder / "actions.txt"
    file = array if array.exists() else text
    try:
        if file is array:
            return np.asarray(np.load(array, allow_pickle=False))
        return np.array(text.read_text().split(), np.int64)
    except FileNotFoundError:
        raise InvalidInput(f"{folder}: neither actions.npy nor actions.txt in the folder.") from None
    except (OSError, ValueError, EOFError, OverflowError):
        raise InvalidInput(f"{file}: actions cannot be read; one whole number per image is needed.") from None


def _read_images(files: Sequence[Path]) -> Iterator[Array]:
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("ond", "Reading images") from None
    for at in range(0, len(files), STRETCH // 16):
        batch: list[Any] = []
        for file in files[at : at + STRETCH // 16]:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", Image.DecompressionBombWarning)
                    with Image.open(file) as image:
                        batch.append(_in_grey(image))
            except (OSError, ValueError, Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
                raise InvalidInput(f"{file}: cannot be read as an image ({error}).") from None
        if len({frame.shape for frame in batch}) > 1:
            raise InvalidInput(f"{files[at].parent}: the images differ in size.")
        yield np.stack(batch)


def _in_grey(image: Any) -> Array:
    """Grey pictures as they are, coloured ones as all frames are made grey; what is transparent counts as it is."""
    if image.mode in ("1", "L", "LA"):
        return np.asarray(image.convert("L"))
    return grey(np.asarray(image.convert("RGB")))
