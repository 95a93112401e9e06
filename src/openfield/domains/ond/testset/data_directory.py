"""A data directory: the tests of all protocols and kinds in it, read from their files when they are asked for.

Before `test.py`: files in, tests out. Builders write the same files.
"""

from __future__ import annotations

import csv
import functools
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from numpy.typing import NDArray

from openfield.domains.ond.testset.test import Test, areas, find_area
from openfield.errors import InvalidInput
from openfield.files.arrays import read_arrays
from openfield.trial import Window, file_digest

PROTOCOLS = ("OND", "CONDDA")
TABLE_SUFFIX, METADATA_SUFFIX, LIST_NAME, ARRAYS_NAME = "_single_df.csv", "_metadata.json", "test_ids.csv", "arrays.npz"
ORIGINS_NAME = "origins.json"


class Origin(msgspec.Struct, frozen=True):
    """Where a built test comes from. It is kept beside the tests and never served: it reveals the change."""

    seed: int
    scenario: tuple[str, ...] | None
    window: Window | None
    trial: str
    """The identity of the trial it was built from."""


class DataDirectory:
    """The files `PROTOCOL/AREA/TEST_single_df.csv` and `TEST_metadata.json`, read when they are asked for."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self._areas: set[tuple[str, str]] = set()
        self._read_tests: dict[tuple[str, str, str], tuple[Test, dict[str, str]]] = {}

    def count(self) -> int:
        """Return how many tests there are now, of all protocols and areas."""
        return sum(len(names) for _, _, names in self.places())

    def places(self) -> list[tuple[str, str, list[str]]]:
        """Return the protocols and areas that have tests now, each with the names of its tests."""
        found = [(protocol, area, self.names(protocol, area)) for protocol in PROTOCOLS for area in areas()]
        return [place for place in found if place[2]]

    def has_area(self, protocol: str, area: str) -> bool:
        """Return whether there are tests of this protocol and area; a folder that was there is not looked for again."""
        if (protocol, area) not in self._areas:
            if protocol not in PROTOCOLS or area not in areas() or not (self.root / protocol / area).is_dir():
                return False
            self._areas.add((protocol, area))
        return True

    def list_file(self, protocol: str, area: str) -> bytes | None:
        """Return the list of tests as published, if there is one."""
        path = self.root / protocol / area / LIST_NAME
        return path.read_bytes() if path.is_file() else None

    def names(self, protocol: str, area: str) -> list[str]:
        """Return the names of all tests there are now, sorted."""
        folder = self.root / protocol / area
        return sorted(path.name.removesuffix(TABLE_SUFFIX) for path in folder.glob(f"*{TABLE_SUFFIX}"))

    def has(self, protocol: str, area: str, name: str) -> bool:
        """Return whether there is such a test; its name must be a plain file stem."""
        return (
            self.has_area(protocol, area) and is_stem(name) and self._path(protocol, area, name, TABLE_SUFFIX).is_file()
        )

    def has_metadata(self, protocol: str, area: str, name: str) -> bool:
        """Return whether a test has metadata."""
        return is_stem(name) and self._path(protocol, area, name, METADATA_SUFFIX).is_file()

    def load(self, protocol: str, area: str, name: str) -> tuple[Test, dict[str, str]]:
        """Return a test and the digests of its files; published files never change, so each is read once."""
        key = protocol, area, name
        if key not in self._read_tests:
            self._read_tests[key] = self._read(protocol, area, name)
        return self._read_tests[key]

    @functools.cached_property
    def origins(self) -> dict[str, Origin]:
        """The origins of tests that were built, by name; empty for published tests."""
        path = self.root / ORIGINS_NAME
        try:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, Origin]) if path.is_file() else {}
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{path} cannot be read: {error}.") from None

    def _read(self, protocol: str, area: str, name: str) -> tuple[Test, dict[str, str]]:
        if not self.has(protocol, area, name):
            others = [place for place in self.places() if name in place[2]]
            hint = f" There is one: --set protocol={others[0][0]} --set area={others[0][1]}" if others else ""
            raise InvalidInput(f"There is no test '{name}' for {protocol}, {area}.{hint}")
        table = self._path(protocol, area, name, TABLE_SUFFIX).read_bytes()
        digests = {name + TABLE_SUFFIX: file_digest(table)}
        metadata: dict[str, Any] = {}
        if self.has_metadata(protocol, area, name):
            facts = self._path(protocol, area, name, METADATA_SUFFIX).read_bytes()
            digests[name + METADATA_SUFFIX] = file_digest(facts)
            metadata = _decode_metadata(facts, name)
        try:
            rows = read_rows(table, find_area(area).encoding)
        except (csv.Error, UnicodeError) as error:
            raise InvalidInput(f"Test {name}: its rows cannot be read: {error}.") from None
        return Test(name, area, rows, {"protocol": protocol} | metadata, self._images(rows)), digests

    def _images(self, rows: Sequence[Sequence[str]]) -> NDArray[Any] | None:
        arrays = load_arrays(self.root)
        if arrays is None or not {"ids", "images"} <= arrays.keys():
            return None
        place = {key: number for number, key in enumerate(arrays["ids"].tolist())}
        found = [place.get(row[0], -1) for row in rows]
        return None if -1 in found else arrays["images"][found]

    def _path(self, protocol: str, area: str, name: str, suffix: str) -> Path:
        return self.root / protocol / area / f"{name}{suffix}"


@functools.lru_cache(4)
def load_arrays(root: Path) -> dict[str, NDArray[Any]] | None:
    """Return the images and training samples of a data directory that was built, or None."""
    path = root / ARRAYS_NAME
    return read_arrays(path) if path.is_file() else None


def is_stem(name: str) -> bool:
    """Return whether a name is a plain file stem that stays inside its folder."""
    return 0 < len(name.encode()) <= 200 and not any(c in name for c in "/\\\0\n\r") and not name.startswith(".")


def read_rows(content: bytes, encoding: str) -> list[tuple[str, ...]]:
    """Read the rows of a table: `|` quotes, the first line is a header, rows without id are left out."""
    text = io.StringIO(content.decode(encoding))
    rows = csv.reader(text, delimiter=",", quotechar="|")
    next(rows, None)
    return [tuple(row) for row in rows if row and row[0].strip("\n\t\r \"',.")]


def write_test(folder: Path, test: Test, header: Sequence[str]) -> None:
    """Write the rows and the metadata of a test to a folder."""
    with (folder / (test.name + TABLE_SUFFIX)).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=",", quotechar="|", lineterminator="\n").writerows([header, *test.rows])
    facts = test.metadata | {"red_light": test.red_light}
    (folder / (test.name + METADATA_SUFFIX)).write_bytes(msgspec.json.format(msgspec.json.encode(facts)))


def _decode_metadata(content: bytes, name: str) -> dict[str, Any]:
    try:  # Python's own reader, because its writer leaves NaN where a number is missing
        found = json.loads(content.decode("utf-8-sig"), parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"Test {name}: its metadata cannot be read: {error}.") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"Test {name}: its metadata cannot be read: they are not a JSON object.")
    return {key.replace("-", "_"): value for key, value in found.items()}
