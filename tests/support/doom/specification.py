"""Holds feature vectors against the machine-readable specifications of the tasks."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import msgspec

TYPES: dict[str, tuple[type, ...]] = {"int": (int,), "float": (float,), "str": (str,)}


def read(task: str) -> dict[str, Any]:
    """Read the specification of a task."""
    return dict(msgspec.json.decode((files("openfield.domains.doom") / "data" / f"{task}.json").read_bytes()))


def faults(spec: dict[str, Any], vector: dict[str, Any], first: bool) -> list[str]:
    """List everything in a vector that its specification does not allow."""
    wanted = {**spec["sensors"], "time_stamp": spec["time_stamp"], **(spec.get("first", {}) if first else {})}
    return list(_mapping(wanted, vector, ""))


def _any(wanted: Any, value: Any, place: str) -> Iterator[str]:
    if wanted is None:
        yield from [] if value is None else [f"{place} is {value!r}, not null"]
    elif isinstance(wanted, list):
        for number, part in enumerate(value):
            yield from _any(wanted[0], part, f"{place}[{number}]")
    elif "type" in wanted:
        yield from _leaf(wanted, value, place)
    else:
        yield from _mapping(wanted, value, place)


def _mapping(wanted: dict[str, Any], value: dict[str, Any], place: str) -> Iterator[str]:
    if wanted.keys() != value.keys():
        yield f"{place or 'the vector'} has {sorted(value)}, not {sorted(wanted)}"
        return
    for key, part in wanted.items():
        yield from _any(part, value[key], f"{place}.{key}")


def _leaf(wanted: dict[str, Any], value: Any, place: str) -> Iterator[str]:
    if value is None and wanted.get("null"):
        return
    if not isinstance(value, TYPES[wanted["type"]]) or isinstance(value, bool):
        yield f"{place} is {value!r}, not a {wanted['type']}"
    elif wanted["type"] != "str" and not wanted.get("min", value) <= value <= wanted.get("max", value):
        yield f"{place} is {value}"
    elif value not in wanted.get("values", [value]):
        yield f"{place} is {value!r}"
