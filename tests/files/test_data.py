"""TOML files of users: odd ones get a message, whatever reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from openfield.errors import InvalidInput
from openfield.files.data import MAX_BYTES, read_toml
from openfield.runner.experiment import read_experiment

ODD = {
    "nested": b"a = " + b"[" * 50_000,
    "tables": b"a = " + b"{b = " * 50_000,
    "no text": b"a = '\xff\xfe'",
    "digits": b"trials = " + b"9" * 5_000,
    "date": b"a = 2024-99-99",
    "twice": b"a = 1\na = 2",
    "zero": b"a = \x00",
    "keys": b"a" + b".a" * 4_000 + b" = 1",
    "large": b"#" * (MAX_BYTES + 1),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_toml_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    (path := tmp_path / "x.toml").write_bytes(ODD[name])
    with pytest.raises(InvalidInput, match=r"x\.toml") as caught:
        read_experiment(path)
    assert "\n" not in str(caught.value)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    (path := tmp_path / "x.toml").write_bytes(b"\xef\xbb\xbfa = 1")
    assert read_toml(path) == {"a": 1}
