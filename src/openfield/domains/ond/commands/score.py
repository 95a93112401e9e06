"""`openfield ond score`: compute numbers from result files, without a server and without a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from openfield.console import print_json, print_table
from openfield.errors import InvalidInput
from openfield.options import MORE

HEADLINES = {
    "m_acc": ("full_top1", "pre_top1", "post_top1"),
    "m_num_stats": ("GT_indx", "P_indx_0.5"),
    "m_is_cdt_and_is_early": ("Is CDT", "Is Early"),
    "m_nrp": ("M_nrp_post_top1", "M_nrp_post_top3"),
}
"""The numbers of each test that the table shows; `--json` has all."""

FILE, NAME = Parameter(metavar="FILE"), Parameter(metavar="NAME")


@Parameter(name="*", group="From result files")
@dataclass(frozen=True)
class FileInput:
    """Result files of the protocol: two of one test, or a folder of many."""

    detection: Annotated[Path | None, FILE] = None
    """The detection file of a test."""
    classification: Annotated[Path | None, FILE] = None
    """Its classification file; for text tests, the file of labels."""
    test: Annotated[str | None, NAME] = None
    """Its name."""
    results: Annotated[Path | None, Parameter(metavar="DIR")] = None
    """A folder with files of many tests; also gives the programme's M1 to M6 over them."""
    data: Annotated[Path | None, Parameter(metavar="DIR")] = None
    """The data directory with the truth of the tests."""
    baseline: Annotated[str | None, NAME] = None
    """The agent in the folder that the others are compared with: M3 to M6 and m_nrp need one."""
    redlight: bool = False
    """The tests had the red light: M3 is then called M4."""
    area: Annotated[str, Parameter(metavar="NAME", group=MORE)] = "image_classification"
    """The kind of test [image_classification]."""
    protocol: Annotated[Literal["OND", "CONDDA"], Parameter(metavar="NAME", group=MORE)] = "OND"
    """The protocol of the tests [OND]."""


def score(*, files: FileInput | None = None, json: bool = False) -> None:
    """Score results of the protocol that are on disk. Arrays are scored by openfield score.

    Args:
        files: Result files on disk.
        json: Print all numbers as JSON.

    Example:
        openfield ond score --results DIR --data DIR --baseline NAME
    """
    files = files or FileInput()
    if files.results is not None:
        found = _score_folder(files, files.results)
        print_json(found) if json else _print_folder(found)
        return
    numbers = _score_test(files)
    print_json(numbers) if json else print_numbers(numbers)


def _score_folder(files: FileInput, folder: Path) -> dict[str, dict[str, Any]]:
    from openfield.domains.ond.scoring.result_files import ResultTests, score_folder

    if files.data is None:
        raise InvalidInput("Scoring a folder of results needs --data, the directory of the tests.")
    tests = ResultTests(
        data=files.data, protocol=files.protocol, area=files.area, baseline=files.baseline, red_light=files.redlight
    )
    return score_folder(folder, tests)


def _score_test(files: FileInput) -> dict[str, Any]:
    from openfield.domains.ond.scoring.result_files import ResultTests, score_test

    if files.detection is None or files.classification is None or files.data is None or files.test is None:
        raise InvalidInput(
            "Give --results and --data, or --detection, --classification, --data and --test. "
            "Arrays are scored by `openfield score`."
        )
    tests = ResultTests(data=files.data, protocol=files.protocol, area=files.area)
    return score_test(files.detection, files.classification, tests, files.test)


def print_numbers(numbers: dict[str, Any]) -> None:
    """Print numbers by family, one to a row."""
    rows = [(family, name, _text(value)) for family, part in numbers.items() for name, value in part.items()]
    print_table(("", "number", "value"), rows)
    if any("resampling" in getattr(value, "note", "") for part in numbers.values() for value in part.values()):
        print("\nOne test: the intervals come from resampling its samples.")


def _print_folder(found: dict[str, dict[str, Any]]) -> None:
    rows: list[tuple[str, str, str, str]] = []
    for agent, parts in found.items():
        rows += [(agent, "programme", name, _text(value)) for name, value in parts["programme"].items()]
        for test, families in parts.items():
            if "refused" in families:
                rows.append((agent, test, "refused", families["refused"]))
            flat = {name: value for family in HEADLINES for name, value in families.get(family, {}).items()}
            rows += [(agent, test, name, _text(flat[name])) for name in sum(HEADLINES.values(), ()) if name in flat]
    print_table(("", "test", "number", "value"), rows)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_text(part)}" for name, part in value.items())
    return "-" if value is None else str(value)
