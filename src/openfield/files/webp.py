"""Animated WebP files, written picture by picture.

Pillow keeps all pictures of an animation in memory until it is written, which for half a minute are a gigabyte. Here
each picture is compressed by Pillow alone, only where it differs from the one before, and goes into the container.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from openfield.lazy import import_extra

QUALITY = 80
ANIMATED = 0x02
"""The flag of the file header: an animation follows."""
KEEP = 0x02
"""The flag of a picture: it replaces the pixels it covers, without blending."""


def write_webp(pictures: Iterable[Any], path: Path, milliseconds: float, last: int) -> int:
    """Write pictures of the same size, and return how many there were.

    Args:
        pictures: Images of Pillow, in RGB.
        path: The file.
        milliseconds: How long each picture is shown; the fractions add up.
        last: How long the last picture is shown, in milliseconds.
    """
    chops = import_extra("PIL.ImageChops", "view", "A film")
    count, before, begun, held = 0, None, 0, None
    with path.open("wb") as file:
        for picture in pictures:
            now = round(count * milliseconds)
            count += 1
            box = (0, 0, *picture.size) if before is None else chops.difference(before, picture).getbbox()
            if before is None:
                _write_head(file, picture.size)
            if box is not None:  # else the picture before is shown on
                if held is not None:
                    _write_frame(file, held, now - begun)
                begun, held = now, _compress(picture, box)
            before = picture
        if held is not None:
            _write_frame(file, held, round((count - 1) * milliseconds) - begun + last)
            size = file.tell()
            file.seek(4)
            file.write((size - 8).to_bytes(4, "little"))
    return count


Frame = tuple[int, int, int, int, bytes]
"""Left, top, width, height, and the compressed pixels."""


def _compress(picture: Any, box: tuple[int, int, int, int]) -> Frame:
    """Compress a part of a picture; the container can only place parts at even pixels."""
    left, top = box[0] // 2 * 2, box[1] // 2 * 2
    part, data = picture.crop((left, top, box[2], box[3])), io.BytesIO()
    part.save(data, "WEBP", quality=QUALITY, method=2)
    return left, top, part.width, part.height, data.getvalue()[12:]  # without the header of a file of its own


def _write_head(file: BinaryIO, size: tuple[int, int]) -> None:
    """Write the header; the size of the file is filled in at the end."""
    file.write(b"RIFF\0\0\0\0WEBP")
    width, height = (_number(side - 1) for side in size)
    _write_chunk(file, b"VP8X", bytes([ANIMATED, 0, 0, 0]) + width + height)
    _write_chunk(file, b"ANIM", bytes(6))  # a clear background, played for ever


def _write_frame(file: BinaryIO, frame: Frame, milliseconds: int) -> None:
    left, top, width, height, data = frame
    places = (left // 2, top // 2, width - 1, height - 1, milliseconds)
    _write_chunk(file, b"ANMF", b"".join(map(_number, places)) + bytes([KEEP]) + data)


def _write_chunk(file: BinaryIO, name: bytes, data: bytes) -> None:
    file.write(name + len(data).to_bytes(4, "little") + data + b"\0" * (len(data) % 2))


def _number(value: int) -> bytes:
    return value.to_bytes(3, "little")
