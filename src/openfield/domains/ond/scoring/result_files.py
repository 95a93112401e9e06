"""Score the protocol's result files: those of one test, or a folder of many tests and several agents, with M1 to M6.

Files are those of a server (`SESSION.TEST_detection.csv`), of its zip, or of precomputed agents
(`TEST_NAME_detection.csv`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from openfield.domains.ond.errors import Refusal
from openfield.domains.ond.scoring.open_set import Arrays, list_scores, score_arrays
from openfield.domains.ond.testset import evaluation
from openfield.domains.ond.testset.agent_answers import AgentAnswers
from openfield.domains.ond.testset.data_directory import DataDirectory
from openfield.domains.ond.testset.results import NUMERIC, ResultTable, read_posted_rows, text_encoding
from openfield.domains.ond.testset.test import Test
from openfield.errors import InvalidInput, UnknownName
from openfield.metrics.openset.compat import Floats
from openfield.metrics.programme import make_facts, program_measures
from openfield.options import NumberTable

ENDINGS = {kind: f"_{kind}.csv" for kind in (*NUMERIC, "labels")}
HEADLINES = {
    "m_acc": ("full_top1", "pre_top1", "post_top1"),
    "m_num_stats": ("GT_indx", "P_indx_0.5"),
    "m_is_cdt_and_is_early": ("Is CDT", "Is Early"),
    "m_nrp": ("M_nrp_post_top1", "M_nrp_post_top3"),
}
"""The numbers of each test that a table of many tests shows; JSON has all."""
PART = 8 << 20
"""Characters of a file that are read at a time."""


class ResultTests(msgspec.Struct, frozen=True, kw_only=True):
    """The tests that results belong to, and the baseline of the results."""

    data: Path
    protocol: str = "OND"
    area: str = "image_classification"
    baseline: str | None = None
    """The agent whose results are the baseline of M3 to M6 and m_nrp; without one these are not defined."""
    red_light: bool = False
    """Whether the red light was given: then the relative performance is M4, otherwise M3."""


def score_test(detection: Path, classification: Path, tests: ResultTests, name: str) -> dict[str, Any]:
    """Compute the programme's numbers of one test, in both variants, and the open-set measures.

    Of text tests `classification` is the file of labels, and there are no open-set measures: writers have no scores.
    """
    test, _ = DataDirectory(tests.data).load(tests.protocol, tests.area, name)
    kind = "labels" if tests.area == "nlt" else "classification"
    answers = read_files(test, {"detection": detection, kind: classification})
    numbers = evaluation.evaluate_test(answers) | evaluation.evaluate_more(answers)
    if kind == "labels":
        return numbers
    arrays = Arrays(answers.best_known, np.nan_to_num(answers.confidence), evaluation.open_labels(answers))
    return numbers | {"openset": score_arrays(arrays)}


def score_folder(folder: Path, tests: ResultTests) -> dict[str, dict[str, Any]]:
    """Compute the numbers of each agent with results in a folder: of each test, and `programme` over all tests."""
    directory, place = DataDirectory(tests.data), (tests.protocol, tests.area)
    posted = find_results(folder, directory.names(*place))
    if not posted:
        raise InvalidInput(f"{folder} holds no results of tests in {tests.data}, {', '.join(place)}.")
    played_answers = {
        agent: {name: read_files(directory.load(*place, name)[0], files) for name, files in played.items()}
        for agent, played in posted.items()
    }
    if tests.baseline is not None and tests.baseline not in played_answers:
        raise UnknownName("baseline", tests.baseline, played_answers, label="There are results of")
    if list(played_answers) == [tests.baseline]:
        raise InvalidInput(f"{folder} holds results of the baseline {tests.baseline} only; there is nothing to score.")
    bases = played_answers[tests.baseline] if tests.baseline is not None else {}
    return {agent: _score(played, bases, tests) for agent, played in played_answers.items() if agent != tests.baseline}


def tabulate_test(numbers: dict[str, Any]) -> NumberTable:
    """Return the numbers of one test as a table, one to a row."""
    remark = ["One test: the intervals come from resampling its samples."] if "openset" in numbers else []
    return NumberTable(numbers, ("family", "number", "value"), list_scores(numbers), "Numbers of a test", remark)


def tabulate_folder(found: dict[str, dict[str, Any]]) -> NumberTable:
    """Return the programme's measures of each agent as a table, and the headlines of its tests."""
    rows: list[tuple[str, ...]] = []
    for agent, parts in found.items():
        for test, families in parts.items():
            shown = families if {"refused", "M1"} & families.keys() else _pick_headlines(families)
            rows += [(agent, *row) for row in list_scores({test: shown})]
    return NumberTable(found, ("agent", "test", "number", "value"), rows, "Numbers of agents")


