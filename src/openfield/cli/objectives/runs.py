"""`openfield objectives RUN.sqlite`: the files it reads, and what is reported of each of them.

Part of `openfield objectives`; heavy imports wait until a run is evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from openfield.errors import InvalidInput, OpenfieldError

if TYPE_CHECKING:
    from openfield.objectives.runs.recordings import Reading, Recording


class RunFiles(NamedTuple):
    """Runs, and how they are to be read."""

    paths: Sequence[Path]
    human: Path | None = None
    human_agent: str | None = None
    thresholds: Path | None = None
    pictures: bool = False


def evaluate_run_files(files: RunFiles, **options: Any) -> dict[str, Any]:
    """Evaluate run files and return their JSON object. The entry of a file that cannot be used says why.

    Args:
        files: The runs.
        **options: As for `evaluate_runs`.

    Raises:
        InvalidInput: The human's run or the thresholds cannot be used.
    """
    from openfield.objectives.formats.convert import read_thresholds
    from openfield.objectives.runs.evaluate import evaluate_runs
    from openfield.objectives.runs.observations import SIZE
    from openfield.objectives.runs.recordings import Reading, read_human
    from openfield.report.objectives import runs_record

    if files.human_agent and not files.human:
        raise InvalidInput("--human-agent names the person in the run given by --human; there is none.")
    bins = None if files.thresholds is None else read_thresholds(files.thresholds)
    reading = Reading(size=SIZE if bins is None else len(bins), pictures=files.pictures)
    person = None
    if files.human is not None:
        person = read_human(files.human, Reading(agent=files.human_agent, size=reading.size, pictures=files.pictures))
    runs, entries = _read_all(files.paths, reading)
    found = evaluate_runs(runs, human=person, thresholds=bins, **options)
    return runs_record(entries, files.human, options["unit"], found)


def _read_all(paths: Sequence[Path], reading: Reading) -> tuple[list[Recording], list[dict[str, Any]]]:
    from openfield.objectives.formats.load import file_hash
    from openfield.objectives.runs.recordings import read_run
    from openfield.report.objectives import run_record

    runs: list[Recording] = []
    entries: list[dict[str, Any]] = []
    known: dict[str, Path] = {}
    for path in paths:
        try:
            _check_form(path)
            before = known.setdefault(file_hash(path), path)
            if before is not path:
                raise InvalidInput(f"{path}: the same run as {before}; its episodes count once.")
            runs.append(read_run(path, reading))
            entries.append(run_record(runs[-1]))
        except OpenfieldError as error:
            said = str(error)
            entries.append({"run": str(path), "error": said if str(path) in said else f"{path}: {said}"})
    return runs, entries


def _check_form(path: Path) -> None:
    """What is read as a run does not begin as a table."""
    with suppress(OSError), path.open("rb") as file:
        if file.read(4)[:1] in (b"\x80", b"P"):
            raise InvalidInput(f"{path}: a table; tables and runs cannot be evaluated by one command.")
