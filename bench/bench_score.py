"""What `openfield score` costs: time and highest memory with many samples, features and classes.

By default 20,000 known samples, as many training samples and 10,000 unknown ones, of 512 features and 1,000 classes;
with `--full` 100,000, 100,000 and 50,000, which must stay below 4 GB. All detectors are scored, without resamplings and
with 200 of them.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

FULL = "--full" in sys.argv
KNOWN, UNKNOWN = (100_000, 50_000) if FULL else (20_000, 10_000)
FEATURES, CLASSES, PART = 512, 1_000, 10_000


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


def spent() -> float:
    """Return the processor seconds of all programs that were started and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def write(place: Path, count: int, share: float, middle: np.ndarray, rng: np.random.Generator) -> None:
    """Write a set part by part, as arrays that can be mapped."""
    place.mkdir()
    shapes = {"features": (count, FEATURES), "logits": (count, CLASSES)}
    maps = {
        name: np.lib.format.open_memmap(place / f"{name}.npy", "w+", np.float32, shape)
        for name, shape in shapes.items()
    }
    labels = rng.integers(0, CLASSES, count)
    for at in range(0, count, PART):
        rows = slice(at, min(at + PART, count))
        drawn = rng.standard_normal((rows.stop - at, FEATURES), dtype=np.float32)
        maps["features"][rows] = middle[labels[rows]] * share + drawn
        maps["logits"][rows] = maps["features"][rows] @ middle.T - (middle**2).sum(axis=1) / 2
    np.save(place / "labels.npy", labels if share == 1 else np.full(count, -1))


def report(figure: str, value: float, unit: str, bar: float | None = None) -> None:
    line = {"subject": "score", "figure": figure, "value": round(value, 3), "unit": unit}
    print(json.dumps(line | ({} if bar is None else {"bar": bar, "better": "lower", "ok": value <= bar})), flush=True)


if __name__ == "__main__":
    main()
