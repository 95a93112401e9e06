"""Array and picture files of others: what they say of their size is not believed, and nothing is run or blown up."""

from __future__ import annotations

import resource
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from openfield.errors import InvalidInput
from openfield.files.arrays import opening_picture, read_arrays


def head(shape: object, kind: object = "<f8") -> bytes:
    """The head of an NPY file that says anything."""
    text = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape!r}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


HOSTILE = {
    "huge": head((10**12,)) + bytes(8),
    "overflow": head((2**62, 2**62)) + bytes(8),
    "negative": head((-1,)) + bytes(80),
    "rows of nothing": head((10**12, 0)),
    "objects": head((2,), "|O") + bytes(99),
    "no whole number": head((2.5,)),
    "wide": head((1,), "<U1000000000") + bytes(8),
    "nested": b"\x93NUMPY\x01\x00" + struct.pack("<H", 60_000) + b"[" * 60_000,
    "long head": b"\x93NUMPY\x03\x00" + struct.pack("<I", 2**31),
    "cut short": head((10,))[:20],
    "empty": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_arrays_are_refused_alone_and_in_an_archive(tmp_path: Path, name: str) -> None:
    (alone := tmp_path / "x.npy").write_bytes(HOSTILE[name])
    with zipfile.ZipFile(archive := tmp_path / "x.npz", "w") as file:
        file.writestr("images.npy", HOSTILE[name])
    for path in (alone, archive):
        with pytest.raises(InvalidInput, match="cannot be read as arrays"):
            read_arrays(path)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    """Many members that are small enough alone count together."""
    with zipfile.ZipFile(path := tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as file:
        for number in range(6):
            file.writestr(f"a{number}.npy", head((100 << 20,), "|u1") + bytes(100 << 20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InvalidInput, match="would unpack"):
        read_arrays(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


def test_honest_files_are_read_as_numpy_reads_them(tmp_path: Path) -> None:
    arrays = {"a": np.arange(6).reshape(2, 3), "b": np.asfortranarray(np.eye(3)), "c": np.array(["x", "yz"])}
    arrays |= {"d": np.zeros((0, 4)), "e": np.array(7.5)}
    with (tmp_path / "x.npz").open("wb") as file:
        np.savez_compressed(file, a=arrays["a"], b=arrays["b"], c=arrays["c"], d=arrays["d"], e=arrays["e"])
    found = read_arrays(tmp_path / "x.npz")
    assert found.keys() == arrays.keys()
    assert all(np.array_equal(found[name], arrays[name]) for name in arrays)
    np.save(tmp_path / "x.npy", arrays["b"])
    assert np.array_equal(read_arrays(tmp_path / "x.npy")["array"], np.eye(3))


@pytest.mark.parametrize("side", [10_000, 60_000, 2**31 - 1])
def test_picture_bombs_are_refused(tmp_path: Path, side: int) -> None:
    pytest.importorskip("PIL")

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    size = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
    (path := tmp_path / "0.png").write_bytes(
        b"\x89PNG\r\n\x1a\n" + size + chunk(b"IDAT", zlib.compress(bytes(1_000))) + chunk(b"IEND", b"")
    )
    with pytest.raises(InvalidInput, match=r"0\.png cannot be read as an image"), opening_picture(path) as picture:
        picture.load()
