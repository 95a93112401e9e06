"""Samples without a download: packaged digits, glyphs drawn on the spot, or the user's own files; and changes of them.

First step of samples -> builder -> test -> world. The digits are the UCI optical recognition test set (E. Alpaydin
and C. Kaynak, CC BY 4.0), 8 x 8 pixels. They lie in a folder `truth`, which no isolated agent sees, and every test
alters them: a table of them has none of the samples of a test, only near ones.
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
from openfield.files.csv_files import read_csv
from openfield.lazy import import_extra
from openfield.trial import derive, file_digest

GLYPHS = "ABDEFGHJKLMNPQRSTUVXYZ23456789abdefghnqrty@#$%&?+="
GLYPH_SIZE = 16
COURIER_SIZE, COURIER_POINTS = (6, 11), 7
"""Pixels of a character in Pillow's bitmap font, and the points at which a glyph of it is as high as the other's."""
Images = NDArray[np.float32]
"""Grey images N x H x W of values from 0 to 1."""
MAX_SHIFT, ALTERED_NOISE, ALTERED_CONTRAST = 0.12, 0.008, 0.05
"""How packaged samples are altered: moved by a part of a pixel, noise on every pixel, brighter or darker by a share."""
COLOURS = (1, 3, 4)
"""How many colours an image may have."""
OTHER_SLANT = -0.5
"""The slant that stands for another typeface where samples are handwritten."""
LABELS_NAME, UNKNOWN_NAME = "labels.csv", "-1"
"""The table of a folder of images, and the label of samples of unknown classes in it."""
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")


class Samples(msgspec.Struct, frozen=True):
    """Images N x H x W, with colours before or after, or features N x D; labels from 0 on, -1 is an unknown class."""

    images: NDArray[np.float32]
    labels: NDArray[np.int64]
    texts: tuple[str, ...] = ()
    """The text on each sample, where it is known."""
    names: tuple[str, ...] = ()
    """What the classes are called, by label."""


def load_samples(settings: OndSettings, seed: int) -> Samples:
    """Return all samples that a test can be built from."""
    if settings.data == "digits":
        return load_digits()
    if settings.data == "glyphs":
        return draw_glyphs(settings, seed)
    path = Path(settings.data)
    if not path.exists():
        raise InvalidInput(
            f"There is no file or folder {path}. Setting 'data' is digits, glyphs, an .npz file, a folder of images or "
            "a data directory."
        )
    return read_folder(path, settings.side) if path.is_dir() else read_sample_file(path)


def data_files(settings: OndSettings) -> dict[str, str]:
    """Return digests of the files that samples come from; packaged ones belong to the domain's version."""
    path = Path(settings.data)
    if path.suffix == ".npz" and path.is_file():
        return {path.name: file_digest(path.read_bytes())}
    table = path / LABELS_NAME
    return {LABELS_NAME: file_digest(table.read_bytes())} if table.is_file() else {}


@functools.cache
def load_digits() -> Samples:
    """Return 1,797 handwritten digits of 8 x 8 pixels."""
    content = resources.files("openfield.domains.ond").joinpath("truth/digits.npz").read_bytes()
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
    except KeyError as error:
        raise InvalidInput(f"{path} has no array {error}. It needs `images` or `features`, and `labels`.") from None
    except (ValueError, InvalidInput) as error:
        problem = str(error).removesuffix(".")
        raise InvalidInput(
            f"{path} holds no samples: {problem}. It needs `images` or `features`, and `labels`."
        ) from None


def make_samples(images: Any, labels: Any, texts: Any = ()) -> Samples:
    """Return samples from any arrays, in the shape they have; bytes are scaled to 0..1."""
    array, known = np.asarray(images), np.asarray(labels)
    if known.shape != array.shape[:1] or not len(known):
        raise InvalidInput(f"Images {array.shape} and labels {known.shape} do not belong together.")
    if known.dtype.kind == "f" and not np.array_equal(known, np.floor(known)):
        raise InvalidInput("Labels must be whole numbers: the classes, or -1 for an unknown one.")
    known = known.astype(np.int64)
    array = array.astype(np.float32) / (255 if array.dtype == np.uint8 else 1)
    if array.ndim not in (2, 3, 4):
        raise InvalidInput(
            f"Samples are N x features, N x height x width, or images with colours before or after; not {array.shape}."
        )
    if not np.isfinite(array).all():
        raise InvalidInput(f"Sample {np.argwhere(~np.isfinite(array))[0][0]} holds values that are not numbers.")
    written = tuple(map(str, np.asarray(texts).tolist()))
    if len(written) not in (0, len(known)):
        raise InvalidInput(f"There are {len(written)} texts for {len(known)} samples.")
    return Samples(array.astype(np.float32), known, written)


