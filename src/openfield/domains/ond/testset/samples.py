"""Samples without a download: packaged digits, glyphs drawn on the spot, or the user's own files; and changes of them.

First step of samples -> builder -> test -> world. The digits are the UCI optical recognition test set (E. Alpaydin
and C. Kaynak, CC BY 4.0), 8 x 8 pixels.
"""

from __future__ import annotations

import functools
import io
import math
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from openfield.domains.ond.settings import OndSettings
from openfield.errors import InvalidInput
from openfield.files.arrays import opening_picture, read_arrays
from openfield.lazy import import_extra
from openfield.trial import derive, file_digest

GLYPHS = "ABDEFGHJKLMNPQRSTUVXYZ23456789abdefghnqrty@#$%&?+="
GLYPH_SIZE = 16
COURIER_SIZE, COURIER_POINTS = (6, 11), 7
"""Pixels of a character in Pillow's bitmap font, and the points at which a glyph of it is as high as the other's."""
Images = NDArray[np.float32]
"""Grey images N x H x W of values from 0 to 1."""
OTHER_SLANT = -0.5
"""The slant that stands for another typeface where samples are handwritten."""
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")


class Samples(msgspec.Struct, frozen=True):
    """Images N x H x W, or features N x D, with labels from 0 on; -1 is of an unknown class."""

    images: NDArray[np.float32]
    labels: NDArray[np.int64]
    texts: tuple[str, ...] = ()
    """The text on each sample, where it is known."""


def load_samples(settings: OndSettings, seed: int) -> Samples:
    """Return all samples that a test can be built from."""
    if settings.data == "digits":
        return load_digits()
    if settings.data == "glyphs":
        return draw_glyphs(settings, seed)
    path = Path(settings.data)
    return read_folder(path) if path.is_dir() else read_sample_file(path)


def data_files(settings: OndSettings) -> dict[str, str]:
    """Return digests of the files that samples come from; packaged ones belong to the domain's version."""
    path = Path(settings.data)
    return {path.name: file_digest(path.read_bytes())} if path.suffix == ".npz" and path.is_file() else {}


@functools.cache
def load_digits() -> Samples:
    """Return 1,797 handwritten digits of 8 x 8 pixels."""
    content = resources.files("openfield.domains.ond").joinpath("digits.npz").read_bytes()
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return Samples(file["images"].astype(np.float32) / 16, file["labels"].astype(np.int64))


@functools.lru_cache(8)
def draw_glyphs(settings: OndSettings, seed: int) -> Samples:
    """Draw characters in one of the two free fonts of Pillow, each a little moved, turned, slanted and noisy."""
    classes = settings.known + settings.unknown
    if classes > len(GLYPHS):
        raise InvalidInput(f"There are {len(GLYPHS)} glyphs; known and unknown classes cannot be {classes} together.")
    rng = np.random.default_rng(derive(seed, "glyphs"))
    chosen = rng.permutation(len(GLYPHS))[:classes]
    size, share = settings.round_size, settings.share
    each = (settings.training + size * (settings.before + settings.after)) / settings.known
    most = int(max(each, size * settings.after * share / settings.unknown) * 1.3) + 20
    drawn = [_draw(GLYPHS[number], most, settings, rng) for number in chosen]
    return Samples(np.concatenate(drawn), np.repeat(np.arange(classes), most))


def read_sample_file(path: Path) -> Samples:
    """Read samples from an .npz file with `images` (or `features`) and `labels`, and `texts` if there are any."""
    try:
        file = read_arrays(path)
        images = file["images"] if "images" in file else file["features"]
        return make_samples(images, file["labels"], file.get("texts", ()))
    except (ValueError, KeyError, InvalidInput) as error:
        raise InvalidInput(
            f"{path} holds no samples: {error}. It needs `images` or `features`, and `labels`."
        ) from None


def make_samples(images: Any, labels: Any, texts: Any = ()) -> Samples:
    """Return samples from any arrays; bytes are scaled to 0..1, colours are averaged."""
    array, known = np.asarray(images), np.asarray(labels)
    if known.shape != array.shape[:1] or not len(known):
        raise InvalidInput(f"Images {array.shape} and labels {known.shape} do not belong together.")
    known = known.astype(np.int64)
    array = array.astype(np.float32) / (255 if array.dtype == np.uint8 else 1)
    if array.ndim == 4:
        array = array.mean(axis=3)
    if array.ndim not in (2, 3):
        raise InvalidInput(f"Images have two or three dimensions, not the shape {array.shape}.")
    if not np.isfinite(array).all():
        raise InvalidInput(f"Sample {np.argwhere(~np.isfinite(array))[0][0]} holds values that are no numbers.")
    written = tuple(map(str, np.asarray(texts).tolist()))
    if len(written) not in (0, len(known)):
        raise InvalidInput(f"There are {len(written)} texts for {len(known)} samples.")
    return Samples(array.astype(np.float32), known, written)


