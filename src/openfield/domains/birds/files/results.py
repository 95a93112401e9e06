"""Results of the original game and of its published evaluations, read from CSV files.

Four kinds of table are known by their columns, whatever their order and spelling: one row per level (the evaluation
log, and published tables that have an agent, a level and whether it was passed), one row per report (the likelihood
log), one row per agent and scenario with a pass rate (the published summary), and one row per agent or detector with
measures of detection (the published tables of detectors, and the measures that `openfield export` writes).
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec.structs import replace

from openfield.core import Belief, PhaseName
from openfield.domains.birds.files.pool import describe_levels, is_novel, is_phyq, novelty_of, scenario_of_title
from openfield.domains.birds.novelty import NOVELTIES
from openfield.errors import InvalidInput
from openfield.files.csv_files import MAX_CSV, parse_csv
from openfield.files.data import read_bounded
from openfield.runner.importing import ImportedEpisode, ImportedTrial
from openfield.trial import Limits, Phase, Trial, derive, file_digest

MAX_FILES, MAX_ROWS = 10_000, 5_000_000
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
MEASURES = {
    "agent": COLUMNS["agent"],
    "novelty": ("novelty", "noveltylevel"),
    "category": COLUMNS["category"],
    "detector": ("detector", "method", "detectionmethod"),
    "window": ("window", "windowsize"),
    "parameter": ("parameter", "threshold", "deviations", "sd"),
    "set": ("set",),
    "correct": ("cdt", "correctdetection"),
    "alarmed": ("wdt", "wrongdetection"),
    "delay": ("delay", "detectiondelay", "meandelay"),
    "passive_correct": ("passivecdt",),
    "passive_alarmed": ("passivewdt",),
    "passive_delay": ("passivedelay",),
    "before": ("normal",),
    "after": ("novel",),
    "asymptotic": ("asymptotic",),
    "area": ("area",),
}
"""The columns of a table of measures, which has a column CDT. Those from `correct` on are numbers of ours."""
NUMBERS = tuple(MEASURES)[tuple(MEASURES).index("correct") :]
PERCENT = ("correct", "alarmed", "passive_correct", "passive_alarmed")
DELAYS = ("delay", "passive_delay")
PASSED = {"pass", "passed", "won", "win", "true", "yes", "1", "1.0"}
FAILED = {"fail", "failed", "lost", "playing", "false", "no", "0", "0.0", "timeout"}
NORMAL = {"basic", "normal", "non-novel", "nonnovel", "false", "no", "0", "0.0"}
RESULTS = {"status", "likelihood", "rate", "fail_rate", "correct"}
"""Columns of which a table has one, and each of its rows a value there."""


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
        folder = unquote(self.path.resolve().parent.name)  # as an export writes it
        return folder if self.path.stem in ("EvaluationData", "NoveltyLikelihoodData") and folder else self.path.stem


def read_results(sources: Sequence[Path], agent: str | None, version: int) -> list[ImportedTrial]:
    """Return the results in some files and folders.

    Args:
        sources: CSV files, and folders in which all CSV files are read.
        agent: The name of the agent; None takes it from the files.
        version: That of the domain.
    """
    tables = [_read_table(path, path not in sources) for path in _list_files(sources)]
    levels: dict[tuple[str, str], list[ResultsRow]] = {}
    reports: dict[tuple[str, str], list[ResultsRow]] = {}
    found: list[ImportedTrial] = []
    players = {table.path: table.agent for table in tables} if agent is None else _tell_players_apart(tables)
    for table in tables:
        if "correct" in table.columns:
            found += [_read_measures(row, agent, version) for row in table.rows if row.text("set", "all") == "all"]
            continue
        if table.columns & {"rate", "fail_rate"}:
            found += [_read_rate(row, agent, version) for row in table.rows]
            continue
        kept = reports if "likelihood" in table.columns else levels
        for row in table.rows:
            kept.setdefault((row.text("agent", players[table.path]), row.text("trial", "0")), []).append(row)
    logged = {players[table.path] for table in tables if "likelihood" not in table.columns}
    for player, trial in sorted(set(reports) - set(levels)):
        said = f"The reports of {agent or player} in trial {trial} have no levels"
        if player not in logged or not levels:
            raise InvalidInput(f"{said}: give the evaluation log as well.")
        warnings.warn(f"{said} in the evaluation log and are left out.", stacklevel=2)
    counts = Counter[tuple[str, str, Path]]()
    for (player, trial), rows in levels.items():
        name, reported = agent or player, _split_executions(reports.get((player, trial), []))
        place = counts[name, trial, rows[0].table.path]
        counts[name, trial, rows[0].table.path] += 1
        found += [
            _make_trial(name, trial, place, rows, next(reported, []), version) for rows in _split_executions(rows)
        ]
    return list(_mark_twins(found))


def _tell_players_apart(tables: Sequence[ResultsTable]) -> dict[Path, str]:
    """Return who played each table that does not say it, where all are one agent: the logs of one lie in one folder.

    Reports of levels in another folder are those of its player; without any reports each table is a player's own.
    """
    told = {table.path for table in tables if "likelihood" in table.columns}
    if not told:
        return {table.path: str(table.path) for table in tables}
    folders = {table.path.parent for table in tables if table.path not in told}
    only = str(next(iter(folders))) if len(folders) == 1 else ""
    return {table.path: str(table.path.parent) if table.path.parent in folders else only for table in tables}


def _mark_twins(found: Sequence[ImportedTrial]) -> Iterator[ImportedTrial]:
    """Yield trials, those in which nothing changes as twins.

    The twin of a changed trial has the same levels in the same order, and so the same seed. Other unchanged trials
    belong to the only novelty that the agent meets in such levels.
    """
    changed: dict[tuple[Any, ...], list[Trial]] = {}
    met: dict[tuple[str, str], set[tuple[str, ...]]] = {}
    for each in found:
        if each.trial.novelty:
            if all(_level_of(episode) for episode in each.episodes):
                changed.setdefault(_list_levels(each), []).append(each.trial)
            met.setdefault((each.agent, repr(each.trial.settings)), set()).add(each.trial.novelty)
    for each in found:
        others = met.get((each.agent, repr(each.trial.settings)), set())
        if each.trial.novelty or not others:
            yield each
        elif same := changed.get(_list_levels(each)):
            other = same.pop(0)
            yield each._replace(trial=replace(each.trial, scenario=other.novelty, seed=other.seed))
        else:
            yield each._replace(trial=replace(each.trial, scenario=next(iter(others)))) if len(others) == 1 else each


def _list_levels(found: ImportedTrial) -> tuple[Any, ...]:
    """Return the levels of an agent's trial in order."""
    return found.agent, repr(found.trial.settings), *map(_level_of, found.episodes)