def read_folder(path: Path, side: int = 0) -> Samples:
    """Read images of a folder, in their size and colour: a folder for each class, or a table of files and labels.

    Args:
        path: The folder. Its `labels.csv` has a header and the columns file and label; label -1 is an unknown class.
        side: Pixels to which images are resized; 0 keeps their size, which must be the same then.
    """
    files = _list_table(path) if (path / LABELS_NAME).is_file() else _list_classes(path)
    if not files:
        kinds = ", ".join(SUFFIXES)
        raise InvalidInput(f"{path} holds neither folders with images ({kinds}) nor a {LABELS_NAME} of file and label.")
    names = sorted({name for _, name in files if name != UNKNOWN_NAME}, key=_sort_number)
    pictures = [_read_picture(file, side) for file, _ in files]
    odd = next((at for at, one in enumerate(pictures) if one.shape[:2] != pictures[0].shape[:2]), None)
    if odd is not None:
        sizes = " and ".join(f"{one.shape[1]} x {one.shape[0]}" for one in (pictures[0], pictures[odd]))
        raise InvalidInput(f"{files[odd][0]}: images have different sizes, {sizes}. Resize them: --set side=32")
    if len({one.ndim for one in pictures}) > 1:  # some are grey
        pictures = [one if one.ndim == 3 else np.repeat(one[:, :, None], 3, axis=2) for one in pictures]
    place = {name: number for number, name in enumerate(names)} | {UNKNOWN_NAME: -1}
    found = make_samples(np.stack(pictures), [place[name] for _, name in files])
    return msgspec.structs.replace(found, names=tuple(names))


def _list_classes(path: Path) -> list[tuple[Path, str]]:
    folders = sorted(part for part in path.iterdir() if part.is_dir())
    return [
        (file, folder.name)
        for folder in folders
        for file in sorted(folder.iterdir())
        if file.suffix.lower() in SUFFIXES
    ]


def _list_table(path: Path) -> list[tuple[Path, str]]:
    """Return the files and labels of a table; the columns are found by their names, or are the first two."""
    (_, head), *rows = read_csv(path / LABELS_NAME) or [(1, [])]
    titles = [title.strip().lower() for title in head]
    if not {"file", "label"} <= set(titles):
        raise InvalidInput(f"{path / LABELS_NAME} must begin with a line that names the columns file and label.")
    at, label = titles.index("file"), titles.index("label")
    found = []
    for number, row in rows:
        if len(row) <= max(at, label) or not (path / row[at].strip()).is_file():
            raise InvalidInput(f"{path / LABELS_NAME}, line {number}: there is no file {','.join(row)[:60]!r}.")
        found.append((path / row[at].strip(), row[label].strip()))
    return found


def _read_picture(file: Path, side: int) -> NDArray[np.uint8]:
    with opening_picture(file) as image:
        if image.mode[0] in "IF":  # more than bytes, which `convert` would cut off at 255
            image = _scale_to_bytes(file, np.asarray(image))
        plain = image.convert("L" if image.mode in ("L", "1", "LA") else "RGB")
        return np.asarray(plain.resize((side, side)) if side else plain, dtype=np.uint8)


def _scale_to_bytes(file: Path, pixels: NDArray[Any]) -> Any:
    """Return a grey picture of 16 bits a pixel as one of 8."""
    if pixels.dtype.itemsize != 2:
        raise InvalidInput(f"{file} has pixels that are not of 8 or 16 bits. Scale them, or put them in an .npz file.")
    return import_extra("PIL.Image", "ond", "Reading images").fromarray((pixels >> 8).astype(np.uint8))


def _sort_number(name: str) -> tuple[int, str]:
    """Sort numbers by their value and other names behind them."""
    return (int(name), "") if name.isdecimal() and len(name) < 19 else (1 << 62, name)


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


def change_images(images: NDArray[np.float32], settings: OndSettings, seed: int = 0) -> NDArray[np.float32]:
    """Return images changed as the settings say: what attribute and environment novelties do to a sample.

    Colours are changed one by one, whether they come before or after height and width. The seed is that of noise.
    """
    if images.ndim == 3:
        changed = _change_grey(images, settings)
    else:
        axis = 1 if images.shape[1] in COLOURS and images.shape[3] not in COLOURS else 3
        changed = np.stack([_change_grey(plane, settings) for plane in np.moveaxis(images, axis, 0)], axis=axis)
    if settings.grain or settings.brightness:
        noise = np.random.default_rng(seed).normal(0, settings.grain, changed.shape)
        changed = np.clip(changed + settings.brightness + noise, 0, 1).astype(np.float32)
    return changed


def _change_grey(images: Images, settings: OndSettings) -> Images:
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


def alter_images(images: Images, rng: np.random.Generator) -> Images:
    """Return images each a little moved, noisy and brighter or darker: other pixels, the same class."""
    shifts = rng.uniform(-MAX_SHIFT, MAX_SHIFT, (2, len(images), 1, 1)).astype(np.float32)
    factors = 1 + rng.uniform(-ALTERED_CONTRAST, ALTERED_CONTRAST, (len(images), 1, 1))
    for axis, shift in zip((1, 2), shifts, strict=True):
        padding = [(0, 0), (0, 0), (0, 0)]
        padding[axis] = (1, 1)
        padded, size = np.pad(images, padding), images.shape[axis]
        before, after = (padded.take(range(start, start + size), axis) for start in (0, 2))
        images = images * (1 - np.abs(shift)) + np.where(shift > 0, before, after) * np.abs(shift)
    noisy = images * factors + rng.normal(0, ALTERED_NOISE, images.shape)
    return np.clip(noisy, 0, 1).astype(np.float32)


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
