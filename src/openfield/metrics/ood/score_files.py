"""Read folders of OpenOOD's score files as they are: one .npz file with `pred`, `conf` and `label` for each data set.

Each folder is one detector. The file whose labels are classes is the in-distribution set; the labels of all others are
-1. Which sets are near and which are far is known for the benchmarks of OpenOOD, or said by the user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from openfield.errors import InvalidInput, UnknownName
from openfield.metrics.ood.benchmark import Benchmark, Scored, tabulate
from openfield.metrics.ood.samples import SampleSet, read_samples

_SMALL_FAR = ("mnist", "svhn", "texture", "textures", "place365", "places365")
_IMAGENET = {"near": ("ssb_hard", "ninco"), "far": ("inaturalist", "texture", "textures", "openimageo", "openimage_o")}
BENCHMARKS: dict[str, dict[str, tuple[str, ...]]] = {
    "cifar10": {"near": ("cifar100", "tin"), "far": _SMALL_FAR},
    "cifar100": {"near": ("cifar10", "tin"), "far": _SMALL_FAR},
    "mnist": {
        "near": ("notmnist", "fashionmnist"),
        "far": ("texture", "cifar10", "tin", "places365", "place365", "cifar100"),
    },
    "imagenet200": _IMAGENET,
    "imagenet": _IMAGENET,
}
"""The near and far sets of the benchmarks of OpenOOD, by in-distribution set."""


def score_folders(
    folders: Mapping[str, Path | Sequence[Path]],
    known: str | None = None,
    near: Sequence[str] = (),
    far: Sequence[str] = (),
) -> tuple[Benchmark, dict[str, Scored]]:
    """Compute the numbers of detectors from their score files, and return them with the confidences.

    Args:
        folders: The folder of each detector, or those of several seeds, whose numbers are averaged. Score files may
            also be in its folder `scores`.
        known: The in-distribution set; by default the one whose labels are classes.
        near: The near sets; by default those of OpenOOD's benchmark.
        far: The far sets, likewise.
    """
    listed = {name: [given] if isinstance(given, Path) else list(given) for name, given in folders.items()}
    sets = {name: [_read_folder(folder) for folder in given] for name, given in listed.items()}
    first = next(iter(sets.values()))[0]
    known = known or _find_known(first)
    usual = BENCHMARKS.get(known, {})
    groups = {"near": list(near), "far": list(far)}
    if not near and not far:
        groups = {group: [name for name in first if name in usual.get(group, ())] for group in groups}
    wanted = [known, *groups["near"], *groups["far"]]
    names = wanted if near or far else [known, *(name for name in first if name != known)]
    scored = {name: _join_seeds([_score(name, each, names, first) for each in seeds]) for name, seeds in sets.items()}
    return tabulate(known, groups, scored), scored


def _join_seeds(seeds: Sequence[Scored]) -> Scored:
    """Return a detector with its other seeds."""
    return msgspec.structs.replace(seeds[0], seeds=tuple(seeds[1:])) if len(seeds) > 1 else seeds[0]


def _read_folder(folder: Path) -> dict[str, SampleSet]:
    place = folder / "scores" if (folder / "scores").is_dir() else folder
    if not place.is_dir():
        raise InvalidInput(f"{folder} is not a folder of score files.")
    found = {file.stem: read_samples(file, file.stem) for file in sorted(place.glob("*.npz"))}
    for name, one in found.items():
        if one.conf is None or one.labels is None:
            held = ", ".join(one.arrays)
            raise InvalidInput(f"{place / name}.npz holds {held}; a score file holds pred, conf and label.")
    if not found:
        others = sorted(path.name for path in place.iterdir())[:1]
        raise InvalidInput(
            f"{place} has no .npz files with pred, conf and label"
            + (f"; convert {others[0]} with numpy.savez(NAME, pred=..., conf=..., label=...)." if others else ".")
        )
    return found


def _find_known(sets: Mapping[str, SampleSet]) -> str:
    """Return the only set whose labels are classes."""
    found = [name for name, one in sets.items() if one.known.all()]
    if len(found) != 1:
        names = ", ".join(found) or "none"
        raise InvalidInput(f"Which set is in-distribution? Those whose labels are classes: {names}. Name it: --id NAME")
    return found[0]


def _score(
    detector: str, sets: Mapping[str, SampleSet], names: Sequence[str], first: Mapping[str, SampleSet]
) -> Scored:
    """Return the confidences of a detector; all detectors must have scored the same samples."""
    confs = {}
    for name in names:
        if name not in sets:
            raise UnknownName("set", name, sets, label=f"In the folder of {detector}")
        if len(sets[name]) != len(first[name]):
            counts = f"{len(sets[name]):,} and {len(first[name]):,}"
            raise InvalidInput(f"{detector}: detectors must score the same samples; {name} has {counts} of them.")
        confs[name] = np.concatenate([conf for _, (conf,) in sets[name].parts("conf")])
    known = sets[names[0]]
    if known.labels is None or not known.known.all():
        raise InvalidInput(f"{detector}: the in-distribution set {names[0]} has samples with label -1.")
    right = None if known.pred is None else np.asarray(known.pred).astype(np.int64) == known.labels
    return Scored(confs[names[0]], right, {name: confs[name] for name in names[1:]})
