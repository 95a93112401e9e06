"""Pictures for a browser: arrays of pixels as compressed files."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np

from openfield.lazy import import_extra

SMALL = 20_000
"""Pixels up to which a picture is sent without loss: pictures to be labelled."""
FLAT_COLOURS = 96
"""Colours up to which a larger one is sent so, too: edges of flat areas, as in a maze, have halos in a JPEG. Views
of Doom have more colours. They are sent twenty times a second, and a PNG of one takes twenty times as long."""
MAX_SIDE = 1_200
"""Pixels of a side; larger pictures are sent smaller."""
QUALITY = 82


def encode_picture(pixels: Any) -> bytes:
    """Return an array of (H, W), (H, W, 1), (H, W, 3) or (H, W, 4) as a PNG if it is small or flat, else as a JPEG."""
    image = import_extra("PIL.Image", "view", "Play in the browser").fromarray(as_bytes(pixels))
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    target = io.BytesIO()
    if image.width * image.height <= SMALL or image.getcolors(FLAT_COLOURS) is not None:
        image.save(target, "PNG", compress_level=1)
    else:
        image.convert("RGB").save(target, "JPEG", quality=QUALITY)
    return target.getvalue()


def as_bytes(pixels: Any) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return pixels as bytes. Other numbers are stretched from the lowest to the highest."""
    array = np.asarray(pixels)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    real = np.nan_to_num(array.astype(float))
    low, high = float(real.min(initial=0.0)), float(real.max(initial=1.0))
    return np.ascontiguousarray((real - low) / ((high - low) or 1.0) * 255, dtype=np.uint8)


def write_data_address(pixels: Any) -> str:
    """Return a picture as an address that holds it."""
    content = encode_picture(pixels)
    kind = "png" if content.startswith(b"\x89PNG") else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
