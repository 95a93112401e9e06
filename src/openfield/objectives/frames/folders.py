"""Episodes as folders: a picture per frame, and a file with the actions.

Feeds `episodes`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from openfield.errors import InvalidInput, MissingExtra
from openfield.objectives.frames.encode import grey
from openfield.objectives.tables.histograms import Array

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif")


def find_images(path: Path) -> list[Path]:
    """Return the images of a folder in the order of the numbers in their names.

    Raises:
        InvalidInput: There are none.
    """
    images = sorted((file for file in path.iterdir() if file.suffix.lower() in IMAGE_ENDINGS), key=_in_sequence)
    if not images:
        raise InvalidInput(f"{path}: no images ({', '.join(IMAGE_ENDINGS)}) in the folder.")
    return images


def _in_sequence(file: Path) -> list[tuple[int, str]]:
    """Names with numbers in the order of the numbers: frame 10 comes after frame 9."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", file.name)]


def read_actions(folder: Path) -> Array:
    """Read the actions in `actions.npy` or `actions.txt`."""
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


def read_images(files: Sequence[Path], length: int) -> Iterator[Array]:
    """Yield images in grey, so many at a time."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingExtra("ond", "Reading images") from None
    for at in range(0, len(files), length):
        batch: list[Any] = []
        for file in files[at : at + length]:
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
    if image.mode.startswith(("I", "F")):  # of 16 bits and more, which would be cut off at 255
        return np.asarray(image)
    return grey(np.asarray(image.convert("RGB")))