def _level_of(episode: ImportedEpisode) -> str:
    """Return the name of a level without what changes in it; empty for published numbers."""
    return str((episode.detail or {}).get("level", "")).partition("#")[0]


def _list_files(sources: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for source in sources:
        found = sorted(source.rglob("*.csv")) if source.is_dir() else [source]
        if not found:
            raise InvalidInput(f"There is no CSV file in {source}.")
        files += found
    files = list({path.resolve(): path for path in files}.values())  # a folder and a file in it may be given
    if len(files) > MAX_FILES:
        raise InvalidInput(f"These are {len(files):,} files; at most {MAX_FILES:,} are read at once.")
    return files


def _read_table(path: Path, in_folder: bool = False) -> ResultsTable:
    """Read a table; in a folder one without any result is named and stays empty, and rows without one are left out."""
    content = read_bounded(path, MAX_CSV)
    (_, header), *rows = parse_csv(content, path) or [(1, [])]
    known = MEASURES if any(_known(name, MEASURES) == "correct" for name in header) else COLUMNS
    names = {at: _known(name, known) for at, name in enumerate(header)}
    columns = frozenset(name for name in names.values() if name)
    table = ResultsTable(path, file_digest(content), columns, [])
    if in_folder and not rows:
        warnings.warn(f"{path} has no results and is left out.", stacklevel=2)
        return table
    if not columns & RESULTS:
        raise InvalidInput(
            f"{path} is not a table of results: it has no column LevelStatus (the evaluation log), "
            "HasNoveltyLikelihood (the likelihood log), pass_rate (a published summary) or CDT (measures of detection)."
        )
    if len(rows) > MAX_ROWS:
        raise InvalidInput(f"{path} has {len(rows):,} rows; at most {MAX_ROWS:,} are read.")
    for line, row in rows:
        values = {name: value for at, value in enumerate(row) if (name := names.get(at, ""))}
        if any(values.get(name, "").strip() for name in columns & RESULTS):
            table.rows.append(ResultsRow(table, line, values))
    if left_out := len(rows) - len(table.rows):
        some = f"{left_out} of {len(rows)} rows of {path} have no result and are"
        warnings.warn(f"{some if table.rows else f'{path} has no results and is'} left out.", stacklevel=2)
    return table


def _known(name: str, columns: dict[str, tuple[str, ...]]) -> str:
    """Return the meaning of a column, by its name; empty if it is not read."""
    plain = re.sub(r"[^a-z]", "", name.lower())
    return next((kind for kind, names in columns.items() if plain in names), "")


def _split_executions(rows: list[ResultsRow]) -> Iterator[list[ResultsRow]]:
    """Yield the rows of each execution of a trial: in the next one the index of the evaluation begins anew."""
    start = 0
    for at in range(1, len(rows) + 1):
        if at == len(rows) or rows[at].number("evaluation") < rows[at - 1].number("evaluation"):
            yield rows[start:at]
            start = at


def _make_trial(
    agent: str, trial: str, place: int, rows: list[ResultsRow], reports: list[ResultsRow], version: int
) -> ImportedTrial:
    """Return the results in some rows; `place` counts the players of a table whose trials have the same number."""
    tested = any(map(_is_test, rows))
    beliefs, sets = _assign_reports(rows, reports), _number_sets(rows)
    episodes = [_make_episode(row, tested, beliefs.get(at), sets[at]) for at, row in enumerate(rows)]
    named = [
        (episode.phase, _novelty(row) if episode.novel else ()) for row, episode in zip(rows, episodes, strict=True)
    ]
    phases = tuple(Phase(name, episodes=len(list(group)), novelty=novelty) for (name, novelty), group in groupby(named))
    tables = {row.table.path.name: row.table.digest for row in (*rows, *reports)}
    seed = int(trial) if trial.isdecimal() and len(trial) < 18 else derive(0, "imported", trial)
    made = Trial(
        domain="birds",
        version=version,
        seed=derive(seed, "player", place) if place else seed,
        phases=phases,
        settings=describe_levels(row.text("level") for row in rows),
        red_light=rows[0].text("informed").lower() == "informed",
        limits=Limits(reply_seconds=None),
        files=tables,
        imported=", ".join(tables),
    )
    return ImportedTrial(agent, made, episodes)


def _is_test(row: ResultsRow) -> bool:
    return row.text("phase").lower().startswith("test")


def _number_sets(rows: list[ResultsRow]) -> list[int | None]:
    """Return the number of each level's set, 0 for training; None where levels have no index.

    A test set begins where training is left, or where the index of the level falls.
    """
    found: list[int | None] = []
    count, last = 0, math.inf
    for row in rows:
        index = row.number("index") if _is_test(row) else math.inf
        count += index < last
        last = index
        found.append((count if _is_test(row) else 0) if "index" in row.table.columns else None)
    return found


def _make_episode(row: ResultsRow, tested: bool, report: ResultsRow | None, number: int | None) -> ImportedEpisode:
    """Return the result of a level. A trial that is one training set is its own test, as in the published trials."""
    status = row.text("status").lower()
    if status not in PASSED | FAILED:
        raise row.error(f"'{status[:40]}' says neither that the level was passed nor that it was not")
    phase: PhaseName = "test" if not tested or _is_test(row) else "training"
    detail: dict[str, Any] = {
        "level": row.text("level"),
        "index": int(row.number("index")),
        "status": "Playing" if status == "playing" else "Pass" if status in PASSED else "Fail",
        "won": status in PASSED,
        "birds": [int(row.number("birds")), int(row.number("birds_at_start"))],
        "pigs": [int(row.number("pigs")), int(row.number("pigs_at_start"))],
        "interactions": int(row.number("birds_at_start") - row.number("birds")),
    }
    if row.text("score"):  # tables of people's games have none
        detail["score"] = int(row.number("score"))
    if number is not None:
        detail["set"] = number
    return ImportedEpisode(phase, _is_novel(row), float(status in PASSED), _belief(row, report), detail)


def _is_novel(row: ResultsRow) -> bool:
    """Return whether a level is novel. Phy-Q has no novelty; its logs take a digit of the level's name for one."""
    novelty, name = row.text("novelty").lower(), row.text("level")
    if is_phyq(name):
        return False
    return novelty not in NORMAL if novelty else "#" in name or is_novel(name)


def _belief(row: ResultsRow, report: ResultsRow | None) -> Belief | None:
    if report is None:
        detected = row.text("detected").lower()
        return Belief(float(detected in PASSED)) if detected else None
    novel = report.number("likelihood")
    if not 0 <= novel <= 1:
        raise report.error(f"{novel:g} is not a likelihood from 0 to 1")
    objects = [int(name) for name in report.text("objects").split() if name.lstrip("-").isdecimal()]
    detail = {"objects": objects, "not_novel": report.number("no_likelihood", 1 - novel)}
    text = report.text("description")
    return Belief(novel, int(report.number("novelty_level")) or None, detail | ({"text": text} if text else {}))


def _assign_reports(rows: list[ResultsRow], reports: list[ResultsRow]) -> dict[int, ResultsRow]:
    """Return the last report about each row: reports go in order to the attempts at their level, one for each shot.

    The last level may have reports and no row: its agent failed in it.
    """
    room = [max(1, int(row.number("birds_at_start") - row.number("birds"))) for row in rows]
    found: dict[int, ResultsRow] = {}
    at = 0
    for told, report in enumerate(reports):
        place = _place(report)
        fits = (number for number in range(at, len(rows)) if _place(rows[number]) == place)
        number = next((number for number in fits if room[number] or number == len(rows) - 1), None)
        number = at if number is None and _place(rows[at]) == place else number  # more reports than shots
        if number is None and all(_place(later) == place for later in reports[told:]):
            warnings.warn(
                f"{report.table.path}, line {report.line}: its level never ended and is left out.", stacklevel=2
            )
            break
        if number is None:
            raise report.error(f"the evaluation log has no level {place[0] or place[1]} here")
        room[number] = max(0, room[number] - 1)
        found[number], at = report, number
    return found


def _place(row: ResultsRow) -> tuple[str, str]:
    return row.text("level"), row.text("index")


def _novelty(row: ResultsRow) -> tuple[str, ...]:
    """Return the novelties of a level."""
    name, _, changes = row.text("level").partition("#")
    return tuple(changes.split("+")) if changes else (novelty_of(name) or "novel",)


def _read_rate(row: ResultsRow, agent: str | None, version: int) -> ImportedTrial:
    """Return a published pass rate as a trial with one episode, whose performance it is."""
    rate = row.number("rate") if "rate" in row.table.columns else 1 - row.number("fail_rate")
    if not 0 <= rate <= 1:
        raise row.error(f"{rate:g} is not a rate from 0 to 1")
    trial = _make_published(row, row.text("title", row.text("category")), (Phase("test", episodes=1),), version)
    detail = {"published": "pass rate", "category": row.text("category")}
    usual = "human" if "human" in row.table.path.stem.lower() else row.table.agent
    return ImportedTrial(agent or row.text("agent", usual), trial, [ImportedEpisode("test", False, rate, None, detail)])


def _read_measures(row: ResultsRow, agent: str | None, version: int) -> ImportedTrial:
    """Return published measures as a trial with one episode that only carries them, by the names of our numbers.

    Shares may be in percent. Published delays count from 1, ours from 0. A detector is part of the agent's name.
    """
    stated = {name: row.number(name) for name in NUMBERS if row.text(name)}
    numbers = {name: value for name, value in stated.items() if math.isfinite(value)}
    in_percent = any(row.number(name) > 1 for row in row.table.rows for name in PERCENT)
    for name, value in numbers.items():
        numbers[name] = value / 100 if name in PERCENT and in_percent else value - 1 if name in DELAYS else value
        if numbers[name] < 0 or (name not in DELAYS and numbers[name] > 1):
            raise row.error(f"{value:g} is not a {'delay from 1 on' if name in DELAYS else 'share'}")
    novelty = (NOVELTIES[int(level) - 1].name if (level := _level(row)) else row.text("novelty", "novel"),)
    trial = _make_published(row, row.text("category"), (Phase("test", episodes=1, novelty=novelty),), version)
    words = [row.text(name) for name in ("detector", "window", "parameter")]
    detector = f" ({', '.join(filter(None, words))})" if words[0] else ""
    name = f"{agent or row.text('agent', row.table.agent)}{detector}"
    return ImportedTrial(name, trial, [ImportedEpisode("test", True, None, None, {"published": numbers})])


def _level(row: ResultsRow) -> str:
    """Return the number of a novelty level of the published hierarchy; empty if the row names a novelty otherwise."""
    found = re.fullmatch(r"(?:novelty_?level_?)?([1-8])", row.text("novelty").lower())
    return found[1] if found else ""


def _make_published(row: ResultsRow, title: str, phases: tuple[Phase, ...], version: int) -> Trial:
    """Return the trial of a published number; the line makes it another one than the trials of other rows."""
    known, name = scenario_of_title(title), row.table.path.name
    return Trial(
        domain="birds",
        version=version,
        seed=row.line,
        phases=phases,
        settings={"scenario": known} if known not in ("", "all") else {},
        limits=Limits(reply_seconds=None),
        files={name: row.table.digest},
        imported=name,
    )
