"""Builds tests from samples with labels: batches before the onset, and batches with a share of novel samples after it.

Between `samples.py` and the world; `write_tests` makes data directories that servers and clients of the protocol read.
Each kind of test has its own columns. Images have the unknown class first and the known ones from 1 on; the others have
the known ones from 0 on and the unknown one last. A further column names the unknown class of a sample.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.course import Moment
from openfield.domain import Domain
from openfield.domains.ond.settings import OndSettings
from openfield.domains.ond.testset import data_directory
from openfield.domains.ond.testset.samples import Samples, alter_images, change_images, load_samples
from openfield.domains.ond.testset.test import NOVEL_CLASS, Test, find_area
from openfield.errors import InvalidInput, UnknownName
from openfield.trial import Limits, Phase, Trial, derive

NEAREST = 5
"""How many similar classes the row of a video names."""
Row = tuple[str, ...]


class DrawnSamples(msgspec.Struct, frozen=True):
    """The samples of a test in order, with the truth about them."""

    ids: Sequence[str]
    novel: NDArray[np.bool_]
    labels: NDArray[np.int64]
    """1..K, and 0 for all unknown classes."""
    strange: NDArray[np.int64]
    """Which unknown class it is, from 1 on; 0 for known ones."""
    nearest: NDArray[np.int64]
    """The known classes that are most like a sample, from 0 on."""
    texts: Sequence[str]
    known: int

    @property
    def last(self) -> NDArray[np.int64]:
        """The labels where the unknown class comes last."""
        return np.where(self.labels == 0, self.known, self.labels - 1)

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Which samples come after the world has changed."""
        return np.maximum.accumulate(self.novel)


def _make_videos_rows(drawn: DrawnSamples) -> list[Row]:
    none = [""] * len(drawn.ids)
    named = [NOVEL_CLASS] * len(drawn.ids)
    near = [drawn.nearest[:, at] for at in range(NEAREST)]
    return _rows(drawn.ids, drawn.novel, drawn.changed, drawn.last, none, none, *near, named, drawn.strange)


def _make_documents_rows(drawn: DrawnSamples) -> list[Row]:
    none = [[""] * len(drawn.ids)] * 5  # nothing is known of how it was written
    named = [NOVEL_CLASS] * len(drawn.ids)
    zero = [0] * len(drawn.ids)
    head = (drawn.ids, drawn.texts, drawn.novel, zero, drawn.changed, drawn.last)
    return _rows(*head, *none, named, drawn.strange)


def _rows(*columns: Sequence[object] | NDArray[np.generic]) -> list[Row]:
    plain = [column.astype(int) if isinstance(column, np.ndarray) else column for column in columns]
    return [tuple(str(value) for value in row) for row in zip(*plain, strict=True)]


Layout = tuple[tuple[str, ...], Callable[[DrawnSamples], list[Row]]]
_VIDEOS = ("id", "novel", "detection", "class", "spatial", "temporal", "near_1", "near_2", "near_3", "near_4", "near_5")
_DOCUMENTS = ("id", "text", "novel", "representation", "detection", "writer", "pen_pressure", "letter_size")
LAYOUTS: dict[str, Layout] = {
    "image_classification": (
        ("id", "novel", "class", NOVEL_CLASS),
        lambda drawn: _rows(drawn.ids, drawn.novel, drawn.labels, drawn.strange),
    ),
    "activity_recognition": ((*_VIDEOS, "annotation", "value"), _make_videos_rows),
    "transcripts": ((*_DOCUMENTS, "word_spacing", "slant", "attribute", "annotation", "value"), _make_documents_rows),
}


def find_layout(area: str) -> Layout:
    """Return the header of a table and the function that makes its rows."""
    if area not in LAYOUTS:
        raise InvalidInput(
            f"Tests of {area} are about who wrote a text, and are not built from arrays. Name a data directory: "
            "--set data=DIR"
        )
    return LAYOUTS[area]


