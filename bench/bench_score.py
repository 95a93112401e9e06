"""What `openfield score` costs: time and highest memory with many samples, features and classes.

By default 20,000 known samples, as many training samples and 10,000 unknown ones, of 512 features and 1,000 classes;
with `--full` 100,000, 100,000 and 50,000, which must stay below 4 GB. All detectors are scored, without resamplings and
with 200 of them. `--card` scores what a card computes at the size of ImageNet, 1.28 million training samples of 2,048
features and 50,000 others (11 GB on disk), and compares a sample with the processor's confidences.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from openfield.metrics.ood.array_library import NUMPY, open_library
from openfield.metrics.ood.benchmark import score_detectors
from openfield.metrics.ood.catalogue import choose_detectors
from openfield.metrics.ood.samples import Head, SampleSet, read_samples

FULL = "--full" in sys.argv
KNOWN, UNKNOWN = (100_000, 50_000) if FULL else (20_000, 10_000)
FEATURES, CLASSES, PART = 512, 1_000, 10_000
CARD = "--card" in sys.argv
TRAIN, OTHERS, WIDTH = 1_280_000, 50_000, 2_048
ON_CARD = ("knn", "mahalanobis", "vim", "energy", "react")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root, rng = Path(folder), np.random.default_rng(0)
        middle = rng.normal(0, 1, (CLASSES, FEATURES)).astype(np.float32)
        np.savez(root / "fc.npz", weight=middle, bias=-(middle**2).sum(axis=1) / 2)
        for name, count, share in (("train", KNOWN, 1.0), ("test", KNOWN, 1.0), ("far", UNKNOWN, 0.5)):
            write(root / name, count, share, middle, rng)
        words = ["score", "--train", "train", "--id", "test", "--far", "x=far", "--head", "fc.npz", "--format", "json"]
        for resamples in (0, 200):
            start = spent()
            command = [sys.executable, "-m", "openfield", *words, "--resamples", str(resamples)]
            done = subprocess.run(command, cwd=root, check=True, capture_output=True)
            assert len(json.loads(done.stdout)["rows"]) == 11
            report(f"all detectors, {KNOWN:,} known samples, {resamples} resamplings", spent() - start, "s of CPU")
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
        report(f"highest memory, {KNOWN:,} x {FEATURES} x {CLASSES:,}", memory, "GB", 4.0)


def score_on_card() -> None:
    """Time each detector on a card, and compare its confidences with NumPy's where only a sample is scored."""
    with tempfile.TemporaryDirectory() as folder:
        root, rng = Path(folder), np.random.default_rng(0)
        middle = rng.normal(0, 1, (CLASSES, WIDTH)).astype(np.float32)
        head = Head(middle.astype(float), -(middle.astype(float) ** 2).sum(axis=1) / 2)
        for name, count, share in (("train", TRAIN, 1.0), ("test", OTHERS, 1.0), ("far", OTHERS, 0.5)):
            write(root / name, count, share, middle, rng, logits=False)
        train, test, far = (read_samples(root / name, name) for name in ("train", "test", "far"))
        for name in ON_CARD:
            start = time.perf_counter()
            score_detectors(test, [], [far], choose_detectors([name], open_library("cuda")), train, head)
            report(f"{name} on a card, {TRAIN:,} x {WIDTH}, {2 * OTHERS:,} scored", time.perf_counter() - start, "s")
        train, test, far = (cut(each, count) for each, count in ((train, 20_000), (test, 1_000), (far, 1_000)))
        for name in ON_CARD:
            ours, theirs = (
                score_detectors(test, [], [far], choose_detectors([name], library), train, head)[1][name].known
                for library in (NUMPY, open_library("cuda"))
            )
            report(
                f"{name}: largest difference from NumPy", float(abs(ours - theirs).max() / abs(ours).max()), "", 1e-6
            )


def cut(samples: SampleSet, count: int) -> SampleSet:
    """Return the first samples of a set."""
    return SampleSet(samples.name, None, samples.take("features")[:count], samples.take("labels")[:count])


def spent() -> float:
    """Return the processor seconds of all programs that were started and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def write(
    place: Path, count: int, share: float, middle: np.ndarray, rng: np.random.Generator, logits: bool = True
) -> None:
    """Write a set part by part, as arrays that can be mapped."""
    place.mkdir()
    width = middle.shape[1]
    shapes = {"features": (count, width)} | ({"logits": (count, CLASSES)} if logits else {})
    maps = {
        name: np.lib.format.open_memmap(place / f"{name}.npy", "w+", np.float32, shape)
        for name, shape in shapes.items()
    }
    labels = rng.integers(0, CLASSES, count)
    for at in range(0, count, PART):
        rows = slice(at, min(at + PART, count))
        drawn = rng.standard_normal((rows.stop - at, width), dtype=np.float32)
        maps["features"][rows] = middle[labels[rows]] * share + drawn
        if logits:
            maps["logits"][rows] = maps["features"][rows] @ middle.T - (middle**2).sum(axis=1) / 2
    np.save(place / "labels.npy", labels if share == 1 else np.full(count, -1))


def report(figure: str, value: float, unit: str, bar: float | None = None) -> None:
    line = {
        "subject": "score",
        "figure": figure,
        "value": round(value, 3) if value > 0.01 else float(f"{value:.2g}"),
        "unit": unit,
    }
    print(json.dumps(line | ({} if bar is None else {"bar": bar, "better": "lower", "ok": value <= bar})), flush=True)


if __name__ == "__main__":
    score_on_card() if CARD else main()
