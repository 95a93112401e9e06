"""Read small files: those that lie beside the code, since content is data, and TOML, JSON and other files of users."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from openfield.errors import InvalidInput
from openfield.files.near import suggest_file

MAX_BYTES = 1 << 20
"""Bytes of a TOML or JSON file of users; the time to read TOML grows faster than its size."""
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
        return tomllib.loads(read_bounded(path).decode("utf-8-sig"))
    except RecursionError:
        raise InvalidInput(f"{path} is not read: its values are nested too deeply.") from None
    except ValueError as error:  # neither text nor TOML, or numbers with thousands of digits
        raise InvalidInput(f"{path} is not TOML: {error}.") from None


def read_json(path: Path) -> Any:
    """Return the content of a JSON file that a user names.

    Raises:
        InvalidInput: It cannot be read, is too large, or is not JSON.
    """
    try:
        return msgspec.json.decode(read_bounded(path).decode("utf-8-sig"))
    except RecursionError:
        raise InvalidInput(f"{path} is not read: its values are nested too deeply.") from None
    except ValueError as error:  # neither text nor JSON
        raise InvalidInput(f"{path} is not JSON: {error}.") from None


def read_bounded(path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the bytes of a file of users, unless there are too many.

    Raises:
        InvalidInput: It cannot be read, or is too large.
    """
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        near = suggest_file(path) if isinstance(error, FileNotFoundError) else ""
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.{near}") from None
    if len(content) > max_bytes:
        raise InvalidInput(f"{path} has more than {max_bytes >> 20} MB; it is not read.")
    return content