class Built(msgspec.Struct, frozen=True):
    """A test, and the labelled samples that agents may learn from; labels are 1..K, 0 is the unknown class."""

    test: Test
    images: NDArray[np.float32]
    labels: NDArray[np.int64]
    moments: tuple[Moment[OndSettings], ...] = ()
    """What is true of each batch, where changes come gradually or several times."""


def build_trial(domain: Domain[OndSettings], trial: Trial, split: int | None = None) -> Built:
    """Build the test of a trial, with the onset where its phases have it.

    An unchanged twin has the classes of its trial and samples of its own: by samples that both had, a client that
    keeps them could know the others.
    """
    moments = tuple(domain.list_moments(trial)[-trial.test_length :]) if trial.has_course else ()
    test = [phase for phase in trial.phases if phase.name == "test"]
    before = sum(phase.episodes for phase in test if not phase.novelty)
    settings, changed = (
        msgspec.structs.replace(domain.settings_in(trial, phase), before=before, after=trial.test_length - before)
        for phase in (Phase("test"), trial.phases[-1])
    )
    fixed = sum(phase.episodes for phase in test[:-1]) if trial.is_unchanged_twin else before  # the same in both twins
    calm = (fixed if trial.window is None else trial.window[0]) // 2
    if moments:
        settings = changed = msgspec.structs.replace(settings, before=trial.test_length, after=0)
    seed, split = trial.seed, trial.seed if split is None else split
    drawn = derive(seed, "unchanged") if trial.is_unchanged_twin else seed
    return build_test(settings, changed, drawn, split, calm, moments)


