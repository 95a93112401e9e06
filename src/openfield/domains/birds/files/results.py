"""Results of the original game and of its published evaluations, read from CSV files.

Three kinds of table are known by their columns, whatever their order and spelling: one row per level (the evaluation
log, and published tables that have an agent, a level and whether it was passed), one row per report (the likelihood
log), and one row per agent and scenario with a pass rate (the published summary).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, get_args

import msgspec

from openfield.core import Belief, PhaseName
from openfield.domains.birds.files.pool import folder_of, is_novel
from openfield.domains.birds.novelty import NOVELTIES
from openfield.domains.birds.settings import Scenario
from openfield.errors import InvalidInput
from openfield.files.data import read_bounded
from openfield.runner.importing import ImportedEpisode, ImportedTrial
from openfield.trial import Limits, Phase, Trial, derive, file_digest

MAX_BYTES, MAX_FILES, MAX_ROWS = 256 << 20, 10_000, 5_000_000
COLUMNS = {
    "agent": ("agent", "agentname", "player", "playerid", "participant", "participantid", "name"),
    "trial": ("trial", "trialid", "trialindex", "trialnumber"),
    "level": ("levelname", "level", "task", "taskname", "template"),
    "index": ("levelindex", "levelnumber"),
    "evaluation": ("evaluationindex",),
    "status": ("levelstatus", "status", "passed", "pass", "result", "won"),
    "score": ("score",),
    "birds": ("birdsremaining",),
    "birds_at_start": ("birdsatstart",),
    "pigs": ("pigsremaining",),
    "pigs_at_start": ("pigsatstart",),
    "phase": ("playstatus", "mode"),
    "informed": ("informed",),
    "novelty": ("novelty", "isnovel", "novel"),
    "detected": ("detected", "detection", "noveltydetected"),
    "likelihood": ("hasnoveltylikelihood",),
    "no_likelihood": ("nonoveltylikelihood",),
    "objects": ("novelobjectids",),
    "novelty_level": ("noveltylevel",),
    "description": ("noveltydescription",),
    "interaction": ("interactionindex",),
    "rate": ("passrate",),
    "fail_rate": ("failrate",),
    "category": ("category", "scenario"),
    "title": ("description",),
}
"""The columns that are read, with the names they have in files, without capitals, blanks and signs."""
PASSED = {"pass", "passed", "won", "win", "true", "yes", "1", "1.0"}
FAILED = {"fail", "failed", "lost", "playing", "false", "no", "0", "0.0", "timeout"}
NORMAL = {"basic", "normal", "non-novel", "nonnovel", "false", "no", "0", "0.0"}
NAMED = re.compile(r"01(\d\d)(\d\d)")
"""The type of a published level: the novelty whose template it is, and the scenario."""


class ResultsRow(msgspec.Struct, frozen=True):
    """A row of a table and where it is."""

    table: ResultsTable
    line: int
    values: dict[str, str]

    def text(self, name: str, default: str = "") -> str:
        """Return a value, without the apostrophe that guards text in spreadsheets."""
        return self.values.get(name, default).strip().lstrip("'") or default

    def number(self, name: str, default: float = 0.0) -> float:
        """Return a value as a number."""
        text = self.text(name)
        try:
            return float(text) if text else default
        except ValueError:
            raise self.error(f"'{text[:40]}' is not a number") from None

    def error(self, said: str) -> InvalidInput:
        """Return an error about this row."""
        return InvalidInput(f"{self.table.path}, line {self.line}: {said}.")


class ResultsTable(msgspec.Struct, frozen=True):
    """A table of results."""

    path: Path
    digest: str
    columns: frozenset[str]
    rows: list[ResultsRow]

    @property
    def agent(self) -> str:
        """The agent whose results these are, if the rows do not say: logs lie in a folder with its name."""
        folder = self.path.resolve().parent.name
        return folder if self.path.stem in ("EvaluationData", "NoveltyLikelihoodData") and folder else self.path.stem


def read_results(sources: Sequence[Path], agent: str | None, version: int) -> list[ImportedTrial]:
    """Return the results in some files and folders.

    Args:
        sources: CSV files, and folders in which all CSV files are read.
        agent: The name of the agent; None takes it from the files.
        version: That of the domain.
    """
    tables = [_read_table(path) for path in _list_files(sources)]
    levels: dict[tuple[str, str], list[ResultsRow]] = {}
    reports: dict[tuple[str, str], list[ResultsRow]] = {}
    found: list[ImportedTrial] = []
    for table in tables:
        if table.columns & {"rate", "fail_rate"}:
            found += [_read_rate(row, agent, version) for row in table.rows]
            continue
        kept = reports if "likelihood" in table.columns else levels
        for row in table.rows:
            kept.setdefault((agent or row.text("agent", table.agent), row.text("trial", "0")), []).append(row)
    if strays := sorted(set(reports) - set(levels)):
        raise InvalidInput(
            f"The reports of {strays[0][0]} in trial {strays[0][1]} have no levels: give the evaluation log as well."
        )
    for key, rows in levels.items():
        told = _split_executions(reports.get(key, []))
        found += [_make_trial(*key, played, next(told, []), version) for played in _split_executions(rows)]
    return found


def _list_files(sources: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for source in sources:
        found = sorted(source.rglob("*.csv")) if source.is_dir() else [source]
        if not found:
            raise InvalidInput(f"There is no CSV file in {source}.")
        files += found
    if len(files) > MAX_FILES:
        raise InvalidInput(f"These are {len(files):,} files; at most {MAX_FILES:,} are read at once.")
    return files


def _read_table(path: Path) -> ResultsTable:
    content = read_bounded(path, MAX_BYTES)
    lines = csv.reader(content.decode("utf-8-sig", "replace").splitlines())
    try:
        names = {at: _known(name) for at, name in enumerate(next(lines, []))}
        rows = [(lines.line_num, row) for row in lines if any(row)]
    except csv.Error as error:
        raise InvalidInput(f"{path}, line {lines.line_num}: {error}.") from None
    columns = frozenset(name for name in names.values() if name)
    table = ResultsTable(path, file_digest(content), columns, [])
    if not columns & {"status", "likelihood", "rate", "fail_rate"}:
        raise InvalidInput(
            f"{path} is no table of results: it has no column LevelStatus (the evaluation log), "
            "HasNoveltyLikelihood (the likelihood log) or pass_rate (a published summary)."
        )
    if len(rows) > MAX_ROWS:
        raise InvalidInput(f"{path} has {len(rows):,} rows; at most {MAX_ROWS:,} are read.")
    for line, row in rows:
        values = {name: value for at, value in enumerate(row) if (name := names.get(at, ""))}
        table.rows.append(ResultsRow(table, line, values))
    return table


def _known(name: str) -> str:
    """Return what a column is, by its name; empty if it is not read."""
    plain = re.sub(r"[^a-z]", "", name.lower())
    return next((kind for kind, names in COLUMNS.items() if plain in names), "")


def _split_executions(rows: list[ResultsRow]) -> Iterator[list[ResultsRow]]:
    """Yield the rows of each execution of a trial: in the next one the index of the evaluation begins anew."""
    start = 0
    for at in range(1, len(rows) + 1):
        if at == len(rows) or rows[at].number("evaluation") < rows[at - 1].number("evaluation"):
            yield rows[start:at]
            start = at


def _make_trial(
    agent: str, trial: str, rows: list[ResultsRow], reports: list[ResultsRow], version: int
) -> ImportedTrial:
    tested = any(row.text("phase").lower().startswith("test") for row in rows)
    beliefs = _assign_reports(rows, reports)
    episodes = [_make_episode(row, tested, beliefs.get(at)) for at, row in enumerate(rows)]
    named = [
        (episode.phase, _novelty(row) if episode.novel else ()) for row, episode in zip(rows, episodes, strict=True)
    ]
    phases = tuple(Phase(name, episodes=len(list(group)), novelty=novelty) for (name, novelty), group in groupby(named))
    tables = {row.table.path.name: row.table.digest for row in (*rows, *reports)}
    made = Trial(
        domain="birds",
        version=version,
        seed=int(trial) if trial.isdecimal() and len(trial) < 18 else derive(0, "imported", trial),
        phases=phases,
        settings=_settings(rows),
        red_light=rows[0].text("informed").lower() == "informed",
        limits=Limits(reply_seconds=None),
        files=tables,
        imported=", ".join(tables),
    )
    return ImportedTrial(agent, made, episodes)


def _make_episode(row: ResultsRow, tested: bool, report: ResultsRow | None) -> ImportedEpisode:
    """Return the result of a level. A trial that is one training set is its own test, as in the published trials."""
    status = row.text("status").lower()
    if status not in PASSED | FAILED:
        raise row.error(f"'{status[:40]}' says neither that the level was passed nor that it was not")
    phase: PhaseName = "test" if not tested or row.text("phase").lower().startswith("test") else "training"
    detail = {
        "level": row.text("level"),
        "index": int(row.number("index")),
        "score": int(row.number("score")),
        "status": "Playing" if status == "playing" else "Pass" if status in PASSED else "Fail",
        "birds": [int(row.number("birds")), int(row.number("birds_at_start"))],
        "pigs": [int(row.number("pigs")), int(row.number("pigs_at_start"))],
        "interactions": int(row.number("birds_at_start") - row.number("birds")),
    }
    return ImportedEpisode(phase, _is_novel(row), float(status in PASSED), _belief(row, report), detail)


def _is_novel(row: ResultsRow) -> bool:
    told = row.text("novelty").lower()
    name = row.text("level")
    return told not in NORMAL if told else "#" in name or is_novel(name)


def _belief(row: ResultsRow, report: ResultsRow | None) -> Belief | None:
    if report is None:
        told = row.text("detected").lower()
        return Belief(float(told in PASSED)) if told else None
    novel = report.number("likelihood")
    if not 0 <= novel <= 1:
        raise report.error(f"{novel:g} is not a likelihood from 0 to 1")
    objects = [int(name) for name in report.text("objects").split() if name.lstrip("-").isdecimal()]
    detail = {"objects": objects, "not_novel": report.number("no_likelihood", 1 - novel)}
    text = report.text("description")
    return Belief(novel, int(report.number("novelty_level")) or None, detail | ({"text": text} if text else {}))


def _assign_reports(rows: list[ResultsRow], reports: list[ResultsRow]) -> dict[int, ResultsRow]:
    """Return the last report about each row: reports go in order to the attempts at their level, one for each shot."""
    room = [max(1, int(row.number("birds_at_start") - row.number("birds"))) for row in rows]
    found: dict[int, ResultsRow] = {}
    at = 0
    for report in reports:
        place = report.text("level"), report.text("index")
        fits = (number for number in range(at, len(rows)) if _place(rows[number]) == place)
        number = next((number for number in fits if room[number] or number == len(rows) - 1), None)
        number = at if number is None and _place(rows[at]) == place else number  # more reports than shots
        if number is None:
            raise report.error(f"the evaluation log has no level {place[0] or place[1]} here")
        room[number] = max(0, room[number] - 1)
        found[number], at = report, number
    return found


def _place(row: ResultsRow) -> tuple[str, str]:
    return row.text("level"), row.text("index")


def _novelty(row: ResultsRow) -> tuple[str, ...]:
    """Return the novelties of a level: one of ours if its name is that of a published level, else its folder."""
    name, _, changes = row.text("level").partition("#")
    if changes:  # a level of ours that a novelty changed
        return tuple(changes.split("+"))
    level = re.search(r"novelty_level_(\d+)", folder_of(name)) if name else None
    if level and _type(name) and 1 <= int(level[1]) <= len(NOVELTIES):
        return (NOVELTIES[int(level[1]) - 1].name,)
    return (folder_of(name),) if level else ("novel",)


def _type(name: str) -> re.Match[str] | None:
    folder = re.search(r"type(\w+)", name)
    parts = Path(name.replace("\\", "/")).stem.split("_")
    return NAMED.fullmatch(folder[1] if folder else parts[-3] if len(parts) >= 6 else "")


def _settings(rows: list[ResultsRow]) -> dict[str, Any]:
    """Return the settings of a trial of ours with such levels: the family of templates, and the scenario."""
    types = [found for row in rows if (found := _type(row.text("level")))]
    families, scenarios = {int(found[1]) for found in types}, {int(found[2]) for found in types}
    names = get_args(Scenario)
    settings: dict[str, Any] = {"family": families.pop()} if len(families) == 1 else {}
    if len(scenarios) == 1 and 0 < min(scenarios) < len(names):
        settings["scenario"] = names[scenarios.pop()]
    return settings


def _read_rate(row: ResultsRow, agent: str | None, version: int) -> ImportedTrial:
    """Return a published pass rate as a trial with one episode, whose performance it is."""
    rate = row.number("rate") if "rate" in row.table.columns else 1 - row.number("fail_rate")
    if not 0 <= rate <= 1:
        raise row.error(f"{rate:g} is not a rate from 0 to 1")
    names, title = get_args(Scenario), row.text("title", row.text("category"))
    known = next((name for name in names[1:] if title.lower().startswith(name)), title.lower())
    name = row.table.path.name
    trial = Trial(
        domain="birds",
        version=version,
        seed=0,
        phases=(Phase("test", episodes=1),),
        settings={"scenario": known} if known else {},
        limits=Limits(reply_seconds=None),
        files={name: row.table.digest},
        imported=name,
    )
    detail = {"published": "pass rate", "category": row.text("category")}
    usual = "human" if "human" in row.table.path.stem.lower() else row.table.agent
    return ImportedTrial(agent or row.text("agent", usual), trial, [ImportedEpisode("test", False, rate, None, detail)])
