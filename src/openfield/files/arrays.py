"""Read NPY, NPZ and picture files that others made: no pickles, and no more memory than a file can earn.

The size that a file states is checked before the first byte is unpacked.
"""

from __future__ import annotations

import math
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from openfield.errors import MORE_MEMORY, InvalidInput
from openfield.files.large import check_size
from openfield.files.near import suggest_file
from openfield.lazy import import_extra

ZIP_HEAD = 30
"""Bytes of the head of a member in an archive, before its name."""
UNREADABLE = (zipfile.BadZipFile, zlib.error, OSError, ValueError, EOFError, RuntimeError, MemoryError)
"""What reading a damaged or hostile archive raises."""


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return the array of an NPY file as `array`, or those of an NPZ file by their names.

    Raises:
        InvalidInput: The file is neither, is damaged, or unpacks to more than is plausible.
    """
    try:
        if not zipfile.is_zipfile(path):
            with path.open("rb") as file:
                return {"array": _read_array(file, path.stat().st_size)}
        with zipfile.ZipFile(path) as archive:
            check_unpacked(path, archive.infolist())
            return {info.filename.removesuffix(".npy"): _read_member(archive, info) for info in archive.infolist()}
    except MemoryError:
        raise InvalidInput(f"{path}: not enough memory to read it. {MORE_MEMORY}") from None
    except UNREADABLE as error:
        near = suggest_file(path) if isinstance(error, FileNotFoundError) else ""
        raise InvalidInput(f"{path} cannot be read as arrays: {describe_damage(error)}.{near}") from None


def open_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Return arrays like `read_arrays`, mapped from the disk where they are not compressed: nothing of them is read.

    Raises:
        InvalidInput: The file is neither NPY nor NPZ, is damaged, or unpacks to more than is plausible.
    """
    try:
        if not zipfile.is_zipfile(path):
            return {"array": _map_array(path, 0, path.stat().st_size)}
        with zipfile.ZipFile(path) as archive:
            check_unpacked(path, archive.infolist())
            return {
                info.filename.removesuffix(".npy"): _open_member(path, archive, info) for info in archive.infolist()
            }
    except UNREADABLE as error:
        raise InvalidInput(f"{path} cannot be read as arrays: {describe_damage(error)}.") from None


def describe_damage(error: BaseException) -> str:
    """Return the first line of the reader's error."""
    reason = getattr(error, "strerror", None) or str(error)
    return (reason.splitlines() or [type(error).__name__])[0][:120].rstrip(".")


def check_unpacked(path: Path, members: Iterable[zipfile.ZipInfo], advice: str = "") -> None:
    """Refuse members that would unpack to far more than their file has; the advice says what else to do."""
    sizes = [(info.file_size, info.compress_size) for info in members]
    unpacked, packed = (sum(part) for part in zip(*sizes, strict=True)) if sizes else (0, 0)
    check_size(path, packed, unpacked, advice)


def read_npy_head(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the head of an NPY file: its shape, whether it is stored by columns, and the type of its values.

    Raises:
        ValueError: It is damaged.
    """
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"format version {version}")
    try:
        shape, by_column, kind = readers[version](file)
    except (SyntaxError, TokenError, RecursionError, MemoryError, TypeError) as error:
        raise ValueError(f"its head is damaged: {type(error).__name__}") from None
    if kind.hasobject:
        raise ValueError("it holds objects, not numbers")
    return shape, by_column, kind


@contextmanager
def opening_picture(path: Path) -> Iterator[Any]:
    """Open a picture with Pillow. One of more than about 90 million pixels is refused.

    Raises:
        InvalidInput: It cannot be read.
    """
    pillow = import_extra("PIL.Image", "ond", "Reading images")
    bombs = pillow.DecompressionBombError, pillow.DecompressionBombWarning
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            with pillow.open(path) as picture:
                yield picture
    except (OSError, ValueError, SyntaxError, MemoryError, *bombs) as error:
        raise InvalidInput(f"{path} cannot be read as an image ({describe_damage(error)}).") from None


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(info) as file:
        return _read_array(file, info.file_size)


def _open_member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    """Map a member that is stored as it is; unpack one that is compressed."""
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
        return _read_member(archive, info)
    with path.open("rb") as file:
        file.seek(info.header_offset)
        head = file.read(ZIP_HEAD)
    if len(head) < ZIP_HEAD or not head.startswith(b"PK\x03\x04"):
        raise ValueError("the head of a member is damaged")
    name, extra = (int.from_bytes(head[at : at + 2], "little") for at in (26, 28))
    return _map_array(path, info.header_offset + ZIP_HEAD + name + extra, info.file_size)


def _map_array(path: Path, start: int, size: int) -> NDArray[Any]:
    """Map an array that begins at a byte of a file; the size in bytes includes its head."""
    with path.open("rb") as file:
        file.seek(start)
        shape, by_column, kind = read_npy_head(file)
        place = file.tell()
    _check_fit(shape, kind, min(size, path.stat().st_size - start) - (place - start))
    if not math.prod(shape):
        return np.empty(shape, kind)
    return np.memmap(path, kind, "r", place, shape, "F" if by_column else "C")


def _check_fit(shape: tuple[int, ...], kind: np.dtype[Any], size: int) -> None:
    count = math.prod(shape)
    if any(length < 0 for length in shape) or count * kind.itemsize > size or (not count and shape[0]):
        raise ValueError(f"an array of shape {shape} does not fit {size:,} bytes")


def _read_array(file: IO[bytes], size: int) -> NDArray[Any]:
    """Read an array from a file of a known size in bytes."""
    shape, by_column, kind = read_npy_head(file)
    _check_fit(shape, kind, size)
    count = math.prod(shape)
    array = np.frombuffer(bytearray(file.read(count * kind.itemsize)), kind, count)
    return array.reshape(shape, order="F" if by_column else "C")