def build_test(
    settings: OndSettings,
    changed: OndSettings,
    seed: int,
    split: int | None = None,
    calm: int | None = None,
    moments: tuple[Moment[OndSettings], ...] = (),
) -> Built:
    """Build a test from the data that the settings name; from the onset on the world is as `changed` says.

    Args:
        settings: The settings before the onset.
        changed: The settings from the onset on.
        seed: Chooses the samples.
        split: Tests with the same one share their known and unknown classes and the training samples.
        calm: How many batches the metadata call free of novelty; the full number would reveal the onset.
        moments: What is true of each batch, where changes come gradually or several times.
    """
    split = seed if split is None else split
    samples = load_samples(msgspec.structs.replace(changed, typeface=settings.typeface), split)
    _, lay_out = find_layout(settings.area)
    drawer = _Drawer(samples, settings, np.random.default_rng(derive(split, "split")))
    training = drawer.draw_known(settings.training)
    rng = drawer.rng = np.random.default_rng(derive(seed, "test"))
    drawer.shuffle()
    count = settings.round_size * (settings.before + settings.after)
    stretches = list(_split_batches(settings, changed, moments))
    first = stretches[0][0].start if stretches else count
    name, ids = _name_test(settings, seed, split, count)
    picked, novel = np.empty(count, np.int64), np.zeros(count, bool)
    picked[:first] = drawer.draw_known(first)  # before anything that depends on the novelty: the onset must not show
    for span, batch in stretches:
        flags = np.zeros(span.stop - span.start, bool)
        if batch != settings:
            flags = (_scatter if moments else _spread)(len(flags), batch.share, rng)
        novel[span] = flags
        picked[span] = _draw(drawer, flags, batch)
    images = _take_images(samples, picked, settings, seed)
    for span, batch in stretches if images.ndim > 2 else ():
        at = span.start + np.flatnonzero(novel[span])
        if len(at):
            printed_anew = batch.typeface != settings.typeface and batch.data == "glyphs"
            shown = load_samples(batch, split).images[picked[at]] if printed_anew else images[at]
            images[at] = change_images(shown, batch, derive(seed, "grain", span.start))
    rows = lay_out(drawer.describe(samples, picked, novel, ids))
    metadata = _metadata(settings) | {"pre_novelty_batches": settings.before // 2 if calm is None else calm}
    if settings.data not in ("digits", "glyphs"):  # a classifier brings its own order of classes
        names = [samples.names[label] if samples.names else str(label) for label in drawer.known.tolist()]
        metadata["classes"] = names
    test = Test(name, settings.area, rows, metadata, images)
    return Built(test, _take_images(samples, training, settings, split), drawer.number(training), moments)


def _split_batches(
    settings: OndSettings, changed: OndSettings, moments: Sequence[Moment[OndSettings]]
) -> Iterator[tuple[slice, OndSettings]]:
    """Yield the samples from the first change on, in parts that have the same settings, with these settings."""
    size = settings.round_size
    if not moments:
        if settings.after:
            yield slice(size * settings.before, size * (settings.before + settings.after)), changed
        return
    usual = [not moment.change for moment in moments]
    for number in range(usual.index(False) if False in usual else len(usual), len(usual)):
        batch = settings if usual[number] else moments[number].settings
        yield slice(size * number, size * (number + 1)), batch


def _draw(drawer: _Drawer, novel: NDArray[np.bool_], batch: OndSettings) -> NDArray[np.int64]:
    """Draw samples of which some are novel: of unknown classes, or of known ones that occur unevenly."""
    picked = np.empty(len(novel), np.int64)
    unknown = novel & batch.new_classes
    picked[unknown] = drawer.draw_unknown(int(unknown.sum()))
    picked[novel & ~unknown] = drawer.draw_known(int((novel & ~unknown).sum()), batch.skew)
    picked[~novel] = drawer.draw_known(int((~novel).sum()))
    return picked


def _take_images(samples: Samples, picked: NDArray[np.int64], settings: OndSettings, seed: int) -> NDArray[np.float32]:
    """Return the images that were picked; packaged ones are altered, differently in each test."""
    images = samples.images[picked].copy()
    return alter_images(images, np.random.default_rng(derive(seed, "altered"))) if settings.data == "digits" else images


def write_tests(folder: str | Path, settings: OndSettings, changed: OndSettings, seeds: Sequence[int]) -> list[str]:
    """Write tests as a data directory, with images and training samples in `arrays.npz`, and return their names."""
    built = [build_test(settings, changed, seed, seeds[0]) for seed in seeds]
    return _write_built(Path(folder), settings, built)


def _write_built(folder: Path, settings: OndSettings, built: Sequence[Built]) -> list[str]:
    place, (header, _) = folder / settings.protocol / settings.area, find_layout(settings.area)
    place.mkdir(parents=True, exist_ok=True)
    for one in built:
        data_directory.write_test(place, one.test, header)
    names = [one.test.name for one in built]
    (place / data_directory.LIST_NAME).write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")
    ids = np.array([key for one in built for key in one.test.ids])
    order = np.argsort(ids)  # an order that reveals nothing
    arrays: Mapping[str, Any] = {
        "ids": ids[order],
        "images": np.concatenate([one.test.images for one in built if one.test.images is not None])[order],
        "train_images": built[0].images,
        "train_labels": built[0].labels,
    }
    np.savez_compressed(folder / data_directory.ARRAYS_NAME, **arrays)
    return names


def write_trials(domain: Domain[OndSettings], trials: Sequence[Trial], folder: Path) -> Path:
    """Write the tests of some trials as a data directory, unless it exists; published tests never change.

    All of them share one split into known and unknown classes, that of the first: the agents of a session learn once.

    Raises:
        InvalidInput: The directory was made from other trials, or a world is normal again after a change.
    """
    origins = [data_directory.Origin(trial.seed, trial.scenario, trial.window, _mark(trial)) for trial in trials]
    if folder.exists():
        made_from = {origin.trial for origin in data_directory.DataDirectory(folder).origins.values()}
        if made_from and made_from != {origin.trial for origin in origins}:
            same = "--trials, --seed, --novelty and --set"
            raise InvalidInput(
                f"{folder} was made from other trials. Give the same {same} as then, or another run file."
            )
        return folder
    settings, split = domain.settings_in(trials[0], Phase("test")), trials[0].seed
    built = [build_trial(domain, trial, split) for trial in trials]
    _refuse_return(trials, built)
    draft = folder.with_name(f".{folder.name}.{os.getpid()}.part")  # a crash must not leave half of it
    draft.mkdir(0o700, parents=True, exist_ok=True)  # labels and seeds are for its owner alone
    names = _write_built(draft, settings, built)
    content = msgspec.json.encode(dict(sorted(zip(names, origins, strict=True))))
    (draft / data_directory.ORIGINS_NAME).write_bytes(content)
    draft.rename(folder)
    return folder


def _refuse_return(trials: Sequence[Trial], built: Sequence[Built]) -> None:
    """Refuse changes that go away again: files of the protocol know one onset, after which all is changed."""
    for trial, one in zip(trials, built, strict=True):
        novel = [moment.novel for moment in one.moments]
        if novel != sorted(novel):
            raise InvalidInput(
                f"Tests of the protocol change once and for good, and '{'+'.join(trial.novelty)}' goes away again. "
                "Serve a change that stays, or play it without the protocol: openfield run ond"
            )


def _mark(trial: Trial) -> str:
    """Return the identity of a trial, whatever the version of the domain."""
    return msgspec.structs.replace(trial, version=0, limits=Limits()).id


class _Drawer:
    """Draws samples without replacement, from known and unknown classes apart."""

    def __init__(self, samples: Samples, settings: OndSettings, rng: np.random.Generator) -> None:
        classes = np.unique(samples.labels[samples.labels >= 0])
        stated = (samples.labels == -1).any()
        if len(classes) < settings.known + (not stated):
            least = len(classes) - (not stated)
            way = f"Make fewer of them known: --set known={least}" if least > 1 else "They need three at least."
            problem = "are too many" if stated else "leave none unknown"
            raise InvalidInput(f"The data have {len(classes)} classes; {settings.known} known ones {problem}. {way}")
        self._lengths = {name: getattr(settings, name) for name in ("training", "before", "after", "round_size")}
        order = classes if stated else rng.permutation(classes)
        if settings.classes:
            order = _put_first(order, _find_classes(samples, settings.classes.split("+")))
        self.known, self.strange = order[: settings.known], order[settings.known :][: settings.unknown]
        self.labels, self.rng = samples.labels, rng
        shuffled = rng.permutation(len(samples.labels))
        self._piles = {int(label): list(shuffled[samples.labels[shuffled] == label]) for label in self.known}
        outside = np.isin(samples.labels[shuffled], self.strange) | (samples.labels[shuffled] == -1)
        self._outside = list(shuffled[outside])

    def shuffle(self) -> None:
        """Put the samples that are left into another order."""
        for pile in (*self._piles.values(), self._outside):
            self.rng.shuffle(pile)

    def draw_known(self, count: int, skew: float = 0.0) -> NDArray[np.int64]:
        """Draw samples of known classes, as evenly as the data allow; with `skew`, ever fewer from class to class."""
        weights = np.exp(-skew * np.arange(len(self.known))) if skew else None
        chosen = []
        for _ in range(count):
            sizes = np.array([len(self._piles[int(label)]) for label in self.known], float)
            chances = sizes if weights is None else weights * (sizes > 0)
            if not chances.sum():
                total = int(np.isin(self.labels, self.known).sum())
                said = ", ".join(f"{name}={value}" for name, value in self._lengths.items())
                way = self._shorten(total)
                raise InvalidInput(
                    f"The data have {total} samples of the known classes, too few for {said}. Take fewer: {way}"
                )
            label = int(self.rng.choice(self.known, p=chances / chances.sum()))
            chosen.append(self._piles[label].pop())
        return np.array(chosen, np.int64)

    def _shorten(self, total: int) -> str:
        """Return the settings with which a number of samples of known classes would do."""
        training, size = self._lengths["training"], self._lengths["round_size"]
        if training > total // 3:
            return f"--set training={total // 3}"
        rounds = max(1, (total - training) // (2 * size))
        return f"--set before={rounds} --set after={rounds}"

    def draw_unknown(self, count: int) -> NDArray[np.int64]:
        """Draw samples of unknown classes."""
        if count > len(self._outside):
            raise InvalidInput(f"There are {len(self._outside)} samples of unknown classes; the test needs {count}.")
        drawn, self._outside = self._outside[:count], self._outside[count:]
        return np.array(drawn, np.int64)

    def number(self, picked: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the labels of samples as columns of the scores: 1..K, and 0 for all unknown classes."""
        match = self.labels[picked][:, None] == self.known[None, :]
        return np.where(match.any(axis=1), match.argmax(axis=1) + 1, 0)

    def describe(
        self, samples: Samples, picked: NDArray[np.int64], novel: NDArray[np.bool_], ids: Sequence[str]
    ) -> DrawnSamples:
        """Return the truth about samples that were drawn."""
        labels = self.number(picked)
        texts = [samples.texts[at] for at in picked] if samples.texts else [""] * len(picked)
        strange = np.where(labels == 0, self.labels[picked] + 1, 0)
        return DrawnSamples(ids, novel, labels, strange, self._nearest(samples, picked), texts, len(self.known))

    def _nearest(self, samples: Samples, picked: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the known classes whose means are nearest to samples, nearest first; some twice if there are few."""
        flat = samples.images.reshape(len(samples.images), -1)
        means = np.stack([flat[self.labels == label].mean(axis=0) for label in self.known])
        far = (means**2).sum(axis=1) - 2 * flat[picked] @ means.T  # plus a term that is the same for all classes
        return np.take(np.argsort(far, axis=1, kind="stable"), range(NEAREST), axis=1, mode="wrap")


def _find_classes(samples: Samples, names: Sequence[str]) -> list[int]:
    """Return the labels of classes that the user names, by name or number."""
    known = samples.names or tuple(map(str, sorted(set(samples.labels[samples.labels >= 0].tolist()))))
    for name in names:
        if name not in known:
            raise UnknownName("class", name, known, label="The data have")
    labels = range(len(known)) if samples.names else map(int, known)
    place = dict(zip(known, labels, strict=True))
    return [place[name] for name in names]


def _put_first(order: NDArray[np.int64], chosen: Sequence[int]) -> NDArray[np.int64]:
    return np.array([*chosen, *(label for label in order.tolist() if label not in chosen)])


def _spread(count: int, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose which samples are novel: a share of them, and always the first."""
    flags = np.zeros(count, bool)
    flags[0] = True
    flags[1 + rng.permutation(count - 1)[: max(round(share * count) - 1, 0)]] = True
    return flags


def _scatter(count: int, share: float, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose which samples of a batch are novel: a share of them, at least one, anywhere."""
    return rng.permutation(count) < max(round(share * count), 1)


def _name_test(settings: OndSettings, seed: int, split: int, count: int) -> tuple[str, list[str]]:
    """Return the name of a test and ids of its samples. They are hashes, which reveal nothing without the seed."""
    key = f"{seed}/{split}/{settings.before + settings.after}"
    name, *ids = (hashlib.sha256(f"{key}/{number}".encode()).hexdigest()[:16] for number in range(-1, count))
    return f"{settings.protocol}.built.{name[:8]}.{name[8:]}", ids


def _metadata(settings: OndSettings) -> dict[str, Any]:
    return {
        "protocol": settings.protocol,
        "known_classes": settings.known,
        "max_novel_classes": settings.unknown,
        "round_size": settings.round_size,
        "feedback_max_ids": settings.budget,
        "max_detection_feedback_ids": settings.budget,
        "threshold": settings.threshold,
        "unknown_index": 0 if find_area(settings.area).unknown == "first" else settings.known,
    }
