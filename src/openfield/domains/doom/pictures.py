"""What the player sees, as an agent sees it: in the colours that its settings ask for, or packed for protocol 0.8.

A world takes pictures from its engine, the wire packs them. The record keeps a digest, and replay draws them again.
"""

from __future__ import annotations

import base64
import binascii
import io
import pickle
from typing import Any

import numpy as np
from numpy._core.multiarray import _reconstruct
from numpy._core.numeric import _frombuffer  # type: ignore[attr-defined]

from openfield.domains.doom.settings import DoomSettings
from openfield.errors import AgentProtocol
from openfield.lazy import import_extra
from openfield.spaces import Box

Image = np.ndarray[Any, np.dtype[np.uint8]]
MAX_PACKED = 16 << 20
"""Bytes of an image before it is packed; the largest the engine draws has 1.4 MB."""
GREY_WEIGHTS = (77, 150, 29)
"""How bright red, green and blue are, of 256; with whole numbers the result is the same on every machine."""


def is_pictured(settings: DoomSettings) -> bool:
    """Return whether agents see pictures under these settings."""
    return settings.use_image or settings.observation == "pixels"


def image_space(settings: DoomSettings) -> Box:
    """Return the space of images under these settings."""
    width, height = map(int, settings.image_size.split("x"))
    shape = (height, width) if settings.image_colour == "grey" else (height, width, 3)
    return Box(0, 255, shape, "uint8")


def picture_spaces(settings: DoomSettings) -> dict[str, Box]:
    """Return the spaces of the image and of all buffers; depth and labels have one number for each point."""
    image = image_space(settings)
    plain = Box(0, 255, image.shape[:2], "uint8")
    return {"image": image, **{name: image if name == "automap" else plain for name in settings.buffers}}


def convert_colours(picture: Image, name: str) -> Image:
    """Return a picture of red, green and blue in other colours."""
    match name:
        case "bgr":
            turned = np.empty_like(picture)
            for at in range(3):  # a tenth of the time of a copy backwards
                turned[..., at] = picture[..., 2 - at]
            return turned
        case "grey":  # whole 256ths, so that this is exact; whole numbers take ten times as long
            return np.asarray(picture.astype(np.float32) @ np.array(GREY_WEIGHTS, np.float32) / 256, np.uint8)
    return picture


def pack_image(image: Image, name: str) -> str:
    """Return an image in these colours as protocol 0.8 sends it: blue, green and red, packed with blosc, in base64.

    A client reads it with `blosc.unpack_array`, which unpickles it. The pickle names NumPy's functions as NumPy 1 did:
    so every version can read it.
    """
    blosc = import_extra("blosc", "doom", "Pictures on the wire of Doom")
    sent = np.repeat(image[..., np.newaxis], 3, axis=2) if name == "grey" else image
    sent = np.ascontiguousarray(sent[..., ::-1]) if name == "rgb" else sent
    pickled = pickle.dumps(sent, protocol=3).replace(b"cnumpy._core.", b"cnumpy.core.", 1)
    return base64.b64encode(blosc.compress(pickled, typesize=1)).decode("ascii")


def unpack_image(text: str) -> Image:
    """Return the image that a server of protocol 0.8 sent.

    Raises:
        AgentProtocol: It is not a packed image.
    """
    blosc = import_extra("blosc", "doom", "Pictures on the wire of Doom")
    try:
        packed = base64.b64decode(text, validate=True)
        if blosc.get_cbuffer_sizes(packed)[0] > MAX_PACKED:
            raise ValueError(f"an image of more than {MAX_PACKED >> 20} MB")
        image = _ImageReader(io.BytesIO(blosc.decompress(packed))).load()
        if not isinstance(image, np.ndarray) or image.dtype != np.uint8:
            raise ValueError("it is not an array of bytes")
    except (*_UNREADABLE, blosc.blosc_extension.error) as error:
        raise AgentProtocol(f"the image cannot be read: {error}") from None
    return image


_UNREADABLE = (
    *(ValueError, TypeError, EOFError, AttributeError, IndexError, KeyError, ImportError, MemoryError, OverflowError),
    *(pickle.UnpicklingError, binascii.Error),
)
_CALLS = {("multiarray", "_reconstruct"): _reconstruct, ("numeric", "_frombuffer"): _frombuffer}
"""What pickles of arrays call, of older and newer protocols. NumPy 1 had these modules in `numpy.core`."""


class _ImageReader(pickle.Unpickler):
    """Unpickles an array of NumPy and calls nothing else, whatever the pickle names."""

    def find_class(self, module: str, name: str) -> Any:
        """Return one of the few things that pickles of arrays name."""
        if module == "numpy" and name in ("ndarray", "dtype"):
            return getattr(np, name)
        package, _, part = module.rpartition(".")
        if package not in ("numpy.core", "numpy._core") or (part, name) not in _CALLS:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return _CALLS[part, name]
