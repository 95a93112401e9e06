"""Hostile files: run files, arrays, pictures, tables and TOML that were changed at random or on purpose.

Each is read, or refused with an error of ours, within bounded memory. `--files N` of each kind [10,000].
"""

from __future__ import annotations

import io
import logging
import pickle
import random
import resource
import sqlite3
import struct
import time
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from common import complete, finish, folder, parameter, report, run_words
from openfield.domains.ond.testset.samples import read_sample_file
from openfield.errors import OpenfieldError
from openfield.files.arrays import opening_picture, read_arrays
from openfield.files.data import read_toml
from openfield.journal.reader import Run
from openfield.objectives.evaluation import evaluate_file
from openfield.runner.experiment import read_experiment
from openfield.runner.run import read_plan
from soak_frames import mutate

MEMORY = 4 << 30
TOML = (
    b'domain = "examples/maze.py"\ntrials = 3\nnovelty = ["swap", "none"]\nagents = {a = "random"}\n'
    b"[settings]\nsize = 6\n"
)


def main(files: int) -> None:
    logging.disable()
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with folder() as place:
        run = place / "whole.sqlite"
        complete(run_words("examples/maze.py", run, 0))
        with sqlite3.connect(run) as db:
            db.execute("PRAGMA journal_mode=DELETE")
        try_files("run", files // 10 or 1, [run.read_bytes()], read_run, place / "x.sqlite")
        try_files("NPY", files, [make_npy((3, 4)), make_npy((2,))], read_arrays, place / "x.npy")
        try_files("NPZ", files, [make_npz()], read_sample_file, place / "x.npz")
        try_files("PNG", files, [make_png(8), make_png(16)], read_picture, place / "x.png")
        try_files("TOML", files, [TOML], read_experiment, place / "x.toml")
        try_files("pickle", files, [make_pickle()], evaluate_file, place / "x.pkl")
        bombs(place)
    report("files", "resident memory in MB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, 2_048)


def try_files(kind: str, files: int, valid: list[bytes], read: Callable[[Path], object], path: Path) -> None:
    chance, wrong, taken, slowest = random.Random(kind), Counter[str](), 0, 0.0
    for _ in range(files):
        path.write_bytes(mutate(chance, valid))
        began = time.perf_counter()
        try:
            read(path)
            taken += 1
        except OpenfieldError:
            pass
        except Exception as error:
            wrong[f"{type(error).__name__}: {str(error)[:80]}"] += 1
        slowest = max(slowest, time.perf_counter() - began)
        for leftover in path.parent.glob(f"{path.name}-*"):
            leftover.unlink()
    more: dict[str, Any] = {"files": files, "taken": taken, "slowest_seconds": round(slowest, 2)}
    report("files", f"{kind}: errors that are not ours", wrong.total(), 0, kinds=wrong, **more)


def read_run(path: Path) -> None:
    with Run(path) as run:
        run.verify()
        for cell in run.cells():
            list(run.steps(cell.id, cell.attempt))
    read_plan(path)


def read_picture(path: Path) -> None:
    with opening_picture(path) as picture:
        picture.convert("L")


def bombs(place: Path) -> None:
    """Files that grow a thousandfold, or say that they do."""
    tried, refused = 0, 0
    with zipfile.ZipFile(place / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("images", "labels", "a", "b", "c", "d"):
            archive.writestr(f"{name}.npy", make_npy((100 << 20,), "|u1", bytes(100 << 20)))
    (place / "huge.npy").write_bytes(make_npy((10**12,)))
    (place / "large.png").write_bytes(make_png(60_000))
    (place / "deep.toml").write_bytes(b"a = " + b"[" * 100_000)
    readers: dict[str, Callable[[Path], object]] = {"bomb.npz": read_sample_file, "huge.npy": read_arrays}
    readers |= {"large.png": read_picture, "deep.toml": read_toml}
    for name, read in readers.items():
        tried += 1
        try:
            read(place / name)
        except OpenfieldError:
            refused += 1
    report("files", "bombs that are not refused", tried - refused, 0, bombs=tried)


def make_npy(shape: tuple[int, ...], kind: str = "<f8", content: bytes = bytes(96)) -> bytes:
    text = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape!r}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content


def make_npz() -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, images=np.zeros((4, 3, 3), np.uint8), labels=np.arange(4))
    return file.getvalue()


def make_png(side: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    size = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(min(side, 1_000) * (min(side, 1_000) + 1)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def make_pickle() -> bytes:
    return pickle.dumps({(number % 7, number % 3, number % 5): number + 1 for number in range(30)}, protocol=4)


if __name__ == "__main__":
    main(parameter("files", 10_000, 300))
    finish()