def _pick_headlines(families: Mapping[str, Any]) -> dict[str, Any]:
    pairs = ((name, families.get(family, {})) for family, names in HEADLINES.items() for name in names)
    return {name: numbers[name] for name, numbers in pairs if name in numbers}


def find_results(folder: Path, names: Iterable[str]) -> dict[str, dict[str, dict[str, Path]]]:
    """Find result files by agent, test and type. The agent is the rest of the file's name beside test and type."""
    if not folder.is_dir():
        raise InvalidInput(f"There is no directory {folder}.")
    longest_first = sorted(names, key=len, reverse=True)
    found: dict[str, dict[str, dict[str, Path]]] = {}
    for path in sorted(folder.rglob("*.csv")):
        kind = next((kind for kind, ending in ENDINGS.items() if path.name.endswith(ending)), None)
        stem = path.name.removesuffix(ENDINGS.get(kind or "", ".csv"))
        name = next((name for name in longest_first if _belongs(stem, name)), None)
        if kind is not None and name is not None:
            agent = stem.replace(name, "", 1).strip("._") or "results"
            found.setdefault(agent, {}).setdefault(name, {})[kind] = path
    return found


def _belongs(stem: str, name: str) -> bool:
    """Return whether a file's stem is `SESSION.TEST`, `TEST_NAME` or `TEST`."""
    return stem == name or stem.endswith(f".{name}") or stem.startswith(f"{name}_")


def _score(played: Mapping[str, AgentAnswers], bases: Mapping[str, AgentAnswers], tests: ResultTests) -> dict[str, Any]:
    whole = {name: answers for name, answers in played.items() if not np.isnan(answers.p_world).any()}
    threshold = evaluation.detection_threshold
    facts = [
        make_facts(one.test.novel, one.p_world >= threshold(one.test), _hits(one), _hits(bases.get(name)))
        for name, one in whole.items()
    ]
    condda = tests.protocol == "CONDDA"
    numbers: dict[str, Any] = {"programme": program_measures(facts, tests.red_light)}
    for name, answers in played.items():
        try:
            numbers[name] = evaluation.evaluate_test(answers, condda) | evaluation.evaluate_more(answers, condda)
            if name in bases:
                numbers[name] |= evaluation.evaluate_reaction(answers, bases[name])
        except Refusal as error:
            numbers[name] = {"refused": str(error)}
    return numbers


def _hits(answers: AgentAnswers | None) -> Floats | None:
    """Return which samples are answered right, if every sample has a class."""
    return (answers.ranks == 0).astype(float) if answers is not None and (answers.ranks >= 0).all() else None


def read_files(test: Test, files: Mapping[str, Path]) -> AgentAnswers:
    """Read the result files of a test, part by part, so that only a part of the scores is in memory."""
    answers = AgentAnswers(test)
    for kind, path in files.items():
        try:
            for table in _tables(kind, path, test):
                answers.post(0, {kind: table})
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{path} cannot be read: {error}.") from None
        except Refusal as error:
            raise InvalidInput(f"{path}: {error}") from None
    return answers


def _tables(kind: str, path: Path, test: Test) -> Iterator[ResultTable]:
    """Yield the rows of a file part by part, and check that all have the same number of columns."""
    widths = set()
    for text in _parts(path):
        table = read_posted_rows(kind, text, test, 0, compat=True)
        widths.add(None if table.numbers is None else table.numbers.shape[1])
        if len(widths) > 1:
            raise Refusal("InvalidResults", f"The {kind} rows differ in their number of columns.")
        yield table


def _parts(path: Path) -> Iterator[str]:
    """Yield the lines of a file, some megabytes at a time; an empty file gives one empty text."""
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
