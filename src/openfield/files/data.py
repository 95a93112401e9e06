"""Read TOML files: those that lie beside the code, since content is data, and those of users."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from openfield.errors import InvalidInput

MAX_TOML = 1 << 20
"""Bytes of a TOML file of users; the time to read one grows faster than its size."""
T = TypeVar("T")


def read_data(package: str, name: str, kind: type[T]) -> T:
    """Return a TOML file of a package's `data` folder, as values of a type.

    Not by `msgspec.toml`, which hands its own classes of dates around: the conformance kit exchanges those.
    """
    text = files(package).joinpath("data", name).read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), kind, strict=False)


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file that a user names.

    Raises:
        InvalidInput: It cannot be read, is too large, or is not TOML.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_TOML + 1)
        if len(content) > MAX_TOML:
            raise InvalidInput(f"{path} has more than {MAX_TOML >> 20} MB; it is not read.")
        return tomllib.loads(content.decode("utf-8-sig"))
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    except RecursionError:
        raise InvalidInput(f"{path} is not read: its values are nested too deeply.") from None
    except ValueError as error:  # bytes that are no text, no TOML, and numbers with thousands of digits
        raise InvalidInput(f"{path} is not TOML: {error}.") from None
