"""WAD files: the container from which the engine loads maps, actors and scripts."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from openfield.errors import InvalidInput

Lump = tuple[str, bytes]
"""A named piece of a WAD; the order of lumps carries meaning."""
FIRST_MAP = "HALL"
"""A map that every WAD has. The engine loads it before any episode."""
_HEADER = struct.Struct("<4sii")
_ENTRY = struct.Struct("<ii8s")


def write_wad(lumps: Iterable[Lump]) -> bytes:
    """Write a patch WAD with these lumps: header, contents, directory."""
    contents, directory = bytearray(), bytearray()
    for name, content in lumps:
        directory += _ENTRY.pack(_HEADER.size + len(contents), len(content), _name_bytes(name))
        contents += content
    count = len(directory) // _ENTRY.size
    return _HEADER.pack(b"PWAD", count, _HEADER.size + len(contents)) + bytes(contents + directory)


def read_wad(data: bytes) -> list[Lump]:
    """Read the lumps of a WAD, in order.

    Raises:
        InvalidInput: The bytes are no WAD, or its directory points outside of it.
    """
    try:
        magic, count, start = _HEADER.unpack_from(data)
        entries = [_ENTRY.unpack_from(data, start + number * _ENTRY.size) for number in range(count)]
    except struct.error as error:
        raise InvalidInput(f"Not a whole WAD: {error}.") from None
    if magic not in (b"PWAD", b"IWAD") or any(offset < 0 or offset + size > len(data) for offset, size, _ in entries):
        raise InvalidInput("Not a WAD, or one whose directory points outside of it.")
    return [(name.rstrip(b"\0").decode("ascii"), data[offset : offset + size]) for offset, size, name in entries]


def map_lumps(name: str, text: bytes, behavior: bytes) -> list[Lump]:
    """Return a map as the group of lumps the engine looks for."""
    return [(name, b""), ("TEXTMAP", text), ("BEHAVIOR", behavior), ("ENDMAP", b"")]


def _name_bytes(name: str) -> bytes:
    encoded = name.encode("ascii", "replace")
    if not 1 <= len(encoded) <= 8 or b"?" in encoded:
        raise InvalidInput(f"'{name}' cannot name a lump: it needs 1 to 8 plain characters.")
    return encoded