def read_folder(path: Path, size: int = GLYPH_SIZE) -> Samples:
    """Read samples from a folder with one folder of images for each class."""
    images, labels = [], []
    for label, folder in enumerate(sorted(part for part in path.iterdir() if part.is_dir())):
        for file in sorted(part for part in folder.iterdir() if part.suffix.lower() in SUFFIXES):
            with opening_picture(file) as image:
                images.append(np.asarray(image.convert("L").resize((size, size)), dtype=np.uint8))
            labels.append(label)
    if not images:
        raise InvalidInput(f"{path} holds no folders with images ({', '.join(SUFFIXES)}).")
    return make_samples(np.stack(images), labels)


def _draw(character: str, count: int, settings: OndSettings, rng: np.random.Generator) -> NDArray[np.float32]:
    """Draw variants of one character from twelve prints, each warped and disturbed on its own."""
    noise = settings.noise
    prints = [
        _print(character, settings.typeface, variant, (8 + rng.uniform(-1, 1), 8 + rng.uniform(-1, 1)))
        for variant in range(12)
    ]
    chosen = np.stack(prints).astype(np.float32)[rng.integers(0, len(prints), count)]
    for start in range(0, count, 16):
        matrix = np.eye(2) + rng.normal(0, 0.06 + noise / 4, (2, 2))
        chosen[start : start + 16] = warp(chosen[start : start + 16], matrix)
    noisy = chosen + rng.normal(0, noise, chosen.shape)
    return np.clip(noisy, 0, 1).astype(np.float32)


def _print(character: str, typeface: str, variant: int, place: tuple[float, float]) -> NDArray[np.float64]:
    """Print a character at a place in one of three sizes; every fourth is bold unless the typeface already is."""
    import_extra("PIL", "ond", "Drawing glyphs")
    from PIL import Image, ImageDraw, ImageFont

    image, size = Image.new("L", (GLYPH_SIZE, GLYPH_SIZE)), 11 + variant % 3
    if typeface == "sans":
        font = ImageFont.load_default(float(size))
        ImageDraw.Draw(image).text(place, character, 255, font, anchor="mm", stroke_width=int(variant % 4 == 3))
        return np.asarray(image) / 255
    stamp = Image.new("L", COURIER_SIZE)
    ImageDraw.Draw(stamp).text((0, 0), character, 255, ImageFont.load_default_imagefont())
    width, height = (round(side * size / COURIER_POINTS) for side in COURIER_SIZE)
    large = stamp.resize((width, height), Image.Resampling.BICUBIC)
    image.paste(large, (round(place[0] - width / 2), round(place[1] - height / 2)))
    return np.asarray(image) / 255


def change_images(images: Images, settings: OndSettings) -> Images:
    """Return images changed as the settings say: what attribute and environment novelties do to a sample."""
    if settings.rotation:
        angle = math.radians(settings.rotation)
        images = warp(images, np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]]))
    other_hand = OTHER_SLANT if settings.typeface != "sans" and settings.data != "glyphs" else 0.0
    if slant := settings.slant or other_hand:
        images = warp(images, np.array([[1.0, 0.0], [slant, 1.0]]))
    for _ in range(settings.blur):
        images = blur(images)
    if settings.contrast < 1:
        images = 0.5 + (images - 0.5) * np.float32(settings.contrast)
    if settings.background:
        slope = np.linspace(0, settings.background, images.shape[2], dtype=np.float32)
        images = np.maximum(images, slope)
    return images.astype(np.float32)


def warp(images: Images, matrix: NDArray[np.float64]) -> Images:
    """Return images after a linear map about their centre, interpolated linearly; the outside is black."""
    _, height, width = images.shape
    centre = np.array([(height - 1) / 2, (width - 1) / 2])
    grid = np.stack(np.meshgrid(np.arange(height), np.arange(width), indexing="ij"), axis=-1) - centre
    rows, columns = np.moveaxis(grid @ matrix.T + centre, -1, 0)
    top, left = np.floor(rows).astype(int), np.floor(columns).astype(int)
    down, right = rows - top, columns - left
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    result = np.zeros_like(images)
    for row, column, weight in (
        (0, 0, (1 - down) * (1 - right)),
        (0, 1, (1 - down) * right),
        (1, 0, down * (1 - right)),
        (1, 1, down * right),
    ):
        y, x = np.clip(top + row + 1, 0, height + 1), np.clip(left + column + 1, 0, width + 1)
        result += padded[:, y, x] * weight.astype(np.float32)
    return result


def blur(images: Images) -> Images:
    """Return images in which each pixel is the mean of the nine around it."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)), mode="edge")
    _, height, width = images.shape
    total = sum(padded[:, y : y + height, x : x + width] for y in range(3) for x in range(3))
    return np.asarray(total / 9, dtype=np.float32)
