"""Read the TOML files that lie beside the code: content is data, not code."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import TypeVar

import msgspec

T = TypeVar("T")


def read_data(package: str, name: str, kind: type[T]) -> T:
    """Return a TOML file of a package's `data` folder, as values of a type.

    Not by `msgspec.toml`, which hands its own classes of dates around: the conformance kit exchanges those.
    """
    text = files(package).joinpath("data", name).read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), kind, strict=False)
