"""NPZ episode files read a stretch at a time, without pickles and without being blown up.

Feeds `episodes`: a member's size is known and checked before the first byte is unpacked.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from openfield.errors import MORE_MEMORY, InvalidInput
from openfield.files.arrays import (
    UNREADABLE,
    check_unpacked,
    describe_damage,
    opening_picture,
    read_arrays,
    read_npy_head,
)
from openfield.files.large import ALLOW_LARGE
from openfield.objectives.frames.encode import grey
from openfield.objectives.frames.videos import VIDEO_ENDINGS
from openfield.objectives.tables.histograms import Array

MAX_ROW = 1 << 26
"""Bytes of one frame; a picture of 8,000 x 8,000 pixels has as many."""


def member_names(path: Path) -> list[str]:
    """Return the names of the arrays in a file.

    Raises:
        InvalidInput: The file is not an NPZ file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise InvalidInput(f"{path}: not an NPZ file ({error}).") from None


def read_array(path: Path, name: str) -> Array:
    """Read a whole array, which has one number per step."""
    return np.concatenate(list(read_stretches(path, name, 1 << 20)))


def read_length(path: Path, name: str) -> int:
    """Read how many rows an array says it has. Only its head is unpacked.

    Raises:
        InvalidInput: As for `read_stretches`.
    """
    with _opened(path, name) as (file, _):
        shape, _, _ = read_npy_head(file)
        return shape[0] if shape else 0


def listed(names: Sequence[str]) -> str:
    """Return a few names for a message."""
    return ", ".join([*names[:10], *(["..."] if len(names) > 10 else [])]) or "none"


def read_stretches(path: Path, name: str, length: int) -> Iterator[Array]:
    """Yield an array in stretches of some rows; an empty one in one stretch.

    Raises:
        InvalidInput: The member is missing, damaged, not of numbers, or unpacks to more than is plausible.
    """
    with _opened(path, name) as (file, size):
        yield from _stretches(path, name, file, size, length)


@contextmanager
def _opened(path: Path, name: str) -> Iterator[tuple[IO[bytes], int]]:
    """A member and its size; whatever is wrong with it is said in one line."""
    try:
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo(f"{name}.npy")
            check_unpacked(path, [info], ALLOW_LARGE)
            with archive.open(info) as file:
                yield file, info.file_size
    except KeyError:
        raise InvalidInput(f"{path}: no array '{name}'; it has {listed(member_names(path))}.") from None
    except MemoryError:
        raise InvalidInput(f"{path}: not enough memory to read array '{name}'. {MORE_MEMORY}") from None
    except UNREADABLE as error:
        raise InvalidInput(f"{path}: array '{name}' cannot be read ({describe_damage(error)}).") from None


def _stretches(path: Path, name: str, file: IO[bytes], size: int, length: int) -> Iterator[Array]:
    shape, by_column, kind = read_npy_head(file)
    if by_column and len(shape) > 1:
        raise InvalidInput(f"{path}: array '{name}' is stored by columns; save it in C order.")
    if kind.kind not in "biuf":
        raise InvalidInput(f"{path}: array '{name}' holds {kind}, not numbers.")
    row = int(np.prod(shape[1:], dtype=object)) * kind.itemsize if shape else kind.itemsize
    if row > MAX_ROW:
        raise InvalidInput(f"{path}: array '{name}' of shape {shape} has frames of {row:,} bytes; refused.")
    if not shape or row == 0 or shape[0] * row > size:
        raise InvalidInput(f"{path}: array '{name}' of shape {shape} does not fit its {size:,} bytes.")
    for start in range(0, max(shape[0], 1), length):
        rows = min(length, shape[0] - start)
        raw = file.read(rows * row)
        if len(raw) != rows * row:
            raise InvalidInput(f"{path}: array '{name}' is cut short.")
        yield np.frombuffer(raw, kind).reshape(rows, *shape[1:])


IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif")


def find_images(path: Path) -> list[Path]:
    """Return the images of a folder in the order of the numbers in their names.

    Raises:
        InvalidInput: No file was found.
    """
    images = sorted((file for file in path.iterdir() if file.suffix.lower() in IMAGE_ENDINGS), key=_in_sequence)
    if not images:
        others = {file.suffix for file in path.iterdir() if file.suffix.lower() in (".npz", *VIDEO_ENDINGS)}
        hint = f" It is read as one episode. Name the files in it: {path}/*{min(others)}" if others else ""
        raise InvalidInput(f"{path}: no images ({', '.join(IMAGE_ENDINGS)}) in the folder.{hint}")
    return images


def _in_sequence(file: Path) -> list[tuple[int, str]]:
    """Names with numbers in the order of the numbers: frame 10 comes after frame 9."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", file.name)]


def read_actions(folder: Path) -> Array:
    """Read the actions in `actions.npy` or `actions.txt`."""
    array, text = folder / "actions.npy", folder / "actions.txt"
    if not array.exists() and not text.exists():
        raise InvalidInput(f"{folder}: neither actions.npy nor actions.txt in the folder.")
    return read_action_file(array if array.exists() else text)


def read_action_file(file: Path) -> Array:
    """Read the actions in an NPY file, or in a text of whole numbers."""
    try:
        if file.suffix == ".npy":
            return read_arrays(file)["array"]
        return np.array(file.read_text().split(), np.int64)
    except (OSError, ValueError, OverflowError, KeyError, InvalidInput):
        raise InvalidInput(f"{file}: actions cannot be read; one whole number per image is needed.") from None


def read_images(files: Sequence[Path], length: int) -> Iterator[Array]:
    """Yield images in grey, some at a time."""
    for at in range(0, len(files), length):
        batch: list[Any] = []
        for file in files[at : at + length]:
            with opening_picture(file) as image:
                batch.append(_in_grey(image))
        if len({frame.shape for frame in batch}) > 1:
            raise InvalidInput(f"{files[at].parent}: the images differ in size.")
        yield np.stack(batch)


def _in_grey(image: Any) -> Array:
    """Grey pictures as they are, coloured ones as all frames are made grey; transparent parts count as they are."""
    if image.mode in ("1", "L", "LA"):
        return np.asarray(image.convert("L"))
    if image.mode.startswith(("I", "F")):  # of 16 bits and more, which would be cut off at 255
        return np.asarray(image)
    return grey(np.asarray(image.convert("RGB")))
