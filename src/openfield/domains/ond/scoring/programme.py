"""The programme's numbers over many tests, from a folder of result files: who posted what, test by test, and M1 to M6.

`openfield score ond --results DIR --data DIR` ends here. Files are those of a server (`SESSION.TEST_detection.csv`), of
its zip, or of precomputed agents (`TEST_NAME_detection.csv`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from openfield.domains.ond.client.rest_client import text_encoding
from openfield.domains.ond.server.errors import Refusal
from openfield.domains.ond.server.results import NUMERIC, Sheet, read_sheet
from openfield.domains.ond.testset.answers import Ledger
from openfield.domains.ond.testset.evaluation import detection_threshold, evaluate, evaluate_more, evaluate_reaction
from openfield.domains.ond.testset.sheet import Shelf, Test
from openfield.errors import InvalidInput, UnknownName
from openfield.metrics.openset.fixed import TestFacts, make_facts, program_measures
from openfield.metrics.openset.ranks import Floats

ENDINGS = {kind: f"_{kind}.csv" for kind in (*NUMERIC, "labels")}
PART = 8 << 20
"""Characters of a file that are read at a time."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which tests, and against whom."""

    data: Path
    protocol: str = "OND"
    area: str = "image_classification"
    baseline: str | None = None
    """Whose results are the baseline of M3 to M6 and of m_nrp; without one these are not defined."""
    given: bool = False
    """Whether the red light was given: then the relative performance is M4, otherwise M3."""


def score_results(folder: Path, wanted: Wanted) -> dict[str, dict[str, Any]]:
    """The numbers of everyone with results in a folder: `programme` over all tests, and those of each test."""
    shelf = Shelf(wanted.data)
    posted = find_results(folder, shelf.names(wanted.protocol, wanted.area))
    if not posted:
        raise InvalidInput(f"{folder} holds no results of tests in {wanted.data}, {wanted.protocol}, {wanted.area}.")
    ledgers = {
        who: {
            name: read_files(shelf.load(wanted.protocol, wanted.area, name)[0], files) for name, files in tests.items()
        }
        for who, tests in posted.items()
    }
    if wanted.baseline is not None and wanted.baseline not in ledgers:
        raise UnknownName("baseline", wanted.baseline, ledgers, label="There are results of")
    if list(ledgers) == [wanted.baseline]:
        raise InvalidInput(
            f"{folder} holds results of {wanted.baseline} alone; nobody can be told against that baseline."
        )
    bases = ledgers[wanted.baseline] if wanted.baseline is not None else {}
    return {who: _score(tests, bases, wanted) for who, tests in ledgers.items() if who != wanted.baseline}


def find_results(folder: Path, names: Iterable[str]) -> dict[str, dict[str, dict[str, Path]]]:
    """Who -> test -> type -> file. Who is what the file's name says beside the test and the type."""
    if not folder.is_dir():
        raise InvalidInput(f"There is no directory {folder}.")
    longest_first = sorted(names, key=len, reverse=True)
    found: dict[str, dict[str, dict[str, Path]]] = {}
    for path in sorted(folder.rglob("*.csv")):
        kind = next((kind for kind, ending in ENDINGS.items() if path.name.endswith(ending)), None)
        stem = path.name.removesuffix(ENDINGS.get(kind or "", ".csv"))
        name = next((name for name in longest_first if _belongs(stem, name)), None)
        if kind is not None and name is not None:
            who = stem.replace(name, "", 1).strip("._") or "results"
            found.setdefault(who, {}).setdefault(name, {})[kind] = path
    return found


def _belongs(stem: str, name: str) -> bool:
    """`SESSION.TEST`, `TEST_NAME` or `TEST`."""
    return stem == name or stem.endswith(f".{name}") or stem.startswith(f"{name}_")


def _score(tests: Mapping[str, Ledger], bases: Mapping[str, Ledger], wanted: Wanted) -> dict[str, Any]:
    whole = {name: ledger for name, ledger in tests.items() if not np.isnan(ledger.p_world).any()}
    facts = [_facts(ledger, bases.get(name)) for name, ledger in whole.items()]
    condda = wanted.protocol == "CONDDA"
    numbers: dict[str, Any] = {"programme": program_measures(facts, wanted.given)}
    for name, ledger in tests.items():
        try:
            numbers[name] = evaluate(ledger, condda) | evaluate_more(ledger, condda)
            if name in bases:
                numbers[name] |= evaluate_reaction(ledger, bases[name])
        except Refusal as error:
            numbers[name] = {"refused": str(error)}
    return numbers


def _facts(ledger: Ledger, base: Ledger | None) -> TestFacts:
    """Of a test whose every sample has a detection; what was not classified as a whole has no performance."""
    theirs = None if base is None else _hits(base)
    return make_facts(ledger.test.novel, ledger.p_world >= detection_threshold(ledger.test), _hits(ledger), theirs)


def _hits(ledger: Ledger) -> Floats | None:
    return (ledger.ranks == 0).astype(float) if (ledger.ranks >= 0).all() else None


def read_files(test: Test, files: Mapping[str, Path]) -> Ledger:
    """A ledger with everything the files of a test say; of the scores themselves no more than a part is in memory."""
    ledger = Ledger(test)
    for kind, path in files.items():
        try:
            for sheet in _sheets(kind, path, test):
                ledger.post(0, {kind: sheet})
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{path} cannot be read: {error}.") from None
        except Refusal as error:
            raise InvalidInput(f"{path}: {error}") from None
    return ledger


def _sheets(kind: str, path: Path, test: Test) -> Iterator[Sheet]:
    """What a file says, part by part; all parts have rows of one length."""
    widths = set()
    for text in _parts(path):
        sheet = read_sheet(kind, text, test, 0, compat=True)
        widths.add(None if sheet.numbers is None else sheet.numbers.shape[1])
        if len(widths) > 1:
            raise Refusal("InvalidResults", f"The {kind} rows differ in their number of columns.")
        yield sheet


def _parts(path: Path) -> Iterator[str]:
    """The lines of a file, so many at a time that they take some megabytes; nothing, once, if there are none."""
    with path.open("rb") as raw:
        encoding = text_encoding(raw.read(2))
    empty = True
    with path.open(encoding=encoding, newline="\n") as file:
        while lines := file.readlines(PART):
            text = "".join(lines)
            if text.strip():
                empty = False
                yield text
    if empty:
        yield ""
